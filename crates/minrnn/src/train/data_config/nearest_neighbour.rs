//! The value of the vector nearest to the first one so far.

use super::{DataConfig, TaskSpec};
use crate::data::NearestNeighbour;

pub(super) const SPEC: TaskSpec = TaskSpec {
    validate: |data| data.nearest_neighbour().validate(),
    length: |data, _| Ok(("neighbour_length", data.neighbour_length)),
    open: Some(|data, _, _| Ok(Box::new(data.nearest_neighbour()))),
    ..TaskSpec::MADE
};

impl DataConfig {
    /// The nearest-neighbour search that is asked for.
    pub fn nearest_neighbour(&self) -> NearestNeighbour {
        NearestNeighbour { max_length: self.neighbour_length, n_examples: self.train_examples }
    }
}
