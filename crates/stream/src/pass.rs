//! What the parts of a model know of one pass over tokens.

use minrnn_kernels::simd::Level;
use minrnn_kernels::weight_matrix::Scratch;

use crate::linear::Shared;
use crate::workers::Workers;

/// Tokens of one session in a pass: `len` rows from row `first` on, for the session in row `session` of the state.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) session: usize,
    pub(crate) first: usize,
    pub(crate) len: usize,
}

/// A pass over N rows, one for each token; the tokens of a session follow each other.
pub(crate) struct Pass<'a> {
    pub(crate) workers: &'a Workers<'a>,
    pub(crate) level: Level,
    pub(crate) spans: &'a [Span],
    /// N.
    pub(crate) rows: usize,
    /// Memory of products, one for each piece.
    pub(crate) scratches: Shared<'a, Scratch>,
}

/// The numbers that one part of the model keeps for each session: `len` from `first` on in every row of the state.
#[derive(Clone, Copy)]
pub(crate) struct Memory<'a> {
    state: Shared<'a>,
    first: usize,
    len: usize,
}

impl<'a> Memory<'a> {
    pub(crate) fn new(state: Shared<'a>, first: usize, len: usize) -> Self {
        Self { state, first, len }
    }

    /// Elements `from..to` of what is kept for `session`.
    ///
    /// # Safety
    /// No other slice that overlaps them may be in use.
    #[inline(always)]
    #[expect(clippy::mut_from_ref, reason = "parts of different members do not overlap")]
    pub(crate) unsafe fn part(&self, session: usize, from: usize, to: usize) -> &mut [f32] {
        assert!(to <= self.len, "a part outside its memory");
        // SAFETY: the caller's promise.
        unsafe { self.state.part(session, self.first + from..self.first + to) }
    }
}
