//! Causal depthwise convolution, channel by channel.

use super::Float;
use crate::conv::{Inputs, Upstream};
use crate::segments::{PADDING, RESET, Segments};
use crate::shape::Shape;
use alloc::vec;
use alloc::vec::Vec;

/// Where a tap reads: a slot of the carried window or a step of the row; nothing (0) before a reset.
#[derive(Clone, Copy)]
enum Source {
    Window(usize),
    Step(usize),
    Nothing,
}

/// For every real step of row `b` its K sources, and the K−1 sources of the window after the row.
fn sources(shape: Shape, kernel_size: usize, segments: Segments, b: usize) -> (Vec<Vec<Source>>, Vec<Source>) {
    let mut window: Vec<Source> = (0..kernel_size - 1).map(|slot| Source::Window(b * (kernel_size - 1) + slot)).collect();
    let mut steps = Vec::new();
    for t in 0..shape.seq_len {
        match segments.row(b, shape.seq_len).map(|codes| codes[t]) {
            Some(PADDING) => break,
            Some(RESET) => window.fill(Source::Nothing),
            _ => {}
        }
        window.push(Source::Step(b * shape.seq_len + t));
        steps.push(window.clone());
        window.remove(0);
    }
    (steps, window)
}

/// (y, window_last); as [`crate::conv::forward`].
pub fn forward<T: Float>(shape: Shape, kernel_size: usize, inputs: Inputs<T>, bias: &[T]) -> (Vec<T>, Vec<T>) {
    let Inputs { x, weight, window, segments } = inputs;
    let width = shape.width;
    let value = |source: Source, c: usize| match source {
        Source::Window(row) => window.map_or(T::ZERO, |window| window[row * width + c]),
        Source::Step(row) => x[row * width + c],
        Source::Nothing => T::ZERO,
    };
    let mut y = vec![T::ZERO; shape.elements()];
    let mut window_last = Vec::new();
    for b in 0..shape.batch {
        let (steps, last) = sources(shape, kernel_size, segments, b);
        for (t, taps) in steps.iter().enumerate() {
            for c in 0..width {
                let sum = taps.iter().enumerate().fold(bias[c], |sum, (j, &tap)| sum + weight[c * kernel_size + j] * value(tap, c));
                y[(b * shape.seq_len + t) * width + c] = sum;
            }
        }
        window_last.extend(last.iter().flat_map(|&source| (0..width).map(move |c| value(source, c))));
    }
    (y, window_last)
}

/// Gradients of the convolution.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradients<T> {
    /// With respect to x `[B, T, D]`.
    pub d_x: Vec<T>,
    /// With respect to the weight `[D, K]`.
    pub d_weight: Vec<T>,
    /// With respect to the bias `[D]`.
    pub d_bias: Vec<T>,
    /// With respect to the window `[B, K−1, D]`.
    pub d_window: Vec<T>,
}

/// As [`crate::conv::backward`], without `d_residual`.
pub fn backward<T: Float>(shape: Shape, kernel_size: usize, inputs: Inputs<T>, upstream: Upstream<T>) -> Gradients<T> {
    let Inputs { x, weight, window, segments } = inputs;
    let Upstream { d_y, d_window_last, .. } = upstream;
    let width = shape.width;
    let (mut d_x, mut d_window) = (vec![T::ZERO; x.len()], vec![T::ZERO; shape.batch * (kernel_size - 1) * width]);
    let (mut d_weight, mut d_bias) = (vec![T::ZERO; weight.len()], vec![T::ZERO; width]);
    for b in 0..shape.batch {
        let (steps, last) = sources(shape, kernel_size, segments, b);
        for c in 0..width {
            let mut send = |source: Source, d: T| match source {
                Source::Window(row) => d_window[row * width + c] += d,
                Source::Step(row) => d_x[row * width + c] += d,
                Source::Nothing => {}
            };
            for (t, taps) in steps.iter().enumerate() {
                let d = d_y.map_or(T::ZERO, |d| d[(b * shape.seq_len + t) * width + c]);
                d_bias[c] += d;
                for (j, &tap) in taps.iter().enumerate() {
                    send(tap, d * weight[c * kernel_size + j]);
                    d_weight[c * kernel_size + j] += match tap {
                        Source::Window(row) => window.map_or(T::ZERO, |window| d * window[row * width + c]),
                        Source::Step(row) => d * x[row * width + c],
                        Source::Nothing => T::ZERO,
                    };
                }
            }
            for (slot, &source) in last.iter().enumerate() {
                send(source, d_window_last.map_or(T::ZERO, |d| d[(b * (kernel_size - 1) + slot) * width + c]));
            }
        }
    }
    Gradients { d_x, d_weight, d_bias, d_window }
}
