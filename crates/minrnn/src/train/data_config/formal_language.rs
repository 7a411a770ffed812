//! A formal language, scored on longer strings than those trained on.

use serde::{Deserialize, Serialize};

use super::{DataConfig, TaskSpec, has_key};
use crate::Result;
use crate::data::{FormalTask, Generalization, SequenceTask};

pub(super) const SPEC: TaskSpec = TaskSpec {
    reads: |data, key| has_key(&data.formal_language, key),
    validate: |data| data.formal().map(drop),
    length: |data, _| Ok(("3 · eval_max_length", data.formal()?.longest())),
    steps: |data, _, longest| {
        let longest = longest.or_else(|| data.formal().ok().map(|task| task.longest())).unwrap_or(0);
        // The input is followed by the answer.
        [data.formal_language.training.max_length.saturating_mul(2).min(longest), longest]
    },
    open: Some(|data, _, _| Ok(Box::new(data.formal()?))),
    ..TaskSpec::MADE
};

/// A language with its training and evaluation lengths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FormalLanguageConfig {
    /// The training task.
    #[serde(flatten)]
    pub training: FormalTask,
    /// Shortest length scored. Default 40.
    pub eval_min_length: usize,
    /// Longest length scored. Default 256.
    pub eval_max_length: usize,
}

impl Default for FormalLanguageConfig {
    fn default() -> Self {
        Self { training: FormalTask::default(), eval_min_length: 40, eval_max_length: 256 }
    }
}

impl DataConfig {
    /// The formal language described.
    ///
    /// # Errors
    /// When the protocol has no such language, or the lengths are out of range.
    pub fn formal(&self) -> Result<Generalization> {
        let FormalLanguageConfig { training, eval_min_length, eval_max_length } = &self.formal_language;
        Generalization::new(training.clone(), *eval_min_length, *eval_max_length)
    }
}
