//! Measures in a task's own units, beside those of a baseline.

use crate::data::Batch;

/// What a model reaches, and what can be had without one.
#[derive(Debug, Clone, PartialEq)]
pub struct Measure {
    /// What is measured, with its unit where it has one.
    pub name: String,
    /// The model's.
    pub found: f64,
    /// The baseline's, on the same predictions.
    pub baseline: f64,
    /// What the baseline does.
    pub baseline_name: String,
    /// True where more is better.
    pub is_gain: bool,
}

impl Measure {
    /// Whether the model is better than the baseline.
    pub fn beats_baseline(&self) -> bool {
        if self.is_gain { self.found > self.baseline } else { self.found < self.baseline }
    }
}

/// Collects what a model predicts on an evaluation set.
pub trait Comparison {
    /// Takes the outputs `[B, T, n_outputs]` of the model on `batch`.
    fn add(&mut self, batch: &Batch, outputs: &[f32]);

    /// The measures of everything that was taken.
    fn measures(&self) -> Vec<Measure>;
}
