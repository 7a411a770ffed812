//! Multi-query associative recall.

use super::TaskSpec;
use crate::data::Mqar;

pub(super) const SPEC: TaskSpec = TaskSpec {
    validate: |data| data.mqar.validate(),
    length: |data, _| Ok(("mqar_length", data.mqar.length)),
    scored: |data, _| data.mqar.n_pairs,
    open: Some(|data, _, _| Ok(Box::new(Mqar { n_examples: data.train_examples, ..data.mqar.clone() }))),
    ..TaskSpec::MADE
};
