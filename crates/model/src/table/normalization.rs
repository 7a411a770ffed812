//! Means and standard deviations of the columns of a table.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// The largest accepted distance from the mean, in standard deviations. No training number can lie beyond √n, which is 32 768 for the
/// longest table that is read. A model has seen nothing like numbers beyond the limit, and squares of its activations for them could
/// overflow 32-bit floats.
pub const MAX_DEVIATIONS: f64 = 1e6;

/// Mean and standard deviation of every column over the training part: x ↦ (x − mean) / deviation.
///
/// The deviation is the population one, √(Σ (x − mean)² / n); it is 1 for a constant column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Normalization {
    /// Mean of each column.
    pub mean: Vec<f64>,
    /// Standard deviation of each column, above 0.
    pub deviation: Vec<f64>,
}

impl Normalization {
    /// Number of columns.
    pub fn width(&self) -> usize {
        self.mean.len()
    }

    /// Whether every mean and deviation is finite, and there are as many of one as of the other.
    pub fn is_usable(&self) -> bool {
        let usable = |deviation: &f64| deviation.is_finite() && *deviation > 0.0;
        self.mean.len() == self.deviation.len() && self.mean.iter().all(|mean| mean.is_finite()) && self.deviation.iter().all(usable)
    }

    /// Distance in standard deviations between `x` and the mean of `column`; NaN if `x` is.
    pub fn distance(&self, column: usize, x: f64) -> f64 {
        (x - self.mean[column]).abs() / self.deviation[column]
    }

    /// Whether `x` lies within [`MAX_DEVIATIONS`] of the mean of `column`.
    pub fn is_near(&self, column: usize, x: f64) -> bool {
        self.distance(column, x) <= MAX_DEVIATIONS
    }

    /// `x` of `column` as the model sees it.
    pub fn apply(&self, column: usize, x: f64) -> f32 {
        ((x - self.mean[column]) / self.deviation[column]) as f32
    }

    /// The number of `column` that the model sees as `x`.
    pub fn restore(&self, column: usize, x: f32) -> f64 {
        f64::from(x) * self.deviation[column] + self.mean[column]
    }
}
