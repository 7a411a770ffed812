//! The model that a saved state belongs to.

use std::path::Path;

use burn::module::Module;
use minrnn_model::{ModelConfig, hex};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{Error, Result, parameters};

/// A fingerprint of a model: SHA-256 over its configuration and the name, shape and values of every parameter.
///
/// Two checkpoints of a run have different identities, since a state of one is meaningless to the other. Computing it reads every weight
/// once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ModelIdentity(String);

impl ModelIdentity {
    /// The fingerprint of `model`, described by `config`.
    pub fn of<M: Module>(config: &ModelConfig, model: &M) -> Self {
        let mut hash = Sha256::new();
        // Debug output names every setting and cannot fail.
        hash.update(format!("{config:?}"));
        parameters::visit(model, |place, values| {
            hash.update(format!("\n{} {:?}\n", place.name, values.shape));
            let bytes: Vec<u8> = values.read().iter().flat_map(|value| value.to_le_bytes()).collect();
            hash.update(bytes);
        });
        Self::from_hash(hash)
    }

    /// The fingerprint of the model with these file bytes.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(hex(Sha256::digest(bytes).as_slice()))
    }

    /// The fingerprint of the model in the given files.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn of_files<P: AsRef<Path>>(paths: &[P]) -> Result<Self> {
        let mut hash = Sha256::new();
        for path in paths {
            let path = path.as_ref();
            hash.update(std::fs::read(path).map_err(|error| Error::io("read", path, error))?);
        }
        Ok(Self::from_hash(hash))
    }

    /// Its hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn from_hash(hash: Sha256) -> Self {
        Self(hex(hash.finalize().as_slice()))
    }
}
