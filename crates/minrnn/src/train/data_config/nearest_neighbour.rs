//! The value of the nearest neighbour of the first vector so far.

use super::{Loss, TaskSpec, has_key};
use crate::data::NearestNeighbour;

pub(super) const SPEC: TaskSpec = TaskSpec {
    reads: |data, key| key == "train_examples" || has_key(&data.nearest_neighbour, key),
    validate: |data| data.nearest_neighbour.validate(),
    length: |data, _| Ok(("neighbour_length", data.nearest_neighbour.max_length)),
    open: Some(|data, _, _| Ok(Box::new(NearestNeighbour { n_examples: data.train_examples, ..data.nearest_neighbour.clone() }))),
    loss: |_| Loss::SquaredError,
    by_accuracy: false,
    ..TaskSpec::MADE
};
