//! mLSTM: a matrix memory with exponential gates, forward and backward in chunks of time.
//!
//! Per head of width e, with q, k, v the query, key and value of a step and κ = 1 / √e:
//!
//! ```text
//! m⁺ = max(ln f + m, ĩ)        i* = e^(ĩ − m⁺)     f* = e^(ln f + m − m⁺)     f = σ(f̃)
//! C⁺ = f* C + i* κ k vᵀ        n⁺ = f* n + i* κ k
//! h  = C⁺ᵀ q / η               η = max(|n⁺·q|, e^−m⁺) + 1e−6
//! ```
//!
//! where: C is the matrix memory `[e, e]` (rows correspond to keys), n the normaliser `[e]`, m the stabiliser; C and n are divided by e^m;
//! ĩ, f̃ are pre-activations of the gates. m is a constant for differentiation. An empty memory is 0 with m = −∞, stored as [`EMPTY_M`]; a
//! reset restores it, and begins a chunk.
//!
//! A value that is not finite makes all outputs of its chunk non-finite, including earlier ones.
//!
//! **In a chunk** of at most [`CHUNK`] steps, starting with C, n, m: F_t is the sum of ln f up to t, a_s = ĩ_s − F_s, μ_t = max(m, a_1, …,
//! a_t), so that the recurrence's m_t = F_t + μ_t, and
//!
//! ```text
//! S_ts = κ (q_t·k_s) e^(a_s − μ_t), s ≤ t      δ_t = e^(m − μ_t)      β_t = Σ_s S_ts + δ_t n·q_t
//! h_t = (Σ_s S_ts v_s + δ_t Cᵀ q_t) / η_t      C⁺ = δ_L C + Σ_s w_s k_s v_sᵀ      n⁺ = δ_L n + Σ_s w_s k_s      w_s = κ e^(a_s − μ_L)
//! ```
//!
//! F, a and μ are f64: a weight is the difference of two sums over the chunk. The memory and its stabiliser at a chunk's end are those of
//! the recurrence, so it makes no difference where a sequence is cut. Heads of rows are spread over threads; the forward pass stores only
//! h, and the backward pass recomputes the memories at the beginnings of chunks: O(T e + T / chunk · e²) for a head.

mod backward;
mod chunk;
mod forward;
mod step;
mod vectors;

pub use crate::s_lstm::EMPTY_M;
pub use step::step;

use crate::grid::{self, SharedOut};
use crate::out::{Out, Slots};
use crate::segments::{RESET, Segments};
use crate::shape::{Shape, elements, expect_len};
use crate::simd::{Level, sqrt};
use alloc::vec::Vec;

/// Steps of a chunk.
pub const CHUNK: usize = 64;

/// Added to the denominator.
pub const EPS: f32 = 1e-6;

/// The initial memories of a batch's rows; a missing part is that of an empty memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct Start<'a, T = f32> {
    /// The carried C `[B, NH, e, e]`.
    pub c0: Option<&'a [T]>,
    /// The carried n `[B, NH, e]`.
    pub n0: Option<&'a [T]>,
    /// The carried m `[B, NH]`.
    pub m0: Option<&'a [T]>,
    /// Which steps are real and where the memory is reset.
    pub segments: Segments<'a>,
}

/// The inputs of every step.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a, T = f32> {
    /// NH, which divides D.
    pub heads: usize,
    /// q, k and v `[B, T, D]` with the channels of each head contiguous, D = NH · e.
    pub qkv: [&'a [T]; 3],
    /// The pre-activations of the input gates, then of the forget gates `[B, T, 2NH]`.
    pub gates: &'a [T],
    /// The initial states of the rows.
    pub start: Start<'a, T>,
}

