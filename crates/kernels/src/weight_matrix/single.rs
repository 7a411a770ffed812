//! Weights as they are: one f32 a word.

use super::codec::Codec;
use super::layout::Line;
use crate::simd::Simd;

/// Weights of 4 bytes, kept bit for bit.
#[derive(Debug, Clone, Copy)]
pub(super) struct F32;

impl Codec for F32 {
    const INPUTS: usize = 1;
    const UNITS: usize = 1;
    type Scale<S: Simd> = ();

    #[inline(always)]
    fn scale<S: Simd>(_: S, _: &[Line], _: usize, _: usize) {}

    #[inline(always)]
    fn unpack<S: Simd, const J: usize>(_: S, word: S::u32s) -> S::u32s {
        word
    }
}
