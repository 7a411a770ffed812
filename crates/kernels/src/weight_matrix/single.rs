//! Weights as they are: one f32 a word.

use super::codec::{Codec, floating};
use super::layout::Line;
use super::rows::Row;
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

    #[inline(always)]
    fn begin<S: Simd>(simd: S, _: &Row<'_>, _: usize) -> S::u32s {
        simd.splat_u32s(0)
    }

    #[inline(always)]
    fn add<S: Simd>(simd: S, unit: S::u32s, weights: S::u32s, sums: S::u32s) -> S::u32s {
        floating::add(simd, unit, weights, sums)
    }

    #[inline(always)]
    fn end<S: Simd>(simd: S, sums: S::u32s, _: &Row<'_>, (): (), total: S::f32s) -> S::f32s {
        floating::end(simd, sums, total)
    }
}
