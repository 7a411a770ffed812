//! minGRU that also forgets as time passes, beyond the paper: h_t = (1 − z_t) e^{−u_t} h_{t−1} + z_t h̃_t with z = σ(k), h̃ = candidate(v),
//! and u_t = λ Δt_t for the rate λ of a channel and the time Δt_t since the previous step.

use super::super::gate::Sum;
use super::scaled_min_gru::{Factor, Value};
use crate::simd::{exp_neg, neg};
use pulp::Simd;

/// φ(u) = e^{−u}.
#[derive(Clone, Copy)]
pub struct Decay;

impl Factor for Decay {
    const PARTS: usize = 2;
    type Gate<S: Simd> = Sum<S>;

    /// There is nothing to divide.
    #[inline(always)]
    fn divisor<S: Simd>(self, simd: S, _u: S::f32s) -> (S::f32s, S::f32s) {
        (simd.splat_f32s(0.0), simd.splat_f32s(1.0))
    }

    #[inline(always)]
    fn value<S: Simd>(self, simd: S, u: S::f32s, _e: S::f32s, _inverse: S::f32s) -> Value<S> {
        let [e, missing] = exp_neg(simd, u);
        Value { size: e, missing, sign: simd.splat_f32s(1.0), slope: neg(simd, e) }
    }

    #[inline(always)]
    fn gate<S: Simd>(self, sum: Sum<S>, _value: Value<S>) -> Sum<S> {
        sum
    }
}
