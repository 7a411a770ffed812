//! Gated recurrent unit: forward over whole sequences, backward by hand.
//!
//! ```text
//! r = σ(p_r + U_r h + b'_r)        z = σ(p_z + U_z h + b'_z)
//! paper:   n = tanh(p_n + U_n (r ⊙ h) + b'_n)       h⁺ = (1 − z) ⊙ h + z ⊙ n
//! torch:   n = tanh(p_n + r ⊙ (U_n h + b'_n))       h⁺ = (1 − z) ⊙ n + z ⊙ h
//! ```
//!
//! where p = W x + b is the input side over all steps, computed by the caller in one product (`preact`, to which `bias` is added here), U
//! the recurrent weight and b' the recurrent bias. Backward, with γ the whole gradient of h⁺ and, for the paper's form, w = U_nᵀ ā_n:
//!
//! ```text
//! paper:   ā_z = γ (n − h) z (1 − z)    ā_n = γ z (1 − n²)          ā_r = w h r (1 − r)     dh = γ (1 − z) + w r + U_zᵀ ā_z + U_rᵀ ā_r
//! torch:   ā_z = γ (h − n) z (1 − z)    ā_n = γ (1 − z) (1 − n²)    ā_r = ā_n q r (1 − r)   dh = γ z + U_zᵀ ā_z + U_rᵀ ā_r + U_nᵀ (r ā_n)
//! ```
//!
//! with q = U_n h + b'_n. Departures from a loop over rows and steps:
//! 1. Rows are split over threads and each task steps all its rows at once: one product per step (two in the paper's form).
//! 2. Only h is kept for the backward pass. It proceeds in blocks of steps: the recurrent products of a block are recomputed in one
//!    product, the gates follow from them, and the weight's gradient takes one product per block, all while in the cache.

mod steps;

use crate::choices;
use crate::grid::SharedOut;
use crate::matmul::{Matrix, Write, multiply, transposed};
use crate::out::{Out, Slots};
use crate::rows::combine;
use crate::shape::{Shape, elements, expect_len};
use crate::simd::Level;
use crate::start::Start;
use crate::stepwise::{Frame, Rows, bias_sum, flush, for_each_task, state_of};
use alloc::{vec, vec::Vec};
use steps::{CandidateBackward, ResetBackward, ResetGate, StateUpdate, TorchBackward, TorchStep};
pub use steps::{advance_paper, advance_torch};

choices! {
    /// Where the GRU's reset gate acts.
    GruForm, "gru_form" {
        /// On the state, before the recurrent product; z is the share of the candidate.
        #[default]
        Paper = "paper",
        /// On the recurrent product with its bias; z is the share of the old state (PyTorch, cuDNN).
        Torch = "torch",
    }
}

/// The inputs of every step.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a, T = f32> {
    /// Which GRU.
    pub form: GruForm,
    /// p `[B, T, 3E]`, in rows r, z, n.
    pub preact: &'a [T],
    /// Added to p `[3E]`; `None` is 0.
    pub bias: Option<&'a [T]>,
    /// U `[3E, E]`.
    pub weight: &'a [T],
    /// b' `[3E]`; `None` is 0.
    pub recurrent_bias: Option<&'a [T]>,
    /// The initial states of the rows.
    pub start: Start<'a, T>,
}

/// The further inputs of [`backward`]: the states and their gradients; `None` is 0.
#[derive(Debug, Clone, Copy)]
pub struct Upstream<'a, T = f32> {
    /// The h `[B, T, E]` that [`forward`] wrote.
    pub h: &'a [T],
    /// Of h.
    pub d_h: Option<&'a [T]>,
    /// Of the last state `[B, E]`.
    pub d_h_last: Option<&'a [T]>,
}

/// The outputs of [`backward`], in the shapes of [`Inputs`].
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
    /// Of the carried state `[B, E]`, whether or not there is one.
    pub d_h0: Out<'a>,
    /// Of the state `[E]` that a reset restores, whether or not there is one.
    pub d_init: Out<'a>,
}

