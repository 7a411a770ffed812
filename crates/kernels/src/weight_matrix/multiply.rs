//! The product: y = x Wᵀ + bias for a range of outputs, on one thread.
//!
//! ```text
//! for every few blocks of 16 outputs:  for every few rows:  sums = 0
//!     for k in inputs:  w = weights of input k as f32;  for every row:  sums[row] += x[row, k] · w
//!     y = scale · sums + bias
//! ```
//!
//! Every sum runs over the inputs in order, in stretches of [`PART`], on its own: the result for a row and an output depends neither on
//! which other rows and outputs are computed with it nor on how they are split into calls. Departures from the above:
//!
//! 1. A tile of up to twelve rows (fewer with fewer registers) decodes a weight in a register and uses it for all of them. With more rows
//!    weights are decoded again for every tile, out of the nearest cache. Against decoding a panel of outputs to memory first, 64 rows
//!    with AVX-512 gain (261 against 231 GFLOP/s for bf16, 253 against 238 for int8) but for int4 (211 against 235); with AVX2, whose
//!    registers hold fewer rows, int8 and int4 lose (109 against 130, 89 against 127). One way for all is worth that.
//! 2. A tile with fewer rows than it has room for repeats its last row and drops what comes out.
//! 3. Rows come in stretches whose inputs stay in the second cache while all blocks pass.

#![allow(clippy::needless_range_loop, reason = "arrays are longer than the vectors of a block; one index walks several")]

use super::codec::{Codec, put_vector, vector};
use super::layout::{BLOCK, Layout, Line};
use crate::product::as_out;
use crate::simd::{self, Simd, WithSimd};
use core::marker::PhantomData;
use core::ops::Range;

/// Inputs of the rows of a stretch: 256 KiB.
const STRETCH: usize = 1 << 16;
/// Inputs summed at a stretch; the sums of stretches are then added up, so that the error grows little with longer rows.
const PART: usize = 256;
/// Most vectors of a block, at four lanes each.
const VECTORS: usize = 4;

/// What is multiplied with what. `x` has `stride` elements a row, a multiple of the inputs of a word that covers every word.
pub(super) struct Product<'a, C> {
    pub format: PhantomData<C>,
    pub layout: Layout,
    /// `blocks · words` lines.
    pub lines: &'a [Line],
    /// `blocks · layout.scales` lines.
    pub scales: &'a [Line],
    pub rows: usize,
    pub x: &'a [f32],
    pub stride: usize,
    pub outputs: Range<usize>,
    /// Where the first output of the first row goes.
    pub y: *mut f32,
    pub y_stride: usize,
    /// Of all outputs.
    pub bias: Option<&'a [f32]>,
}

impl<C: Codec> WithSimd for Product<'_, C> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // Tiles fill the registers: 32 with 16 lanes, 16 with 8 lanes. Scales of groups need some of them.
        let grouped = C::GROUP < usize::MAX;
        match (S::F32_LANES, self.rows) {
            (16, 1) => self.run::<S, 1, 1, 1, 4>(simd),
            (16, 2) => self.run::<S, 2, 2, 2, 4>(simd),
            (16, 3..=4) => self.run::<S, 4, 4, 4, 4>(simd),
            (16, _) if grouped => self.run::<S, 8, 6, 4, 2>(simd),
            (16, _) => self.run::<S, 12, 8, 4, 2>(simd),
            (8, 1) => self.run::<S, 1, 1, 1, 4>(simd),
            (8, 2) => self.run::<S, 2, 2, 2, 2>(simd),
            (8, _) if grouped => self.run::<S, 4, 3, 2, 1>(simd),
            (8, _) => self.run::<S, 6, 4, 2, 1>(simd),
            (_, 1) => self.run::<S, 1, 1, 1, 2>(simd),
            (_, _) => self.run::<S, 4, 3, 2, 1>(simd),
        }
    }
}

