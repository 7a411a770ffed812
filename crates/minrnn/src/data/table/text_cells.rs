//! Columns of names being filled cell by cell.

use super::cells::{Cell, Place};
use super::texts::{Texts, TextsWriter};
use crate::{Error, Result};

/// A column of names being filled.
#[derive(Debug)]
pub(super) struct TextColumn {
    name: String,
    texts: TextsWriter,
}

impl TextColumn {
    /// The column `name`, one of `n_columns`.
    pub fn new(name: String, n_columns: usize) -> Self {
        Self { name, texts: TextsWriter::new(n_columns) }
    }

    /// Adds a name.
    ///
    /// # Errors
    /// When it is empty, or as [`TextsWriter::push`].
    pub fn push(&mut self, cell: Cell, place: Place) -> Result<()> {
        self.texts.push(expect_name(&cell.name(), place, &self.name)?)
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
        "" => Err(Error::Data(format!("{place}, column '{column}': the cell is empty, expected a name"))),
        name => Ok(name),
    }
}
