//! What a model trained on a table needs in order to be used: `task.json` in its checkpoint.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::columns::twice;
use super::series::Series;
use super::{Normalization, Wanted, read_table};
use crate::{Error, Result};

/// Most output numbers that are believed.
const MAX_OUTPUTS: usize = 1 << 24;

/// A model's task on tables.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "task", rename_all = "kebab-case")]
pub enum TableTask {
    /// A class for every sequence.
    Classify(Classifier),
    /// The next values of every sequence.
    Forecast(Forecaster),
}

/// How to classify.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Classifier {
    /// Columns that are read.
    pub columns: Vec<String>,
    /// The column that names the sequence of a row.
    pub group: String,
    /// The column with the class.
    pub target: String,
    /// Names of the classes, in the order of the model's outputs.
    pub classes: Vec<String>,
    /// Means and deviations of `columns`.
    pub normalization: Normalization,
}

/// How to forecast.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forecaster {
    /// Columns that are read.
    pub columns: Vec<String>,
    /// The column that names the sequence of a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Columns that are forecast.
    pub target: Vec<String>,
    /// Steps ahead, H.
    pub horizon: usize,
    /// Steps of a season of the naive forecast; 0: the last value.
    pub season: usize,
    /// Means and deviations of `columns`.
    pub normalization: Normalization,
    /// Means and deviations of `target`.
    pub target_normalization: Normalization,
}

/// What is predicted for a sequence.
#[derive(Debug, Clone, PartialEq)]
pub enum Prediction {
    /// The probability of each class.
    Classes(Vec<f64>),
    /// The values of the next steps, row-major `[H, columns]`.
    Values(Vec<f64>),
}

impl TableTask {
    /// Reads the description in `value`, for a model that reads `n_inputs` numbers and predicts `n_outputs`.
    ///
    /// # Errors
    /// When it is no description of a table's task, or one of another model.
    pub fn from_json(value: serde_json::Value, n_inputs: usize, n_outputs: usize) -> Result<Self> {
        let refused = |problem: String| Error::Data(format!("its description of the task cannot be used: {problem}"));
        let task: Self = serde_json::from_value(value).map_err(|error| refused(error.to_string()))?;
        let (columns, normalization) = match &task {
            Self::Classify(classifier) => (&classifier.columns, &classifier.normalization),
            Self::Forecast(forecaster) => (&forecaster.columns, &forecaster.normalization),
        };
        if let Some(twice) = twice(columns) {
            return Err(refused(format!("it reads the column '{twice}' twice")));
        }
        if columns.len() != n_inputs || !normalization.is_usable() || normalization.width() != n_inputs {
            return Err(refused(format!("expected the columns, means and deviations of {n_inputs} inputs")));
        }
        let fits = match &task {
            Self::Classify(classifier) => classifier.classes.len() == n_outputs,
            Self::Forecast(Forecaster { horizon, target, target_normalization, .. }) => {
                let outputs = horizon.checked_mul(target.len()).filter(|&outputs| outputs > 0 && outputs <= MAX_OUTPUTS);
                outputs == Some(n_outputs) && target_normalization.is_usable() && target_normalization.width() == target.len()
            }
        };
        if fits { Ok(task) } else { Err(refused(format!("expected what {n_outputs} outputs stand for"))) }
    }

    /// The sequences of the file `path`, as the model reads them; classes and values to come need not be there.
    ///
    /// # Errors
    /// When the file cannot be read, lacks a column, or has a number far from all that was trained on.
    pub fn read(&self, path: &Path) -> Result<Vec<Series>> {
        let (columns, group) = match self {
            Self::Classify(Classifier { columns, group, .. }) => (columns, Some(group)),
            Self::Forecast(Forecaster { columns, group, .. }) => (columns, group.as_ref()),
        };
        let frame = read_table(path, &Wanted::named(columns, group.into_iter().cloned().collect()))?;
        let near = self.normalization().expect_near(&frame);
        near.and_then(|()| Series::of(&frame, group.map(|_| &frame.texts[0]))).map_err(|error| error.in_file(path))
    }

    /// Means and deviations of the columns that are read.
    pub fn normalization(&self) -> &Normalization {
        match self {
            Self::Classify(classifier) => &classifier.normalization,
            Self::Forecast(forecaster) => &forecaster.normalization,
        }
    }

    /// The meaning of the model's outputs at the last step of a sequence.
    pub fn prediction(&self, outputs: &[f32]) -> Prediction {
        match self {
            Self::Classify(_) => Prediction::Classes(softmax(outputs)),
            Self::Forecast(Forecaster { target_normalization, .. }) => {
                let restore = |(at, &x): (usize, &f32)| target_normalization.restore(at % target_normalization.width(), x);
                Prediction::Values(outputs.iter().enumerate().map(restore).collect())
            }
        }
    }
}

fn softmax(logits: &[f32]) -> Vec<f64> {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weights: Vec<f64> = logits.iter().map(|&logit| f64::from(logit - largest).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}
