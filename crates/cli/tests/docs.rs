//! The documents are true: their commands run, their Rust stands in programs that are compiled, their links lead somewhere, and the
//! lists of settings, crates and features are whole. No option of the command is left out.
//!
//! A block of a page is marked by what is done with it: `sh` is run, `sh no-run` is not, but its options are looked up, `rust` must stand
//! in an example, a test or a doctest of the repository. A page's commands run in order in a directory of their own, where the documents
//! of the repository's root and of `docs` lie as they do in a clone.

#![cfg(unix)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use common::{Finished, Scratch, minrnn, shown};
use minrnn::train::Experiment;

/// How links on the crates' pages begin, which are also read outside the repository.
const REPOSITORY: &str = "https://github.com/minrnn/minrnn/blob/main/";
/// Keys without a default, which the defaults do not list.
const WITHOUT_DEFAULT: [&str; 10] =
    ["path", "corpus", "validation", "test", "class_weights", "calendar", "known_ahead", "memory_limit", "eval_seed", "from"];

/// The root of the repository; none where the crate was packaged alone.
fn root() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if !root.join("docs/SUMMARY.md").exists() {
        eprintln!("skipped: the documents are not here, as this crate stands without its repository");
        return None;
    }
    Some(root)
}

/// A document and its path from the root.
struct Page {
    name: String,
    text: String,
}

/// A fenced block: what it is marked as, its lines, and the number of the first of them.
struct Block {
    mark: String,
    lines: Vec<String>,
    at: usize,
}

/// The files in `folder` whose names end in `end`, sorted; with `deep` also those in folders below.
fn files(folder: &Path, end: &str, deep: bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() && deep && !path.ends_with("target") {
            found.extend(files(&path, end, deep));
        } else if path.is_file() && path.to_str().unwrap().ends_with(end) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn pages(root: &Path, paths: impl IntoIterator<Item = PathBuf>) -> Vec<Page> {
    let page = |path: PathBuf| Page { name: shown(path.strip_prefix(root).unwrap()), text: fs::read_to_string(path).unwrap() };
    paths.into_iter().map(page).collect()
}

/// The front page and those of `docs`.
fn manual(root: &Path) -> Vec<Page> {
    pages(root, [root.join("README.md")].into_iter().chain(files(&root.join("docs"), ".md", false)))
}

/// Every document that people read.
fn documents(root: &Path) -> Vec<Page> {
    let mut paths = files(root, ".md", false);
    paths.extend(files(&root.join("docs"), ".md", false));
    paths.extend(["results", "benchmarks", "crates", "fuzz"].iter().flat_map(|folder| files(&root.join(folder), "README.md", true)));
    paths.extend(["models/README.md", "python/README.md", "web/README.md", "results/details.md"].map(|page| root.join(page)));
    pages(root, paths)
}

impl Page {
    fn blocks(&self) -> Vec<Block> {
        let (mut blocks, mut open): (Vec<Block>, Option<Block>) = (Vec::new(), None);
        for (number, line) in self.text.lines().enumerate() {
            let fence = line.trim_start().strip_prefix("```");
            match (&mut open, fence) {
                (None, Some(mark)) => open = Some(Block { mark: mark.trim().to_owned(), lines: Vec::new(), at: number + 2 }),
                (Some(_), Some("")) => blocks.extend(open.take()),
                (Some(block), _) => block.lines.push(line.to_owned()),
                (None, None) => {}
            }
        }
        assert!(open.is_none(), "{}: a block is not closed", self.name);
        blocks
    }

    /// The lines outside of blocks.
    fn prose(&self) -> impl Iterator<Item = &str> {
        let mut inside = false;
        self.text.lines().filter(move |line| {
            let fence = line.trim_start().starts_with("```");
            inside ^= fence;
            !inside && !fence
        })
    }

    /// Its parts, from each heading to the next; the first says what the page is about.
    fn sections(&self) -> Vec<String> {
        let (mut sections, mut inside) = (vec![String::new()], false);
        for line in self.text.lines() {
            inside ^= line.trim_start().starts_with("```");
            if !inside && line.starts_with('#') && !sections[0].is_empty() {
                sections.push(String::new());
            }
            let section = sections.last_mut().unwrap();
            section.push_str(line);
            section.push('\n');
        }
        sections
    }

    /// The anchors of its headings.
    fn anchors(&self) -> BTreeSet<String> {
        let heading = |line: &str| line.starts_with('#').then(|| anchor(line.trim_start_matches('#').trim()));
        self.prose().filter_map(heading).collect()
    }
}

/// As GitHub and mdBook make them.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    heading.to_lowercase().chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Lines without indentation, and without empty ones.
fn code<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    lines.map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// The lines of all that is compiled: sources, and pages and comments whose Rust is run as doctests.
fn compiled(root: &Path) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for path in files(&root.join("crates"), ".rs", true) {
        let text = fs::read_to_string(&path).unwrap();
        let comment = |line: &'static str| move |text: &str| text.trim_start().strip_prefix(line).map(|rest| rest.trim().to_owned());
        for mark in ["//!", "///"] {
            let lines: Vec<String> = text.lines().filter_map(comment(mark)).collect();
            all.push(code(lines.iter().map(String::as_str).filter(|line| !line.starts_with("# "))));
        }
        all.push(code(text.lines()));
        if path.ends_with("src/lib.rs") && text.contains(r#"#![doc = include_str!("../README.md")]"#) {
            all.push(code(fs::read_to_string(path.parent().unwrap().join("../README.md")).unwrap().lines()));
        }
    }
    all
}

