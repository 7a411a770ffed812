//! How surprising held-out rows are: a checkpoint's `surprise.json`, a packed file's section `surprise`.

use alloc::vec::Vec;
use alloc::{format, string::String};

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// The largest numbers that are kept.
const KEPT: usize = 1024;

/// The largest surprises of held-out rows, from which a threshold is chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// How many rows there were.
    rows: u64,
    /// The largest surprises in nats, at most 1024, the largest first.
    largest: Vec<f64>,
}

/// The threshold for surprises.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Threshold {
    /// Rows above it are marked.
    pub surprise: f64,
    /// Number of rows it was chosen from.
    pub rows: u64,
    /// Whether there were too few rows for the requested share, so that it is the largest surprise.
    pub is_largest: bool,
}

impl Threshold {
    /// What is said of a model that does not know how surprising held-out rows were.
    pub const NONE: &'static str = "the model does not say how surprising held-out rows were, so none is marked by its surprise";

    /// What it marks, as a sentence; `share` is the one that was asked for.
    pub fn describe(&self, share: f64) -> String {
        let Self { surprise, rows, is_largest } = self;
        let of_rows = match is_largest {
            true => format!("the highest of {rows} reference rows (too few for {share:?})"),
            false => format!("which a share of {share:?} of the {rows} reference rows does not exceed"),
        };
        format!("marking what is above {surprise:.3} nats, {of_rows}")
    }
}

impl Calibration {
    /// The share of rows that is not marked, unless another is given.
    pub const SHARE: f64 = 0.999;

    /// Checks that `share` is a share of rows that has a threshold.
    ///
    /// # Errors
    /// When it is not above 0 and below 1.
    pub fn expect_share(share: f64) -> Result<()> {
        if share > 0.0 && share < 1.0 {
            return Ok(());
        }
        let such = Self::SHARE;
        Err(Error::Config(format!("expected a share of rows above 0 and below 1, such as {such}, found {share:?}")))
    }

    /// Collects the surprises of rows, ignoring those that are not finite.
    pub fn of(surprises: impl IntoIterator<Item = f64>) -> Self {
        let mut rows = 0;
        let mut largest: Vec<f64> = Vec::new();
        let falling = |a: &f64, b: &f64| b.total_cmp(a);
        for surprise in surprises.into_iter().filter(|surprise| surprise.is_finite()) {
            rows += 1;
            largest.push(surprise);
            if largest.len() == 2 * KEPT {
                largest.sort_unstable_by(falling);
                largest.truncate(KEPT);
            }
        }
        largest.sort_unstable_by(falling);
        largest.truncate(KEPT);
        Self { rows, largest }
    }

    /// Parses `json`.
    ///
    /// # Errors
    /// When it is not a calibration.
    pub fn from_bytes(json: &[u8]) -> Result<Self> {
        let found: Self = serde_json::from_slice(json).map_err(|error| Error::Task(format!("{error}")))?;
        let is_whole = found.largest.len() as u64 == found.rows.min(KEPT as u64);
        let falls = found.largest.windows(2).all(|pair| pair[0] >= pair[1]) && found.largest.iter().all(|surprise| surprise.is_finite());
        match is_whole && falls {
            true => Ok(found),
            false => Err(Error::Task(format!("expected the {KEPT} largest surprises of {} rows, the largest first", found.rows))),
        }
    }

    /// The JSON text.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }

    /// Number of rows it was made from.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The surprise that a share `share` of such rows does not exceed: the ⌈share · (n + 1)⌉-th smallest of n, or the largest if there are
    /// too few.
    ///
    /// # Errors
    /// When `share` [is none](Self::expect_share) or its threshold lies below the surprises that are kept; when there were no rows
    /// ([`Error::Row`]).
    pub fn threshold(&self, share: f64) -> Result<Threshold> {
        Self::expect_share(share)?;
        let Some(&largest) = self.largest.first() else {
            return Err(Error::Row("none of the rows to compare with has a surprise; give longer sequences, or a longer text".into()));
        };
        let rank = libm::ceil(share * (self.rows as f64 + 1.0)).max(1.0);
        let above = self.rows as f64 - rank;
        if above < 0.0 {
            return Ok(Threshold { surprise: largest, rows: self.rows, is_largest: true });
        }
        match self.largest.get(above as usize) {
            Some(&surprise) => Ok(Threshold { surprise, rows: self.rows, is_largest: false }),
            None => {
                let least = 1.0 - self.largest.len() as f64 / (self.rows as f64 + 1.0);
                Err(Error::Config(format!(
                    "of {} rows the {KEPT} largest surprises are kept: expected a share of at least {least:.4}",
                    self.rows
                )))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_leaves_the_share_below_it() {
        let calibration = Calibration::of((0..5000).map(|at| f64::from((at * 7919) % 5000)));
        for share in [0.8, 0.9, 0.99, 0.999] {
            let Threshold { surprise, is_largest, rows } = calibration.threshold(share).unwrap();
            // This many of 0 … 4999 are not above it.
            assert_eq!((surprise + 1.0, is_largest, rows), (libm::ceil(share * 5001.0), false, 5000));
        }
        assert_eq!(calibration.threshold(0.9999).unwrap(), Threshold { surprise: 4999.0, rows: 5000, is_largest: true });
        assert!(format!("{}", calibration.threshold(0.5).unwrap_err()).contains("at least 0.79"));
        assert!(Calibration::of([f64::NAN]).threshold(0.5).is_err());
    }

    #[test]
    fn what_is_no_share_of_rows_has_no_threshold() {
        let calibration = Calibration::of([1.0, 2.0, 3.0]);
        for share in [f64::NAN, -1.0, 0.0, 1.0, 2.0, f64::INFINITY] {
            let refused = format!("{}", calibration.threshold(share).unwrap_err());
            assert_eq!(refused, format!("expected a share of rows above 0 and below 1, such as 0.999, found {share:?}"));
        }
        assert_eq!(calibration.threshold(f64::MIN_POSITIVE).unwrap(), Threshold { surprise: 1.0, rows: 3, is_largest: false });
        assert_eq!(calibration.threshold(Calibration::SHARE).unwrap(), Threshold { surprise: 3.0, rows: 3, is_largest: true });
    }

    #[test]
    fn it_is_read_back_and_refused_where_it_makes_no_sense() {
        let calibration = Calibration::of([1.5, -2.0, 7.25]);
        let json = calibration.to_json();
        assert_eq!(json, "{\"rows\":3,\"largest\":[7.25,1.5,-2.0]}\n");
        assert_eq!(Calibration::from_bytes(json.as_bytes()).unwrap(), calibration);
        for (from, to) in [("3", "4"), ("7.25", "0.0"), ("7.25", "null"), ("rows", "row"), ("}", "")] {
            assert!(Calibration::from_bytes(json.replacen(from, to, 1).as_bytes()).is_err(), "{from} {to}");
        }
    }
}
