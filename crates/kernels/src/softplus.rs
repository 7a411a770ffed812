//! softplus(x) = ln(1 + eˣ) for single numbers, accurate for large |x|; for vectors see [`simd::softplus`](crate::simd::softplus).

/// ln(1 + eˣ).
pub fn softplus(x: f32) -> f32 {
    libm::fmaxf(x, 0.0) + libm::log1pf(libm::expf(-libm::fabsf(x)))
}

/// The same in f64.
pub fn softplus_f64(x: f64) -> f64 {
    libm::fmax(x, 0.0) + libm::log1p(libm::exp(-libm::fabs(x)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_from_zero_it_is_the_larger_of_the_number_and_nothing() {
        for (x, expected) in [(200.0, 200.0), (0.0, core::f32::consts::LN_2), (-200.0, 0.0)] {
            assert!((softplus(x) - expected).abs() < 1e-6);
            assert!((softplus_f64(x.into()) - f64::from(expected)).abs() < 1e-6);
        }
    }
}
