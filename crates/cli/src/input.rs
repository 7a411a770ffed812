//! Paths of inputs.

use std::path::{Path, PathBuf};

use minrnn::output::is_same_file;
use minrnn::train::is_same_data;

use crate::failure::WrongInput;

/// The path that `given` stands for: `-` is standard input.
pub fn path(given: &Path) -> PathBuf {
    if cfg!(unix) && given == Path::new("-") { PathBuf::from("/dev/stdin") } else { given.to_owned() }
}

/// Checks that a table or text, given as `data` and called `name`, and one of usual rows, given as `usual`, are not to be read from one source that can
/// be read only once, such as a pipe.
pub fn expect_apart(data: &Path, name: &str, usual: Option<&Path>) -> Result<(), WrongInput> {
    let (from, other) = (path(data), usual.map(path));
    // A regular file can be opened twice, even if it is standard input for one of them.
    let is_read_once = || usual.is_some_and(|usual| usual == data && usual.as_os_str() == "-") || !from.is_file();
    if !same_file(Some(&from), other.as_deref()) || !is_read_once() {
        return Ok(());
    }
    let sentence = "and --calibrate would both be read from it, but it can be read only once; save one of them to a file";
    Err(WrongInput(format!("'{}': {name} {sentence}", data.display())))
}

/// Whether both are given and are the same file.
pub fn same_file(one: Option<&Path>, other: Option<&Path>) -> bool {
    one.zip(other).is_some_and(|(one, other)| is_same_file(one, other))
}

/// How the sentence "the test file … the training file" goes on if both are given and are the same file, or have the same bytes.
pub fn sameness(one: Option<&Path>, other: Option<&Path>) -> Option<&'static str> {
    let (one, other) = one.zip(other)?;
    if is_same_file(one, other) {
        return Some("is");
    }
    // Whoever reads the files reports those that cannot be read.
    is_same_data(one, other).unwrap_or(false).then_some("is the same as")
}