/// States of every step `h` `[B, T, E]`, and the last ones `h_last` `[B, E]`. At padding `h` is 0 and the state is unchanged.
///
/// # Panics
/// When a length does not fit `shape`.
pub fn forward(shape: Shape, inputs: Inputs, h: Out, h_last: Out) {
    h.expect_len("h", shape.elements());
    h_last.expect_len("h_last", shape.states());
    let cell = Cell::new(shape, inputs);
    let (h, h_last) = (SharedOut::new(h), SharedOut::new(h_last));
    for_each_task(shape, inputs.start.segments, 0, |rows, _| {
        // SAFETY: tasks have rows of their own.
        let (h, h_last) = unsafe { (rows.own(&h, rows.seq_len * rows.width), rows.own(&h_last, rows.width)) };
        cell.forward(rows, h, h_last);
    });
}

/// Gradients of everything.
///
/// # Panics
/// When a length does not fit `shape`.
pub fn backward(shape: Shape, inputs: Inputs, upstream: Upstream, gradients: Gradients) {
    let e = shape.width;
    expect_len("h", upstream.h, shape.elements());
    upstream.d_h.inspect(|d| expect_len("d_h", d, shape.elements()));
    upstream.d_h_last.inspect(|d| expect_len("d_h_last", d, shape.states()));
    gradients.d_preact.expect_len("d_preact", 3 * shape.elements());
    gradients.d_weight.expect_len("d_weight", elements([3, e, e]));
    gradients.d_h0.expect_len("d_h0", shape.states());
    gradients.d_init.expect_len("d_init", e);
    let cell = Cell::new(shape, inputs);
    // Sums of a task: weight, then the sums of ā_r, ā_z, ā_n and the gradient of q, then init.
    let per_task = 3 * e * e + 5 * e;
    let (d_preact, d_h0) = (SharedOut::new(gradients.d_preact), SharedOut::new(gradients.d_h0));
    let partials = for_each_task(shape, inputs.start.segments, per_task, |rows, partial| {
        // SAFETY: tasks have rows of their own.
        let (d_preact, d_h0) = unsafe { (rows.own(&d_preact, rows.seq_len * 3 * e), rows.own(&d_h0, e)) };
        cell.backward(rows, upstream, d_preact, d_h0, partial);
    });
    let sums = 3 * e * e;
    combine(&partials, per_task, 0, gradients.d_weight);
    if let Some(d_bias) = gradients.d_bias {
        d_bias.expect_len("d_bias", elements([3, e]));
        combine(&partials, per_task, sums, d_bias);
    }
    if let Some(d_recurrent_bias) = gradients.d_recurrent_bias {
        d_recurrent_bias.expect_len("d_recurrent_bias", elements([3, e]));
        let [of_gates, of_candidate] = d_recurrent_bias.split_at(2 * e);
        combine(&partials, per_task, sums, of_gates);
        combine(&partials, per_task, sums + 3 * e, of_candidate);
    }
    combine(&partials, per_task, sums + 4 * e, gradients.d_init);
}

/// The arguments both directions share, prepared.
struct Cell<'a> {
    level: Level,
    form: GruForm,
    preact: &'a [f32],
    /// What is added to the pre-activations, `[3E]`.
    bias: Vec<f32>,
    /// b'_n of the torch form, `[E]`: it is added inside the reset gate.
    inner_bias: Vec<f32>,
    weight: &'a [f32],
    /// `[E, 3E]`.
    weight_transposed: Vec<f32>,
    start: Start<'a>,
}

