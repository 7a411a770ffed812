//! Texts of Python, which may hold what no file can.

use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::failure::{Failure, Mistake, Result};

/// Where Python tells what a text lacks.
const FRAMES: &str = "minrnn.frames";

/// The text `any`, which is `what`.
///
/// # Errors
/// When it is none, or holds half of a surrogate pair, for which there are no bytes.
pub(crate) fn text(any: &Bound<'_, PyAny>, what: &str) -> Result<String> {
    if !any.is_instance_of::<PyString>() {
        return Err(Failure::new(Mistake::Kind, format!("{what}: expected a text, found {}", any.get_type().name()?)));
    }
    any.extract().or_else(|error| {
        any.py().import(FRAMES)?.call_method1("expect_utf8", (any, what))?;
        Err(Failure::from(error))
    })
}

/// Texts of a list, or one alone, which Python has for a list of its characters.
pub(crate) fn texts(any: &Bound<'_, PyAny>, what: &str) -> Result<Vec<String>> {
    match any.is_instance_of::<PyString>() {
        true => Ok(vec![text(any, what)?]),
        false => any.extract::<Vec<Bound<'_, PyAny>>>()?.iter().map(|any| text(any, what)).collect(),
    }
}
