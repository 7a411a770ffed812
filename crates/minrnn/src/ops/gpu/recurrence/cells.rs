//! The cells' additions to the linear recurrence, per channel and step.

use cubecl::prelude::*;
use minrnn_kernels::{Candidate, Gates, recurrence};

use super::super::elementary::{positive_sigmoid, reciprocal, sigmoid, tanh};

/// Which recurrence a kernel is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::ops) enum Cell {
    /// h = a h + b; a and b are two inputs.
    Linear,
    /// minGRU; one input with rows v, k.
    MinGru(Candidate),
    /// minLSTM; one input with rows v, p, q.
    MinLstm(Candidate, Gates),
}

impl Cell {
    /// The kernels' cell on a GPU; none where it has no kernels there.
    pub(in crate::ops) fn of(cell: recurrence::Cell) -> Option<Self> {
        match cell {
            recurrence::Cell::Linear => Some(Self::Linear),
            recurrence::Cell::MinGru(candidate) => Some(Self::MinGru(candidate)),
            recurrence::Cell::MinLstm(candidate, gates) => Some(Self::MinLstm(candidate, gates)),
            _ => None,
        }
    }

    /// Values per channel and step in the first input; 1 when the cell has two inputs.
    pub(super) fn parts(self) -> usize {
        match self {
            Self::Linear => 1,
            Self::MinGru(_) => 2,
            Self::MinLstm(..) => 3,
        }
    }

    /// Whether a step moves the state towards a value, h + x (y − h), and not x h + y.
    ///
    /// A mixing cell never forms a = 1 − x, which would round away what a slow gate forgets.
    pub(super) fn mixes(self) -> bool {
        matches!(self, Self::MinGru(_) | Self::MinLstm(_, Gates::Normalized))
    }

    fn candidate(self) -> Candidate {
        match self {
            Self::Linear => Candidate::Identity,
            Self::MinGru(candidate) | Self::MinLstm(candidate, _) => candidate,
        }
    }
}

/// The inputs of one step and channel; cells with fewer leave the rest 0.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Inputs {
    pub u0: f32,
    pub u1: f32,
    pub u2: f32,
}

/// A step in the form of [`Cell::mixes`].
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Gate {
    pub x: f32,
    pub y: f32,
}

/// Gradients of the inputs, and a G.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Gradients {
    pub d0: f32,
    pub d1: f32,
    pub d2: f32,
    pub carried: f32,
}

/// A candidate and its derivative.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct Activated {
    value: f32,
    slope: f32,
}

#[cube]
fn activate(v: f32, #[comptime] candidate: Candidate) -> Activated {
    if comptime!(candidate == Candidate::Positive) {
        let s = positive_sigmoid(v);
        let not_negative = v >= 0.0;
        Activated { value: select(not_negative, v + 0.5, s), slope: select(not_negative, 1.0f32, s * (1.0 - s)) }
    } else if comptime!(candidate == Candidate::Tanh) {
        let t = tanh(v);
        Activated { value: t, slope: 1.0 - t * t }
    } else {
        Activated { value: v, slope: 1.0f32.runtime() }
    }
}

/// σ(p), σ(q), and their shares f' and i'.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct Shares {
    forget_rest: f32,
    input_rest: f32,
    keep: f32,
    take: f32,
}

/// f' = f / (f + i) and i' of the gates' pre-activations.
///
/// Two gates far below 0 would give 0 / 0. There σ(x) = e^x to f32's last bit, so only p − q counts and both are moved up together.
#[cube]
fn shares(p: f32, q: f32) -> Shares {
    let shift = min(max(p, q) + 20.0, 0.0f32);
    let forget = sigmoid(p - shift);
    let input = sigmoid(q - shift);
    let per_total = reciprocal(forget.value + input.value);
    Shares { forget_rest: sigmoid(p).rest, input_rest: sigmoid(q).rest, keep: forget.value * per_total, take: input.value * per_total }
}

