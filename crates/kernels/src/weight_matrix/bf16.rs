//! bfloat16, the upper half of an f32: two a word, rounded to the nearest, ties to even.
//!
//! Finite weights change by at most 2⁻⁹ of their magnitude (subnormal ones by 2⁻¹³⁴); what rounds past the largest bf16 becomes ∞.
//! NaN stays NaN and ∞ stays ∞. Both make only their own output NaN or infinite.

use super::codec::Codec;
use super::layout::Line;
use crate::simd::Simd;

/// Weights of 2 bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bf16;

/// The bits of the nearest bf16.
pub(super) fn round(x: f32) -> u16 {
    let bits = x.to_bits();
    if x.is_nan() {
        // Rounding could turn a NaN into ∞; the quiet bit keeps it a NaN.
        return (bits >> 16) as u16 | 0x40;
    }
    ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16) as u16
}

/// The value of a bf16.
pub(super) fn widen(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

pub(super) fn encode(weights: &[f32]) -> u32 {
    let half = |i: usize| weights.get(i).map_or(0, |&w| u32::from(round(w)));
    half(0) | half(1) << 16
}

pub(super) fn decode(word: u32, j: usize) -> f32 {
    widen((word >> (16 * j)) as u16)
}

/// The bf16 in the lower (0) or upper (1) half of each word, as the bits of f32.
#[inline(always)]
pub(super) fn half<S: Simd>(simd: S, word: S::u32s, j: usize) -> S::u32s {
    if j == 0 { simd.wrapping_dyn_shl_u32s(word, simd.splat_u32s(16)) } else { simd.and_u32s(word, simd.splat_u32s(0xffff_0000)) }
}

impl Codec for Bf16 {
    const INPUTS: usize = 2;
    const UNITS: usize = 2;
    type Scale<S: Simd> = ();

    #[inline(always)]
    fn scale<S: Simd>(_: S, _: &[Line], _: usize, _: usize) {}

    #[inline(always)]
    fn unpack<S: Simd, const J: usize>(simd: S, word: S::u32s) -> S::u32s {
        half(simd, word, J)
    }
}
