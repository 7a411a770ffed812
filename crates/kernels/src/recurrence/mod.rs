//! The driver of every linear recurrence h_t = a_t h_{t−1} + b_t; a [`Cell`] makes a_t and b_t from its inputs.
//!
//! Per channel, in simple words:
//!
//! ```text
//! forward:   h = h0;     for t in 0..T        { h = a[t] h + b[t]; out[t] = h }
//! backward:  G = d_last; for t in (0..T).rev  { G += d_h[t]; write gradients from (inputs, h[t-1], G); G = a[t] G }
//! ```
//!
//! Departures, and what they buy:
//! 1. Rows (and, when these are few, blocks of channels) are tasks for threads; vectors of channels advance together through time.
//! 2. Runs between resets are dense stretches without a branch per step ([`steps`]).
//! 3. Few rows and many steps: time is cut into chunks too ([`plan`]). A task first reads its chunk to learn what it does to a state
//!    (h ↦ p h + l), waits for the state that enters, hands the one that leaves to the next chunk, and then runs the recurrence itself;
//!    by then the chunk is in the second-level cache, so memory is read once. Meanwhile it asks for its next chunk's memory, so that
//!    reading and writing overlap. Chunk borders depend on shape and thread count only ([`handover`]).
//! 4. Memory is asked for a few rows before it is read: rows of several tensors are more streams than the hardware follows (up to twice
//!    the speed). Outputs that do not fit the caches are stored past them.
//! 5. The state that leaves a chunk is h + (l − q h), q = 1 − p summed from the losses, where p is close to 1: p alone would round away
//!    what slow gates forget.

mod backward;
pub(crate) mod cell;
mod forward;
mod handover;
mod passes;
mod plan;
mod steps;
mod sums;

pub(crate) use backward::{ColumnOut, Gradients, Upstream, backward, columns_out};
pub(crate) use forward::forward;

use crate::segments::RESET;
use crate::shape::{Shape, Start, expect_len};
use alloc::{vec, vec::Vec};
use cell::Cell;
use core::ops::Range;
use passes::Summary;
use plan::Block;
use steps::{Feed, LANES, Source};

/// Outputs from this size on are stored past the caches.
const STREAM_BYTES: usize = 8 << 20;
/// Memory is asked for this many bytes of a row's block ahead.
const AHEAD_BYTES: usize = 8192;

/// One input of every step and channel: `data` begins at the first one, steps are `stride` floats apart.
#[derive(Clone, Copy)]
pub(crate) struct Column<'a> {
    pub data: &'a [f32],
    pub stride: usize,
}

/// The columns of `preact` `[B, T, N·E]`.
pub(crate) fn columns<const N: usize>(preact: &[f32], width: usize) -> [Column<'_>; N] {
    core::array::from_fn(|j| Column { data: preact.get(j * width..).unwrap_or(&[]), stride: N * width })
}

/// In place of a column, for an input that is its bias alone: `zeros` has one for every channel.
pub(crate) fn bias_alone(zeros: &[f32]) -> Column<'_> {
    Column { data: zeros, stride: 0 }
}

/// A recurrence to run: sizes, the cell and what it reads.
pub(crate) struct Problem<'a, C, const N: usize> {
    pub shape: Shape,
    pub cell: C,
    pub x: [Column<'a>; N],
    /// `[N·E]`, for cells that take one.
    pub bias: Option<&'a [f32]>,
    pub start: Start<'a>,
}

impl<C, const N: usize> Problem<'_, C, N> {
    /// Checks the lengths of the start and the bias.
    fn expect_fits(&self) {
        self.start.expect_fits(self.shape);
        self.bias.inspect(|bias| expect_len("bias", bias, N * self.shape.width));
    }
}

/// What tasks share besides the problem.
struct Prepared<'a, C, const N: usize> {
    problem: &'a Problem<'a, C, N>,
    /// Real steps of every row.
    lengths: Vec<usize>,
    /// 0 for every channel of every input.
    zeros: Vec<f32>,
}

impl<'a, C: Cell<N>, const N: usize> Prepared<'a, C, N> {
    fn new(problem: &'a Problem<'a, C, N>) -> Self {
        let Shape { batch, seq_len, width } = problem.shape;
        for column in &problem.x {
            let needed = if problem.shape.elements() == 0 { 0 } else { (batch * seq_len - 1) * column.stride + width };
            assert!(column.data.len() >= needed, "an input of the recurrence ends before its last row");
        }
        let lengths = (0..batch).map(|b| problem.start.segments.length(b, seq_len)).collect();
        Self { problem, lengths, zeros: vec![0.0; N * width] }
    }

    /// Rows between `block` and `next`, so that this one's loop can ask for the other's memory. Without a next block, the rows that the
    /// loop itself needs a little later; these lie in the `direction` of time.
    fn ahead(&self, block: &Block, next: Option<&Block>, direction: isize) -> isize {
        let row = |block: &Block| (block.b * self.problem.shape.seq_len + block.steps.start) as isize;
        match next {
            Some(next) => row(next) - row(block),
            None => direction * (1 + (AHEAD_BYTES / size_of::<f32>() / block.channels.len()) as isize),
        }
    }

