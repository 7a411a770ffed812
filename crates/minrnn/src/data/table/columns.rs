//! Which columns of a table are wanted, and where they are.

use std::collections::HashSet;

use crate::suggestion::suggestion;
use crate::{Error, Result};

/// The columns to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Columns of numbers.
    pub numbers: Numbers,
    /// Columns of names, such as groups and labels; any cell is one.
    pub texts: Vec<String>,
}

/// Columns of numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Numbers {
    /// These, in this order.
    Named(Vec<String>),
    /// All but those that are wanted as texts, in the order of the table.
    AllOthers,
}

/// Positions of the wanted columns in the header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Positions {
    pub numbers: Vec<usize>,
    pub texts: Vec<usize>,
}

impl Wanted {
    /// Where the columns stand in `header`.
    ///
    /// # Errors
    /// When a column is missing or there twice, or none is left for numbers.
    pub(super) fn positions(&self, header: &[String]) -> Result<Positions> {
        let all = |names: &[String]| names.iter().map(|name| position(header, name)).collect::<Result<Vec<_>>>();
        let texts = all(&self.texts)?;
        let numbers = match &self.numbers {
            Numbers::Named(names) => all(names)?,
            // An index that pandas adds is no column of the table.
            Numbers::AllOthers => {
                (0..header.len()).filter(|at| !texts.contains(at) && !header[*at].starts_with("__index_level_")).collect()
            }
        };
        // Columns that were not asked for by name may have one in common.
        if let Some(name) = twice(numbers.iter().map(|&at| &header[at])) {
            return Err(there_twice(name));
        }
        if numbers.is_empty() {
            return Err(Error::Data(format!(
                "it has no column left to read numbers from; its columns are {}",
                header.iter().take(24).map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
            )));
        }
        Ok(Positions { numbers, texts })
    }
}

/// The first name that is among `names` for the second time.
pub(crate) fn twice<'a>(names: impl IntoIterator<Item = &'a String>) -> Option<&'a String> {
    let mut seen = HashSet::new();
    names.into_iter().find(|&name| !seen.insert(name))
}

fn there_twice(name: &str) -> Error {
    Error::Data(format!("the column '{name}' is there twice; give its columns different names"))
}

fn position(header: &[String], name: &str) -> Result<usize> {
    let mut found = header.iter().enumerate().filter(|(_, column)| *column == name).map(|(at, _)| at);
    match (found.next(), found.next()) {
        (Some(at), None) => Ok(at),
        (Some(_), Some(_)) => Err(there_twice(name)),
        (None, _) => Err(Error::Data(format!("there is no column '{name}'{}", suggestion(name, header.iter().map(String::as_str))))),
    }
}
