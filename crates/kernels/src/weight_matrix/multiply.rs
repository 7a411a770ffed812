//! The product: y = x Wᵀ + bias for a range of outputs, on one thread.
//!
//! ```text
//! for every few blocks of 16 outputs:  for every few rows:  sums = 0
//!     for k in inputs:  w = weights of input k as f32;  for every row:  sums[row] += x[row, k] · w
//!     y = scale · sums + bias
//! ```
//!
//! Every sum runs over the inputs in order, in stretches of [`PART`], on its own: the result for a row and an output depends neither on which other rows and
//! outputs are computed with it nor on how they are split into calls. Departures from the above:
//!
//! 1. Up to eight rows (fewer with fewer registers) decode each weight in a register and use it for all of them at once.
//! 2. More rows decode a panel of outputs into scratch, once per [`ROWS`] rows, so that a decoded panel stays in a near cache while the
//!    tiles of rows pass. Weights that are f32 already are read where they lie.
//! 3. A tile with fewer rows than it has room for repeats its last row and drops what comes out.

#![allow(clippy::needless_range_loop, reason = "arrays are longer than the vectors of a block; one index walks several")]

use super::codec::{Codec, put_vector, vector};
use super::layout::{BLOCK, Layout, Line};
use super::single::F32;
use crate::product::as_out;
use crate::simd::{self, Simd, WithSimd};
use core::marker::PhantomData;
use core::ops::Range;

/// Rows that pass a decoded panel: enough to hide the decoding, few enough for their inputs to stay in the second cache.
const ROWS: usize = 240;
/// Inputs summed at a stretch; the sums of stretches are then added up, which halves the error of long rows.
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
    pub outputs: Range<usize>,
    /// Where the first output of the first row goes.
    pub y: *mut f32,
    pub y_stride: usize,
    /// Of all outputs.
    pub bias: Option<&'a [f32]>,
    /// Lines for two decoded blocks, unless weights are stored as f32.
    pub panel: &'a mut [Line],
}

impl<C: Codec> WithSimd for Product<'_, C> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { layout, lines, scales, rows, x, outputs, y, y_stride, bias, panel, .. } = self;
        let to = Target { layout, scales, rows, x, stride: layout.words * C::INPUTS, outputs, y, y_stride, bias };
        match (S::F32_LANES, rows) {
            (16, 1) => to.direct::<S, C, 1, 4>(simd, lines),
            (16, 2) => to.direct::<S, C, 2, 4>(simd, lines),
            (16, 3..=4) => to.direct::<S, C, 4, 4>(simd, lines),
            (16, 5..=8) => to.direct::<S, C, 8, 2>(simd, lines),
            (16, _) => to.by_panels::<S, C, 12, 8, 4, 2>(simd, lines, panel),
            (8, 1) => to.direct::<S, C, 1, 4>(simd, lines),
            (8, 2) => to.direct::<S, C, 2, 2>(simd, lines),
            (8, 3..=4) => to.direct::<S, C, 4, 1>(simd, lines),
            (8, _) => to.by_panels::<S, C, 6, 4, 2, 1>(simd, lines, panel),
            (_, 1) => to.direct::<S, C, 1, 2>(simd, lines),
            (_, 2) => to.direct::<S, C, 2, 1>(simd, lines),
            (_, _) => to.by_panels::<S, C, 4, 3, 2, 1>(simd, lines, panel),
        }
    }
}

/// Everything but the weights' numbers.
struct Target<'a> {
    layout: Layout,
    scales: &'a [Line],
    rows: usize,
    x: &'a [f32],
    stride: usize,
    outputs: Range<usize>,
    y: *mut f32,
    y_stride: usize,
    bias: Option<&'a [f32]>,
}

/// The first lines of the blocks of a tile, lines from word to word, and words of a row.
#[derive(Clone, Copy)]
struct Source<'a, const N: usize> {
    lines: &'a [Line],
    first: [usize; N],
    step: usize,
    words: usize,
}

