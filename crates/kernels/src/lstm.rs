//! Long short-term memory: forward over whole sequences, backward by hand.
//!
//! ```text
//! i = σ(p_i + U_i h + b'_i)    f = σ(p_f + U_f h + b'_f)    g = tanh(p_g + U_g h + b'_g)    o = σ(p_o + U_o h + b'_o)
//! c⁺ = f ⊙ c + i ⊙ g           h⁺ = o ⊙ tanh(c⁺)
//! ```
//!
//! where p = W x + b is the input side over all steps, computed by the caller in one product (`preact`, to which `bias` is added here), U
//! the recurrent weight and b' the recurrent bias. Backward, with γ the whole gradient of h⁺, κ the incoming gradient of c⁺ and τ = tanh
//! c⁺:
//!
//! ```text
//! κ' = κ + γ o (1 − τ²)    ā_o = γ τ o (1 − o)    ā_f = κ' c f (1 − f)    ā_i = κ' g i (1 − i)    ā_g = κ' i (1 − g²)
//! dc = κ' f                dh = Uᵀ ā
//! ```
//!
//! Threads, products per step and blocks of steps in the backward pass are as in [`crate::gru`]; the backward pass needs h and c of every
//! step and recomputes the gates.

mod steps;

use crate::grid::SharedOut;
use crate::matmul::{Matrix, Write, multiply, transposed};
use crate::out::{Out, Slots};
use crate::rows::combine;
use crate::shape::{Shape, elements, expect_len};
use crate::simd::Level;
use crate::start;
use crate::stepwise::{Frame, Rows, bias_sum, flush, for_each_task, state_of};
use alloc::{vec, vec::Vec};
use steps::{Backward, Step};
pub use steps::{advance, output};

/// The initial states of a batch's rows: h and the segments in `h`, and the cell state c.
#[derive(Debug, Clone, Copy, Default)]
pub struct Start<'a, T = f32> {
    /// The carried h and the h that a reset restores; which steps are real and where the state is reset.
    pub h: start::Start<'a, T>,
    /// The carried cell state `[B, E]`; `None` is 0.
    pub c0: Option<&'a [T]>,
    /// The cell state `[E]` that a reset restores; `None` is 0.
    pub init_c: Option<&'a [T]>,
}

impl<'a, T> Start<'a, T> {
    /// The cell state's part as a start of its own.
    pub fn cell(&self) -> start::Start<'a, T> {
        start::Start { h0: self.c0, init: self.init_c, segments: self.h.segments }
    }
}

/// The inputs of every step.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a, T = f32> {
    /// p `[B, T, 4E]`, in rows i, f, g, o.
    pub preact: &'a [T],
    /// Added to p `[4E]`; `None` is 0.
    pub bias: Option<&'a [T]>,
    /// U `[4E, E]`.
    pub weight: &'a [T],
    /// b' `[4E]`; `None` is 0.
    pub recurrent_bias: Option<&'a [T]>,
    /// The initial states of the rows.
    pub start: Start<'a, T>,
}

/// The further inputs of [`backward`]: the states and their gradients; `None` is 0.
#[derive(Debug, Clone, Copy)]
pub struct Upstream<'a, T = f32> {
    /// The h `[B, T, E]` that [`forward`] wrote.
    pub h: &'a [T],
    /// The c `[B, T, E]` that [`forward`] wrote.
    pub c: &'a [T],
    /// Of h.
    pub d_h: Option<&'a [T]>,
    /// Of the last h `[B, E]`.
    pub d_h_last: Option<&'a [T]>,
    /// Of the last c `[B, E]`.
    pub d_c_last: Option<&'a [T]>,
}

/// Outputs of [`backward`], in the shapes of [`Inputs`]; the gradients of the initial states are written whether or not these are given.
#[derive(Debug)]
pub struct Gradients<'a> {
    /// Of the pre-activations.
    pub d_preact: Out<'a>,
    /// Of their bias, if wanted.
    pub d_bias: Option<Out<'a>>,
    /// Of the recurrent weight.
    pub d_weight: Out<'a>,
    /// Of the recurrent bias, if wanted.
    pub d_recurrent_bias: Option<Out<'a>>,
    /// Of the carried h `[B, E]`.
    pub d_h0: Out<'a>,
    /// Of the carried c `[B, E]`.
    pub d_c0: Out<'a>,
    /// Of the h `[E]` that a reset restores.
    pub d_init_h: Out<'a>,
    /// Of the c `[E]` that a reset restores.
    pub d_init_c: Out<'a>,
}

