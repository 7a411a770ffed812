//! minGRU whose forget gate has a lower bound in every channel, beyond the paper (HGRN): 1 − z'_t ≥ γ with z' = (1 − γ) z,
//! h_t = h_{t−1} + z'_t (h̃_t − h_{t−1}), z = σ(k), h̃ = candidate(v). The kernel takes the largest share of a candidate, c = 1 − γ.
//!
//! Backward, with G_t = ∂L/∂h_t + (1 − z'_{t+1}) G_{t+1} and d = G (h̃ − h_{t−1}): dk = d c z (1 − z), dc = Σ d z, dv = G c z h̃'(v).

use crate::candidate::{Activation, with_candidate};
use crate::matmul::as_out;
use crate::recurrence::cell::{Cell, Leak};
use crate::recurrence::{self, Column, Gradients, Problem, Upstream, bias_alone, columns, columns_out};
use crate::shape::{Candidate, Out, Shape, Start, elements, expect_len};
use crate::simd::exp_neg_abs;
use alloc::{vec, vec::Vec};
use core::marker::PhantomData;
use pulp::Simd;

/// The third input is c, one number per channel.
#[derive(Clone, Copy)]
struct FlooredMinGru<A>(PhantomData<A>);

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

impl<A: Activation> FlooredMinGru<A> {
    /// The gate as in minGRU. 1 − c z = (1 − z) + z (1 − c) is a sum of positive numbers, exact where it is small.
    #[inline(always)]
    fn parts<S: Simd>(simd: S, [v, k, share]: [S::f32s; 3]) -> Parts<S> {
        let one = simd.splat_f32s(1.0);
        let e = exp_neg_abs(simd, k);
        let divisor = simd.add_f32s(one, e);
        let (candidate_e, candidate_divisor) = A::divisor(simd, v);
        let inverse = simd.div_f32s(one, simd.mul_f32s(divisor, candidate_divisor));
        let large = simd.mul_f32s(inverse, candidate_divisor);
        let small = simd.mul_f32s(e, large);
        let candidate_inverse = simd.mul_f32s(inverse, divisor);
        let candidate = A::value(simd, v, candidate_e, candidate_inverse);

        let closed = simd.less_than_f32s(k, simd.splat_f32s(0.0));
        let (update, rest) = (simd.select_f32s(closed, small, large), simd.select_f32s(closed, large, small));
        let shared = simd.mul_f32s(share, update);
        let kept = simd.mul_add_e_f32s(simd.sub_f32s(one, share), update, rest);
        let keeps = simd.less_than_f32s(shared, simd.splat_f32s(0.5));
        Parts {
            leak: Leak::new(simd, simd.select_f32s(keeps, shared, kept), keeps),
            candidate,
            slope: A::slope(simd, v, candidate, candidate_e, candidate_inverse),
            update,
            update_slope: simd.mul_f32s(small, large),
        }
    }
}

impl<A: Activation> Cell<3> for FlooredMinGru<A> {
    const BIASED: bool = true;
    const NARROWEST: usize = 64;
    const SHARED: usize = 1;
    type Gate<S: Simd> = (Leak<S>, S::f32s);

    #[inline(always)]
    fn gate<S: Simd>(self, simd: S, x: [S::f32s; 3]) -> Self::Gate<S> {
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
    fn gradients<S: Simd>(self, simd: S, x: [S::f32s; 3], before: S::f32s, g: S::f32s) -> ([S::f32s; 3], S::f32s) {
        let mul = |x, y| simd.mul_f32s(x, y);
        let parts = Self::parts(simd, x);
        let d_shared = mul(g, simd.sub_f32s(parts.candidate, before));
        let d_v = mul(mul(g, mul(x[2], parts.update)), parts.slope);
        let d_k = mul(mul(d_shared, x[2]), parts.update_slope);
        ([d_v, d_k, mul(d_shared, parts.update)], parts.leak.decay(simd, g))
    }
}

/// The biases of `[candidate | z]` and the shares, `[3E]`: a share is a bias on nothing.
fn parameters(bias: Option<&[f32]>, share: &[f32], width: usize) -> Vec<f32> {
    expect_len("share", share, width);
    let bias = bias.map_or_else(|| vec![0.0; 2 * width], <[f32]>::to_vec);
    expect_len("bias", &bias, elements([2, width]));
    [&bias, share].concat()
}

fn inputs<'a>(shape: Shape, preact: &'a [f32], zeros: &'a [f32]) -> [Column<'a>; 3] {
    expect_len("preact", preact, 2 * shape.elements());
    let [v, k] = columns(preact, shape.width);
    [v, k, bias_alone(zeros)]
}

/// Writes every state to `h` `[B, T, E]` and each row's end to `h_last` `[B, E]`, for `preact` `[B, T, 2E]` with rows
/// `[candidate | z]`, to which `bias` `[2E]` is added, and the shares c `[E]`, each in (0, 1].
///
/// # Panics
/// When a length does not fit `shape`.
#[allow(clippy::too_many_arguments, reason = "a kernel's inputs and outputs")]
pub fn forward(shape: Shape, candidate: Candidate, preact: &[f32], bias: Option<&[f32]>, share: &[f32], start: Start, h: Out, h_last: Out) {
    let (parameters, zeros) = (parameters(bias, share, shape.width), vec![0.0; shape.width]);
    let (x, bias) = (inputs(shape, preact, &zeros), Some(&parameters[..]));
    with_candidate!(candidate, A => {
        let cell = FlooredMinGru::<A>(PhantomData);
        recurrence::forward(&Problem { shape, cell, x, bias, start }, h, h_last);
    });
}

/// Writes the gradients of the pre-activations (in their layout), of the bias `[2E]` where wanted, of the shares `[E]`, of the carried
/// state `[B, E]` and of the reset state `[E]`, given `h` of [`forward`]. An upstream gradient that is `None` is 0.
///
/// # Panics
/// When a length does not fit `shape`.
#[allow(clippy::too_many_arguments, reason = "a kernel's inputs and outputs")]
pub fn backward(
    shape: Shape,
    candidate: Candidate,
    preact: &[f32],
    bias: Option<&[f32]>,
    share: &[f32],
    start: Start,
    h: &[f32],
    d_h: Option<&[f32]>,
    d_h_last: Option<&[f32]>,
    d_preact: Out,
    d_bias: Option<Out>,
    d_share: Out,
    d_h0: Out,
    d_init: Out,
) {
    let (parameters, zeros) = (parameters(bias, share, shape.width), vec![0.0; shape.width]);
    let (x, bias) = (inputs(shape, preact, &zeros), Some(&parameters[..]));
    expect_len("d_preact", d_preact, 2 * shape.elements());
    d_bias.as_deref().inspect(|d| expect_len("d_bias", d, 2 * shape.width));
    expect_len("d_share", d_share, shape.width);
    let [d_v, d_k] = columns_out(d_preact, shape.width);
    let mut sums = vec![0.0; 3 * shape.width];
    let gradients = Gradients { d_bias: Some(as_out(&mut sums)), d_h0, d_init };
    with_candidate!(candidate, A => {
        let cell = FlooredMinGru::<A>(PhantomData);
        let problem = Problem { shape, cell, x, bias, start };
        recurrence::backward(&problem, &Upstream { h, d_h, d_h_last }, [d_v, d_k, d_v.unwritten()], gradients);
    });
    let (d_bias_sums, d_share_sums) = sums.split_at(2 * shape.width);
    d_share.write_copy_of_slice(d_share_sums);
    if let Some(d_bias) = d_bias {
        d_bias.write_copy_of_slice(d_bias_sums);
    }
}
