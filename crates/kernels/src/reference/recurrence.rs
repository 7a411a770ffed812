//! Every cell of the linear recurrence, step by step: a and b from its inputs, then h_t = a_t h_{t−1} + b_t.

use super::scan::{self, Outputs};
use super::{Float, column_sums, log_space, sigmoid, softplus, with_bias};
use crate::recurrence::{Cell, Inputs, Upstream};
use crate::shape::{Candidate, Gates, Shape, expect_len};
use crate::start::Start;
use alloc::{vec, vec::Vec};

/// Gradients of a recurrence.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradients<T> {
    /// With respect to the pre-activations, in their layout.
    pub d_preact: Vec<T>,
    /// With respect to the bias: the sum of `d_preact` over all rows.
    pub d_bias: Vec<T>,
    /// With respect to the extra input, in its layout.
    pub d_extra: Vec<T>,
    /// With respect to the carried state `[B, E]`.
    pub d_h0: Vec<T>,
    /// With respect to the state that resets restore `[E]`.
    pub d_init: Vec<T>,
}

/// Most inputs of a cell.
const INPUTS: usize = 4;

/// a and b of one step and channel, and their slopes along each input.
struct Step<T> {
    a: T,
    b: T,
    d_a: [T; INPUTS],
    d_b: [T; INPUTS],
}

/// The step for inputs `x`: the parts of the pre-activations, then the extra input.
fn step<T: Float>(cell: Cell, x: [T; INPUTS]) -> Step<T> {
    let (zero, one) = (T::ZERO, T::ONE);
    match cell {
        Cell::Linear => Step { a: x[0], b: x[1], d_a: [one, zero, zero, zero], d_b: [zero, one, zero, zero] },
        Cell::LogSpace => {
            let (a, b) = (x[0].exp(), x[1].exp());
            Step { a, b, d_a: [a, zero, zero, zero], d_b: [zero, b, zero, zero] }
        }
        Cell::MinGru(candidate) => scaled_min_gru(candidate, x, [one, zero]),
        Cell::SignedMinGru(candidate) => scaled_min_gru(candidate, x, [x[2].tanh(), one - x[2].tanh() * x[2].tanh()]),
        Cell::DecayMinGru(candidate) => scaled_min_gru(candidate, x, [(-x[2]).exp(), -(-x[2]).exp()]),
        Cell::FlooredMinGru(candidate) => {
            let [v, k, share, _] = x;
            let (z, keep, value) = (sigmoid(k), sigmoid(-k), candidate.value(v));
            let slope = share * z * keep;
            Step {
                a: keep + (one - share) * z,
                b: share * z * value,
                d_a: [zero, -slope, -z, zero],
                d_b: [share * z * candidate.slope(v), slope * value, z * value, zero],
            }
        }
        Cell::MinLstm(candidate, gates) => min_lstm(candidate, gates, x),
        Cell::RgLru => rg_lru(x),
    }
}

/// a = (1 − z) φ, b = z h̃, given φ and φ' of the third input.
fn scaled_min_gru<T: Float>(candidate: Candidate, [v, k, ..]: [T; INPUTS], [factor, slope]: [T; 2]) -> Step<T> {
    let (z, keep, value) = (sigmoid(k), sigmoid(-k), candidate.value(v));
    Step {
        a: keep * factor,
        b: z * value,
        d_a: [T::ZERO, -z * keep * factor, keep * slope, T::ZERO],
        d_b: [z * candidate.slope(v), z * keep * value, T::ZERO, T::ZERO],
    }
}

/// a = f', b = i' h̃. Normalised gates are f' = σ(−D), i' = σ(D) with D = sp(−p) − sp(−q), which is f / (f + i) without its 0/0.
fn min_lstm<T: Float>(candidate: Candidate, gates: Gates, [v, p, q, _]: [T; INPUTS]) -> Step<T> {
    let value = candidate.value(v);
    let (forget, input, d_forget, d_input) = match gates {
        Gates::Normalized => {
            let d = softplus(-p) - softplus(-q);
            let (forget, input) = (sigmoid(-d), sigmoid(d));
            let both = forget * input;
            let d_forget = [both * sigmoid(-p), -both * sigmoid(-q)];
            (forget, input, d_forget, d_forget.map(|d| -d))
        }
        Gates::Unnormalized => {
            let (forget, input) = (sigmoid(p), sigmoid(q));
            (forget, input, [forget * sigmoid(-p), T::ZERO], [T::ZERO, input * sigmoid(-q)])
        }
    };
    Step {
        a: forget,
        b: input * value,
        d_a: [T::ZERO, d_forget[0], d_forget[1], T::ZERO],
        d_b: [input * candidate.slope(v), d_input[0] * value, d_input[1] * value, T::ZERO],
    }
}

