//! What holds for the source of all crates: files use each other one way, and libraries know nothing of the command's flags.
//!
//! A module and its parts (the files in its folder) are one thing and may use each other; so may tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const CRATES: [&str; 11] = ["kernels", "model", "stream", "onnx", "capi", "python", "minrnn", "bench", "reproduce", "mpi", "cli"];
/// Those whose users need not have the command.
const LIBRARIES: [&str; 10] = ["kernels", "model", "stream", "onnx", "capi", "python", "minrnn", "bench", "reproduce", "mpi"];

/// A module by its path in the crate.
type Module = Vec<String>;

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let inner = folders.iter().flat_map(|folder| self::files(folder));
    inner.chain(files.into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs"))).collect()
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src")
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
    without_tests(&tokens)
}

/// The rest without the items that `#[cfg(test)]` stands before.
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

/// What a file imports, as paths with the names they have in it, and the paths in its code.
#[derive(Debug, Default)]
struct File {
    imports: Vec<(Module, String)>,
    paths: Vec<Module>,
    /// Whether a macro of it names modules beside it.
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

    /// Takes the tree of imports that begins at `at` below `prefix`; gives the place behind it.
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

    /// The path from the root of the crate, of one that stands in `module`; none where it leads out of the crate.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Module> {
        let supers = path.iter().take_while(|part| *part == "super").count();
        match path[0].as_str() {
            "crate" => Some(path[1..].to_vec()),
            "self" => Some([module, &path[1..]].concat()),
            "super" => Some([module.get(..module.len().checked_sub(supers)?)?, &path[supers..]].concat()),
            first => self.0.contains_key(&[module, &[first.to_owned()]].concat()).then(|| [module, path].concat()),
        }
    }

    /// The module where what `path` names is written, through the imports on the way.
    fn home(&self, path: &[String], depth: usize) -> Option<Module> {
        let inside = (0..=path.len()).rev().map(|end| path.split_at(end)).find(|(module, _)| self.0.contains_key(*module));
        let (module, rest) = inside?;
        let Some(name) = rest.first().filter(|_| depth < 10) else { return Some(module.to_vec()) };
        let imported = self.0[module].imports.iter().filter(|(_, alias)| alias == name);
        let mut targets = imported.filter_map(|(import, _)| Some([self.absolute(module, import)?, rest[1..].to_vec()].concat()));
        targets.next().map_or(Some(module.to_vec()), |target| self.home(&target, depth + 1))
    }

    /// What every module uses, its own parts and what it is part of aside.
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

/// The modules that `from` uses, directly or around.
fn reached<'a>(uses: &'a BTreeMap<&Module, BTreeSet<Module>>, from: &'a Module) -> BTreeSet<&'a Module> {
    let (mut reached, mut left) = (BTreeSet::new(), vec![from]);
    while let Some(module) = left.pop() {
        left.extend(uses[module].iter().filter(|next| reached.insert(*next)));
    }
    reached
}

/// The uses that a use the other way answers, directly or around.
fn circles(name: &str) -> Vec<String> {
    let sources = Sources::read(name);
    let uses = sources.uses();
    let pairs = uses.iter().flat_map(|(module, others)| others.iter().map(move |other| (*module, other)));
    let back = pairs.filter(|(module, other)| reached(&uses, other).contains(module));
    back.map(|(module, other)| format!("{name}: {} uses {}", module.join("/"), other.join("/"))).collect()
}

#[test]
fn files_use_each_other_one_way() {
    let found: Vec<String> = CRATES.iter().flat_map(|name| circles(name)).collect();
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
    for name in LIBRARIES {
        for path in files(&source(name)) {
            for token in tokens(&fs::read_to_string(&path).unwrap()) {
                let Token::Text(text) = token else { continue };
                let names = text.split("--").skip(1).any(|behind| behind.starts_with(|c: char| c.is_ascii_lowercase()));
                assert!(!names, "{}: {text:?}", path.display());
            }
        }
    }
}
