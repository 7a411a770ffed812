//! value ⊙ SiLU(gate).

use super::{Float, sigmoid};
use alloc::{vec, vec::Vec};

/// y `[rows, width]`; as [`crate::swi_glu::forward`].
pub fn forward<T: Float>(rows: usize, width: usize, x: &[T]) -> Vec<T> {
    let value = |i: usize| {
        let at = i / width * 2 * width + i % width;
        x[at] * x[at + width] * sigmoid(x[at + width])
    };
    (0..rows * width).map(value).collect()
}

/// d_x `[rows, 2 · width]`; as [`crate::swi_glu::backward`].
pub fn backward<T: Float>(_rows: usize, width: usize, x: &[T], d_y: &[T]) -> Vec<T> {
    let mut d_x = vec![T::ZERO; x.len()];
    for (i, &d) in d_y.iter().enumerate() {
        let at = i / width * 2 * width + i % width;
        let (value, gate) = (x[at], x[at + width]);
        let sigma = sigmoid(gate);
        d_x[at] = d * gate * sigma;
        d_x[at + width] = d * value * sigma * (T::ONE + gate * (T::ONE - sigma));
    }
    d_x
}
