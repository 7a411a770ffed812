//! A recurrence to run, and what its tasks share.

use super::Inputs;
use super::formulas::Formulas;
use super::passes::Summary;
use super::plan::Block;
use super::stretch::{Feed, LANES, Source};
use crate::segments::RESET;
use crate::shape::{Shape, elements, expect_len};
use crate::start::Start;
use alloc::{vec, vec::Vec};
use core::ops::Range;

/// Outputs of at least this size bypass the caches.
pub const STREAM_BYTES: usize = 8 << 20;
/// Memory is prefetched this many bytes ahead, counting only the block's part of each row.
const PREFETCH_BYTES: usize = 8192;

/// One input of every step and channel: `data` begins at the first one, steps are `stride` floats apart.
#[derive(Clone, Copy)]
struct Column<'a> {
    data: &'a [f32],
    stride: usize,
}

/// A recurrence to run: sizes, the cell's formulas and what they read.
pub struct Problem<'a, F, const N: usize> {
    pub shape: Shape,
    pub formulas: F,
    x: [Column<'a>; N],
    /// `[parts·E]`
    bias: Option<&'a [f32]>,
    pub start: Start<'a>,
}

impl<'a, F: Formulas<N>, const N: usize> Problem<'a, F, N> {
    /// # Panics
    /// When a length does not fit `shape`, or there is a bias that the cell does not take.
    pub fn new(shape: Shape, formulas: F, inputs: Inputs<'a>, start: Start<'a>) -> Self {
        let Inputs { preact, bias, extra } = inputs;
        expect_len("preact", preact, F::PARTS * shape.elements());
        expect_len("extra", extra, formulas.extra_len(shape));
        expect_bias("bias", bias, formulas, shape);
        start.expect_fits(shape);
        let part = |j| Column { data: preact.get(j * shape.width..).unwrap_or(&[]), stride: F::PARTS * shape.width };
        let extra = Column { data: extra, stride: if F::SHARED { 0 } else { shape.width } };
        Self { shape, formulas, x: core::array::from_fn(|j| if j < F::PARTS { part(j) } else { extra }), bias, start }
    }
}

/// Checks the length of a bias, or of its gradient.
pub fn expect_bias<T, F: Formulas<N>, const N: usize>(name: &str, bias: Option<&[T]>, _formulas: F, shape: Shape) {
    if let Some(bias) = bias {
        assert!(F::BIASED, "{name}: this recurrence takes none; give none");
        expect_len(name, bias, elements([F::PARTS, shape.width]));
    }
}

/// What tasks share besides the problem.
pub struct Prepared<'a, F, const N: usize> {
    pub problem: &'a Problem<'a, F, N>,
    /// Real steps of every row.
    pub lengths: Vec<usize>,
    /// 0 for every channel of every input.
    pub zeros: Vec<f32>,
}

impl<'a, F: Formulas<N>, const N: usize> Prepared<'a, F, N> {
    pub fn new(problem: &'a Problem<'a, F, N>) -> Self {
        let Shape { batch, seq_len, width } = problem.shape;
        let lengths = (0..batch).map(|b| problem.start.segments.length(b, seq_len)).collect();
        Self { problem, lengths, zeros: vec![0.0; N * width] }
    }

    /// The steps of a block that are real.
    pub fn real(&self, block: &Block) -> Range<usize> {
        let end = self.lengths[block.b];
        block.steps.start.min(end)..block.steps.end.min(end)
    }

    /// The inputs from step `t` on, prefetching what will be needed a little later in the `direction` of time.
    pub fn feed(&self, block: &Block, t: usize, direction: isize) -> Feed<F, N> {
        let Shape { seq_len, width, .. } = self.problem.shape;
        let c = block.channels.start;
        let bias = self.problem.bias.unwrap_or(&self.zeros);
        Feed {
            formulas: self.problem.formulas,
            x: self.problem.x.map(|x| Source { first: x.data[(block.b * seq_len + t) * x.stride + c..].as_ptr(), stride: x.stride }),
            bias: core::array::from_fn(|j| if j < F::PARTS { bias[j * width + c..].as_ptr() } else { core::ptr::null() }),
            width: block.channels.len(),
            distance: direction * (1 + (PREFETCH_BYTES / size_of::<f32>() / block.channels.len()) as isize),
        }
    }

