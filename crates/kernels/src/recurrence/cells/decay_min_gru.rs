//! minGRU that also forgets with the time that passes, beyond the paper: h_t = (1 − z_t) e^{−u_t} h_{t−1} + z_t h̃_t with z = σ(k),
//! h̃ = candidate(v), and u_t = λ Δt_t for the rate λ of a channel and the time Δt_t since the step before.

use super::super::gate::Sum;
use super::scaled_min_gru::{Factor, Value};
use crate::simd::exp;
use pulp::Simd;

/// φ(u) = e^{−u}.
#[derive(Clone, Copy)]
pub struct Decay;

impl Factor for Decay {
    const PARTS: usize = 2;
    type Gate<S: Simd> = Sum<S>;

    #[inline(always)]
    fn divisor<S: Simd>(self, simd: S, u: S::f32s) -> (S::f32s, S::f32s) {
        (exp(simd, simd.neg_f32s(u)), simd.splat_f32s(1.0))
    }

    /// 1 − e^{−u} from its series where u is small: the difference would be left with few digits.
    #[inline(always)]
    fn value<S: Simd>(self, simd: S, u: S::f32s, e: S::f32s, _inverse: S::f32s) -> Value<S> {
        const NEAR: f32 = 0.5;
        let one = simd.splat_f32s(1.0);
        let mut series = one;
        for n in [8.0f32, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0] {
            series = simd.mul_add_e_f32s(simd.mul_f32s(u, simd.splat_f32s(-1.0 / n)), series, one);
        }
        let near = simd.less_than_f32s(simd.abs_f32s(u), simd.splat_f32s(NEAR));
        let missing = simd.select_f32s(near, simd.mul_f32s(u, series), simd.sub_f32s(one, e));
        Value { size: e, missing, sign: one, slope: simd.neg_f32s(e) }
    }

    #[inline(always)]
    fn gate<S: Simd>(self, sum: Sum<S>, _value: Value<S>) -> Sum<S> {
        sum
    }

    #[inline(always)]
    fn signed<S: Simd>(self, _simd: S, _value: Value<S>, h: S::f32s) -> S::f32s {
        h
    }
}
