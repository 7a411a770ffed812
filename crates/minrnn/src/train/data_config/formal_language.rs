//! A formal language, scored on longer strings than are trained on.

use super::{DataConfig, TaskSpec};
use crate::Result;
use crate::data::{FormalTask, Generalization, SequenceTask};

pub(super) const SPEC: TaskSpec = TaskSpec {
    validate: |data| data.formal().map(drop),
    length: |data, _| Ok(("3 · eval_max_length", data.formal()?.longest())),
    steps: |data, _, longest| {
        let longest = longest.or_else(|| data.formal().ok().map(|task| task.longest())).unwrap_or(0);
        // Input and answer stand one after the other.
        [data.max_length.saturating_mul(2).min(longest), longest]
    },
    open: Some(|data, _, _| Ok(Box::new(data.formal()?))),
    ..TaskSpec::MADE
};

impl DataConfig {
    /// The formal language that is asked for.
    ///
    /// # Errors
    /// When the protocol has no such language or the lengths are out of range.
    pub fn formal(&self) -> Result<Generalization> {
        let Self { language, protocol, min_length, max_length, .. } = *self;
        Generalization::new(FormalTask { language, protocol, min_length, max_length }, self.eval_min_length, self.eval_max_length)
    }
}
