//! The product of several rows of f32, with weights copied: a part of four blocks at a time, which is used for all rows.
//!
//! ```text
//! for every stretch of rows:  for every four blocks of 16 outputs:  for every part of the inputs:
//!     panels = the part's words, block after block
//!     for every panel:  for every tile of rows:
//!         y = y (after the first part) + the tile's sums over the part;  + bias after the last
//! ```
//!
//! The bits of the result are those of [`super::multiply`]. A panel (16 KiB) stays in the first-level cache, four of them and the inputs of a
//! stretch in the second. In the matrix a block has every fourth line: such lines share a quarter of the first-level cache, and the hardware
//! prefetcher does not follow them. Copying reads all lines in order, and the next ones are prefetched while tiles are computed.

use super::codec::{Codec, PART};
use super::layout::{BLOCK, Line, PANEL};
use super::multiply::Product;
use super::prefetch::{Prefetcher, RUN};
use super::target::Part;
use super::tile::Tile;
use crate::simd::Simd;
use core::marker::PhantomData;
use core::ops::Range;

impl<C: Codec> Product<'_, C> {
    /// Everything, in tiles of `R` or, if that leaves less room empty, `R2` rows.
    #[inline(always)]
    pub(super) fn run_in_panels<S: Simd, const R: usize, const R2: usize>(&mut self, simd: S) {
        let mut panels = core::mem::take(self.panel);
        if panels.len() < PANEL * PART {
            panels.resize(PANEL * PART, Line([0; BLOCK]));
        }
        let per_part = PART / C::UNITS;
        for rows in self.stretches::<R>() {
            let Range { start: mut block, end } = self.target.blocks();
            while block < end {
                let step = self.layout.block(block).1;
                let count = if block.is_multiple_of(PANEL) && step == PANEL { PANEL.min(end - block) } else { 1 };
                let mut words = 0..self.layout.words.min(per_part);
                // A row without inputs still has one part, in which its bias is added.
                loop {
                    self.part_of_blocks::<S, R, R2>(simd, block..block + count, rows.clone(), words.clone(), &mut panels);
                    if words.end == self.layout.words {
                        break;
                    }
                    words = words.end..self.layout.words.min(words.end + per_part);
                }
                block += count;
            }
        }
        *self.panel = panels;
    }

    /// The words `words` of neighbouring blocks, for the rows `rows`.
    #[inline(always)]
    fn part_of_blocks<S: Simd, const R: usize, const R2: usize>(
        &self,
        simd: S,
        blocks: Range<usize>,
        rows: Range<usize>,
        words: Range<usize>,
        panels: &mut [Line],
    ) {
        let (first, step) = self.layout.block(blocks.start);
        let count = blocks.len();
        for (i, word) in words.clone().enumerate() {
            for b in 0..count {
                panels[b * PART + i] = self.lines[first + word * step + b];
            }
        }
        // What is copied next follows in memory, if there is anything.
        let issues_of_tile = words.len().div_ceil(RUN);
        let issues = (count * rows.len().div_ceil(R) * issues_of_tile).max(1);
        let mut prefetcher = Prefetcher::new(self.lines, first + words.end * step, (words.len() * count).div_ceil(issues));
        for (block, panel) in blocks.zip(panels.chunks_exact(PART)) {
            let mut row = rows.start;
            while row < rows.end {
                let left = rows.end - row;
                row += if left > 2 * R2 || left > R2 && left <= R {
                    self.tile_of_panel::<S, R>(simd, panel, block, row, words.clone(), prefetcher)
                } else {
                    self.tile_of_panel::<S, R2>(simd, panel, block, row, words.clone(), prefetcher)
                };
                prefetcher = prefetcher.after(issues_of_tile);
            }
        }
    }

    /// The words `words` of a block for at most `R` rows from `row` on.
    #[inline(always)]
    fn tile_of_panel<S: Simd, const R: usize>(
        &self,
        simd: S,
        panel: &[Line],
        block: usize,
        row: usize,
        words: Range<usize>,
        prefetcher: Prefetcher,
    ) -> usize {
        let part = Part { starts: words.start == 0, ends: words.end == self.layout.words };
        let sums = simd.vectorize(Tile::<C, R, 1> {
            lines: panel,
            first: [0],
            step: 1,
            words,
            scales: [self.scales_of(block)],
            rows: core::array::from_fn(|r| self.rows.row(row + r)),
            prefetcher,
            format: PhantomData,
        });
        for (r, [sums]) in sums.iter().enumerate().take(self.rows.count - row) {
            self.put(simd, sums, block, row + r, part);
        }
        R
    }
}