/// States of every step `h`, `c` `[B, T, E]`, and the last ones `h_last`, `c_last` `[B, E]`. At padding `h` and `c` are 0 and the state is
/// unchanged.
///
/// # Panics
/// When a length does not fit `shape`.
pub fn forward(shape: Shape, inputs: Inputs, h: Out, c: Out, h_last: Out, c_last: Out) {
    h.expect_len("h", shape.elements());
    c.expect_len("c", shape.elements());
    h_last.expect_len("h_last", shape.states());
    c_last.expect_len("c_last", shape.states());
    let cell = Cell::new(shape, inputs);
    let [h, c, h_last, c_last] = [h, c, h_last, c_last].map(SharedOut::new);
    for_each_task(shape, inputs.start.h.segments, 0, |rows, _| {
        let per_row = rows.seq_len * rows.width;
        // SAFETY: tasks have rows of their own.
        let outputs =
            unsafe { [rows.own(&h, per_row), rows.own(&c, per_row), rows.own(&h_last, rows.width), rows.own(&c_last, rows.width)] };
        cell.forward(rows, outputs);
    });
}

/// Gradients of everything.
///
/// # Panics
/// When a length does not fit `shape`.
pub fn backward(shape: Shape, inputs: Inputs, upstream: Upstream, gradients: Gradients) {
    let e = shape.width;
    expect_len("h", upstream.h, shape.elements());
    expect_len("c", upstream.c, shape.elements());
    upstream.d_h.inspect(|d| expect_len("d_h", d, shape.elements()));
    upstream.d_h_last.inspect(|d| expect_len("d_h_last", d, shape.states()));
    upstream.d_c_last.inspect(|d| expect_len("d_c_last", d, shape.states()));
    gradients.d_preact.expect_len("d_preact", 4 * shape.elements());
    gradients.d_weight.expect_len("d_weight", elements([4, e, e]));
    gradients.d_h0.expect_len("d_h0", shape.states());
    gradients.d_c0.expect_len("d_c0", shape.states());
    gradients.d_init_h.expect_len("d_init_h", e);
    gradients.d_init_c.expect_len("d_init_c", e);
    let cell = Cell::new(shape, inputs);
    // Sums of a task: weight, then bias, initial h and initial c.
    let per_task = 4 * e * e + 6 * e;
    let [d_preact, d_h0, d_c0] = [gradients.d_preact, gradients.d_h0, gradients.d_c0].map(SharedOut::new);
    let partials = for_each_task(shape, inputs.start.h.segments, per_task, |rows, partial| {
        // SAFETY: tasks have rows of their own.
        let outputs = unsafe { [rows.own(&d_preact, rows.seq_len * 4 * e), rows.own(&d_h0, e), rows.own(&d_c0, e)] };
        cell.backward(rows, upstream, outputs, partial);
    });
    let sums = 4 * e * e;
    combine(&partials, per_task, 0, gradients.d_weight);
    for (name, bias) in [("d_bias", gradients.d_bias), ("d_recurrent_bias", gradients.d_recurrent_bias)] {
        if let Some(bias) = bias {
            bias.expect_len(name, elements([4, e]));
            combine(&partials, per_task, sums, bias);
        }
    }
    combine(&partials, per_task, sums + 4 * e, gradients.d_init_h);
    combine(&partials, per_task, sums + 5 * e, gradients.d_init_c);
}

/// The arguments both directions share, prepared.
struct Cell<'a> {
    level: Level,
    preact: &'a [f32],
    /// Both biases, `[4E]`.
    bias: Vec<f32>,
    weight: &'a [f32],
    /// `[E, 4E]`.
    weight_transposed: Vec<f32>,
    start: Start<'a>,
}

impl<'a> Cell<'a> {
    fn new(shape: Shape, inputs: Inputs<'a>) -> Self {
        let Inputs { preact, bias, weight, recurrent_bias, start } = inputs;
        let e = shape.width;
        expect_len("preact", preact, 4 * shape.elements());
        bias.inspect(|bias| expect_len("bias", bias, elements([4, e])));
        expect_len("weight", weight, elements([4, e, e]));
        recurrent_bias.inspect(|bias| expect_len("recurrent_bias", bias, elements([4, e])));
        start.h.expect_fits(shape);
        start.c0.inspect(|c0| expect_len("c0", c0, shape.states()));
        start.init_c.inspect(|init| expect_len("init_c", init, e));
        let (bias, weight_transposed) = (bias_sum(bias, recurrent_bias, 4 * e), transposed(weight, 4 * e, e));
        Self { level: Level::current(), preact, bias, weight, weight_transposed, start }
    }

