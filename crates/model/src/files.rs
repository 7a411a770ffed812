//! Reading small files whole, and replacing files so that a reader sees the old content or the new, never a mix.

use std::fs::{File, Metadata};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::{Error, Result};

/// Links that are followed from one name to the next before they are taken for a cycle.
const MOST_LINKS: usize = 40;
/// The prefix of the names of files and directories that are renamed once they are complete.
pub const WRITING: &str = ".writing-";

/// `path` and the targets of its symbolic links, in turn; the last is the file, whether or not it exists.
pub fn names_of(path: &Path) -> impl Iterator<Item = PathBuf> {
    std::iter::successors(Some(path.to_owned()), |name| Some(directory_of(name).join(name.read_link().ok()?))).take(MOST_LINKS)
}

fn followed(path: &Path) -> PathBuf {
    names_of(path).last().unwrap_or_default()
}

/// Replaces the file at `path`, or the target of a link there, by `bytes`: writes a temporary file in the same directory, syncs it, and
/// renames it.
///
/// # Errors
/// When the directory cannot be written or the disk is full; the old file is then untouched and nothing is left behind.
pub fn write_atomic(path: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
    let path = path.as_ref();
    let write = || -> std::io::Result<()> {
        let mut file = temporary_beside(path)?;
        file.as_file_mut().write_all(bytes)?;
        put_in_place(file, path)
    };
    write().map_err(|source| Error::io("write", path, source))
}

/// A temporary file in the directory of what `path` [leads to](names_of), with the permissions of a new file there; it is deleted when
/// dropped.
///
/// # Errors
/// When the directory cannot be written.
pub fn temporary_beside(path: &Path) -> std::io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(WRITING);
    // As a plain `create` would: the process's umask decides.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(directory_of(&followed(path))).map_err(without_temporary_name)
}

/// Makes a file of [`temporary_beside`] durable and moves it to where `path` [leads to](names_of).
///
/// # Errors
/// When the disk is full or there is a directory at that path; nothing is left behind.
pub fn put_in_place(file: NamedTempFile, path: &Path) -> std::io::Result<()> {
    file.as_file().sync_all()?;
    let path = followed(path);
    file.persist(&path).map_err(|refused| refused.error)?;
    sync_directory(directory_of(&path))
}

/// The system's error alone: if a temporary file cannot be created, the message ends with its name, which means nothing to the user.
pub fn without_temporary_name(error: std::io::Error) -> std::io::Error {
    match error.to_string().rsplit_once(" at path \"") {
        Some((answer, _)) if error.raw_os_error().is_none() => std::io::Error::new(error.kind(), answer),
        _ => error,
    }
}

/// Makes the names in `directory` (files created, renamed or removed) survive a power failure.
///
/// # Errors
/// When the directory cannot be opened or synced.
pub fn sync_directory(directory: impl AsRef<Path>) -> std::io::Result<()> {
    // Other systems do not open directories as files and order the names themselves.
    if cfg!(unix) { File::open(directory)?.sync_all() } else { Ok(()) }
}

/// Creates the directory `path` and its missing parents, so that they survive a power failure.
///
/// # Errors
/// When one cannot be created or synced, or its path is a file or a broken link.
pub fn create_directories(path: impl AsRef<Path>) -> std::io::Result<()> {
    let path = path.as_ref();
    if path.is_dir() {
        return Ok(());
    }
    let parent = directory_of(path);
    if !parent.exists() {
        create_directories(parent)?;
    }
    match std::fs::create_dir(path) {
        // Another process was faster.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && path.is_dir() => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && !path.exists() => {
            let sentence = format!("'{}' is a link to nothing; make the directory that it leads to, or take the link away", path.display());
            return Err(std::io::Error::new(std::io::ErrorKind::NotFound, sentence));
        }
        made => made?,
    }
    sync_directory(parent)
}

/// What something is, if it is not the file that was expected; `None` for a file.
pub fn other_than_file(found: &Metadata) -> Option<&'static str> {
    match found {
        found if found.is_file() => None,
        found if found.is_dir() => Some("a directory"),
        _ => Some("a pipe or a device"),
    }
}

