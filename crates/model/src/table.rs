//! What a model that was trained on a table needs in order to be used on another: `task.json` of its checkpoint, the section `table` of its
//! packed file.

use alloc::{format, string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Most output numbers that are believed.
const MAX_OUTPUTS: usize = 1 << 24;

/// Numbers lie within so many deviations of their mean. Among those that mean and deviation are taken from none lies beyond √n, which is
/// 16 384 in the longest table that is read; a model has seen nothing like the others, and squares of what it makes of them could leave the
/// 32-bit floats.
pub const MAX_DEVIATIONS: f64 = 1e6;

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

impl TableTask {
    /// Reads the description in `json`, for a model that reads `n_inputs` numbers and predicts `n_outputs`.
    ///
    /// # Errors
    /// When it is no description of a table's task, or one of another model.
    pub fn from_json(json: serde_json::Value, n_inputs: usize, n_outputs: usize) -> Result<Self> {
        Self::fitting(serde_json::from_value(json).map_err(|error| Error::Task(format!("{error}")))?, n_inputs, n_outputs)
    }

    /// Reads the description in the text `json`, for a model that reads `n_inputs` numbers and predicts `n_outputs`.
    ///
    /// # Errors
    /// As [`from_json`](Self::from_json).
    pub fn from_bytes(json: &[u8], n_inputs: usize, n_outputs: usize) -> Result<Self> {
        Self::fitting(serde_json::from_slice(json).map_err(|error| Error::Task(format!("{error}")))?, n_inputs, n_outputs)
    }

    fn fitting(task: Self, n_inputs: usize, n_outputs: usize) -> Result<Self> {
        let refused = |problem: String| Err(Error::Task(problem));
        let (columns, normalization) = (task.columns(), task.normalization());
        if let Some(twice) = twice(columns) {
            return refused(format!("it reads the column '{twice}' twice"));
        }
        if columns.len() != n_inputs || !normalization.is_usable() || normalization.width() != n_inputs {
            return refused(format!("expected the columns, means and deviations of {n_inputs} inputs"));
        }
        let fits = match &task {
            Self::Classify(classifier) => classifier.classes.len() == n_outputs,
            Self::Forecast(Forecaster { horizon, target, target_normalization, .. }) => {
                let outputs = horizon.checked_mul(target.len()).filter(|&outputs| outputs > 0 && outputs <= MAX_OUTPUTS);
                outputs == Some(n_outputs) && target_normalization.is_usable() && target_normalization.width() == target.len()
            }
        };
        if fits { Ok(task) } else { refused(format!("expected what {n_outputs} outputs stand for")) }
    }

    /// The columns that are read, in the order of the model's inputs.
    pub fn columns(&self) -> &[String] {
        match self {
            Self::Classify(classifier) => &classifier.columns,
            Self::Forecast(forecaster) => &forecaster.columns,
        }
    }

    /// The column that names the sequence of a row, where there is one.
    pub fn group(&self) -> Option<&str> {
        match self {
            Self::Classify(classifier) => Some(&classifier.group),
            Self::Forecast(forecaster) => forecaster.group.as_deref(),
        }
    }

    /// Names of the classes, in the order of the model's outputs; none where values are forecast.
    pub fn classes(&self) -> &[String] {
        match self {
            Self::Classify(classifier) => &classifier.classes,
            Self::Forecast(_) => &[],
        }
    }

    /// Means and deviations of the columns that are read.
    pub fn normalization(&self) -> &Normalization {
        match self {
            Self::Classify(classifier) => &classifier.normalization,
            Self::Forecast(forecaster) => &forecaster.normalization,
        }
    }

    /// The meaning of the model's outputs after a step: the probability of each class, or the values of the next steps in the table's units.
    pub fn prediction(&self, outputs: &[f32]) -> Prediction {
        let mut numbers = Vec::new();
        self.predict_into(outputs, &mut numbers);
        match self {
            Self::Classify(_) => Prediction::Classes(numbers),
            Self::Forecast(_) => Prediction::Values(numbers),
        }
    }

    /// Replaces `numbers` by those of [`prediction`](Self::prediction); nothing is allocated where it has room for them.
    pub fn predict_into(&self, outputs: &[f32], numbers: &mut Vec<f64>) {
        numbers.clear();
        match self {
            Self::Classify(_) => softmax(outputs, numbers),
            Self::Forecast(Forecaster { target_normalization, .. }) => {
                let restore = |(at, &x): (usize, &f32)| target_normalization.restore(at % target_normalization.width(), x);
                numbers.extend(outputs.iter().enumerate().map(restore));
            }
        }
    }
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

/// The first name that is among `names` for the second time.
fn twice(names: &[String]) -> Option<&String> {
    let mut sorted: Vec<&String> = names.iter().collect();
    sorted.sort_unstable();
    sorted.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[1])
}

fn softmax(logits: &[f32], shares: &mut Vec<f64>) {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    shares.extend(logits.iter().map(|&logit| libm::exp(f64::from(logit - largest))));
    let sum: f64 = shares.iter().sum();
    shares.iter_mut().for_each(|share| *share /= sum);
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;

    fn classifier() -> TableTask {
        TableTask::Classify(Classifier {
            columns: vec!["x".into(), "y".into()],
            group: "machine".into(),
            target: "state".into(),
            classes: vec!["good".into(), "worn".into(), "broken".into()],
            normalization: Normalization { mean: vec![1.0, -2.0], deviation: vec![0.5, 4.0] },
        })
    }

    fn forecaster() -> TableTask {
        let target_normalization = Normalization { mean: vec![10.0, 20.0], deviation: vec![2.0, 3.0] };
        let normalization = Normalization { mean: vec![0.0], deviation: vec![1.0] };
        let (columns, target) = (vec!["a".into()], vec!["a".into(), "b".into()]);
        TableTask::Forecast(Forecaster { columns, group: None, target, horizon: 2, season: 0, normalization, target_normalization })
    }

    #[test]
    fn a_description_is_read_back_for_its_own_model_and_refused_for_others() {
        for (task, [inputs, outputs]) in [(classifier(), [2, 3]), (forecaster(), [1, 4])] {
            let json = serde_json::to_vec(&task).unwrap();
            assert_eq!(TableTask::from_bytes(&json, inputs, outputs).unwrap(), task);
            for [inputs, outputs] in [[inputs + 1, outputs], [inputs, outputs + 1], [0, 0], [usize::MAX; 2]] {
                let refused = TableTask::from_bytes(&json, inputs, outputs).unwrap_err().to_string();
                assert!(refused.contains("cannot be used: expected"), "{refused}");
            }
        }
        let change = |from: &str, to: &str| {
            let json = serde_json::to_string(&classifier()).unwrap();
            assert!(json.contains(from));
            TableTask::from_bytes(json.replace(from, to).as_bytes(), 2, 3).unwrap_err().to_string()
        };
        assert!(change(r#""y""#, r#""x""#).contains("the column 'x' twice"));
        assert!(change("0.5", "0.0").contains("deviations of 2 inputs"));
        assert!(change("[0.5,", "[").contains("deviations of 2 inputs"));
        assert!(change("classify", "guess").contains("guess"));
        assert!(TableTask::from_bytes(b"{", 2, 3).unwrap_err().to_string().contains("cannot be used"));
    }

    #[test]
    fn outputs_become_shares_or_numbers_in_the_units_of_the_table() {
        let Prediction::Classes(shares) = classifier().prediction(&[0.0, core::f32::consts::LN_2, f32::NEG_INFINITY]) else { panic!() };
        assert!((shares[0] - 1.0 / 3.0).abs() < 1e-7 && (shares[1] - 2.0 / 3.0).abs() < 1e-7 && shares[2] == 0.0, "{shares:?}");
        assert_eq!(forecaster().prediction(&[0.0, 1.0, -1.0, 2.0]), Prediction::Values(vec![10.0, 23.0, 8.0, 26.0]));
        let mut numbers = vec![7.0; 9];
        forecaster().predict_into(&[0.0; 4], &mut numbers);
        assert_eq!(numbers, [10.0, 20.0, 10.0, 20.0]);
    }

    #[test]
    fn numbers_far_from_their_mean_are_told_apart() {
        let task = classifier();
        let near = |x| task.normalization().is_near(0, x);
        assert!(near(1.0) && near(5e5) && !near(6e5) && !near(f64::NAN) && !near(f64::INFINITY));
        assert_eq!(task.normalization().apply(1, 2.0), 1.0);
        assert_eq!(task.normalization().restore(1, 1.0), 2.0);
        assert_eq!((task.columns().len(), task.group(), forecaster().group()), (2, Some("machine"), None));
    }
}
