//! The element-wise part of one step of all rows of a task. For the formulas see [`super`].
//!
//! `product`, the states and their gradients belong to this step, `[rows, NH, 4H]` and `[rows, E]`; `preact`, `states`, `d_h` and
//! `d_preact` are the task's, over all steps. Rows in padding are left alone, except that their gradients become 0.

use super::ForgetGate;
use crate::out::Slots;
use crate::shape::{elements, expect_len};
use crate::simd::{Level, Simd, TRACE, WithSimd, add_to, exp, load, mul_add, put, sigmoid, sigmoid_pair, store, tanh, without_traces};
use crate::stepwise::{Frame, carried, gate, gate_mut, log_sigmoid, tanh_and_slope};

/// The pre-activations of all gates, channel `at` of head `head`: `p` and `bias` are `[4E]`, `u` is `[4H]` of the head.
#[inline(always)]
fn gates<S: Simd>(simd: S, [p, u, bias]: [&[f32]; 3], head: usize, at: usize) -> [S::f32s; 4] {
    let width = u.len() / 4;
    // A loop, since array functions might not be inlined.
    let mut sums = [simd.splat_f32s(0.0); 4];
    for (index, sum) in sums.iter_mut().enumerate() {
        let [p, bias] =
            [&gate(p, p.len() / 4, index)[head * width..][..width], &gate(bias, bias.len() / 4, index)[head * width..][..width]];
        *sum = simd.add_f32s(simd.add_f32s(load(simd, p, at), load(simd, gate(u, width, index), at)), load(simd, bias, at));
    }
    sums
}

/// ln f.
#[inline(always)]
fn log_forget<S: Simd>(simd: S, forget: ForgetGate, x: S::f32s) -> S::f32s {
    match forget {
        ForgetGate::Sigmoid => log_sigmoid(simd, x),
        ForgetGate::Exponential => x,
    }
}

/// The larger of two numbers, NaN if either is NaN: the instructions' maximum would then give the second one, and that of plain Rust the number.
#[inline(always)]
fn larger<S: Simd>(simd: S, a: S::f32s, b: S::f32s) -> S::f32s {
    let of_numbers = simd.select_f32s(simd.greater_than_or_equal_f32s(a, b), a, b);
    simd.select_f32s(simd.equal_f32s(a, a), of_numbers, a)
}

/// h, c, n and m after a step from c, n and m before it.
#[inline(always)]
fn advance<S: Simd>(simd: S, forget: ForgetGate, [i, f, z, o]: [S::f32s; 4], [c, n, m]: [S::f32s; 3]) -> [S::f32s; 4] {
    let kept = simd.add_f32s(log_forget(simd, forget, f), m);
    let new_m = larger(simd, kept, i);
    let (take, keep) = (exp(simd, simd.sub_f32s(i, new_m)), exp(simd, simd.sub_f32s(kept, new_m)));
    let new_c = mul_add(simd, keep, c, simd.mul_f32s(take, tanh(simd, z)));
    let new_n = mul_add(simd, keep, n, take);
    [simd.mul_f32s(sigmoid(simd, o), simd.div_f32s(new_c, new_n)), new_c, new_n, new_m]
}

/// Advances the state h, c, n, m `[E]` of one row by one step; allocates nothing.
///
/// # Shapes
/// `preact`, `bias` `[4E]` in rows i, f, z, o; `product` `[NH, 4H]`, R h of each head.
///
/// # Panics
/// When a length does not fit, or the heads do not divide the width.
pub fn step(level: Level, heads: usize, forget: ForgetGate, preact: &[f32], product: &[f32], bias: &[f32], state: [&mut [f32]; 4]) {
    let e = state[0].len();
    assert!(heads > 0 && e.is_multiple_of(heads), "{heads} heads do not divide a width of {e}");
    [preact, product, bias].iter().for_each(|x| expect_len("preact, product or bias", x, elements([4, e])));
    state.iter().for_each(|state| expect_len("a state", state, e));
    if e == 0 {
        return;
    }
    level.run(Single { heads, forget, inputs: [preact, product, bias], state });
}

struct Single<'a> {
    heads: usize,
    forget: ForgetGate,
    inputs: [&'a [f32]; 3],
    state: [&'a mut [f32]; 4],
}

impl WithSimd for Single<'_> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let [h, c, n, m] = self.state;
        let [p, product, bias] = self.inputs;
        let width = h.len() / self.heads;
        for head in 0..self.heads {
            let own = head * width..(head + 1) * width;
            let (h, c, n, m) = (&mut h[own.clone()], &mut c[own.clone()], &mut n[own.clone()], &mut m[own]);
            let x = [p, &product[head * 4 * width..][..4 * width], bias];
            for at in (0..width).step_by(S::F32_LANES) {
                let old = [load(simd, c, at), load(simd, n, at), load(simd, m, at)];
                let [new_h, new_c, new_n, new_m] = advance(simd, self.forget, gates(simd, x, head, at), old);
                put(simd, h, at, new_h);
                put(simd, c, at, new_c);
                put(simd, n, at, new_n);
                put(simd, m, at, new_m);
            }
        }
    }
}

/// The whole step after its product.
pub(super) struct Step<'a, 'b> {
    pub frame: Frame<'a>,
    pub heads: usize,
    pub forget: ForgetGate,
    pub product: &'a [f32],
    /// h, c, n, m.
    pub state: &'a mut [alloc::vec::Vec<f32>; 4],
    pub states: &'a mut [Slots<'b>; 4],
}

