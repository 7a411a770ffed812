//! Products with a block-diagonal matrix: each block of channels is multiplied by its own matrix W.
//!
//! ```text
//! y_b = W_b x_b;   d_x_b = W_bᵀ d_y_b;   d_W_b = Σ d_y_b x_bᵀ      (sum over rows)
//! ```
//!
//! Blocks of four, of which there are many, are multiplied in place; wider ones are passed to [`mod@crate::matmul`] one by one.

use crate::grid::{self, SharedOut};
use crate::matmul::{Matrix, Write, multiply, transposed};
use crate::out::{Out, Slots};
use crate::rows;
use crate::shape::{elements, expect_len};
use crate::simd::{Level, Simd, WithSimd};
use alloc::{vec, vec::Vec};

/// Sizes of a block-diagonal matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocks {
    /// Number of blocks.
    pub count: usize,
    /// Rows of a block.
    pub outputs: usize,
    /// Columns of a block.
    pub inputs: usize,
}

/// Side of the small blocks.
const SMALL: usize = 4;

impl Blocks {
    fn weights(self) -> usize {
        elements([self.count, self.outputs, self.inputs])
    }

    fn are_small(self) -> bool {
        self.outputs == SMALL && self.inputs == SMALL
    }

    fn check(self, rows: usize, x: &[f32], weight: &[f32]) {
        expect_len("x", x, elements([rows, self.count, self.inputs]));
        expect_len("weight", weight, self.weights());
    }
}

/// The products for all rows.
///
/// # Shapes
/// - `x`: `[rows, count · inputs]`
/// - `weight`: `[count, outputs, inputs]`
/// - `y`: `[rows, count · outputs]`
///
/// # Panics
/// When a length does not fit.
pub fn forward(rows: usize, blocks: Blocks, x: &[f32], weight: &[f32], y: Out) {
    blocks.check(rows, x, weight);
    y.expect_len("y", elements([rows, blocks.count, blocks.outputs]));
    apply(rows, blocks, x, &each_transposed(blocks, weight), y);
}

/// Gradients of [`forward`] with respect to `x` and `weight`.
///
/// # Shapes
/// As in [`forward`]; `d_x` has the shape of `x`, and so on.
///
/// # Panics
/// When a length does not fit.
pub fn backward(rows: usize, blocks: Blocks, x: &[f32], weight: &[f32], d_y: &[f32], d_x: Out, d_weight: Out) {
    blocks.check(rows, x, weight);
    expect_len("d_y", d_y, elements([rows, blocks.count, blocks.outputs]));
    d_x.expect_len("d_x", x.len());
    d_weight.expect_len("d_weight", weight.len());
    let Blocks { count, outputs, inputs } = blocks;
    apply(rows, Blocks { count, outputs: inputs, inputs: outputs }, d_y, weight, d_x);
    if blocks.are_small() {
        let level = Level::current();
        let width = count * SMALL;
        let partial = rows::for_each_block(rows, width, weight.len(), |range, sums| {
            let at = range.start * width..range.end * width;
            level.run(SmallWeights { x: &x[at.clone()], d_y: &d_y[at], sums });
        });
        return rows::combine(&partial, weight.len(), 0, d_weight);
    }
    let (n, level) = (tasks(rows), Level::current());
    let mut partials = vec![0.0; n * weight.len()];
    {
        let partials = SharedOut::new(&mut partials);
        grid::for_each(n, |i| {
            let range = grid::piece(rows, n, i);
            for block in 0..if weight.is_empty() { 0 } else { count } {
                // SAFETY: tasks have sums of their own, which were initialised.
                let sums = unsafe { partials.slice((i * count + block) * outputs * inputs, outputs * inputs).assume_init_mut() };
                let d_y = Matrix::new(&d_y[(range.start * count + block) * outputs..], count * outputs).transpose();
                let x = Matrix::new(&x[(range.start * count + block) * inputs..], count * inputs);
                multiply(level, [outputs, range.len(), inputs], d_y, x, Write::Store, sums, inputs);
            }
        });
    }
    rows::combine(&partials, weight.len(), 0, d_weight);
}

/// Tasks that rows are cut into, each with rows of its own.
fn tasks(rows: usize) -> usize {
    grid::threads().min(rows)
}

/// Every block transposed.
fn each_transposed(blocks: Blocks, weight: &[f32]) -> Vec<f32> {
    let Blocks { outputs, inputs, .. } = blocks;
    weight.chunks_exact((outputs * inputs).max(1)).flat_map(|block| transposed(block, outputs, inputs)).collect()
}

/// y of all rows, from blocks `[inputs, outputs]`.
fn apply(rows: usize, blocks: Blocks, x: &[f32], weight: &[f32], y: Out) {
    let Blocks { count, outputs, inputs } = blocks;
    let level = Level::current();
    let y = SharedOut::new(y);
    if blocks.are_small() {
        let width = count * SMALL;
        rows::for_each_block(rows, width, 0, |range, _| {
            let at = range.start * width..range.end * width;
            // SAFETY: blocks of rows are disjoint.
            let y = unsafe { y.slice(at.start, at.len()) };
            level.run(Small { x: &x[at], weight, y });
        });
        return;
    }
    let n = tasks(rows);
    grid::for_each(n, |i| {
        let range = grid::piece(rows, n, i);
        // SAFETY: tasks have rows of their own.
        let y = unsafe { y.slice(range.start * count * outputs, range.len() * count * outputs) };
        y.fill(core::mem::MaybeUninit::new(0.0));
        // SAFETY: filled.
        let y = unsafe { y.assume_init_mut() };
        for block in 0..if weight.is_empty() { 0 } else { count } {
            let x = Matrix::new(&x[(range.start * count + block) * inputs..], count * inputs);
            let weight = Matrix::new(&weight[block * outputs * inputs..], outputs);
            multiply(level, [range.len(), inputs, outputs], x, weight, Write::Store, &mut y[block * outputs..], count * outputs);
        }
    });
}

/// Blocks of four, stored by columns.
struct Small<'a> {
    x: &'a [f32],
    weight: &'a [f32],
    y: Slots<'a>,
}

impl WithSimd for Small<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let weights = self.weight.as_chunks::<{ SMALL * SMALL }>().0;
        let parts = self.x.as_chunks::<SMALL>().0.iter().zip(self.y.as_chunks_mut::<SMALL>().0);
        for ((x, y), weight) in parts.zip(weights.iter().cycle()) {
            let mut sums = [0.0; SMALL];
            for (i, &x) in x.iter().enumerate() {
                for (j, sum) in sums.iter_mut().enumerate() {
                    *sum += weight[i * SMALL + j] * x;
                }
            }
            for (y, sum) in y.iter_mut().zip(sums) {
                y.write(sum);
            }
        }
    }
}

/// Gradients of blocks of four.
struct SmallWeights<'a> {
    x: &'a [f32],
    d_y: &'a [f32],
    /// `[count, 4, 4]`.
    sums: &'a mut [f32],
}

impl WithSimd for SmallWeights<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let count = self.sums.len() / (SMALL * SMALL);
        let rows = self.x.as_chunks::<SMALL>().0.chunks_exact(count).zip(self.d_y.as_chunks::<SMALL>().0.chunks_exact(count));
        for (x, d_y) in rows {
            for ((x, d_y), sums) in x.iter().zip(d_y).zip(self.sums.as_chunks_mut::<{ SMALL * SMALL }>().0) {
                for (j, &d) in d_y.iter().enumerate() {
                    for (i, &x) in x.iter().enumerate() {
                        sums[j * SMALL + i] += d * x;
                    }
                }
            }
        }
    }
}
