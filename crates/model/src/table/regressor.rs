//! A number for every sequence.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use super::{Category, Layout, Missing, Normalization, RowsPerStep, Scale, Transform};

/// A regression task: predicts a number for a sequence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Regressor {
    /// Columns that are read.
    pub columns: Vec<String>,
    /// The column that names the sequence of a row.
    pub group: String,
    /// The column with the number.
    pub target: String,
    /// The column with the time of a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Means and standard deviations of `columns`.
    pub normalization: Normalization,
    /// Mean and standard deviation of `target`.
    pub target_normalization: Normalization,
    /// The median of `target` in training, if it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_median: Option<f64>,
    /// How missing numbers are treated.
    #[serde(default, skip_serializing_if = "Missing::is_error")]
    pub missing: Missing,
    /// The layout of the series in a table that does not have these columns.
    #[serde(default, skip_serializing_if = "Layout::is_long")]
    pub layout: Layout,
    /// Those of `columns` that hold names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<Category>,
    /// How several rows are read as one step, if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows_per_step: Option<RowsPerStep>,
}

impl Regressor {
    /// The scale of the target's numbers.
    ///
    /// # Panics
    /// When `target_normalization` has no column, as in a regressor made by hand that [is refused](super::TableTask::expect_usable).
    pub fn target_scale(&self) -> Scale {
        let Normalization { mean, deviation } = &self.target_normalization;
        Scale { transform: Transform::Identity, center: mean[0], unit: deviation[0] }
    }

    pub(super) fn restore(&self, outputs: &[f32], numbers: &mut [f64]) {
        let scale = self.target_scale();
        numbers.iter_mut().zip(outputs).for_each(|(number, &x)| *number = scale.restore(x));
    }

    pub(super) fn fits(&self, n_outputs: usize) -> bool {
        n_outputs == 1
            && self.target_normalization.is_usable()
            && self.target_normalization.width() == 1
            && self.target_median.is_none_or(f64::is_finite)
            && !self.columns.contains(&self.target)
    }
}
