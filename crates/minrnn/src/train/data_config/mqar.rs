//! Multi-query associative recall.

use super::{TaskSpec, has_key};
use crate::data::Mqar;

pub(super) const SPEC: TaskSpec = TaskSpec {
    reads: |data, key| key == "train_examples" || has_key(&data.mqar, key),
    validate: |data| data.mqar.validate(),
    length: |data, _| Ok(("mqar_length", data.mqar.length)),
    scored: |data, _| data.mqar.n_pairs,
    open: Some(|data, _, _| Ok(Box::new(Mqar { n_examples: data.train_examples, ..data.mqar.clone() }))),
    ..TaskSpec::MADE
};
