//! Columns of names, with each distinct name stored once.

use std::collections::HashMap;

use super::values::{Values, ValuesWriter};
use crate::{Error, Result};

/// A column of names: the distinct names, and the index of one of them for each row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Texts {
    distinct: Vec<String>,
    rows: Values<u32>,
    known: HashMap<String, u32>,
}

impl Texts {
    /// The index of a name, which is added if it is new.
    ///
    /// # Errors
    /// When there are too many.
    pub(super) fn id(&mut self, text: &str) -> Result<u32> {
        if let Some(&id) = self.known.get(text) {
            return Ok(id);
        }
        let id = u32::try_from(self.distinct.len()).map_err(|_| Error::Data("it has too many different names".to_owned()))?;
        self.distinct.push(text.to_owned());
        self.known.insert(text.to_owned(), id);
        Ok(id)
    }

    /// The distinct names in order of first occurrence.
    pub fn distinct(&self) -> &[String] {
        &self.distinct
    }

    pub(super) fn into_distinct(self) -> Vec<String> {
        self.distinct
    }

    /// Whether a name has occurred.
    pub(super) fn knows(&self, text: &str) -> bool {
        self.known.contains_key(text)
    }

    /// The index of each row's name.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }
}

/// A column of names being filled row by row.
#[derive(Debug)]
pub(super) struct TextsWriter {
    texts: Texts,
    rows: ValuesWriter<u32>,
    last: Option<u32>,
}

impl TextsWriter {
    /// An empty column, one of `n_columns`.
    pub fn new(n_columns: usize) -> Self {
        Self { texts: Texts::default(), rows: ValuesWriter::new(n_columns), last: None }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// When there are too many names, or as [`ValuesWriter::push`].
    pub fn push(&mut self, text: &str) -> Result<()> {
        let id = match self.last {
            // Rows of a sequence often follow each other.
            Some(last) if self.texts.distinct[last as usize] == text => last,
            _ => self.texts.id(text)?,
        };
        self.last = Some(id);
        self.rows.push(id)
    }

    /// Whether any row has this name.
    pub fn knows(&self, text: &str) -> bool {
        self.texts.knows(text)
    }

    /// Returns the column.
    ///
    /// # Errors
    /// As [`ValuesWriter::finish`].
    pub fn finish(self) -> Result<Texts> {
        Ok(Texts { rows: self.rows.finish()?, ..self.texts })
    }
}
