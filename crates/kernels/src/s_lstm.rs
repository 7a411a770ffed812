//! sLSTM: an LSTM with an exponential input gate, a normaliser and heads; forward over whole sequences, backward by hand.
//!
//! ```text
//! m⁺ = max(ln f + m, ĩ)      i* = e^(ĩ − m⁺)      f* = e^(ln f + m − m⁺)      z = tanh z̃      o = σ(õ)
//! c⁺ = f* ⊙ c + i* ⊙ z       n⁺ = f* ⊙ n + i*     h⁺ = o ⊙ c⁺ / n⁺
//! ```
//!
//! where ĩ, f̃, z̃, õ = p + R h + b: p is the input side over all steps, computed by the caller (`preact`), R the recurrent weight, which
//! only mixes channels within a head, b the `bias`; f is σ(f̃) or e^f̃; c and n are the cell state and the normaliser, both divided by e^m,
//! so that i* and f* are at most 1 and nothing overflows. m cancels in c / n and is a constant for differentiation. Backward, with γ the
//! whole gradient of h⁺, κ and ν the incoming gradients of c⁺ and n⁺:
//!
//! ```text
//! κ' = κ + γ o / n⁺     ν' = ν − γ o c⁺ / n⁺²
//! ā_i = i* (κ' z + ν')  ā_f = (1 − σ(f̃)) f* (κ' c + ν' n)    ā_z = κ' i* (1 − z²)    ā_o = γ (c⁺ / n⁺) o (1 − o)
//! dc = κ' f*            dn = ν' f*                           dh = Rᵀ ā
//! ```
//!
//! (no first factor in ā_f if f = e^f̃). An empty state is h = c = n = 0 and m = −∞, stored as [`EMPTY_M`]; a reset restores it. Threads,
//! products per step and blocks of steps in the backward pass are as in [`crate::lstm`].

mod steps;

use crate::choices;
use crate::grid::SharedOut;
use crate::matmul::{Matrix, Write, multiply, transposed};
use crate::out::{Out, Slots};
use crate::rows::combine;
use crate::segments::Segments;
use crate::shape::{Shape, elements, expect_len};
use crate::simd::Level;
use crate::stepwise::{Frame, Rows, bias_sum, flush, for_each_task, state_of};
use alloc::{vec, vec::Vec};
pub use steps::step;
use steps::{Backward, Step};

/// m before the first step: low enough to vanish beside every input gate, and finite, so that masks may multiply it.
pub const EMPTY_M: f32 = -1e30;

choices! {
    /// How sLSTM's forget gate follows from its pre-activation.
    ForgetGate, "slstm_forget_gate" {
        /// f = σ(f̃).
        #[default]
        Sigmoid = "sigmoid",
        /// f = e^f̃.
        Exponential = "exponential",
    }
}

/// The initial states of a batch's rows; a missing part is that of an empty state.
#[derive(Debug, Clone, Copy, Default)]
pub struct Start<'a, T = f32> {
    /// The carried h `[B, E]`.
    pub h0: Option<&'a [T]>,
    /// The carried c `[B, E]`.
    pub c0: Option<&'a [T]>,
    /// The carried n `[B, E]`.
    pub n0: Option<&'a [T]>,
    /// The carried m `[B, E]`.
    pub m0: Option<&'a [T]>,
    /// Which steps are real and where the state is reset.
    pub segments: Segments<'a>,
}

impl<'a, T> Start<'a, T> {
    /// h, c, n, m.
    pub(crate) fn carried(&self) -> [Option<&'a [T]>; 4] {
        [self.h0, self.c0, self.n0, self.m0]
    }
}

/// The inputs of every step.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a, T = f32> {
    /// NH, which divides E.
    pub heads: usize,
    /// How f is computed from f̃.
    pub forget: ForgetGate,
    /// p `[B, T, 4E]`, in rows i, f, z, o.
    pub preact: &'a [T],
    /// R `[NH, 4H, H]` with H = E / NH, in rows i, f, z, o.
    pub weight: &'a [T],
    /// b `[4E]`; `None` is 0.
    pub bias: Option<&'a [T]>,
    /// The initial states of the rows.
    pub start: Start<'a, T>,
}

