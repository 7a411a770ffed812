//! Looks up tokens in a table on a device.
//!
//! The gradient of the table is summed by table row: each cube searches all tokens for its own, so no two write the same location and the
//! order of every sum is fixed.

use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use super::super::embedding::{Embedding, Tokens};
use super::column_sums::over_cube;
use super::op::GpuOp;
use super::tensors::{LANES, Like, ROWS, arg, cubes, dims, elements, empty, square, vector_size};

impl Embedding {
    fn on_device(&self) -> &CubeTensor {
        match &self.tokens {
            Tokens::Gpu(tokens) => tokens,
            Tokens::Host(_) => unreachable!("tokens and table are on one device"),
        }
    }
}

impl GpuOp for Embedding {
    fn outputs_like(&self, _: &[Like]) -> Vec<Like> {
        vec![Like::f32(self.shape)]
    }

    fn forward(&self, inputs: &[CubeTensor]) -> Vec<CubeTensor> {
        let [_, width] = dims(&inputs[0]);
        let y = empty(&inputs[0], self.shape);
        let size = vector_size(width);
        let count = self.shape.iter().product::<usize>() / size;
        let (grid, dim) = elements(count);
        let (tokens, table) = (arg(self.on_device()), arg(&inputs[0]));
        // SAFETY: the kernel stays inside the buffers.
        unsafe { forward::launch_unchecked(&y.client, grid, dim, size, tokens, table, arg(&y), count, width / size, self.vocab_size) };
        vec![y]
    }

    fn backward(&self, _: &[Option<CubeTensor>], _: &[Option<CubeTensor>], d_outputs: &[Option<CubeTensor>]) -> Vec<CubeTensor> {
        let d_y = d_outputs[0].as_ref().expect("the only output");
        let [batch, seq_len, width] = self.shape;
        let d_table = empty(d_y, [self.vocab_size, width]);
        let groups = width.div_ceil(LANES);
        let count = self.vocab_size * groups;
        let tokens = self.on_device();
        // SAFETY: the kernel stays inside the buffers.
        unsafe {
            backward::launch_unchecked(
                &d_y.client,
                cubes(count),
                square(),
                arg(tokens),
                arg(d_y),
                arg(&d_table),
                batch * seq_len,
                width,
                groups,
                self.vocab_size,
                count,
            );
        }
        vec![d_table]
    }
}

/// `count` and `width` are of vectors.
#[cube(launch_unchecked)]
pub(super) fn forward<N: Size>(
    tokens: &[i32],
    table: &[Vector<f32, N>],
    y: &mut [Vector<f32, N>],
    count: usize,
    width: usize,
    vocab_size: usize,
) {
    if ABSOLUTE_POS >= count {
        terminate!();
    }
    let token = min(tokens[ABSOLUTE_POS / width] as usize, vocab_size - 1);
    y[ABSOLUTE_POS] = table[token * width + ABSOLUTE_POS % width];
}

#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
pub(super) fn backward(
    tokens: &[i32],
    d_y: &[f32],
    d_table: &mut [f32],
    rows: usize,
    width: usize,
    groups: usize,
    vocab_size: usize,
    cubes: usize,
) {
    if CUBE_POS >= cubes {
        terminate!();
    }
    let column = CUBE_POS % groups * LANES + UNIT_POS_X as usize;
    let token = CUBE_POS / groups;
    let mut sum = 0.0f32;
    if column < width {
        let mut row = UNIT_POS_Y as usize;
        while row < rows {
            if min(tokens[row] as usize, vocab_size - 1) == token {
                sum += d_y[row * width + column];
            }
            row += ROWS;
        }
    }
    let total = over_cube(sum);
    if UNIT_POS_Y == 0 && column < width {
        d_table[token * width + column] = total;
    }
}
