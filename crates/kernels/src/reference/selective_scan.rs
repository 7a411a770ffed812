//! The selective scan, channel by channel and step by step. For the equations see [`crate::selective_scan`].

use super::silu::{silu, slope};
use super::{Float, sigmoid, softplus};
use crate::segments::{CONTINUE, RESET};
use crate::selective_scan::Inputs;
use crate::shape::Shape;
use alloc::{vec, vec::Vec};

/// The outputs of the scan.
#[derive(Debug, Clone, PartialEq)]
pub struct Outputs<T> {
    /// y `[B, T, D]`, 0 at padding.
    pub y: Vec<T>,
    /// The state at each row's end `[B, D, N]`.
    pub h_last: Vec<T>,
}

/// Gradients of the scan, each of the shape of its input.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradients<T> {
    /// Of u.
    pub d_u: Vec<T>,
    /// Of δ.
    pub d_delta: Vec<T>,
    /// Of its bias.
    pub d_delta_bias: Vec<T>,
    /// Of A.
    pub d_a: Vec<T>,
    /// Of B and C.
    pub d_bc: Vec<T>,
    /// Of D.
    pub d_skip: Vec<T>,
    /// Of z; 0 without a gate.
    pub d_z: Vec<T>,
    /// Of the carried state.
    pub d_h0: Vec<T>,
}

/// y and the last state.
pub fn forward<T: Float>(shape: Shape, d_state: usize, inputs: &Inputs<'_, T>) -> Outputs<T> {
    inputs.expect_fit(shape, d_state);
    let mut y = vec![T::ZERO; shape.elements()];
    let mut h_last = vec![T::ZERO; shape.states() * d_state];
    for b in 0..shape.batch {
        for c in 0..shape.width {
            let states = states(shape, d_state, inputs, b, c);
            for (t, h) in states[1..].iter().enumerate() {
                let at = (b * shape.seq_len + t) * shape.width + c;
                y[at] = value(shape, d_state, inputs, h, at) * gate(inputs, at);
            }
            h_last[(b * shape.width + c) * d_state..][..d_state].copy_from_slice(&states[states.len() - 1]);
        }
    }
    Outputs { y, h_last }
}

/// Gradients given those of y and of the last state.
pub fn backward<T: Float>(shape: Shape, d_state: usize, inputs: &Inputs<'_, T>, d_y: Option<&[T]>, d_h_last: Option<&[T]>) -> Gradients<T> {
    inputs.expect_fit(shape, d_state);
    let (elements, width) = (shape.elements(), shape.width);
    let zeros = |len: usize| vec![T::ZERO; len];
    let mut d = Gradients {
        d_u: zeros(elements),
        d_delta: zeros(elements),
        d_delta_bias: zeros(width),
        d_a: zeros(width * d_state),
        d_bc: zeros(inputs.bc.len()),
        d_skip: zeros(width),
        d_z: zeros(elements),
        d_h0: d_h_last.map_or(zeros(shape.states() * d_state), <[T]>::to_vec),
    };
    for b in 0..shape.batch {
        for c in 0..width {
            let states = states(shape, d_state, inputs, b, c);
            let d_h = &mut d.d_h0[(b * width + c) * d_state..][..d_state];
            for t in (0..states.len() - 1).rev() {
                let at = (b * shape.seq_len + t) * width + c;
                let (before, after, u) = (&states[t], &states[t + 1], inputs.u[at]);
                let d_y = d_y.map_or(T::ZERO, |d_y| d_y[at]);
                let d_value = d_y * gate(inputs, at);
                if let Some(z) = inputs.z {
                    d.d_z[at] = d_y * value(shape, d_state, inputs, after, at) * slope(z[at]);
                }
                let preact = inputs.delta[at] + inputs.delta_bias[c];
                let (delta, is_reset) = (softplus(preact), code(shape, inputs, b, t) == RESET);
                let mut d_delta = T::ZERO;
                d.d_u[at] = inputs.skip[c] * d_value;
                d.d_skip[c] += d_value * u;
                for n in 0..d_state {
                    let (i_b, a) = (at / width * 2 * d_state + n, inputs.a[c * d_state + n]);
                    let (input, output) = (inputs.bc[i_b], inputs.bc[i_b + d_state]);
                    let g = d_value * output + d_h[n];
                    let decay = if is_reset { T::ZERO } else { (delta * a).exp() };
                    d.d_bc[i_b + d_state] += d_value * after[n];
                    d.d_bc[i_b] += g * delta * u;
                    d.d_a[c * d_state + n] += delta * decay * before[n] * g;
                    d_delta += g * (a * decay * before[n] + input * u);
                    d.d_u[at] += g * delta * input;
                    d_h[n] = decay * g;
                }
                d.d_delta[at] = d_delta * sigmoid(preact);
                d.d_delta_bias[c] += d.d_delta[at];
            }
        }
    }
    d
}

/// The states of channel `c` of row `b`: the carried one, then that of every real step.
fn states<T: Float>(shape: Shape, d_state: usize, inputs: &Inputs<'_, T>, b: usize, c: usize) -> Vec<Vec<T>> {
    let first = (b * shape.width + c) * d_state;
    let mut states = vec![inputs.h0.map_or(vec![T::ZERO; d_state], |h0| h0[first..first + d_state].to_vec())];
    for t in 0..inputs.segments.length(b, shape.seq_len) {
        let at = (b * shape.seq_len + t) * shape.width + c;
        let delta = softplus(inputs.delta[at] + inputs.delta_bias[c]);
        let keep = if code(shape, inputs, b, t) == RESET { T::ZERO } else { T::ONE };
        let before = &states[t];
        let next = |n: usize| {
            let decay = keep * (delta * inputs.a[c * d_state + n]).exp();
            decay * before[n] + delta * inputs.u[at] * inputs.bc[at / shape.width * 2 * d_state + n]
        };
        let h = (0..d_state).map(next).collect();
        states.push(h);
    }
    states
}

/// Σ_n C h + D u at element `at` of a sequence tensor.
fn value<T: Float>(shape: Shape, d_state: usize, inputs: &Inputs<'_, T>, h: &[T], at: usize) -> T {
    let output = &inputs.bc[(at / shape.width * 2 + 1) * d_state..][..d_state];
    let skipped = inputs.skip[at % shape.width] * inputs.u[at];
    h.iter().zip(output).fold(skipped, |sum, (&h, &c)| sum + h * c)
}

fn gate<T: Float>(inputs: &Inputs<'_, T>, at: usize) -> T {
    inputs.z.map_or(T::ONE, |z| silu(z[at]))
}

fn code<T>(shape: Shape, inputs: &Inputs<'_, T>, b: usize, t: usize) -> i32 {
    inputs.segments.codes().map_or(CONTINUE, |codes| codes[b * shape.seq_len + t])
}
