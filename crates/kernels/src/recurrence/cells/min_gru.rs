//! minGRU: h_t = h_{t−1} + z_t (h̃_t − h_{t−1}) with z = σ(k), h̃ = candidate(v) (Feng et al. 2024, §3.1).
//!
//! Backward, with G_t = ∂L/∂h_t + (1 − z_{t+1}) G_{t+1}: dk = G (h̃ − h_{t−1}) z (1 − z), dv = G z h̃'(v). Gates are recomputed from the
//! pre-activations, so only h is kept between the passes.

use super::super::candidate::Activation;
use super::super::formulas::Formulas;
use super::super::gate::{Leak, Mixture};
use super::update::Update;
use pulp::Simd;

/// Inputs v and k.
#[derive(Clone, Copy)]
pub struct MinGru<A>(pub A);

impl<A: Activation> MinGru<A> {
    #[inline(always)]
    fn parts<S: Simd>(self, simd: S, x: [S::f32s; 2]) -> (Update<S>, Leak<S>) {
        let update = Update::new(simd, self.0, x, simd.splat_f32s(1.0));
        let leak = Leak::new(simd, update.small, update.closed);
        (update, leak)
    }
}

impl<A: Activation> Formulas<2> for MinGru<A> {
    const PARTS: usize = 2;
    type Gate<S: Simd> = Mixture<S>;

    #[inline(always)]
    fn gate<S: Simd>(self, simd: S, x: [S::f32s; 2]) -> Mixture<S> {
        let (update, leak) = self.parts(simd, x);
        Mixture { leak, candidate: update.candidate }
    }

    #[inline(always)]
    fn slopes<S: Simd>(self, simd: S, x: [S::f32s; 2], before: S::f32s) -> ([S::f32s; 2], Mixture<S>) {
        let mul = |x, y| simd.mul_f32s(x, y);
        let (update, leak) = self.parts(simd, x);
        let of_take = simd.sub_f32s(update.candidate, before);
        let slopes = [mul(update.take, update.slope), mul(of_take, update.take_slope(simd))];
        (slopes, Mixture { leak, candidate: update.candidate })
    }
}
