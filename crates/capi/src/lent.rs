//! What a caller lends for a step: the rows that it is of, what they read, and the place for results.

use crate::failure::Result;
use crate::pointers::{self, expect_apart};

/// The checked buffers of a call: inputs of type `In`, and the place for results of type `Out`.
pub(crate) struct Lent<'a, In, Out> {
    /// The chosen rows; none stand for all.
    pub rows: Option<&'a [usize]>,
    pub inputs: &'a [In],
    pub results: &'a mut [Out],
}

impl<In, Out> Lent<'_, In, Out> {
    /// The buffers of a call, whose results lie apart from what is read; `name` and `other` are those of inputs and results in messages.
    ///
    /// # Safety
    /// The pointers are null or have the stated number of elements.
    pub unsafe fn new(
        [name, other]: [&str; 2],
        rows: (*const usize, usize),
        inputs: (*const In, usize),
        results: (*mut Out, usize),
    ) -> Result<Self> {
        expect_apart([name, other], inputs, results)?;
        expect_apart(["rows", other], rows, results)?;
        let rows = match rows {
            (rows, 0) if rows.is_null() => None,
            // SAFETY: the caller's promise.
            (rows, n) => Some(unsafe { pointers::read("rows", rows, n) }?),
        };
        // SAFETY: the caller's promise.
        let inputs = unsafe { pointers::read(name, inputs.0, inputs.1) }?;
        // SAFETY: the caller's promise, and they lie apart.
        let results = unsafe { pointers::write(other, results.0, results.1) }?;
        Ok(Self { rows, inputs, results })
    }

    /// The same for a call without a list of rows.
    ///
    /// # Safety
    /// As [`Lent::new`].
    pub unsafe fn without_rows(names: [&str; 2], inputs: (*const In, usize), results: (*mut Out, usize)) -> Result<Self> {
        // SAFETY: the caller's promise; of rows there are none.
        unsafe { Self::new(names, (std::ptr::null(), 0), inputs, results) }
    }
}
