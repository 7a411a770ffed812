//! The product on CPUs that multiply pairs of bf16: x is rounded to bf16 too, sums stay f32.
//!
//! A line of the layout is what one instruction takes: two neighbouring inputs of each of 16 outputs. It multiplies them by a pair of x
//! and adds both products to 16 sums, so that no weight is decoded.
//!
//! ```text
//! for every few hundred rows:  pack their x as pairs of bf16, part by part of the inputs
//!     for every few blocks of 16 outputs, for every part of the inputs, for every tile of rows:
//!         sums = 0;  for each pair of the part:  for every row:  sums[row] += x[row, pair] · w
//!         y = y (after the first part) + sums + bias (after the last)
//! ```
//!
//! Parts are as few and as equal as [`PART`] and the number of inputs allow, and every sum runs through its part in order: the result for
//! a row and an output depends on nothing else. A part of two blocks (24 KiB) and of the twelve rows of a tile (9 KiB) stay in the
//! first-level cache, all packed rows in the second.
//!
//! [`super::tiles`] takes the same packed rows through AMX.

use super::layout::{BLOCK, Layout, Line};
use crate::grid;
use alloc::vec::Vec;
use core::arch::x86_64::*;
use core::ops::Range;

/// Most words of a part.
const PART: usize = 192;
/// Lines from one row of packed x to the next: a part and one more, so that rows share no cache set.
pub(super) const ROW: usize = PART / BLOCK + 1;
/// Most lines of packed rows: 320 KiB.
const PACKED: usize = 5 << 10;
/// Most rows of a tile.
const ROWS: usize = 12;

/// What is multiplied by what.
pub(super) struct Product<'a> {
    pub layout: Layout,
    /// `blocks · words` lines.
    pub lines: &'a [Line],
    pub rows: usize,
    pub inputs: usize,
    /// `[rows, inputs]`.
    pub x: &'a [f32],
    pub outputs: Range<usize>,
    /// Where the first output of the first row goes.
    pub y: *mut f32,
    pub y_stride: usize,
    /// Of all outputs.
    pub bias: Option<&'a [f32]>,
    /// Parts begin at multiples of this many words.
    pub step: usize,
}

impl Product<'_> {
    /// Computes everything; `packed` grows to what x needs.
    ///
    /// # Safety
    /// The CPU has AVX-512 F, BW and VL, and AVX512-BF16; `outputs` of every row lie in the target, which nothing else uses.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
    pub unsafe fn run(&self, packed: &mut Vec<Line>) {
        // SAFETY: the caller's promise; the rows of a stretch are packed.
        unsafe {
            self.by_stretches(ROWS, packed, |stretch| {
                // 4 blocks of a panel follow each other in memory; 2 leave registers for more rows.
                match stretch.rows.len() {
                    1 => stretch.run::<1, 1, 1, 4>(),
                    2 => stretch.run::<2, 2, 2, 4>(),
                    3..=4 => stretch.run::<4, 4, 4, 4>(),
                    5..=6 => stretch.run::<6, 6, 6, 4>(),
                    _ => stretch.run::<ROWS, 8, 4, 2>(),
                }
            });
        }
    }

    /// Packs a few hundred rows at a time and passes them to `work`; a tile has at most `most` rows.
    ///
    /// # Safety
    /// As for [`Product::run`].
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
    pub(super) unsafe fn by_stretches(&self, most: usize, packed: &mut Vec<Line>, work: impl Fn(&Stretch<'_>)) {
        let parts = self.parts();
        let at_once = (PACKED / (parts * ROW * most)).max(1) * most;
        for first in (0..self.rows).step_by(at_once) {
            let rows = first..self.rows.min(first + at_once);
            // A tile with fewer rows than it has room for reads past them, and discards the results.
            let height = rows.len() + most - 1;
            if packed.len() < parts * height * ROW {
                packed.resize(parts * height * ROW, Line([0; BLOCK]));
            }
            // SAFETY: the caller's promise; `packed` has room for `parts` times `height` rows.
            unsafe { self.pack(rows.clone(), height, packed.as_mut_ptr()) };
            work(&Stretch { product: self, rows, height, packed: packed.as_ptr() });
        }
    }

    /// Number of parts of the inputs: at least one, which is empty if there are no inputs.
    pub(super) fn parts(&self) -> usize {
        self.layout.words.div_ceil(PART).max(1)
    }

    /// The words of part `p`.
    fn part(&self, p: usize) -> Range<usize> {
        let piece = grid::piece(self.layout.words.div_ceil(self.step), self.parts(), p);
        piece.start * self.step..self.layout.words.min(piece.end * self.step)
    }

    /// Rounds x: the pairs of part `p` of the row `r` of `rows` go to the lines from `(p · height + r) · ROW` on.
    ///
    /// # Safety
    /// As for [`Product::run`]; `packed` has room for them.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
    unsafe fn pack(&self, rows: Range<usize>, height: usize, packed: *mut Line) {
        const INPUTS: usize = 2 * BLOCK;
        let first = |count: usize| if count >= BLOCK { !0 } else { (1 << count) - 1 };
        let parts = self.parts();
        for (r, row) in rows.enumerate() {
            let x = &self.x[row * self.inputs..][..self.inputs];
            for p in 0..parts {
                let words = self.part(p);
                let x = &x[2 * words.start..x.len().min(2 * words.end)];
                for (i, x) in x.chunks(INPUTS).enumerate() {
                    // SAFETY: what lies past the end of `x` is not read; a part fits a row of `packed`.
                    unsafe {
                        let low = _mm512_maskz_loadu_ps(first(x.len()), x.as_ptr());
                        let high = _mm512_maskz_loadu_ps(first(x.len().saturating_sub(BLOCK)), x.as_ptr().wrapping_add(BLOCK));
                        let line = packed.add((p * height + r) * ROW + i);
                        line.cast::<__m512bh>().write(_mm512_cvtne2ps_pbh(high, low));
                    }
                }
            }
        }
    }
}

