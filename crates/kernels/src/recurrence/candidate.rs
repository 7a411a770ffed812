//! Candidate activations on vectors, in a form that shares one division between a cell's candidate and its gates.

use crate::simd::{exp_neg_abs, near_zero_tanh, neg};
use pulp::Simd;

/// h̃ of a pre-activation v, computed in two halves around a division done by the caller.
pub trait Activation: Copy + Send + Sync {
    /// What is known before the division: the required exponential, and the divisor, between 1 and 2.
    fn divisor<S: Simd>(self, simd: S, v: S::f32s) -> (S::f32s, S::f32s);

    /// h̃, given e^−|v| and 1 / divisor.
    fn value<S: Simd>(self, simd: S, v: S::f32s, e: S::f32s, inverse: S::f32s) -> S::f32s;

    /// dh̃/dv, given h̃ as well.
    fn slope<S: Simd>(self, simd: S, v: S::f32s, value: S::f32s, e: S::f32s, inverse: S::f32s) -> S::f32s;
}

/// g(v): v + ½ for v ≥ 0, σ(v) below.
#[derive(Clone, Copy)]
pub struct Positive;

impl Activation for Positive {
    #[inline(always)]
    fn divisor<S: Simd>(self, simd: S, v: S::f32s) -> (S::f32s, S::f32s) {
        let e = exp_neg_abs(simd, v);
        (e, simd.add_f32s(simd.splat_f32s(1.0), e))
    }

    #[inline(always)]
    fn value<S: Simd>(self, simd: S, v: S::f32s, e: S::f32s, inverse: S::f32s) -> S::f32s {
        let above = simd.greater_than_or_equal_f32s(v, simd.splat_f32s(0.0));
        simd.select_f32s(above, simd.add_f32s(v, simd.splat_f32s(0.5)), simd.mul_f32s(e, inverse))
    }

    #[inline(always)]
    fn slope<S: Simd>(self, simd: S, v: S::f32s, value: S::f32s, _e: S::f32s, inverse: S::f32s) -> S::f32s {
        let above = simd.greater_than_or_equal_f32s(v, simd.splat_f32s(0.0));
        simd.select_f32s(above, simd.splat_f32s(1.0), simd.mul_f32s(value, inverse))
    }
}

/// v itself.
#[derive(Clone, Copy)]
pub struct Identity;

impl Activation for Identity {
    #[inline(always)]
    fn divisor<S: Simd>(self, simd: S, _v: S::f32s) -> (S::f32s, S::f32s) {
        (simd.splat_f32s(1.0), simd.splat_f32s(1.0))
    }

    #[inline(always)]
    fn value<S: Simd>(self, _simd: S, v: S::f32s, _e: S::f32s, _inverse: S::f32s) -> S::f32s {
        v
    }

    #[inline(always)]
    fn slope<S: Simd>(self, simd: S, _v: S::f32s, _value: S::f32s, _e: S::f32s, _inverse: S::f32s) -> S::f32s {
        simd.splat_f32s(1.0)
    }
}

/// tanh(v) = ± (1 − e) / (1 + e) with e = e^−2|v|, and its slope 4 e / (1 + e)²: 1 − tanh² would lose precision where tanh is close to 1.
#[derive(Clone, Copy)]
pub struct Tanh;

impl Activation for Tanh {
    #[inline(always)]
    fn divisor<S: Simd>(self, simd: S, v: S::f32s) -> (S::f32s, S::f32s) {
        let e = exp_neg_abs(simd, simd.add_f32s(v, v));
        (e, simd.add_f32s(simd.splat_f32s(1.0), e))
    }

    #[inline(always)]
    fn value<S: Simd>(self, simd: S, v: S::f32s, e: S::f32s, inverse: S::f32s) -> S::f32s {
        let far = simd.mul_f32s(simd.sub_f32s(simd.splat_f32s(1.0), e), inverse);
        let negative = simd.less_than_f32s(v, simd.splat_f32s(0.0));
        near_zero_tanh(simd, v, simd.select_f32s(negative, neg(simd, far), far))
    }

    #[inline(always)]
    fn slope<S: Simd>(self, simd: S, _v: S::f32s, _value: S::f32s, e: S::f32s, inverse: S::f32s) -> S::f32s {
        simd.mul_f32s(simd.mul_f32s(simd.splat_f32s(4.0), e), simd.mul_f32s(inverse, inverse))
    }
}

/// Runs `$body` with the [`Activation`] that a [`Candidate`](crate::Candidate) names.
macro_rules! with_candidate {
    ($candidate:expr, $activation:ident => $body:expr) => {
        match $candidate {
            $crate::shape::Candidate::Positive => {
                let $activation = $crate::recurrence::candidate::Positive;
                $body
            }
            $crate::shape::Candidate::Identity => {
                let $activation = $crate::recurrence::candidate::Identity;
                $body
            }
            $crate::shape::Candidate::Tanh => {
                let $activation = $crate::recurrence::candidate::Tanh;
                $body
            }
        }
    };
}
pub(super) use with_candidate;
