//! The paper's log-space recurrence (Feng et al. 2024, appendix B, after Heinsen 2023, arXiv:2311.06281): ln a and ln b in, h out.
//!
//! Heinsen's ln h_t = S_t + ln Σ_{s≤t} e^{ln b_s − S_s}, with S_t = Σ ln a, loses eps · |S_T| in f32. The running log-sum-exp is kept here
//! relative to S_t: with ℓ_t = ln h_t, ℓ_t = max(x, y) + ln(1 + e^{−|x − y|}) of x = ln a_t + ℓ_{t−1} and y = ln b_t. It is the same sum,
//! rebased every step, so the error does not grow with T. ln 0 = −∞ is a value like any other.
//!
//! If time is split into chunks, the state that enters a chunk is computed in linear space. Backward uses the closed forms ∂ln a_t = G_t
//! a_t h_{t−1}, ∂ln b_t = G_t b_t, with G of the linear recurrence.

use super::super::formulas::Formulas;
use super::super::gate::{Gate, Pair};
use crate::simd::{exp, exp_neg_abs, ln, ln_of_normal};
use pulp::Simd;

#[derive(Clone, Copy)]
pub struct LogSpace;

impl Formulas<2> for LogSpace {
    const PARTS: usize = 1;
    const BIASED: bool = false;
    const KEPT: bool = false;
    type Gate<S: Simd> = Pair<S>;

    #[inline(always)]
    fn gate<S: Simd>(self, simd: S, [log_a, log_b]: [S::f32s; 2]) -> Pair<S> {
        Pair { a: exp(simd, log_a), b: exp(simd, log_b) }
    }

    #[inline(always)]
    fn slopes<S: Simd>(self, simd: S, x: [S::f32s; 2], before: S::f32s) -> ([S::f32s; 2], Pair<S>) {
        let gate = self.gate(simd, x);
        ([gate.decay(simd, before), gate.b], gate)
    }

    #[inline(always)]
    fn enter<S: Simd>(self, simd: S, h: S::f32s) -> S::f32s {
        ln(simd, h)
    }

    #[inline(always)]
    fn advance<S: Simd>(self, simd: S, [log_a, log_b]: [S::f32s; 2], log_h: S::f32s) -> S::f32s {
        let kept = simd.add_f32s(log_a, log_h);
        let difference = exp_neg_abs(simd, simd.sub_f32s(kept, log_b));
        let sum = ln_of_normal(simd, simd.add_f32s(simd.splat_f32s(1.0), difference));
        let kept_is_larger = simd.greater_than_f32s(kept, log_b);
        let result = simd.add_f32s(simd.select_f32s(kept_is_larger, kept, log_b), sum);
        // −∞ − (−∞) would be NaN.
        let nothing = simd.splat_f32s(f32::NEG_INFINITY);
        let empty = simd.and_m32s(simd.equal_f32s(kept, nothing), simd.equal_f32s(log_b, nothing));
        simd.select_f32s(empty, nothing, result)
    }

    #[inline(always)]
    fn leave<S: Simd>(self, simd: S, log_h: S::f32s) -> S::f32s {
        exp(simd, log_h)
    }
}
