//! (y + skip ⊙ c) ⊙ SiLU(z).

use super::Float;
use super::silu::{silu, slope};
use alloc::{vec, vec::Vec};

/// The output `[rows, width]`; as [`crate::skip_gate::forward`].
pub fn forward<T: Float>(y: &[T], c: &[T], skip: &[T], z: &[T]) -> Vec<T> {
    (0..y.len()).map(|i| (y[i] + skip[i % skip.len()] * c[i]) * silu(z[i])).collect()
}

/// (d_y, d_c, d_skip, d_z); as [`crate::skip_gate::backward`].
pub fn backward<T: Float>(y: &[T], c: &[T], skip: &[T], z: &[T], d: &[T]) -> (Vec<T>, Vec<T>, Vec<T>, Vec<T>) {
    let d_y: Vec<T> = d.iter().zip(z).map(|(&d, &z)| d * silu(z)).collect();
    let d_c = (0..d.len()).map(|i| d_y[i] * skip[i % skip.len()]).collect();
    let d_z = (0..d.len()).map(|i| d[i] * (y[i] + skip[i % skip.len()] * c[i]) * slope(z[i])).collect();
    let mut d_skip = vec![T::ZERO; skip.len()];
    for i in 0..d.len() {
        d_skip[i % skip.len()] += d_y[i] * c[i];
    }
    (d_y, d_c, d_skip, d_z)
}