#[test]
fn every_piece_of_rust_stands_in_a_program_that_is_compiled() {
    let Some(root) = root() else { return };
    let compiled = compiled(&root);
    for page in documents(&root) {
        for block in page.blocks() {
            let place = format!("{}, line {}", page.name, block.at);
            assert!(
                !block.mark.is_empty() || !manual(&root).iter().any(|manual| manual.name == page.name),
                "{place}: a block without a mark"
            );
            if !block.mark.starts_with("rust") {
                continue;
            }
            assert_eq!(block.mark, "rust", "{place}: Rust that is not compiled");
            let lines = code(block.lines.iter().map(String::as_str));
            let stands = compiled.iter().any(|source| source.windows(lines.len()).any(|window| window == lines));
            assert!(stands, "{place}: no example, test or doctest has these lines:\n{}", lines.join("\n"));
        }
    }
}

#[test]
fn commands_run() {
    let Some(root) = root() else { return };
    let binary = Path::new(env!("CARGO_BIN_EXE_minrnn"));
    let path = format!("{}:{}", shown(binary.parent().unwrap()), std::env::var("PATH").unwrap_or_default());
    let mut ran = 0;
    for page in manual(&root) {
        let scratch = Scratch::new();
        fs::create_dir(scratch.path("docs")).unwrap();
        for copy in manual(&root).iter().chain(&pages(&root, files(&root, ".md", false))) {
            scratch.write(&copy.name, &copy.text);
        }
        for block in page.blocks().iter().filter(|block| block.mark == "sh") {
            let mut shell = Command::new("sh");
            shell.args(["-e", "-c", &block.lines.join("\n")]).current_dir(scratch.path("")).env("PATH", &path);
            let finished = Finished::of(shell.stdin(Stdio::null()));
            assert_eq!(finished.code, Some(0), "{}, line {}: {finished:?}", page.name, block.at);
            ran += 1;
        }
    }
    assert!(ran > 5, "only {ran} blocks are marked `sh`");
}

/// The keys of an experiment, section by section.
fn settings() -> BTreeMap<String, BTreeSet<String>> {
    let defaults = toml::Table::try_from(Experiment::default()).unwrap();
    let sections = defaults.into_iter().filter_map(|(name, value)| value.as_table().map(|table| (name, table.keys().cloned().collect())));
    sections.collect()
}