    /// Rows of `[B, T, E]` data from step `t` on; rows of zeros for `None`.
    pub fn rows(&self, data: Option<&[f32]>, block: &Block, t: usize) -> Source {
        let Shape { seq_len, width, .. } = self.problem.shape;
        match data {
            Some(data) => Source { first: data[(block.b * seq_len + t) * width + block.channels.start..].as_ptr(), stride: width },
            None => Source { first: self.zeros.as_ptr(), stride: 0 },
        }
    }

    /// The block's channels of the carried state.
    pub fn h0(&self, block: &Block) -> &[f32] {
        let from = block.b * self.problem.shape.width;
        let h0 = self.problem.start.h0.map_or(&self.zeros[..self.problem.shape.width], |h0| &h0[from..from + self.problem.shape.width]);
        &h0[block.channels.clone()]
    }

    /// The block's channels of the state that resets restore.
    pub fn init(&self, block: &Block) -> &[f32] {
        &self.problem.start.init.unwrap_or(&self.zeros)[block.channels.clone()]
    }

    pub fn is_reset(&self, block: &Block, t: usize) -> bool {
        self.problem.start.segments.row(block.b, self.problem.shape.seq_len).is_some_and(|codes| codes[t] == RESET)
    }

    /// The first reset in `steps`, else their end.
    pub fn next_reset(&self, block: &Block, steps: Range<usize>) -> usize {
        let codes = self.problem.start.segments.row(block.b, self.problem.shape.seq_len);
        let found = codes.and_then(|codes| codes[steps.clone()].iter().position(|&c| c == RESET));
        found.map_or(steps.end, |at| steps.start + at)
    }

    /// The last reset in `steps`, if there is one.
    pub fn last_reset(&self, block: &Block, steps: Range<usize>) -> Option<usize> {
        let codes = self.problem.start.segments.row(block.b, self.problem.shape.seq_len)?;
        codes[steps.clone()].iter().rposition(|&c| c == RESET).map(|at| steps.start + at)
    }
}

/// Buffers for what a chunk does to a state: h ↦ p h + local.
pub struct Effect {
    pub local: Vec<f32>,
    p: Vec<f32>,
    q: Vec<f32>,
}

impl Effect {
    /// Leaves the state as it is.
    pub fn identity(width: usize) -> Self {
        let width = width.next_multiple_of(LANES);
        Self { local: vec![0.0; width], p: vec![1.0; width], q: vec![0.0; width] }
    }

    pub fn summary(&mut self) -> Summary {
        Summary { local: self.local.as_mut_ptr(), p: self.p.as_mut_ptr(), q: self.q.as_mut_ptr() }
    }

    /// Forgets what enters: only `local` counts.
    pub fn cut(&mut self) {
        self.p.fill(0.0);
        self.q.fill(1.0);
    }

    /// The state that leaves when `state` enters.
    pub fn apply(&self, state: &[f32]) -> Vec<f32> {
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

/// What the first pass over a chunk finds out.
pub struct Found {
    /// What it does to a state, or to a gradient.
    pub effect: Effect,
    /// The steps for which the thread's room has something.
    pub kept: Range<usize>,
}

/// A buffer that begins with `state` and has room for whole vectors.
pub fn padded(state: &[f32]) -> Vec<f32> {
    let mut buffer = vec![0.0; state.len().next_multiple_of(LANES)];
    buffer[..state.len()].copy_from_slice(state);
    buffer
}

/// Whether rows that begin at address `start` and are `stride` floats apart allow stores that bypass the caches.
pub fn aligned(start: usize, stride: usize) -> bool {
    start.is_multiple_of(LANES * size_of::<f32>()) && stride.is_multiple_of(LANES)
}
