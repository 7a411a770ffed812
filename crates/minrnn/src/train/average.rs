//! The mean of the weights over a round's last updates (Polyak and Juditsky 1992; Izmailov et al. 2018, arXiv:1803.05407).

use std::collections::BTreeMap;

use burn::module::Module;

use crate::checkpoint::named_values;
use crate::parameters;

/// Prefix of the names of the weights that training continues with, in a checkpoint whose model is their mean.
pub(super) const LAST_WEIGHTS_PREFIX: &str = "weights.";

/// The mean so far, with the names and layouts used in files.
#[derive(Debug, Default)]
pub(super) struct Average {
    values: BTreeMap<String, Vec<f32>>,
}

impl Average {
    /// Number of updates in a round of `updates` before averaging begins: the last quarter is averaged.
    pub fn begins_after(updates: u64) -> u64 {
        updates - updates / 4
    }

    /// Adds the weights of `model` after the `n`-th averaged update, from 1: m ← m + (w − m) / n.
    pub fn add<M: Module>(&mut self, model: &M, n: u64) {
        let share = 1.0 / n as f32;
        for (name, _, found) in named_values(model) {
            match self.values.get_mut(&name) {
                Some(mean) if n > 1 => mean.iter_mut().zip(found).for_each(|(mean, found)| *mean += (found - *mean) * share),
                _ => drop(self.values.insert(name, found)),
            }
        }
    }

    /// The average stored as the weights of `model`.
    pub fn of_model<M: Module>(model: &M) -> Self {
        Self { values: named_values(model).into_iter().map(|(name, _, values)| (name, values)).collect() }
    }

    /// `model` with its weights replaced by the average.
    pub fn of<M: Module>(&self, model: M) -> M {
        parameters::replace(model, |place, _| self.values.get(&place.name).cloned())
    }
}
