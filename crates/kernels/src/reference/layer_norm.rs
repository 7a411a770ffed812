//! LayerNorm over the last dimension.

use super::{Float, of_finite};
use alloc::vec;
use alloc::vec::Vec;

/// (x − mean) / √(variance + eps) of a row, and the divisor.
fn normalized<T: Float>(x: &[T], eps: T) -> (Vec<T>, T) {
    let n = T::from_f64(x.len() as f64);
    let mean = x.iter().fold(T::ZERO, |sum, &x| sum + x) / n;
    let variance = x.iter().fold(T::ZERO, |sum, &x| sum + (x - mean) * (x - mean)) / n;
    let std = of_finite(variance, (variance + eps).sqrt());
    (x.iter().map(|&x| (x - mean) / std).collect(), std)
}

/// y `[rows, width]`; as [`crate::layer_norm::forward`].
pub fn forward<T: Float>(_rows: usize, width: usize, x: &[T], gamma: &[T], beta: &[T], eps: T) -> Vec<T> {
    let affine = |row: &[T]| -> Vec<T> { normalized(row, eps).0.iter().zip(gamma).zip(beta).map(|((&u, &g), &b)| u * g + b).collect() };
    x.chunks(width.max(1)).flat_map(affine).collect()
}

/// (d_x, d_gamma, d_beta); as [`crate::layer_norm::backward`].
pub fn backward<T: Float>(_rows: usize, width: usize, x: &[T], gamma: &[T], eps: T, d_y: &[T]) -> (Vec<T>, Vec<T>, Vec<T>) {
    let n = T::from_f64(width as f64);
    let (mut d_x, mut d_gamma, mut d_beta) = (Vec::new(), vec![T::ZERO; width], vec![T::ZERO; width]);
    for (row, d_row) in x.chunks(width.max(1)).zip(d_y.chunks(width.max(1))) {
        let (u, std) = normalized(row, eps);
        let scaled: Vec<T> = d_row.iter().zip(gamma).map(|(&d, &g)| d * g).collect();
        let mean = scaled.iter().fold(T::ZERO, |sum, &s| sum + s) / n;
        let along = scaled.iter().zip(&u).fold(T::ZERO, |sum, (&s, &u)| sum + s * u) / n;
        d_x.extend(scaled.iter().zip(&u).map(|(&s, &u)| (s - mean - u * along) / std));
        for c in 0..width {
            d_gamma[c] += d_row[c] * u[c];
            d_beta[c] += d_row[c];
        }
    }
    (d_x, d_gamma, d_beta)
}
