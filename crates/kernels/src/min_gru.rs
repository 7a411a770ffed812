//! minGRU fused with its gates: h_t = h_{t−1} + z_t (h̃_t − h_{t−1}) with z = σ(k), h̃ = candidate(v) (the paper, §3.1).
//!
//! Backward, with G_t = ∂L/∂h_t + (1 − z_{t+1}) G_{t+1}: dk = G (h̃ − h_{t−1}) z (1 − z), dv = G z h̃'(v). Gates are recomputed from the
//! pre-activations, so only h is kept between the passes.

use crate::candidate::{Activation, with_candidate};
use crate::recurrence::cell::{Cell, Leak};
use crate::recurrence::{self, Gradients, Problem, Upstream, columns, columns_out};
use crate::shape::{Candidate, Out, Shape, Start, expect_len};
use crate::simd::exp_neg_abs;
use core::marker::PhantomData;
use pulp::Simd;

#[derive(Clone, Copy)]
struct MinGru<A>(PhantomData<A>);

/// Everything that both passes need of one step.
struct Parts<S: Simd> {
    leak: Leak<S>,
    candidate: S::f32s,
    slope: S::f32s,
    /// z
    update: S::f32s,
    /// z (1 − z)
    update_slope: S::f32s,
}

impl<A: Activation> MinGru<A> {
    /// With e = e^−|k|, the smaller of z and 1 − z is e / (1 + e), the larger one 1 / (1 + e): both exact. One division serves the
    /// gate and the candidate.
    #[inline(always)]
    fn parts<S: Simd>(simd: S, [v, k]: [S::f32s; 2]) -> Parts<S> {
        let one = simd.splat_f32s(1.0);
        let e = exp_neg_abs(simd, k);
        let divisor = simd.add_f32s(one, e);
        let (candidate_e, candidate_divisor) = A::divisor(simd, v);
        let inverse = simd.div_f32s(one, simd.mul_f32s(divisor, candidate_divisor));
        let large = simd.mul_f32s(inverse, candidate_divisor);
        let candidate_inverse = simd.mul_f32s(inverse, divisor);
        let small = simd.mul_f32s(e, large);
        let keeps = simd.less_than_f32s(k, simd.splat_f32s(0.0));
        let candidate = A::value(simd, v, candidate_e, candidate_inverse);
        Parts {
            leak: Leak::new(simd, small, keeps),
            candidate,
            slope: A::slope(simd, v, candidate, candidate_e, candidate_inverse),
            update: simd.select_f32s(keeps, small, large),
            update_slope: simd.mul_f32s(small, large),
        }
    }
}

impl<A: Activation> Cell<2> for MinGru<A> {
    const BIASED: bool = true;
    const NARROWEST: usize = 64;
    type Gate<S: Simd> = (Leak<S>, S::f32s);

    #[inline(always)]
    fn gate<S: Simd>(self, simd: S, x: [S::f32s; 2]) -> Self::Gate<S> {
        let parts = Self::parts(simd, x);
        (parts.leak, parts.candidate)
    }

    #[inline(always)]
    fn step<S: Simd>(self, simd: S, (leak, candidate): Self::Gate<S>, h: S::f32s) -> S::f32s {
        leak.mix(simd, h, candidate)
    }

    #[inline(always)]
    fn decay<S: Simd>(self, simd: S, (leak, _): Self::Gate<S>, h: S::f32s) -> S::f32s {
        leak.decay(simd, h)
    }

    #[inline(always)]
    fn loss<S: Simd>(self, simd: S, (leak, _): Self::Gate<S>) -> S::f32s {
        leak.loss(simd)
    }

    #[inline(always)]
    fn gradients<S: Simd>(self, simd: S, x: [S::f32s; 2], before: S::f32s, g: S::f32s) -> ([S::f32s; 2], S::f32s) {
        let parts = Self::parts(simd, x);
        let d_update = simd.mul_f32s(g, simd.sub_f32s(parts.candidate, before));
        let d_candidate = simd.mul_f32s(g, parts.update);
        ([simd.mul_f32s(d_candidate, parts.slope), simd.mul_f32s(d_update, parts.update_slope)], parts.leak.decay(simd, g))
    }
}

/// Writes every state to `h` `[B, T, E]` and each row's end to `h_last` `[B, E]`, for `preact` `[B, T, 2E]` with rows
/// `[candidate | z]`, to which `bias` `[2E]` is added.
///
/// # Panics
/// When a length does not fit `shape`.
#[allow(clippy::too_many_arguments, reason = "a kernel's inputs and outputs")]
pub fn forward(shape: Shape, candidate: Candidate, preact: &[f32], bias: Option<&[f32]>, start: Start, h: Out, h_last: Out) {
    expect_len("preact", preact, 2 * shape.elements());
    let x = columns(preact, shape.width);
    with_candidate!(candidate, A => recurrence::forward(&Problem { shape, cell: MinGru::<A>(PhantomData), x, bias, start }, h, h_last));
}

/// Writes the gradients of the pre-activations (in their layout), of the bias `[2E]` where wanted, of the carried state `[B, E]` and of
/// the reset state `[E]`, given `h` of [`forward`]. An upstream gradient that is `None` is 0.
///
/// # Panics
/// When a length does not fit `shape`.
#[allow(clippy::too_many_arguments, reason = "a kernel's inputs and outputs")]
pub fn backward(
    shape: Shape,
    candidate: Candidate,
    preact: &[f32],
    bias: Option<&[f32]>,
    start: Start,
    h: &[f32],
    d_h: Option<&[f32]>,
    d_h_last: Option<&[f32]>,
    d_preact: Out,
    d_bias: Option<Out>,
    d_h0: Out,
    d_init: Out,
) {
    expect_len("preact", preact, 2 * shape.elements());
    expect_len("d_preact", d_preact, 2 * shape.elements());
    let x = columns(preact, shape.width);
    let d_x = columns_out(d_preact, shape.width);
    let (upstream, gradients) = (Upstream { h, d_h, d_h_last }, Gradients { d_bias, d_h0, d_init });
    with_candidate!(candidate, A => {
        recurrence::backward(&Problem { shape, cell: MinGru::<A>(PhantomData), x, bias, start }, &upstream, d_x, gradients)
    });
}
