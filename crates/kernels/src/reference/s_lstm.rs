//! sLSTM, step by step. For the equations see [`crate::s_lstm`].

use super::gru::{sigmoid_pair, tanh_and_slope};
use super::{Float, sigmoid, softplus};
use crate::s_lstm::{EMPTY_M, ForgetGate, Inputs, Start, Upstream};
use crate::segments::{CONTINUE, PADDING, RESET};
use crate::shape::Shape;
use alloc::{vec, vec::Vec};

/// The outputs of the sLSTM, each in the order h, c, n, m.
#[derive(Debug, Clone, PartialEq)]
pub struct Outputs<T> {
    /// Every state `[B, T, E]`, 0 at padding.
    pub states: [Vec<T>; 4],
    /// The states at each row's end `[B, E]`.
    pub last: [Vec<T>; 4],
}

/// Gradients of the sLSTM.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradients<T> {
    /// With respect to the pre-activations `[B, T, 4E]`.
    pub d_preact: Vec<T>,
    /// With respect to the recurrent weight `[NH, 4H, H]`.
    pub d_weight: Vec<T>,
    /// With respect to the bias `[4E]`.
    pub d_bias: Vec<T>,
    /// With respect to the carried h, c and n `[B, E]`.
    pub d_start: [Vec<T>; 3],
}

/// ln f and its slope.
fn log_forget<T: Float>(forget: ForgetGate, x: T) -> [T; 2] {
    match forget {
        ForgetGate::Sigmoid => [-softplus(-x), sigmoid(-x)],
        ForgetGate::Exponential => [x, T::ONE],
    }
}

/// A cell with its parameters.
struct Cell<'a, T> {
    shape: Shape,
    inputs: Inputs<'a, T>,
}

impl<T: Float> Cell<'_, T> {
    /// Row of the recurrent weight for channel `j` of `gate`, and where its head begins.
    fn row(&self, gate: usize, j: usize) -> (usize, usize) {
        let width = self.shape.width / self.inputs.heads;
        let head = j / width;
        (((head * 4 + gate) * width + j % width) * width, head * width)
    }

    /// Pre-activations i, f, z, o of channel `j` at `at` (row and step).
    fn gates(&self, at: usize, j: usize, h: &[T]) -> [T; 4] {
        let e = self.shape.width;
        let width = e / self.inputs.heads;
        [0, 1, 2, 3].map(|gate| {
            let (row, head) = self.row(gate, j);
            let own = self.inputs.preact[at * 4 * e + gate * e + j] + self.inputs.bias.map_or(T::ZERO, |bias| bias[gate * e + j]);
            (0..width).fold(own, |sum, k| sum + self.inputs.weight[row + k] * h[head + k])
        })
    }
}

/// The state a reset restores: h, c, n are 0, m is that of a state that has seen nothing.
fn initial<T: Float>(part: usize) -> T {
    if part == 3 { T::from_f64(f64::from(EMPTY_M)) } else { T::ZERO }
}

fn code<T>(start: &Start<'_, T>, b: usize, t: usize, seq_len: usize) -> i32 {
    start.segments.row(b, seq_len).map_or(CONTINUE, |row| row[t])
}

/// The states before step `t` of row `b`.
fn before<T: Float>(shape: Shape, start: &Start<'_, T>, states: [&[T]; 4], b: usize, t: usize) -> [Vec<T>; 4] {
    let Shape { seq_len, width: e, .. } = shape;
    let part = |part: usize| match (t, start.carried()[part]) {
        _ if code(start, b, t, seq_len) == RESET => vec![initial(part); e],
        (0, Some(first)) => first[b * e..][..e].to_vec(),
        (0, None) => vec![initial(part); e],
        _ => states[part][(b * seq_len + t - 1) * e..][..e].to_vec(),
    };
    [part(0), part(1), part(2), part(3)]
}

