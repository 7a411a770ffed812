//! Weights prefetched before they are needed.

use super::layout::Line;
use crate::simd;

/// Most words between two issues.
pub(super) const RUN: usize = 8;
/// How many lines ahead of its reads a tile prefetches its own panel.
pub(super) const NEAR: usize = 64;

/// Prefetches lines that will be read soon, a few at a time.
#[derive(Clone, Copy)]
pub(super) struct Prefetcher {
    at: *const Line,
    /// How many lines at a time.
    each: usize,
}

impl Prefetcher {
    /// Prefetches nothing.
    pub const NONE: Self = Self { at: core::ptr::null(), each: 0 };

    /// The lines from line `at` on, which need not exist, `each` at a time.
    pub fn new(lines: &[Line], at: usize, each: usize) -> Self {
        Self { at: lines.as_ptr().wrapping_add(at), each }
    }

    /// What is left after `issues` issues.
    pub fn after(self, issues: usize) -> Self {
        Self { at: self.at.wrapping_add(self.each * issues), ..self }
    }

    /// Prefetches the next few lines.
    #[inline(always)]
    pub fn issue(&mut self) {
        for _ in 0..self.each {
            simd::prefetch_far(self.at.cast());
            self.at = self.at.wrapping_add(1);
        }
    }
}