/// What `minrnn COMMANDS --help` says.
fn help(commands: &[&str]) -> &'static str {
    static KNOWN: OnceLock<std::sync::Mutex<BTreeMap<String, &'static str>>> = OnceLock::new();
    let mut known = KNOWN.get_or_init(Default::default).lock().unwrap();
    known.entry(commands.join(" ")).or_insert_with(|| {
        let finished = Finished::of(&mut minrnn(&[commands, &["--help"]].concat()));
        assert_eq!(finished.code, Some(0), "minrnn has no command '{}'", commands.join(" "));
        finished.stdout.leak()
    })
}

/// Checks the command, the options and the settings of a shell line.
fn expect_known(line: &str, place: &str) {
    let line = line.split(" #").next().unwrap_or_default();
    for command in line.split(['|', ';']).flat_map(|part| part.split("&&")) {
        let words: Vec<&str> = command.split_whitespace().skip_while(|word| *word != "minrnn").skip(1).collect();
        let Some(name) = words.first().filter(|name| name.chars().all(|c| c.is_ascii_lowercase())) else { continue };
        if !command.trim_start().starts_with("minrnn") {
            continue;
        }
        let commands: Vec<&str> = match (*name, words.get(1)) {
            ("bench", Some(what)) if !what.starts_with('-') => vec!["bench", what],
            (name, _) => vec![name],
        };
        let help = help(&commands);
        for (at, word) in words.iter().enumerate() {
            if let Some(option) = word.strip_prefix("--").map(|option| option.split('=').next().unwrap()) {
                let known = option.is_empty()
                    || help.split(|c: char| !(c.is_alphanumeric() || c == '-')).any(|known| known == format!("--{option}"));
                assert!(known, "{place}: minrnn {name} has no option --{option}");
            }
            if *word == "--set" {
                let key = words.get(at + 1).and_then(|setting| setting.trim_matches('\'').split('=').next()).unwrap_or_default();
                let key = key.rsplit('.').next().unwrap();
                let known = settings().values().any(|keys| keys.contains(key)) || WITHOUT_DEFAULT.contains(&key);
                assert!(known || matches!(key, "preset" | "key" | "…" | "KEY"), "{place}: there is no setting '{key}'");
            }
        }
    }
}

#[test]
fn options_and_settings_of_all_commands_exist() {
    let Some(root) = root() else { return };
    for page in documents(&root) {
        for block in page.blocks().iter().filter(|block| block.mark.starts_with("sh")) {
            assert!(matches!(block.mark.as_str(), "sh" | "sh no-run"), "{}, line {}: `{}`", page.name, block.at, block.mark);
            block.lines.iter().for_each(|line| expect_known(line, &format!("{}, line {}", page.name, block.at)));
        }
        for line in page.prose() {
            line.split('`').skip(1).step_by(2).for_each(|span| expect_known(span, &page.name));
        }
    }
}

/// The commands that a help lists.
fn commands_of(help: &str) -> Vec<&str> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = listed.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    // A continuation line is indented further.
    names.filter(|name| !name.is_empty() && *name != "help").collect()
}

/// The names of the option that a line of a help begins with; none if it begins with something else.
fn names_of_option(line: &str) -> Vec<&str> {
    let words = line.split_whitespace().map(|word| word.trim_end_matches(','));
    words.take_while(|word| word.len() > 1 && word.starts_with('-')).collect()
}

/// The words of a text, options among them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).filter(|word| !word.is_empty())
}

/// Whether a text mentions `minrnn COMMAND`; the part of a command, such as `lm` of `minrnn bench`, may stand elsewhere.
fn names_command(text: &str, command: &[&str]) -> bool {
    let words: Vec<&str> = words(text).collect();
    let is_named = words.windows(2).any(|pair| pair[0] == "minrnn" && pair[1] == command[0]);
    is_named && command[1..].iter().all(|part| words.contains(part))
}