impl<'a> Cell<'a> {
    fn new(shape: Shape, inputs: Inputs<'a>) -> Self {
        let Inputs { form, preact, bias, weight, recurrent_bias, start } = inputs;
        let e = shape.width;
        expect_len("preact", preact, 3 * shape.elements());
        bias.inspect(|bias| expect_len("bias", bias, elements([3, e])));
        expect_len("weight", weight, elements([3, e, e]));
        recurrent_bias.inspect(|bias| expect_len("recurrent_bias", bias, elements([3, e])));
        start.expect_fits(shape);
        let mut sum = bias_sum(bias, recurrent_bias, 3 * e);
        let inner_bias = match form {
            GruForm::Paper => Vec::new(),
            GruForm::Torch => {
                sum[2 * e..].copy_from_slice(&bias_sum(bias.map(|b| &b[2 * e..]), None, e));
                bias_sum(recurrent_bias.map(|b| &b[2 * e..]), None, e)
            }
        };
        let weight_transposed = transposed(weight, 3 * e, e);
        Self { level: Level::current(), form, preact, bias: sum, inner_bias, weight, weight_transposed, start }
    }

    fn forward(&self, rows: &Rows<'_>, h: Slots, h_last: Slots) {
        let (n, e) = (rows.len(), rows.width);
        let preact = rows.of(self.preact, rows.seq_len * 3 * e);
        let mut state = state_of(self.start.h0.map(|h0| rows.of(h0, e)), n * e);
        let mut product = vec![0.0; n * 3 * e];
        let mut inner = vec![0.0; if self.form == GruForm::Paper { n * e } else { 0 }];
        rows.clear_padding(h, e);
        for t in 0..rows.steps() {
            let frame = Frame { rows, t, preact, bias: &self.bias };
            rows.reset(t, self.start.init, &mut state);
            self.products(n, e, &state, &mut product);
            match self.form {
                GruForm::Torch => {
                    self.level.run(TorchStep { frame, inner_bias: &self.inner_bias, product: &product, state: &mut state, h });
                }
                GruForm::Paper => {
                    self.level.run(ResetGate { frame, state: &state, product: &product, inner: &mut inner });
                    self.inner_products(n, e, &inner, &mut product);
                    self.level.run(StateUpdate { frame, product: &product, state: &mut state, h });
                }
            }
        }
        h_last.write_copy_of_slice(&state);
    }