/// The further inputs of [`backward`]: the states and their gradients; `None` is 0.
#[derive(Debug, Clone, Copy)]
pub struct Upstream<'a, T = f32> {
    /// The states `[B, T, E]` that [`forward`] wrote.
    pub states: [&'a [T]; 4],
    /// Of h `[B, T, E]`.
    pub d_h: Option<&'a [T]>,
    /// Of the last h, c and n `[B, E]`.
    pub d_last: [Option<&'a [T]>; 3],
}

/// The outputs of [`backward`], in the shapes of [`Inputs`].
#[derive(Debug)]
pub struct Gradients<'a> {
    /// Of the pre-activations.
    pub d_preact: Out<'a>,
    /// Of the recurrent weight.
    pub d_weight: Out<'a>,
    /// Of the bias, if wanted.
    pub d_bias: Option<Out<'a>>,
    /// Of the carried h, c and n, whether or not the start has them.
    pub d_start: [Out<'a>; 3],
}

/// States of every step `[B, T, E]` and the last ones `[B, E]`, in the order h, c, n, m. At padding the outputs are 0 and the carried
/// states are unchanged.
///
/// # Panics
/// When a length does not fit `shape`, or the heads do not divide its width.
pub fn forward(shape: Shape, inputs: Inputs, states: [Out; 4], last: [Out; 4]) {
    states.iter().for_each(|state| state.expect_len("a state", shape.elements()));
    last.iter().for_each(|state| state.expect_len("a last state", shape.states()));
    let cell = Cell::new(shape, inputs);
    let (states, last) = (states.map(SharedOut::new), last.map(SharedOut::new));
    for_each_task(shape, inputs.start.segments, 0, |rows, _| {
        // SAFETY: tasks have rows of their own.
        let (states, last) = unsafe {
            let states = [0, 1, 2, 3].map(|part: usize| rows.own(&states[part], rows.seq_len * rows.width));
            (states, [0, 1, 2, 3].map(|part: usize| rows.own(&last[part], rows.width)))
        };
        cell.forward(rows, states, last);
    });
}

/// Gradients of everything.
///
/// # Panics
/// When a length does not fit `shape`, or the heads do not divide its width.
pub fn backward(shape: Shape, inputs: Inputs, upstream: Upstream, gradients: Gradients) {
    let (e, weight) = (shape.width, inputs.weight);
    upstream.states.iter().for_each(|state| expect_len("a state", state, shape.elements()));
    upstream.d_h.inspect(|d| expect_len("d_h", d, shape.elements()));
    upstream.d_last.iter().flatten().for_each(|d| expect_len("d_last", d, shape.states()));
    gradients.d_preact.expect_len("d_preact", 4 * shape.elements());
    gradients.d_weight.expect_len("d_weight", weight.len());
    gradients.d_start.iter().for_each(|d| d.expect_len("d_start", shape.states()));
    let cell = Cell::new(shape, inputs);
    // Sums of a task: weight, then bias.
    let per_task = weight.len() + 4 * e;
    let (d_preact, d_start) = (SharedOut::new(gradients.d_preact), gradients.d_start.map(SharedOut::new));
    let partials = for_each_task(shape, inputs.start.segments, per_task, |rows, partial| {
        // SAFETY: tasks have rows of their own.
        let (d_preact, d_start) = unsafe {
            let d_start = [0, 1, 2].map(|part: usize| rows.own(&d_start[part], e));
            (rows.own(&d_preact, rows.seq_len * 4 * e), d_start)
        };
        cell.backward(rows, upstream, d_preact, d_start, partial);
    });
    combine(&partials, per_task, 0, gradients.d_weight);
    if let Some(d_bias) = gradients.d_bias {
        d_bias.expect_len("d_bias", elements([4, e]));
        combine(&partials, per_task, weight.len(), d_bias);
    }
}

/// The arguments both directions share, prepared.
struct Cell<'a> {
    level: Level,
    heads: usize,
    forget: ForgetGate,
    preact: &'a [f32],
    /// `[4E]`.
    bias: Vec<f32>,
    /// `[NH, 4H, H]`.
    weight: &'a [f32],
    /// `[NH, H, 4H]`.
    weight_transposed: Vec<f32>,
    start: Start<'a>,
    /// m of every channel of a state that has seen nothing.
    empty_m: Vec<f32>,
}

