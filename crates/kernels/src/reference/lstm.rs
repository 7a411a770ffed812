//! LSTM, step by step. For the equations see [`crate::lstm`].

use super::Float;
use super::gru::{affine, before, sigmoid_pair, tanh_and_slope};
use super::scan::code;
use crate::lstm::{Inputs, Upstream};
use crate::segments::{PADDING, RESET};
use crate::shape::Shape;
use alloc::{vec, vec::Vec};

/// The outputs of the LSTM.
#[derive(Debug, Clone, PartialEq)]
pub struct Outputs<T> {
    /// Every state `[B, T, E]`, 0 at padding.
    pub h: Vec<T>,
    /// Every cell state `[B, T, E]`, 0 at padding.
    pub c: Vec<T>,
    /// The state at each row's end `[B, E]`.
    pub h_last: Vec<T>,
    /// The cell state at each row's end `[B, E]`.
    pub c_last: Vec<T>,
}

/// Gradients of the LSTM.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradients<T> {
    /// With respect to the pre-activations `[B, T, 4E]`.
    pub d_preact: Vec<T>,
    /// With respect to the bias `[4E]`, and to the recurrent bias.
    pub d_bias: Vec<T>,
    /// With respect to the recurrent weight `[4E, E]`.
    pub d_weight: Vec<T>,
    /// With respect to the carried state `[B, E]`.
    pub d_h0: Vec<T>,
    /// With respect to the carried cell state `[B, E]`.
    pub d_c0: Vec<T>,
    /// With respect to the state that resets restore `[E]`.
    pub d_init_h: Vec<T>,
    /// With respect to the cell state that resets restore `[E]`.
    pub d_init_c: Vec<T>,
}

/// Values of i, f, g, o of the step of row and time `at`, `[4E]`, each with 1 − σ(x) or the slope of tanh beside it.
fn gates<T: Float>(inputs: Inputs<T>, at: usize, h: &[T]) -> Vec<[T; 2]> {
    let e = h.len();
    let u = affine(inputs.weight, inputs.recurrent_bias, h, 0, 4 * e);
    (0..4 * e)
        .map(|i| {
            let x = inputs.preact[at * 4 * e + i] + inputs.bias.map_or(T::ZERO, |b| b[i]) + u[i];
            if i / e == 2 { tanh_and_slope(x) } else { sigmoid_pair(x) }
        })
        .collect()
}

/// Outputs and cell states `[B, T, E]`, final states `[B, E]`.
pub fn forward<T: Float>(shape: Shape, inputs: Inputs<T>) -> Outputs<T> {
    let start = inputs.start;
    let Shape { batch, seq_len, width: e } = shape;
    let mut out = Outputs {
        h: vec![T::ZERO; shape.elements()],
        c: vec![T::ZERO; shape.elements()],
        h_last: start.h.h0.map_or(vec![T::ZERO; shape.states()], |h0| h0.to_vec()),
        c_last: start.c0.map_or(vec![T::ZERO; shape.states()], |c0| c0.to_vec()),
    };
    for b in 0..batch {
        for t in 0..start.h.segments.length(b, seq_len) {
            let at = b * seq_len + t;
            let h = before(shape, start.h, &out.h, b, t);
            let c = before(shape, start.cell(), &out.c, b, t);
            let gates = gates(inputs, at, &h);
            for j in 0..e {
                let [i, f, g, o] = [0, 1, 2, 3].map(|gate| gates[gate * e + j][0]);
                let c = f * c[j] + i * g;
                let h = o * c.tanh();
                (out.c[at * e + j], out.h[at * e + j]) = (c, h);
                (out.c_last[b * e + j], out.h_last[b * e + j]) = (c, h);
            }
        }
    }
    out
}

/// Gradients of everything.
pub fn backward<T: Float>(shape: Shape, inputs: Inputs<T>, upstream: Upstream<T>) -> Gradients<T> {
    let Inputs { weight, start, .. } = inputs;
    let Upstream { h, c, d_h, d_h_last, d_c_last } = upstream;
    let Shape { batch, seq_len, width: e } = shape;
    let mut d = Gradients {
        d_preact: vec![T::ZERO; 4 * shape.elements()],
        d_bias: vec![T::ZERO; 4 * e],
        d_weight: vec![T::ZERO; 4 * e * e],
        d_h0: vec![T::ZERO; shape.states()],
        d_c0: vec![T::ZERO; shape.states()],
        d_init_h: vec![T::ZERO; e],
        d_init_c: vec![T::ZERO; e],
    };
    for b in 0..batch {
        let last = |d: Option<&[T]>| d.map_or(vec![T::ZERO; e], |d| d[b * e..][..e].to_vec());
        let (mut gamma, mut kappa) = (last(d_h_last), last(d_c_last));
        for t in (0..seq_len).rev() {
            let at = b * seq_len + t;
            let code = code(shape, start.h, b, t);
            if code == PADDING {
                continue;
            }
            let h_before = before(shape, start.h, h, b, t);
            let c_before = before(shape, start.cell(), c, b, t);
            let gates = gates(inputs, at, &h_before);
            let d_preact = &mut d.d_preact[at * 4 * e..][..4 * e];
            for j in 0..e {
                let [[i, not_i], [f, not_f], [g, g_slope], [o, not_o]] = [0, 1, 2, 3].map(|gate| gates[gate * e + j]);
                let [tau, tau_slope] = tanh_and_slope(c[at * e + j]);
                let d_out = gamma[j] + d_h.map_or(T::ZERO, |d| d[at * e + j]);
                let d_c = kappa[j] + d_out * o * tau_slope;
                d_preact[j] = d_c * g * i * not_i;
                d_preact[e + j] = d_c * c_before[j] * f * not_f;
                d_preact[2 * e + j] = d_c * i * g_slope;
                d_preact[3 * e + j] = d_out * tau * o * not_o;
                kappa[j] = d_c * f;
            }
            gamma = vec![T::ZERO; e];
            for (i, &d_gate) in d_preact.iter().enumerate() {
                d.d_bias[i] += d_gate;
                for k in 0..e {
                    d.d_weight[i * e + k] += d_gate * h_before[k];
                    gamma[k] += d_gate * weight[i * e + k];
                }
            }
            if code == RESET {
                for j in 0..e {
                    d.d_init_h[j] += gamma[j];
                    d.d_init_c[j] += kappa[j];
                }
                gamma.fill(T::ZERO);
                kappa.fill(T::ZERO);
            }
        }
        d.d_h0[b * e..][..e].copy_from_slice(&gamma);
        d.d_c0[b * e..][..e].copy_from_slice(&kappa);
    }
    d
}
