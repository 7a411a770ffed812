//! Names of what is read.

use std::path::{Path, PathBuf};

/// The path that `given` stands for: `-` is standard input.
pub fn path(given: &Path) -> PathBuf {
    if cfg!(unix) && given == Path::new("-") { PathBuf::from("/dev/stdin") } else { given.to_owned() }
}

/// Whether both are there and the same file.
pub fn same_file(one: Option<&Path>, other: Option<&Path>) -> bool {
    let real = |path: Option<&Path>| path.and_then(|path| path.canonicalize().ok());
    real(one).is_some_and(|one| real(other) == Some(one))
}
