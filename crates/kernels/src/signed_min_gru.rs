//! Signed minGRU, beyond the paper: h_t = (1 − z_t) tanh(s_t) h_{t−1} + z_t h̃_t with z = σ(k), h̃ = candidate(v).
//!
//! The coefficient lies in (−1, 1) instead of (0, 1): a step can turn the state around, and so count modulo 2.
//!
//! Backward, with G_t = ∂L/∂h_t + (1 − z_{t+1}) tanh(s_{t+1}) G_{t+1}: dv = G z h̃'(v), dk = G z (1 − z) (h̃ − tanh(s) h_{t−1}),
//! ds = G h_{t−1} (1 − z) (1 − tanh² s).

use crate::candidate::with_candidate;
use crate::recurrence::{self, Gradients, Problem, Upstream, columns, columns_out};
use crate::scaled_min_gru::{Factor, ScaledMinGru, Value};
use crate::shape::{Candidate, Out, Shape, Start, expect_len};
use crate::simd::exp_neg_abs;
use core::marker::PhantomData;
use pulp::Simd;

/// φ = tanh.
#[derive(Clone, Copy)]
struct Tanh;

impl Factor for Tanh {
    const SIGNED: bool = true;

    #[inline(always)]
    fn divisor<S: Simd>(simd: S, s: S::f32s) -> (S::f32s, S::f32s) {
        let e = exp_neg_abs(simd, simd.add_f32s(s, s));
        (e, simd.add_f32s(simd.splat_f32s(1.0), e))
    }

    /// With e = e^−2|s|: |tanh s| = (1 − e) / (1 + e), and 2e / (1 + e) is missing to 1.
    #[inline(always)]
    fn value<S: Simd>(simd: S, s: S::f32s, e: S::f32s, inverse: S::f32s) -> Value<S> {
        let one = simd.splat_f32s(1.0);
        let size = simd.mul_f32s(simd.sub_f32s(one, e), inverse);
        let missing = simd.mul_f32s(simd.add_f32s(e, e), inverse);
        let negative = simd.less_than_f32s(s, simd.splat_f32s(0.0));
        let sign = simd.select_f32s(negative, simd.splat_f32s(-1.0), one);
        Value { size, missing, sign, slope: simd.mul_f32s(missing, simd.add_f32s(one, size)) }
    }
}

/// Writes every state to `h` `[B, T, E]` and each row's end to `h_last` `[B, E]`, for `preact` `[B, T, 3E]` with rows
/// `[candidate | z | s]`, to which `bias` `[3E]` is added.
///
/// # Panics
/// When a length does not fit `shape`.
#[allow(clippy::too_many_arguments, reason = "a kernel's inputs and outputs")]
pub fn forward(shape: Shape, candidate: Candidate, preact: &[f32], bias: Option<&[f32]>, start: Start, h: Out, h_last: Out) {
    expect_len("preact", preact, 3 * shape.elements());
    let x = columns(preact, shape.width);
    with_candidate!(candidate, A => {
        let cell = ScaledMinGru::<A, Tanh>(PhantomData);
        recurrence::forward(&Problem { shape, cell, x, bias, start }, h, h_last);
    });
}

/// Writes the gradients of the pre-activations (in their layout), of the bias `[3E]` where wanted, of the carried state `[B, E]` and of
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
    expect_len("preact", preact, 3 * shape.elements());
    expect_len("d_preact", d_preact, 3 * shape.elements());
    let x = columns(preact, shape.width);
    let d_x = columns_out(d_preact, shape.width);
    let (upstream, gradients) = (Upstream { h, d_h, d_h_last }, Gradients { d_bias, d_h0, d_init });
    with_candidate!(candidate, A => {
        let cell = ScaledMinGru::<A, Tanh>(PhantomData);
        recurrence::backward(&Problem { shape, cell, x, bias, start }, &upstream, d_x, gradients);
    });
}
