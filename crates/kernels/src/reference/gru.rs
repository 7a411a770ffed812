//! GRU, step by step. The equations stand in [`crate::gru`].

use super::{Float, sigmoid};
use crate::gru::GruForm;
use crate::segments::{CONTINUE, PADDING, RESET};
use crate::shape::{Shape, Start};
use alloc::{vec, vec::Vec};

/// Gradients of [`backward`], named after what they belong to.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "named after the arguments")]
pub struct Gradients<T> {
    pub preact: Vec<T>,
    pub bias: Vec<T>,
    pub weight: Vec<T>,
    pub recurrent_bias: Vec<T>,
    pub h0: Vec<T>,
    pub init: Vec<T>,
}

/// One step of one row.
struct Step<T> {
    r: Vec<T>,
    z: Vec<T>,
    n: Vec<T>,
    /// What the candidate's rows of the weight meet: h (torch) or r ⊙ h (paper).
    inner: Vec<T>,
    /// U_n · inner + b'_n.
    q: Vec<T>,
    h: Vec<T>,
}

/// y = weight rows `[from, from + y)` · h + bias.
pub(super) fn affine<T: Float>(weight: &[T], bias: Option<&[T]>, h: &[T], from: usize, rows: usize) -> Vec<T> {
    let e = h.len();
    let row = |i: usize| (0..e).fold(bias.map_or(T::ZERO, |b| b[i]), |sum, k| sum + weight[i * e + k] * h[k]);
    (from..from + rows).map(row).collect()
}

/// The state before step `t` of row `b`, from the states after each step.
pub(super) fn before<T: Float>(shape: Shape, start: Start<'_, T>, h: &[T], b: usize, t: usize) -> Vec<T> {
    let Shape { seq_len, width: e, .. } = shape;
    let code = start.segments.row(b, seq_len).map_or(CONTINUE, |row| row[t]);
    match (code, t) {
        (RESET, _) => start.init.map_or(vec![T::ZERO; e], |init| init.to_vec()),
        (_, 0) => start.h0.map_or(vec![T::ZERO; e], |h0| h0[b * e..(b + 1) * e].to_vec()),
        _ => h[(b * seq_len + t - 1) * e..][..e].to_vec(),
    }
}

fn step<T: Float>(form: GruForm, p: &[T], bias: Option<&[T]>, weight: &[T], recurrent_bias: Option<&[T]>, h: &[T]) -> Step<T> {
    let e = h.len();
    let p: Vec<T> = (0..3 * e).map(|i| p[i] + bias.map_or(T::ZERO, |b| b[i])).collect();
    let u = affine(weight, recurrent_bias, h, 0, 2 * e);
    let r: Vec<T> = (0..e).map(|j| sigmoid(p[j] + u[j])).collect();
    let z: Vec<T> = (0..e).map(|j| sigmoid(p[e + j] + u[e + j])).collect();
    let inner: Vec<T> = match form {
        GruForm::Paper => (0..e).map(|j| r[j] * h[j]).collect(),
        GruForm::Torch => h.to_vec(),
    };
    let q = affine(weight, recurrent_bias, &inner, 2 * e, e);
    let n: Vec<T> = (0..e)
        .map(|j| match form {
            GruForm::Paper => (p[2 * e + j] + q[j]).tanh(),
            GruForm::Torch => (p[2 * e + j] + r[j] * q[j]).tanh(),
        })
        .collect();
    let h = (0..e)
        .map(|j| match form {
            GruForm::Paper => (T::ONE - z[j]) * h[j] + z[j] * n[j],
            GruForm::Torch => (T::ONE - z[j]) * n[j] + z[j] * h[j],
        })
        .collect();
    Step { r, z, n, inner, q, h }
}

/// Outputs `[B, T, E]` and final states `[B, E]`.
pub fn forward<T: Float>(
    shape: Shape,
    form: GruForm,
    preact: &[T],
    bias: Option<&[T]>,
    weight: &[T],
    recurrent_bias: Option<&[T]>,
    start: Start<'_, T>,
) -> (Vec<T>, Vec<T>) {
    let Shape { batch, seq_len, width: e } = shape;
    let mut h = vec![T::ZERO; shape.elements()];
    let mut h_last = start.h0.map_or(vec![T::ZERO; shape.states()], |h0| h0.to_vec());
    for b in 0..batch {
        for t in 0..start.segments.length(b, seq_len) {
            let at = b * seq_len + t;
            let previous = before(shape, start, &h, b, t);
            let new = step(form, &preact[at * 3 * e..][..3 * e], bias, weight, recurrent_bias, &previous).h;
            h[at * e..][..e].copy_from_slice(&new);
            h_last[b * e..][..e].copy_from_slice(&new);
        }
    }
    (h, h_last)
}

