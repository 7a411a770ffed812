//! The files of a checkpoint directory: their names, and reading them with their digests checked.
//!
//! `SHA256SUMS` has a line for each file, as written and checked by `sha256sum`: 64 hexadecimal digits, a space, a space or `*`, the file's
//! name. It is written last. A directory without it (made by hand, or before there were digests) is read unchecked; with it, files it does
//! not list are not read, as they would be unchecked.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::files::{read_limited, utf8};
use crate::{Error, Result, Weights, hex, read_text, write_atomic};

/// Name of the configuration in a checkpoint directory.
pub const CONFIG_FILE: &str = "config.json";
/// Name of the weights in a checkpoint directory.
pub const WEIGHTS_FILE: &str = "model.safetensors";
/// Name of the vocabulary in a checkpoint directory.
pub const TOKENIZER_FILE: &str = "tokenizer.json";
/// Name of the description of the task's data in a checkpoint directory.
pub const TASK_FILE: &str = "task.json";
/// Name of the file with the surprises of held-out rows in a checkpoint directory.
pub const SURPRISE_FILE: &str = "surprise.json";
/// Name of the digests in a checkpoint directory.
pub const DIGESTS_FILE: &str = "SHA256SUMS";
/// Files that [`CheckpointFiles::add`] adds to a complete checkpoint: for a moment, or for good if it was killed then, they are not listed.
const ADDED_LATER: [&str; 1] = [SURPRISE_FILE];
const MAX_DIGESTS_BYTES: u64 = 1 << 16;
const BLOCK: usize = 1 << 16;

/// A checkpoint directory whose files are checked against its digests as they are read. The bytes that are hashed are the bytes returned,
/// so nothing can change in between.
#[derive(Debug, Clone)]
pub struct CheckpointFiles {
    directory: PathBuf,
    /// Digest by name, if the directory has any.
    digests: Option<BTreeMap<String, String>>,
}

