//! Single sequences of a test part, for whoever wants to see where a model is wrong.

use super::series::Series;

/// Examples of a kind that are kept, at most.
pub(super) const MOST: usize = 12;
/// Steps of a sequence that are kept to be looked at, at most.
pub(super) const MOST_STEPS: usize = 400;

/// A sequence and what was predicted of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Example {
    /// One that was taken for another class.
    Classified {
        /// The sequence.
        name: String,
        /// Its class.
        class: String,
        /// The one that it was taken for.
        predicted: String,
        /// The probability of that, 0 to 1.
        probability: f64,
        /// The column that is shown of it.
        column: String,
        /// What stands there, every n-th step where there are many.
        values: Vec<f64>,
    },
    /// One and the number that was predicted for it.
    Measured {
        /// The sequence.
        name: String,
        /// Its number.
        number: f64,
        /// The one that was predicted.
        predicted: f64,
        /// The column that is shown of it.
        column: String,
        /// What stands there, every n-th step where there are many.
        values: Vec<f64>,
    },
    /// A forecast and what came.
    Forecast {
        /// The sequence; empty where the table is one.
        name: String,
        /// The column.
        target: String,
        /// The last values before it.
        past: Vec<f64>,
        /// What came, as far as it is known.
        came: Vec<f64>,
        /// What was forecast.
        median: Vec<f64>,
        /// The outermost quantiles, where there are some.
        interval: Vec<(f64, f64)>,
        /// Mean absolute error, divided by what is a season apart before.
        error: Option<f64>,
    },
}

/// The column at `column` of `series` to look at: every n-th step where there are many.
pub(super) fn values_of(series: &Series, column: usize) -> Vec<f64> {
    let every = series.len().div_ceil(MOST_STEPS).max(1);
    series.steps().step_by(every).map(|step| step[column]).collect()
}
