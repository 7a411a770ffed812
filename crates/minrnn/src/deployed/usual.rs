//! How surprising usual rows are: what others are compared with.

use std::sync::atomic::AtomicBool;

use minrnn_model::{Calibration, Threshold};
use minrnn_stream::Model;

use super::calibrate_rows;
use crate::Result;
use crate::data::table::ForecastRows;

/// How surprising usual rows are.
#[derive(Debug, Clone, PartialEq)]
pub enum Usual {
    /// As surprising as these rows were.
    Rows(Calibration),
    /// Not known: why, and what to give, as a sentence that lacks only how to give it.
    Unknown(String),
}

impl From<Option<Calibration>> for Usual {
    /// What a model knows about the rows that its training held out.
    fn from(known: Option<Calibration>) -> Self {
        known.map_or_else(|| Self::Unknown(format!("{}; give rows with nothing unusual", Threshold::NONE)), Self::Rows)
    }
}

impl Usual {
    /// As surprising as `rows`, a table called `name`, are to `model`, and notes on the table, a sentence each; `None` if `stop` was raised
    /// before the end.
    ///
    /// # Errors
    /// As [`calibrate_rows`].
    pub fn of_rows(name: &str, rows: &ForecastRows, model: &Model, stop: &AtomicBool) -> Result<Option<(Self, Vec<String>)>> {
        let notes = rows.notes().iter().map(|note| format!("{name}: {note}")).collect();
        Ok(calibrate_rows(model, rows, stop)?.map(|calibration| (Self::Rows(calibration), notes)))
    }

    /// The surprise that a share `share` of them does not exceed, `None` if it is not known, and a sentence about it; `by` says how usual rows
    /// are given, such as `as calibrate`.
    ///
    /// # Errors
    /// As [`Calibration::threshold`].
    pub fn threshold(&self, share: f64, by: &str) -> minrnn_model::Result<(Option<f64>, String)> {
        match self {
            Self::Rows(calibration) => {
                let threshold = calibration.threshold(share)?;
                Ok((Some(threshold.surprise), threshold.describe(share)))
            }
            Self::Unknown(why) => Ok((None, format!("{why} {by}"))),
        }
    }
}

/// Whether a row is more surprising than `threshold`; `None` if one of the two is not known.
pub fn exceeds(surprise: Option<f64>, threshold: Option<f64>) -> Option<bool> {
    surprise.zip(threshold).map(|(surprise, threshold)| surprise > threshold)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_a_threshold_and_what_is_not_known_says_what_to_give() {
        let (threshold, told) = Usual::from(Some(Calibration::of([1.0, 3.0, 2.0]))).threshold(0.5, "as calibrate").unwrap();
        assert_eq!(threshold, Some(2.0));
        assert!(told.starts_with("marking what is above 2.000 nats"), "{told}");
        let (threshold, told) = Usual::from(None).threshold(0.5, "as calibrate").unwrap();
        assert_eq!(threshold, None);
        assert!(told.ends_with("none is marked by its surprise; give rows with nothing unusual as calibrate"), "{told}");
        assert!(Usual::Rows(Calibration::of([])).threshold(0.5, "").is_err());
    }

    #[test]
    fn a_row_as_surprising_as_the_threshold_does_not_exceed_it() {
        let found =
            [(Some(2.0), Some(2.0)), (Some(2.1), Some(2.0)), (None, Some(2.0)), (Some(2.1), None)].map(|(row, most)| exceeds(row, most));
        assert_eq!(found, [Some(false), Some(true), None, None]);
    }
}
