//! Tensor files, recognised by their first bytes.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use minrnn_model::Weights;
use minrnn_stream::{PackedModel, SavedSessions};

use crate::data::offline_rl::Trajectories;
use crate::{Error, Result};

/// The length of the header of a safetensors file, and the first byte of that header.
const BEGINNING: usize = 9;
/// The first bytes of our other files, and what they are.
const OTHERS: [([u8; 8], &str); 3] = [
    (PackedModel::MAGIC, "a packed model"),
    (SavedSessions::MAGIC, "the saved state of a stream"),
    (Trajectories::MAGIC, "a file of trajectories"),
];

/// The tensors in the file `path`, which should be `expected`, such as "a saved session".
///
/// # Errors
/// When it cannot be read, is damaged, or is of another kind.
pub fn read_tensors(path: impl AsRef<Path>, expected: &str) -> Result<Weights> {
    let path = path.as_ref();
    Weights::read(path).map_err(|error| match error {
        minrnn_model::Error::DamagedHeader { .. } => match other_kind(path) {
            Some(kind) => Error::malformed(path, format!("it is {kind}, expected {expected}")),
            None => error.into(),
        },
        error => error.into(),
    })
}

/// Whether a file that begins with `start` may be a safetensors file: the length of a header, followed by a JSON object.
pub fn begins_as_tensors(start: &[u8]) -> bool {
    start.get(..BEGINNING).is_some_and(|beginning| beginning.ends_with(b"{"))
}

/// What the file `path` is, if it is certainly not a safetensors file, not even a damaged one.
fn other_kind(path: &Path) -> Option<&'static str> {
    let mut beginning = [0; BEGINNING];
    File::open(path).ok()?.read_exact(&mut beginning).ok()?;
    if begins_as_tensors(&beginning) {
        return None;
    }
    let other = OTHERS.into_iter().find(|(magic, _)| beginning.starts_with(magic));
    Some(other.map_or("no safetensors file", |(_, kind)| kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_kind_is_not_called_a_damaged_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let told = |content: &[u8]| {
            std::fs::write(&path, content).unwrap();
            read_tensors(&path, "a saved session").err().unwrap().to_string()
        };
        assert!(told(b"the quick brown fox").ends_with("file': it is no safetensors file, expected a saved session"));
        for (magic, kind) in OTHERS {
            assert!(told(&[&magic[..], &[0; 64]].concat()).ends_with(&format!("file': it is {kind}, expected a saved session")));
        }
        for damaged in [&b"\xff\xff\xff\xff\xff\xff\xff\xff{\"a\":1}"[..], b"\x02\0\0\0\0\0\0\0{]", b"\x02\0\0"] {
            assert!(told(damaged).contains("the header is damaged"));
        }
    }
}
