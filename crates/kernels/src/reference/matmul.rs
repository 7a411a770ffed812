//! Matrix products.

use super::Float;
use alloc::vec::Vec;

/// `Σ_k left[i, k] · right[k, j] (+ bias[j])` of `left` [rows, depth] and `right` [depth, columns], row-major and dense.
pub fn matmul<T: Float>([rows, depth, columns]: [usize; 3], left: &[T], right: &[T], bias: Option<&[T]>) -> Vec<T> {
    let mut out = Vec::with_capacity(rows * columns);
    for i in 0..rows {
        for j in 0..columns {
            let mut sum = bias.map_or(T::ZERO, |bias| bias[j]);
            for k in 0..depth {
                sum += left[i * depth + k] * right[k * columns + j];
            }
            out.push(sum);
        }
    }
    out
}