impl CheckpointFiles {
    /// Reads the digests of the checkpoint in `directory`, if it has any.
    ///
    /// # Errors
    /// When they cannot be read or are damaged, or a file they list is missing.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self> {
        let directory = directory.as_ref().to_owned();
        let path = directory.join(DIGESTS_FILE);
        let digests = match read_text(&path, MAX_DIGESTS_BYTES) {
            Ok(text) => Some(parse(&text).map_err(|problem| Error::malformed(&path, problem))?),
            Err(error) if is_missing(&error) => None,
            Err(error) => return Err(error),
        };
        let files = Self { directory, digests };
        for name in files.digests.iter().flatten().map(|(name, _)| name) {
            let path = files.path(name);
            // A file that cannot be looked at may be there, and is not called missing.
            if !path.try_exists().map_err(|source| Error::io("read", &path, source))? {
                let problem = format!("{DIGESTS_FILE} beside it lists this file, but it is missing; {}", files.remedy());
                return Err(Error::malformed(path, problem));
            }
        }
        Ok(files)
    }

    /// Writes the digests of every file in `directory`, which is then a complete checkpoint.
    ///
    /// # Errors
    /// When a file cannot be read, or the digests cannot be written.
    pub fn seal(directory: impl AsRef<Path>) -> Result<()> {
        let directory = directory.as_ref();
        let io = |source| Error::io("list", directory, source);
        let mut lines = BTreeMap::new();
        for entry in std::fs::read_dir(directory).map_err(io)? {
            let entry = entry.map_err(io)?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if name != DIGESTS_FILE && entry.path().is_file() {
                let digest = digest_of(&entry.path()).map_err(|source| Error::io("read", entry.path(), source))?;
                lines.insert(name.clone(), format!("{digest}  {name}\n"));
            }
        }
        write_atomic(directory.join(DIGESTS_FILE), lines.into_values().collect::<String>().as_bytes())
    }

    /// Adds the file `name` with the content `bytes` to the complete checkpoint in `directory`, or replaces it. A concurrent reader finds a
    /// complete checkpoint if the file is [`SURPRISE_FILE`]; any other file is refused until it is listed.
    ///
    /// # Errors
    /// When the digests are damaged, or a file cannot be written.
    pub fn add(directory: impl AsRef<Path>, name: &str, bytes: &[u8]) -> Result<()> {
        let files = Self::open(directory)?;
        let path = files.path(name);
        if files.lists(name) && std::fs::read(&path).is_ok_and(|found| found == bytes) && files.expect_digest(name, bytes).is_ok() {
            return Ok(());
        }
        let Some(mut digests) = files.digests else { return write_atomic(path, bytes) };
        let listed = |digests: &BTreeMap<String, String>| {
            let text: String = digests.iter().map(|(name, digest)| format!("{digest}  {name}\n")).collect();
            write_atomic(files.directory.join(DIGESTS_FILE), text.as_bytes())
        };
        // While the file is replaced, neither the old digest nor the new one is certain.
        if digests.remove(name).is_some() {
            listed(&digests)?;
        }
        write_atomic(path, bytes)?;
        digests.insert(name.to_owned(), hex(Sha256::digest(bytes).as_slice()));
        listed(&digests)
    }

    /// Whether the file `name` belongs to the checkpoint: it is listed, or there are no digests.
    pub fn lists(&self, name: &str) -> bool {
        self.digests.as_ref().is_none_or(|digests| digests.contains_key(name))
    }

    /// The path of a file of the checkpoint.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The content of a file of at most `limit` bytes.
    ///
    /// # Errors
    /// When it cannot be read, is larger, has a different digest, or is not listed although there are digests.
    pub fn bytes(&self, name: &str, limit: u64) -> Result<Vec<u8>> {
        let bytes = read_limited(&self.path(name), limit)?;
        self.expect_digest(name, &bytes)?;
        Ok(bytes)
    }

    /// The content of an optional file.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes), except that a missing file is `None`. One that exists but cannot be read, for lack of permission for
    /// example, is an error.
    pub fn find(&self, name: &str, limit: u64) -> Result<Option<Vec<u8>>> {
        match self.bytes(name, limit) {
            Err(error) if is_missing(&error) => Ok(None),
            found => found.map(Some),
        }
    }

    /// The text of a file of at most `limit` bytes.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes); also when it is not UTF-8.
    pub fn text(&self, name: &str, limit: u64) -> Result<String> {
        utf8(&self.path(name), self.bytes(name, limit)?)
    }

    /// The tensors of a file.
    ///
    /// # Errors
    /// As [`Weights::read`]; also when the file's digest differs.
    pub fn weights(&self, name: &str) -> Result<Weights> {
        Weights::read_checked_by(&self.path(name), |bytes| self.expect_digest(name, bytes))
    }

    /// Whether `bytes` are what the file `name` had in it when it was written.
    fn expect_digest(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let Some(digests) = &self.digests else { return Ok(()) };
        let Some(expected) = digests.get(name) else {
            if ADDED_LATER.contains(&name) {
                return Ok(());
            }
            let problem =
                format!("it does not list {name} beside it, as if it was cut short, so that file is unchecked; {}", self.remedy());
            return Err(Error::malformed(self.path(DIGESTS_FILE), problem));
        };
        if hex(Sha256::digest(bytes).as_slice()) == *expected {
            return Ok(());
        }
        let problem =
            format!("its SHA-256 is not the one in {DIGESTS_FILE} beside it, so it has changed since it was written; {}", self.remedy());
        Err(Error::malformed(self.path(name), problem))
    }

    /// What to do about a file that is not as it was written, or not listed.
    fn remedy(&self) -> String {
        let another = match self.sibling() {
            Some(path) => format!(
                "use another checkpoint of the run, such as '{}' (to train on from it, write its name into the file 'last' beside it)",
                path.display()
            ),
            None => "copy it again from its source".to_owned(),
        };
        format!("{another}, or delete {DIGESTS_FILE} if it was changed on purpose")
    }

    /// The latest other checkpoint of the same run.
    fn sibling(&self) -> Option<PathBuf> {
        let number = |path: &Path| path.file_name()?.to_str()?.strip_prefix("iter-")?.split('-').next()?.parse::<u64>().ok();
        let own = self.directory.canonicalize().ok()?;
        number(&own)?;
        let others = std::fs::read_dir(own.parent()?).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
        let name = others.filter(|path| *path != own && path.join(DIGESTS_FILE).is_file()).filter(|path| number(path).is_some());
        let latest = name.max_by_key(|path| number(path))?;
        // With the parent directory as the checkpoint's own path names it.
        Some(self.directory.parent()?.join(latest.file_name()?))
    }
}

/// Whether a file could not be read because there is none.
fn is_missing(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if matches!(source.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory))
}

/// Digest by name.
fn parse(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut digests = BTreeMap::new();
    for (at, line) in text.lines().enumerate() {
        let parts =
            line.split_at_checked(64).and_then(|(digest, rest)| Some((digest, rest.strip_prefix("  ").or(rest.strip_prefix(" *"))?)));
        let is_name = |name: &str| !name.is_empty() && !name.contains(['/', '\\', '\0']) && name != "." && name != "..";
        match parts {
            Some((digest, name)) if digest.bytes().all(|digit| digit.is_ascii_hexdigit()) && is_name(name) => {
                if digests.insert(name.to_owned(), digest.to_ascii_lowercase()).is_some() {
                    return Err(format!("line {} lists '{name}' again; rewrite the file with sha256sum, or delete it", at + 1));
                }
            }
            _ => {
                let problem = "is not a SHA-256 in hexadecimal, two spaces and the name of a file beside it";
                return Err(format!("line {} {problem}; rewrite the file with sha256sum, or delete it", at + 1));
            }
        }
    }
    if !digests.contains_key(CONFIG_FILE) {
        return Err(format!("it does not list {CONFIG_FILE}, as if it was cut short; rewrite it with sha256sum, or delete it"));
    }
    Ok(digests)
}

