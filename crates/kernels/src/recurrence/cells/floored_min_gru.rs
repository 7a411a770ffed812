//! minGRU whose forget gate has a lower bound in every channel, as in HGRN (Qin et al. 2023): 1 − z'_t ≥ γ with z' = (1 − γ) z,
//! h_t = h_{t−1} + z'_t (h̃_t − h_{t−1}), z = σ(k), h̃ = candidate(v). The third input is the largest share of a candidate, c = 1 − γ.
//!
//! Backward, with G_t = ∂L/∂h_t + (1 − z'_{t+1}) G_{t+1} and d = G (h̃ − h_{t−1}): dk = d c z (1 − z), dc = Σ d z, dv = G c z h̃'(v).

use super::super::candidate::Activation;
use super::super::formulas::Formulas;
use super::super::gate::{Leak, Mixture};
use super::update::Update;
use crate::simd::mul_add;
use pulp::Simd;

/// Inputs v, k and c, the last one a number per channel.
#[derive(Clone, Copy)]
pub struct FlooredMinGru<A>(pub A);

impl<A: Activation> FlooredMinGru<A> {
    /// 1 − c z = (1 − z) + z (1 − c) is a sum of positive numbers, exact where it is small.
    #[inline(always)]
    fn parts<S: Simd>(self, simd: S, [v, k, share]: [S::f32s; 3]) -> (Update<S>, Leak<S>) {
        let one = simd.splat_f32s(1.0);
        let update = Update::new(simd, self.0, [v, k], one);
        let kept = mul_add(simd, simd.sub_f32s(one, share), update.take, update.keep);
        let leak = Leak::of(simd, kept, simd.mul_f32s(share, update.take));
        (update, leak)
    }
}

impl<A: Activation> Formulas<3> for FlooredMinGru<A> {
    const PARTS: usize = 2;
    const SHARED: bool = true;
    type Gate<S: Simd> = Mixture<S>;

    #[inline(always)]
    fn gate<S: Simd>(self, simd: S, x: [S::f32s; 3]) -> Mixture<S> {
        let (update, leak) = self.parts(simd, x);
        Mixture { leak, candidate: update.candidate }
    }

    #[inline(always)]
    fn slopes<S: Simd>(self, simd: S, x: [S::f32s; 3], before: S::f32s) -> ([S::f32s; 3], Mixture<S>) {
        let mul = |x, y| simd.mul_f32s(x, y);
        let (update, leak) = self.parts(simd, x);
        let of_taken = simd.sub_f32s(update.candidate, before);
        let of_v = mul(mul(x[2], update.take), update.slope);
        let of_k = mul(mul(of_taken, x[2]), update.take_slope(simd));
        ([of_v, of_k, mul(of_taken, update.take)], Mixture { leak, candidate: update.candidate })
    }
}
