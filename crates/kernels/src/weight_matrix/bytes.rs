//! Integer products for CPUs that multiply bytes and add four products at once (AVX512-VNNI): weights are used as stored.
//!
//! A 16-bit input is x = 256 h + l with h and l in −128..=127, so Σ q x = 256 Σ q h + Σ q l. The units of a word are the h of its inputs,
//! then their l; with two weights per byte, those of the first of each pair come first. The sums are the same integers as from pairs
//! ([`super::tile`]), and everything after that is the same, so the results have the same bits.

#![allow(clippy::needless_range_loop, reason = "one index walks several arrays; closures would not have the instructions of the function")]

use super::codec::{Codec, PART, put_vector};
use super::layout::{BLOCK, Line};
use super::prefetch::RUN;
use super::tile::Tile;
use crate::simd::Simd;
use core::arch::x86_64::*;
use core::marker::PhantomData;
use core::mem::transmute_copy;

/// The integers of `C`, multiplied as bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bytes<C>(PhantomData<C>);

impl<C: Codec> Codec for Bytes<C> {
    const INPUTS: usize = C::INPUTS;
    const UNITS: usize = C::UNITS;
    const GROUP: usize = C::GROUP;
    const SCALES_OUTPUTS: bool = C::SCALES_OUTPUTS;
    const BYTES: bool = true;
    type Scale<S: Simd> = C::Scale<S>;

    #[inline(always)]
    fn scale<S: Simd>(simd: S, scales: &[Line], group: usize, at: usize) -> Self::Scale<S> {
        C::scale(simd, scales, group, at)
    }

    #[inline(always)]
    fn unpack<S: Simd, const J: usize>(simd: S, word: S::u32s) -> S::u32s {
        C::unpack::<S, J>(simd, word)
    }

    #[inline(always)]
    fn scaled<S: Simd>(simd: S, sums: S::f32s, scale: Self::Scale<S>) -> S::f32s {
        C::scaled(simd, sums, scale)
    }
}

/// The mask of the first `count` lanes.
#[inline(always)]
fn first(count: usize) -> __mmask16 {
    if count >= BLOCK { !0 } else { (1 << count) - 1 }
}

/// Writes the sums of a tile of bytes.
///
/// # Safety
/// The CPU has AVX-512 (F, BW, CD, DQ, VL) and AVX512-VNNI, and `S` is the set of these vectors.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vnni")]
pub(super) unsafe fn sums<C: Codec, S: Simd, const R: usize, const N: usize>(simd: S, tile: &Tile<'_, C, R, N>, out: &mut [[Line; N]; R]) {
    assert!(C::BYTES && size_of::<S::u32s>() == size_of::<__m512i>());
    tile.check();
    let Tile { lines, first, step, words, scales, rows, .. } = tile;
    let mut prefetcher = tile.prefetcher;
    let nibbles = _mm512_set1_epi8(0x0f);
    let mut x = [core::ptr::null::<i32>(); R];
    for r in 0..R {
        x[r] = rows[r].units.as_ptr().cast();
    }
    let mut totals = [[simd.splat_f32s(0.0); N]; R];
    let mut word = words.start;
    while word < words.end {
        let part_end = words.end.min(word + PART / C::UNITS);
        let mut part = [[simd.splat_f32s(0.0); N]; R];
        while word < part_end {
            let group = word / C::GROUP;
            let group_end = part_end.min(word + C::GROUP);
            let mut high = [[_mm512_setzero_si512(); N]; R];
            let mut low = high;
            for r in 0..R {
                low[r] = [_mm512_set1_epi32(rows[r].offsets[group]); N];
            }
            while word < group_end {
                let run_end = group_end.min(word + RUN);
                prefetcher.issue();
                while word < run_end {
                    let at = (word - words.start) * step;
                    let mut loaded = [nibbles; N];
                    for n in 0..N {
                        // SAFETY: the lines of `words` lie in `lines`, as was checked.
                        loaded[n] = unsafe { _mm512_load_si512(lines.as_ptr().add(first[n] + at).cast()) };
                    }
                    for j in 0..C::UNITS / 2 {
                        let mut weights = loaded;
                        if C::UNITS == 4 {
                            for n in 0..N {
                                let word = if j == 0 { loaded[n] } else { _mm512_srli_epi32::<4>(loaded[n]) };
                                weights[n] = _mm512_and_si512(word, nibbles);
                            }
                        }
                        for r in 0..R {
                            // SAFETY: `word < words.end`, whose units every row has, as was checked.
                            let [h, l] = unsafe { x[r].add(word * C::UNITS + 2 * j).cast::<[i32; 2]>().read() };
                            let (h, l) = (_mm512_set1_epi32(h), _mm512_set1_epi32(l));
                            for n in 0..N {
                                high[r][n] = _mm512_dpbusd_epi32(high[r][n], weights[n], h);
                                low[r][n] = _mm512_dpbusd_epi32(low[r][n], weights[n], l);
                            }
                        }
                    }
                    word += 1;
                }
            }
            for n in 0..N {
                let scale = C::scale(simd, scales[n], group, 0);
                for r in 0..R {
                    let sums = _mm512_add_epi32(_mm512_slli_epi32::<8>(high[r][n]), low[r][n]);
                    // SAFETY: both are 64 bytes of plain data, as was asserted.
                    part[r][n] = C::end(simd, unsafe { transmute_copy(&sums) }, &rows[r], scale, part[r][n]);
                }
            }
        }
        for r in 0..R {
            for n in 0..N {
                totals[r][n] = simd.add_f32s(totals[r][n], part[r][n]);
            }
        }
    }
    for r in 0..R {
        for n in 0..N {
            put_vector(simd, &mut out[r][n], 0, simd.transmute_u32s_f32s(totals[r][n]));
        }
    }
}

