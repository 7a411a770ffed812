//! Dropout of a branch and its residual, one element at a time.

use super::Float;
use super::gelu::{biased, column_sums};
use alloc::vec::Vec;

/// Whether element `index` is kept: its Threefry-2x32-13 word is at or above ⌊p · 2³²⌋.
pub fn keep(p: f32, key: u64, index: u64) -> bool {
    let words = threefry_2x32([key as u32, (key >> 32) as u32], index / 32 * 16 + index % 16);
    words[(index / 16 % 2) as usize] >= (f64::from(p) * 4_294_967_296.0) as u32
}

/// Threefry-2x32 with 13 rounds (Salmon et al. 2011).
fn threefry_2x32(key: [u32; 2], counter: u64) -> [u32; 2] {
    const ROTATIONS: [u32; 8] = [13, 15, 26, 6, 17, 29, 16, 24];
    let keys = [key[0], key[1], key[0] ^ key[1] ^ 0x1bd1_1bda];
    let mut x = [(counter as u32).wrapping_add(keys[0]), ((counter >> 32) as u32).wrapping_add(keys[1])];
    for round in 0..13 {
        x[0] = x[0].wrapping_add(x[1]);
        x[1] = x[1].rotate_left(ROTATIONS[round % 8]) ^ x[0];
        if round % 4 == 3 {
            let n = round / 4 + 1;
            x[0] = x[0].wrapping_add(keys[n % 3]);
            x[1] = x[1].wrapping_add(keys[(n + 1) % 3]).wrapping_add(n as u32);
        }
    }
    x
}

fn drop<T: Float>(p: f32, key: u64, index: usize, x: T) -> T {
    if p == 0.0 {
        x
    } else if keep(p, key, index as u64) {
        x / T::from_f64(1.0 - f64::from(p))
    } else {
        T::ZERO
    }
}

/// y `[rows, width]`; as [`crate::dropout::forward`].
pub fn forward<T: Float>(_rows: usize, width: usize, x: &[T], bias: Option<&[T]>, residual: Option<&[T]>, p: f32, key: u64) -> Vec<T> {
    let dropped = biased(width, x, bias).into_iter().enumerate().map(|(i, u)| (i, drop(p, key, i, u)));
    dropped.map(|(i, y)| residual.map_or(y, |residual| residual[i] + y)).collect()
}

/// (d_x, d_bias); as [`crate::dropout::backward`].
pub fn backward<T: Float>(_rows: usize, width: usize, d_y: &[T], p: f32, key: u64) -> (Vec<T>, Vec<T>) {
    let d_x: Vec<T> = d_y.iter().enumerate().map(|(i, &d)| drop(p, key, i, d)).collect();
    let d_bias = column_sums(width, &d_x);
    (d_x, d_bias)
}
