//! minGRU that also forgets with the time that passes, beyond the paper: h_t = (1 − z_t) e^{−u_t} h_{t−1} + z_t h̃_t with z = σ(k),
//! h̃ = candidate(v), and u_t = λ Δt_t for the rate λ of a channel and the time Δt_t since the step before.
//!
//! Backward, with G_t = ∂L/∂h_t + (1 − z_{t+1}) e^{−u_{t+1}} G_{t+1}: dv = G z h̃'(v), dk = G z (1 − z) (h̃ − e^{−u} h_{t−1}),
//! du = −G h_{t−1} (1 − z) e^{−u}.

use crate::candidate::with_candidate;
use crate::matmul::as_out;
use crate::recurrence::{self, Column, ColumnOut, Gradients, Problem, Upstream, columns, columns_out};
use crate::scaled_min_gru::{Factor, ScaledMinGru, Value};
use crate::shape::{Candidate, Out, Shape, Start, elements, expect_len};
use crate::simd::exp;
use alloc::{vec, vec::Vec};
use core::marker::PhantomData;
use pulp::Simd;

/// φ(u) = e^{−u}.
#[derive(Clone, Copy)]
struct Decay;

impl Factor for Decay {
    const SIGNED: bool = false;

    #[inline(always)]
    fn divisor<S: Simd>(simd: S, u: S::f32s) -> (S::f32s, S::f32s) {
        (exp(simd, simd.neg_f32s(u)), simd.splat_f32s(1.0))
    }

    /// 1 − e^{−u} from its series where u is small: the difference would be left with few digits.
    #[inline(always)]
    fn value<S: Simd>(simd: S, u: S::f32s, e: S::f32s, _inverse: S::f32s) -> Value<S> {
        const NEAR: f32 = 0.5;
        let one = simd.splat_f32s(1.0);
        let mut series = one;
        for n in [8.0f32, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0] {
            series = simd.mul_add_e_f32s(simd.mul_f32s(u, simd.splat_f32s(-1.0 / n)), series, one);
        }
        let near = simd.less_than_f32s(simd.abs_f32s(u), simd.splat_f32s(NEAR));
        let missing = simd.select_f32s(near, simd.mul_f32s(u, series), simd.sub_f32s(one, e));
        Value { size: e, missing, sign: one, slope: simd.neg_f32s(e) }
    }
}

/// The bias `[3E]` of all three inputs: `exponent` has none.
fn extended(bias: Option<&[f32]>, width: usize) -> Option<Vec<f32>> {
    bias.map(|bias| {
        expect_len("bias", bias, elements([2, width]));
        [bias, &vec![0.0; width]].concat()
    })
}

fn inputs<'a>(shape: Shape, preact: &'a [f32], exponent: &'a [f32]) -> [Column<'a>; 3] {
    expect_len("preact", preact, 2 * shape.elements());
    expect_len("exponent", exponent, shape.elements());
    let [v, k] = columns(preact, shape.width);
    [v, k, Column { data: exponent, stride: shape.width }]
}

/// Writes every state to `h` `[B, T, E]` and each row's end to `h_last` `[B, E]`, for `preact` `[B, T, 2E]` with rows
/// `[candidate | z]`, to which `bias` `[2E]` is added, and the exponents u `[B, T, E]`.
///
/// # Panics
/// When a length does not fit `shape`.
#[allow(clippy::too_many_arguments, reason = "a kernel's inputs and outputs")]
pub fn forward(
    shape: Shape,
    candidate: Candidate,
    preact: &[f32],
    exponent: &[f32],
    bias: Option<&[f32]>,
    start: Start,
    h: Out,
    h_last: Out,
) {
    let x = inputs(shape, preact, exponent);
    let bias = extended(bias, shape.width);
    let bias = bias.as_deref();
    with_candidate!(candidate, A => {
        let cell = ScaledMinGru::<A, Decay>(PhantomData);
        recurrence::forward(&Problem { shape, cell, x, bias, start }, h, h_last);
    });
}

/// Writes the gradients of the pre-activations (in their layout), of the exponents `[B, T, E]`, of the bias `[2E]` where wanted, of the
/// carried state `[B, E]` and of the reset state `[E]`, given `h` of [`forward`]. An upstream gradient that is `None` is 0.
///
/// # Panics
/// When a length does not fit `shape`.
#[allow(clippy::too_many_arguments, reason = "a kernel's inputs and outputs")]
pub fn backward(
    shape: Shape,
    candidate: Candidate,
    preact: &[f32],
    exponent: &[f32],
    bias: Option<&[f32]>,
    start: Start,
    h: &[f32],
    d_h: Option<&[f32]>,
    d_h_last: Option<&[f32]>,
    d_preact: Out,
    d_exponent: Out,
    d_bias: Option<Out>,
    d_h0: Out,
    d_init: Out,
) {
    let x = inputs(shape, preact, exponent);
    expect_len("d_preact", d_preact, 2 * shape.elements());
    expect_len("d_exponent", d_exponent, shape.elements());
    d_bias.as_deref().inspect(|d| expect_len("d_bias", d, 2 * shape.width));
    let [d_v, d_k] = columns_out(d_preact, shape.width);
    let [d_u]: [ColumnOut; 1] = columns_out(d_exponent, shape.width);
    let bias = extended(bias, shape.width);
    let bias = bias.as_deref();
    let mut sums = vec![0.0; if d_bias.is_some() { 3 * shape.width } else { 0 }];
    {
        let d_bias = if sums.is_empty() { None } else { Some(as_out(&mut sums)) };
        let (upstream, gradients) = (Upstream { h, d_h, d_h_last }, Gradients { d_bias, d_h0, d_init });
        with_candidate!(candidate, A => {
            let cell = ScaledMinGru::<A, Decay>(PhantomData);
            recurrence::backward(&Problem { shape, cell, x, bias, start }, &upstream, [d_v, d_k, d_u], gradients);
        });
    }
    if let Some(d_bias) = d_bias {
        d_bias.write_copy_of_slice(&sums[..2 * shape.width]);
    }
}
