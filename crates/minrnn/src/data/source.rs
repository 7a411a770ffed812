//! The sources of texts and tables: a file, or something of unknown length that can be read only once, such as a pipe.

use std::fs::{File, metadata};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use crate::{Error, Result};

/// Maximum number of bytes read from a pipe, terminal or device, which may never end.
pub const MAX_PIPE_BYTES: u64 = 1 << 30;

/// Bytes that are read once, from the first to the last.
#[derive(Debug)]
pub(crate) struct Source {
    file: File,
    /// Number of bytes that may still be read; `None` for a file, which has an end of its own.
    left: Option<u64>,
}

impl Source {
    /// Opens `path`; on a pipe this blocks until someone writes to it.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let left = (!file.metadata()?.is_file()).then_some(MAX_PIPE_BYTES);
        Ok(Self { file, left })
    }

    /// The file, if it can be read repeatedly and at any position; otherwise the source unchanged.
    pub(crate) fn into_file(self) -> Result<File, Self> {
        if self.left.is_none() { Ok(self.file) } else { Err(self) }
    }
}

impl Read for Source {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(out)?;
        if let Some(left) = &mut self.left {
            let too_long = || {
                let sentence = format!(
                    "it has more than {} MiB, the most that is read from a pipe; save it to a file and give that",
                    MAX_PIPE_BYTES >> 20
                );
                io::Error::new(ErrorKind::InvalidInput, sentence)
            };
            *left = left.checked_sub(n as u64).ok_or_else(too_long)?;
        }
        Ok(n)
    }
}

/// Refuses data that can be read only once, for callers that read them again. It opens nothing, so it never blocks.
///
/// # Errors
/// When nothing exists at `path`, or it is neither a file nor a folder.
pub fn expect_lasting(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    let found = metadata(path).map_err(|source| Error::io("read", path, source))?;
    if found.is_file() || found.is_dir() {
        return Ok(());
    }
    let problem =
        "it is a pipe or a device, which can be read only once, and a run reads its data again; save them to a file and give that";
    Err(Error::malformed(path, problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_to_its_end_and_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "content").unwrap();
        let mut text = String::new();
        Source::open(&path).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "content");
        assert!(Source::open(&path).unwrap().into_file().is_ok());
        expect_lasting(&path).unwrap();
        expect_lasting(directory.path()).unwrap();
        assert!(expect_lasting(directory.path().join("none")).unwrap_err().is_wrong_input());
    }

    #[cfg(unix)]
    #[test]
    fn what_has_no_end_is_refused_or_read_in_part() {
        let zeros = Path::new("/dev/zero");
        assert!(expect_lasting(zeros).unwrap_err().to_string().contains("can be read only once"));
        let mut source = Source { left: Some(1 << 16), ..Source::open(zeros).unwrap() };
        let refused = io::copy(&mut source, &mut io::sink()).unwrap_err();
        assert!(refused.to_string().contains("the most that is read from a pipe"), "{refused}");
        assert!(Error::io("read", zeros, refused).is_wrong_input());
        assert!(Source::open(zeros).unwrap().into_file().is_err());
    }
}
