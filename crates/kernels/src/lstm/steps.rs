//! The element-wise part of one step of all rows of a task. For the formulas see [`super`].
//!
//! `product`, the states and their gradients belong to this step, `[rows, 4E]` and `[rows, E]`; `preact`, `h`, `c`, `d_h` and
//! `d_preact` are the task's, over all steps. Rows in padding are left alone, except that their gradients become 0.

use crate::out::Slots;
use crate::simd::{Simd, TRACE, WithSimd, add_to, load, mul_add, put, sigmoid, sigmoid_pair, store, tanh, without_traces};
use crate::stepwise::{Frame, carried, gate_mut, gate_sum, tanh_and_slope};

/// c⁺, from the pre-activations of i, f and g.
#[inline(always)]
pub fn advance<S: Simd>(simd: S, [i, f, g]: [S::f32s; 3], c: S::f32s) -> S::f32s {
    mul_add(simd, sigmoid(simd, f), c, simd.mul_f32s(sigmoid(simd, i), tanh(simd, g)))
}

/// h⁺, from the pre-activation of o and c⁺.
#[inline(always)]
pub fn output<S: Simd>(simd: S, o: S::f32s, c: S::f32s) -> S::f32s {
    simd.mul_f32s(sigmoid(simd, o), tanh(simd, c))
}

/// The whole step after its product.
pub(super) struct Step<'a> {
    pub frame: Frame<'a>,
    pub product: &'a [f32],
    pub state: &'a mut [f32],
    pub cell_state: &'a mut [f32],
    pub h: Slots<'a>,
    pub c: Slots<'a>,
}

impl WithSimd for Step<'_> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Frame { rows, t, preact, bias } = self.frame;
        let e = rows.width;
        for (row, step) in rows.real(t) {
            let (p, u) = (&preact[step * 4 * e..][..4 * e], &self.product[row * 4 * e..][..4 * e]);
            let (state, cell_state) = (&mut self.state[row * e..][..e], &mut self.cell_state[row * e..][..e]);
            let (h, c) = (&mut self.h[step * e..][..e], &mut self.c[step * e..][..e]);
            for at in (0..e).step_by(S::F32_LANES) {
                let i = gate_sum(simd, e, [p, u, bias], 0, at);
                let f = gate_sum(simd, e, [p, u, bias], 1, at);
                let g = gate_sum(simd, e, [p, u, bias], 2, at);
                let o = gate_sum(simd, e, [p, u, bias], 3, at);
                let new_c = advance(simd, [i, f, g], load(simd, cell_state, at));
                let new_h = output(simd, o, new_c);
                put(simd, cell_state, at, new_c);
                put(simd, state, at, new_h);
                store(simd, c, at, new_c);
                store(simd, h, at, new_h);
            }
        }
    }
}

/// Backward: `product` becomes its own gradient, `kappa` that of the cell state before, `gamma` 0 (all of dh passes through the product).
pub(super) struct Backward<'a> {
    pub frame: Frame<'a>,
    pub cell_before: &'a [f32],
    pub c: &'a [f32],
    pub d_h: Option<&'a [f32]>,
    pub product: &'a mut [f32],
    pub gamma: &'a mut [f32],
    pub kappa: &'a mut [f32],
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
        rows.clear_padded_rows(t, self.product, 4 * e);
        for (row, step) in rows.real(t) {
            let u = &mut self.product[row * 4 * e..][..4 * e];
            let (p, out) = (&preact[step * 4 * e..][..4 * e], &mut self.d_preact[step * 4 * e..][..4 * e]);
            let (c, before) = (&self.c[step * e..][..e], &self.cell_before[row * e..][..e]);
            let d_h = self.d_h.map(|d| &d[step * e..][..e]);
            let (gamma, kappa) = (&mut self.gamma[row * e..][..e], &mut self.kappa[row * e..][..e]);
            for at in (0..e).step_by(S::F32_LANES) {
                let [i, not_i] = sigmoid_pair(simd, gate_sum(simd, e, [p, u, bias], 0, at));
                let [f, not_f] = sigmoid_pair(simd, gate_sum(simd, e, [p, u, bias], 1, at));
                let [g, g_slope] = tanh_and_slope(simd, gate_sum(simd, e, [p, u, bias], 2, at));
                let [o, not_o] = sigmoid_pair(simd, gate_sum(simd, e, [p, u, bias], 3, at));
                let [tau, tau_slope] = tanh_and_slope(simd, load(simd, c, at));
                let d_out = simd.mul_f32s(carried(simd, gamma, d_h, at), o);
                let d_c = without_traces(simd, mul_add(simd, d_out, tau_slope, load(simd, kappa, at)), TRACE);
                let (through_i, through_f) = (simd.mul_f32s(d_c, i), simd.mul_f32s(d_c, f));
                let gradients = [
                    simd.mul_f32s(simd.mul_f32s(through_i, g), not_i),
                    simd.mul_f32s(simd.mul_f32s(through_f, load(simd, before, at)), not_f),
                    simd.mul_f32s(through_i, g_slope),
                    simd.mul_f32s(simd.mul_f32s(d_out, tau), not_o),
                ];
                put(simd, kappa, at, through_f);
                put(simd, gamma, at, simd.splat_f32s(0.0));
                for (index, d) in gradients.into_iter().enumerate() {
                    put(simd, gate_mut(u, e, index), at, d);
                    store(simd, &mut out[index * e..(index + 1) * e], at, d);
                    add_to(simd, gate_mut(self.sums, e, index), at, d);
                }
            }
        }
    }
}
