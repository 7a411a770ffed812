//! minLSTM fused with its gates: h_t = f' h_{t−1} + i' h̃_t with f = σ(p), i = σ(q), h̃ = candidate(v) (the paper, §3.2).
//!
//! Backward, with G_t = ∂L/∂h_t + f'_{t+1} G_{t+1}. Normalised: s = G (h_{t−1} − h̃) f' i', dp = s (1 − f), dq = −s (1 − i). Independent:
//! dp = G h_{t−1} f (1 − f), dq = G h̃ i (1 − i). Both: dv = G i' h̃'(v).

use crate::candidate::{Activation, with_candidate};
use crate::recurrence::cell::{Cell, Leak};
use crate::recurrence::{self, Gradients, Problem, Upstream, columns, columns_out};
use crate::shape::{Candidate, Gates, Out, Shape, Start, expect_len};
use crate::simd::exp_neg_abs;
use core::marker::PhantomData;
use pulp::Simd;

/// σ(x) as numerator / divisor, with numerator e^x below 0 and 1 above, divisor 1 + e^−|x|.
#[derive(Clone, Copy)]
struct Fraction<S: Simd> {
    numerator: S::f32s,
    /// Numerator of 1 − σ(x).
    rest: S::f32s,
    divisor: S::f32s,
}

impl<S: Simd> Fraction<S> {
    #[inline(always)]
    fn sigmoid(simd: S, x: S::f32s) -> Self {
        let one = simd.splat_f32s(1.0);
        let e = exp_neg_abs(simd, x);
        let above = simd.greater_than_or_equal_f32s(x, simd.splat_f32s(0.0));
        Self { numerator: simd.select_f32s(above, one, e), rest: simd.select_f32s(above, e, one), divisor: simd.add_f32s(one, e) }
    }
}

/// f' = f / (f + i), i' = i / (f + i).
#[derive(Clone, Copy)]
struct Normalized<A>(PhantomData<A>);

/// What both passes need of one normalised step before the division.
struct Shares<S: Simd> {
    forget: Fraction<S>,
    input: Fraction<S>,
    /// f' : i' = keep : take.
    keep: S::f32s,
    take: S::f32s,
    total: S::f32s,
}

impl<A: Activation> Normalized<A> {
    /// f' = keep / (keep + take), where keep and take are the gates' numerators, each times the other's divisor.
    ///
    /// Two gates far below 0 would give 0 / 0. There σ(x) = e^x to f32's last bit, so only p − q counts and both are moved up together.
    #[inline(always)]
    fn shares<S: Simd>(simd: S, p: S::f32s, q: S::f32s) -> Shares<S> {
        const FAR: f32 = 20.0;
        let beyond = simd.add_f32s(simd.max_f32s(p, q), simd.splat_f32s(FAR));
        let shift = simd.min_f32s(beyond, simd.splat_f32s(0.0));
        let forget = Fraction::sigmoid(simd, simd.sub_f32s(p, shift));
        let input = Fraction::sigmoid(simd, simd.sub_f32s(q, shift));
        let keep = simd.mul_f32s(forget.numerator, input.divisor);
        let take = simd.mul_f32s(input.numerator, forget.divisor);
        Shares { forget, input, keep, take, total: simd.add_f32s(keep, take) }
    }

    #[inline(always)]
    fn leak<S: Simd>(simd: S, shares: &Shares<S>, per_total: S::f32s) -> Leak<S> {
        let small = simd.mul_f32s(simd.min_f32s(shares.keep, shares.take), per_total);
        Leak::new(simd, small, simd.greater_than_f32s(shares.keep, shares.take))
    }
}

impl<A: Activation> Cell<3> for Normalized<A> {
    const BIASED: bool = true;
    const NARROWEST: usize = 64;
    type Gate<S: Simd> = (Leak<S>, S::f32s);

