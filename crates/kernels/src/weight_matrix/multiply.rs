//! The product: y = x Wᵀ + bias for a range of outputs, on one thread.
//!
//! ```text
//! for every few blocks of 16 outputs:  for every few rows:  sums = 0
//!     for k in inputs:  w = weights of input k, unpacked;  for every row:  sums[row] += x[row, k] · w
//!     y = scale · sums + bias
//! ```
//!
//! Every sum runs over the inputs in order, in parts of [`PART`] units, independently: the result for a row and an output depends neither
//! on which other rows and outputs are computed with it nor on how they are split into calls. Departures from the above:
//!
//! 1. A tile of up to twelve rows (fewer with fewer registers) unpacks a weight in a register and uses it for all of them. With more rows
//!    weights are unpacked again for every tile, from the nearest cache: unpacking bf16 and integers to memory for all tiles was slower.
//!    Copying f32 was faster with narrow vectors ([`super::panels`]).
//! 2. A tile with fewer rows than it has room for repeats its last row and discards the result.
//! 3. Rows are processed in stretches whose inputs stay in the second-level cache while all blocks pass.

#[cfg(all(target_arch = "x86_64", feature = "std"))]
use super::bytes;
use super::codec::{Codec, PART};
use super::layout::{Layout, Line, PANEL};
use super::prefetch::{NEAR, Prefetcher, RUN};
use super::rows::Rows;
use super::target::{Part, Target};
use super::tile::Tile;
use crate::simd::{Simd, WithSimd};
use alloc::vec::Vec;
use core::marker::PhantomData;
use core::ops::Range;

/// Units of the rows of a stretch: 256 KiB.
const STRETCH: usize = 1 << 16;

/// What is multiplied by what, where the result goes, and memory for copied weights.
pub(super) struct Product<'a, C> {
    pub format: PhantomData<C>,
    pub layout: Layout,
    /// `blocks · words` lines.
    pub lines: &'a [Line],
    /// `blocks · layout.scales` lines.
    pub scales: &'a [Line],
    pub rows: Rows<'a>,
    pub target: Target<'a>,
    pub panel: &'a mut Vec<Line>,
}

/// By reference: copying this many small fields and reading them back as vectors would wait until all of them are written.
impl<C: Codec> WithSimd for &mut Product<'_, C> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // Tiles fill the registers: 32 with 16 lanes, 16 with 8 lanes.
        match (S::F32_LANES, self.rows.count) {
            (16, 1) => self.run::<S, 1, 1, 1, 4>(simd),
            (16, 2) => self.run::<S, 2, 2, 2, 4>(simd),
            // Bytes need twice as many sums.
            (16, 3..) if C::BYTES && C::GROUP < PART / C::UNITS => self.run::<S, 4, 4, 2, 2>(simd),
            (16, 3..=4) if C::BYTES => self.run::<S, 4, 4, 4, 2>(simd),
            (16, _) if C::BYTES => self.run::<S, 6, 4, 2, 2>(simd),
            (16, 3..=4) => self.run::<S, 4, 4, 4, 4>(simd),
            // The sums of groups need registers too.
            (16, _) if C::GROUP < PART / C::UNITS => self.run::<S, 8, 6, 4, 2>(simd),
            (16, _) => self.run::<S, 12, 8, 4, 2>(simd),
            (8, 1) => self.run::<S, 1, 1, 1, 4>(simd),
            (8, 2) => self.run::<S, 2, 2, 2, 2>(simd),
            (8, 12..) if C::INPUTS == 1 => self.run_in_panels::<S, 6, 4>(simd),
            (8, _) if C::INTEGERS => self.run::<S, 4, 3, 2, 1>(simd),
            (8, _) => self.run::<S, 6, 4, 2, 1>(simd),
            // Sums, words and weights of one block fill the 16 registers of most hosts, and fewer kinds of tiles make a smaller module.
            (_, 1) if cfg!(target_family = "wasm") => self.run::<S, 1, 1, 1, 1>(simd),
            (_, _) if cfg!(target_family = "wasm") => self.run::<S, 2, 2, 2, 1>(simd),
            (_, 1) => self.run::<S, 1, 1, 1, 2>(simd),
            (_, _) => self.run::<S, 4, 3, 2, 1>(simd),
        }
    }
}

