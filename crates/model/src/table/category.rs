//! Columns of names instead of numbers.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::first_few;

/// Maximum number of names that a column distinguishes.
pub const MAX_CATEGORIES: usize = 64;
/// The code of a name that training never saw: none of its inputs is 1.
pub const UNSEEN: f64 = -1.0;

/// A column of names. In a row, a name is represented by its code, from 0. The model reads one input per name, 1 for that of the row and 0
/// for the others, so its weights for them are an embedding of the names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Category {
    /// Its index among the columns that are read.
    pub column: usize,
    /// The names, in the order of the model's inputs.
    pub values: Vec<String>,
}

impl Category {
    /// The code of `name`, ignoring surrounding blanks: its index, or [`UNSEEN`] if it is not among the names.
    pub fn code(&self, name: &str) -> f64 {
        let name = name.trim();
        self.values.iter().position(|known| known == name).map_or(UNSEEN, |at| at as f64)
    }

    /// Whether `x` stands for a name, one that training saw or any other.
    pub(super) fn reads(&self, x: f64) -> bool {
        x == UNSEEN || (0..self.values.len()).any(|code| x == code as f64)
    }

    /// The names and their codes, for a sentence.
    pub(super) fn describe(&self) -> String {
        first_few(8, self.values.iter().enumerate().map(|(code, name)| format!("{code} is '{name}'")))
    }
}

/// Whether these describe columns of a table of `width`.
pub(super) fn are_usable(categories: &[Category], width: usize) -> bool {
    let is_usable = |category: &Category| {
        let mut sorted: Vec<&String> = category.values.iter().collect();
        sorted.sort_unstable();
        category.column < width && (1..=MAX_CATEGORIES).contains(&sorted.len()) && sorted.windows(2).all(|pair| pair[0] != pair[1])
    };
    categories.windows(2).all(|pair| pair[0].column < pair[1].column) && categories.iter().all(is_usable)
}
