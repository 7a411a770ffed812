//! Texts of Python, which may hold what no file can.

use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::failure::{Failure, Mistake, Result};

/// The text `any`, which is `what`.
///
/// # Errors
/// When it is none, or holds half of a surrogate pair, for which there are no bytes.
pub(crate) fn text(any: &Bound<'_, PyAny>, what: &str) -> Result<String> {
    any.extract().map_err(|error| match (any.is_instance_of::<PyString>(), any.get_type().name()) {
        (true, _) => Failure::input(format!(
            "{what}: expected a text, found half of a surrogate pair in it, which has no bytes; text.encode(errors=\"replace\").decode() replaces it"
        )),
        (false, Ok(found)) => Failure::new(Mistake::Kind, format!("{what}: expected a text, found {found}")),
        (false, Err(_)) => Failure::from(error),
    })
}

/// Texts of a list, or one alone, which Python has for a list of its characters.
pub(crate) fn texts(any: &Bound<'_, PyAny>, what: &str) -> Result<Vec<String>> {
    match any.is_instance_of::<PyString>() {
        true => Ok(vec![text(any, what)?]),
        false => any.extract::<Vec<Bound<'_, PyAny>>>()?.iter().map(|any| text(any, what)).collect(),
    }
}
