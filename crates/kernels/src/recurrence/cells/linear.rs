//! The recurrence whose inputs are a and b themselves.
//!
//! Backward, with G_t = ∂L/∂h_t + a_{t+1} G_{t+1}: ∂a_t = G_t h_{t−1}, ∂b_t = G_t.

use super::super::formulas::Formulas;
use super::super::gate::Pair;
use pulp::Simd;

#[derive(Clone, Copy)]
pub struct Linear;

impl Formulas<2> for Linear {
    const PARTS: usize = 1;
    const BIASED: bool = false;
    const KEPT: bool = false;
    type Gate<S: Simd> = Pair<S>;

    #[inline(always)]
    fn gate<S: Simd>(self, _simd: S, [a, b]: [S::f32s; 2]) -> Pair<S> {
        Pair { a, b }
    }

    #[inline(always)]
    fn slopes<S: Simd>(self, simd: S, [a, b]: [S::f32s; 2], before: S::f32s) -> ([S::f32s; 2], Pair<S>) {
        ([before, simd.splat_f32s(1.0)], Pair { a, b })
    }
}
