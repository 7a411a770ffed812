//! The share of usual rows that is not marked as unusual.

use minrnn_model::Calibration;

use crate::failure::WrongInput;

/// The share unless another is given.
pub const SHARE: f64 = Calibration::SHARE;

/// `share` as the flag gives it, if it is one.
pub fn expect_share(share: f64) -> Result<f64, WrongInput> {
    Calibration::expect_share(share).map(|()| share).map_err(|error| WrongInput(format!("--threshold: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_leaves_some_rows_on_either_side() {
        for share in [f64::MIN_POSITIVE, 0.5, SHARE] {
            assert_eq!(expect_share(share).unwrap(), share);
        }
        for other in [0.0, 1.0, -0.5, f64::NAN, f64::INFINITY] {
            assert!(expect_share(other).is_err(), "{other}");
        }
        let told = expect_share(1.5).unwrap_err().to_string();
        assert_eq!(told, "--threshold: expected a share of rows above 0 and below 1, such as 0.999, found 1.5");
    }
}
