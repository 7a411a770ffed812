//! The paper's log-space recurrence (appendix B, after Heinsen 2023, arXiv:2311.06281): ln a and ln b in, h out.
//!
//! Heinsen's ln h_t = S_t + ln Σ_{s≤t} e^{ln b_s − S_s}, with S_t = Σ ln a, loses eps · |S_T| in f32. The running log-sum-exp is kept here
//! relative to S_t: with ℓ_t = ln h_t, ℓ_t = max(x, y) + ln(1 + e^{−|x − y|}) of x = ln a_t + ℓ_{t−1} and y = ln b_t. It is the same sum,
//! rebased every step, so the error does not grow with T. ln 0 = −∞ is a value like any other.
//!
//! Where time is cut into chunks, the state that enters a chunk is found in linear space. Backward uses the closed forms
//! ∂ln a_t = G_t a_t h_{t−1}, ∂ln b_t = G_t b_t, with G of the linear recurrence.

use crate::grid::SharedOut;
use crate::recurrence::cell::Cell;
use crate::recurrence::{self, Column, ColumnOut, Gradients, Problem, Upstream};
use crate::shape::{Out, Shape, Start, expect_len};
use crate::simd::{exp, exp_neg_abs, ln};
use pulp::Simd;

/// The recurrence whose inputs are ln a and ln b.
#[derive(Clone, Copy)]
struct Logarithms;

impl Cell<2> for Logarithms {
    const BIASED: bool = false;
    const NARROWEST: usize = 64;
    /// a and b.
    type Gate<S: Simd> = [S::f32s; 2];

    #[inline(always)]
    fn gate<S: Simd>(self, simd: S, [log_a, log_b]: [S::f32s; 2]) -> [S::f32s; 2] {
        [exp(simd, log_a), exp(simd, log_b)]
    }

    #[inline(always)]
    fn step<S: Simd>(self, simd: S, [a, b]: [S::f32s; 2], h: S::f32s) -> S::f32s {
        simd.mul_add_e_f32s(a, h, b)
    }

    #[inline(always)]
    fn decay<S: Simd>(self, simd: S, [a, _]: [S::f32s; 2], h: S::f32s) -> S::f32s {
        simd.mul_f32s(a, h)
    }

    #[inline(always)]
    fn loss<S: Simd>(self, simd: S, [a, _]: [S::f32s; 2]) -> S::f32s {
        simd.sub_f32s(simd.splat_f32s(1.0), a)
    }

    #[inline(always)]
    fn gradients<S: Simd>(self, simd: S, x: [S::f32s; 2], before: S::f32s, g: S::f32s) -> ([S::f32s; 2], S::f32s) {
        let [a, b] = self.gate(simd, x);
        let carry = simd.mul_f32s(a, g);
        ([simd.mul_f32s(carry, before), simd.mul_f32s(g, b)], carry)
    }

    #[inline(always)]
    fn enter<S: Simd>(self, simd: S, h: S::f32s) -> S::f32s {
        ln(simd, h)
    }

    #[inline(always)]
    fn advance<S: Simd>(self, simd: S, [log_a, log_b]: [S::f32s; 2], log_h: S::f32s) -> S::f32s {
        let kept = simd.add_f32s(log_a, log_h);
        let difference = exp_neg_abs(simd, simd.sub_f32s(kept, log_b));
        let sum = ln(simd, simd.add_f32s(simd.splat_f32s(1.0), difference));
        let kept_is_larger = simd.greater_than_f32s(kept, log_b);
        let result = simd.add_f32s(simd.select_f32s(kept_is_larger, kept, log_b), sum);
        // Two times −∞ has no difference.
        let nothing = simd.splat_f32s(f32::NEG_INFINITY);
        let empty = simd.and_m32s(simd.equal_f32s(kept, nothing), simd.equal_f32s(log_b, nothing));
        simd.select_f32s(empty, nothing, result)
    }

    #[inline(always)]
    fn leave<S: Simd>(self, simd: S, log_h: S::f32s) -> S::f32s {
        exp(simd, log_h)
    }
}

fn problem<'a>(shape: Shape, log_coeffs: &'a [f32], log_values: &'a [f32], start: Start<'a>) -> Problem<'a, Logarithms, 2> {
    expect_len("log_coeffs", log_coeffs, shape.elements());
    expect_len("log_values", log_values, shape.elements());
    let column = |data| Column { data, stride: shape.width };
    Problem { shape, cell: Logarithms, x: [column(log_coeffs), column(log_values)], bias: None, start }
}

/// Writes every state to `h` `[B, T, E]` and each row's end to `h_last` `[B, E]`, for ln a = `log_coeffs` and ln b = `log_values`
/// `[B, T, E]`. The states in `start` are h ≥ 0, not logarithms.
///
/// # Panics
/// When a length does not fit `shape`.
pub fn forward(shape: Shape, log_coeffs: &[f32], log_values: &[f32], start: Start, h: Out, h_last: Out) {
    recurrence::forward(&problem(shape, log_coeffs, log_values, start), h, h_last);
}

/// Writes the gradients of ln a and ln b `[B, T, E]`, of the carried state `[B, E]` and of the reset state `[E]` (both as h), given `h` of
/// [`forward`]. An upstream gradient that is `None` is 0.
///
/// # Panics
/// When a length does not fit `shape`.
#[allow(clippy::too_many_arguments, reason = "a kernel's inputs and outputs")]
pub fn backward(
    shape: Shape,
    log_coeffs: &[f32],
    log_values: &[f32],
    start: Start,
    h: &[f32],
    d_h: Option<&[f32]>,
    d_h_last: Option<&[f32]>,
    d_log_coeffs: Out,
    d_log_values: Out,
    d_h0: Out,
    d_init: Out,
) {
    expect_len("d_log_coeffs", d_log_coeffs, shape.elements());
    expect_len("d_log_values", d_log_values, shape.elements());
    let d_x = [d_log_coeffs, d_log_values].map(|out| ColumnOut { out: SharedOut::new(out), offset: 0, stride: shape.width });
    let problem = problem(shape, log_coeffs, log_values, start);
    recurrence::backward(&problem, &Upstream { h, d_h, d_h_last }, d_x, Gradients { d_bias: None, d_h0, d_init });
}