/// The further inputs of [`backward`]: the outputs and their gradients; `None` is 0.
#[derive(Debug, Clone, Copy)]
pub struct Upstream<'a, T = f32> {
    /// The h `[B, T, D]` that [`forward`] wrote.
    pub h: &'a [T],
    /// Of h.
    pub d_h: Option<&'a [T]>,
    /// Of the last C `[B, NH, e, e]` and n `[B, NH, e]`.
    pub d_last: [Option<&'a [T]>; 2],
}

/// The outputs of [`backward`], in the shapes of [`Inputs`].
#[derive(Debug)]
pub struct Gradients<'a> {
    /// Of q, k and v.
    pub d_qkv: [Out<'a>; 3],
    /// Of the gates.
    pub d_gates: Out<'a>,
    /// Of the carried C and n, whether or not the start has them.
    pub d_start: [Out<'a>; 2],
}

/// Outputs of every step `h` `[B, T, D]`, 0 at padding, and C `[B, NH, e, e]`, n `[B, NH, e]` and m `[B, NH]` after the last.
///
/// # Panics
/// When a length does not fit `shape`, or the heads do not divide its width.
pub fn forward(shape: Shape, inputs: Inputs, h: Out, last: [Out; 3]) {
    let heads = inputs.heads;
    let problem = Problem::new(shape, inputs);
    let e = problem.width;
    h.expect_len("h", shape.elements());
    for (name, out, per_head) in [("last C", &last[0], e * e), ("last n", &last[1], e), ("last m", &last[2], 1)] {
        out.expect_len(name, elements([shape.batch, heads, per_head]));
    }
    let (h, last) = (SharedOut::new(h), last.map(SharedOut::new));
    problem.for_each_head(forward::Forward::new, |worker, head| {
        // SAFETY: every head of every row has outputs of its own.
        let last = unsafe { [head.memory(&last[0], e * e), head.memory(&last[1], e), head.memory(&last[2], 1)] };
        worker.run(&problem, head, &h, last);
    });
}

/// Gradients of everything except m.
///
/// # Panics
/// When a length does not fit `shape`, or the heads do not divide its width.
pub fn backward(shape: Shape, inputs: Inputs, upstream: Upstream, gradients: Gradients) {
    let heads = inputs.heads;
    let problem = Problem::new(shape, inputs);
    let e = problem.width;
    expect_len("h", upstream.h, shape.elements());
    upstream.d_h.inspect(|d| expect_len("d_h", d, shape.elements()));
    gradients.d_qkv.iter().for_each(|d| d.expect_len("a gradient of q, k, v", shape.elements()));
    gradients.d_gates.expect_len("d_gates", inputs.gates.len());
    for (d_last, d_start, per_head) in [(upstream.d_last[0], &gradients.d_start[0], e * e), (upstream.d_last[1], &gradients.d_start[1], e)]
    {
        d_last.inspect(|d| expect_len("d_last", d, elements([shape.batch, heads, per_head])));
        d_start.expect_len("d_start", elements([shape.batch, heads, per_head]));
    }
    let (d_qkv, d_gates, d_start) =
        (gradients.d_qkv.map(SharedOut::new), SharedOut::new(gradients.d_gates), gradients.d_start.map(SharedOut::new));
    problem.for_each_head(backward::Backward::new, |worker, head| {
        // SAFETY: every head of every row has outputs of its own.
        let d_start = unsafe { [head.memory(&d_start[0], e * e), head.memory(&d_start[1], e)] };
        worker.run(&problem, head, &upstream, &d_qkv, &d_gates, d_start);
    });
}

/// The arguments both directions share, checked.
struct Problem<'a> {
    level: Level,
    shape: Shape,
    heads: usize,
    /// e.
    width: usize,
    /// κ.
    scale: f32,
    qkv: [&'a [f32]; 3],
    gates: &'a [f32],
    start: Start<'a>,
}

/// One head of one row of the batch.
#[derive(Clone, Copy)]
struct Head {
    row: usize,
    head: usize,
    /// Position among all heads of all rows.
    index: usize,
}

impl Head {
    /// This head's part of an output with `len` elements for each.
    ///
    /// # Safety
    /// As for [`SharedOut::slice`].
    unsafe fn memory<'b>(&self, out: &SharedOut, len: usize) -> Slots<'b> {
        // SAFETY: by the caller's promise.
        unsafe { out.slice(self.index * len, len) }
    }
}

/// The steps `start..start + len` of a row, which one chunk covers.
#[derive(Clone, Copy)]
struct Piece {
    start: usize,
    len: usize,
    /// Whether the memory is reset before it.
    reset: bool,
}

impl<'a> Problem<'a> {
    fn new(shape: Shape, inputs: Inputs<'a>) -> Self {
        let Inputs { heads, qkv, gates, start } = inputs;
        assert!(heads > 0 && shape.width.is_multiple_of(heads), "{heads} heads do not divide a width of {}", shape.width);
        let (width, all) = (shape.width / heads, elements([shape.batch, heads]));
        qkv.iter().for_each(|x| expect_len("q, k or v", x, shape.elements()));
        expect_len("gates", gates, elements([shape.batch, shape.seq_len, 2, heads]));
        start.c0.inspect(|c0| expect_len("c0", c0, elements([all, width, width])));
        start.n0.inspect(|n0| expect_len("n0", n0, elements([all, width])));
        start.m0.inspect(|m0| expect_len("m0", m0, all));
        start.segments.expect_fits(shape.batch, shape.seq_len);
        let scale = 1.0 / sqrt(width.max(1) as f32);
        Self { level: Level::current(), shape, heads, width, scale, qkv, gates, start }
    }

    /// Runs `work` for every head of every row; each task has a worker of its own.
    fn for_each_head<W>(&self, worker: impl Fn(&Self) -> W + Sync + Send, work: impl Fn(&mut W, Head) + Sync + Send) {
        /// Tasks per thread: rows may have different lengths.
        const TASKS: usize = 4;
        let all = self.shape.batch * self.heads;
        let n = all.min(TASKS * grid::threads());
        grid::for_each(n, |i| {
            let mut worker = worker(self);
            for index in grid::piece(all, n, i) {
                work(&mut worker, Head { row: index / self.heads, head: index % self.heads, index });
            }
        });
    }

    /// The pieces of a row, in order.
    fn pieces(&self, row: usize) -> Vec<Piece> {
        let length = self.start.segments.length(row, self.shape.seq_len);
        let codes = self.start.segments.row(row, self.shape.seq_len);
        let mut pieces: Vec<Piece> = Vec::new();
        for t in 0..length {
            let reset = codes.is_some_and(|codes| codes[t] == RESET);
            match pieces.last_mut() {
                Some(piece) if !reset && piece.len < CHUNK => piece.len += 1,
                _ => pieces.push(Piece { start: t, len: 1, reset }),
            }
        }
        pieces
    }

    /// Where the channels of `head` at step `t` begin in a tensor `[B, T, D]`.
    fn at(&self, head: Head, t: usize) -> usize {
        (head.row * self.shape.seq_len + t) * self.shape.width + head.head * self.width
    }

    /// Where the input gate of `head` at step `t` is; the forget gate follows NH elements later.
    fn gate_at(&self, head: Head, t: usize) -> usize {
        (head.row * self.shape.seq_len + t) * 2 * self.heads + head.head
    }

    /// Queries, keys and values from the first step of `piece` on.
    fn rows(&self, head: Head, piece: Piece) -> [&'a [f32]; 3] {
        let at = self.at(head, piece.start);
        self.qkv.map(|x| &x[at..])
    }

    /// Writes 0 to the head's channels of every padded step.
    fn clear_padding(&self, head: Head, out: &SharedOut) {
        for t in self.start.segments.length(head.row, self.shape.seq_len)..self.shape.seq_len {
            // SAFETY: this head's channels alone.
            unsafe { out.slice(self.at(head, t), self.width) }.fill(core::mem::MaybeUninit::new(0.0));
        }
    }
}
