//! Normalisation to mean 0 and standard deviation 1.

use minrnn_model::{MAX_DEVIATIONS, Normalization, Transform};

use super::frame::Frame;
use crate::{Error, Result};

/// The normalisation of `rows` of `width` numbers, some of which may be missing; columns without any number get the identity.
///
/// # Errors
/// When numbers are too large to be squared.
pub(super) fn fit<R: AsRef<[f64]>>(width: usize, rows: impl Iterator<Item = R> + Clone) -> Result<Normalization> {
    let mut n = vec![0.0; width];
    for row in rows.clone() {
        n.iter_mut().zip(row.as_ref()).for_each(|(n, x)| *n += f64::from(u8::from(!x.is_nan())));
    }
    n.iter_mut().for_each(|n| *n = n.max(1.0));
    let (mut mean, mut deviation) = (vec![0.0; width], vec![0.0; width]);
    for row in rows.clone() {
        mean.iter_mut().zip(&n).zip(row.as_ref()).filter(|(_, x)| !x.is_nan()).for_each(|((mean, n), x)| *mean += x / n);
    }
    for row in rows {
        let columns = deviation.iter_mut().zip(&mean).zip(&n).zip(row.as_ref()).filter(|(_, x)| !x.is_nan());
        columns.for_each(|(((sum, mean), n), x)| *sum += (x - mean) * (x - mean) / n);
    }
    // Rounding errors of a constant are not a deviation.
    let is_constant = |deviation: f64, mean: f64| deviation <= 1e-12 * mean.abs();
    let deviation = deviation.iter().map(|variance| variance.sqrt()).zip(&mean);
    let deviation = deviation.map(|(deviation, &mean)| if is_constant(deviation, mean) { 1.0 } else { deviation }).collect();
    let fitted = Normalization { mean, deviation };
    if fitted.is_usable() {
        return Ok(fitted);
    }
    Err(too_large())
}

/// Refuses a column without a known number in `rows`.
///
/// # Errors
/// With a sentence that names it.
pub(super) fn expect_known<'a>(names: &[String], rows: impl Iterator<Item = &'a [f64]> + Clone) -> Result<()> {
    let is_unknown = |column: &usize| rows.clone().all(|row| row[*column].is_nan());
    match (0..names.len()).find(is_unknown) {
        None => Ok(()),
        Some(column) => {
            let name = &names[column];
            Err(Error::Data(format!("the column '{name}' has no number in the part that is trained on; leave it out")))
        }
    }
}

/// The error for numbers without a finite deviation.
pub(super) fn too_large() -> Error {
    Error::Data("its numbers are too large for a mean and a deviation; divide them by a power of ten".to_owned())
}

/// Refuses a table with a number too far from the mean of its column; `normalization` has the columns of `frame`.
///
/// # Errors
/// A sentence with the place of the number.
pub(super) fn expect_near(normalization: &Normalization, frame: &Frame) -> Result<()> {
    for (column, (name, numbers)) in frame.names.iter().zip(&frame.numbers).enumerate() {
        if let Some(row) = numbers.iter().position(|&x| !x.is_nan() && !normalization.is_near(column, x)) {
            let (place, found) = (frame.places.name(row), numbers[row]);
            let (mean, deviation) = (normalization.mean[column], normalization.deviation[column]);
            return Err(Error::Data(format!(
                "{place}, column '{name}': {found:?} lies {:.1e} deviations from the mean of what was trained on (mean {mean:?}, deviation \
                 {deviation:?}), expected at most {MAX_DEVIATIONS:e}; correct the cell, or leave the row or the column out",
                normalization.distance(column, found)
            )));
        }
    }
    Ok(())
}

/// Refuses a table with a number that has no logarithm where the model reads one; `transforms` belong to the first columns of `frame`.
///
/// # Errors
/// A sentence with the place of the number.
pub(super) fn expect_logarithms(transforms: impl Iterator<Item = Transform>, frame: &Frame) -> Result<()> {
    for ((transform, name), numbers) in transforms.zip(&frame.names).zip(&frame.numbers) {
        if let Some(row) = numbers.iter().position(|&x| !transform.reads(x)) {
            let (place, found) = (frame.places.name(row), numbers[row]);
            return Err(Error::Data(format!(
                "{place}, column '{name}': found {found:?}, of which the model, which reads logarithms, has none; correct the cell, leave the row out, or \
                 train a new model with scaling = mean"
            )));
        }
    }
    Ok(())
}

/// The normalisation of some columns.
pub(super) fn of_columns(normalization: &Normalization, columns: &[usize]) -> Normalization {
    let choose = |values: &[f64]| columns.iter().map(|&column| values[column]).collect();
    Normalization { mean: choose(&normalization.mean), deviation: choose(&normalization.deviation) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fit(rows: &[[f64; 2]]) -> Normalization {
        super::fit(2, rows.iter().map(<[f64; 2]>::as_slice)).unwrap()
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
        let frame = |x: f64| Frame { numbers: vec![vec![1.0, x].into(), vec![0.5, 0.5].into()], ..Frame::of(&["x", "constant"]) };
        let fitted = fit(&[[0.0, 0.5], [4.0, 0.5]]);
        assert!(expect_near(&fitted, &frame(2e6)).is_ok() && expect_near(&fitted, &frame(2.0 - 2e6)).is_ok());
        let refused = expect_near(&fitted, &frame(-3e6)).unwrap_err().to_string();
        assert!(refused.starts_with("row 2, column 'x': -3000000.0 lies 1.5e6 deviations from the mean"), "{refused}");
        // The smallest number beside a mean of 0 must not cause a division by 0.
        let still = Normalization { mean: vec![0.0; 2], deviation: vec![f64::MIN_POSITIVE, 1.0] };
        assert!(expect_near(&still, &frame(1.0)).is_err());
    }

    #[test]
    fn numbers_too_large_are_a_sentence() {
        let rows = [[1e200], [-1e200]];
        let refused = super::fit(1, rows.iter().map(<[f64; 1]>::as_slice)).unwrap_err().to_string();
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
