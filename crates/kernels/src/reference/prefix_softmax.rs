//! Aaren's attention to a prefix, step by step, with the plain sums of its softmax.
//!
//! e^s must be representable in the type; the kernel has no such limit.

use super::Float;
use crate::prefix_softmax::{EMPTY, Inputs, Start};
use crate::segments::RESET;
use crate::shape::Shape;
use alloc::{vec, vec::Vec};

/// The outputs of the attention.
#[derive(Debug, Clone, PartialEq)]
pub struct Outputs<T> {
    /// Means of every prefix `[B, T, E]`, 0 at padding.
    pub y: Vec<T>,
    /// The mean at each row's end `[B, E]`.
    pub mean_last: Vec<T>,
    /// The log-weight at each row's end `[B, H]`.
    pub log_weight_last: Vec<T>,
    /// Weights of every prefix `[B, T, H]`.
    weights: Vec<T>,
}

/// Gradients of the attention.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradients<T> {
    /// With respect to the scores `[B, T, H]`.
    pub d_scores: Vec<T>,
    /// With respect to the values `[B, T, E]`.
    pub d_values: Vec<T>,
    /// With respect to the carried mean `[B, E]`.
    pub d_mean: Vec<T>,
    /// With respect to the carried log-weight `[B, H]`.
    pub d_log_weight: Vec<T>,
}

fn is_reset<T>(shape: Shape, start: Start<T>, b: usize, t: usize) -> bool {
    start.segments.row(b, shape.seq_len).is_some_and(|codes| codes[t] == RESET)
}

/// Means of every prefix and the last memory.
pub fn forward<T: Float>(shape: Shape, inputs: Inputs<T>, start: Start<T>) -> Outputs<T> {
    let Shape { batch, seq_len, width } = shape;
    let Inputs { heads, scores, values } = inputs;
    let empty = T::from_f64(EMPTY.into());
    let mut out = Outputs {
        y: vec![T::ZERO; shape.elements()],
        mean_last: start.memory.map_or(vec![T::ZERO; shape.states()], |[mean, _]| mean.to_vec()),
        log_weight_last: start.memory.map_or(vec![empty; batch * heads], |[_, log_weight]| log_weight.to_vec()),
        weights: vec![T::ZERO; scores.len()],
    };
    for b in 0..batch {
        for e in 0..width {
            let (head, state) = (e / (width / heads), b * width + e);
            let mut weight = start.memory.map_or(T::ZERO, |[_, log_weight]| log_weight[b * heads + head].exp());
            let mut sum = weight * out.mean_last[state];
            for t in 0..start.segments.length(b, seq_len) {
                let at = b * seq_len + t;
                if is_reset(shape, start, b, t) {
                    (sum, weight) = (T::ZERO, T::ZERO);
                }
                let own = scores[at * heads + head].exp();
                (sum, weight) = (sum + own * values[at * width + e], weight + own);
                out.weights[at * heads + head] = weight;
                out.y[at * width + e] = sum / weight;
                out.mean_last[state] = sum / weight;
                out.log_weight_last[b * heads + head] = weight.ln();
            }
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
    let Inputs { heads, scores, values } = inputs;
    let zeros = |n| vec![T::ZERO; n];
    let mut d = Gradients {
        d_scores: zeros(scores.len()),
        d_values: zeros(shape.elements()),
        d_mean: zeros(shape.states()),
        d_log_weight: zeros(batch * heads),
    };
    for b in 0..batch {
        let length = start.segments.length(b, seq_len);
        for e in 0..width {
            let (each, state) = (width / heads, b * width + e);
            let (head, first) = (b * heads + e / each, e % each == 0);
            let d_mean = d_mean_last.map_or(T::ZERO, |d| d[state]);
            // A head's weight is counted only with its first channel.
            let d_log = d_log_weight_last.filter(|_| first).map_or(T::ZERO, |d| d[head]);
            if length == 0 {
                d.d_mean[state] = d_mean;
                d.d_log_weight[head] += d_log;
                continue;
            }
            let whole = out.log_weight_last[head].exp();
            let (mut d_sum, mut d_weight) = (d_mean / whole, (d_log - d_mean * out.mean_last[state]) / whole);
            for t in (0..length).rev() {
                let at = b * seq_len + t;
                let (score, value) = (at * heads + e / each, at * width + e);
                let (own, weight) = (scores[score].exp(), out.weights[score]);
                let d_y = d_y.map_or(T::ZERO, |d| d[value]);
                d_sum += d_y / weight;
                d_weight += -(d_y * out.y[value] / weight);
                d.d_scores[score] += own * (d_sum * values[value] + d_weight);
                d.d_values[value] = own * d_sum;
                if is_reset(shape, start, b, t) {
                    (d_sum, d_weight) = (T::ZERO, T::ZERO);
                }
            }
            if let Some([mean, log_weight]) = start.memory {
                let weight = log_weight[head].exp();
                d.d_mean[state] = weight * d_sum;
                d.d_log_weight[head] += weight * (d_sum * mean[state] + d_weight);
            }
        }
    }
    d
}
