//! Numbers, truths, texts and paths as arguments; each is read by a function with the name of its argument.

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyUnicodeEncodeError};
use pyo3::prelude::*;

use crate::failure::{Failure, Mistake};

/// Makes the function that reads a value for each argument name.
macro_rules! arguments {
    ($expected:literal: $($name:ident),*) => {
        $(
            #[doc = concat!("The argument `", stringify!($name), "`, ", $expected, ".")]
            pub(crate) fn $name<'py, T: FromPyObjectOwned<'py>>(any: &Bound<'py, PyAny>) -> PyResult<T> {
                argument(any, stringify!($name), $expected)
            }
        )*
    };
}

arguments!("a number": temperature, top_p, min_p, repetition_penalty, rtol, atol);
arguments!("true or false": tokens, table);
arguments!("a text": weights, format);
arguments!("a path as a text or a pathlib.Path": path);

fn argument<'py, T: FromPyObjectOwned<'py>>(any: &Bound<'py, PyAny>, name: &str, expected: &str) -> PyResult<T> {
    any.extract().map_err(|error: T::Error| {
        let error: PyErr = error.into();
        let expected = format!("{name}: expected {expected}, found");
        if error.is_instance_of::<PyTypeError>(any.py()) {
            return Failure::new(Mistake::Kind, format!("{expected} {}", kind_of(any))).into();
        }
        // A whole number beyond all floats, or half of a surrogate pair.
        if error.is_instance_of::<PyOverflowError>(any.py()) || error.is_instance_of::<PyUnicodeEncodeError>(any.py()) {
            return Failure::input(format!("{expected} {}", shown(any))).into();
        }
        error
    })
}

/// The name of the type of `any`, for errors.
pub(crate) fn kind_of(any: &Bound<'_, PyAny>) -> String {
    any.get_type().name().map_or_else(|_| "something else".to_owned(), |name| name.to_string())
}

/// `any` as Python writes it, for errors: on one line, and not all of something long.
pub(crate) fn shown(any: &Bound<'_, PyAny>) -> String {
    const MOST: usize = 60;
    // Python refuses to write integers of many thousand digits.
    let Ok(written) = any.repr() else { return kind_of(any) };
    let written = written.to_string_lossy().split_whitespace().collect::<Vec<_>>().join(" ");
    match written.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &written[..end]),
        None => written,
    }
}
