//! σ(x) = 1 / (1 + e^−x) for single numbers, and what cells compute with it once from a parameter; for vectors see
//! [`simd::sigmoid`](crate::simd::sigmoid).

/// 1 / (1 + e^−x).
#[inline]
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + libm::expf(-x))
}

/// g(x), as in [`Candidate::Positive`](crate::Candidate::Positive): x + ½ for x ≥ 0, σ(x) below.
pub fn positive(x: f32) -> f32 {
    if x >= 0.0 { x + 0.5 } else { sigmoid(x) }
}

/// c = 1 − `ceiling` · σ(θ), the largest share of a candidate in [`Cell::FlooredMinGru`](crate::recurrence::Cell::FlooredMinGru), with one
/// rounding less than with [`sigmoid`].
pub fn largest_share(theta: f32, ceiling: f32) -> f32 {
    1.0 - ceiling / (1.0 + libm::expf(-theta))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_three_go_from_one_bound_to_the_other_through_a_half() {
        assert_eq!([-200.0, 0.0, 200.0].map(sigmoid), [0.0, 0.5, 1.0]);
        assert_eq!([-200.0, 0.0, 1.0].map(positive), [0.0, 0.5, 1.5]);
        assert_eq!([-200.0, 0.0, 200.0].map(|theta| largest_share(theta, 0.5)), [1.0, 0.75, 0.5]);
    }
}
