//! How far our results are from the expected ones.

/// The tolerance: |error| ≤ atol + rtol · |expected|, for every value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// Relative to the magnitude of each expected value.
    pub rtol: f64,
    /// Absolute.
    pub atol: f64,
}

impl Default for Tolerance {
    fn default() -> Self {
        Self { rtol: 1e-4, atol: 1e-5 }
    }
}

/// How a tensor was computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The whole sequence at once.
    Forward,
    /// One step at a time, with the state carried.
    Steps,
    /// By backpropagation.
    Backward,
}

impl Direction {
    /// A word for it: `forward`, `steps` or `backward`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Steps => "steps",
            Self::Backward => "backward",
        }
    }
}

/// One tensor, compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The name without `expect.`, such as `h` or `grad.x`.
    pub tensor: String,
    /// How ours was computed.
    pub direction: Direction,
    /// The largest |found − expected|; NaN if any value is not finite.
    pub max_abs_error: f64,
    /// rms(found − expected) / rms(expected): 0 if both tensors are zero, infinite if only the expected one is, NaN if any value is not
    /// finite.
    pub relative_rms_error: f64,
    /// Whether every value is finite and within the tolerance.
    pub pass: bool,
}

impl Comparison {
    /// Compares values in the same order.
    ///
    /// # Panics
    /// When their numbers differ.
    pub fn new(tensor: &str, direction: Direction, found: &[f32], expected: &[f32], tolerance: Tolerance) -> Self {
        assert_eq!(found.len(), expected.len(), "'{tensor}': as many values as expected");
        let (mut max, mut squares, mut expected_squares) = (0.0f64, 0.0, 0.0);
        let mut pass = true;
        for (&found, &expected) in found.iter().zip(expected) {
            let (found, expected) = (f64::from(found), f64::from(expected));
            let error = (found - expected).abs();
            // Written so that NaN fails.
            pass &= error <= tolerance.atol + tolerance.rtol * expected.abs() && expected.is_finite();
            max = if error.is_finite() { max.max(error) } else { f64::NAN };
            squares += error * error;
            expected_squares += expected * expected;
            if max.is_nan() {
                squares = f64::NAN;
                break;
            }
        }
        let relative_rms_error = if squares == 0.0 { 0.0 } else { (squares / expected_squares).sqrt() };
        Self { tensor: tensor.to_owned(), direction, max_abs_error: max, relative_rms_error, pass }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(found: &[f32], expected: &[f32]) -> Comparison {
        Comparison::new("h", Direction::Forward, found, expected, Tolerance { rtol: 0.25, atol: 0.5 })
    }

    #[test]
    fn every_value_must_be_within_the_tolerance_of_its_own_magnitude() {
        assert!(compare(&[13.0, 0.5, -3.0], &[10.0, 0.0, -2.0]).pass);
        assert!(!compare(&[13.0, 0.5, -3.01], &[10.0, 0.0, -2.0]).pass);
        assert!(!compare(&[10.0, 0.51, -2.0], &[10.0, 0.0, -2.0]).pass);
    }

    #[test]
    fn errors_are_the_largest_and_the_relative_rms() {
        let found = compare(&[3.0, 3.0], &[3.0, 4.0]);
        assert_eq!((found.max_abs_error, found.relative_rms_error), (1.0, 0.2));
        let zeros = compare(&[0.0], &[0.0]);
        assert_eq!((zeros.max_abs_error, zeros.relative_rms_error, zeros.pass), (0.0, 0.0, true));
        assert_eq!(compare(&[0.1], &[0.0]).relative_rms_error, f64::INFINITY);
    }

    #[test]
    fn what_is_not_finite_fails_on_either_side() {
        for (found, expected) in [(f32::NAN, 0.0), (0.0, f32::NAN), (f32::INFINITY, f32::INFINITY), (1.0, f32::INFINITY)] {
            let comparison = compare(&[1.0, found, 9.0], &[1.0, expected, 9.0]);
            assert!(!comparison.pass && comparison.max_abs_error.is_nan() && comparison.relative_rms_error.is_nan(), "{comparison:?}");
        }
    }
}
