//! The lines of a table, read one at a time, with a limit on their length.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// Far longer than any line of the official files.
const MAX_LINE_BYTES: usize = 16 << 20;

/// The lines of a file.
#[derive(Debug)]
pub(super) struct Lines {
    reader: BufReader<File>,
    path: PathBuf,
    line: Vec<u8>,
    number: u64,
}

impl Lines {
    /// The lines of the file `path`; if it does not exist, the error message ends with `remedy`.
    pub(super) fn open(path: &Path, remedy: &str) -> Result<Self> {
        Ok(Self { reader: BufReader::with_capacity(1 << 20, open(path, remedy)?), path: path.to_owned(), line: Vec::new(), number: 0 })
    }

    /// The next line without its line ending, or `None` after the last. Empty lines are skipped.
    pub(super) fn next_line(&mut self) -> Result<Option<&[u8]>> {
        loop {
            self.line.clear();
            let limit = MAX_LINE_BYTES as u64 + 1;
            let read = self.reader.by_ref().take(limit).read_until(b'\n', &mut self.line);
            if read.map_err(|error| Error::io("read the file", &self.path, error))? == 0 {
                return Ok(None);
            }
            self.number += 1;
            if self.line.len() > MAX_LINE_BYTES {
                return Err(self.wrong(format!("expected at most {MAX_LINE_BYTES} bytes, found more; is this the right file?")));
            }
            while self.line.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
                self.line.pop();
            }
            if !self.line.is_empty() {
                return Ok(Some(&self.line));
            }
        }
    }

    /// An error about the line read last.
    pub(super) fn wrong(&self, problem: impl AsRef<str>) -> Error {
        Error::malformed(&self.path, format!("line {}: {}", self.number, problem.as_ref()))
    }
}

/// Opens a file of a data set; if it does not exist, the error message ends with `remedy`.
pub(super) fn open(path: &Path, remedy: &str) -> Result<File> {
    match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(Error::malformed(path, format!("there is no such file; {remedy}")))
        }
        opened => opened.map_err(|error| Error::io("open the file", path, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_and_empty_lines_do_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.tsv");
        std::fs::write(&path, "a\tb\r\n\n c").unwrap();
        let mut lines = Lines::open(&path, "").unwrap();
        assert_eq!(lines.next_line().unwrap().unwrap(), b"a\tb");
        assert_eq!(lines.next_line().unwrap().unwrap(), b" c");
        assert!(lines.wrong("bad").to_string().ends_with("t.tsv': line 3: bad"));
        assert!(lines.next_line().unwrap().is_none());
    }

    #[test]
    fn endless_lines_and_missing_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.tsv");
        std::fs::write(&path, vec![b'x'; MAX_LINE_BYTES + 2]).unwrap();
        let message = Lines::open(&path, "").unwrap().next_line().unwrap_err().to_string();
        assert!(message.contains("line 1: expected at most"), "{message}");
        let message = Lines::open(&dir.path().join("no.tsv"), "get it there").unwrap_err().to_string();
        assert!(message.ends_with("no.tsv': there is no such file; get it there"), "{message}");
    }
}