#[test]
fn the_manual_tells_of_every_option_of_every_command() {
    let Some(root) = root() else { return };
    let manual: Vec<(Vec<String>, String)> = manual(&root).into_iter().map(|page| (page.sections(), page.name)).collect();
    let mut n = 0;
    for name in commands_of(help(&[])) {
        let parts = commands_of(help(&[name]));
        let commands = if parts.is_empty() { vec![vec![name]] } else { parts.into_iter().map(|part| vec![name, part]).collect() };
        for command in commands {
            // A section covers a command that it names, and every section of a page about a command does; the front page is about all of them.
            let mut told = BTreeSet::from(["-h", "-V"]);
            for (sections, page) in &manual {
                let is_about = page.starts_with("docs") && names_command(&sections[0], &command);
                for section in sections.iter().filter(|section| is_about || names_command(section, &command)) {
                    told.extend(words(section));
                }
            }
            for option in help(&command).lines().map(names_of_option).filter(|names| !names.is_empty()) {
                let is_told = option.iter().any(|name| told.contains(name));
                assert!(is_told, "nothing in the manual tells of minrnn {} {}", command.join(" "), option.join(", "));
                n += 1;
            }
        }
    }
    assert!(n > 100, "only {n} options were found");
}

#[test]
fn every_link_leads_somewhere() {
    let Some(root) = root() else { return };
    let documents = documents(&root);
    for page in &documents {
        let folder = root.join(&page.name).parent().unwrap().to_owned();
        for link in page.prose().flat_map(|line| line.split("](").skip(1)).filter_map(|rest| rest.split(')').next()) {
            let (target, place) = link.split_once('#').unwrap_or((link, ""));
            let path = match target.strip_prefix(REPOSITORY) {
                Some(path) => root.join(path),
                None if target.starts_with("http") => continue,
                None if target.is_empty() => root.join(&page.name),
                None => folder.join(target),
            };
            assert!(path.exists(), "{}: '{link}' leads nowhere", page.name);
            if !place.is_empty() {
                let found = Page { name: String::new(), text: fs::read_to_string(&path).unwrap() };
                assert!(found.anchors().contains(place), "{}: '{link}' leads to no heading", page.name);
            }
        }
    }
}

#[test]
fn the_book_has_every_page() {
    let Some(root) = root() else { return };
    let docs = root.join("docs");
    for list in ["SUMMARY.md", "README.md"] {
        let text = fs::read_to_string(docs.join(list)).unwrap();
        for page in files(&docs, ".md", false) {
            let name = page.file_name().unwrap().to_str().unwrap();
            let listed = ["SUMMARY.md", "README.md"].contains(&name) || text.contains(&format!("({name})"));
            assert!(listed, "docs/{list} does not list {name}");
        }
    }
}

#[test]
fn every_setting_is_listed() {
    let Some(root) = root() else { return };
    let text = fs::read_to_string(root.join("docs/settings.md")).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let listed: BTreeSet<String> = rows.map(str::to_owned).collect();
    let known: BTreeSet<String> = settings().into_values().flatten().chain(WITHOUT_DEFAULT.map(str::to_owned)).collect();
    assert_eq!(listed, known);
}

#[test]
fn every_crate_is_listed_with_its_features() {
    let Some(root) = root() else { return };
    let front = fs::read_to_string(root.join("README.md")).unwrap();
    for manifest in files(&root.join("crates"), "Cargo.toml", true) {
        let folder = manifest.parent().unwrap();
        let name = shown(folder.strip_prefix(&root).unwrap());
        let text = fs::read_to_string(folder.join("README.md")).unwrap_or_else(|_| panic!("{name} has no README.md"));
        assert!(front.contains(&format!("({name}/README.md)")), "README.md does not list {name}");
        let table: toml::Table = fs::read_to_string(&manifest).unwrap().parse().unwrap();
        let features = table.get("features").and_then(|features| features.as_table()).into_iter().flat_map(|table| table.keys());
        for feature in features.filter(|feature| *feature != "default") {
            assert!(text.contains(&format!("`{feature}`")), "{name}/README.md does not say what the feature {feature} is");
        }
    }
}
