//! Splits work into a fixed grid and spreads it over the ambient thread pool.
//!
//! The pieces depend only on the shape and the number of threads, never on timing; sums over pieces are combined in index order. So the
//! same shape on the same number of threads gives the same bits.

use crate::out::Out;
use core::mem::MaybeUninit;

/// Threads of the ambient pool (1 without `std`).
pub fn threads() -> usize {
    #[cfg(feature = "std")]
    return rayon::current_num_threads();
    #[cfg(not(feature = "std"))]
    1
}

/// Runs `task(0)`, …, `task(n − 1)`, each once, on the ambient pool (in order without `std` or with one thread).
pub fn for_each(n: usize, task: impl Fn(usize) + Sync + Send) {
    #[cfg(feature = "std")]
    if n > 1 && crate::schedule::is_recording() {
        return crate::schedule::run(n, task);
    }
    #[cfg(feature = "std")]
    if n > 1 && threads() > 1 {
        use rayon::prelude::*;
        (0..n).into_par_iter().with_max_len(1).for_each(task);
        return;
    }
    (0..n).for_each(task);
}

/// An output that several tasks write, each its own elements.
#[derive(Clone, Copy)]
pub(crate) struct SharedOut<T = f32> {
    start: *mut MaybeUninit<T>,
    len: usize,
}

// SAFETY: access needs unsafe code, whose author promises disjoint ranges.
unsafe impl<T: Send> Send for SharedOut<T> {}
// SAFETY: what is shared is a place and a length; to write there needs unsafe code, whose author promises disjoint ranges.
unsafe impl<T: Send> Sync for SharedOut<T> {}

impl SharedOut {
    /// Shares `out` for the duration of a [`for_each`].
    pub fn new<'a>(out: impl Into<Out<'a>>) -> Self {
        Self::of(out.into().slots())
    }
}

impl<T> SharedOut<T> {
    /// The same for elements of any type.
    pub fn of(slots: &mut [MaybeUninit<T>]) -> Self {
        Self { start: slots.as_mut_ptr(), len: slots.len() }
    }

    /// The elements `from..from + len`.
    ///
    /// # Panics
    /// When they go past the end.
    ///
    /// # Safety
    /// No other slice that overlaps them may be alive, and the shared output must outlive the result. Nothing uninitialised may be written
    /// there.
    #[inline(always)]
    pub unsafe fn slice<'a>(&self, from: usize, len: usize) -> &'a mut [MaybeUninit<T>] {
        assert!(from <= self.len && len <= self.len - from, "a part of a shared output: {len} elements from {from} of {}", self.len);
        // SAFETY: in range by the assertion, disjoint by the caller's promise.
        unsafe { core::slice::from_raw_parts_mut(self.start.add(from), len) }
    }

    /// The address of element `at`, at most one past the end.
    #[inline(always)]
    pub(crate) fn pointer(&self, at: usize) -> *mut T {
        assert!(at <= self.len, "a place in a shared output: {at} of {}", self.len);
        self.start.wrapping_add(at).cast()
    }
}

/// Rows `start..end` of piece `i` when `rows` rows are split into `pieces` nearly equal pieces.
///
/// # Panics
/// When there is no piece `i`.
pub fn piece(rows: usize, pieces: usize, i: usize) -> core::ops::Range<usize> {
    assert!(i < pieces, "piece {i} of {pieces}");
    if pieces == 1 {
        return 0..rows;
    }
    // ⌊rows · i / pieces⌋ without the product, which may not fit.
    let (each, rest) = (rows / pieces, rows % pieces);
    let border = |i: usize| each * i + (rest as u128 * i as u128 / pieces as u128) as usize;
    border(i)..border(i + 1)
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_every_row_once() {
        for rows in [0, 1, 7, 64, 1000] {
            for pieces in [1, 2, 3, 16] {
                let covered: Vec<usize> = (0..pieces).flat_map(|i| piece(rows, pieces, i)).collect();
                assert_eq!(covered, (0..rows).collect::<Vec<_>>());
            }
        }
    }
}
