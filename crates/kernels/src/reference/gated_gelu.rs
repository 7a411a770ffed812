//! GELU(gate) ⊙ value ⊙ scale.

use super::Float;
use super::gelu::{biased, column_sums, gelu, slope};
use alloc::vec;
use alloc::vec::Vec;

/// y `[rows, width]`; as [`crate::gated_gelu::forward`].
pub fn forward<T: Float>(rows: usize, width: usize, x: &[T], bias: Option<&[T]>, scale: &[T]) -> Vec<T> {
    let x = biased(2 * width, x, bias);
    let value = |row: usize, c: usize| gelu(x[(2 * row + 1) * width + c]) * x[2 * row * width + c] * scale[c];
    (0..rows * width).map(|i| value(i / width, i % width)).collect()
}

/// (d_x, d_bias, d_scale); as [`crate::gated_gelu::backward`].
pub fn backward<T: Float>(rows: usize, width: usize, x: &[T], bias: Option<&[T]>, scale: &[T], d_y: &[T]) -> (Vec<T>, Vec<T>, Vec<T>) {
    let x = biased(2 * width, x, bias);
    let mut d_x = vec![T::ZERO; x.len()];
    let mut d_scale = vec![T::ZERO; width];
    for (row, c) in (0..rows).flat_map(|row| (0..width).map(move |c| (row, c))) {
        let (d, at) = (d_y[row * width + c], row * 2 * width + c);
        let (value, gate) = (x[at], x[at + width]);
        d_x[at] = d * scale[c] * gelu(gate);
        d_x[at + width] = d * scale[c] * value * slope(gate);
        d_scale[c] += d * value * gelu(gate);
    }
    let d_bias = column_sums(2 * width, &d_x);
    (d_x, d_bias, d_scale)
}