/// The text of a small file, such as a configuration, of at most `limit` bytes.
///
/// # Errors
/// When the file cannot be read, is larger than `limit`, or is not UTF-8.
pub fn read_text(path: impl AsRef<Path>, limit: u64) -> Result<String> {
    let path = path.as_ref();
    utf8(path, read_limited(path, limit)?)
}

/// The content of a file of at most `limit` bytes.
///
/// # Errors
/// When the file cannot be read, or is larger than `limit`.
pub fn read_limited(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(path)?.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(|source| Error::io("read", path, source))?;
    if bytes.len() as u64 > limit {
        return Err(Error::malformed(path, format!("the file is larger than {limit} bytes, too large for a file of this kind")));
    }
    Ok(bytes)
}

/// The bytes of the file at `path` as text.
pub(crate) fn utf8(path: &Path, bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|broken| {
        Error::malformed(path, format!("expected UTF-8 text, found another byte at offset {}", broken.utf8_error().valid_up_to()))
    })
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn what_a_link_leads_to_is_written_and_the_link_stays() {
        let folder = tempfile::tempdir().unwrap();
        let [real, link, other, circle] = ["real", "link", "other", "circle"].map(|name| folder.path().join(name));
        std::os::unix::fs::symlink("real", &link).unwrap();
        std::os::unix::fs::symlink(&link, &other).unwrap();
        std::os::unix::fs::symlink(&circle, &circle).unwrap();
        for (name, text) in [(&link, "new"), (&other, "newer")] {
            write_atomic(name, text.as_bytes()).unwrap();
            assert_eq!(std::fs::read_to_string(&real).unwrap(), text);
        }
        assert!(link.is_symlink() && other.is_symlink() && !real.is_symlink());
        assert!(names_of(&circle).count() <= MOST_LINKS);
    }

    #[test]
    fn an_atomic_write_replaces_the_file_and_leaves_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        write_atomic(&path, b"first").unwrap();
        write_atomic(&path, b"second").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"second");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_failed_write_names_the_file_and_keeps_the_old_one() {
        let directory = tempfile::tempdir().unwrap();
        let inside = directory.path().join("missing").join("file");
        let refused = write_atomic(&inside, b"x").unwrap_err().to_string();
        assert_eq!(refused, format!("could not write '{}': No such file or directory (os error 2)", inside.display()));
        // A directory in the way: the rename fails and the temporary file is deleted.
        let taken = directory.path().join("taken");
        std::fs::create_dir(&taken).unwrap();
        assert!(write_atomic(&taken, b"x").is_err());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn directories_are_made_with_their_parents_and_may_be_there() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("a/b/c");
        for _ in 0..2 {
            create_directories(&path).unwrap();
            assert!(path.is_dir());
        }
        create_directories(path.join("../d/")).unwrap();
        assert!(parent.path().join("a/b/d").is_dir());
        std::fs::write(parent.path().join("file"), "").unwrap();
        for blocked in ["file", "file/below"] {
            create_directories(parent.path().join(blocked)).unwrap_err();
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_nothing_is_no_place_for_a_directory() {
        let parent = tempfile::tempdir().unwrap();
        let link = parent.path().join("link");
        std::os::unix::fs::symlink(parent.path().join("nothing"), &link).unwrap();
        for path in [link.clone(), link.join("below")] {
            let refused = create_directories(&path).unwrap_err().to_string();
            assert!(refused.starts_with(&format!("'{}' is a link to nothing", link.display())), "{refused}");
        }
    }

    #[test]
    fn text_is_refused_when_missing_too_large_or_not_utf8() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("text");
        assert!(read_text(&path, 10).unwrap_err().to_string().starts_with("could not read"));
        std::fs::write(&path, "0123456789").unwrap();
        assert_eq!(read_text(&path, 10).unwrap(), "0123456789");
        assert!(read_text(&path, 9).unwrap_err().to_string().contains("larger than 9"));
        std::fs::write(&path, b"ab\xff").unwrap();
        assert!(read_text(&path, 10).unwrap_err().to_string().contains("offset 2"));
    }
}
