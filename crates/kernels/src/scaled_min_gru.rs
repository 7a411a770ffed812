//! minGRU whose memory is multiplied by a factor besides the gate: h_t = (1 − z_t) φ(s_t) h_{t−1} + z_t h̃_t with z = σ(k),
//! h̃ = candidate(v). The factor is a type parameter, |φ| ≤ 1.
//!
//! Backward, with G_t = ∂L/∂h_t + (1 − z_{t+1}) φ(s_{t+1}) G_{t+1}:
//!
//! ```text
//! dv = G z h̃'(v)        dk = G z (1 − z) (h̃ − φ h_{t−1})        ds = G h_{t−1} (1 − z) φ'(s)
//! ```
//!
//! What a step forgets, 1 − (1 − z) |φ| = z + (1 − z) (1 − |φ|), is a sum of positive numbers, each known exactly where it is small: a
//! slow gate with a factor close to 1 does not drift.

use crate::candidate::Activation;
use crate::recurrence::cell::{Cell, Leak};
use crate::simd::exp_neg_abs;
use core::marker::PhantomData;
use pulp::Simd;

/// φ of its input s, computed in two halves around a division that the caller does.
pub(crate) trait Factor: Copy + Send + Sync {
    /// Whether φ may be negative.
    const SIGNED: bool;

    /// What is known before the division, and a divisor between 1 and 2.
    fn divisor<S: Simd>(simd: S, s: S::f32s) -> (S::f32s, S::f32s);

    /// The factor, given what [`Factor::divisor`] gave and 1 / divisor.
    fn value<S: Simd>(simd: S, s: S::f32s, e: S::f32s, inverse: S::f32s) -> Value<S>;
}

/// A factor at one input.
#[derive(Clone, Copy)]
pub(crate) struct Value<S: Simd> {
    /// |φ|
    pub size: S::f32s,
    /// 1 − |φ|, exact where it is small.
    pub missing: S::f32s,
    /// 1 or −1, the sign of φ.
    pub sign: S::f32s,
    /// φ'
    pub slope: S::f32s,
}

#[derive(Clone, Copy)]
pub(crate) struct ScaledMinGru<A, F>(pub PhantomData<(A, F)>);

/// (1 − z) φ and z h̃.
#[derive(Clone, Copy)]
pub(crate) struct Gate<S: Simd> {
    leak: Leak<S>,
    sign: S::f32s,
    value: S::f32s,
}

/// Everything that both passes need of one step.
struct Parts<S: Simd> {
    leak: Leak<S>,
    candidate: S::f32s,
    slope: S::f32s,
    /// z and 1 − z
    update: S::f32s,
    keep: S::f32s,
    factor: Value<S>,
}

impl<A: Activation, F: Factor> ScaledMinGru<A, F> {
    /// The gate as in minGRU; one division serves gate, candidate and factor.
    #[inline(always)]
    fn parts<S: Simd>(simd: S, [v, k, s]: [S::f32s; 3]) -> Parts<S> {
        let one = simd.splat_f32s(1.0);
        let mul = |x, y| simd.mul_f32s(x, y);
        let e = exp_neg_abs(simd, k);
        let divisor = simd.add_f32s(one, e);
        let (candidate_e, candidate_divisor) = A::divisor(simd, v);
        let (factor_e, factor_divisor) = F::divisor(simd, s);
        let others = mul(candidate_divisor, factor_divisor);
        let inverse = simd.div_f32s(one, mul(divisor, others));
        let large = mul(inverse, others);
        let small = mul(e, large);
        let per_others = mul(inverse, divisor);
        let candidate_inverse = mul(per_others, factor_divisor);
        let factor = F::value(simd, s, factor_e, mul(per_others, candidate_divisor));
        let candidate = A::value(simd, v, candidate_e, candidate_inverse);

        let closed = simd.less_than_f32s(k, simd.splat_f32s(0.0));
        let (update, keep) = (simd.select_f32s(closed, small, large), simd.select_f32s(closed, large, small));
        let size = mul(keep, factor.size);
        let lost = simd.mul_add_e_f32s(keep, factor.missing, update);
        let keeps = simd.less_than_f32s(lost, simd.splat_f32s(0.5));
        Parts {
            leak: Leak::new(simd, simd.select_f32s(keeps, lost, size), keeps),
            candidate,
            slope: A::slope(simd, v, candidate, candidate_e, candidate_inverse),
            update,
            keep,
            factor,
        }
    }

    /// h with the sign of φ.
    #[inline(always)]
    fn signed<S: Simd>(simd: S, sign: S::f32s, h: S::f32s) -> S::f32s {
        if F::SIGNED { simd.mul_f32s(sign, h) } else { h }
    }
}

impl<A: Activation, F: Factor> Cell<3> for ScaledMinGru<A, F> {
    const BIASED: bool = true;
    const NARROWEST: usize = 64;
    type Gate<S: Simd> = Gate<S>;

    #[inline(always)]
    fn gate<S: Simd>(self, simd: S, x: [S::f32s; 3]) -> Gate<S> {
        let parts = Self::parts(simd, x);
        Gate { leak: parts.leak, sign: parts.factor.sign, value: simd.mul_f32s(parts.update, parts.candidate) }
    }

    #[inline(always)]
    fn step<S: Simd>(self, simd: S, gate: Gate<S>, h: S::f32s) -> S::f32s {
        gate.leak.decay_and_add(simd, Self::signed(simd, gate.sign, h), gate.value)
    }

    #[inline(always)]
    fn decay<S: Simd>(self, simd: S, gate: Gate<S>, h: S::f32s) -> S::f32s {
        gate.leak.decay(simd, Self::signed(simd, gate.sign, h))
    }

    #[inline(always)]
    fn loss<S: Simd>(self, simd: S, gate: Gate<S>) -> S::f32s {
        let loss = gate.leak.loss(simd);
        if !F::SIGNED {
            return loss;
        }
        // 1 + |a| where a is negative.
        let two = simd.splat_f32s(2.0);
        simd.select_f32s(simd.less_than_f32s(gate.sign, simd.splat_f32s(0.0)), simd.sub_f32s(two, loss), loss)
    }

    #[inline(always)]
    fn gradients<S: Simd>(self, simd: S, x: [S::f32s; 3], before: S::f32s, g: S::f32s) -> ([S::f32s; 3], S::f32s) {
        let mul = |x, y| simd.mul_f32s(x, y);
        let parts = Self::parts(simd, x);
        let kept = mul(parts.factor.size, Self::signed(simd, parts.factor.sign, before));
        let d_update = mul(g, simd.sub_f32s(parts.candidate, kept));
        let d_v = mul(mul(g, parts.update), parts.slope);
        let d_k = mul(d_update, mul(parts.update, parts.keep));
        let d_s = mul(mul(g, before), mul(parts.keep, parts.factor.slope));
        ([d_v, d_k, d_s], parts.leak.decay(simd, Self::signed(simd, parts.factor.sign, g)))
    }
}
