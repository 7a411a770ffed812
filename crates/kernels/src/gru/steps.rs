//! The element-wise part of one step of all rows of a task. For the formulas see [`super`].
//!
//! Slices that end in the state's or the product's name are of this step, `[rows, E]` and `[rows, 3E]`; `preact`, `h`, `d_h` and
//! `d_preact` are the task's, over all steps. Rows in padding are left alone, except that their gradients become 0.

use crate::out::Slots;
use crate::simd::{Simd, WithSimd, add_to, load, mul_add, put, sigmoid, sigmoid_pair, store, tanh};
use crate::stepwise::{Frame, carried, gate, gate_mut, gate_sum, tanh_and_slope};

/// h⁺ of the torch form, from the pre-activations of r and z, q = U_n h + b'_n and the input side p_n of the candidate.
#[inline(always)]
pub fn advance_torch<S: Simd>(simd: S, [r, z, q, input]: [S::f32s; 4], h: S::f32s) -> S::f32s {
    let (r, z) = (sigmoid(simd, r), sigmoid(simd, z));
    let n = tanh(simd, mul_add(simd, r, q, input));
    mul_add(simd, z, simd.sub_f32s(h, n), n)
}

/// h⁺ of the paper's form, from z and the pre-activation of the candidate.
#[inline(always)]
pub fn advance_paper<S: Simd>(simd: S, z: S::f32s, n: S::f32s, h: S::f32s) -> S::f32s {
    mul_add(simd, z, simd.sub_f32s(tanh(simd, n), h), h)
}

/// Torch form: the whole step after its product.
pub(super) struct TorchStep<'a> {
    pub frame: Frame<'a>,
    pub inner_bias: &'a [f32],
    pub product: &'a [f32],
    pub state: &'a mut [f32],
    pub h: Slots<'a>,
}

impl WithSimd for TorchStep<'_> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Frame { rows, t, preact, bias } = self.frame;
        let e = rows.width;
        for (row, step) in rows.real(t) {
            let (p, u) = (&preact[step * 3 * e..][..3 * e], &self.product[row * 3 * e..][..3 * e]);
            let (state, h) = (&mut self.state[row * e..][..e], &mut self.h[step * e..][..e]);
            for at in (0..e).step_by(S::F32_LANES) {
                let r = gate_sum(simd, e, [p, u, bias], 0, at);
                let z = gate_sum(simd, e, [p, u, bias], 1, at);
                let q = simd.add_f32s(load(simd, gate(u, e, 2), at), load(simd, self.inner_bias, at));
                let input = simd.add_f32s(load(simd, gate(p, e, 2), at), load(simd, gate(bias, e, 2), at));
                let new = advance_torch(simd, [r, z, q, input], load(simd, state, at));
                put(simd, state, at, new);
                store(simd, h, at, new);
            }
        }
    }
}

/// Paper form: r ⊙ h (0 in padding).
pub(super) struct ResetGate<'a> {
    pub frame: Frame<'a>,
    pub state: &'a [f32],
    pub product: &'a [f32],
    pub inner: &'a mut [f32],
}

impl WithSimd for ResetGate<'_> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Frame { rows, t, preact, bias } = self.frame;
        let e = rows.width;
        rows.clear_padded_rows(t, self.inner, e);
        for (row, step) in rows.real(t) {
            let (p, inner) = (&preact[step * 3 * e..][..3 * e], &mut self.inner[row * e..][..e]);
            let (u, state) = (&self.product[row * 3 * e..][..3 * e], &self.state[row * e..][..e]);
            for at in (0..e).step_by(S::F32_LANES) {
                let r = sigmoid(simd, gate_sum(simd, e, [p, u, bias], 0, at));
                put(simd, inner, at, simd.mul_f32s(r, load(simd, state, at)));
            }
        }
    }
}

/// Paper form: the candidate and the new state, with U_n (r ⊙ h) in `product`.
pub(super) struct StateUpdate<'a> {
    pub frame: Frame<'a>,
    pub product: &'a [f32],
    pub state: &'a mut [f32],
    pub h: Slots<'a>,
}

impl WithSimd for StateUpdate<'_> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Frame { rows, t, preact, bias } = self.frame;
        let e = rows.width;
        for (row, step) in rows.real(t) {
            let (p, u) = (&preact[step * 3 * e..][..3 * e], &self.product[row * 3 * e..][..3 * e]);
            let (state, h) = (&mut self.state[row * e..][..e], &mut self.h[step * e..][..e]);
            for at in (0..e).step_by(S::F32_LANES) {
                let z = sigmoid(simd, gate_sum(simd, e, [p, u, bias], 1, at));
                let new = advance_paper(simd, z, gate_sum(simd, e, [p, u, bias], 2, at), load(simd, state, at));
                put(simd, state, at, new);
                store(simd, h, at, new);
            }
        }
    }
}

/// Torch form, backward: `product` becomes its own gradient, `gamma` the part of dh that does not pass through a product.
pub(super) struct TorchBackward<'a> {
    pub frame: Frame<'a>,
    pub inner_bias: &'a [f32],
    pub before: &'a [f32],
    pub d_h: Option<&'a [f32]>,
    pub product: &'a mut [f32],
    pub gamma: &'a mut [f32],
    /// Sums of ā_r, ā_z, ā_n and the gradient of q, `[4E]`.
    pub sums: &'a mut [f32],
    pub d_preact: Slots<'a>,
}

