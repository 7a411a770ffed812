//! What holds for the source of all crates: files use each other one way, libraries know nothing of the command's flags, and no test takes the
//! largest of differences by a maximum that ignores NaN.
//!
//! A module and its parts (the files in its folder) are one thing and may use each other; so may tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A module by its path in the crate.
type Module = Vec<String>;

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let inner = folders.iter().flat_map(|folder| self::files(folder));
    inner.chain(files.into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs"))).collect()
}

/// The folder that has all crates.
fn crates_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// All crates, by the names of their folders.
fn crates() -> BTreeSet<String> {
    let folders = fs::read_dir(crates_folder()).unwrap().map(|entry| entry.unwrap().path());
    let crates = folders.filter(|folder| folder.join("Cargo.toml").is_file());
    crates.map(|folder| folder.file_name().unwrap().to_str().unwrap().to_owned()).collect()
}

fn source(name: &str) -> PathBuf {
    crates_folder().join(name).join("src")
}

/// A word or sign of Rust, or the content of a string.
#[derive(Debug, Clone, PartialEq)]
enum Token {
    Word(String),
    Sign(char),
    /// `::`.
    Path,
    Text(String),
}

/// The tokens of a file, without comments and modules of tests.
fn tokens(text: &str) -> Vec<Token> {
    without_tests(&all_tokens(text))
}

/// The tokens of a file, without comments.
fn all_tokens(text: &str) -> Vec<Token> {
    let (mut tokens, mut rest) = (Vec::new(), text);
    while let Some(c) = rest.chars().next() {
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let hashes = rest[1.min(rest.len() - 1)..].bytes().take_while(|&byte| byte == b'#').count();
        let len = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").unwrap() + 2
        } else if rest.starts_with("::") {
            tokens.push(Token::Path);
            2
        } else if c == 'r' && rest[1 + hashes..].starts_with('"') {
            let inner = &rest[2 + hashes..];
            let end = inner.find(&format!("\"{}", "#".repeat(hashes))).unwrap();
            tokens.push(Token::Text(inner[..end].to_owned()));
            2 + hashes + end + 1 + hashes
        } else if c == '"' {
            let mut escaped = false;
            let end = rest[1..]
                .find(|c| {
                    if escaped {
                        escaped = false;
                        false
                    } else {
                        escaped = c == '\\';
                        c == '"'
                    }
                })
                .unwrap()
                + 1;
            tokens.push(Token::Text(rest[1..end].to_owned()));
            end + 1
        } else if c == '\'' {
            // A character, or else a lifetime, of which the name remains.
            let mut chars = rest[1..].char_indices();
            match (chars.next(), chars.next()) {
                (Some((_, '\\')), _) => rest[3..].find('\'').unwrap() + 4,
                (_, Some((at, '\''))) => at + 2,
                _ => 1,
            }
        } else if word > 0 {
            tokens.push(Token::Word(rest[..word].to_owned()));
            word
        } else {
            if !c.is_whitespace() {
                tokens.push(Token::Sign(c));
            }
            c.len_utf8()
        };
        rest = &rest[len..];
    }
    tokens
}

/// The rest without the items that are marked `#[cfg(test)]`.
fn without_tests(tokens: &[Token]) -> Vec<Token> {
    let attribute = [Token::Sign('#'), Token::Sign('['), Token::Word("cfg".into()), Token::Sign('('), Token::Word("test".into())];
    let (mut kept, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        if !tokens[at..].starts_with(&attribute) {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        }
        at += attribute.len() + 2;
        let (mut depth, is_import) = (0, tokens[at] == Token::Word("use".into()));
        loop {
            match tokens[at] {
                Token::Sign('{' | '(' | '[') => depth += 1,
                Token::Sign('}' | ')' | ']') => depth -= 1,
                _ => {}
            }
            at += 1;
            let ends = tokens[at - 1] == Token::Sign(';') || tokens[at - 1] == Token::Sign('}') && !is_import;
            if depth == 0 && ends {
                break;
            }
        }
    }
    kept
}

/// The imports of a file, as paths with their names in it, and the paths in its code.
#[derive(Debug, Default)]
struct File {
    imports: Vec<(Module, String)>,
    paths: Vec<Module>,
    /// Whether one of its macros names modules beside it.
    lists_modules: bool,
}

impl File {
    fn new(tokens: &[Token]) -> Self {
        let (mut file, mut at) = (Self::default(), 0);
        while at < tokens.len() {
            at = match &tokens[at] {
                Token::Word(word) if word == "use" => file.import(tokens, at + 1, &[]),
                Token::Word(first) => {
                    let mut path = vec![first.clone()];
                    at += 1;
                    while let (Some(Token::Path), Some(Token::Word(word))) = (tokens.get(at), tokens.get(at + 1)) {
                        path.push(word.clone());
                        at += 2;
                    }
                    file.lists_modules |= tokens[at..].starts_with(&[Token::Path, Token::Sign('$')]) && path == ["super"];
                    if path.len() > 1 {
                        file.paths.push(path);
                    }
                    at
                }
                _ => at + 1,
            };
        }
        file
    }

