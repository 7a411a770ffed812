//! A class for every sequence.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use super::{Category, Layout, Missing, Normalization, RowsPerStep};

/// A classification task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Classifier {
    /// Columns that are read.
    pub columns: Vec<String>,
    /// The column that names the sequence of a row.
    pub group: String,
    /// The column with the class.
    pub target: String,
    /// The column with the time of a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Names of the classes, in the order of the model's outputs.
    pub classes: Vec<String>,
    /// Means and standard deviations of `columns`.
    pub normalization: Normalization,
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

/// The shares given by `logits`.
pub(super) fn softmax(logits: &[f32], shares: &mut [f64]) {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    shares.iter_mut().zip(logits).for_each(|(share, &logit)| *share = libm::exp(f64::from(logit - largest)));
    let sum: f64 = shares.iter().sum();
    shares.iter_mut().for_each(|share| *share /= sum);
}
