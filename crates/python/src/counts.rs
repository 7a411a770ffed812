//! Python integers that count something; each is read by a function with the name of its argument.

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyInt;

use crate::failure::{Failure, Mistake};

/// Makes the function that reads a count for each argument name.
macro_rules! counts {
    ($($name:ident),*) => {
        $(
            #[doc = concat!("The count `", stringify!($name), "` as `T`, which nothing negative or too large is.")]
            pub(crate) fn $name<'py, T: FromPyObjectOwned<'py>>(any: &Bound<'py, PyAny>) -> PyResult<T> {
                count(any, stringify!($name))
            }
        )*
    };
}

counts!(batch, threads, steps, layer, row, source_row, max_tokens, top_k, seed);

fn count<'py, T: FromPyObjectOwned<'py>>(any: &Bound<'py, PyAny>, name: &str) -> PyResult<T> {
    any.extract().map_err(|error: T::Error| {
        let error: PyErr = error.into();
        let expected = format!("{name}: expected a whole number from 0 to {}, found", u64::MAX);
        if error.is_instance_of::<PyOverflowError>(any.py()) {
            // An integer of many thousand digits cannot be converted to text.
            let shown = any.cast::<PyInt>().ok().and_then(|number| number.str().ok());
            let found = shown.map_or_else(|| "another".to_owned(), |number| number.to_string());
            return Failure::input(format!("{expected} {found}")).into();
        }
        match any.get_type().name() {
            Ok(found) if error.is_instance_of::<PyTypeError>(any.py()) => Failure::new(Mistake::Kind, format!("{expected} {found}")).into(),
            _ => error,
        }
    })
}
