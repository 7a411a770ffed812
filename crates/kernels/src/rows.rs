//! Work over the rows of a matrix, with column sums taken in the same pass.
//!
//! Rows are split into blocks of a fixed size, so that a block's column sums fit into the nearest cache and lose little precision in f32;
//! the blocks are added in f64 in index order. The split depends only on the number of rows, so sums do not depend on the number of
//! threads.
//!
//! Activations, gates and their gradients are a [`Formula`] each, which [`apply`] applies to all elements.

use crate::grid::{self, SharedOut};
use crate::out::{Out, Slots};
use crate::shape::elements;
use crate::simd::{self, Level, Simd, WithSimd};
use alloc::vec;
use alloc::vec::Vec;
use core::marker::PhantomData;
use core::ops::Range;

/// Rows of one block.
const BLOCK: usize = 128;
/// Fewest elements worth a task of their own.
const TASK: usize = 1 << 15;
/// Fewest columns that a task sums: those of a cache line.
const COLUMNS: usize = 16;

/// Runs `work(rows of the block, its sums)` for every block of `rows` rows of `width` elements (there is none if `width` is 0); each block
/// adds into `sums` numbers of its own that start at 0. Returns the sums of all blocks, `[blocks, sums]`.
pub(crate) fn for_each_block(rows: usize, width: usize, sums: usize, work: impl Fn(Range<usize>, &mut [f32]) + Sync + Send) -> Vec<f32> {
    let blocks = if width == 0 { 0 } else { rows.div_ceil(BLOCK) };
    let per_task = (TASK / BLOCK / width.max(1)).max(1);
    let mut partial = vec![0.0; elements([blocks, sums])];
    let shared = SharedOut::new(&mut partial);
    grid::for_each(blocks.div_ceil(per_task), |task| {
        for block in task * per_task..((task + 1) * per_task).min(blocks) {
            // SAFETY: every block has sums of its own, and all are initialised.
            let own = unsafe { shared.slice(block * sums, sums).assume_init_mut() };
            work(block * BLOCK..((block + 1) * BLOCK).min(rows), own);
        }
    });
    partial
}

/// Writes the sum over blocks of the columns `from..from + out.len()` of `partial` `[blocks, sums]`.
pub(crate) fn combine(partial: &[f32], sums: usize, from: usize, out: Out) {
    let len = out.len();
    let blocks = partial.len().checked_div(sums).unwrap_or(0);
    let tasks = if elements([blocks, len]) < TASK { 1 } else { grid::threads().min(len.div_ceil(COLUMNS)).max(1) };
    let shared = SharedOut::new(out);
    grid::for_each(tasks, |i| {
        let columns = grid::piece(len.div_ceil(COLUMNS), tasks, i);
        let columns = columns.start * COLUMNS..len.min(columns.end * COLUMNS);
        let mut total = vec![0.0f64; columns.len()];
        for block in partial.chunks_exact(sums.max(1)) {
            for (total, &x) in total.iter_mut().zip(&block[from + columns.start..]) {
                *total += f64::from(x);
            }
        }
        // SAFETY: every task has columns of its own.
        let out = unsafe { shared.slice(columns.start, columns.len()) };
        for (out, total) in out.iter_mut().zip(total) {
            out.write(total as f32);
        }
    });
}

/// What is done to every element: from one number of each of `I` inputs, it computes one for each of `O` outputs and a term of each of `N` column
/// sums.
pub(crate) trait Formula<const I: usize, const O: usize, const N: usize>: Copy + Send + Sync {
    /// Outputs and terms of one vector.
    fn at<S: Simd>(self, simd: S, inputs: [S::f32s; I]) -> ([S::f32s; O], [S::f32s; N]);
}

/// Columns of a matrix that a [`Formula`] reads, or a number in their place.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    data: &'a [f32],
    /// Where the first row begins, and how far it is to the next.
    from: usize,
    stride: usize,
    /// Whether every element is one number, of which `data` holds a vector of copies.
    constant: bool,
}

/// Lanes of the widest vector.
const WIDEST: usize = 16;

