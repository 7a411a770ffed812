//! Bias and exact GELU.

use super::Float;
use alloc::vec;
use alloc::vec::Vec;

/// u Φ(u).
pub fn gelu<T: Float>(u: T) -> T {
    u * cdf(u)
}

/// Φ(u) + u φ(u), the derivative of [`gelu`].
pub fn slope<T: Float>(u: T) -> T {
    let density = (u * u * T::from_f64(-0.5)).exp() * T::from_f64(0.398_942_280_401_432_7);
    cdf(u) + u * density
}

/// Φ(u).
fn cdf<T: Float>(u: T) -> T {
    let half = T::from_f64(0.5);
    half + half * (u * T::from_f64(core::f64::consts::FRAC_1_SQRT_2)).erf()
}

/// x + bias of `[rows, width]`.
pub(super) fn biased<T: Float>(width: usize, x: &[T], bias: Option<&[T]>) -> Vec<T> {
    x.iter().enumerate().map(|(i, &x)| bias.map_or(x, |bias| x + bias[i % width])).collect()
}

/// Column sums of `[rows, width]`.
pub(super) fn column_sums<T: Float>(width: usize, x: &[T]) -> Vec<T> {
    let mut sums = vec![T::ZERO; width];
    for (i, &x) in x.iter().enumerate() {
        sums[i % width] += x;
    }
    sums
}

/// y `[rows, width]`; as [`crate::gelu::forward`].
pub fn forward<T: Float>(_rows: usize, width: usize, x: &[T], bias: Option<&[T]>) -> Vec<T> {
    biased(width, x, bias).into_iter().map(gelu).collect()
}

/// (d_x, d_bias); as [`crate::gelu::backward`].
pub fn backward<T: Float>(_rows: usize, width: usize, x: &[T], bias: Option<&[T]>, d_y: &[T]) -> (Vec<T>, Vec<T>) {
    let d_x: Vec<T> = biased(width, x, bias).into_iter().zip(d_y).map(|(u, &d)| d * slope(u)).collect();
    let d_bias = column_sums(width, &d_x);
    (d_x, d_bias)
}
