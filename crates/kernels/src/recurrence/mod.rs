//! Every linear recurrence h_t = a_t h_{t−1} + b_t; a [`Cell`] computes a_t and b_t from its inputs.
//!
//! Whole sequences use [`forward`] and [`backward`], token-by-token inference uses [`step`]; the formulas are the same. A cell is a file in
//! `cells`: its gates for one step, and their slopes. Everything else is one driver. For each channel, in simple terms:
//!
//! ```text
//! forward:   h = h0;     for t in 0..T        { h = a[t] h + b[t]; out[t] = h }
//! backward:  G = d_last; for t in (0..T).rev  { G += d_h[t]; write gradients from (inputs, h[t-1], G); G = a[t] G }
//! ```
//!
//! Departures, and their benefits:
//! 1. Rows (and, if there are few, blocks of channels) are tasks for threads; vectors of channels advance together through time.
//! 2. Runs between resets are dense stretches without a branch per step (`stretch`).
//! 3. Few rows and many steps: time is split into chunks too (`plan`). A task first reads its chunk to determine its effect on a state (h ↦
//!    p h + l), waits for the state that enters, passes the one that leaves to the next chunk, and then runs the recurrence itself; by then
//!    the chunk is in the second-level cache, so memory is read once. Meanwhile other threads are at the other pass over their chunks, so
//!    that reading and writing overlap. Chunk borders depend only on shape and thread count (`handover`).
//! 4. Memory is prefetched a few rows before it is read: rows of several tensors are more streams than the hardware follows (up to twice
//!    the speed). Outputs that do not fit into the caches bypass them.
//! 5. The state that leaves a chunk is h + (l − q h) where p is close to 1, with q = 1 − p summed from the losses: p alone would round away
//!    what slow gates forget.

mod backward;
mod candidate;
mod cells;
mod formulas;
mod forward;
mod gate;
mod handover;
mod kept;
mod passes;
mod plan;
mod problem;
mod step;
mod stretch;
mod sums;

pub use cells::rg_lru::{RG_LRU_SHARPNESS, rg_lru_rate};
pub use step::{StepInputs, step};

use crate::out::Out;
use crate::shape::{Candidate, Gates, Shape, expect_len};
use crate::start::Start;
pub(crate) use cells::rg_lru::LEAST_ROOT;
use cells::with_formulas;
use formulas::Formulas;
use problem::Problem;

/// How the inputs of a step determine a and b.
///
/// where: z = σ(k) and h̃ = candidate(v), except in the last; a row of pre-activations has [`Cell::parts`] parts of width E, in the order
/// given here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cell {
    /// a is the only part, b the extra input.
    Linear,
    /// ln a is the only part, ln b the extra input; states are h ≥ 0. The paper's form (Feng et al. 2024, appendix B), for study: states
    /// enter a chunk of time in linear space, so that one which overflowed in between stays ∞ where a logarithm would have recovered.
    LogSpace,
    /// minGRU (Feng et al. 2024, §3.1): h ← (1 − z) h + z h̃. Parts v, k.
    MinGru(Candidate),
    /// minLSTM (Feng et al. 2024, §3.2): h ← f' h + i' h̃ with the gates σ(p), σ(q). Parts v, p, q.
    MinLstm(Candidate, Gates),
    /// h ← (1 − z) tanh(s) h + z h̃. Parts v, k, s.
    SignedMinGru(Candidate),
    /// h ← (1 − z) e^{−u} h + z h̃. Parts v, k; the extra input is u ≥ 0.
    DecayMinGru(Candidate),
    /// h ← (1 − c z) h + c z h̃. Parts v, k; the extra input is c in (0, 1], one number per channel.
    FlooredMinGru(Candidate),
    /// RG-LRU (De et al. 2024, §2.4): h ← a h + √(1 − a²) σ(k) x with a = e^{−c σ(r)}, and a = 0 where r = +∞. Parts x, r, k; the extra input
    /// is c ≥ 0, one number per channel.
    RgLru,
}

impl Cell {
    /// Number of parts of width E in a row of pre-activations.
    pub fn parts(self) -> usize {
        with_formulas!(self, formulas => formulas.parts())
    }

    /// Length of the extra input: 0, or that of `[B, T, E]`, or of `[E]` if it is one number per channel.
    ///
    /// # Panics
    /// When the sizes are more than memory can hold.
    pub fn extra_len(self, shape: Shape) -> usize {
        with_formulas!(self, formulas => formulas.extra_len(shape))
    }
}

/// What a recurrence reads at every step.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a, T = f32> {
    /// `[B, T, parts·E]`
    pub preact: &'a [T],
    /// `[parts·E]`, added to every row of the pre-activations; `None` is 0. Linear recurrences have none.
    pub bias: Option<&'a [T]>,
    /// The extra input of the cell, [`Cell::extra_len`] numbers.
    pub extra: &'a [T],
}

/// The outputs of the forward pass and their gradients.
#[derive(Debug, Clone, Copy)]
pub struct Upstream<'a, T = f32> {
    /// The states `[B, T, E]`.
    pub h: &'a [T],
    /// Their gradient `[B, T, E]`; `None` is 0.
    pub d_h: Option<&'a [T]>,
    /// That of the last states `[B, E]`; `None` is 0.
    pub d_h_last: Option<&'a [T]>,
}

/// Outputs for gradients.
#[derive(Debug)]
pub struct Gradients<'a> {
    /// Of the pre-activations, in their layout.
    pub d_preact: Out<'a>,
    /// Of the bias, if wanted.
    pub d_bias: Option<Out<'a>>,
    /// Of the extra input, in its layout.
    pub d_extra: Out<'a>,
    /// Of the carried state `[B, E]`.
    pub d_h0: Out<'a>,
    /// Of the state that resets restore `[E]`.
    pub d_init: Out<'a>,
}

/// Writes every state to `h` `[B, T, E]` (0 at padding) and each row's last to `h_last` `[B, E]`.
///
/// # Panics
/// When a length does not fit `shape`.
pub fn forward(shape: Shape, cell: Cell, inputs: Inputs, start: Start, h: Out, h_last: Out) {
    with_formulas!(cell, formulas => forward::forward(&Problem::new(shape, formulas, inputs, start), h, h_last));
}

/// Writes the gradients of all inputs of [`forward`]. Gates are recomputed from the pre-activations: only the states are kept from the
/// forward pass.
///
/// # Panics
/// When a length does not fit `shape`.
pub fn backward(shape: Shape, cell: Cell, inputs: Inputs, start: Start, upstream: Upstream, gradients: Gradients) {
    expect_len("extra", inputs.extra, cell.extra_len(shape));
    // The gradients of the linear recurrence do not depend on b: with a in its place, no second tensor is read.
    let inputs = if cell == Cell::Linear { Inputs { extra: inputs.preact, ..inputs } } else { inputs };
    with_formulas!(cell, formulas => backward::backward(&Problem::new(shape, formulas, inputs, start), &upstream, gradients));
}