/// Gradients given those of the outputs (`d_h`) and of the final states (`d_h_last`).
#[allow(clippy::too_many_arguments, reason = "the kernel's arguments")]
pub fn backward<T: Float>(
    shape: Shape,
    form: GruForm,
    preact: &[T],
    bias: Option<&[T]>,
    weight: &[T],
    recurrent_bias: Option<&[T]>,
    start: Start<'_, T>,
    h: &[T],
    d_h: Option<&[T]>,
    d_h_last: Option<&[T]>,
) -> Gradients<T> {
    let Shape { batch, seq_len, width: e } = shape;
    let mut d = Gradients {
        preact: vec![T::ZERO; 3 * shape.elements()],
        bias: vec![T::ZERO; 3 * e],
        weight: vec![T::ZERO; 3 * e * e],
        recurrent_bias: vec![T::ZERO; 3 * e],
        h0: vec![T::ZERO; shape.states()],
        init: vec![T::ZERO; e],
    };
    for b in 0..batch {
        let mut gamma = d_h_last.map_or(vec![T::ZERO; e], |d| d[b * e..][..e].to_vec());
        for t in (0..seq_len).rev() {
            let at = b * seq_len + t;
            let code = start.segments.row(b, seq_len).map_or(CONTINUE, |row| row[t]);
            if code == PADDING {
                continue;
            }
            let previous = before(shape, start, h, b, t);
            let s = step(form, &preact[at * 3 * e..][..3 * e], bias, weight, recurrent_bias, &previous);
            let mut d_preact = vec![T::ZERO; 3 * e];
            // Gradient of the recurrent product: what reaches the weight and the recurrent bias.
            let mut d_product = vec![T::ZERO; 3 * e];
            let mut d_previous = vec![T::ZERO; e];
            for j in 0..e {
                let g = gamma[j] + d_h.map_or(T::ZERO, |d| d[at * e + j]);
                let (z, n) = (s.z[j], s.n[j]);
                let (direct, share, difference) = match form {
                    GruForm::Paper => (T::ONE - z, z, n - previous[j]),
                    GruForm::Torch => (z, T::ONE - z, previous[j] - n),
                };
                d_previous[j] = g * direct;
                d_preact[e + j] = g * difference * z * (T::ONE - z);
                d_preact[2 * e + j] = g * share * (T::ONE - n * n);
                d_product[e + j] = d_preact[e + j];
                d_product[2 * e + j] = match form {
                    GruForm::Paper => d_preact[2 * e + j],
                    GruForm::Torch => d_preact[2 * e + j] * s.r[j],
                };
            }
            for k in 0..e {
                let d_inner = (0..e).fold(T::ZERO, |sum, j| sum + d_product[2 * e + j] * weight[(2 * e + j) * e + k]);
                let slope = s.r[k] * (T::ONE - s.r[k]);
                match form {
                    GruForm::Paper => {
                        d_previous[k] += d_inner * s.r[k];
                        d_preact[k] = d_inner * previous[k] * slope;
                    }
                    GruForm::Torch => {
                        d_previous[k] += d_inner;
                        d_preact[k] = d_preact[2 * e + k] * s.q[k] * slope;
                    }
                }
                d_product[k] = d_preact[k];
            }
            for i in 0..3 * e {
                let inner = if i < 2 * e { &previous } else { &s.inner };
                for k in 0..e {
                    d.weight[i * e + k] += d_product[i] * inner[k];
                    if i < 2 * e {
                        d_previous[k] += d_product[i] * weight[i * e + k];
                    }
                }
                d.bias[i] += d_preact[i];
                d.recurrent_bias[i] += d_product[i];
            }
            d.preact[at * 3 * e..][..3 * e].copy_from_slice(&d_preact);
            gamma = d_previous;
            if code == RESET {
                for (d, g) in d.init.iter_mut().zip(&mut gamma) {
                    *d += *g;
                    *g = T::ZERO;
                }
            }
        }
        d.h0[b * e..][..e].copy_from_slice(&gamma);
    }
    d
}
