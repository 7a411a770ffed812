//! A step of LSTM and sLSTM in one channel.

use cubecl::prelude::*;

use super::super::elementary::{sigmoid, softplus, tanh};

/// Which cell a kernel is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Cell {
    /// LSTM; gates i, f, g, o.
    Lstm,
    /// sLSTM with f = σ(f̃); gates i, f, z, o.
    SLstmSigmoid,
    /// sLSTM with f = e^f̃.
    SLstmExponential,
}

impl Cell {
    /// Parts of the state.
    pub(super) fn parts(self) -> usize {
        if self.is_slstm() { 4 } else { 2 }
    }

    pub(super) fn is_slstm(self) -> bool {
        self != Self::Lstm
    }
}

/// Pre-activations of the four gates.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Gates {
    pub i: f32,
    pub f: f32,
    pub z: f32,
    pub o: f32,
}

/// The state; an LSTM has h and c only.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct State {
    pub h: f32,
    pub c: f32,
    pub n: f32,
    pub m: f32,
}

/// ln f.
#[cube]
fn log_forget(f: f32, #[comptime] cell: Cell) -> f32 {
    if comptime!(cell == Cell::SLstmSigmoid) { -softplus(-f) } else { f }
}

#[cube]
pub(super) fn step(gates: Gates, before: State, #[comptime] cell: Cell) -> State {
    if comptime!(cell.is_slstm()) {
        let kept = log_forget(gates.f, cell) + before.m;
        let m = max(kept, gates.i);
        let take = (gates.i - m).exp();
        let keep = (kept - m).exp();
        let c = fma(keep, before.c, take * tanh(gates.z));
        let n = fma(keep, before.n, take);
        State { h: sigmoid(gates.o).value * c / n, c, n, m }
    } else {
        let c = fma(sigmoid(gates.f).value, before.c, sigmoid(gates.i).value * tanh(gates.z));
        State { h: sigmoid(gates.o).value * tanh(c), c, n: 0.0f32.runtime(), m: 0.0f32.runtime() }
    }
}

/// Gradients of the gates, and of c and n before the step.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Gradients {
    pub i: f32,
    pub f: f32,
    pub z: f32,
    pub o: f32,
    pub c: f32,
    pub n: f32,
}

/// 1 − tanh²(x), without cancellation.
#[cube]
fn tanh_slope(x: f32) -> f32 {
    let s = sigmoid(2.0 * x);
    4.0 * s.value * s.rest
}

/// The gradients from those of h, c and n after the step; `before` and `after` are the states, whose h is not read.
#[cube]
pub(super) fn gradients(gates: Gates, before: State, after: State, d_h: f32, d_c: f32, d_n: f32, #[comptime] cell: Cell) -> Gradients {
    let o = sigmoid(gates.o);
    let z = tanh(gates.z);
    if comptime!(cell.is_slstm()) {
        let take = (gates.i - after.m).exp();
        let keep = (log_forget(gates.f, cell) + before.m - after.m).exp();
        let ratio = after.c / after.n;
        let arriving = d_h * o.value / after.n;
        let on_c = d_c + arriving;
        let on_n = d_n - arriving * ratio;
        let mut slope = 1.0f32.runtime();
        if comptime!(cell == Cell::SLstmSigmoid) {
            slope = sigmoid(gates.f).rest;
        }
        Gradients {
            i: take * fma(on_c, z, on_n),
            f: slope * keep * (on_c * before.c + on_n * before.n),
            z: on_c * take * tanh_slope(gates.z),
            o: d_h * ratio * o.value * o.rest,
            c: on_c * keep,
            n: on_n * keep,
        }
    } else {
        let i = sigmoid(gates.i);
        let f = sigmoid(gates.f);
        let on_c = fma(d_h * o.value, tanh_slope(after.c), d_c);
        Gradients {
            i: on_c * z * i.value * i.rest,
            f: on_c * before.c * f.value * f.rest,
            z: on_c * i.value * tanh_slope(gates.z),
            o: d_h * tanh(after.c) * o.value * o.rest,
            c: on_c * f.value,
            n: 0.0f32.runtime(),
        }
    }
}
