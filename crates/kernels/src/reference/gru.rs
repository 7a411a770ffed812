//! GRU, step by step. For the equations see [`crate::gru`].

use super::scan::{Outputs, code, state_before};
use super::{Float, sigmoid};
use crate::gru::{GruForm, Inputs, Upstream};
use crate::segments::{PADDING, RESET};
use crate::shape::Shape;
use crate::start::Start;
use alloc::{vec, vec::Vec};

/// Gradients of the GRU.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradients<T> {
    /// With respect to the pre-activations `[B, T, 3E]`.
    pub d_preact: Vec<T>,
    /// With respect to the bias `[3E]`.
    pub d_bias: Vec<T>,
    /// With respect to the recurrent weight `[3E, E]`.
    pub d_weight: Vec<T>,
    /// With respect to the recurrent bias `[3E]`.
    pub d_recurrent_bias: Vec<T>,
    /// With respect to the carried state `[B, E]`.
    pub d_h0: Vec<T>,
    /// With respect to the state that resets restore `[E]`.
    pub d_init: Vec<T>,
}

/// One step of one row.
struct Step<T> {
    /// σ(x) and 1 − σ(x) of the gates.
    r: Vec<[T; 2]>,
    z: Vec<[T; 2]>,
    /// tanh(x) and its slope.
    n: Vec<[T; 2]>,
    /// What the candidate's rows of the weight multiply: h (torch) or r ⊙ h (paper).
    inner: Vec<T>,
    /// U_n · inner + b'_n.
    q: Vec<T>,
    h: Vec<T>,
}

/// The weight's rows `[from, from + rows)` · h + bias.
pub(super) fn affine<T: Float>(weight: &[T], bias: Option<&[T]>, h: &[T], from: usize, rows: usize) -> Vec<T> {
    let e = h.len();
    let row = |i: usize| (0..e).fold(bias.map_or(T::ZERO, |b| b[i]), |sum, k| sum + weight[i * e + k] * h[k]);
    (from..from + rows).map(row).collect()
}

/// σ(x) and 1 − σ(x), the latter without cancellation.
pub(super) fn sigmoid_pair<T: Float>(x: T) -> [T; 2] {
    [sigmoid(x), sigmoid(-x)]
}

/// tanh(x) and 1 − tanh²(x), the latter without cancellation.
pub(super) fn tanh_and_slope<T: Float>(x: T) -> [T; 2] {
    [x.tanh(), T::from_f64(4.0) * sigmoid(x + x) * sigmoid(-(x + x))]
}

/// The state before step `t` of row `b`, from the states after each step.
pub(super) fn before<T: Float>(shape: Shape, start: Start<'_, T>, h: &[T], b: usize, t: usize) -> Vec<T> {
    (0..shape.width).map(|j| state_before(shape, start, h, b, t, j)).collect()
}

/// The step of row and time `at`, from the state before it.
fn step<T: Float>(inputs: Inputs<T>, at: usize, h: &[T]) -> Step<T> {
    let Inputs { form, preact, bias, weight, recurrent_bias, .. } = inputs;
    let e = h.len();
    let p: Vec<T> = (0..3 * e).map(|i| preact[at * 3 * e + i] + bias.map_or(T::ZERO, |b| b[i])).collect();
    let u = affine(weight, recurrent_bias, h, 0, 2 * e);
    let r: Vec<[T; 2]> = (0..e).map(|j| sigmoid_pair(p[j] + u[j])).collect();
    let z: Vec<[T; 2]> = (0..e).map(|j| sigmoid_pair(p[e + j] + u[e + j])).collect();
    let inner: Vec<T> = match form {
        GruForm::Paper => (0..e).map(|j| r[j][0] * h[j]).collect(),
        GruForm::Torch => h.to_vec(),
    };
    let q = affine(weight, recurrent_bias, &inner, 2 * e, e);
    let n: Vec<[T; 2]> = (0..e)
        .map(|j| match form {
            GruForm::Paper => tanh_and_slope(p[2 * e + j] + q[j]),
            GruForm::Torch => tanh_and_slope(p[2 * e + j] + r[j][0] * q[j]),
        })
        .collect();
    let h = (0..e)
        .map(|j| match form {
            GruForm::Paper => z[j][1] * h[j] + z[j][0] * n[j][0],
            GruForm::Torch => z[j][1] * n[j][0] + z[j][0] * h[j],
        })
        .collect();
    Step { r, z, n, inner, q, h }
}

