//! The sum of squares that clipping needs.

use burn::tensor::Tensor;
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use super::column_sums::{column_sums, over_cube, over_row};
use super::tensors::{LANES, ROWS, arg, cubes, empty, len, on_gpu, square};

/// Cubes that share a sum.
const PIECES: usize = 64;

/// The tensors of a GPU; none where they lie elsewhere.
pub(in crate::ops) fn all_on_gpu(tensors: &[&Tensor<1>]) -> Option<Vec<CubeTensor>> {
    tensors.iter().map(|&tensor| on_gpu(tensor.clone())).collect()
}

/// Σ x² of every tensor, in one transfer to the host.
pub(in crate::ops) fn sums_of_squares(tensors: &[CubeTensor]) -> Vec<f64> {
    let Some(first) = tensors.first() else { return vec![] };
    let partial = empty(first, [PIECES, tensors.len()]);
    for (column, tensor) in tensors.iter().enumerate() {
        // SAFETY: the kernel stays inside the buffers.
        unsafe {
            squares::launch_unchecked(
                &tensor.client,
                cubes(PIECES),
                square(),
                arg(tensor),
                arg(&partial),
                len(tensor),
                column,
                tensors.len(),
            );
        }
    }
    let bytes = first.client.read_one_unchecked(column_sums(&partial).handle);
    bytes.chunks_exact(4).map(|bytes| f64::from(f32::from_ne_bytes(bytes.try_into().expect("four bytes")))).collect()
}

/// Column `column` of `partial` `[PIECES, columns]`: sums of squares of pieces of `x`.
#[cube(launch_unchecked)]
fn squares(x: &[f32], partial: &mut [f32], count: usize, column: usize, columns: usize) {
    if CUBE_POS >= PIECES {
        terminate!();
    }
    let units = comptime!(ROWS * LANES);
    let mut sum = 0.0f32;
    let mut at = CUBE_POS * units + UNIT_POS as usize;
    while at < count {
        sum += x[at] * x[at];
        at += comptime!(PIECES * ROWS * LANES);
    }
    let total = over_cube(over_row(sum));
    if UNIT_POS == 0 {
        partial[CUBE_POS * columns + column] = total;
    }
}
