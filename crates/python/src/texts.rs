//! Texts from Python, which may hold what UTF-8 cannot.

use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::failure::{Failure, Mistake, Result};

/// What messages call a text that is scored.
pub(crate) const TEXT: &str = "the text";
/// What they call a text with nothing unusual, with which it is compared.
pub(crate) const USUAL_TEXT: &str = "the usual text";

/// The Python module that says what is wrong with a text.
const FRAMES: &str = "minrnn.frames";

/// The text `any`, called `what` in errors.
///
/// # Errors
/// When it is not a text, or holds half of a surrogate pair, which UTF-8 cannot encode.
pub(crate) fn text(any: &Bound<'_, PyAny>, what: &str) -> Result<String> {
    if !any.is_instance_of::<PyString>() {
        return Err(Failure::new(Mistake::Kind, format!("{what}: expected a text, found {}", any.get_type().name()?)));
    }
    any.extract().or_else(|error| {
        any.py().import(FRAMES)?.call_method1("expect_utf8", (any, what))?;
        Err(Failure::from(error))
    })
}

/// The texts of a list, or a single text, which Python would otherwise iterate as a list of its characters.
pub(crate) fn texts(any: &Bound<'_, PyAny>, what: &str) -> Result<Vec<String>> {
    match any.is_instance_of::<PyString>() {
        true => Ok(vec![text(any, what)?]),
        false => any.extract::<Vec<Bound<'_, PyAny>>>()?.iter().map(|any| text(any, what)).collect(),
    }
}
