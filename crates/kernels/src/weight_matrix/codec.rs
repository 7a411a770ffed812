//! What a format tells the product: how many weights a word holds, and how they become vectors of f32.

use super::layout::Line;
use crate::simd::Simd;

/// A format, as the product sees it.
pub(super) trait Codec: Copy {
    /// Inputs in one word.
    const INPUTS: usize;
    /// Words in a row with a common scale.
    const GROUP: usize;
    /// What the weights of a group share.
    type Scale<S: Simd>: Copy;

    /// The scale of group `group` for the outputs `at..at + lanes` of a block with the lines `scales`.
    fn scale<S: Simd>(simd: S, scales: &[Line], group: usize, at: usize) -> Self::Scale<S>;

    /// Weight `J` of each word.
    fn decode<S: Simd, const J: usize>(simd: S, word: S::u32s, scale: Self::Scale<S>) -> S::f32s;

    /// The sum over all inputs from the sum of decoded weights times inputs, for the outputs `at..at + lanes` of a block.
    fn finish<S: Simd>(simd: S, scales: &[Line], at: usize, sum: S::f32s) -> S::f32s;
}

/// The words `at..at + lanes` of a line.
#[inline(always)]
pub(super) fn vector<S: Simd>(_: S, line: &Line, at: usize) -> S::u32s {
    debug_assert!(at + S::U32_LANES <= line.0.len());
    // SAFETY: the callers step through the 16 words by the number of lanes, which divides 16.
    unsafe { line.0.as_ptr().add(at).cast::<S::u32s>().read_unaligned() }
}

/// Writes f32 as the words `at..at + lanes` of a line.
#[inline(always)]
pub(super) fn put_vector<S: Simd>(_: S, line: &mut Line, at: usize, value: S::f32s) {
    debug_assert!(at + S::F32_LANES <= line.0.len());
    // SAFETY: as above; every bit pattern is a word.
    unsafe { line.0.as_mut_ptr().add(at).cast::<S::f32s>().write_unaligned(value) }
}

/// The unsigned number in the bits `mask << shift` of each word, less `zero`, exactly.
///
/// A number put into the mantissa of 2^(23 − shift) counts in ones where it lies, so it need not be shifted; `shift` plus the bits of
/// `mask` must be at most 23.
#[inline(always)]
pub(super) fn bits_as_number<S: Simd>(simd: S, word: S::u32s, shift: u32, mask: u32, zero: u32) -> S::f32s {
    let exponent = (127 + 23 - shift) << 23;
    let bits = simd.or_u32s(simd.and_u32s(word, simd.splat_u32s(mask << shift)), simd.splat_u32s(exponent));
    let offset = f32::from_bits(exponent) + zero as f32;
    simd.sub_f32s(simd.transmute_f32s_u32s(bits), simd.splat_f32s(offset))
}
