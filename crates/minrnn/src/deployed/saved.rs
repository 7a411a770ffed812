//! Named sessions in a file.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use minrnn_model::write_atomic;
use minrnn_stream::{Model, SavedSessions};

use crate::generate::ModelIdentity;
use crate::{Error, Result};

/// Writes `saved`, of `model`, to `path`, atomically.
pub(super) fn write(path: &Path, model: &Model, identity: &ModelIdentity, saved: &SavedSessions) -> Result<()> {
    write_atomic(path, &saved.to_bytes(model, identity.as_str())?).map_err(Error::from)
}

/// The whole file, or only its first bytes if saved sessions do not begin like that.
fn bytes_of(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    file.by_ref().take(SavedSessions::MAGIC.len() as u64).read_to_end(&mut bytes)?;
    if bytes == SavedSessions::MAGIC {
        file.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// The sessions saved to `path` with `model`.
///
/// # Errors
/// When the file cannot be read, is damaged, or was saved with another model.
pub(super) fn read(path: &Path, model: &Model, identity: &ModelIdentity) -> Result<SavedSessions> {
    let bytes = bytes_of(path).map_err(|error| Error::io("read", path, error))?;
    SavedSessions::from_bytes(&bytes, model, identity.as_str()).map_err(|error| Error::malformed(path, error.to_string()))
}
