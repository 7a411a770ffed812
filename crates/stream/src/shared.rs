//! Memory that several workers write to.

use core::ops::Range;

/// A matrix that the workers write together, each its own columns.
#[derive(Debug)]
pub(crate) struct Shared<'a, T = f32> {
    start: *mut T,
    len: usize,
    stride: usize,
    _values: core::marker::PhantomData<&'a mut [T]>,
}

// For elements of any type, which a derive would ask to be `Clone` as well.
impl<T> Clone for Shared<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Shared<'_, T> {}

// SAFETY: access needs unsafe code, whose author promises that nobody else uses the part, or that nobody writes what several read.
unsafe impl<T: Send + Sync> Send for Shared<'_, T> {}
// SAFETY: every method that reaches an element is unsafe and has that promise in its contract.
unsafe impl<T: Send + Sync> Sync for Shared<'_, T> {}

impl<'a, T> Shared<'a, T> {
    /// `values` as rows of `stride` elements.
    pub(crate) fn new(values: &'a mut [T], stride: usize) -> Self {
        Self { start: values.as_mut_ptr(), len: values.len(), stride, _values: core::marker::PhantomData }
    }

    /// The elements `columns` of row `row`.
    ///
    /// # Safety
    /// No other slice that overlaps them may be in use.
    #[inline(always)]
    #[expect(clippy::mut_from_ref, reason = "parts of different members do not overlap")]
    pub(crate) unsafe fn part(&self, row: usize, columns: Range<usize>) -> &mut [T] {
        // Sums that overflow saturate beyond the end of every matrix.
        let at = row.saturating_mul(self.stride).saturating_add(columns.start);
        assert!(columns.start <= columns.end && at.saturating_add(columns.len()) <= self.len, "a part outside its matrix");
        // SAFETY: in range by the assertion, not aliased by the caller's promise.
        unsafe { core::slice::from_raw_parts_mut(self.start.add(at), columns.len()) }
    }

    /// The element in column `column` of row `row`, for reading by any number of members.
    ///
    /// # Safety
    /// Nobody may write it meanwhile.
    pub(crate) unsafe fn get(&self, row: usize, column: usize) -> &T {
        let at = row.saturating_mul(self.stride).saturating_add(column);
        assert!(at < self.len, "an element outside its matrix");
        // SAFETY: in range by the assertion, not written by the caller's promise.
        unsafe { &*self.start.add(at) }
    }
}
