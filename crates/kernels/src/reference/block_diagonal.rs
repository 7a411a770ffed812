//! Products with a block-diagonal matrix.

use super::Float;
use crate::block_diagonal::Blocks;
use alloc::{vec, vec::Vec};

/// y `[rows, count · outputs]`; as [`crate::block_diagonal::forward`].
pub fn forward<T: Float>(rows: usize, blocks: Blocks, x: &[T], weight: &[T]) -> Vec<T> {
    let mut y = vec![T::ZERO; rows * blocks.count * blocks.outputs];
    each(rows, blocks, |y_at, x_at, w_at| y[y_at] += weight[w_at] * x[x_at]);
    y
}

/// (d_x, d_weight); as [`crate::block_diagonal::backward`].
pub fn backward<T: Float>(rows: usize, blocks: Blocks, x: &[T], weight: &[T], d_y: &[T]) -> (Vec<T>, Vec<T>) {
    let (mut d_x, mut d_weight) = (vec![T::ZERO; x.len()], vec![T::ZERO; weight.len()]);
    each(rows, blocks, |y_at, x_at, w_at| {
        d_x[x_at] += weight[w_at] * d_y[y_at];
        d_weight[w_at] += x[x_at] * d_y[y_at];
    });
    (d_x, d_weight)
}

/// Calls `term` with the positions in y, x and the weight of every term of the product.
fn each(rows: usize, blocks: Blocks, mut term: impl FnMut(usize, usize, usize)) {
    let Blocks { count, outputs, inputs } = blocks;
    for part in 0..rows * count {
        for j in 0..outputs {
            for i in 0..inputs {
                term(part * outputs + j, part * inputs + i, (part % count * outputs + j) * inputs + i);
            }
        }
    }
}
