//! What the parts of a model know about one pass over tokens.

use minrnn_kernels::simd::Level;
use minrnn_kernels::weight_matrix::Scratch;

use crate::past::{Past, PastShape};
use crate::shared::Shared;
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

/// What all sessions keep: a row of numbers for each, and lists of past tokens.
#[derive(Clone, Copy)]
pub(crate) struct Sessions<'a> {
    /// `[sessions, row_len]`.
    pub(crate) values: Shared<'a>,
    /// `[sessions, blocks with a past]`.
    pub(crate) pasts: Shared<'a, Past>,
}

/// The numbers that one part of the model keeps for each session: `len` from `first` on in every row of the state; and its list of past tokens,
/// if it has one.
#[derive(Clone, Copy)]
pub(crate) struct Memory<'a> {
    sessions: Sessions<'a>,
    first: usize,
    len: usize,
    past: Option<(usize, PastShape)>,
}

impl<'a> Memory<'a> {
    pub(crate) fn new(sessions: Sessions<'a>, first: usize, len: usize) -> Self {
        Self { sessions, first, len, past: None }
    }

    /// The same with the list of past tokens in column `past.0`.
    pub(crate) fn with_past(self, past: Option<(usize, PastShape)>) -> Self {
        Self { past, ..self }
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
        unsafe { self.sessions.values.part(session, self.first + from..self.first + to) }
    }

    /// All that is kept for `session`.
    ///
    /// # Safety
    /// No other slice of it may be in use.
    #[inline(always)]
    #[expect(clippy::mut_from_ref, reason = "sessions of different members do not overlap")]
    pub(crate) unsafe fn whole(&self, session: usize) -> &mut [f32] {
        // SAFETY: the caller's promise.
        unsafe { self.part(session, 0, self.len) }
    }

    /// Most tokens before the current one that are seen.
    pub(crate) fn sight(&self) -> usize {
        self.past.map_or(0, |(_, shape)| shape.tokens)
    }

    /// Adds the tokens of every span to the past of its session, `values(row)` being the numbers kept of a row.
    ///
    /// # Safety
    /// Nothing else may use the pasts.
    pub(crate) unsafe fn remember<'x>(&self, pass: &Pass<'_>, values: impl Fn(usize) -> &'x [f32]) {
        let Some((column, shape)) = self.past else { return };
        for span in pass.spans {
            // SAFETY: the caller's promise.
            let past = &mut unsafe { self.sessions.pasts.part(span.session, column..column + 1) }[0];
            past.settle(&shape, span.len);
            (span.first..span.first + span.len).for_each(|row| past.push(values(row)));
        }
    }

    /// What is held of the tokens of `session`, `[held, width]`, the newest last.
    ///
    /// # Safety
    /// Nobody may write it meanwhile.
    pub(crate) unsafe fn past(&self, session: usize) -> &[f32] {
        let Some((column, _)) = self.past else { return &[] };
        // SAFETY: the caller's promise.
        unsafe { self.sessions.pasts.get(session, column) }.values()
    }
}