/// The largest magnitude of a row, as [`f32::to_bits`] has it: NaN is above everything else.
///
/// # Safety
/// The CPU has AVX-512 (F, BW, CD, DQ, VL).
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
pub(super) unsafe fn largest(x: &[f32]) -> u32 {
    let mut largest = _mm512_setzero_si512();
    for x in x.chunks(BLOCK) {
        // SAFETY: what lies past the end of `x` is not read.
        let x = unsafe { _mm512_maskz_loadu_epi32(first(x.len()), x.as_ptr().cast()) };
        largest = _mm512_max_epu32(largest, _mm512_and_si512(x, _mm512_set1_epi32(0x7fff_ffff)));
    }
    _mm512_reduce_max_epu32(largest)
}

/// Rounds a row `x` to multiples of 1 / `inverse`, and writes −`zero` times the sum of each group.
///
/// # Shapes
/// `units`: those of all words; `offsets`: one for each group
///
/// # Safety
/// The CPU has AVX-512 (F, BW, CD, DQ, VL).
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
pub(super) unsafe fn round<C: Codec>(x: &[f32], inverse: f32, zero: i32, units: &mut [u32], offsets: &mut [i32]) {
    assert!(C::BYTES);
    // Of eight inputs, the even-numbered ones come first.
    let pairs = _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15);
    let groups = x.chunks(C::GROUP * C::INPUTS).zip(units.chunks_mut(C::GROUP * C::UNITS));
    for ((x, units), offset) in groups.zip(offsets) {
        let mut sum = _mm512_setzero_si512();
        // Sixteen inputs are eight units in both formats.
        for (x, units) in x.chunks(BLOCK).zip(units.chunks_mut(BLOCK / 2)) {
            // SAFETY: what lies past the end of `x` is not read.
            let x = unsafe { _mm512_maskz_loadu_ps(first(x.len()), x.as_ptr()) };
            let integers = _mm512_cvtps_epi32(_mm512_mul_ps(x, _mm512_set1_ps(inverse)));
            sum = _mm512_add_epi32(sum, integers);
            let mut high = _mm512_cvtepi32_epi8(_mm512_srai_epi32::<8>(_mm512_add_epi32(integers, _mm512_set1_epi32(128))));
            let mut low = _mm512_cvtepi32_epi8(integers);
            if C::UNITS == 4 {
                (high, low) = (_mm_shuffle_epi8(high, pairs), _mm_shuffle_epi8(low, pairs));
            }
            let both = _mm256_set_m128i(_mm_unpackhi_epi32(high, low), _mm_unpacklo_epi32(high, low));
            // SAFETY: what lies past the end of `units` is not written.
            unsafe { _mm256_mask_storeu_epi32(units.as_mut_ptr().cast(), first(units.len()) as __mmask8, both) };
        }
        *offset = zero.wrapping_neg().wrapping_mul(_mm512_reduce_add_epi32(sum));
    }
}
