//! Mean 0 and deviation 1.

use serde::{Deserialize, Serialize};

use super::frame::Frame;
use crate::{Error, Result};

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
    /// That of `rows` of `width` numbers; without rows, that of numbers which need none.
    ///
    /// # Errors
    /// When numbers are too large to be squared.
    pub fn fit<'a>(width: usize, rows: impl Iterator<Item = &'a [f64]> + Clone) -> Result<Self> {
        let n = rows.clone().count().max(1) as f64;
        let mut mean = vec![0.0; width];
        for row in rows.clone() {
            mean.iter_mut().zip(row).for_each(|(mean, x)| *mean += x / n);
        }
        let mut deviation = vec![0.0; width];
        for row in rows {
            deviation.iter_mut().zip(&mean).zip(row).for_each(|((sum, mean), x)| *sum += (x - mean) * (x - mean) / n);
        }
        // What is left of a constant by rounding is no deviation.
        let is_constant = |deviation: f64, mean: f64| deviation <= 1e-12 * mean.abs();
        let deviation = deviation.iter().map(|variance| variance.sqrt()).zip(&mean);
        let deviation = deviation.map(|(deviation, &mean)| if is_constant(deviation, mean) { 1.0 } else { deviation }).collect();
        let fitted = Self { mean, deviation };
        if fitted.is_usable() {
            return Ok(fitted);
        }
        Err(Error::Data("its numbers are too large for a mean and a deviation; divide them by a power of ten".to_owned()))
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.mean.len()
    }

    /// Whether every mean and deviation is a number, with as many of one as of the other.
    pub(super) fn is_usable(&self) -> bool {
        let usable = |deviation: &f64| deviation.is_finite() && *deviation > 0.0;
        self.mean.len() == self.deviation.len() && self.mean.iter().all(|mean| mean.is_finite()) && self.deviation.iter().all(usable)
    }

    /// Refuses a table with a number that lies too far from the mean of its column; the columns are those of `frame`.
    ///
    /// # Errors
    /// A sentence with the place of the number.
    pub(super) fn expect_near(&self, frame: &Frame) -> Result<()> {
        for (column, (name, numbers)) in frame.names.iter().zip(&frame.numbers).enumerate() {
            let (mean, deviation) = (self.mean[column], self.deviation[column]);
            let distance = |x: f64| (x - mean).abs() / deviation;
            let is_far = |&x: &f64| distance(x).is_nan() || distance(x) > MAX_DEVIATIONS;
            if let Some(row) = numbers.iter().position(is_far) {
                let (place, found) = (frame.places.name(row), numbers[row]);
                return Err(Error::Data(format!(
                    "{place}, column '{name}': {found:?} lies {:.1e} deviations from the mean of what was trained on (mean {mean:?}, deviation \
                     {deviation:?}), expected at most {MAX_DEVIATIONS:e}; correct the cell, or leave the row or the column out",
                    distance(found)
                )));
            }
        }
        Ok(())
    }

    /// `x` of `column` as the model sees it.
    pub fn apply(&self, column: usize, x: f64) -> f32 {
        ((x - self.mean[column]) / self.deviation[column]) as f32
    }

    /// The number of `column` that the model sees as `x`.
    pub fn restore(&self, column: usize, x: f32) -> f64 {
        f64::from(x) * self.deviation[column] + self.mean[column]
    }

    /// Those of some columns.
    pub(super) fn of(&self, columns: &[usize]) -> Self {
        let choose = |values: &[f64]| columns.iter().map(|&column| values[column]).collect();
        Self { mean: choose(&self.mean), deviation: choose(&self.deviation) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fit(rows: &[[f64; 2]]) -> Normalization {
        Normalization::fit(2, rows.iter().map(<[f64; 2]>::as_slice)).unwrap()
    }

    #[test]
    fn mean_and_deviation_are_those_by_hand() {
        // Mean (2 + 4 + 9) / 3 = 5; squares 9 + 1 + 16 = 26; the second column never changes.
        let fitted = fit(&[[2.0, 0.1], [4.0, 0.1], [9.0, 0.1]]);
        assert!((fitted.mean[0] - 5.0).abs() < 1e-12 && (fitted.deviation[0] - (26.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(fitted.deviation[1], 1.0);
        assert!((fitted.apply(0, 9.0) - 4.0 / (26.0f32 / 3.0).sqrt()).abs() < 1e-6);
        assert!(fitted.apply(1, 0.1).abs() < 1e-6);
    }

    #[test]
    fn a_number_far_from_its_mean_is_a_sentence_with_its_place() {
        let frame = |x: f64| Frame { numbers: vec![vec![1.0, x], vec![0.5, 0.5]], ..Frame::of(&["x", "constant"]) };
        let fitted = fit(&[[0.0, 0.5], [4.0, 0.5]]);
        assert!(fitted.expect_near(&frame(2e6)).is_ok() && fitted.expect_near(&frame(2.0 - 2e6)).is_ok());
        let refused = fitted.expect_near(&frame(-3e6)).unwrap_err().to_string();
        assert!(refused.starts_with("row 2, column 'x': -3000000.0 lies 1.5e6 deviations from the mean"), "{refused}");
        // The least number beside a mean of 0 is no reason to divide by 0.
        let still = Normalization { mean: vec![0.0; 2], deviation: vec![f64::MIN_POSITIVE, 1.0] };
        assert!(still.expect_near(&frame(1.0)).is_err());
    }

    #[test]
    fn numbers_too_large_are_a_sentence() {
        let rows = [[1e200], [-1e200]];
        let refused = Normalization::fit(1, rows.iter().map(<[f64; 1]>::as_slice)).unwrap_err().to_string();
        assert!(refused.contains("too large"), "{refused}");
    }

    proptest! {
        #[test]
        fn applied_numbers_have_mean_0_and_deviation_1(values in prop::collection::vec(-1e3..1e3f64, 2..50), x in -1e3..1e3f64) {
            let rows: Vec<[f64; 2]> = values.iter().map(|&x| [x, 7.0 * x + 1e4]).collect();
            let fitted = fit(&rows);
            for column in 0..2 {
                let seen: Vec<f64> = rows.iter().map(|row| f64::from(fitted.apply(column, row[column]))).collect();
                let n = seen.len() as f64;
                prop_assert!(seen.iter().sum::<f64>().abs() / n < 1e-4);
                prop_assert!((seen.iter().map(|x| x * x).sum::<f64>() / n - 1.0).abs() < 1e-3);
                let back = fitted.restore(column, fitted.apply(column, x));
                prop_assert!((back - x).abs() < 1e-5 * (fitted.deviation[column] + x.abs() + fitted.mean[column].abs()), "{back} {x}");
            }
        }
    }
}