impl<C: Codec> Product<'_, C> {
    /// Everything, in tiles of `N` blocks and `R`, `R2` or `R3` rows, whichever leave least room empty.
    #[inline(always)]
    fn run<S: Simd, const R: usize, const R2: usize, const R3: usize, const N: usize>(&self, simd: S) {
        let at_once = (STRETCH / self.stride.max(1) / R).max(1) * R;
        for row in (0..self.rows).step_by(at_once) {
            let rows = row..self.rows.min(row + at_once);
            let end = self.outputs.end.div_ceil(BLOCK);
            let mut block = self.outputs.start / BLOCK;
            while block < end {
                // Blocks of one tile lie at the same distance from word to word.
                let even = |n: usize| block + n <= end && self.layout.block(block).1 == self.layout.block(block + n - 1).1;
                block += if N >= 4 && even(4) {
                    self.tiles::<S, R, R2, R3, 4>(simd, block, rows.clone())
                } else if N >= 2 && even(2) {
                    self.tiles::<S, R, R2, R3, 2>(simd, block, rows.clone())
                } else {
                    self.tiles::<S, R, R2, R3, 1>(simd, block, rows.clone())
                };
            }
        }
    }

    /// `N` blocks from `block` on for the rows `rows`.
    #[inline(always)]
    fn tiles<S: Simd, const R: usize, const R2: usize, const R3: usize, const N: usize>(
        &self,
        simd: S,
        block: usize,
        rows: Range<usize>,
    ) -> usize {
        let mut row = rows.start;
        while row < rows.end {
            row += match rows.end - row {
                left if left > 2 * R2 || left > R2 && left <= R => self.tile::<S, R, N>(simd, block, row),
                left if left > R3 => self.tile::<S, R2, N>(simd, block, row),
                _ => self.tile::<S, R3, N>(simd, block, row),
            };
        }
        N
    }

    /// `N` blocks from `block` on for at most `R` rows from `row` on.
    #[inline(always)]
    fn tile<S: Simd, const R: usize, const N: usize>(&self, simd: S, block: usize, row: usize) -> usize {
        let sums = simd.vectorize(Tile::<C, R, N> {
            lines: self.lines,
            first: core::array::from_fn(|n| self.layout.block(block + n).0),
            step: self.layout.block(block).1,
            words: self.layout.words,
            scales: core::array::from_fn(|n| self.scales_of(block + n)),
            x: core::array::from_fn(|r| &self.x[(row + r).min(self.rows - 1) * self.stride..][..self.stride]),
            format: PhantomData,
        });
        for (r, sums) in sums.iter().enumerate().take(self.rows - row) {
            for (n, sums) in sums.iter().enumerate() {
                self.put(simd, sums, block + n, row + r);
            }
        }
        R
    }

    #[inline(always)]
    fn scales_of(&self, block: usize) -> &[Line] {
        &self.scales[block * self.layout.scales..][..self.layout.scales]
    }

    /// Finishes the sums of a block and writes those that are wanted.
    #[inline(always)]
    fn put<S: Simd>(&self, simd: S, sums: &Line, block: usize, row: usize) {
        let mut values = [0.0; BLOCK];
        let scales = self.scales_of(block);
        let first = block * BLOCK;
        let from = self.outputs.start.max(first);
        let until = self.outputs.end.min(first + BLOCK);
        for at in (0..BLOCK).step_by(S::F32_LANES) {
            let sum = simd.transmute_f32s_u32s(vector(simd, sums, at));
            let mut value = C::finish(simd, scales, at, sum);
            if let Some(bias) = self.bias.and_then(|bias| bias.get(first + at..)) {
                value = simd.add_f32s(value, simd::load(simd, bias, 0));
            }
            simd::store(simd, as_out(&mut values), at, value);
        }
        let wanted = &values[from - first..until - first];
        // SAFETY: the outputs `from..until` of a row lie in the target, which nobody else uses, by the contract of `Product`.
        unsafe {
            let y = self.y.add(row * self.y_stride + from - self.outputs.start);
            if wanted.len() == BLOCK {
                y.cast::<[f32; BLOCK]>().write_unaligned(values);
            } else {
                y.copy_from_nonoverlapping(wanted.as_ptr(), wanted.len());
            }
        }
    }
}

