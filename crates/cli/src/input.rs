//! Paths of inputs.

use std::path::{Path, PathBuf};

use minrnn::output::is_same_file;

/// The path that `given` stands for: `-` is standard input.
pub fn path(given: &Path) -> PathBuf {
    if cfg!(unix) && given == Path::new("-") { PathBuf::from("/dev/stdin") } else { given.to_owned() }
}

/// Whether both are given and are the same file.
pub fn same_file(one: Option<&Path>, other: Option<&Path>) -> bool {
    one.zip(other).is_some_and(|(one, other)| is_same_file(one, other))
}
