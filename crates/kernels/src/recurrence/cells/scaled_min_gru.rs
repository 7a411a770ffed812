//! minGRU whose memory is multiplied by a further factor besides the gate: h_t = (1 − z_t) φ(s_t) h_{t−1} + z_t h̃_t with z = σ(k), h̃ =
//! candidate(v). The factor is a type parameter, |φ| ≤ 1.
//!
//! Backward, with G_t = ∂L/∂h_t + (1 − z_{t+1}) φ(s_{t+1}) G_{t+1}:
//!
//! ```text
//! dv = G z h̃'(v)        dk = G z (1 − z) (h̃ − φ h_{t−1})        ds = G h_{t−1} (1 − z) φ'(s)
//! ```
//!
//! What a step forgets, 1 − (1 − z) |φ| = z + (1 − z) (1 − |φ|), is a sum of positive numbers, each accurate even if small: a slow gate
//! with a factor close to 1 does not drift.

use super::super::candidate::Activation;
use super::super::formulas::Formulas;
use super::super::gate::{Gate, Leak, Sum};
use super::update::Update;
use crate::simd::mul_add;
use pulp::Simd;

/// φ of its input s, computed in two halves around a division done by the caller.
pub trait Factor: Copy + Send + Sync {
    /// Number of parts of the cell's pre-activations: 3 including s, else 2.
    const PARTS: usize;
    /// The form of a step: [`Sum`] or, if φ may be negative, one with a sign.
    type Gate<S: Simd>: Gate<S>;

    /// What is known before the division, and a divisor between 1 and 2.
    fn divisor<S: Simd>(self, simd: S, s: S::f32s) -> (S::f32s, S::f32s);

    /// The factor, given the result of [`Factor::divisor`] and 1 / divisor.
    fn value<S: Simd>(self, simd: S, s: S::f32s, e: S::f32s, inverse: S::f32s) -> Value<S>;

    /// `sum`, computed with the factor's size, given its sign.
    fn gate<S: Simd>(self, sum: Sum<S>, value: Value<S>) -> Self::Gate<S>;
}

/// A factor at one input.
#[derive(Clone, Copy)]
pub struct Value<S: Simd> {
    /// |φ|
    pub size: S::f32s,
    /// 1 − |φ|, accurate even if small.
    pub missing: S::f32s,
    /// 1 or −1, the sign of φ.
    pub sign: S::f32s,
    /// φ'
    pub slope: S::f32s,
}

/// Inputs v, k and s.
#[derive(Clone, Copy)]
pub struct ScaledMinGru<A, F>(pub A, pub F);

impl<A: Activation, F: Factor> ScaledMinGru<A, F> {
    #[inline(always)]
    fn parts<S: Simd>(self, simd: S, [v, k, s]: [S::f32s; 3]) -> (Update<S>, Value<S>, Leak<S>) {
        let (e, divisor) = self.1.divisor(simd, s);
        let update = Update::new(simd, self.0, [v, k], divisor);
        let factor = self.1.value(simd, s, e, update.inverse);
        let lost = mul_add(simd, update.keep, factor.missing, update.take);
        let leak = Leak::of(simd, simd.mul_f32s(update.keep, factor.size), lost);
        (update, factor, leak)
    }
}

impl<A: Activation, F: Factor> Formulas<3> for ScaledMinGru<A, F> {
    const PARTS: usize = F::PARTS;
    type Gate<S: Simd> = F::Gate<S>;

    #[inline(always)]
    fn gate<S: Simd>(self, simd: S, x: [S::f32s; 3]) -> F::Gate<S> {
        let (update, factor, leak) = self.parts(simd, x);
        self.1.gate(Sum { leak, value: simd.mul_f32s(update.take, update.candidate) }, factor)
    }

    #[inline(always)]
    fn slopes<S: Simd>(self, simd: S, x: [S::f32s; 3], before: S::f32s) -> ([S::f32s; 3], F::Gate<S>) {
        let mul = |x, y| simd.mul_f32s(x, y);
        let (update, factor, leak) = self.parts(simd, x);
        let value = mul(update.take, update.candidate);
        let kept = mul(factor.size, mul(factor.sign, before));
        let of_take = simd.sub_f32s(update.candidate, kept);
        let of_v = mul(update.take, update.slope);
        let of_s = mul(before, mul(update.keep, factor.slope));
        ([of_v, mul(of_take, update.take_slope(simd)), of_s], self.1.gate(Sum { leak, value }, factor))
    }
}