/// Outputs `[B, T, E]` and final states `[B, E]`.
pub fn forward<T: Float>(shape: Shape, inputs: Inputs<T>) -> Outputs<T> {
    let start = inputs.start;
    let Shape { batch, seq_len, width: e } = shape;
    let mut h = vec![T::ZERO; shape.elements()];
    let mut h_last = start.h0.map_or(vec![T::ZERO; shape.states()], |h0| h0.to_vec());
    for b in 0..batch {
        for t in 0..start.segments.length(b, seq_len) {
            let at = b * seq_len + t;
            let previous = before(shape, start, &h, b, t);
            let new = step(inputs, at, &previous).h;
            h[at * e..][..e].copy_from_slice(&new);
            h_last[b * e..][..e].copy_from_slice(&new);
        }
    }
    Outputs { h, h_last }
}

/// Gradients of everything.
pub fn backward<T: Float>(shape: Shape, inputs: Inputs<T>, upstream: Upstream<T>) -> Gradients<T> {
    let Inputs { form, weight, start, .. } = inputs;
    let Upstream { h, d_h, d_h_last } = upstream;
    let Shape { batch, seq_len, width: e } = shape;
    let mut d = Gradients {
        d_preact: vec![T::ZERO; 3 * shape.elements()],
        d_bias: vec![T::ZERO; 3 * e],
        d_weight: vec![T::ZERO; 3 * e * e],
        d_recurrent_bias: vec![T::ZERO; 3 * e],
        d_h0: vec![T::ZERO; shape.states()],
        d_init: vec![T::ZERO; e],
    };
    for b in 0..batch {
        let mut gamma = d_h_last.map_or(vec![T::ZERO; e], |d| d[b * e..][..e].to_vec());
        for t in (0..seq_len).rev() {
            let at = b * seq_len + t;
            let code = code(shape, start, b, t);
            if code == PADDING {
                continue;
            }
            let previous = before(shape, start, h, b, t);
            let s = step(inputs, at, &previous);
            let mut d_preact = vec![T::ZERO; 3 * e];
            // Gradient of the recurrent product: what reaches the weight and the recurrent bias.
            let mut d_product = vec![T::ZERO; 3 * e];
            let mut d_previous = vec![T::ZERO; e];
            for j in 0..e {
                let g = gamma[j] + d_h.map_or(T::ZERO, |d| d[at * e + j]);
                let ([z, not_z], [n, n_slope]) = (s.z[j], s.n[j]);
                let (direct, share, difference) = match form {
                    GruForm::Paper => (not_z, z, n - previous[j]),
                    GruForm::Torch => (z, not_z, previous[j] - n),
                };
                d_previous[j] = g * direct;
                d_preact[e + j] = g * difference * z * not_z;
                d_preact[2 * e + j] = g * share * n_slope;
                d_product[e + j] = d_preact[e + j];
                d_product[2 * e + j] = match form {
                    GruForm::Paper => d_preact[2 * e + j],
                    GruForm::Torch => d_preact[2 * e + j] * s.r[j][0],
                };
            }
            for k in 0..e {
                let d_inner = (0..e).fold(T::ZERO, |sum, j| sum + d_product[2 * e + j] * weight[(2 * e + j) * e + k]);
                let [r, not_r] = s.r[k];
                match form {
                    GruForm::Paper => {
                        d_previous[k] += d_inner * r;
                        d_preact[k] = d_inner * previous[k] * r * not_r;
                    }
                    GruForm::Torch => {
                        d_previous[k] += d_inner;
                        d_preact[k] = d_preact[2 * e + k] * s.q[k] * r * not_r;
                    }
                }
                d_product[k] = d_preact[k];
            }
            for i in 0..3 * e {
                let inner = if i < 2 * e { &previous } else { &s.inner };
                for k in 0..e {
                    d.d_weight[i * e + k] += d_product[i] * inner[k];
                    if i < 2 * e {
                        d_previous[k] += d_product[i] * weight[i * e + k];
                    }
                }
                d.d_bias[i] += d_preact[i];
                d.d_recurrent_bias[i] += d_product[i];
            }
            d.d_preact[at * 3 * e..][..3 * e].copy_from_slice(&d_preact);
            gamma = d_previous;
            if code == RESET {
                for (d, g) in d.d_init.iter_mut().zip(&mut gamma) {
                    *d += *g;
                    *g = T::ZERO;
                }
            }
        }
        d.d_h0[b * e..][..e].copy_from_slice(&gamma);
    }
    d
}