impl WithSimd for Step<'_, '_> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Frame { rows, t, preact, bias } = self.frame;
        let e = rows.width;
        let width = e / self.heads;
        for (row, step) in rows.real(t) {
            let p = &preact[step * 4 * e..][..4 * e];
            for head in 0..self.heads {
                let x = [p, &self.product[(row * e + head * width) * 4..][..4 * width], bias];
                let own = row * e + head * width..row * e + (head + 1) * width;
                let all = step * e + head * width..step * e + (head + 1) * width;
                let [h, c, n, m] = &mut *self.state;
                let (h, c) = (&mut h[own.clone()], &mut c[own.clone()]);
                let (n, m) = (&mut n[own.clone()], &mut m[own]);
                for at in (0..width).step_by(S::F32_LANES) {
                    let gates = gates(simd, x, head, at);
                    let old = [load(simd, c, at), load(simd, n, at), load(simd, m, at)];
                    let [new_h, new_c, new_n, new_m] = advance(simd, self.forget, gates, old);
                    put(simd, h, at, new_h);
                    put(simd, c, at, new_c);
                    put(simd, n, at, new_n);
                    put(simd, m, at, new_m);
                    for (part, value) in [new_h, new_c, new_n, new_m].into_iter().enumerate() {
                        store(simd, &mut self.states[part][all.clone()], at, value);
                    }
                }
            }
        }
    }
}

/// Backward: `product` becomes its own gradient, κ and ν those of c and n before, γ 0 (all of dh passes through the product).
pub(super) struct Backward<'a> {
    pub frame: Frame<'a>,
    pub heads: usize,
    pub forget: ForgetGate,
    /// c, n and m before the step.
    pub memory: &'a [alloc::vec::Vec<f32>; 3],
    /// h, c, n, m.
    pub states: [&'a [f32]; 4],
    pub d_h: Option<&'a [f32]>,
    pub product: &'a mut [f32],
    /// γ, κ, ν.
    pub gradients: &'a mut [alloc::vec::Vec<f32>; 3],
    /// Sums of the gates' gradients, `[4E]`.
    pub sums: &'a mut [f32],
    pub d_preact: Slots<'a>,
}

impl WithSimd for Backward<'_> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Frame { rows, t, preact, bias } = self.frame;
        let e = rows.width;
        let width = e / self.heads;
        rows.clear_padded_rows(t, self.product, 4 * e);
        for (row, step) in rows.real(t) {
            let (p, out) = (&preact[step * 4 * e..][..4 * e], &mut self.d_preact[step * 4 * e..][..4 * e]);
            for head in 0..self.heads {
                let u = &mut self.product[(row * e + head * width) * 4..][..4 * width];
                let (own, all) = (row * e + head * width, step * e + head * width);
                let d_h = self.d_h.map(|d| &d[all..][..width]);
                let (c, n, m) = (&self.states[1][all..][..width], &self.states[2][all..][..width], &self.states[3][all..][..width]);
                let [c_before, n_before, m_before] = self.memory;
                let (c_before, n_before) = (&c_before[own..][..width], &n_before[own..][..width]);
                let m_before = &m_before[own..][..width];
                let [gamma, kappa, nu] = &mut *self.gradients;
                let (gamma, kappa, nu) = (&mut gamma[own..][..width], &mut kappa[own..][..width], &mut nu[own..][..width]);
                for at in (0..width).step_by(S::F32_LANES) {
                    let x = [p, &*u, bias];
                    let [i, f, z, o] = gates(simd, x, head, at);
                    let f_slope = match self.forget {
                        ForgetGate::Sigmoid => sigmoid_pair(simd, f)[1],
                        ForgetGate::Exponential => simd.splat_f32s(1.0),
                    };
                    let m = load(simd, m, at);
                    let kept = simd.add_f32s(log_forget(simd, self.forget, f), load(simd, m_before, at));
                    let take = exp(simd, simd.sub_f32s(i, m));
                    let keep = exp(simd, simd.sub_f32s(kept, m));
                    let [z, z_slope] = tanh_and_slope(simd, z);
                    let [o, not_o] = sigmoid_pair(simd, o);
                    let inverse = simd.div_f32s(simd.splat_f32s(1.0), load(simd, n, at));
                    let mean = simd.mul_f32s(load(simd, c, at), inverse);
                    let d_out = simd.mul_f32s(carried(simd, gamma, d_h, at), o);
                    let d_mean = simd.mul_f32s(d_out, inverse);
                    let d_c = without_traces(simd, simd.add_f32s(load(simd, kappa, at), d_mean), TRACE);
                    let d_n = without_traces(simd, simd.sub_f32s(load(simd, nu, at), simd.mul_f32s(d_mean, mean)), TRACE);
                    let through = mul_add(simd, d_c, load(simd, c_before, at), simd.mul_f32s(d_n, load(simd, n_before, at)));
                    let gradients = [
                        simd.mul_f32s(take, mul_add(simd, d_c, z, d_n)),
                        simd.mul_f32s(simd.mul_f32s(f_slope, keep), through),
                        simd.mul_f32s(simd.mul_f32s(d_c, take), z_slope),
                        simd.mul_f32s(simd.mul_f32s(d_out, mean), not_o),
                    ];
                    put(simd, kappa, at, simd.mul_f32s(d_c, keep));
                    put(simd, nu, at, simd.mul_f32s(d_n, keep));
                    put(simd, gamma, at, simd.splat_f32s(0.0));
                    for (index, d) in gradients.into_iter().enumerate() {
                        put(simd, gate_mut(u, width, index), at, d);
                        store(simd, &mut out[index * e + head * width..][..width], at, d);
                        add_to(simd, &mut gate_mut(self.sums, e, index)[head * width..][..width], at, d);
                    }
                }
            }
        }
    }
}
