//! Named sessions in a file.

use std::path::Path;

use minrnn_model::write_atomic;
use minrnn_stream::{Model, SavedSessions};

use crate::generate::ModelIdentity;
use crate::{Error, Result};

/// Writes `saved` to `path`, whole or not at all.
pub(super) fn write(path: &Path, identity: &ModelIdentity, saved: &SavedSessions) -> Result<()> {
    write_atomic(path, &saved.to_bytes(identity.as_str())?).map_err(Error::from)
}

/// What was saved to `path` with `model`.
///
/// # Errors
/// When the file cannot be read, is damaged, or was saved with another model.
pub(super) fn read(path: &Path, model: &Model, identity: &ModelIdentity) -> Result<SavedSessions> {
    let bytes = std::fs::read(path).map_err(|error| Error::io("read", path, error))?;
    SavedSessions::from_bytes(&bytes, model, identity.as_str()).map_err(|error| Error::malformed(path, error.to_string()))
}
