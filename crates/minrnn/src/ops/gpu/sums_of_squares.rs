//! The sum of squares that clipping needs.

use burn::tensor::Tensor;
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use super::column_sums::{column_sums, over_cube, over_row};
use super::tensors::{LANES, ROWS, arg, cubes, empty, len, on_gpu, square, upload_ints};

/// Cubes that share a sum.
const PIECES: usize = 64;

/// The tensors of a GPU; none where they lie elsewhere.
pub(in crate::ops) fn all_on_gpu(tensors: &[&Tensor<1>]) -> Option<Vec<CubeTensor>> {
    tensors.iter().map(|&tensor| on_gpu(tensor.clone())).collect()
}

/// Tensors of a launch, at most: the kernel is compiled once for each number of them.
pub(super) const TOGETHER: usize = 16;
/// Buffers that a launch takes beside them.
const OTHERS: usize = 2;

/// Σ x² of every tensor, in a few launches and one transfer to the host.
pub(in crate::ops) fn sums_of_squares(tensors: &[CubeTensor]) -> Vec<f64> {
    let Some(first) = tensors.first() else { return vec![] };
    let partial = empty(first, [PIECES, tensors.len()]);
    let most = first.client.properties().hardware.max_bindings as usize;
    let together = most.saturating_sub(OTHERS).clamp(1, TOGETHER);
    for (group, xs) in tensors.chunks(together).enumerate() {
        let lengths: Vec<i32> = xs.iter().map(|x| i32::try_from(len(x)).expect("a device counts to 2^31")).collect();
        let mut sequence = SequenceArg::new();
        xs.iter().for_each(|x| sequence.push(arg(x)));
        // SAFETY: a cube reads within the one tensor whose piece it sums, and `partial` has room for all pieces.
        unsafe {
            squares::launch_unchecked(
                &first.client,
                cubes(PIECES * xs.len()),
                square(),
                sequence,
                arg(&partial),
                arg(&upload_ints(first, &lengths)),
                group * together,
                tensors.len(),
                PIECES * xs.len(),
            );
        }
    }
    let bytes = first.client.read_one_unchecked(column_sums(&partial).handle);
    bytes.chunks_exact(4).map(|bytes| f64::from(f32::from_ne_bytes(bytes.try_into().expect("four bytes")))).collect()
}

/// Columns from `column` on of `partial` `[PIECES, columns]`: sums of squares of pieces of `xs`, whose lengths are `lengths`.
#[cube(launch_unchecked)]
pub(super) fn squares(xs: &Sequence<Box<[f32]>>, partial: &mut [f32], lengths: &[i32], column: usize, columns: usize, cubes: usize) {
    if CUBE_POS >= cubes {
        terminate!();
    }
    let piece = CUBE_POS % PIECES;
    let mine = CUBE_POS / PIECES;
    let count = lengths[mine] as usize;
    let mut sum = 0.0f32;
    #[unroll]
    for which in 0..comptime![xs.len()] {
        if mine == which {
            let mut at = piece * comptime!(ROWS * LANES) + UNIT_POS as usize;
            while at < count {
                let x = xs.index(which)[at];
                sum += x * x;
                at += comptime!(PIECES * ROWS * LANES);
            }
        }
    }
    let total = over_cube(over_row(sum));
    if UNIT_POS == 0 {
        partial[piece * columns + column + mine] = total;
    }
}
