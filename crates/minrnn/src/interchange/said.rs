//! A folder's `config.json`: it must match the tensors beside it and describe something that our models compute.

use std::path::{Path, PathBuf};

use minrnn_model::CheckedConfig;
use serde_json::{Value, json};

use crate::{Error, Result};

/// The configuration that another library wrote. Dots in a key, such as `slstm_block.slstm.num_heads`, lead into nested objects. An absent key
/// satisfies every expectation: the tensors give the sizes, and the rest has the library's default.
#[derive(Debug)]
pub(super) struct Said {
    path: PathBuf,
    value: Value,
}

impl Said {
    pub(super) fn new(path: PathBuf, value: Value) -> Self {
        Self { path, value }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        key.split('.').try_fold(&self.value, |part, name| part.get(name))
    }

    /// A number; any other value is refused.
    pub(super) fn number(&self, key: &str) -> Result<Option<f64>> {
        let wrong = |said: &Value| self.wrong(format!("it says {key} = {said}, expected a number"));
        self.get(key).map(|said| said.as_f64().ok_or_else(|| wrong(said))).transpose()
    }

    /// Refuses a size other than `found`, which the tensors have.
    pub(super) fn expect_size(&self, key: &str, found: usize) -> Result<()> {
        match self.get(key) {
            Some(said) if *said != json!(found) => Err(self.contradicted(key, &found.to_string())),
            _ => Ok(()),
        }
    }

    /// Refuses anything but `expected`, which is all that our models compute.
    pub(super) fn expect(&self, key: &str, expected: impl Into<Value>) -> Result<()> {
        let expected = expected.into();
        match self.get(key) {
            Some(said) if *said != expected => {
                Err(self.wrong(format!("it says {key} = {said}, expected {expected}; no minrnn model computes anything else")))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a head declared to be tied to the embedding if the tensors have a separate one.
    pub(super) fn expect_head(&self, key: &str, config: &CheckedConfig) -> Result<()> {
        match self.get(key) {
            Some(Value::Bool(true)) if !config.tie_embeddings => Err(self.contradicted(key, "a head that is not the embedding")),
            _ => Ok(()),
        }
    }

    /// A complaint about a key that contradicts `found` in the tensors.
    pub(super) fn contradicted(&self, key: &str, found: &str) -> Error {
        let said = self.get(key).map(ToString::to_string).unwrap_or_default();
        self.wrong(format!("it says {key} = {said}, but the tensors beside it have {found}; they belong to different models"))
    }

    /// A complaint about the file.
    pub(super) fn wrong(&self, problem: String) -> Error {
        Error::malformed(&self.path, problem)
    }
}
