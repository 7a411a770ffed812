//! LayerNorm of each head separately.

use super::{Float, layer_norm};
use alloc::vec::Vec;

/// y `[rows, width]`; as [`crate::head_norm::forward`].
pub fn forward<T: Float>(rows: usize, heads: usize, x: &[T], weight: &[T], eps: T) -> Vec<T> {
    let zeros = alloc::vec![T::ZERO; weight.len()];
    each_head(rows, heads, x, weight, |x, gain, width| layer_norm::forward(1, width, x, gain, &zeros[..width], eps))
}

/// (d_x, d_weight); as [`crate::head_norm::backward`].
pub fn backward<T: Float>(rows: usize, heads: usize, x: &[T], weight: &[T], eps: T, d_y: &[T]) -> (Vec<T>, Vec<T>) {
    let mut d_weight = alloc::vec![T::ZERO; weight.len()];
    let mut part = 0;
    let d_x = each_head(rows, heads, x, weight, |x, gain, width| {
        let (d_x, d_gain, _) = layer_norm::backward(1, width, x, gain, eps, &d_y[part * width..][..width]);
        for (sum, d) in d_weight[part % heads * width..].iter_mut().zip(d_gain) {
            *sum += d;
        }
        part += 1;
        d_x
    });
    (d_x, d_weight)
}

/// Joins the results of `each` for every head's channels and gains.
fn each_head<T: Float>(rows: usize, heads: usize, x: &[T], weight: &[T], mut each: impl FnMut(&[T], &[T], usize) -> Vec<T>) -> Vec<T> {
    let width = weight.len() / heads;
    let gain: Vec<T> = weight.iter().map(|&weight| T::ONE + weight).collect();
    (0..rows * heads).flat_map(|part| each(&x[part * width..][..width], &gain[part % heads * width..][..width], width)).collect()
}