    /// Reads the tree of imports that begins at `at` below `prefix`; returns the position after it.
    fn import(&mut self, tokens: &[Token], mut at: usize, prefix: &[String]) -> usize {
        let mut path = prefix.to_vec();
        loop {
            match &tokens[at] {
                Token::Word(word) if word == "as" => {
                    let Token::Word(name) = &tokens[at + 1] else { panic!("a name follows") };
                    self.imports.push((path, name.clone()));
                    return at + 2;
                }
                Token::Word(word) if word == "self" && !path.is_empty() => {}
                Token::Word(word) => path.push(word.clone()),
                Token::Sign('*') => {
                    self.imports.push((path, "*".to_owned()));
                    return at + 1;
                }
                Token::Sign('{') => {
                    at += 1;
                    while tokens[at] != Token::Sign('}') {
                        at = if tokens[at] == Token::Sign(',') { at + 1 } else { self.import(tokens, at, &path) };
                    }
                    return at + 1;
                }
                Token::Path => {}
                _ => {
                    // None where `use<'a>` names what a type captures.
                    let name = path.last().cloned();
                    self.imports.extend(name.map(|name| (path, name)));
                    return at;
                }
            }
            at += 1;
        }
    }
}

/// The modules of a crate.
struct Sources(BTreeMap<Module, File>);

impl Sources {
    fn read(name: &str) -> Self {
        let folder = source(name);
        let read = |path: PathBuf| {
            let inside = path.strip_prefix(&folder).unwrap().with_extension("");
            let mut module: Module = inside.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
            if ["mod", "lib"].contains(&module.last().unwrap().as_str()) {
                module.pop();
            }
            (module, File::new(&tokens(&fs::read_to_string(path).unwrap())))
        };
        Self(files(&folder).into_iter().map(read).filter(|(module, _)| !module.contains(&"tests".to_owned())).collect())
    }

    /// The path from the root of the crate for one that stands in `module`; none if it leads out of the crate.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Module> {
        let supers = path.iter().take_while(|part| *part == "super").count();
        match path[0].as_str() {
            "crate" => Some(path[1..].to_vec()),
            "self" => Some([module, &path[1..]].concat()),
            "super" => Some([module.get(..module.len().checked_sub(supers)?)?, &path[supers..]].concat()),
            first => self.0.contains_key(&[module, &[first.to_owned()]].concat()).then(|| [module, path].concat()),
        }
    }

    /// The module that defines what `path` names, following imports on the way.
    fn home(&self, path: &[String], depth: usize) -> Option<Module> {
        let inside = (0..=path.len()).rev().map(|end| path.split_at(end)).find(|(module, _)| self.0.contains_key(*module));
        let (module, rest) = inside?;
        let Some(name) = rest.first().filter(|_| depth < 10) else { return Some(module.to_vec()) };
        let imported = self.0[module].imports.iter().filter(|(_, alias)| alias == name);
        let mut targets = imported.filter_map(|(import, _)| Some([self.absolute(module, import)?, rest[1..].to_vec()].concat()));
        targets.next().map_or(Some(module.to_vec()), |target| self.home(&target, depth + 1))
    }

    /// What every module uses, except its own parts and what it is part of.
    fn uses(&self) -> BTreeMap<&Module, BTreeSet<Module>> {
        let of = |(module, file): (_, &File)| {
            let module: &Module = module;
            let imports = file.imports.iter().map(|(path, _)| path);
            let named = imports.chain(&file.paths).filter_map(|path| self.home(&self.absolute(module, path)?, 0));
            let beside = |path: &Module| [&module[..module.len().saturating_sub(1)], &path[..1]].concat();
            let listed = file.paths.iter().filter(|_| file.lists_modules).map(beside).filter(|path| self.0.contains_key(path));
            let others = named.chain(listed).filter(|other| !other.starts_with(module) && !module.starts_with(other));
            (module, others.collect())
        };
        self.0.iter().map(of).collect()
    }
}

/// The modules that `from` uses, directly or indirectly.
fn reached<'a>(uses: &'a BTreeMap<&Module, BTreeSet<Module>>, from: &'a Module) -> BTreeSet<&'a Module> {
    let (mut reached, mut left) = (BTreeSet::new(), vec![from]);
    while let Some(module) = left.pop() {
        left.extend(uses[module].iter().filter(|next| reached.insert(*next)));
    }
    reached
}

/// Pairs of modules that use each other, directly or indirectly.
fn circles(name: &str) -> Vec<String> {
    let sources = Sources::read(name);
    let uses = sources.uses();
    let pairs = uses.iter().flat_map(|(module, others)| others.iter().map(move |other| (*module, other)));
    let back = pairs.filter(|(module, other)| reached(&uses, other).contains(module));
    back.map(|(module, other)| format!("{name}: {} uses {}", module.join("/"), other.join("/"))).collect()
}

#[test]
fn files_use_each_other_one_way() {
    let found: Vec<String> = crates().iter().flat_map(|name| circles(name)).collect();
    assert!(found.is_empty(), "uses that go around in circles:\n{}", found.join("\n"));
}