/// Sums of `N` blocks for `R` rows.
struct Tile<'a, D, const R: usize, const N: usize> {
    lines: &'a [Line],
    /// Where each block begins.
    first: [usize; N],
    /// Lines from one word to the next.
    step: usize,
    words: usize,
    scales: [&'a [Line]; N],
    x: [&'a [f32]; R],
    format: PhantomData<D>,
}

impl<D: Codec, const R: usize, const N: usize> WithSimd for Tile<'_, D, R, N> {
    type Output = [[Line; N]; R];

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
        let Self { lines, first, step, words, .. } = self;
        for x in self.x {
            assert!(x.len() == words * D::INPUTS);
        }
        for first in first {
            assert!(words == 0 || first + (words - 1) * step < lines.len());
        }
        let x = self.x.map(<[f32]>::as_ptr);
        let mut totals = [[Line([0; BLOCK]); N]; R];
        let mut word = 0;
        while word < words {
            let part_end = words.min(word + PART / D::INPUTS);
            let mut sums = [[[simd.splat_f32s(0.0); VECTORS]; N]; R];
            while word < part_end {
                let scales = scales::<S, D, N>(simd, self.scales, word / D::GROUP);
                let group_end = part_end.min(word.saturating_add(D::GROUP));
                while word < group_end {
                    let mut loaded = [[simd.splat_u32s(0); VECTORS]; N];
                    for n in 0..N {
                        for v in 0..BLOCK / S::F32_LANES {
                            // SAFETY: `word < words`, whose lines lie in `lines` as asserted above.
                            let line = unsafe { lines.get_unchecked(first[n] + word * step) };
                            loaded[n][v] = vector(simd, line, v * S::F32_LANES);
                        }
                    }
                    macro_rules! weights {
                        ($($j:literal)*) => {$(
                            if $j < D::INPUTS {
                                // SAFETY: `word · INPUTS + j` is less than the length of every row of x as asserted above.
                                unsafe { add::<S, D, $j, R, N>(simd, &loaded, &scales, x, word * D::INPUTS + $j, &mut sums) };
                            }
                        )*};
                    }
                    weights!(0 1 2 3 4 5 6 7);
                    word += 1;
                }
            }
            for r in 0..R {
                for n in 0..N {
                    for v in 0..BLOCK / S::F32_LANES {
                        let total = simd.transmute_f32s_u32s(vector(simd, &totals[r][n], v * S::F32_LANES));
                        put_vector(simd, &mut totals[r][n], v * S::F32_LANES, simd.add_f32s(total, sums[r][n][v]));
                    }
                }
            }
        }
        totals
    }
}

#[inline(always)]
fn scales<S: Simd, D: Codec, const N: usize>(simd: S, lines: [&[Line]; N], group: usize) -> [[D::Scale<S>; VECTORS]; N] {
    let mut scales = [[D::scale(simd, lines[0], group, 0); VECTORS]; N];
    for n in 0..N {
        for v in 0..BLOCK / S::F32_LANES {
            scales[n][v] = D::scale(simd, lines[n], group, v * S::F32_LANES);
        }
    }
    scales
}

/// Adds weight `J` of the loaded words times element `k` of the rows.
///
/// # Safety
/// The rows have more than `k` elements.
#[inline(always)]
unsafe fn add<S: Simd, D: Codec, const J: usize, const R: usize, const N: usize>(
    simd: S,
    loaded: &[[S::u32s; VECTORS]; N],
    scales: &[[D::Scale<S>; VECTORS]; N],
    x: [*const f32; R],
    k: usize,
    sums: &mut [[[S::f32s; VECTORS]; N]; R],
) {
    let mut weights = [[simd.splat_f32s(0.0); VECTORS]; N];
    for n in 0..N {
        for v in 0..BLOCK / S::F32_LANES {
            weights[n][v] = D::decode::<S, J>(simd, loaded[n][v], scales[n][v]);
        }
    }
    for r in 0..R {
        // SAFETY: by the caller's promise.
        let x = simd.splat_f32s(unsafe { *x[r].add(k) });
        for n in 0..N {
            for v in 0..BLOCK / S::F32_LANES {
                sums[r][n][v] = multiply_add(simd, x, weights[n][v], sums[r][n][v]);
            }
        }
    }
}

/// `x · w + sum`, rounded once where an instruction does that. The plain level would call a function for it, a slow one without `std`.
#[inline(always)]
fn multiply_add<S: Simd>(simd: S, x: S::f32s, w: S::f32s, sum: S::f32s) -> S::f32s {
    if S::F32_LANES > 4 || cfg!(target_arch = "aarch64") { simd.mul_add_e_f32s(x, w, sum) } else { simd.add_f32s(simd.mul_f32s(x, w), sum) }
}
