//! A file that appears under its name only once it is complete.

use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use minrnn_model::{put_in_place, temporary_beside, without_temporary_name};
use tempfile::NamedTempFile;

use crate::{Error, Result};

/// Writes to a temporary file in the target's directory; [`AtomicFile::commit`] syncs it and renames it over the target. If dropped without
/// a commit, it leaves nothing behind and the target untouched.
pub(crate) struct AtomicFile {
    file: BufWriter<NamedTempFile>,
    path: PathBuf,
    action: &'static str,
}

impl AtomicFile {
    /// Starts writing `path`; `action` is the verb phrase of its error messages ("write the token file").
    pub(crate) fn create(path: &Path, action: &'static str) -> Result<Self> {
        let file = temporary_beside(path).map_err(|e| Error::io(action, path, e))?;
        Ok(Self { file: BufWriter::with_capacity(1 << 16, file), path: path.to_owned(), action })
    }

    /// Appends `bytes`.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|e| could_not(self.action, &self.path, e))
    }

    /// Replaces the bytes at the start of the file.
    pub(crate) fn rewrite_start(&mut self, bytes: &[u8]) -> Result<()> {
        self.file
            .seek(SeekFrom::Start(0))
            .and_then(|_| self.file.write_all(bytes))
            .and_then(|()| self.file.seek(SeekFrom::End(0)))
            .map(|_| ())
            .map_err(|e| could_not(self.action, &self.path, e))
    }

    /// Makes the file durable and replaces the target with it.
    pub(crate) fn commit(self) -> Result<()> {
        let Self { file, path, action } = self;
        let finish = || put_in_place(file.into_inner().map_err(|e| e.into_error())?, &path);
        finish().map_err(|e| could_not(action, &path, e))
    }
}

fn could_not(action: &'static str, path: &Path, error: io::Error) -> Error {
    Error::io(action, path, without_temporary_name(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_uncommitted_file_leaves_the_target_and_the_directory_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, "old").unwrap();
        let mut file = AtomicFile::create(&path, "write the file").unwrap();
        file.write(b"new").unwrap();
        drop(file);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_committed_file_replaces_the_target() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, "old").unwrap();
        let mut file = AtomicFile::create(&path, "write the file").unwrap();
        file.write(b"__tail").unwrap();
        file.rewrite_start(b"he").unwrap();
        file.write(b"!").unwrap();
        file.commit().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "hetail!");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_refused_write_names_the_file_that_was_asked_for_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let unfinished = dir.path().join(".writing-x");
        std::fs::write(&unfinished, "").unwrap();
        let read_only =
            NamedTempFile::from_parts(std::fs::File::open(&unfinished).unwrap(), tempfile::TempPath::try_from_path(unfinished).unwrap());
        let mut file = AtomicFile { file: BufWriter::with_capacity(1, read_only), path: path.clone(), action: "write the file" };
        let expected = format!("could not write the file '{}': Bad file descriptor (os error 9)", path.display());
        assert_eq!(file.write(b"much").unwrap_err().to_string(), expected);
        assert_eq!(file.rewrite_start(b"much").unwrap_err().to_string(), expected);
    }

    #[test]
    fn a_missing_directory_is_named() {
        let message = AtomicFile::create(Path::new("no/such/dir/f"), "write the file").err().unwrap().to_string();
        assert_eq!(message, "could not write the file 'no/such/dir/f': No such file or directory (os error 2)");
    }
}
