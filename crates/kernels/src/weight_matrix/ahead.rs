//! Weights asked for before they are needed.

use super::layout::Line;
use crate::simd;

/// Most words between two asks.
pub(super) const RUN: usize = 8;
/// How far ahead a tile asks for the lines of its own panel.
pub(super) const NEAR: usize = 64;

/// Lines that will be read soon, asked for a few at a time.
#[derive(Clone, Copy)]
pub(super) struct Ahead {
    at: *const Line,
    /// How many lines at a time.
    each: usize,
}

impl Ahead {
    /// Nothing is asked for.
    pub const NONE: Self = Self { at: core::ptr::null(), each: 0 };

    /// Those from line `at` on, which need not exist, `each` at a time.
    pub fn new(lines: &[Line], at: usize, each: usize) -> Self {
        Self { at: lines.as_ptr().wrapping_add(at), each }
    }

    /// What is left after `asks` asks.
    pub fn after(self, asks: usize) -> Self {
        Self { at: self.at.wrapping_add(self.each * asks), ..self }
    }

    /// Asks for the next few.
    #[inline(always)]
    pub fn ask(&mut self) {
        for _ in 0..self.each {
            simd::prefetch_far(self.at.cast());
            self.at = self.at.wrapping_add(1);
        }
    }
}