    /// The steps of a block that are real.
    fn real(&self, block: &Block) -> Range<usize> {
        let end = self.lengths[block.b];
        block.steps.start.min(end)..block.steps.end.min(end)
    }

    /// The inputs from step `t` on, asking for what stands `ahead` rows further.
    fn feed(&self, block: &Block, t: usize, ahead: isize) -> Feed<C, N> {
        let Shape { seq_len, width, .. } = self.problem.shape;
        let c = block.channels.start;
        let bias = self.problem.bias.unwrap_or(&self.zeros);
        Feed {
            cell: self.problem.cell,
            x: self.problem.x.map(|x| Source { first: x.data[(block.b * seq_len + t) * x.stride + c..].as_ptr(), stride: x.stride }),
            bias: core::array::from_fn(|j| bias[j * width + c..].as_ptr()),
            width: block.channels.len(),
            ahead,
        }
    }

    /// Rows of `[B, T, E]` data from step `t` on; rows of zeros for `None`.
    fn rows(&self, data: Option<&[f32]>, block: &Block, t: usize) -> Source {
        let Shape { seq_len, width, .. } = self.problem.shape;
        match data {
            Some(data) => Source { first: data[(block.b * seq_len + t) * width + block.channels.start..].as_ptr(), stride: width },
            None => Source { first: self.zeros.as_ptr(), stride: 0 },
        }
    }

    /// The block's channels of the carried state.
    fn h0(&self, block: &Block) -> &[f32] {
        let from = block.b * self.problem.shape.width;
        let h0 = self.problem.start.h0.map_or(&self.zeros[..self.problem.shape.width], |h0| &h0[from..from + self.problem.shape.width]);
        &h0[block.channels.clone()]
    }

    /// The block's channels of the state that resets restore.
    fn init(&self, block: &Block) -> &[f32] {
        &self.problem.start.init.unwrap_or(&self.zeros)[block.channels.clone()]
    }

    fn is_reset(&self, block: &Block, t: usize) -> bool {
        self.problem.start.segments.row(block.b, self.problem.shape.seq_len).is_some_and(|codes| codes[t] == RESET)
    }

    /// The first reset in `steps`, else their end.
    fn next_reset(&self, block: &Block, steps: Range<usize>) -> usize {
        let codes = self.problem.start.segments.row(block.b, self.problem.shape.seq_len);
        let found = codes.and_then(|codes| codes[steps.clone()].iter().position(|&c| c == RESET));
        found.map_or(steps.end, |at| steps.start + at)
    }

    /// The last reset in `steps`, if there is one.
    fn last_reset(&self, block: &Block, steps: Range<usize>) -> Option<usize> {
        let codes = self.problem.start.segments.row(block.b, self.problem.shape.seq_len)?;
        codes[steps.clone()].iter().rposition(|&c| c == RESET).map(|at| steps.start + at)
    }
}

/// Buffers for what a chunk does to a state: h ↦ p h + local.
struct Effect {
    local: Vec<f32>,
    p: Vec<f32>,
    q: Vec<f32>,
}

impl Effect {
    /// Nothing at all.
    fn identity(width: usize) -> Self {
        let width = width.next_multiple_of(LANES);
        Self { local: vec![0.0; width], p: vec![1.0; width], q: vec![0.0; width] }
    }

    fn summary(&mut self) -> Summary {
        Summary { local: self.local.as_mut_ptr(), p: self.p.as_mut_ptr(), q: self.q.as_mut_ptr() }
    }

    /// Forgets what enters: only `local` counts.
    fn cut(&mut self) {
        self.p.fill(0.0);
        self.q.fill(1.0);
    }

    /// The state that leaves when `state` enters.
    fn apply(&self, state: &[f32]) -> Vec<f32> {
        let leave = |(i, &h): (usize, &f32)| {
            let (local, p, q) = (self.local[i], self.p[i], self.q[i]);
            if h == 0.0 || q == 1.0 && p == 0.0 {
                local
            } else if q.abs() < 0.5 {
                h + (local - q * h)
            } else {
                p * h + local
            }
        };
        state.iter().enumerate().map(leave).collect()
    }
}

/// A buffer that begins with `state` and has room for whole vectors.
fn padded(state: &[f32]) -> Vec<f32> {
    let mut buffer = vec![0.0; state.len().next_multiple_of(LANES)];
    buffer[..state.len()].copy_from_slice(state);
    buffer
}

/// Whether rows that begin at address `start` and are `stride` floats apart allow stores past the caches.
fn aligned(start: usize, stride: usize) -> bool {
    start.is_multiple_of(LANES * size_of::<f32>()) && stride.is_multiple_of(LANES)
}
