//! The parts of a checkpoint besides configuration and weights: the vocabulary, the task on tables, the surprises of held-out rows.

use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use crate::{Calibration, CheckpointFiles, Error, ModelConfig, Result, SURPRISE_FILE, TASK_FILE, TOKENIZER_FILE, TableTask, Tokenizer};

const MAX_SURPRISE_BYTES: u64 = 1 << 20;
/// Maximum size of a `task.json` in bytes.
pub const MAX_TASK_BYTES: u64 = 1 << 26;

impl CheckpointFiles {
    /// The vocabulary and the content of its file, if the model reads text.
    ///
    /// # Errors
    /// When it cannot be read, or its digest differs.
    pub fn tokenizer(&self) -> Result<Option<(Tokenizer, Vec<u8>)>> {
        let Some(bytes) = self.find(TOKENIZER_FILE, Tokenizer::MAX_FILE_LEN)? else { return Ok(None) };
        Ok(Some((Tokenizer::from_bytes(&bytes, self.path(TOKENIZER_FILE))?, bytes)))
    }

    /// The task on tables of a model with configuration `config`, and the content of its file; `None` for other tasks.
    ///
    /// # Errors
    /// When its description cannot be read or belongs to another model.
    pub fn table_task(&self, config: &ModelConfig) -> Result<Option<(TableTask, Vec<u8>)>> {
        let Some(text) = self.find(TASK_FILE, MAX_TASK_BYTES)? else { return Ok(None) };
        let refused = |problem: String| Error::malformed(self.path(TASK_FILE), problem);
        let value: serde_json::Value = serde_json::from_slice(&text).map_err(|error| refused(format!("it is not JSON: {error}")))?;
        if !TableTask::is_described_by(&value) {
            return Ok(None);
        }
        let task = TableTask::from_json(value, config.input_width, config.outputs()).map_err(|error| refused(error.to_string()))?;
        Ok(Some((task, text)))
    }

    /// The surprises of held-out rows, and the content of their file, if known.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn surprise(&self) -> Result<Option<(Calibration, Vec<u8>)>> {
        let Some(text) = self.find(SURPRISE_FILE, MAX_SURPRISE_BYTES)? else { return Ok(None) };
        let found = Calibration::from_bytes(&text).map_err(|error| Error::malformed(self.path(SURPRISE_FILE), error.to_string()))?;
        Ok(Some((found, text)))
    }
}