fn digest_of(path: &Path) -> std::io::Result<String> {
    let (mut file, mut hash, mut block) = (File::open(path)?, Sha256::new(), vec![0; BLOCK]);
    loop {
        match file.read(&mut block) {
            Ok(0) => return Ok(hex(hash.finalize().as_slice())),
            Ok(len) => hash.update(&block[..len]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: [(&str, &str); 3] = [(CONFIG_FILE, "{}"), ("model.safetensors", "weights"), ("empty", "")];

    fn checkpoint() -> (tempfile::TempDir, PathBuf) {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("iter-20");
        std::fs::create_dir(&directory).unwrap();
        for (name, content) in FILES {
            std::fs::write(directory.join(name), content).unwrap();
        }
        CheckpointFiles::seal(&directory).unwrap();
        (parent, directory)
    }

    fn refusal<T: std::fmt::Debug>(outcome: Result<T>) -> String {
        outcome.unwrap_err().to_string()
    }

    #[test]
    fn the_digests_are_those_of_sha256sum() {
        let (_parent, directory) = checkpoint();
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  empty\n";
        let text = std::fs::read_to_string(directory.join(DIGESTS_FILE)).unwrap();
        assert!(text.contains(empty) && text.lines().count() == FILES.len(), "{text}");
        // Written by `sha256sum -b`, in capitals.
        let binary: String = text.lines().map(|line| format!("{} *{}\n", line[..64].to_uppercase(), &line[66..])).collect();
        std::fs::write(directory.join(DIGESTS_FILE), binary).unwrap();
        let files = CheckpointFiles::open(&directory).unwrap();
        for (name, content) in FILES {
            assert_eq!(files.text(name, 10).unwrap(), content);
        }
    }

    #[test]
    fn a_file_is_added_to_a_complete_checkpoint_and_replaced() {
        let (_parent, directory) = checkpoint();
        for content in ["first", "second", "second"] {
            CheckpointFiles::add(&directory, "more", content.as_bytes()).unwrap();
            let files = CheckpointFiles::open(&directory).unwrap();
            assert_eq!(files.text("more", 10).unwrap(), content);
            for (name, content) in FILES {
                assert_eq!(files.text(name, 10).unwrap(), content);
            }
            let text = std::fs::read_to_string(directory.join(DIGESTS_FILE)).unwrap();
            assert_eq!(text.lines().count(), FILES.len() + 1, "{text}");
        }
        std::fs::write(directory.join("more"), "third").unwrap();
        assert!(refusal(CheckpointFiles::open(&directory).unwrap().text("more", 10)).contains("SHA-256"));
    }

    #[test]
    fn every_flipped_bit_of_a_listed_file_is_refused_by_name() {
        let (_parent, directory) = checkpoint();
        let files = CheckpointFiles::open(&directory).unwrap();
        for bit in 0..8 * 7 {
            let mut bytes = b"weights".to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(directory.join("model.safetensors"), bytes).unwrap();
            let refused = refusal(files.bytes("model.safetensors", 10));
            assert!(refused.contains("model.safetensors") && refused.contains("delete SHA256SUMS"), "{refused}");
        }
        assert_eq!(files.text(CONFIG_FILE, 10).unwrap(), "{}");
    }

    #[test]
    fn a_listed_file_that_is_missing_is_refused_and_so_is_one_that_is_not_listed() {
        let (_parent, directory) = checkpoint();
        std::fs::write(directory.join("notes"), "mine").unwrap();
        let files = CheckpointFiles::open(&directory).unwrap();
        let refused = refusal(files.find("notes", 10));
        assert!(
            refused.contains("SHA256SUMS") && refused.contains("does not list notes") && refused.contains("delete SHA256SUMS"),
            "{refused}"
        );
        assert_eq!(files.find("none", 10).unwrap(), None);
        std::fs::remove_file(directory.join("empty")).unwrap();
        assert!(refusal(CheckpointFiles::open(&directory)).contains("lists this file, but it is missing"));
        // Without digests it is read as it is.
        std::fs::remove_file(directory.join(DIGESTS_FILE)).unwrap();
        std::fs::write(directory.join(CONFIG_FILE), "[]").unwrap();
        let files = CheckpointFiles::open(&directory).unwrap();
        assert_eq!(files.text(CONFIG_FILE, 10).unwrap(), "[]");
        assert_eq!(files.find("notes", 10).unwrap().unwrap(), b"mine");
    }

    #[test]
    fn a_file_that_was_about_to_be_added_is_read_and_listed_the_next_time() {
        let (_parent, directory) = checkpoint();
        // Killed between the file and the digests.
        std::fs::write(directory.join(SURPRISE_FILE), "rows").unwrap();
        assert_eq!(CheckpointFiles::open(&directory).unwrap().text(SURPRISE_FILE, 10).unwrap(), "rows");
        CheckpointFiles::add(&directory, SURPRISE_FILE, b"rows").unwrap();
        let text = std::fs::read_to_string(directory.join(DIGESTS_FILE)).unwrap();
        assert!(text.lines().any(|line| line.ends_with("  surprise.json")), "{text}");
    }

    #[test]
    fn digests_that_end_early_are_refused_for_every_file_behind_the_cut() {
        let (_parent, directory) = checkpoint();
        let whole = std::fs::read_to_string(directory.join(DIGESTS_FILE)).unwrap();
        // Sorted by name: the configuration, the empty file, the weights.
        for kept in 1..FILES.len() {
            let cut: String = whole.split_inclusive('\n').take(kept).collect();
            std::fs::write(directory.join(DIGESTS_FILE), &cut).unwrap();
            let files = CheckpointFiles::open(&directory).unwrap();
            for (name, content) in FILES {
                match cut.contains(&format!("  {name}\n")) {
                    true => assert_eq!(files.text(name, 10).unwrap(), content),
                    false => {
                        assert!(refusal(files.bytes(name, 10)).contains(&format!("does not list {name} beside it, as if it was cut short")))
                    }
                }
            }
        }
    }

    /// A link to itself cannot be opened, whoever asks; permissions would not stop root.
    #[cfg(unix)]
    #[test]
    fn a_file_that_cannot_be_opened_is_not_taken_for_a_missing_one() {
        let (_parent, directory) = checkpoint();
        for name in [TOKENIZER_FILE, "empty"] {
            let path = directory.join(name);
            let _ = std::fs::remove_file(&path);
            std::os::unix::fs::symlink(&path, &path).unwrap();
        }
        let refused = refusal(CheckpointFiles::open(&directory));
        assert!(refused.starts_with("could not read '") && refused.contains("empty'"), "{refused}");
        std::fs::remove_file(directory.join(DIGESTS_FILE)).unwrap();
        let files = CheckpointFiles::open(&directory).unwrap();
        for refused in [refusal(files.find(TOKENIZER_FILE, 10)), refusal(files.tokenizer())] {
            assert!(refused.starts_with("could not read '") && refused.contains("tokenizer.json'"), "{refused}");
        }
        // A link to nothing is as good as no file.
        std::os::unix::fs::symlink("nowhere", directory.join("notes")).unwrap();
        assert_eq!(files.find("notes", 10).unwrap(), None);
    }

    #[test]
    fn another_checkpoint_of_the_run_is_named() {
        let (parent, directory) = checkpoint();
        for name in ["iter-5", "iter-10-2", "iter-30.tmp", "best"] {
            std::fs::create_dir(parent.path().join(name)).unwrap();
            std::fs::write(parent.path().join(name).join(CONFIG_FILE), "{}").unwrap();
            CheckpointFiles::seal(parent.path().join(name)).unwrap();
        }
        std::fs::create_dir(parent.path().join("iter-15")).unwrap();
        std::fs::write(directory.join("model.safetensors"), "other").unwrap();
        let refused = refusal(CheckpointFiles::open(&directory).unwrap().bytes("model.safetensors", 10));
        assert!(refused.contains("such as '") && refused.contains("/iter-10-2' (to train on"), "{refused}");
    }

    #[test]
    fn digests_that_are_damaged_are_sentences() {
        let (_parent, directory) = checkpoint();
        let path = directory.join(DIGESTS_FILE);
        let whole = std::fs::read_to_string(&path).unwrap();
        for len in 0..whole.len() {
            std::fs::write(&path, &whole[..len]).unwrap();
            // If they are cut at the end of a line, or within a name, which is then another one, the configuration is still as listed.
            if let Ok(files) = CheckpointFiles::open(&directory) {
                files.text(CONFIG_FILE, 10).unwrap();
            }
        }
        let digest = "0".repeat(64);
        let lines = [
            (String::new(), "cut short"),
            (format!("{digest}  ../config.json"), "line 1"),
            (format!("{digest}  a\n{digest}  a"), "lists 'a' again"),
            (format!("{digest} config.json"), "line 1"),
            (format!("{}g  config.json", &digest[1..]), "line 1"),
            (format!("é{digest}  config.json"), "line 1"),
            ("x".repeat(1 << 17), "larger than"),
        ];
        for (text, expected) in lines {
            std::fs::write(&path, text).unwrap();
            assert!(refusal(CheckpointFiles::open(&directory)).contains(expected));
        }
    }
}
