//! Names of what is read.

use std::path::{Path, PathBuf};

/// The path that `given` stands for: `-` is standard input.
pub fn path(given: &Path) -> PathBuf {
    if cfg!(unix) && given == Path::new("-") { PathBuf::from("/dev/stdin") } else { given.to_owned() }
}
