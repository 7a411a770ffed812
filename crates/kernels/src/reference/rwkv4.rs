//! RWKV-4's time mixing, step by step, with P and Q as in the equations of [`crate::rwkv4`].
//!
//! e^k must be representable in the type; the kernel has no such limit.

use super::{Float, sigmoid};
use crate::rwkv4::{Inputs, Start};
use crate::segments::RESET;
use crate::shape::Shape;
use alloc::{vec, vec::Vec};

/// The outputs of the recurrence.
#[derive(Debug, Clone, PartialEq)]
pub struct Outputs<T> {
    /// `[B, T, E]`, 0 at padding.
    pub y: Vec<T>,
    /// The mean at each row's end `[B, E]`.
    pub mean_last: Vec<T>,
    /// The log-weight at each row's end `[B, E]`.
    pub log_weight_last: Vec<T>,
    /// P and Q before every real step `[B, T, E]`.
    before: Vec<[T; 2]>,
}

/// Gradients of the recurrence.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradients<T> {
    /// With respect to r `[B, T, E]`.
    pub d_receptance: Vec<T>,
    /// With respect to k `[B, T, E]`.
    pub d_key: Vec<T>,
    /// With respect to v `[B, T, E]`.
    pub d_value: Vec<T>,
    /// With respect to the decay `[E]`.
    pub d_decay: Vec<T>,
    /// With respect to the bonus `[E]`.
    pub d_bonus: Vec<T>,
    /// With respect to the carried mean `[B, E]`.
    pub d_mean: Vec<T>,
    /// With respect to the carried log-weight `[B, E]`.
    pub d_log_weight: Vec<T>,
}

fn carried<T: Float>(start: Start<T>, state: usize) -> [T; 2] {
    start.memory.map_or([T::ZERO, T::from_f64(crate::rwkv4::EMPTY.into())], |[mean, log_weight]| [mean[state], log_weight[state]])
}

fn is_reset<T>(shape: Shape, start: Start<T>, b: usize, t: usize) -> bool {
    start.segments.row(b, shape.seq_len).is_some_and(|codes| codes[t] == RESET)
}

/// Outputs and the last memory.
pub fn forward<T: Float>(shape: Shape, inputs: Inputs<T>, start: Start<T>) -> Outputs<T> {
    let Shape { batch, seq_len, width } = shape;
    let zeros = |n| vec![T::ZERO; n];
    let mut out = Outputs {
        y: zeros(shape.elements()),
        mean_last: zeros(shape.states()),
        log_weight_last: zeros(shape.states()),
        before: vec![[T::ZERO; 2]; shape.elements()],
    };
    for b in 0..batch {
        let length = start.segments.length(b, seq_len);
        for e in 0..width {
            let state = b * width + e;
            let [mean, log_weight] = carried(start, state);
            let (mut p, mut q) = (mean * log_weight.exp(), log_weight.exp());
            let fading = (-inputs.decay[e].exp()).exp();
            for t in 0..length {
                let at = (b * seq_len + t) * width + e;
                if is_reset(shape, start, b, t) {
                    (p, q) = (T::ZERO, T::ZERO);
                }
                out.before[at] = [p, q];
                let (weight, value) = (inputs.key[at].exp(), inputs.value[at]);
                let favoured = weight * inputs.bonus[e].exp();
                out.y[at] = sigmoid(inputs.receptance[at]) * (p + favoured * value) / (q + favoured);
                (p, q) = (fading * p + weight * value, fading * q + weight);
            }
            (out.mean_last[state], out.log_weight_last[state]) = if length > 0 { (p / q, q.ln()) } else { (mean, log_weight) };
        }
    }
    out
}

/// Gradients given those of the outputs; `None` is 0.
pub fn backward<T: Float>(
    shape: Shape,
    inputs: Inputs<T>,
    start: Start<T>,
    out: &Outputs<T>,
    d_y: Option<&[T]>,
    d_mean_last: Option<&[T]>,
    d_log_weight_last: Option<&[T]>,
) -> Gradients<T> {
    let Shape { batch, seq_len, width } = shape;
    let zeros = |n| vec![T::ZERO; n];
    let mut d = Gradients {
        d_receptance: zeros(shape.elements()),
        d_key: zeros(shape.elements()),
        d_value: zeros(shape.elements()),
        d_decay: zeros(width),
        d_bonus: zeros(width),
        d_mean: zeros(shape.states()),
        d_log_weight: zeros(shape.states()),
    };
    for b in 0..batch {
        let length = start.segments.length(b, seq_len);
        for e in 0..width {
            let state = b * width + e;
            let [d_mean, d_log_weight] = [d_mean_last, d_log_weight_last].map(|d| d.map_or(T::ZERO, |d| d[state]));
            if length == 0 {
                (d.d_mean[state], d.d_log_weight[state]) = (d_mean, d_log_weight);
                continue;
            }
            let q = out.log_weight_last[state].exp();
            let mut d_p = d_mean / q;
            let mut d_q = (d_log_weight - d_mean * out.mean_last[state]) / q;
            let w = -inputs.decay[e].exp();
            for t in (0..length).rev() {
                let at = (b * seq_len + t) * width + e;
                let [p, q] = out.before[at];
                let (weight, value) = (inputs.key[at].exp(), inputs.value[at]);
                let favoured = weight * inputs.bonus[e].exp();
                let whole = q + favoured;
                let y = (p + favoured * value) / whole;
                let gate = sigmoid(inputs.receptance[at]);
                let d_gated = d_y.map_or(T::ZERO, |d| d[at]);
                d.d_receptance[at] = d_gated * y * gate * (T::ONE - gate);
                let d_y = d_gated * gate;
                let d_favoured = d_y * favoured * (value - y) / whole;
                d.d_key[at] = weight * (d_p * value + d_q) + d_favoured;
                d.d_value[at] = weight * d_p + d_y * favoured / whole;
                d.d_bonus[e] += d_favoured;
                d.d_decay[e] += w * w.exp() * (d_p * p + d_q * q);
                (d_p, d_q) = (w.exp() * d_p + d_y / whole, w.exp() * d_q - d_y * y / whole);
                if is_reset(shape, start, b, t) {
                    (d_p, d_q) = (T::ZERO, T::ZERO);
                }
            }
            let [mean, log_weight] = carried(start, state);
            d.d_mean[state] = d_p * log_weight.exp();
            d.d_log_weight[state] = log_weight.exp() * (d_p * mean + d_q);
        }
    }
    d
}