    fn forward(&self, rows: &Rows<'_>, [h, c, h_last, c_last]: [Slots; 4]) {
        let (n, e) = (rows.len(), rows.width);
        let preact = rows.of(self.preact, rows.seq_len * 4 * e);
        let mut state = state_of(self.start.h.h0.map(|h0| rows.of(h0, e)), n * e);
        let mut cell_state = state_of(self.start.c0.map(|c0| rows.of(c0, e)), n * e);
        let mut product = vec![0.0; n * 4 * e];
        rows.clear_padding(h, e);
        rows.clear_padding(c, e);
        for t in 0..rows.steps() {
            rows.reset(t, self.start.h.init, &mut state);
            rows.reset(t, self.start.init_c, &mut cell_state);
            self.products(n, e, &state, &mut product);
            let (state, cell_state) = (&mut state, &mut cell_state);
            let frame = Frame { rows, t, preact, bias: &self.bias };
            self.level.run(Step { frame, product: &product, state, cell_state, h, c });
        }
        h_last.write_copy_of_slice(&state);
        c_last.write_copy_of_slice(&cell_state);
    }

    fn backward(&self, rows: &Rows<'_>, upstream: Upstream<'_>, [d_preact, d_h0, d_c0]: [Slots; 3], partial: &mut [f32]) {
        let (n, e) = (rows.len(), rows.width);
        let preact = rows.of(self.preact, rows.seq_len * 4 * e);
        let (h, c) = (rows.of(upstream.h, rows.seq_len * e), rows.of(upstream.c, rows.seq_len * e));
        let d_h = upstream.d_h.map(|d| rows.of(d, rows.seq_len * e));
        let (h0, c0) = (self.start.h.h0.map(|h0| rows.of(h0, e)), self.start.c0.map(|c0| rows.of(c0, e)));
        let mut gamma = state_of(upstream.d_h_last.map(|d| rows.of(d, e)), n * e);
        let mut kappa = state_of(upstream.d_c_last.map(|d| rows.of(d, e)), n * e);
        let block = rows.block_steps();
        // Per step of a block [rows, ·]: h before it, the recurrent products that turn into their gradients.
        let mut before = vec![0.0; block * n * e];
        let mut product = vec![0.0; block * n * 4 * e];
        let mut cell_before = vec![0.0; n * e];
        let mut sums = vec![0.0; 4 * e];
        let mut totals = vec![0.0; 6 * e];
        let (d_weight, d_sums) = partial.split_at_mut(4 * e * e);
        rows.clear_padding(d_preact, 4 * e);
        for steps in rows.blocks_back() {
            let (first, steps) = (steps.start, steps.len());
            for s in 0..steps {
                rows.gather_before(first + s, h0, self.start.h.init, h, &mut before[s * n * e..(s + 1) * n * e]);
            }
            self.products(steps * n, e, &before, &mut product);
            for s in (0..steps).rev() {
                let t = first + s;
                rows.gather_before(t, c0, self.start.init_c, c, &mut cell_before);
                let (product, cell_before) = (&mut product[s * n * 4 * e..(s + 1) * n * 4 * e], &cell_before);
                let (gamma, kappa, sums) = (&mut gamma, &mut kappa, &mut sums);
                let frame = Frame { rows, t, preact, bias: &self.bias };
                self.level.run(Backward { frame, cell_before, c, d_h, product, gamma, kappa, sums, d_preact });
                multiply(self.level, [n, 4 * e, e], Matrix::new(product, 4 * e), Matrix::new(self.weight, e), Write::Add, gamma, e);
                rows.collect_resets(t, gamma, &mut totals[4 * e..5 * e]);
                rows.collect_resets(t, kappa, &mut totals[5 * e..]);
                if rows.flushes(s) {
                    flush(sums, &mut totals);
                }
            }
            let d_gates = Matrix::new(&product, 4 * e).transpose();
            multiply(self.level, [4 * e, steps * n, e], d_gates, Matrix::new(&before, e), Write::Add, d_weight, e);
        }
        for (sum, total) in d_sums.iter_mut().zip(&totals) {
            *sum = *total as f32;
        }
        d_h0.write_copy_of_slice(&gamma);
        d_c0.write_copy_of_slice(&kappa);
    }

    /// U h for all gates.
    fn products(&self, n: usize, e: usize, state: &[f32], product: &mut [f32]) {
        let weight = Matrix::new(&self.weight_transposed, 4 * e);
        multiply(self.level, [n, e, 4 * e], Matrix::new(state, e), weight, Write::Store, product, 4 * e);
    }
}