#[test]
fn imports_are_followed_to_where_things_are_written() {
    let sources = Sources::read("minrnn");
    let module = |path: &str| path.split('/').map(str::to_owned).collect::<Module>();
    let uses = sources.uses();
    // By a path, through a re-export, in a list of modules.
    assert!(uses[&module("nn/block")].contains(&module("nn/norm")));
    assert!(uses[&module("generate/session")].contains(&module("model/sequence_model")));
    assert!(uses[&module("nn/any_mixer")].contains(&module("nn/min_gru")));
    assert!(!uses[&module("nn/min_gru")].contains(&module("nn/any_mixer")));
}

#[test]
fn libraries_name_no_flag_of_the_command() {
    // The command is the crate whose users have its flags.
    for name in crates().into_iter().filter(|name| name != "cli") {
        for path in files(&source(&name)) {
            for token in tokens(&fs::read_to_string(&path).unwrap()) {
                let Token::Text(text) = token else { continue };
                let names = text.split("--").skip(1).any(|behind| behind.starts_with(|c: char| c.is_ascii_lowercase()));
                assert!(!names, "{}: {text:?}", path.display());
            }
        }
    }
}

/// The position of the parenthesis that the one at `end` closes, and what is between them.
fn group(tokens: &[Token], end: usize) -> Option<(usize, &[Token])> {
    let mut depth = 0;
    for at in (0..=end).rev() {
        match tokens[at] {
            Token::Sign(')') => depth += 1,
            Token::Sign('(') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((at, &tokens[at + 1..end]));
        }
    }
    None
}

/// Whether |x − y| is among these tokens, without a check for NaN.
fn has_difference(tokens: &[Token]) -> bool {
    let abs = all_tokens(").abs()");
    let is_difference = |at: usize| {
        let behind_the_first = |inside: &[Token]| inside.iter().skip(1).any(|token| *token == Token::Sign('-'));
        tokens[at..].starts_with(&abs) && group(tokens, at).is_some_and(|(_, inside)| behind_the_first(inside))
    };
    !tokens.contains(&Token::Word("is_nan".into())) && (0..tokens.len()).any(is_difference)
}

/// The position of the word before the parentheses that end at `end`, and their content.
fn call(tokens: &[Token], end: usize) -> Option<(usize, &[Token])> {
    let (open, inside) = (tokens[end] == Token::Sign(')')).then(|| group(tokens, end))??;
    Some((open.checked_sub(1)?, inside))
}

/// Maxima over |x − y| that ignore NaN: `worst.max((x - y).abs())`, and `map(|…| (x - y).abs())` before `fold(…, f32::max)` or
/// `reduce(f32::max)`.
fn maxima_of_differences(tokens: &[Token]) -> usize {
    let is = |at: usize, word: &str| tokens[at] == Token::Word(word.to_owned());
    let maxima = ["f32::max", "f64::max"].map(all_tokens);
    let maps_differences = |end: usize| call(tokens, end).is_some_and(|(name, inside)| is(name, "map") && has_difference(inside));
    let passes_over_nan = |end: &usize| {
        call(tokens, *end).is_some_and(|(name, inside)| {
            let folds = (is(name, "fold") || is(name, "reduce")) && maxima.iter().any(|maximum| inside.ends_with(maximum));
            is(name, "max") && has_difference(inside) || folds && name >= 2 && maps_differences(name - 2)
        })
    };
    (0..tokens.len()).filter(passes_over_nan).count()
}

#[test]
fn tests_take_no_maximum_of_differences_that_passes_over_nan() {
    let folders = crates().into_iter().flat_map(|name| ["src", "tests", "examples"].map(|folder| crates_folder().join(&name).join(folder)));
    let folders = folders.filter(|folder| folder.is_dir());
    let (files, mut n_read) = (folders.flat_map(|folder| files(&folder)), 0);
    for path in files {
        let found = maxima_of_differences(&all_tokens(&fs::read_to_string(&path).unwrap()));
        assert_eq!(found, 0, "{}: assert each difference, or make NaN infinite before the maximum", path.display());
        n_read += 1;
    }
    assert!(n_read > 500, "{n_read}");
}

#[test]
fn a_maximum_of_differences_is_known_by_its_words() {
    let found = |text: &str| maxima_of_differences(&all_tokens(text));
    assert_eq!(found("a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)"), 1);
    assert_eq!(found("a.iter().map(|a| f64::from(a - b).abs() / c).reduce(f64::max)"), 1);
    assert_eq!(found("pairs.fold(0f32, |m, (a, b)| m.max((a - b).abs()))"), 1);
    for other in [
        "a.iter().fold(1.0f32, |largest, x| largest.max(x.abs()))",
        "a.map(|x| x.abs()).fold(0.0, f32::max)",
        "a.max((-b).abs())",
        "errors.map(|e| if (e - f).is_nan() { f32::INFINITY } else { (e - f).abs() }).fold(0.0, f32::max)",
        "(a - b).abs() <= c * d.abs().max(1.0)",
        "times.map(|t| (t - begun).as_secs()).fold(0.0, f64::max)",
    ] {
        assert_eq!(found(other), 0, "{other}");
    }
}