/// The step that inputs `u` make.
#[cube]
pub(super) fn gate(u: Inputs, #[comptime] cell: Cell) -> Gate {
    if comptime!(cell == Cell::Linear) {
        Gate { x: u.u0, y: u.u1 }
    } else if comptime!(matches!(cell, Cell::MinGru(_))) {
        Gate { x: sigmoid(u.u1).value, y: activate(u.u0, comptime!(cell.candidate())).value }
    } else if comptime!(cell.mixes()) {
        Gate { x: shares(u.u1, u.u2).take, y: activate(u.u0, comptime!(cell.candidate())).value }
    } else {
        Gate { x: sigmoid(u.u1).value, y: sigmoid(u.u2).value * activate(u.u0, comptime!(cell.candidate())).value }
    }
}

/// a of inputs `u`.
#[cube]
pub(super) fn coefficient(u: Inputs, #[comptime] cell: Cell) -> f32 {
    if comptime!(cell == Cell::Linear) {
        u.u0
    } else if comptime!(matches!(cell, Cell::MinGru(_))) {
        sigmoid(u.u1).rest
    } else if comptime!(cell.mixes()) {
        shares(u.u1, u.u2).keep
    } else {
        sigmoid(u.u1).value
    }
}

/// The gradients of inputs `u`, where `g` is the whole gradient of the step's state and `before` is h_{t−1}.
#[cube]
pub(super) fn gradients(u: Inputs, before: f32, g: f32, #[comptime] cell: Cell) -> Gradients {
    if comptime!(cell == Cell::Linear) {
        Gradients { d0: g * before, d1: g, d2: 0.0f32.runtime(), carried: g * u.u0 }
    } else if comptime!(matches!(cell, Cell::MinGru(_))) {
        let z = sigmoid(u.u1);
        let candidate = activate(u.u0, comptime!(cell.candidate()));
        let carried = g * z.rest;
        let slope = carried * z.value;
        Gradients { d0: g * z.value * candidate.slope, d1: slope * (candidate.value - before), d2: 0.0f32.runtime(), carried }
    } else if comptime!(cell.mixes()) {
        let shares = shares(u.u1, u.u2);
        let candidate = activate(u.u0, comptime!(cell.candidate()));
        let carried = g * shares.keep;
        let s = carried * shares.take * (before - candidate.value);
        Gradients { d0: g * shares.take * candidate.slope, d1: s * shares.forget_rest, d2: -s * shares.input_rest, carried }
    } else {
        let forget = sigmoid(u.u1);
        let input = sigmoid(u.u2);
        let candidate = activate(u.u0, comptime!(cell.candidate()));
        let carried = g * forget.value;
        let taken = g * input.value;
        Gradients { d0: taken * candidate.slope, d1: carried * before * forget.rest, d2: taken * candidate.value * input.rest, carried }
    }
}

/// One step on the state.
#[cube]
pub(super) fn step(gate: Gate, h: f32, #[comptime] mixes: bool) -> f32 {
    if comptime!(mixes) { fma(gate.x, gate.y - h, h) } else { fma(gate.x, h, gate.y) }
}

/// What several steps do to a state, h ↦ p h + gained: the factor is 1 − p where the cell mixes, else p.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Effect {
    pub factor: f32,
    pub gained: f32,
}

/// The factor of no step at all.
#[cube]
pub(super) fn kept(#[comptime] mixes: bool) -> f32 {
    if comptime!(mixes) { 0.0f32.runtime() } else { 1.0f32.runtime() }
}

/// The factor of a reset.
#[cube]
pub(super) fn cut(#[comptime] mixes: bool) -> f32 {
    if comptime!(mixes) { 1.0f32.runtime() } else { 0.0f32.runtime() }
}

/// The factor of both, one after the other.
#[cube]
pub(super) fn both(first: f32, second: f32, #[comptime] mixes: bool) -> f32 {
    if comptime!(mixes) { fma(second, 1.0 - first, first) } else { first * second }
}

/// The state that leaves when `h` enters. What a reset cut off does not count, not even as infinity.
#[cube]
pub(super) fn apply(effect: Effect, h: f32, #[comptime] mixes: bool) -> f32 {
    if comptime!(mixes) {
        select(effect.factor == 1.0, effect.gained, h + fma(-effect.factor, h, effect.gained))
    } else {
        select(effect.factor == 0.0, effect.gained, fma(effect.factor, h, effect.gained))
    }
}