impl<C: Codec> Product<'_, C> {
    /// The rows, as many at a time as stay in the second-level cache, a multiple of `R`.
    #[inline(always)]
    pub(super) fn stretches<const R: usize>(&self) -> impl Iterator<Item = Range<usize>> + use<C, R> {
        let (count, at_once) = (self.rows.count, (STRETCH / self.rows.stride.max(1) / R).max(1) * R);
        (0..count).step_by(at_once).map(move |row| row..count.min(row + at_once))
    }

    /// Everything, in tiles of `N` blocks and `R`, `R2` or `R3` rows, whichever leaves the least room empty.
    #[inline(always)]
    fn run<S: Simd, const R: usize, const R2: usize, const R3: usize, const N: usize>(&self, simd: S) {
        for rows in self.stretches::<R>() {
            let Range { start: mut block, end } = self.target.blocks();
            while block < end {
                // All blocks of a tile have the same distance from word to word.
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
        // The first tile of a panel prefetches all of it: it reads one of every few lines, which the hardware prefetcher does not follow.
        let (first, step) = self.layout.block(block);
        let begins_panel = N < 2 && step == PANEL && block.is_multiple_of(PANEL);
        let each = if C::GROUP < RUN { C::GROUP } else { RUN };
        let mut prefetcher = if begins_panel { Prefetcher::new(self.lines, first + NEAR, PANEL * each) } else { Prefetcher::NONE };
        let mut row = rows.start;
        while row < rows.end {
            row += match rows.end - row {
                left if left > 2 * R2 || left > R2 && left <= R => self.tile::<S, R, N>(simd, block, row, prefetcher),
                left if left > R3 => self.tile::<S, R2, N>(simd, block, row, prefetcher),
                _ => self.tile::<S, R3, N>(simd, block, row, prefetcher),
            };
            prefetcher = Prefetcher::NONE;
        }
        N
    }

    /// `N` blocks from `block` on for at most `R` rows from `row` on.
    #[inline(always)]
    fn tile<S: Simd, const R: usize, const N: usize>(&self, simd: S, block: usize, row: usize, prefetcher: Prefetcher) -> usize {
        let tile = Tile::<C, R, N> {
            lines: self.lines,
            first: core::array::from_fn(|n| self.layout.block(block + n).0),
            step: self.layout.block(block).1,
            words: 0..self.layout.words,
            scales: core::array::from_fn(|n| self.scales_of(block + n)),
            rows: core::array::from_fn(|r| self.rows.row(row + r)),
            prefetcher,
            format: PhantomData,
        };
        #[cfg(all(target_arch = "x86_64", feature = "std"))]
        if C::BYTES {
            let mut sums = [[Line([0; super::layout::BLOCK]); N]; R];
            // SAFETY: bytes are multiplied only if the CPU was found to do that, with the vectors of that level.
            unsafe { bytes::sums(simd, &tile, &mut sums) };
            return self.put_all(simd, &sums, block, row);
        }
        self.put_all(simd, &simd.vectorize(tile), block, row)
    }

    /// Passes the sums of a tile on to the target.
    #[inline(always)]
    fn put_all<S: Simd, const R: usize, const N: usize>(&self, simd: S, sums: &[[Line; N]; R], block: usize, row: usize) -> usize {
        for (r, sums) in sums.iter().enumerate().take(self.rows.count - row) {
            for (n, sums) in sums.iter().enumerate() {
                self.put(simd, sums, block + n, row + r, Part::WHOLE);
            }
        }
        R
    }

    /// The lines of scales of a block.
    #[inline(always)]
    pub(super) fn scales_of(&self, block: usize) -> &[Line] {
        &self.scales[block * self.layout.scales..][..self.layout.scales]
    }

    /// Passes the sums of a block for a row on to the target.
    #[inline(always)]
    pub(super) fn put<S: Simd>(&self, simd: S, sums: &Line, block: usize, row: usize, part: Part) {
        let scales = if C::SCALES_OUTPUTS { Some(&self.scales_of(block)[0]) } else { None };
        // SAFETY: the outputs of all rows lie in the target, which nothing else uses, as the caller of the product promised.
        unsafe { self.target.put(simd, sums, scales, block, row, part) };
    }
}
