//! A checkpoint directory: `config.json` describes the model, `model.safetensors` holds its weights.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::files::read_text;
use crate::{CONFIG_FILE, CheckpointFiles, Error, ModelConfig, POLICY_TENSOR, Result, WEIGHTS_FILE, Weights, write_atomic};

/// The format version that this library reads and writes.
pub const FORMAT_VERSION: u64 = 1;

/// A model with at most this many weights is made whatever its file holds, so that what the file lacks can be named.
const SMALL_MODEL: u128 = 1 << 20;
/// A larger model may have at most this many times as many weights as its file holds.
const LEAST_SHARE: u128 = 16;

/// The content of `config.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckpointConfig {
    version: u64,
    /// The model's configuration.
    pub model: ModelConfig,
    /// All other sections, such as data and training settings; not needed to run the model.
    #[serde(flatten)]
    pub sections: Map<String, Value>,
}

impl CheckpointConfig {
    const MAX_BYTES: u64 = 1 << 20;

    /// The configuration of `model`, without further sections.
    pub fn new(model: ModelConfig) -> Self {
        Self { version: FORMAT_VERSION, model, sections: Map::new() }
    }

    /// Reads and checks `config.json` in `directory`.
    ///
    /// # Errors
    /// When the file is missing, is not such a configuration, has a newer version, describes an impossible model, or does not match the
    /// directory's digests.
    pub fn read(directory: impl AsRef<Path>) -> Result<Self> {
        CheckpointFiles::open(directory)?.config()
    }

    /// Reads and checks such a file, whatever its name.
    ///
    /// # Errors
    /// As [`read`](Self::read), except for digests.
    pub fn read_file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::parse(&read_text(path, Self::MAX_BYTES)?, path)
    }

    /// The configuration written in `text`, the content of the file `path`.
    fn parse(text: &str, path: &Path) -> Result<Self> {
        let not_ours = |error: serde_json::Error| Error::malformed(path, format!("expected a checkpoint configuration: {error}"));
        let value: Value = serde_json::from_str(text).map_err(not_ours)?;
        match value.get("version").and_then(Value::as_u64) {
            Some(FORMAT_VERSION) => {}
            Some(version) => {
                let problem = format!("format version {version}, expected {FORMAT_VERSION}; use the minrnn that wrote it");
                return Err(Error::malformed(path, problem));
            }
            None => return Err(Error::malformed(path, "it has no version number, expected a checkpoint configuration")),
        }
        let config: Self = serde_json::from_value(value).map_err(not_ours)?;
        config.model.validate().map_err(|error| Error::malformed(path, error.to_string()))?;
        Ok(config)
    }

    /// Writes `config.json` to `directory`.
    ///
    /// # Errors
    /// When the model is impossible, so that the file could not be read again, or the file cannot be written.
    pub fn write(&self, directory: impl AsRef<Path>) -> Result<()> {
        let path = directory.as_ref().join(CONFIG_FILE);
        self.model.validate().map_err(|error| Error::malformed(&path, error.to_string()))?;
        let mut text = serde_json::to_string_pretty(self).map_err(|error| Error::malformed(&path, error.to_string()))?;
        text.push('\n');
        write_atomic(path, text.as_bytes())
    }
}

impl CheckpointFiles {
    /// The configuration.
    ///
    /// # Errors
    /// As [`CheckpointConfig::read`].
    pub fn config(&self) -> Result<CheckpointConfig> {
        CheckpointConfig::parse(&self.text(CONFIG_FILE, CheckpointConfig::MAX_BYTES)?, &self.path(CONFIG_FILE))
    }
}

/// Reads the configuration and the weights of the checkpoint in `directory`.
///
/// # Errors
/// As [`CheckpointConfig::read`] and [`CheckpointFiles::weights`]; also, before any model is built, when the file is much too small for the
/// model.
pub fn read_checkpoint(directory: impl AsRef<Path>) -> Result<(CheckpointConfig, Weights)> {
    let files = CheckpointFiles::open(directory)?;
    let (mut config, weights) = (files.config()?, files.weights(WEIGHTS_FILE)?);
    // Older policies are recognised only by their tensors.
    config.model.decision |= weights.names().any(|name| name == POLICY_TENSOR);
    let (needed, found) = (config.model.cost()?.parameters, weights.value_count());
    if needed > SMALL_MODEL.max(LEAST_SHARE * found as u128) {
        let problem = format!("it holds {found} weights, but the model of {CONFIG_FILE} beside it has {needed}");
        return Err(Error::malformed(weights.path(), problem));
    }
    Ok((config, weights))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write_safetensors;

    fn written(text: &str) -> (tempfile::TempDir, Result<CheckpointConfig>) {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(CONFIG_FILE), text).unwrap();
        let read = CheckpointConfig::read(directory.path());
        (directory, read)
    }

    fn refusal(text: &str) -> String {
        written(text).1.unwrap_err().to_string()
    }

    #[test]
    fn a_configuration_round_trips_with_its_other_sections() {
        let directory = tempfile::tempdir().unwrap();
        let mut config = CheckpointConfig::new(ModelConfig { vocab_size: 65, ..Default::default() });
        config.sections.insert("train".to_owned(), serde_json::json!({"lr": 1e-3}));
        config.write(directory.path()).unwrap();
        assert_eq!(CheckpointConfig::read(directory.path()).unwrap(), config);
    }

    #[test]
    fn damaged_foreign_and_future_configurations_are_sentences() {
        assert!(refusal("{").contains("expected a checkpoint configuration"));
        assert!(refusal("[]").contains("no version number"));
        assert!(refusal(r#"{"version": 2, "model": {}}"#).contains("format version 2, expected 1"));
        assert!(refusal(r#"{"version": 1}"#).contains("missing field `model`"));
        assert!(refusal(r#"{"version": 1, "model": {"vocab_size": 65, "d_modle": 3}}"#).contains("d_modle"));
        assert!(refusal(r#"{"version": 1, "model": {"vocab_size": 65, "mixer": "mambo"}}"#).contains("unknown variant `mambo`"));
        assert!(refusal(r#"{"version": 1, "model": {"vocab_size": 18446744073709551615}}"#).contains("vocab_size must be between"));
        assert!(refusal(r#"{"version": 1, "model": {"vocab_size": 65, "d_model": 1e30}}"#).contains("config.json"));
        assert!(refusal(&"[".repeat(100_000)).contains("recursion limit"));
        assert!(refusal(&" ".repeat(2 << 20)).contains("larger than"));
    }

    #[test]
    fn a_missing_configuration_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let refused = CheckpointConfig::read(directory.path()).unwrap_err().to_string();
        assert!(refused.starts_with("could not read") && refused.contains("config.json"), "{refused}");
    }

    #[test]
    fn weights_too_few_for_the_configuration_are_refused_before_a_model_is_built() {
        let (directory, read) = written(r#"{"version": 1, "model": {"vocab_size": 65, "d_model": 6000, "n_layers": 1, "ff": "none"}}"#);
        read.unwrap();
        write_safetensors(directory.path().join(WEIGHTS_FILE), [("w".to_owned(), vec![1], vec![0.0].into())], None).unwrap();
        let refused = read_checkpoint(directory.path()).unwrap_err().to_string();
        assert!(refused.contains("it holds 1 weights, but the model"), "{refused}");
    }
}
