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

/// The nearest bf16, ties to even; NaN stays NaN.
pub fn to_bf16(x: f32) -> f32 {
    if x.is_nan() {
        return x;
    }
    let bits = x.to_bits();
    let odd = bits >> 16 & 1;
    f32::from_bits((bits + 0x7fff + odd) & 0xffff_0000)
}
