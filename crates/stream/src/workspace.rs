//! Memory for the numbers passed between the layers.

use alloc::vec::Vec;
use core::fmt;

use minrnn_kernels::weight_matrix::Scratch;

use crate::pass::Span;
use crate::reads::{Input, Steps};

/// The scratch memory of a pass. It grows to the largest pass it has served and is then reused without allocating; one workspace serves any
/// number of models and sessions, one after another.
#[derive(Clone, Default)]
pub struct Workspace {
    /// The residual stream `[N, D]`.
    pub(crate) x: Vec<f32>,
    pub(crate) buffers: Buffers,
    /// Memory of products, one for each piece.
    pub(crate) scratches: Vec<Scratch>,
    pub(crate) spans: Vec<Span>,
    pub(crate) input: Input,
    /// N, the rows of all spans.
    pub(crate) rows: usize,
    /// Which rows of the pass lead to outputs, and to which row of them.
    pub(crate) wanted: Vec<(usize, usize)>,
    /// Most threads of a pass; 0: as many as the pool has.
    pub(crate) most_threads: usize,
}

/// Memory that the parts of a block use in turn.
#[derive(Debug, Clone, Default)]
pub(crate) struct Buffers {
    /// The inputs of a product, `[N, D]`.
    pub(crate) normed: Vec<f32>,
    /// Pieces of a product, `[N, widest product]`.
    pub(crate) product: Vec<f32>,
    /// Hidden values, `[N, max(E, d_ff)]`.
    pub(crate) hidden: Vec<f32>,
    /// Input sides, states and products of a recurrent product.
    pub(crate) recurrent: [Vec<f32>; 4],
    /// Input, gate and output of a mixer inside a wiring, `[N, W]`.
    pub(crate) wired: [Vec<f32>; 3],
}

impl fmt::Debug for Workspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workspace").field("bytes", &self.bytes()).field("most_threads", &self.most_threads).finish_non_exhaustive()
    }
}

impl Workspace {
    /// An empty workspace.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets passes use at most `threads` threads; 0, the default: as many as the ambient pool has. With 1 a pass stays on the calling
    /// thread, needs no pool and allocates nothing in a step.
    pub fn set_threads(&mut self, threads: usize) {
        self.most_threads = threads;
    }

    /// Bytes held, without decoded weights.
    pub fn bytes(&self) -> usize {
        let Buffers { normed, product, hidden, recurrent, wired } = &self.buffers;
        let floats: usize = [&self.x, normed, product, hidden].into_iter().chain(recurrent).chain(wired).map(Vec::capacity).sum();
        let lists = self.spans.capacity() * size_of::<Span>() + self.wanted.capacity() * size_of::<(usize, usize)>();
        let Input { tokens, values } = &self.input;
        (floats + values.capacity()) * size_of::<f32>() + lists + tokens.capacity() * size_of::<u32>()
    }

    /// Empties the lists for a new pass.
    pub(crate) fn begin(&mut self) {
        self.spans.clear();
        self.input.clear();
        self.rows = 0;
        self.wanted.clear();
    }

    /// Adds steps of a session that take `rows` rows of the residual stream.
    pub(crate) fn add(&mut self, session: usize, steps: Steps<'_>, rows: usize) {
        self.spans.push(Span { session, first: self.rows, len: rows });
        self.input.push(steps);
        self.rows += rows;
    }
}

/// The first `len` elements, which exist afterwards.
pub(crate) fn room(buffer: &mut Vec<f32>, len: usize) -> &mut [f32] {
    if buffer.len() < len {
        buffer.resize(len, 0.0);
    }
    &mut buffer[..len]
}