/// The rows whose x is packed at a time.
pub(super) struct Stretch<'a> {
    pub product: &'a Product<'a>,
    pub rows: Range<usize>,
    height: usize,
    packed: *const Line,
}

impl Stretch<'_> {
    /// Every output in tiles of at most `N` blocks and `R`, `R2` or `R3` rows, whichever leaves the least room empty.
    ///
    /// # Safety
    /// As for [`Product::run`]; the rows are packed.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
    unsafe fn run<const R: usize, const R2: usize, const R3: usize, const N: usize>(&self) {
        let Product { layout, outputs, .. } = self.product;
        let end = outputs.end.div_ceil(BLOCK);
        let mut block = outputs.start / BLOCK;
        while block < end {
            // All blocks of a tile have the same distance from word to word.
            let even = |n: usize| block + n <= end && layout.block(block).1 == layout.block(block + n - 1).1;
            // SAFETY: the caller's promise.
            unsafe {
                block += if N >= 4 && even(4) {
                    self.tiles::<R, R2, R3, 4>(block)
                } else if even(2) {
                    self.tiles::<R, R2, R3, 2>(block)
                } else {
                    self.tiles::<R, R2, R3, 1>(block)
                };
            }
        }
    }

    /// `N` blocks from `block` on for all rows.
    ///
    /// # Safety
    /// As for [`Stretch::run`].
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
    unsafe fn tiles<const R: usize, const R2: usize, const R3: usize, const N: usize>(&self, block: usize) -> usize {
        for p in 0..self.product.parts() {
            let first = self.tile::<N>(block, p);
            let mut row = 0;
            while row < self.rows.len() {
                let left = self.rows.len() - row;
                let tile = first.below(row);
                // SAFETY: the caller's promise, and that of `tile`.
                row += unsafe {
                    if left > 2 * R2 || left > R2 && left <= R {
                        tile.run::<R>(left)
                    } else if left > R3 {
                        tile.run::<R2>(left)
                    } else {
                        tile.run::<R3>(left)
                    }
                };
            }
        }
        N
    }

    /// Part `p` of `N` blocks from `block` on, for the rows from the first on: its lines lie in the matrix, the packed rows where `pack` put them, and
    /// the lanes of its mask in the target.
    pub(super) fn tile<const N: usize>(&self, block: usize, p: usize) -> Tile<N> {
        let Product { layout, lines, outputs, bias, y, y_stride, .. } = self.product;
        let first: [usize; N] = core::array::from_fn(|n| layout.block(block + n).0);
        let step = layout.block(block).1;
        for first in first {
            assert!(layout.words == 0 || first + (layout.words - 1) * step < lines.len());
        }
        // Lanes of each block that are wanted; the range touches every block.
        let mask = core::array::from_fn(|n| {
            let lane = |output: usize| output.clamp((block + n) * BLOCK, (block + n + 1) * BLOCK) - (block + n) * BLOCK;
            (((1u32 << lane(outputs.end)) - 1) & !((1u32 << lane(outputs.start)) - 1)) as __mmask16
        });
        let words = self.product.part(p);
        Tile {
            words: words.len(),
            x: self.packed.wrapping_add(p * self.height * ROW).cast::<i32>(),
            weights: first.map(|first| lines.as_ptr().wrapping_add(first + words.start * step)),
            step,
            y: y.wrapping_add(self.rows.start * y_stride + block * BLOCK).wrapping_sub(outputs.start),
            y_stride: *y_stride,
            mask,
            add: p > 0,
            bias: bias.filter(|_| p + 1 == self.product.parts()).map(|bias| bias.as_ptr().wrapping_add(block * BLOCK)),
        }
    }
}

