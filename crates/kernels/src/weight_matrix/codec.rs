//! What a format defines for the product: what is multiplied in a step, how words are unpacked for that, and how sums become results.
//!
//! A 32-bit word holds [`Codec::INPUTS`] weights of an output. A step of the product takes a 32-bit unit of each row: an f32, or a pair of
//! 16-bit integers. It is multiplied by a vector of weights of the same kind, unpacked from words. Sums are vectors of 32 bits, f32 or
//! integers.

use super::layout::Line;
use crate::simd::{self, Simd, mul_add};

/// Units that are summed before the sums are added up, so that the error grows little with longer rows: 256 f32, or 512 integers, whose sums fit
/// 32 bits.
pub(super) const PART: usize = 256;

/// A row of x, as the product sees it.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    pub units: &'a [u32],
    /// The initial sums of each group: −zero · Σ x.
    pub offsets: &'a [i32],
    /// The factor of the sums.
    pub scale: f32,
}

/// A format, as the product sees it.
pub(super) trait Codec: Copy {
    /// Inputs in one word.
    const INPUTS: usize;
    /// Units of a row, and vectors of weights, for one word.
    const UNITS: usize;
    /// Whether a unit is a pair of integers; else it is an f32.
    const INTEGERS: bool = Self::INPUTS > Self::UNITS;
    /// Words in a row whose sums become f32 together; divides the words of a part.
    const GROUP: usize = PART / Self::UNITS;
    /// Whether the sum over all inputs is multiplied by a scale of the output.
    const SCALES_OUTPUTS: bool = false;
    /// Whether the units of a word are bytes of integers and not pairs (`bytes.rs`).
    const BYTES: bool = false;
    /// What the weights of a group share.
    type Scale<S: Simd>: Copy;

    /// The scale of group `group` for the outputs `at..at + lanes` of a block with the lines `scales`.
    fn scale<S: Simd>(simd: S, scales: &[Line], group: usize, at: usize) -> Self::Scale<S>;

    /// Weights `J` of each word.
    fn unpack<S: Simd, const J: usize>(simd: S, word: S::u32s) -> S::u32s;

    /// The sums of a group, f32, in the units of x and of the weights.
    #[inline(always)]
    fn scaled<S: Simd>(_: S, sums: S::f32s, _: Self::Scale<S>) -> S::f32s {
        sums
    }

    /// What the sums of group `group` begin with: 0, or minus what the zeros of stored integers add.
    #[inline(always)]
    fn begin<S: Simd>(simd: S, row: &Row<'_>, group: usize) -> S::u32s {
        simd.splat_u32s(if Self::INTEGERS { row.offsets[group] as u32 } else { 0 })
    }

    /// `sums` + a unit of a row times weights: of f32, rounded once if an instruction does that; of integers, both products of the pair.
    #[inline(always)]
    fn add<S: Simd>(simd: S, unit: S::u32s, weights: S::u32s, sums: S::u32s) -> S::u32s {
        if Self::INTEGERS {
            return simd.add_u32s(sums, simd::dot_pairs(simd, unit, weights));
        }
        let f32s = |bits| simd.transmute_f32s_u32s(bits);
        simd.transmute_u32s_f32s(mul_add(simd, f32s(unit), f32s(weights), f32s(sums)))
    }

    /// `total` + the sums of a group.
    #[inline(always)]
    fn end<S: Simd>(simd: S, sums: S::u32s, row: &Row<'_>, scale: Self::Scale<S>, total: S::f32s) -> S::f32s {
        let sums = if Self::INTEGERS {
            simd.mul_f32s(simd::signed_to_f32(simd, sums), simd.splat_f32s(row.scale))
        } else {
            simd.transmute_f32s_u32s(sums)
        };
        simd.add_f32s(total, Self::scaled(simd, sums, scale))
    }
}

/// The words `at..at + lanes` of a line.
#[inline(always)]
pub(super) fn vector<S: Simd>(_: S, line: &Line, at: usize) -> S::u32s {
    debug_assert!(at + S::U32_LANES <= line.0.len());
    // SAFETY: the callers step through the 16 words by the number of lanes, which divides 16.
    unsafe { line.0.as_ptr().add(at).cast::<S::u32s>().read_unaligned() }
}

/// Writes the words `at..at + lanes` of a line.
#[inline(always)]
pub(super) fn put_vector<S: Simd>(_: S, line: &mut Line, at: usize, value: S::u32s) {
    debug_assert!(at + S::U32_LANES <= line.0.len());
    // SAFETY: the callers step through the 16 words by the number of lanes, which divides 16.
    unsafe { line.0.as_mut_ptr().add(at).cast::<S::u32s>().write_unaligned(value) }
}

/// The words `at..at + lanes` of a line as the f32 they are.
#[inline(always)]
pub(super) fn numbers<S: Simd>(simd: S, line: &Line, at: usize) -> S::f32s {
    simd.transmute_f32s_u32s(vector(simd, line, at))
}
