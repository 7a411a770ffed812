//! Signed minGRU, beyond the paper: h_t = (1 − z_t) tanh(s_t) h_{t−1} + z_t h̃_t with z = σ(k), h̃ = candidate(v).
//!
//! The coefficient lies in (−1, 1) instead of (0, 1): a step can flip the sign of the state, and so count modulo 2.

use super::super::gate::{SignedSum, Sum};
use super::scaled_min_gru::{Factor, Value};
use crate::simd::exp_neg_abs;
use pulp::Simd;

/// φ = tanh.
#[derive(Clone, Copy)]
pub struct Tanh;

impl Factor for Tanh {
    const PARTS: usize = 3;
    type Gate<S: Simd> = SignedSum<S>;

    #[inline(always)]
    fn divisor<S: Simd>(self, simd: S, s: S::f32s) -> (S::f32s, S::f32s) {
        let e = exp_neg_abs(simd, simd.add_f32s(s, s));
        (e, simd.add_f32s(simd.splat_f32s(1.0), e))
    }

    /// With e = e^−2|s|: |tanh s| = (1 − e) / (1 + e), which is 1 − 2e / (1 + e).
    #[inline(always)]
    fn value<S: Simd>(self, simd: S, s: S::f32s, e: S::f32s, inverse: S::f32s) -> Value<S> {
        let one = simd.splat_f32s(1.0);
        let size = simd.mul_f32s(simd.sub_f32s(one, e), inverse);
        let missing = simd.mul_f32s(simd.add_f32s(e, e), inverse);
        let negative = simd.less_than_f32s(s, simd.splat_f32s(0.0));
        let sign = simd.select_f32s(negative, simd.splat_f32s(-1.0), one);
        Value { size, missing, sign, slope: simd.mul_f32s(missing, simd.add_f32s(one, size)) }
    }

    #[inline(always)]
    fn gate<S: Simd>(self, sum: Sum<S>, value: Value<S>) -> SignedSum<S> {
        SignedSum { sum, sign: value.sign }
    }
}
