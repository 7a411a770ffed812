//! From logits to log-probabilities.

/// ln Σ exp(logits): a logit minus this is the natural logarithm of its probability. Computed in f64 relative to the largest logit, so that
/// nothing overflows; a NaN is passed on.
pub fn log_sum_exp(logits: &[f32]) -> f64 {
    let largest = f64::from(logits.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    let sum: f64 = logits.iter().map(|&logit| (f64::from(logit) - largest).exp()).sum();
    sum.ln() + largest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_logits_do_not_overflow_and_small_ones_do_not_vanish() {
        let ln_2 = core::f64::consts::LN_2;
        for shift in [-1e30f32, -1000.0, 0.0, 1000.0, 1e30] {
            let expected = f64::from(shift) + ln_2;
            assert!((log_sum_exp(&[shift, shift]) - expected).abs() <= 1e-12 * expected.abs().max(1.0), "{shift}");
        }
        assert_eq!(log_sum_exp(&[1000.0, 0.0]), 1000.0);
        assert_eq!(log_sum_exp(&[f32::NEG_INFINITY, 3.0]), 3.0);
    }

    #[test]
    fn what_is_no_number_is_not_hidden() {
        assert!(log_sum_exp(&[f32::NAN, 1.0]).is_nan());
    }
}