/// A part of the sums of a few rows and `N` blocks.
#[derive(Clone, Copy)]
pub(super) struct Tile<const N: usize> {
    pub words: usize,
    /// Packed rows, [`ROW`] lines apart.
    pub x: *const i32,
    /// Where the part begins in each block.
    pub weights: [*const Line; N],
    /// Lines from one word to the next.
    pub step: usize,
    /// Where the first lane of the first block of the first row goes.
    pub y: *mut f32,
    pub y_stride: usize,
    /// Lanes of each block that are written.
    pub mask: [__mmask16; N],
    /// Whether `y` holds the sums of earlier parts, or words.
    pub add: bool,
    /// Of the first lane of the first block.
    pub bias: Option<*const f32>,
}

impl<const N: usize> Tile<N> {
    /// The same for rows from `row` on.
    pub fn below(self, row: usize) -> Self {
        Self { x: self.x.wrapping_add(row * ROW * BLOCK), y: self.y.wrapping_add(row * self.y_stride), ..self }
    }

    /// Computes `R` rows and writes at most `rows` of them; returns `R`.
    ///
    /// # Safety
    /// As for [`Product::run`]; `R` packed rows and the lines of the part are readable, the lanes of `rows` rows of `y` writable.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
    pub unsafe fn run<const R: usize>(&self, rows: usize) -> usize {
        // SAFETY: the caller's promise, for every operation below.
        unsafe {
            let mut sums = [[_mm512_setzero_ps(); N]; R];
            let (mut x, mut weights) = (self.x, self.weights);
            for _ in 0..self.words {
                let w: [__m512bh; N] = core::array::from_fn(|n| weights[n].cast::<__m512bh>().read());
                for (r, sums) in sums.iter_mut().enumerate() {
                    let x = pairs(_mm512_set1_epi32(*x.add(r * ROW * BLOCK)));
                    for (sum, w) in sums.iter_mut().zip(w) {
                        *sum = _mm512_dpbf16_ps(*sum, w, x);
                    }
                }
                x = x.wrapping_add(1);
                weights = weights.map(|line| line.wrapping_add(self.step));
            }
            for (r, sums) in sums.into_iter().enumerate().take(rows) {
                self.put(r, sums);
            }
        }
        R
    }

    /// Finishes the sums of row `r` and writes them.
    ///
    /// # Safety
    /// As for [`Tile::run`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
    pub unsafe fn put(&self, r: usize, sums: [__m512; N]) {
        for (n, mut sum) in sums.into_iter().enumerate() {
            let (mask, y) = (self.mask[n], self.y.wrapping_add(r * self.y_stride + n * BLOCK));
            // SAFETY: the caller's promise: the lanes of the mask are readable and writable.
            unsafe {
                if self.add {
                    sum = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, y), sum);
                }
                if let Some(bias) = self.bias {
                    sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, bias.wrapping_add(n * BLOCK)));
                }
                _mm512_mask_storeu_ps(y, mask, sum);
            }
        }
    }
}

/// Sixteen words as pairs of bf16.
#[inline(always)]
fn pairs(words: __m512i) -> __m512bh {
    // SAFETY: both are 64 bytes of plain data.
    unsafe { core::mem::transmute(words) }
}
