//! The arithmetic between the products, element by element on vectors.
//!
//! Each function reads rows of one length and updates a row of it; what the row held before is one of the inputs.

use minrnn_kernels::simd::{self, Level, Simd, WithSimd, exp_neg_abs, sigmoid, tanh};
use minrnn_kernels::{gru, highway, lstm, silu};

use crate::Candidate;

/// A formula: the new element from those of the inputs and the old one.
trait Formula<const N: usize>: Copy {
    fn value<S: Simd>(self, simd: S, inputs: [S::f32s; N], old: S::f32s) -> S::f32s;
}

struct Each<'a, F, const N: usize> {
    formula: F,
    inputs: [&'a [f32]; N],
    out: &'a mut [f32],
    /// Gets what `out` gets, unless it is empty.
    copy: &'a mut [f32],
}

impl<F: Formula<N>, const N: usize> WithSimd for Each<'_, F, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let len = self.out.len();
        let inputs = self.inputs.map(|input| &input[..len]);
        let mut copy = if self.copy.is_empty() { None } else { Some(&mut self.copy[..len]) };
        for at in (0..len).step_by(S::F32_LANES) {
            // No `map`: as a function of its own it would not have this level's instructions.
            let mut x = [simd.splat_f32s(0.0); N];
            for (x, input) in x.iter_mut().zip(&inputs) {
                *x = simd::load(simd, input, at);
            }
            let value = self.formula.value(simd, x, simd::load(simd, self.out, at));
            simd::put(simd, self.out, at, value);
            if let Some(copy) = &mut copy {
                simd::put(simd, copy, at, value);
            }
        }
    }
}