impl Target<'_> {
    /// Cuts the blocks with the wanted outputs into runs of at most `N` that lie evenly, and hands out their first and their number,
    /// which is `N` or less.
    #[inline(always)]
    fn blocks<const N: usize>(&self, mut work: impl FnMut(usize, usize)) {
        let end = self.outputs.end.div_ceil(BLOCK);
        let mut block = self.outputs.start / BLOCK;
        while block < end {
            let even = |n: usize| block + n <= end && self.layout.block(block).1 == self.layout.block(block + n - 1).1;
            let n = if N >= 4 && even(4) {
                4
            } else if N >= 2 && even(2) {
                2
            } else {
                1
            };
            work(block, n);
            block += n;
        }
    }

    fn stored<'a, C: Codec, const N: usize>(&self, lines: &'a [Line], block: usize) -> Source<'a, N> {
        let first = core::array::from_fn(|n| self.layout.block(block + n).0);
        Source { lines, first, step: self.layout.block(block).1, words: self.layout.words }
    }

    /// At most `R` rows, every weight decoded in a register.
    #[inline(always)]
    fn direct<S: Simd, C: Codec, const R: usize, const N: usize>(&self, simd: S, lines: &[Line]) {
        self.blocks::<N>(
            #[inline(always)]
            |block, n| match n {
                4 if N >= 4 => self.tile::<S, C, C, R, 4>(simd, self.stored::<C, 4>(lines, block), block, 0),
                2 if N >= 2 => self.tile::<S, C, C, R, 2>(simd, self.stored::<C, 2>(lines, block), block, 0),
                _ => self.tile::<S, C, C, R, 1>(simd, self.stored::<C, 1>(lines, block), block, 0),
            },
        );
    }

    /// Any number of rows in tiles of `R`, the last of `R2` or `R3` where those are enough.
    #[inline(always)]
    fn by_panels<S: Simd, C: Codec, const R: usize, const R2: usize, const R3: usize, const N: usize>(
        &self,
        simd: S,
        lines: &[Line],
        panel: &mut [Line],
    ) {
        for row in (0..self.rows).step_by(ROWS) {
            let rows = row..self.rows.min(row + ROWS);
            self.blocks::<N>(
                #[inline(always)]
                |block, n| match n {
                    2 if N >= 2 => {
                        let source = self.decoded::<S, C, 2>(simd, lines, block, panel);
                        self.tiles::<S, C, R, R2, R3, 2>(simd, source, block, rows.clone());
                    }
                    _ => {
                        let source = self.decoded::<S, C, 1>(simd, lines, block, panel);
                        self.tiles::<S, C, R, R2, R3, 1>(simd, source, block, rows.clone());
                    }
                },
            );
        }
    }

    #[inline(always)]
    fn tiles<S: Simd, C: Codec, const R: usize, const R2: usize, const R3: usize, const N: usize>(
        &self,
        simd: S,
        source: Source<'_, N>,
        block: usize,
        rows: Range<usize>,
    ) {
        let mut row = rows.start;
        while row < rows.end {
            row += match rows.end - row {
                left if left > R2 => {
                    self.tile::<S, F32, C, R, N>(simd, source, block, row);
                    R
                }
                left if left > R3 => {
                    self.tile::<S, F32, C, R2, N>(simd, source, block, row);
                    R2
                }
                _ => {
                    self.tile::<S, F32, C, R3, N>(simd, source, block, row);
                    R3
                }
            };
        }
    }

    /// The weights of `N` blocks as f32, in scratch unless they are stored so.
    #[inline(always)]
    fn decoded<'a, S: Simd, C: Codec, const N: usize>(
        &self,
        simd: S,
        lines: &'a [Line],
        block: usize,
        panel: &'a mut [Line],
    ) -> Source<'a, N> {
        let source = self.stored::<C, N>(lines, block);
        if C::INPUTS == 1 {
            return source;
        }
        let panel = &mut panel[..N * self.stride];
        simd.vectorize(Decode::<C, N> { source, scales: core::array::from_fn(|n| self.scales_of(block + n)), panel, format: PhantomData });
        Source { lines: panel, first: core::array::from_fn(|n| n), step: N, words: self.stride }
    }

    #[inline(always)]
    fn scales_of(&self, block: usize) -> &[Line] {
        &self.scales[block * self.layout.scales..][..self.layout.scales]
    }

    /// `R` rows from `row` on times `N` blocks from `block` on; weights decoded by `D`, sums finished by `C`.
    #[inline(always)]
    fn tile<S: Simd, D: Codec, C: Codec, const R: usize, const N: usize>(&self, simd: S, source: Source<'_, N>, block: usize, row: usize) {
        let tile = Tile::<D, R, N> {
            source,
            scales: core::array::from_fn(|n| if D::INPUTS == C::INPUTS { self.scales_of(block + n) } else { &[] }),
            x: core::array::from_fn(|r| &self.x[(row + r).min(self.rows - 1) * self.stride..][..self.stride]),
            format: PhantomData,
        };
        let sums = simd.vectorize(tile);
        for (r, sums) in sums.iter().enumerate().take(self.rows - row) {
            for (n, sums) in sums.iter().enumerate() {
                self.put::<S, C>(simd, sums, block + n, row + r);
            }
        }
    }

    /// Finishes the sums of a block and writes those that are wanted.
    #[inline(always)]
    fn put<S: Simd, C: Codec>(&self, simd: S, sums: &Line, block: usize, row: usize) {
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
    source: Source<'a, N>,
    scales: [&'a [Line]; N],
    x: [&'a [f32]; R],
    format: PhantomData<D>,
}

impl<D: Codec, const R: usize, const N: usize> WithSimd for Tile<'_, D, R, N> {
    type Output = [[Line; N]; R];

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
        let Source { lines, first, step, words } = self.source;
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
                sums[r][n][v] = simd.mul_add_e_f32s(x, weights[n][v], sums[r][n][v]);
            }
        }
    }
}

/// Writes `N` blocks as f32, the lines of an input beside each other.
struct Decode<'a, D, const N: usize> {
    source: Source<'a, N>,
    scales: [&'a [Line]; N],
    panel: &'a mut [Line],
    format: PhantomData<D>,
}

impl<D: Codec, const N: usize> WithSimd for Decode<'_, D, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Source { lines, first, step, words } = self.source;
        assert!(self.panel.len() == words * D::INPUTS * N);
        for word in 0..words {
            let scales = scales::<S, D, N>(simd, self.scales, word / D::GROUP);
            for n in 0..N {
                for v in 0..BLOCK / S::F32_LANES {
                    let at = v * S::F32_LANES;
                    let loaded = vector(simd, &lines[first[n] + word * step], at);
                    macro_rules! weights {
                        ($($j:literal)*) => {$(
                            if $j < D::INPUTS {
                                let weight = D::decode::<S, $j>(simd, loaded, scales[n][v]);
                                put_vector(simd, &mut self.panel[(word * D::INPUTS + $j) * N + n], at, weight);
                            }
                        )*};
                    }
                    weights!(0 1 2 3 4 5 6 7);
                }
            }
        }
    }
}
