//! Means and deviations of the columns of a table.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// Numbers lie within so many deviations of their mean. Among those that mean and deviation are taken from none lies beyond √n, which is
/// 16 384 in the longest table that is read; a model has seen nothing like the others, and squares of what it makes of them could leave the
/// 32-bit floats.
pub const MAX_DEVIATIONS: f64 = 1e6;

/// Mean and deviation of every column over the part that is trained on: x ↦ (x − mean) / deviation.
///
/// The deviation is that of the whole part, √(Σ (x − mean)² / n); a column that never changes has deviation 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Normalization {
    /// Mean of each column.
    pub mean: Vec<f64>,
    /// Deviation of each column, above 0.
    pub deviation: Vec<f64>,
}

impl Normalization {
    /// Number of columns.
    pub fn width(&self) -> usize {
        self.mean.len()
    }

    /// Whether every mean and deviation is a number, with as many of one as of the other.
    pub fn is_usable(&self) -> bool {
        let usable = |deviation: &f64| deviation.is_finite() && *deviation > 0.0;
        self.mean.len() == self.deviation.len() && self.mean.iter().all(|mean| mean.is_finite()) && self.deviation.iter().all(usable)
    }

    /// Deviations between `x` and the mean of `column`; NaN where `x` is.
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
