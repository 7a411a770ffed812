//! The words every recurrence kernel shares: sizes, where a row starts from, and the choices between formulas.

use crate::segments::Segments;
use core::mem::MaybeUninit;

/// An output slice. Kernels write every element, so it may be uninitialised.
pub type Out<'a> = &'a mut [MaybeUninit<f32>];

/// Sizes of a batch of sequences `[B, T, E]`, row-major.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// `B`, number of sequences.
    pub batch: usize,
    /// `T`, steps per sequence.
    pub seq_len: usize,
    /// `E`, channels of the state.
    pub width: usize,
}

impl Shape {
    /// `B · T · E`, elements of a sequence tensor.
    pub fn elements(&self) -> usize {
        self.batch * self.seq_len * self.width
    }

    /// `B · E`, elements of a state.
    pub fn states(&self) -> usize {
        self.batch * self.width
    }
}

/// Where the rows of a batch start from.
#[derive(Debug, Clone, Copy, Default)]
pub struct Start<'a, T = f32> {
    /// `h_0`, the carried state `[B, E]`; `None` is 0.
    pub h0: Option<&'a [T]>,
    /// The state `[E]` that a reset restores; `None` is 0.
    pub init: Option<&'a [T]>,
    /// Which steps are real and where the state is reset.
    pub segments: Segments<'a>,
}

impl<T> Start<'_, T> {
    /// Checks the lengths against `shape`.
    ///
    /// # Panics
    /// When a length does not fit.
    pub fn expect_fits(&self, shape: Shape) {
        if let Some(h0) = self.h0 {
            expect_len("h0", h0, shape.states());
        }
        if let Some(init) = self.init {
            expect_len("init", init, shape.width);
        }
        if let Some(codes) = self.segments.codes() {
            expect_len("segments", codes, shape.batch * shape.seq_len);
        }
    }
}

/// How a candidate state h̃ follows from its pre-activation v.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Candidate {
    /// h̃ = g(v): v + ½ for v ≥ 0, σ(v) below. Continuous and positive (the paper's log version).
    #[default]
    Positive,
    /// h̃ = v (the paper's vanilla version).
    Identity,
    /// h̃ = tanh(v) (the paper's intermediate step).
    Tanh,
}

/// How the forget and input gates of minLSTM are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Gates {
    /// f' = f / (f + i), i' = i / (f + i): the state is a mixture of the candidates.
    #[default]
    Normalized,
    /// f and i as they are: the state may grow with T.
    Independent,
}

/// Asserts that `slice`, called `name` by the caller, has `expected` elements.
///
/// # Panics
/// When it has not.
#[track_caller]
pub fn expect_len<T>(name: &str, slice: &[T], expected: usize) {
    assert!(slice.len() == expected, "{name}: expected {expected} elements, found {}; check it against the shape", slice.len());
}
