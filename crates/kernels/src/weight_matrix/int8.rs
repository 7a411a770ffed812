//! 8-bit integers with one f32 scale per output: w ≈ s q, s = max |w| / 127 over the row, q = round(w / s) ∈ −127..=127.
//!
//! Stored as q + 128, four a word; the scales of a block are one line of f32. The error of a weight is at most s / 2. A row whose
//! largest magnitude is below 2⁻¹¹⁹ becomes 0. NaN counts as 0 and ±∞ as ± the largest finite magnitude of its row, so neither reaches
//! another weight.

use super::codec::Codec;
use super::layout::Line;
use crate::simd::Simd;

/// Weights of 1 byte.
#[derive(Debug, Clone, Copy)]
pub(super) struct Int8;

/// q = 0 is stored as this.
pub(super) const ZERO: u32 = 128;
/// Smallest scale that is a normal number.
const SMALLEST: f32 = f32::MIN_POSITIVE;

/// Largest finite magnitude.
pub(super) fn largest(weights: &[f32]) -> f32 {
    weights.iter().map(|w| w.abs()).filter(|w| w.is_finite()).fold(0.0, f32::max)
}

/// The scale of a row.
pub(super) fn row_scale(row: &[f32]) -> f32 {
    let scale = largest(row) / 127.0;
    match scale {
        _ if scale < SMALLEST => 0.0,
        // The scale of a row that reaches the largest f32 may have been rounded up.
        _ if (127.0 * scale).is_infinite() => scale.next_down(),
        _ => scale,
    }
}

pub(super) fn encode(weights: &[f32], scale: f32) -> u32 {
    let byte = |i: usize| {
        let ratio = if scale == 0.0 { 0.0 } else { weights.get(i).map_or(0.0, |&w| w / scale) };
        // A conversion to integers saturates and takes NaN to 0.
        ((libm::rintf(ratio) as i32).clamp(-127, 127) + ZERO as i32) as u32
    };
    byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24
}

pub(super) fn decode(word: u32, j: usize, scale: f32) -> f32 {
    (((word >> (8 * j)) & 0xff) as i32 - ZERO as i32) as f32 * scale
}

impl Codec for Int8 {
    const INPUTS: usize = 4;
    const UNITS: usize = 2;
    const SCALES_OUTPUTS: bool = true;
    type Scale<S: Simd> = ();

    #[inline(always)]
    fn scale<S: Simd>(_: S, _: &[Line], _: usize, _: usize) {}

    /// The first and third byte of each word, or the second and fourth.
    #[inline(always)]
    fn unpack<S: Simd, const J: usize>(simd: S, word: S::u32s) -> S::u32s {
        let word = if J == 0 { word } else { simd.wrapping_dyn_shr_u32s(word, simd.splat_u32s(8)) };
        simd.and_u32s(word, simd.splat_u32s(0x00ff_00ff))
    }
}