    fn backward(&self, rows: &Rows<'_>, upstream: Upstream<'_>, d_preact: Slots, d_h0: Slots, partial: &mut [f32]) {
        let Upstream { h, d_h, d_h_last } = upstream;
        let (n, e) = (rows.len(), rows.width);
        let paper = self.form == GruForm::Paper;
        let preact = rows.of(self.preact, rows.seq_len * 3 * e);
        let h = rows.of(h, rows.seq_len * e);
        let d_h = d_h.map(|d| rows.of(d, rows.seq_len * e));
        let h0 = self.start.h0.map(|h0| rows.of(h0, e));
        let mut gamma = state_of(d_h_last.map(|d| rows.of(d, e)), n * e);
        let block = rows.block_steps();
        // Per step of a block [rows, ·]: the states before it, the recurrent products that turn into their gradients, r ⊙ h.
        let mut before = vec![0.0; block * n * e];
        let mut product = vec![0.0; block * n * 3 * e];
        let mut inner = vec![0.0; if paper { block * n * e } else { 0 }];
        let mut d_inner = vec![0.0; if paper { n * e } else { 0 }];
        let mut sums = vec![0.0; 4 * e];
        let mut totals = vec![0.0; 5 * e];
        let (d_weight, d_sums) = partial.split_at_mut(3 * e * e);
        rows.clear_padding(d_preact, 3 * e);
        for steps in rows.blocks_back() {
            let (first, steps) = (steps.start, steps.len());
            let frame = |s: usize| Frame { rows, t: first + s, preact, bias: &self.bias };
            for s in 0..steps {
                rows.gather_before(first + s, h0, self.start.init, h, &mut before[s * n * e..(s + 1) * n * e]);
            }
            self.products(steps * n, e, &before, &mut product);
            if paper {
                for s in 0..steps {
                    let (states, wide) = (s * n * e..(s + 1) * n * e, s * n * 3 * e..(s + 1) * n * 3 * e);
                    let (state, inner) = (&before[states.clone()], &mut inner[states]);
                    self.level.run(ResetGate { frame: frame(s), state, product: &product[wide], inner });
                }
                self.inner_products(steps * n, e, &inner, &mut product);
            }
            for s in (0..steps).rev() {
                let frame = frame(s);
                let before = &before[s * n * e..(s + 1) * n * e];
                let product = &mut product[s * n * 3 * e..(s + 1) * n * 3 * e];
                let (gamma, sums) = (&mut gamma, &mut sums);
                if paper {
                    self.level.run(CandidateBackward { frame, before, d_h, product, gamma, sums, d_preact });
                    let candidate = Matrix::new(&product[2 * e..], 3 * e);
                    multiply(self.level, [n, e, e], candidate, Matrix::new(&self.weight[2 * e * e..], e), Write::Store, &mut d_inner, e);
                    self.level.run(ResetBackward { frame, before, d_inner: &d_inner, product, gamma, sums, d_preact });
                    multiply(self.level, [n, 2 * e, e], Matrix::new(product, 3 * e), Matrix::new(self.weight, e), Write::Add, gamma, e);
                } else {
                    let inner_bias = &self.inner_bias;
                    self.level.run(TorchBackward { frame, inner_bias, before, d_h, product, gamma, sums, d_preact });
                    multiply(self.level, [n, 3 * e, e], Matrix::new(product, 3 * e), Matrix::new(self.weight, e), Write::Add, gamma, e);
                }
                rows.collect_resets(frame.t, gamma, &mut totals[4 * e..]);
                if rows.flushes(s) {
                    flush(sums, &mut totals);
                }
            }
            self.weight_gradient(steps * n, e, &product, &before, &inner, d_weight);
        }
        if paper {
            totals.copy_within(2 * e..3 * e, 3 * e);
        }
        for (sum, total) in d_sums.iter_mut().zip(&totals) {
            *sum = *total as f32;
        }
        d_h0.write_copy_of_slice(&gamma);
    }

    /// The products that need the state alone: U h for all gates (torch) or for r and z (paper).
    fn products(&self, n: usize, e: usize, state: &[f32], product: &mut [f32]) {
        let columns = if self.form == GruForm::Paper { 2 * e } else { 3 * e };
        let weight = Matrix::new(&self.weight_transposed, 3 * e);
        multiply(self.level, [n, e, columns], Matrix::new(state, e), weight, Write::Store, product, 3 * e);
    }

    /// U_n (r ⊙ h), paper form.
    fn inner_products(&self, n: usize, e: usize, inner: &[f32], product: &mut [f32]) {
        let weight = Matrix::new(&self.weight_transposed[2 * e..], 3 * e);
        multiply(self.level, [n, e, e], Matrix::new(inner, e), weight, Write::Store, &mut product[2 * e..], 3 * e);
    }

    /// Adds a block's Σ d_product ⊗ (the product's input).
    fn weight_gradient(&self, n: usize, e: usize, d_product: &[f32], before: &[f32], inner: &[f32], d_weight: &mut [f32]) {
        let (d_gates, before) = (Matrix::new(d_product, 3 * e).transpose(), Matrix::new(before, e));
        match self.form {
            GruForm::Torch => multiply(self.level, [3 * e, n, e], d_gates, before, Write::Add, d_weight, e),
            GruForm::Paper => {
                multiply(self.level, [2 * e, n, e], d_gates, before, Write::Add, d_weight, e);
                let d_candidate = Matrix::new(&d_product[2 * e..], 3 * e).transpose();
                multiply(self.level, [e, n, e], d_candidate, Matrix::new(inner, e), Write::Add, &mut d_weight[2 * e * e..], e);
            }
        }
    }
}
