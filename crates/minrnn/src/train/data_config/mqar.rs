//! Multi-query associative recall.

use super::{DataConfig, TaskSpec};
use crate::data::Mqar;

pub(super) const SPEC: TaskSpec = TaskSpec {
    validate: |data| data.mqar().validate(),
    length: |data, _| Ok(("mqar_length", data.mqar_length)),
    scored: |data, _| data.mqar_pairs,
    open: Some(|data, _, _| Ok(Box::new(data.mqar()))),
    ..TaskSpec::MADE
};

impl DataConfig {
    /// The associative recall that is asked for.
    pub fn mqar(&self) -> Mqar {
        Mqar {
            vocab_size: self.mqar_vocab_size,
            length: self.mqar_length,
            n_pairs: self.mqar_pairs,
            power: self.mqar_power,
            random_non_queries: self.mqar_random_non_queries,
            n_examples: self.train_examples,
        }
    }
}