impl<'a> Cell<'a> {
    fn new(shape: Shape, inputs: Inputs<'a>) -> Self {
        let Inputs { heads, forget, preact, weight, bias, start } = inputs;
        let e = shape.width;
        assert!(heads > 0 && e.is_multiple_of(heads), "{heads} heads do not divide a width of {e}");
        let head = e / heads;
        expect_len("preact", preact, 4 * shape.elements());
        expect_len("weight", weight, elements([4, e, head]));
        bias.inspect(|bias| expect_len("bias", bias, elements([4, e])));
        start.carried().iter().flatten().for_each(|state| expect_len("a carried state", state, shape.states()));
        start.segments.expect_fits(shape.batch, shape.seq_len);
        let per_head = weight.chunks_exact((4 * head * head).max(1));
        let weight_transposed = per_head.flat_map(|weight| transposed(weight, 4 * head, head)).collect();
        let (bias, empty_m) = (bias_sum(bias, None, 4 * e), vec![EMPTY_M; e]);
        Self { level: Level::current(), heads, forget, preact, bias, weight, weight_transposed, start, empty_m }
    }

    /// What a reset restores in part h, c, n or m; `None` is 0.
    fn init(&self, part: usize) -> Option<&[f32]> {
        (part == 3).then_some(&self.empty_m)
    }

    fn forward(&self, rows: &Rows<'_>, states: [Slots; 4], last: [Slots; 4]) {
        let (n, e) = (rows.len(), rows.width);
        let preact = rows.of(self.preact, rows.seq_len * 4 * e);
        let carried = self.start.carried();
        let mut state: [Vec<f32>; 4] = core::array::from_fn(|part| match carried[part] {
            None if part == 3 => vec![EMPTY_M; n * e],
            carried => state_of(carried.map(|carried| rows.of(carried, e)), n * e),
        });
        let mut product = vec![0.0; n * 4 * e];
        let mut states = states;
        states.iter_mut().for_each(|state| rows.clear_padding(state, e));
        for t in 0..rows.steps() {
            state.iter_mut().enumerate().for_each(|(part, state)| rows.reset(t, self.init(part), state));
            self.products(n, e, &state[0], &mut product);
            let (frame, heads, forget) = (Frame { rows, t, preact, bias: &self.bias }, self.heads, self.forget);
            self.level.run(Step { frame, heads, forget, product: &product, state: &mut state, states: &mut states });
        }
        for (last, state) in last.into_iter().zip(&state) {
            last.write_copy_of_slice(state);
        }
    }

