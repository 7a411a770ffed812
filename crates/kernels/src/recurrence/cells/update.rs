//! The update gate and the candidate of minGRU and its variants.

use super::super::candidate::Activation;
use crate::simd::exp_neg_abs;
use pulp::Simd;

/// z = σ(k) and h̃ of one step.
pub struct Update<S: Simd> {
    /// z
    pub take: S::f32s,
    /// 1 − z
    pub keep: S::f32s,
    /// The smaller of the two, z where `closed`.
    pub small: S::f32s,
    pub closed: S::m32s,
    pub candidate: S::f32s,
    /// dh̃/dv
    pub slope: S::f32s,
    /// 1 / `divisor`
    pub inverse: S::f32s,
}

impl<S: Simd> Update<S> {
    /// With e = e^−|k|, the smaller of z and 1 − z is e / (1 + e), the larger one 1 / (1 + e): both exact. One division serves the gate,
    /// the candidate and a `divisor` between 1 and 2 of the caller's own.
    #[inline(always)]
    pub fn new(simd: S, activation: impl Activation, [v, k]: [S::f32s; 2], divisor: S::f32s) -> Self {
        let one = simd.splat_f32s(1.0);
        let mul = |x, y| simd.mul_f32s(x, y);
        let e = exp_neg_abs(simd, k);
        let gate_divisor = simd.add_f32s(one, e);
        let (candidate_e, candidate_divisor) = activation.divisor(simd, v);
        let others = mul(candidate_divisor, divisor);
        let inverse = simd.div_f32s(one, mul(gate_divisor, others));
        let large = mul(inverse, others);
        let small = mul(e, large);
        let per_others = mul(inverse, gate_divisor);
        let candidate_inverse = mul(per_others, divisor);
        let candidate = activation.value(simd, v, candidate_e, candidate_inverse);
        let closed = simd.less_than_f32s(k, simd.splat_f32s(0.0));
        Self {
            take: simd.select_f32s(closed, small, large),
            keep: simd.select_f32s(closed, large, small),
            small,
            closed,
            candidate,
            slope: activation.slope(simd, v, candidate, candidate_e, candidate_inverse),
            inverse: mul(per_others, candidate_divisor),
        }
    }

    /// z (1 − z), the slope of z.
    #[inline(always)]
    pub fn take_slope(&self, simd: S) -> S::f32s {
        simd.mul_f32s(self.take, self.keep)
    }
}
