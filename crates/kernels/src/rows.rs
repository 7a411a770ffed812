//! Work over the rows of a matrix, with column sums taken in the same pass.
//!
//! Rows are cut into blocks of a fixed size, so that a block's column sums fit the nearest cache and lose little in f32; the blocks are
//! added in f64 in index order. The cut depends on the number of rows alone, so sums do not change with the number of threads.

use crate::grid::{self, SharedOut};
use crate::matmul::as_out;
use crate::shape::{Out, elements};
use crate::simd::{self, Simd};
use alloc::vec;
use alloc::vec::Vec;
use core::mem::MaybeUninit;
use core::ops::Range;

/// Rows of one block.
const BLOCK: usize = 128;
/// Fewest elements worth a task of their own.
const TASK: usize = 1 << 15;

/// Runs `work(rows of the block, its sums)` for every block of `rows` rows of `width` elements; each block adds into `sums` numbers of
/// its own that start at 0 (for none when `width` is 0). Returns the sums of all blocks, `[blocks, sums]`.
pub(crate) fn for_each_block(rows: usize, width: usize, sums: usize, work: impl Fn(Range<usize>, &mut [f32]) + Sync + Send) -> Vec<f32> {
    let blocks = if width == 0 { 0 } else { rows.div_ceil(BLOCK) };
    let per_task = (TASK / BLOCK / width.max(1)).max(1);
    let mut partial = vec![MaybeUninit::new(0.0); elements([blocks, sums])];
    let shared = SharedOut::new(&mut partial);
    grid::for_each(blocks.div_ceil(per_task), |task| {
        for block in task * per_task..((task + 1) * per_task).min(blocks) {
            // SAFETY: every block has its own sums.
            let own = unsafe { shared.slice(block * sums, sums) };
            // SAFETY: initialised with 0 above.
            let own = unsafe { core::slice::from_raw_parts_mut(own.as_mut_ptr().cast::<f32>(), sums) };
            work(block * BLOCK..((block + 1) * BLOCK).min(rows), own);
        }
    });
    // SAFETY: initialised with 0 above.
    partial.into_iter().map(|x| unsafe { x.assume_init() }).collect()
}

/// Writes the sum over blocks of the columns `from..from + out.len()` of `partial` `[blocks, sums]`.
pub(crate) fn combine(partial: &[f32], sums: usize, from: usize, out: Out) {
    let mut total = vec![0.0f64; out.len()];
    for block in partial.chunks_exact(sums.max(1)) {
        for (total, &x) in total.iter_mut().zip(&block[from..]) {
            *total += f64::from(x);
        }
    }
    for (out, total) in out.iter_mut().zip(total) {
        out.write(total as f32);
    }
}

/// Adds one vector to `sums[at..]`; lanes past the end are dropped.
#[inline(always)]
pub(crate) fn accumulate<S: Simd>(simd: S, sums: &mut [f32], at: usize, value: S::f32s) {
    let total = simd.add_f32s(simd::load(simd, sums, at), value);
    put(simd, sums, at, total);
}

/// `value + more[at..]`, or `value` where there is no more.
#[inline(always)]
pub(crate) fn plus<S: Simd>(simd: S, value: S::f32s, more: Option<&[f32]>, at: usize) -> S::f32s {
    match more {
        Some(more) => simd.add_f32s(value, simd::load(simd, more, at)),
        None => value,
    }
}

/// Stores one vector to `row[at..]`; lanes past the end are dropped.
#[inline(always)]
pub(crate) fn put<S: Simd>(simd: S, row: &mut [f32], at: usize, value: S::f32s) {
    simd::store(simd, as_out(row), at, value);
}

/// Multiplies every element of `row` by `factor`.
#[inline(always)]
pub(crate) fn scale<S: Simd>(simd: S, row: &mut [f32], factor: S::f32s) {
    for at in (0..row.len()).step_by(S::F32_LANES) {
        let value = simd.mul_f32s(simd::load(simd, row, at), factor);
        put(simd, row, at, value);
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
            let mut out = [MaybeUninit::new(f32::NAN); 1];
            combine(&partial, 2, 0, &mut out);
            // SAFETY: written by `combine`.
            assert_eq!(unsafe { out[0].assume_init() }, (0..rows).sum::<usize>() as f32);
            combine(&partial, 2, 1, &mut out);
            // SAFETY: written by `combine`.
            assert_eq!(unsafe { out[0].assume_init() }, rows as f32);
        }
    }
}