    fn backward(&self, rows: &Rows<'_>, upstream: Upstream<'_>, d_preact: Slots, d_start: [Slots; 3], partial: &mut [f32]) {
        let (n, e) = (rows.len(), rows.width);
        let preact = rows.of(self.preact, rows.seq_len * 4 * e);
        let states = upstream.states.map(|state| rows.of(state, rows.seq_len * e));
        let d_h = upstream.d_h.map(|d| rows.of(d, rows.seq_len * e));
        let carried = self.start.carried().map(|carried| carried.map(|carried| rows.of(carried, e)));
        // γ, κ and ν.
        let mut gradients = upstream.d_last.map(|d| state_of(d.map(|d| rows.of(d, e)), n * e));
        let block = rows.block_steps();
        // Per step of a block [rows, ·]: h before it, the recurrent products that turn into their gradients.
        let mut before = vec![0.0; block * n * e];
        let mut product = vec![0.0; block * n * 4 * e];
        // c, n and m before a step.
        let mut memory = [(); 3].map(|()| vec![0.0; n * e]);
        let mut sums = vec![0.0; 4 * e];
        let mut totals = vec![0.0; 4 * e];
        let (d_weight, d_bias) = partial.split_at_mut(self.weight.len());
        rows.clear_padding(d_preact, 4 * e);
        // A row with no carried m begins as after a reset.
        let first_m = carried[3].map_or_else(|| vec![EMPTY_M; n * e], <[f32]>::to_vec);
        let first = [carried[0], carried[1], carried[2], Some(&first_m[..])];
        for steps in rows.blocks_back() {
            let (from, steps) = (steps.start, steps.len());
            for s in 0..steps {
                rows.gather_before(from + s, first[0], None, states[0], &mut before[s * n * e..(s + 1) * n * e]);
            }
            self.products(steps * n, e, &before, &mut product);
            for s in (0..steps).rev() {
                let t = from + s;
                for (part, memory) in (1..).zip(&mut memory) {
                    rows.gather_before(t, first[part], self.init(part), states[part], memory);
                }
                let product = &mut product[s * n * 4 * e..(s + 1) * n * 4 * e];
                let (frame, heads, forget) = (Frame { rows, t, preact, bias: &self.bias }, self.heads, self.forget);
                let (memory, gradients, sums) = (&memory, &mut gradients, &mut sums);
                self.level.run(Backward { frame, heads, forget, memory, states, d_h, product, gradients, sums, d_preact });
                self.back_through_product(n, e, product, &mut gradients[0]);
                gradients.iter_mut().for_each(|gradient| rows.drop_resets(t, gradient));
                if rows.flushes(s) {
                    flush(sums, &mut totals);
                }
            }
            self.weight_gradient(steps * n, e, &product, &before, d_weight);
        }
        for (sum, total) in d_bias.iter_mut().zip(&totals) {
            *sum = *total as f32;
        }
        for (d_start, gradient) in d_start.into_iter().zip(&gradients) {
            d_start.write_copy_of_slice(gradient);
        }
    }

    /// R h for all gates of `n` rows, `[n, NH, 4H]`.
    fn products(&self, n: usize, e: usize, state: &[f32], product: &mut [f32]) {
        let head = e / self.heads;
        for i in (0..self.heads).filter(|_| head > 0) {
            let weight = Matrix::new(&self.weight_transposed[i * 4 * head * head..], 4 * head);
            let state = Matrix::new(&state[i * head..], e);
            multiply(self.level, [n, head, 4 * head], state, weight, Write::Store, &mut product[i * 4 * head..], 4 * e);
        }
    }

    /// γ += Rᵀ ā.
    fn back_through_product(&self, n: usize, e: usize, d_product: &[f32], gamma: &mut [f32]) {
        let head = e / self.heads;
        for i in (0..self.heads).filter(|_| head > 0) {
            let weight = Matrix::new(&self.weight[i * 4 * head * head..], head);
            let d_product = Matrix::new(&d_product[i * 4 * head..], 4 * e);
            multiply(self.level, [n, 4 * head, head], d_product, weight, Write::Add, &mut gamma[i * head..], e);
        }
    }

    /// Adds a block's Σ ā ⊗ h.
    fn weight_gradient(&self, n: usize, e: usize, d_product: &[f32], before: &[f32], d_weight: &mut [f32]) {
        let head = e / self.heads;
        for i in (0..self.heads).filter(|_| head > 0) {
            let d_product = Matrix::new(&d_product[i * 4 * head..], 4 * e).transpose();
            let before = Matrix::new(&before[i * head..], e);
            multiply(self.level, [4 * head, n, head], d_product, before, Write::Add, &mut d_weight[i * 4 * head * head..], head);
        }
    }
}
