//! Texts from Python, which may hold what UTF-8 cannot.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::failure::{Failure, Mistake, Result};
use crate::plain::kind_of;

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
        return Err(Failure::new(Mistake::Kind, format!("{what}: expected a text, found {}", kind_of(any))));
    }
    any.extract().or_else(|error| {
        any.py().import(FRAMES)?.call_method1("expect_utf8", (any, what))?;
        Err(Failure::from(error))
    })
}

/// The texts of a list, or a single text, which Python would otherwise iterate as a list of its characters; none for None.
pub(crate) fn texts(any: &Bound<'_, PyAny>, what: &str) -> Result<Vec<String>> {
    if any.is_none() {
        return Ok(Vec::new());
    }
    if any.is_instance_of::<PyString>() {
        return Ok(vec![text(any, what)?]);
    }
    let refused = || Failure::new(Mistake::Kind, format!("{what}: expected a text or a list of texts, found {}", kind_of(any)));
    if any.is_instance_of::<PyBytes>() {
        return Err(refused());
    }
    let parts = any.extract::<Vec<Bound<'_, PyAny>>>();
    let parts = parts.map_err(|error| if error.is_instance_of::<PyTypeError>(any.py()) { refused() } else { error.into() })?;
    parts.iter().map(|part| text(part, what)).collect()
}
