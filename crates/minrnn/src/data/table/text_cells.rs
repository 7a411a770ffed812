//! Columns of names being filled cell by cell.

use super::cells::{Cell, Place};
use super::texts::{Texts, TextsWriter};
use crate::{Error, Result};

/// A column of names being filled.
#[derive(Debug)]
pub(super) struct TextColumn {
    name: String,
    holds_numbers: bool,
    texts: TextsWriter,
}

impl TextColumn {
    /// The column `name`, one of `n_columns`.
    pub fn new(name: String, n_columns: usize) -> Self {
        Self { name, holds_numbers: false, texts: TextsWriter::new(n_columns) }
    }

    /// The same; if it `holds_numbers`, messages say so.
    pub fn of_numbers(self, holds_numbers: bool) -> Self {
        Self { holds_numbers, ..self }
    }

    /// Adds a name.
    ///
    /// # Errors
    /// When it is empty, or as [`TextsWriter::push`].
    pub fn push(&mut self, cell: Cell, place: Place) -> Result<()> {
        let name = cell.name();
        if self.holds_numbers && name.trim().is_empty() {
            return Err(empty(place, &self.name, "a number; fill it, or leave the rows of its sequence out"));
        }
        self.texts.push(expect_name(&name, place, &self.name)?)
    }

    /// Returns the column.
    ///
    /// # Errors
    /// As [`ValuesWriter::finish`].
    pub fn finish(self) -> Result<Texts> {
        self.texts.finish()
    }
}

/// `text`, trimmed.
///
/// # Errors
/// When nothing is left.
pub(super) fn expect_name<'a>(text: &'a str, place: Place, column: &str) -> Result<&'a str> {
    match text.trim() {
        "" => Err(empty(place, column, "a name")),
        name => Ok(name),
    }
}

/// The error that a cell is empty, where `expected` was.
fn empty(place: Place, column: &str, expected: &str) -> Error {
    Error::Data(format!("{place}, column '{column}': the cell is empty, expected {expected}"))
}
