//! Single sequences of a test part, to show where a model is wrong.

use super::series::Series;

/// Maximum number of examples of a kind that are kept.
pub(super) const MOST: usize = 12;
/// Maximum number of steps of a sequence that are kept for display.
pub(super) const MOST_STEPS: usize = 400;

/// A sequence and its prediction.
#[derive(Debug, Clone, PartialEq)]
pub enum Example {
    /// A misclassified sequence.
    Classified {
        /// The name of the sequence.
        name: String,
        /// Its class.
        class: String,
        /// The predicted class.
        predicted: String,
        /// The probability of the predicted class, 0 to 1.
        probability: f64,
        /// The column shown.
        column: String,
        /// Its values, every n-th step if there are many.
        values: Vec<f64>,
    },
    /// A sequence with a predicted number.
    Measured {
        /// The name of the sequence.
        name: String,
        /// The true number.
        number: f64,
        /// The predicted number.
        predicted: f64,
        /// The column shown.
        column: String,
        /// Its values, every n-th step if there are many.
        values: Vec<f64>,
    },
    /// A forecast and the actual values.
    Forecast {
        /// The name of the sequence; empty if the table is a single sequence.
        name: String,
        /// The column.
        target: String,
        /// The last values before it.
        past: Vec<f64>,
        /// The actual values, as far as they are known.
        came: Vec<f64>,
        /// The forecast.
        median: Vec<f64>,
        /// The outermost quantiles, if any.
        interval: Vec<(f64, f64)>,
        /// Mean absolute error, divided by the mean seasonal difference in the history.
        error: Option<f64>,
    },
}

/// Column `column` of `series` for display: every n-th step if there are many.
pub(super) fn values_of(series: &Series, column: usize) -> Vec<f64> {
    let every = series.len().div_ceil(MOST_STEPS).max(1);
    series.rows().step_by(every).map(|row| row[column]).collect()
}
