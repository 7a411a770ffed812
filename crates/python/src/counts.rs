//! Whole numbers of Python that count something.

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::PyInt;

use crate::failure::Failure;

/// A count as `T`, which nothing negative or too large is.
pub(crate) fn count<'py, T: FromPyObjectOwned<'py>>(any: &Bound<'py, PyAny>) -> PyResult<T> {
    any.extract().map_err(|error: T::Error| {
        let error: PyErr = error.into();
        if !error.is_instance_of::<PyOverflowError>(any.py()) {
            return error;
        }
        // One of many thousand digits does not become text.
        let shown = any.cast::<PyInt>().ok().and_then(|number| number.str().ok());
        let found = shown.map_or_else(|| "another".to_owned(), |number| number.to_string());
        Failure::input(format!("expected a whole number from 0 to {}, found {found}", u64::MAX)).into()
    })
}