impl<'a> Input<'a> {
    /// 0 for every element.
    pub const ZERO: Self = Self { data: &[0.0; WIDEST], from: 0, stride: 0, constant: true };
    /// 1 for every element.
    pub const ONE: Self = Self { data: &[1.0; WIDEST], ..Self::ZERO };

    /// A matrix of `width` columns.
    pub fn matrix(data: &'a [f32], width: usize) -> Self {
        Self { data, from: 0, stride: width, constant: false }
    }

    /// The same columns without the first `skipped` elements of the matrix.
    pub fn after(self, skipped: usize) -> Self {
        Self { from: self.from + skipped, ..self }
    }

    /// The left and the right half of a matrix of 2 · `width` columns.
    pub fn halves(data: &'a [f32], width: usize) -> [Self; 2] {
        [0, width].map(|from| Self { from, ..Self::matrix(data, 2 * width) })
    }

    /// The same row, repeated.
    pub fn row(data: &'a [f32]) -> Self {
        Self { stride: 0, ..Self::matrix(data, 0) }
    }

    /// Row `row` of `width` columns, and the factor by which a column's number is multiplied to find it there.
    #[inline(always)]
    fn of_row(&self, row: usize, width: usize) -> (&'a [f32], usize) {
        match self.constant {
            false => (&self.data[self.from + row * self.stride..][..width], 1),
            true => (self.data, 0),
        }
    }
}

/// Columns of a matrix that a [`Formula`] writes.
pub(crate) struct Output<'a> {
    shared: SharedOut,
    from: usize,
    stride: usize,
    borrowed: PhantomData<Out<'a>>,
}

impl<'a> Output<'a> {
    /// A matrix of `width` columns.
    pub fn matrix(out: Out<'a>, width: usize) -> Self {
        Self { shared: SharedOut::new(out), from: 0, stride: width, borrowed: PhantomData }
    }

    /// The left and the right half of a matrix of 2 · `width` columns.
    pub fn halves(out: Out<'a>, width: usize) -> [Self; 2] {
        let shared = SharedOut::new(out);
        [0, width].map(|from| Self { shared, from, stride: 2 * width, borrowed: PhantomData })
    }
}

/// Applies `formula` to all elements of matrices `[rows, width]`; `sums` `[width]` take the sums of its terms over rows, if wanted.
pub(crate) fn apply<const I: usize, const O: usize, const N: usize>(
    formula: impl Formula<I, O, N>,
    [rows, width]: [usize; 2],
    inputs: [Input; I],
    outputs: [Output; O],
    sums: [Option<Out>; N],
) {
    let level = Level::current();
    let partial = for_each_block(rows, width, N * width, |rows, sums| {
        level.run(Block { formula, rows, width, inputs: &inputs, outputs: &outputs, sums });
    });
    for (i, sum) in sums.into_iter().enumerate() {
        if let Some(sum) = sum {
            combine(&partial, N * width, i * width, sum);
        }
    }
}

/// What one task does, on rows of its own.
struct Block<'a, F, const I: usize, const O: usize, const N: usize> {
    formula: F,
    rows: Range<usize>,
    width: usize,
    inputs: &'a [Input<'a>; I],
    outputs: &'a [Output<'a>; O],
    /// `[N, width]`.
    sums: &'a mut [f32],
}

