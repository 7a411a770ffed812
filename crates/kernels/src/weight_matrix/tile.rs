//! The sums of a few blocks of outputs for a few rows.

#![allow(clippy::needless_range_loop, reason = "arrays are longer than the vectors of a block; one index walks several")]

use super::codec::{Codec, PART, Row, numbers, put_vector, vector};
use super::layout::{BLOCK, Line};
use super::prefetch::{Prefetcher, RUN};
use crate::simd::{Simd, WithSimd};
use core::marker::PhantomData;
use core::ops::Range;

/// Most vectors of a block, at four lanes each.
const VECTORS: usize = 4;

/// Sums of `N` blocks for `R` rows, as f32.
pub(super) struct Tile<'a, C, const R: usize, const N: usize> {
    pub lines: &'a [Line],
    /// Where `words` begin in each block.
    pub first: [usize; N],
    /// Lines from one word to the next.
    pub step: usize,
    /// Which words of the rows; they begin where a part does.
    pub words: Range<usize>,
    pub scales: [&'a [Line]; N],
    pub rows: [Row<'a>; R],
    pub prefetcher: Prefetcher,
    pub format: PhantomData<C>,
}

impl<C: Codec, const R: usize, const N: usize> Tile<'_, C, R, N> {
    /// Asserts that the rows have units and the blocks have lines for all words.
    #[inline(always)]
    pub fn check(&self) {
        let Self { lines, first, step, words, .. } = self;
        for row in &self.rows {
            assert!(row.units.len() >= words.end * C::UNITS);
        }
        for first in first {
            assert!(words.is_empty() || first + (words.len() - 1) * step < lines.len());
        }
    }
}

impl<C: Codec, const R: usize, const N: usize> WithSimd for Tile<'_, C, R, N> {
    type Output = [[Line; N]; R];

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
        self.check();
        let Self { lines, first, step, words, mut prefetcher, .. } = self;
        let mut x = [core::ptr::null(); R];
        for r in 0..R {
            x[r] = self.rows[r].units.as_ptr();
        }
        let mut totals = [[Line([0; BLOCK]); N]; R];
        let mut word = words.start;
        while word < words.end {
            let part_end = words.end.min(word + PART / C::UNITS);
            let mut part = [[[simd.splat_f32s(0.0); VECTORS]; N]; R];
            while word < part_end {
                let group = word / C::GROUP;
                let group_end = part_end.min(word + C::GROUP);
                let mut sums = [[[simd.splat_u32s(0); VECTORS]; N]; R];
                for r in 0..R {
                    let begin = C::begin(simd, &self.rows[r], group);
                    sums[r] = [[begin; VECTORS]; N];
                }
                while word < group_end {
                    let run_end = group_end.min(word + RUN);
                    prefetcher.issue();
                    while word < run_end {
                        let at = (word - words.start) * step;
                        let mut loaded = [[simd.splat_u32s(0); VECTORS]; N];
                        for n in 0..N {
                            // SAFETY: the lines of `words` lie in `lines` as asserted above.
                            let line = unsafe { lines.get_unchecked(first[n] + at) };
                            for v in 0..BLOCK / S::U32_LANES {
                                loaded[n][v] = vector(simd, line, v * S::U32_LANES);
                            }
                        }
                        macro_rules! units {
                            ($($j:literal)*) => {$(
                                if $j < C::UNITS {
                                    let mut weights = loaded;
                                    for n in 0..N {
                                        for v in 0..BLOCK / S::U32_LANES {
                                            weights[n][v] = C::unpack::<S, $j>(simd, loaded[n][v]);
                                        }
                                    }
                                    for r in 0..R {
                                        // SAFETY: `word < words.end`, whose units every row has as asserted above.
                                        let unit = simd.splat_u32s(unsafe { *x[r].add(word * C::UNITS + $j) });
                                        for n in 0..N {
                                            for v in 0..BLOCK / S::U32_LANES {
                                                sums[r][n][v] = C::add(simd, unit, weights[n][v], sums[r][n][v]);
                                            }
                                        }
                                    }
                                }
                            )*};
                        }
                        units!(0 1 2 3);
                        word += 1;
                    }
                }
                for n in 0..N {
                    for v in 0..BLOCK / S::U32_LANES {
                        let scale = C::scale(simd, self.scales[n], group, v * S::U32_LANES);
                        for r in 0..R {
                            part[r][n][v] = C::end(simd, sums[r][n][v], &self.rows[r], scale, part[r][n][v]);
                        }
                    }
                }
            }
            for r in 0..R {
                for n in 0..N {
                    for v in 0..BLOCK / S::U32_LANES {
                        let total = simd.add_f32s(numbers(simd, &totals[r][n], v * S::U32_LANES), part[r][n][v]);
                        put_vector(simd, &mut totals[r][n], v * S::U32_LANES, simd.transmute_u32s_f32s(total));
                    }
                }
            }
        }
        totals
    }
}