/// a = e^−u and b = √(1 − a²) i x with u = c σ(r), i = σ(k); r = +∞ forgets all. The slope of the root is bounded.
fn rg_lru<T: Float>([x, r, k, c]: [T; INPUTS]) -> Step<T> {
    let (rho, gate) = (sigmoid(r), sigmoid(k));
    let forgets = r >= T::from_f64(f64::INFINITY);
    let u = c * rho;
    let a = if forgets { T::ZERO } else { (-u).exp() };
    let root = if forgets { T::ONE } else { (T::ONE - a * a).sqrt() };
    let least = T::from_f64(f64::from(crate::recurrence::LEAST_ROOT));
    let (d_a, d_b) = (-a, a * a / if root > least { root } else { least } * gate * x);
    let along_r = c * rho * sigmoid(-r);
    Step {
        a,
        b: root * gate * x,
        d_a: [T::ZERO, d_a * along_r, T::ZERO, d_a * rho],
        d_b: [root * gate, d_b * along_r, root * gate * sigmoid(-k) * x, d_b * rho],
    }
}

/// The inputs of a cell, and where they are.
struct Reader<'a, T> {
    shape: Shape,
    parts: usize,
    preact: Vec<T>,
    extra: &'a [T],
}

impl<'a, T: Float> Reader<'a, T> {
    fn new(shape: Shape, cell: Cell, inputs: Inputs<'a, T>) -> Self {
        let parts = cell.parts();
        expect_len("preact", inputs.preact, parts * shape.elements());
        expect_len("extra", inputs.extra, cell.extra_len(shape));
        inputs.bias.inspect(|bias| expect_len("bias", bias, parts * shape.width));
        Self { shape, parts, preact: with_bias(inputs.preact, parts * shape.width, inputs.bias), extra: inputs.extra }
    }

    /// Where part `j` of element `at` of `[B, T, E]` is.
    fn part(&self, at: usize, j: usize) -> usize {
        (at / self.shape.width * self.parts + j) * self.shape.width + at % self.shape.width
    }

    fn read(&self, at: usize) -> [T; INPUTS] {
        let mut x = [T::ZERO; INPUTS];
        (0..self.parts).for_each(|j| x[j] = self.preact[self.part(at, j)]);
        if !self.extra.is_empty() {
            x[self.parts] = self.extra[at % self.extra.len()];
        }
        x
    }
}

/// Every state and the last ones.
///
/// # Panics
/// When a length does not fit `shape`.
pub fn forward<T: Float>(shape: Shape, cell: Cell, inputs: Inputs<T>, start: Start<T>) -> Outputs<T> {
    if cell == Cell::LogSpace {
        return log_space::forward(shape, inputs.preact, inputs.extra, start);
    }
    let reader = Reader::new(shape, cell, inputs);
    let (coeffs, values): (Vec<T>, Vec<T>) =
        (0..shape.elements()).map(|at| step(cell, reader.read(at))).map(|step| (step.a, step.b)).unzip();
    scan::forward(shape, &coeffs, &values, start)
}

/// Gradients of [`forward`]: ∂x = ∂a · da/dx + ∂b · db/dx, with ∂a and ∂b of the linear recurrence.
///
/// # Panics
/// When a length does not fit `shape`.
pub fn backward<T: Float>(shape: Shape, cell: Cell, inputs: Inputs<T>, start: Start<T>, upstream: Upstream<T>) -> Gradients<T> {
    let reader = Reader::new(shape, cell, inputs);
    let coeffs: Vec<T> = (0..shape.elements()).map(|at| step(cell, reader.read(at)).a).collect();
    let Upstream { h, d_h, d_h_last } = upstream;
    let scan::Gradients { d_coeffs, d_values, d_h0, d_init } = scan::backward(shape, &coeffs, start, h, d_h, d_h_last);
    let (mut d_preact, mut d_extra) = (vec![T::ZERO; inputs.preact.len()], vec![T::ZERO; inputs.extra.len()]);
    for at in 0..shape.elements() {
        let Step { d_a, d_b, .. } = step(cell, reader.read(at));
        let d = |j: usize| d_coeffs[at] * d_a[j] + d_values[at] * d_b[j];
        (0..reader.parts).for_each(|j| d_preact[reader.part(at, j)] = d(j));
        if !d_extra.is_empty() {
            let i = at % d_extra.len();
            d_extra[i] += d(reader.parts);
        }
    }
    Gradients { d_bias: column_sums(&d_preact, reader.parts * shape.width), d_preact, d_extra, d_h0, d_init }
}