impl<F: Formula<I, O, N>, const I: usize, const O: usize, const N: usize> WithSimd for Block<'_, F, I, O, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { formula, rows, width, inputs, outputs, sums } = self;
        const { assert!(S::F32_LANES <= WIDEST) };
        let whole = width / S::F32_LANES * S::F32_LANES;
        for row in rows {
            let inputs: [(&[f32], usize); I] = core::array::from_fn(|i| inputs[i].of_row(row, width));
            let mut outputs: [Slots; O] = core::array::from_fn(|i| {
                let Output { shared, from, stride, .. } = outputs[i];
                debug_assert!(from % width + width <= stride, "columns of a row reach into another");
                // SAFETY: blocks have rows of their own, outputs columns of their own, and what they share is borrowed while this runs.
                unsafe { shared.slice(from + row * stride, width) }
            });
            let mut sums: [&mut [f32]; N] = parts(sums, width);
            let mut x = [simd.splat_f32s(0.0); I];
            let mut at = 0;
            while at < whole {
                debug_assert!(at + S::F32_LANES <= width);
                // No closures: if they were not inlined, they would not have this level's instructions.
                for (x, (input, step)) in x.iter_mut().zip(&inputs) {
                    // SAFETY: `whole` ends with a whole vector and the input is at least as long, or it is a whole vector and `step` is 0.
                    *x = unsafe { input.as_ptr().add(at * step).cast::<S::f32s>().read_unaligned() };
                }
                let (values, terms) = formula.at(simd, x);
                for (output, value) in outputs.iter_mut().zip(&values) {
                    // SAFETY: `whole` ends with a whole vector, and the output is at least as long.
                    unsafe { output.as_mut_ptr().add(at).cast::<S::f32s>().write_unaligned(*value) };
                }
                for (sum, term) in sums.iter_mut().zip(&terms) {
                    // SAFETY: `whole` ends with a whole vector, and the sums are at least as long.
                    unsafe {
                        let sum = sum.as_mut_ptr().add(at).cast::<S::f32s>();
                        sum.write_unaligned(simd.add_f32s(sum.read_unaligned(), *term));
                    }
                }
                at += S::F32_LANES;
            }
            if at < width {
                for (x, (input, step)) in x.iter_mut().zip(&inputs) {
                    *x = simd::load(simd, input, at * step);
                }
                let (values, terms) = formula.at(simd, x);
                for (output, value) in outputs.iter_mut().zip(&values) {
                    simd::store(simd, output, at, *value);
                }
                for (sum, term) in sums.iter_mut().zip(&terms) {
                    simd::add_to(simd, sum, at, *term);
                }
            }
        }
    }
}

/// `N` parts of `width` elements.
#[inline(always)]
fn parts<const N: usize>(mut x: &mut [f32], width: usize) -> [&mut [f32]; N] {
    core::array::from_fn(|_| x.split_off_mut(..width).expect("N times the width"))
}

/// `len` elements as rows of one length and a shorter last one: rows, width and the range of elements.
pub(crate) fn flat(len: usize) -> [([usize; 2], Range<usize>); 2] {
    const ROW: usize = 256;
    let whole = len / ROW * ROW;
    [([len / ROW, ROW], 0..whole), ([1, len % ROW], whole..len)]
}

/// Multiplies every element of `row` by `factor`.
#[inline(always)]
pub(crate) fn scale<S: Simd>(simd: S, row: &mut [f32], factor: S::f32s) {
    for at in (0..row.len()).step_by(S::F32_LANES) {
        let value = simd.mul_f32s(simd::load(simd, row, at), factor);
        simd::put(simd, row, at, value);
    }
}

/// Loads one vector from `source[at..]`; lanes past the end of the slice are `fill`.
#[inline(always)]
pub(crate) fn load_or<S: Simd>(simd: S, source: &[f32], at: usize, fill: f32) -> S::f32s {
    let rest = &source[at..];
    if rest.len() >= S::F32_LANES {
        return simd::load(simd, rest, 0);
    }
    let mut lanes = [fill; 64];
    lanes[..rest.len()].copy_from_slice(rest);
    simd::load(simd, &lanes, 0)
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;

    #[test]
    fn column_sums_cover_every_row_once() {
        for rows in [0, 1, 127, 128, 129, 1000] {
            let partial = for_each_block(rows, 2, 2, |range, sums| {
                for row in range {
                    sums[0] += row as f32;
                    sums[1] += 1.0;
                }
            });
            let mut out = [f32::NAN];
            combine(&partial, 2, 0, Out::new(&mut out));
            assert_eq!(out, [(0..rows).sum::<usize>() as f32]);
            combine(&partial, 2, 1, Out::new(&mut out));
            assert_eq!(out, [rows as f32]);
        }
    }
}
