//! LSTM, step by step. The equations stand in [`crate::lstm`].

use super::gru::{affine, before};
use super::{Float, sigmoid};
use crate::lstm::Start;
use crate::segments::{CONTINUE, PADDING, RESET};
use crate::shape::Shape;
use alloc::{vec, vec::Vec};

/// Results of [`forward`].
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "named after the kernel's arguments")]
pub struct Outputs<T> {
    pub h: Vec<T>,
    pub c: Vec<T>,
    pub h_last: Vec<T>,
    pub c_last: Vec<T>,
}

/// Gradients of [`backward`], named after what they belong to; that of the recurrent bias equals that of the bias.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "named after the arguments")]
pub struct Gradients<T> {
    pub preact: Vec<T>,
    pub bias: Vec<T>,
    pub weight: Vec<T>,
    pub h0: Vec<T>,
    pub c0: Vec<T>,
    pub init_h: Vec<T>,
    pub init_c: Vec<T>,
}

/// σ(i), σ(f), tanh(g), σ(o) of one step, `[4E]`.
fn gates<T: Float>(p: &[T], bias: Option<&[T]>, weight: &[T], recurrent_bias: Option<&[T]>, h: &[T]) -> Vec<T> {
    let e = h.len();
    let u = affine(weight, recurrent_bias, h, 0, 4 * e);
    (0..4 * e)
        .map(|i| {
            let x = p[i] + bias.map_or(T::ZERO, |b| b[i]) + u[i];
            if i / e == 2 { x.tanh() } else { sigmoid(x) }
        })
        .collect()
}

/// Outputs and cell states `[B, T, E]`, final states `[B, E]`.
pub fn forward<T: Float>(
    shape: Shape,
    preact: &[T],
    bias: Option<&[T]>,
    weight: &[T],
    recurrent_bias: Option<&[T]>,
    start: Start<'_, T>,
) -> Outputs<T> {
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
            let gates = gates(&preact[at * 4 * e..][..4 * e], bias, weight, recurrent_bias, &h);
            for j in 0..e {
                let c = gates[e + j] * c[j] + gates[j] * gates[2 * e + j];
                let h = gates[3 * e + j] * c.tanh();
                (out.c[at * e + j], out.h[at * e + j]) = (c, h);
                (out.c_last[b * e + j], out.h_last[b * e + j]) = (c, h);
            }
        }
    }
    out
}

/// Gradients given those of the outputs (`d_h`) and of the final states (`d_h_last`, `d_c_last`).
#[allow(clippy::too_many_arguments, reason = "the kernel's arguments")]
pub fn backward<T: Float>(
    shape: Shape,
    preact: &[T],
    bias: Option<&[T]>,
    weight: &[T],
    recurrent_bias: Option<&[T]>,
    start: Start<'_, T>,
    h: &[T],
    c: &[T],
    d_h: Option<&[T]>,
    d_h_last: Option<&[T]>,
    d_c_last: Option<&[T]>,
) -> Gradients<T> {
    let Shape { batch, seq_len, width: e } = shape;
    let mut d = Gradients {
        preact: vec![T::ZERO; 4 * shape.elements()],
        bias: vec![T::ZERO; 4 * e],
        weight: vec![T::ZERO; 4 * e * e],
        h0: vec![T::ZERO; shape.states()],
        c0: vec![T::ZERO; shape.states()],
        init_h: vec![T::ZERO; e],
        init_c: vec![T::ZERO; e],
    };
    for b in 0..batch {
        let last = |d: Option<&[T]>| d.map_or(vec![T::ZERO; e], |d| d[b * e..][..e].to_vec());
        let (mut gamma, mut kappa) = (last(d_h_last), last(d_c_last));
        for t in (0..seq_len).rev() {
            let at = b * seq_len + t;
            let code = start.h.segments.row(b, seq_len).map_or(CONTINUE, |row| row[t]);
            if code == PADDING {
                continue;
            }
            let h_before = before(shape, start.h, h, b, t);
            let c_before = before(shape, start.cell(), c, b, t);
            let gates = gates(&preact[at * 4 * e..][..4 * e], bias, weight, recurrent_bias, &h_before);
            let d_preact = &mut d.preact[at * 4 * e..][..4 * e];
            for j in 0..e {
                let [i, f, g, o] = [0, 1, 2, 3].map(|gate| gates[gate * e + j]);
                let tau = c[at * e + j].tanh();
                let d_out = gamma[j] + d_h.map_or(T::ZERO, |d| d[at * e + j]);
                let d_c = kappa[j] + d_out * o * (T::ONE - tau * tau);
                d_preact[j] = d_c * g * i * (T::ONE - i);
                d_preact[e + j] = d_c * c_before[j] * f * (T::ONE - f);
                d_preact[2 * e + j] = d_c * i * (T::ONE - g * g);
                d_preact[3 * e + j] = d_out * tau * o * (T::ONE - o);
                kappa[j] = d_c * f;
            }
            gamma = vec![T::ZERO; e];
            for (i, &d_gate) in d_preact.iter().enumerate() {
                d.bias[i] += d_gate;
                for k in 0..e {
                    d.weight[i * e + k] += d_gate * h_before[k];
                    gamma[k] += d_gate * weight[i * e + k];
                }
            }
            if code == RESET {
                for j in 0..e {
                    d.init_h[j] += gamma[j];
                    d.init_c[j] += kappa[j];
                }
                gamma.fill(T::ZERO);
                kappa.fill(T::ZERO);
            }
        }
        d.h0[b * e..][..e].copy_from_slice(&gamma);
        d.c0[b * e..][..e].copy_from_slice(&kappa);
    }
    d
}