    #[inline(always)]
    fn gate<S: Simd>(self, simd: S, [v, p, q]: [S::f32s; 3]) -> Self::Gate<S> {
        let shares = Self::shares(simd, p, q);
        let (e, divisor) = A::divisor(simd, v);
        let inverse = simd.div_f32s(simd.splat_f32s(1.0), simd.mul_f32s(shares.total, divisor));
        let candidate = A::value(simd, v, e, simd.mul_f32s(inverse, shares.total));
        (Self::leak(simd, &shares, simd.mul_f32s(inverse, divisor)), candidate)
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
    fn gradients<S: Simd>(self, simd: S, [v, p, q]: [S::f32s; 3], before: S::f32s, g: S::f32s) -> ([S::f32s; 3], S::f32s) {
        let mul = |x, y| simd.mul_f32s(x, y);
        let shares = Self::shares(simd, p, q);
        let (e, candidate_divisor) = A::divisor(simd, v);
        // One division for the four divisors.
        let divisors = mul(shares.forget.divisor, shares.input.divisor);
        let others = mul(shares.total, candidate_divisor);
        let inverse = simd.div_f32s(simd.splat_f32s(1.0), mul(divisors, others));
        let (per_divisors, per_others) = (mul(inverse, others), mul(inverse, divisors));
        let per_total = mul(per_others, candidate_divisor);
        let candidate_inverse = mul(per_others, shares.total);

        let candidate = A::value(simd, v, e, candidate_inverse);
        let slope = A::slope(simd, v, candidate, e, candidate_inverse);
        let (keep, take) = (mul(shares.keep, per_total), mul(shares.take, per_total));
        let s = mul(mul(g, simd.sub_f32s(before, candidate)), mul(keep, take));
        let d_p = mul(s, mul(shares.forget.rest, mul(per_divisors, shares.input.divisor)));
        let d_q = simd.neg_f32s(mul(s, mul(shares.input.rest, mul(per_divisors, shares.forget.divisor))));
        ([mul(mul(g, take), slope), d_p, d_q], Self::leak(simd, &shares, per_total).decay(simd, g))
    }
}

/// f and i as they are.
#[derive(Clone, Copy)]
struct Unnormalized<A>(PhantomData<A>);

/// Everything that both passes need of one step with independent gates.
struct Parts<S: Simd> {
    leak: Leak<S>,
    candidate: S::f32s,
    slope: S::f32s,
    input: S::f32s,
    /// f (1 − f) and i (1 − i).
    gate_slopes: [S::f32s; 2],
}

impl<A: Activation> Unnormalized<A> {
    #[inline(always)]
    fn parts<S: Simd>(simd: S, [v, p, q]: [S::f32s; 3]) -> Parts<S> {
        let mul = |x, y| simd.mul_f32s(x, y);
        let (forget, input) = (Fraction::sigmoid(simd, p), Fraction::sigmoid(simd, q));
        let (e, candidate_divisor) = A::divisor(simd, v);
        // One division for the three divisors.
        let gates = mul(forget.divisor, input.divisor);
        let inverse = simd.div_f32s(simd.splat_f32s(1.0), mul(gates, candidate_divisor));
        let per_gates = mul(inverse, candidate_divisor);
        let (per_forget, per_input) = (mul(per_gates, input.divisor), mul(per_gates, forget.divisor));
        let candidate_inverse = mul(inverse, gates);
        let candidate = A::value(simd, v, e, candidate_inverse);
        let (f, not_f) = (mul(forget.numerator, per_forget), mul(forget.rest, per_forget));
        let (i, not_i) = (mul(input.numerator, per_input), mul(input.rest, per_input));
        Parts {
            leak: Leak::new(simd, simd.min_f32s(f, not_f), simd.greater_than_f32s(f, not_f)),
            candidate,
            slope: A::slope(simd, v, candidate, e, candidate_inverse),
            input: i,
            gate_slopes: [mul(f, not_f), mul(i, not_i)],
        }
    }
}

impl<A: Activation> Cell<3> for Unnormalized<A> {
    const BIASED: bool = true;
    const NARROWEST: usize = 64;
    /// The forget gate, and i h̃.
    type Gate<S: Simd> = (Leak<S>, S::f32s);

    #[inline(always)]
    fn gate<S: Simd>(self, simd: S, x: [S::f32s; 3]) -> Self::Gate<S> {
        let parts = Self::parts(simd, x);
        (parts.leak, simd.mul_f32s(parts.input, parts.candidate))
    }

    #[inline(always)]
    fn step<S: Simd>(self, simd: S, (leak, value): Self::Gate<S>, h: S::f32s) -> S::f32s {
        simd.add_f32s(leak.decay(simd, h), value)
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
        let d_v = mul(mul(g, parts.input), parts.slope);
        let d_p = mul(mul(g, before), parts.gate_slopes[0]);
        let d_q = mul(mul(g, parts.candidate), parts.gate_slopes[1]);
        ([d_v, d_p, d_q], parts.leak.decay(simd, g))
    }
}

/// Writes every state to `h` `[B, T, E]` and each row's end to `h_last` `[B, E]`, for `preact` `[B, T, 3E]` with rows
/// `[candidate | f | i]`, to which `bias` `[3E]` is added.
///
/// # Panics
/// When a length does not fit `shape`.
#[allow(clippy::too_many_arguments, reason = "a kernel's inputs and outputs")]
pub fn forward(shape: Shape, candidate: Candidate, gates: Gates, preact: &[f32], bias: Option<&[f32]>, start: Start, h: Out, h_last: Out) {
    expect_len("preact", preact, 3 * shape.elements());
    let x = columns(preact, shape.width);
    with_candidate!(candidate, A => match gates {
        Gates::Normalized => recurrence::forward(&Problem { shape, cell: Normalized::<A>(PhantomData), x, bias, start }, h, h_last),
        Gates::Unnormalized => recurrence::forward(&Problem { shape, cell: Unnormalized::<A>(PhantomData), x, bias, start }, h, h_last),
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
    gates: Gates,
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
    with_candidate!(candidate, A => match gates {
        Gates::Normalized => {
            recurrence::backward(&Problem { shape, cell: Normalized::<A>(PhantomData), x, bias, start }, &upstream, d_x, gradients)
        }
        Gates::Unnormalized => {
            recurrence::backward(&Problem { shape, cell: Unnormalized::<A>(PhantomData), x, bias, start }, &upstream, d_x, gradients)
        }
    });
}