/// A function that updates a row by a formula of its inputs.
macro_rules! formula {
    ($(#[$doc:meta])* $name:ident($simd:ident, [$($input:ident),*] as $count:literal, $old:ident) $body:expr) => {
        $(#[$doc])*
        #[inline]
        pub(crate) fn $name(level: Level, inputs: [&[f32]; $count], out: &mut [f32]) {
            #[derive(Clone, Copy)]
            struct Here;
            impl Formula<$count> for Here {
                #[inline(always)]
                fn value<S: Simd>(self, $simd: S, [$($input),*]: [S::f32s; $count], $old: S::f32s) -> S::f32s {
                    $body
                }
            }
            level.run(Each { formula: Here, inputs, out, copy: &mut [] });
        }
    };
}

formula! {
    /// out ← out + x + bias.
    add_both(s, [x, bias] as 2, old) s.add_f32s(old, s.add_f32s(x, bias))
}

/// out ← decay · out + factor · x.
#[inline]
pub(crate) fn decay_and_add(level: Level, x: &[f32], decay: f32, factor: f32, out: &mut [f32]) {
    #[derive(Clone, Copy)]
    struct Here {
        decay: f32,
        factor: f32,
    }
    impl Formula<1> for Here {
        #[inline(always)]
        fn value<S: Simd>(self, simd: S, [x]: [S::f32s; 1], old: S::f32s) -> S::f32s {
            simd.mul_add_e_f32s(simd.splat_f32s(self.factor), x, simd.mul_f32s(simd.splat_f32s(self.decay), old))
        }
    }
    level.run(Each { formula: Here { decay, factor }, inputs: [x], out, copy: &mut [] });
}

/// out ← out + x + bias.
#[inline]
pub(crate) fn add_biased(level: Level, x: &[f32], bias: &[f32], out: &mut [f32]) {
    add_both(level, [x, bias], out);
}

formula! {
    /// out ← out + (value + bias) ⊙ σ(gate + bias'). Inputs: value, bias, gate, bias'.
    add_gated_linear(s, [value, bias, gate, gate_bias] as 4, old)
        s.mul_add_e_f32s(s.add_f32s(value, bias), sigmoid(s, s.add_f32s(gate, gate_bias)), old)
}

formula! {
    /// out ← out ⊙ (value + bias) ⊙ scale.
    scale_all(s, [value, bias, scale] as 3, old) s.mul_f32s(old, s.mul_f32s(s.add_f32s(value, bias), scale))
}

/// out ← out ⊙ (value + bias) ⊙ scale.
#[inline]
pub(crate) fn scale_by(level: Level, value: &[f32], bias: &[f32], scale: &[f32], out: &mut [f32]) {
    scale_all(level, [value, bias, scale], out);
}

formula! {
    /// out ← value ⊙ SiLU(gate). Inputs: value, gate.
    swi_glu(s, [value, gate] as 2, _old) s.mul_f32s(value, silu::silu(s, gate).0)
}

formula! {
    /// out ← (x − mean) ⊙ scale + shift.
    shift_all(s, [x, mean, scale, shift] as 4, _old) s.mul_add_e_f32s(s.sub_f32s(x, mean), scale, shift)
}

/// y ← (x − mean) ⊙ scale + shift.
#[inline]
pub(crate) fn scale_shift(level: Level, x: &[f32], [mean, scale, shift]: [&[f32]; 3], y: &mut [f32]) {
    shift_all(level, [x, mean, scale, shift], y);
}

formula! {
    /// out ← x ⊙ scale.
    scaled(s, [x, scale] as 2, _old) s.mul_f32s(x, scale)
}

formula! {
    /// out ← out ⊙ x.
    times(s, [x] as 1, old) s.mul_f32s(old, x)
}

formula! {
    /// out ← SiLU(out).
    silu(s, [] as 0, old) silu::silu(s, old).0
}

formula! {
    /// out ← out ⊙ SiLU(x).
    gate_by_silu(s, [x] as 1, old) s.mul_f32s(old, silu::silu(s, x).0)
}

formula! {
    /// out ← softplus(out + bias).
    softplus(s, [bias] as 1, old) simd::softplus(s, s.add_f32s(old, bias)).0
}

formula! {
    convolve_all(s, [a, b, c, d, p, q, r, t, bias] as 9, _old)
        s.mul_add_e_f32s(d, t, s.mul_add_e_f32s(c, r, s.mul_add_e_f32s(b, q, s.mul_add_e_f32s(a, p, bias))))
}

/// y ← bias + Σ_j taps_j ⊙ inputs_j.
#[inline]
pub(crate) fn convolve(level: Level, [a, b, c, d]: [&[f32]; 4], [p, q, r, t]: [&[f32]; 4], bias: &[f32], y: &mut [f32]) {
    convolve_all(level, [a, b, c, d, p, q, r, t, bias], y);
}

formula! {
    /// out ← σ(p + u + bias).
    gate(s, [p, u, bias] as 3, _old) sigmoid(s, s.add_f32s(s.add_f32s(p, u), bias))
}

formula! {
    /// out ← σ(p + u + bias) ⊙ h.
    gated(s, [p, u, bias, h] as 4, _old) s.mul_f32s(sigmoid(s, s.add_f32s(s.add_f32s(p, u), bias)), h)
}

formula! {
    /// h ← h + z ⊙ (tanh(p + u + bias) − h): the last step of the paper's GRU.
    gru_paper(s, [p, u, bias, z] as 4, h) gru::advance_paper(s, z, s.add_f32s(s.add_f32s(p, u), bias), h)
}

formula! {
    /// h ← n + z ⊙ (h − n) with r, z = σ(p + u + bias), n = tanh(p + bias + r ⊙ (u + bias')): PyTorch's GRU. Inputs: p, u and bias of
    /// r, of z, of n; bias'.
    gru_torch(s, [p_r, u_r, b_r, p_z, u_z, b_z, p_n, u_n, b_n, inner] as 10, h) {
        let (r, z) = (s.add_f32s(s.add_f32s(p_r, u_r), b_r), s.add_f32s(s.add_f32s(p_z, u_z), b_z));
        gru::advance_torch(s, [r, z, s.add_f32s(u_n, inner), s.add_f32s(p_n, b_n)], h)
    }
}

formula! {
    /// c ← σ(f) ⊙ c + σ(i) ⊙ tanh(g), each gate being p + u + bias. Inputs: p, u, bias of i, of f, of g.
    lstm_cell(s, [p_i, u_i, b_i, p_f, u_f, b_f, p_g, u_g, b_g] as 9, c) {
        let (i, f) = (s.add_f32s(s.add_f32s(p_i, u_i), b_i), s.add_f32s(s.add_f32s(p_f, u_f), b_f));
        lstm::advance(s, [i, f, s.add_f32s(s.add_f32s(p_g, u_g), b_g)], c)
    }
}

formula! {
    /// h ← σ(p + u + bias) ⊙ tanh(c).
    lstm_output(s, [p, u, bias, c] as 4, _old) lstm::output(s, s.add_f32s(s.add_f32s(p, u), bias), c)
}

formula! {
    /// out ← share ⊙ x + (1 − share) ⊙ previous.
    mix_with(s, [x, previous, share] as 3, _old) s.mul_add_e_f32s(share, s.sub_f32s(x, previous), previous)
}

formula! {
    /// out ← out + share ⊙ (x − out).
    move_to(s, [x, share] as 2, old) s.mul_add_e_f32s(share, s.sub_f32s(x, old), old)
}

formula! {
    /// out ← relu(x)².
    squared_relu(s, [x] as 1, _old) {
        let positive = s.max_f32s(x, s.splat_f32s(0.0));
        s.mul_f32s(positive, positive)
    }
}

formula! {
    /// out ← out + σ(gate) ⊙ x.
    add_gated(s, [x, gate] as 2, old) s.mul_add_e_f32s(sigmoid(s, gate), x, old)
}

formula! {
    /// out ← out + s ⊙ (value + value_bias) + (1 − s) ⊙ x with s = σ(gate + gate_bias).
    highway(s, [gate, gate_bias, value, value_bias, x] as 5, old)
        s.add_f32s(old, highway::mixture(s, s.add_f32s(gate, gate_bias), s.add_f32s(value, value_bias), x))
}

/// h̃ of its pre-activation.
trait Map: Copy {
    fn map<S: Simd>(simd: S, v: S::f32s) -> S::f32s;
}

#[derive(Clone, Copy)]
struct Positive;
#[derive(Clone, Copy)]
struct Identity;
#[derive(Clone, Copy)]
struct Tanh;

impl Map for Positive {
    #[inline(always)]
    fn map<S: Simd>(simd: S, v: S::f32s) -> S::f32s {
        let above = simd.greater_than_or_equal_f32s(v, simd.splat_f32s(0.0));
        simd.select_f32s(above, simd.add_f32s(v, simd.splat_f32s(0.5)), sigmoid(simd, v))
    }
}

impl Map for Identity {
    #[inline(always)]
    fn map<S: Simd>(_simd: S, v: S::f32s) -> S::f32s {
        v
    }
}

impl Map for Tanh {
    #[inline(always)]
    fn map<S: Simd>(simd: S, v: S::f32s) -> S::f32s {
        tanh(simd, v)
    }
}

/// A mixture of h and the candidate; `small` is the share of the lesser one, which is the candidate where `keeps`. The greater one is
/// where the sum begins, so that it keeps its last bits.
#[inline(always)]
fn mix<S: Simd>(simd: S, h: S::f32s, candidate: S::f32s, small: S::f32s, keeps: S::m32s) -> S::f32s {
    let (from, to) = (simd.select_f32s(keeps, h, candidate), simd.select_f32s(keeps, candidate, h));
    simd.mul_add_e_f32s(small, simd.sub_f32s(to, from), from)
}

#[derive(Clone, Copy)]
struct MinGru<A>(core::marker::PhantomData<A>);

impl<A: Map> Formula<4> for MinGru<A> {
    #[inline(always)]
    fn value<S: Simd>(self, simd: S, [v, k, b_v, b_k]: [S::f32s; 4], h: S::f32s) -> S::f32s {
        let (v, k) = (simd.add_f32s(v, b_v), simd.add_f32s(k, b_k));
        let e = exp_neg_abs(simd, k);
        let small = simd.div_f32s(e, simd.add_f32s(simd.splat_f32s(1.0), e));
        mix(simd, h, A::map(simd, v), small, simd.less_than_f32s(k, simd.splat_f32s(0.0)))
    }
}

/// h ← h + σ(k + b_k) ⊙ (candidate(v + b_v) − h), and a copy of it to `out`.
#[inline]
pub(crate) fn min_gru(level: Level, candidate: Candidate, [v, k]: [&[f32]; 2], [b_v, b_k]: [&[f32]; 2], h: &mut [f32], out: &mut [f32]) {
    fn run<A: Map>(level: Level, inputs: [&[f32]; 4], out: &mut [f32], copy: &mut [f32]) {
        level.run(Each { formula: MinGru::<A>(core::marker::PhantomData), inputs, out, copy });
    }
    let run = match candidate {
        Candidate::Positive => run::<Positive>,
        Candidate::Identity => run::<Identity>,
        Candidate::Tanh => run::<Tanh>,
    };
    run(level, [v, k, b_v, b_k], h, out);
}

/// A formula of one candidate map after another, as a function of the configured choice.
macro_rules! with_map {
    ($(#[$doc:meta])* $name:ident, $formula:ident, $count:literal($($input:ident: $type:ty),+) [$($part:expr),+]) => {
        $(#[$doc])*
        #[inline]
        #[allow(clippy::too_many_arguments, reason = "a cell's inputs")]
        pub(crate) fn $name(level: Level, candidate: Candidate, $($input: $type,)+ h: &mut [f32], out: &mut [f32]) {
            fn run<A: Map>(level: Level, inputs: [&[f32]; $count], out: &mut [f32], copy: &mut [f32]) {
                level.run(Each { formula: $formula::<A>(core::marker::PhantomData), inputs, out, copy });
            }
            let run = match candidate {
                Candidate::Positive => run::<Positive>,
                Candidate::Identity => run::<Identity>,
                Candidate::Tanh => run::<Tanh>,
            };
            run(level, [$($part),+], h, out);
        }
    };
}

#[derive(Clone, Copy)]
struct FlooredMinGru<A>(core::marker::PhantomData<A>);

impl<A: Map> Formula<5> for FlooredMinGru<A> {
    #[inline(always)]
    fn value<S: Simd>(self, simd: S, [v, k, b_v, b_k, share]: [S::f32s; 5], h: S::f32s) -> S::f32s {
        let [update, rest] = simd::sigmoid_pair(simd, simd.add_f32s(k, b_k));
        let taken = simd.mul_f32s(share, update);
        let kept = simd.mul_add_e_f32s(simd.sub_f32s(simd.splat_f32s(1.0), share), update, rest);
        let keeps = simd.less_than_f32s(taken, simd.splat_f32s(0.5));
        mix(simd, h, A::map(simd, simd.add_f32s(v, b_v)), simd.select_f32s(keeps, taken, kept), keeps)
    }
}

with_map! {
    /// h ← h + share ⊙ σ(k + b_k) ⊙ (candidate(v + b_v) − h), and a copy of it to `out`; x is v and k.
    floored_min_gru, FlooredMinGru, 5(x: [&[f32]; 2], bias: [&[f32]; 2], share: &[f32]) [x[0], x[1], bias[0], bias[1], share]
}

#[derive(Clone, Copy)]
struct DecayMinGru<A>(core::marker::PhantomData<A>);

impl<A: Map> Formula<5> for DecayMinGru<A> {
    /// What is lost, z + (1 − z) (1 − e^{−λ}), is taken from h, so that h keeps its last bits where that is little.
    #[inline(always)]
    fn value<S: Simd>(self, simd: S, [v, k, b_v, b_k, lost]: [S::f32s; 5], h: S::f32s) -> S::f32s {
        let [update, rest] = simd::sigmoid_pair(simd, simd.add_f32s(k, b_k));
        let lost = simd.mul_add_e_f32s(rest, lost, update);
        let taken = simd.mul_f32s(update, A::map(simd, simd.add_f32s(v, b_v)));
        simd.add_f32s(h, simd.mul_add_e_f32s(simd.neg_f32s(lost), h, taken))
    }
}

with_map! {
    /// h ← (1 − z) ⊙ (1 − lost) ⊙ h + z ⊙ candidate(v + b_v) with z = σ(k + b_k), and a copy of it to `out`; x is v and k.
    decay_min_gru, DecayMinGru, 5(x: [&[f32]; 2], bias: [&[f32]; 2], lost: &[f32]) [x[0], x[1], bias[0], bias[1], lost]
}

#[derive(Clone, Copy)]
struct SignedMinGru<A>(core::marker::PhantomData<A>);

impl<A: Map> Formula<6> for SignedMinGru<A> {
    #[inline(always)]
    fn value<S: Simd>(self, simd: S, [v, k, s, b_v, b_k, b_s]: [S::f32s; 6], h: S::f32s) -> S::f32s {
        let [update, rest] = simd::sigmoid_pair(simd, simd.add_f32s(k, b_k));
        let coefficient = simd.mul_f32s(rest, tanh(simd, simd.add_f32s(s, b_s)));
        simd.mul_add_e_f32s(coefficient, h, simd.mul_f32s(update, A::map(simd, simd.add_f32s(v, b_v))))
    }
}

with_map! {
    /// h ← (1 − z) ⊙ tanh(s + b_s) ⊙ h + z ⊙ candidate(v + b_v) with z = σ(k + b_k), and a copy of it to `out`; x is v, k and s.
    signed_min_gru, SignedMinGru, 6(x: [&[f32]; 3], bias: [&[f32]; 3]) [x[0], x[1], x[2], bias[0], bias[1], bias[2]]
}

/// σ(x) as numerator / divisor, the divisor being between 1 and 2.
#[inline(always)]
fn fraction<S: Simd>(simd: S, x: S::f32s) -> [S::f32s; 2] {
    let one = simd.splat_f32s(1.0);
    let e = exp_neg_abs(simd, x);
    let above = simd.greater_than_or_equal_f32s(x, simd.splat_f32s(0.0));
    [simd.select_f32s(above, one, e), simd.add_f32s(one, e)]
}

#[derive(Clone, Copy)]
struct MinLstm<A, const NORMALIZED: bool>(core::marker::PhantomData<A>);

impl<A: Map, const NORMALIZED: bool> Formula<6> for MinLstm<A, NORMALIZED> {
    #[inline(always)]
    fn value<S: Simd>(self, simd: S, [v, p, q, b_v, b_p, b_q]: [S::f32s; 6], h: S::f32s) -> S::f32s {
        /// Below −20 a sigmoid is e^x to f32's last bit, so that only the difference of the gates counts.
        const FAR: f32 = 20.0;
        let candidate = A::map(simd, simd.add_f32s(v, b_v));
        let (p, q) = (simd.add_f32s(p, b_p), simd.add_f32s(q, b_q));
        if !NORMALIZED {
            return simd.mul_add_e_f32s(sigmoid(simd, p), h, simd.mul_f32s(sigmoid(simd, q), candidate));
        }
        let beyond = simd.add_f32s(simd.max_f32s(p, q), simd.splat_f32s(FAR));
        let shift = simd.min_f32s(beyond, simd.splat_f32s(0.0));
        let [forget, forget_divisor] = fraction(simd, simd.sub_f32s(p, shift));
        let [input, input_divisor] = fraction(simd, simd.sub_f32s(q, shift));
        let (keep, take) = (simd.mul_f32s(forget, input_divisor), simd.mul_f32s(input, forget_divisor));
        let small = simd.div_f32s(simd.min_f32s(keep, take), simd.add_f32s(keep, take));
        mix(simd, h, candidate, small, simd.greater_than_f32s(keep, take))
    }
}

/// h ← f' ⊙ h + i' ⊙ candidate(v + b_v) for pre-activations v, p, q and their biases, and a copy of it to `out`.
#[inline]
pub(crate) fn min_lstm(
    level: Level,
    candidate: Candidate,
    normalized: bool,
    [v, p, q]: [&[f32]; 3],
    [b_v, b_p, b_q]: [&[f32]; 3],
    h: &mut [f32],
    out: &mut [f32],
) {
    fn run<A: Map, const NORMALIZED: bool>(level: Level, inputs: [&[f32]; 6], out: &mut [f32], copy: &mut [f32]) {
        level.run(Each { formula: MinLstm::<A, NORMALIZED>(core::marker::PhantomData), inputs, out, copy });
    }
    let run = match (candidate, normalized) {
        (Candidate::Positive, true) => run::<Positive, true>,
        (Candidate::Identity, true) => run::<Identity, true>,
        (Candidate::Tanh, true) => run::<Tanh, true>,
        (Candidate::Positive, false) => run::<Positive, false>,
        (Candidate::Identity, false) => run::<Identity, false>,
        (Candidate::Tanh, false) => run::<Tanh, false>,
    };
    run(level, [v, p, q, b_v, b_p, b_q], h, out);
}

/// One state of each channel through a token: h ← exp(Δ ⊙ a) ⊙ h + input · Δ u, y ← y + output · h.
pub(crate) struct StateStep<'a> {
    pub(crate) a: &'a [f32],
    pub(crate) delta: &'a [f32],
    pub(crate) delta_u: &'a [f32],
    pub(crate) input: f32,
    pub(crate) output: f32,
    pub(crate) h: &'a mut [f32],
    pub(crate) y: &'a mut [f32],
}

impl WithSimd for StateStep<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let len = self.h.len();
        let [a, delta, delta_u] = [&self.a[..len], &self.delta[..len], &self.delta_u[..len]];
        let (input, output) = (simd.splat_f32s(self.input), simd.splat_f32s(self.output));
        for at in (0..len).step_by(S::F32_LANES) {
            let decay = simd::exp(simd, simd.mul_f32s(simd::load(simd, delta, at), simd::load(simd, a, at)));
            let added = simd.mul_f32s(input, simd::load(simd, delta_u, at));
            let h = simd.mul_add_e_f32s(decay, simd::load(simd, self.h, at), added);
            let y = simd.mul_add_e_f32s(output, h, simd::load(simd, self.y, at));
            simd::put(simd, self.h, at, h);
            simd::put(simd, self.y, at, y);
        }
    }
}