/// States of every step and the last ones.
pub fn forward<T: Float>(shape: Shape, inputs: Inputs<T>) -> Outputs<T> {
    let Inputs { forget, start, .. } = inputs;
    let Shape { batch, seq_len, width: e } = shape;
    let cell = Cell { shape, inputs };
    let mut states = [(); 4].map(|()| vec![T::ZERO; shape.elements()]);
    let mut last: [Vec<T>; 4] =
        core::array::from_fn(|part| start.carried()[part].map_or(vec![initial(part); shape.states()], <[T]>::to_vec));
    for b in 0..batch {
        for t in 0..start.segments.length(b, seq_len) {
            let at = b * seq_len + t;
            let [h, c, n, m] = before(shape, &start, states.each_ref().map(Vec::as_slice), b, t);
            for j in 0..e {
                let [i, f, z, o] = cell.gates(at, j, &h);
                let kept = log_forget(forget, f)[0] + m[j];
                let new_m = kept.max(i);
                let (take, keep) = ((i - new_m).exp(), (kept - new_m).exp());
                let (new_c, new_n) = (keep * c[j] + take * z.tanh(), keep * n[j] + take);
                for (part, value) in [sigmoid(o) * new_c / new_n, new_c, new_n, new_m].into_iter().enumerate() {
                    states[part][at * e + j] = value;
                    last[part][b * e + j] = value;
                }
            }
        }
    }
    Outputs { states, last }
}

/// Gradients of everything; m is a constant.
pub fn backward<T: Float>(shape: Shape, inputs: Inputs<T>, upstream: Upstream<T>) -> Gradients<T> {
    let Inputs { heads, forget, weight, start, .. } = inputs;
    let Upstream { states, d_h, d_last } = upstream;
    let Shape { batch, seq_len, width: e } = shape;
    let cell = Cell { shape, inputs };
    let mut d = Gradients {
        d_preact: vec![T::ZERO; 4 * shape.elements()],
        d_weight: vec![T::ZERO; weight.len()],
        d_bias: vec![T::ZERO; 4 * e],
        d_start: [(); 3].map(|()| vec![T::ZERO; shape.states()]),
    };
    for b in 0..batch {
        let [mut gamma, mut kappa, mut nu] = d_last.map(|d| d.map_or(vec![T::ZERO; e], |d| d[b * e..][..e].to_vec()));
        for t in (0..seq_len).rev() {
            let at = b * seq_len + t;
            let code = code(&start, b, t, seq_len);
            if code == PADDING {
                continue;
            }
            let [h, c, n, m] = before(shape, &start, states, b, t);
            let mut d_gates = vec![T::ZERO; 4 * e];
            for j in 0..e {
                let [i, f, z, o] = cell.gates(at, j, &h);
                let [log_f, f_slope] = log_forget(forget, f);
                let [z, z_slope] = tanh_and_slope(z);
                let [o, not_o] = sigmoid_pair(o);
                let [new_c, new_n, new_m] = [1, 2, 3].map(|part| states[part][at * e + j]);
                let (take, keep) = ((i - new_m).exp(), (log_f + m[j] - new_m).exp());
                let d_out = (gamma[j] + d_h.map_or(T::ZERO, |d| d[at * e + j])) * o;
                let d_c = kappa[j] + d_out / new_n;
                let d_n = nu[j] - d_out * new_c / (new_n * new_n);
                d_gates[j] = take * (d_c * z + d_n);
                d_gates[e + j] = f_slope * keep * (d_c * c[j] + d_n * n[j]);
                d_gates[2 * e + j] = d_c * take * z_slope;
                d_gates[3 * e + j] = d_out * new_c / new_n * not_o;
                (kappa[j], nu[j]) = (d_c * keep, d_n * keep);
            }
            gamma = vec![T::ZERO; e];
            for (index, &d_gate) in d_gates.iter().enumerate() {
                let (row, head) = cell.row(index / e, index % e);
                d.d_bias[index] += d_gate;
                for k in 0..e / heads {
                    d.d_weight[row + k] += d_gate * h[head + k];
                    gamma[head + k] += d_gate * weight[row + k];
                }
            }
            d.d_preact[at * 4 * e..][..4 * e].copy_from_slice(&d_gates);
            if code == RESET {
                for d in [&mut gamma, &mut kappa, &mut nu] {
                    d.fill(T::ZERO);
                }
            }
        }
        for (d_start, d) in d.d_start.iter_mut().zip([gamma, kappa, nu]) {
            d_start[b * e..][..e].copy_from_slice(&d);
        }
    }
    d
}
