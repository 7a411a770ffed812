//! The initial states of a batch's rows.

use crate::segments::Segments;
use crate::shape::{Shape, expect_len};

/// The initial states of a batch's rows.
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
        self.segments.expect_fits(shape.batch, shape.seq_len);
    }
}