impl WithSimd for TorchBackward<'_> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Frame { rows, t, preact, bias } = self.frame;
        let e = rows.width;
        rows.clear_padded_rows(t, self.product, 3 * e);
        for (row, step) in rows.real(t) {
            let u = &mut self.product[row * 3 * e..][..3 * e];
            let (p, out) = (&preact[step * 3 * e..][..3 * e], &mut self.d_preact[step * 3 * e..][..3 * e]);
            let d_h = self.d_h.map(|d| &d[step * e..][..e]);
            let (gamma, before) = (&mut self.gamma[row * e..][..e], &self.before[row * e..][..e]);
            for at in (0..e).step_by(S::F32_LANES) {
                let [r, not_r] = sigmoid_pair(simd, gate_sum(simd, e, [p, u, bias], 0, at));
                let [z, not_z] = sigmoid_pair(simd, gate_sum(simd, e, [p, u, bias], 1, at));
                let q = simd.add_f32s(load(simd, gate(u, e, 2), at), load(simd, self.inner_bias, at));
                let input = simd.add_f32s(load(simd, gate(p, e, 2), at), load(simd, gate(bias, e, 2), at));
                let [n, slope] = tanh_and_slope(simd, mul_add(simd, r, q, input));
                let g = carried(simd, gamma, d_h, at);
                let through = simd.mul_f32s(g, z);
                let shared = simd.mul_f32s(g, not_z);
                let d_z = simd.mul_f32s(simd.mul_f32s(shared, z), simd.sub_f32s(load(simd, before, at), n));
                let d_n = simd.mul_f32s(shared, slope);
                let d_r = simd.mul_f32s(simd.mul_f32s(d_n, q), simd.mul_f32s(r, not_r));
                let d_q = simd.mul_f32s(d_n, r);
                put(simd, gamma, at, through);
                for (index, d) in [d_r, d_z, d_q].into_iter().enumerate() {
                    put(simd, gate_mut(u, e, index), at, d);
                }
                for (index, d) in [d_r, d_z, d_n].into_iter().enumerate() {
                    store(simd, &mut out[index * e..(index + 1) * e], at, d);
                }
                for (index, d) in [d_r, d_z, d_n, d_q].into_iter().enumerate() {
                    add_to(simd, gate_mut(self.sums, e, index), at, d);
                }
            }
        }
    }
}

/// Paper form, backward, first half: ā_z and ā_n in place of their products, `gamma` becomes γ (1 − z).
pub(super) struct CandidateBackward<'a> {
    pub frame: Frame<'a>,
    pub before: &'a [f32],
    pub d_h: Option<&'a [f32]>,
    pub product: &'a mut [f32],
    pub gamma: &'a mut [f32],
    pub sums: &'a mut [f32],
    pub d_preact: Slots<'a>,
}

impl WithSimd for CandidateBackward<'_> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Frame { rows, t, preact, bias } = self.frame;
        let e = rows.width;
        rows.clear_padded_rows(t, self.product, 3 * e);
        for (row, step) in rows.real(t) {
            let u = &mut self.product[row * 3 * e..][..3 * e];
            let (p, out) = (&preact[step * 3 * e..][..3 * e], &mut self.d_preact[step * 3 * e..][..3 * e]);
            let d_h = self.d_h.map(|d| &d[step * e..][..e]);
            let (gamma, before) = (&mut self.gamma[row * e..][..e], &self.before[row * e..][..e]);
            for at in (0..e).step_by(S::F32_LANES) {
                let [z, not_z] = sigmoid_pair(simd, gate_sum(simd, e, [p, u, bias], 1, at));
                let [n, slope] = tanh_and_slope(simd, gate_sum(simd, e, [p, u, bias], 2, at));
                let g = carried(simd, gamma, d_h, at);
                let (through, shared) = (simd.mul_f32s(g, not_z), simd.mul_f32s(g, z));
                let d_z = simd.mul_f32s(simd.mul_f32s(through, z), simd.sub_f32s(n, load(simd, before, at)));
                let d_n = simd.mul_f32s(shared, slope);
                put(simd, gamma, at, through);
                for (index, d) in [(1, d_z), (2, d_n)] {
                    put(simd, gate_mut(u, e, index), at, d);
                    store(simd, &mut out[index * e..(index + 1) * e], at, d);
                    add_to(simd, gate_mut(self.sums, e, index), at, d);
                }
            }
        }
    }
}

/// Paper form, backward, second half: ā_r in place of its product, and w ⊙ r joins `gamma`; `d_inner` is w = U_nᵀ ā_n.
pub(super) struct ResetBackward<'a> {
    pub frame: Frame<'a>,
    pub before: &'a [f32],
    pub d_inner: &'a [f32],
    pub product: &'a mut [f32],
    pub gamma: &'a mut [f32],
    pub sums: &'a mut [f32],
    pub d_preact: Slots<'a>,
}

impl WithSimd for ResetBackward<'_> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Frame { rows, t, preact, bias } = self.frame;
        let e = rows.width;
        for (row, step) in rows.real(t) {
            let (p, u) = (&preact[step * 3 * e..][..e], &mut self.product[row * 3 * e..][..e]);
            let out = &mut self.d_preact[step * 3 * e..][..e];
            let (gamma, before) = (&mut self.gamma[row * e..][..e], &self.before[row * e..][..e]);
            let d_inner = &self.d_inner[row * e..][..e];
            for at in (0..e).step_by(S::F32_LANES) {
                let [r, not_r] = sigmoid_pair(simd, gate_sum(simd, e, [p, u, bias], 0, at));
                let w = load(simd, d_inner, at);
                let d_r = simd.mul_f32s(simd.mul_f32s(w, load(simd, before, at)), simd.mul_f32s(r, not_r));
                add_to(simd, gamma, at, simd.mul_f32s(w, r));
                put(simd, u, at, d_r);
                store(simd, out, at, d_r);
                add_to(simd, gate_mut(self.sums, e, 0), at, d_r);
            }
        }
    }
}
