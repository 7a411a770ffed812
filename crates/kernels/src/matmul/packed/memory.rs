//! Memory for packed operands, kept by each thread, and prefetching.

use super::Matrix;
use crate::simd;
use core::cell::Cell;
use core::hint::black_box;
use core::ops::Range;
use std::vec::Vec;

/// Units, or f32, in a cache line.
const LINE: usize = 16;

/// A cache line of packed units.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(#[allow(dead_code, reason = "read through pointers")] [i32; LINE]);

std::thread_local! {
    static LEFT: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
    static RIGHT: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
    static PARTIAL: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
}

/// Runs `work` with this thread's memory for `len` units of a left side. A product inside `work` gets memory of its own.
pub(super) fn with_left<R>(len: usize, work: impl FnOnce(*mut i32) -> R) -> R {
    with_kept(&LEFT, len, work)
}

/// [`with_left`] for a right side.
pub(super) fn with_right<R>(len: usize, work: impl FnOnce(*mut i32) -> R) -> R {
    with_kept(&RIGHT, len, work)
}

/// [`with_left`] for `len` numbers of partial results.
pub(super) fn with_partial<R>(len: usize, work: impl FnOnce(*mut f32) -> R) -> R {
    with_kept(&PARTIAL, len, |lines| work(lines.cast()))
}

fn with_kept<R>(kept: &'static std::thread::LocalKey<Cell<Vec<Line>>>, len: usize, work: impl FnOnce(*mut i32) -> R) -> R {
    let mut lines = kept.take();
    if lines.len() < len.div_ceil(LINE) {
        lines = alloc::vec![Line([0; LINE]); len.div_ceil(LINE)];
    }
    let result = work(lines.as_mut_ptr().cast());
    kept.set(lines);
    result
}

/// A pointer that tasks share.
#[derive(Clone, Copy)]
pub(super) struct Address(pub *mut i32);

// SAFETY: its users write disjoint parts, or only read.
unsafe impl Send for Address {}
// SAFETY: threads that share it write disjoint parts, or only read.
unsafe impl Sync for Address {}

impl Address {
    /// The pointer (a method, so that closures capture the whole struct).
    pub(super) fn get(&self) -> *mut i32 {
        self.0
    }
}

/// Prefetches the cache lines of a part of a matrix that will be packed soon, a few at a time.
pub(super) struct Prefetcher {
    at: *const f32,
    /// From the end of a run of contiguous elements to the beginning of the next.
    skip: usize,
    /// Lines of each run, and those left of the current one.
    lines: usize,
    left: usize,
    runs: usize,
    at_once: usize,
}

impl Prefetcher {
    /// The part of `matrix` that will be packed, to be prefetched in `issues` calls of [`Prefetcher::issue`].
    pub(super) fn new(matrix: Matrix<'_>, rows: Range<usize>, columns: Range<usize>, issues: usize) -> Self {
        let at = matrix.data.as_ptr().wrapping_add(rows.start * matrix.row_stride + columns.start * matrix.column_stride);
        let (stride, runs, len) = match matrix.column_stride {
            1 => (matrix.row_stride, rows.len(), columns.len()),
            stride => (stride, columns.len(), rows.len()),
        };
        let lines = len.div_ceil(LINE);
        // Hidden from the compiler, which would otherwise move the division to every use, where registers are scarce.
        let at_once = black_box((lines * runs).div_ceil(issues.max(1)));
        Self { at, skip: stride.wrapping_sub(lines * LINE), lines, left: lines, runs: if len == 0 { 0 } else { runs }, at_once }
    }

    /// Prefetches the next few lines into the second-level cache.
    #[inline(always)]
    pub(super) fn issue(&mut self) {
        for _ in 0..self.at_once {
            if self.runs == 0 {
                return;
            }
            simd::prefetch_far(self.at);
            self.at = self.at.wrapping_add(LINE);
            self.left -= 1;
            if self.left == 0 {
                (self.left, self.runs, self.at) = (self.lines, self.runs - 1, self.at.wrapping_add(self.skip));
            }
        }
    }
}
