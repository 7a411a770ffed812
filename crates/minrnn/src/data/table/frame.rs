//! The wanted columns of a table in memory.

use std::collections::{HashMap, HashSet};

use super::columns::{Positions, Wanted};
use crate::{Error, Result};

/// Most cells of a table that is read, 2 GiB of numbers: what a file claims or unfolds to is not believed beyond.
const MAX_CELLS: usize = 1 << 28;

/// What should stand in place of `number`, where a model cannot read it: its inputs are 32-bit floats.
pub(super) fn flaw(number: f64) -> Option<&'static str> {
    match number.abs() {
        size if !size.is_finite() => Some("a finite number"),
        size if size > f64::from(f32::MAX) => Some("a number of at most 3.4e38 in size"),
        _ => None,
    }
}

/// Columns of numbers and of names, all of the same length.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// Names of the columns of numbers.
    pub names: Vec<String>,
    /// The numbers, a vector for each column.
    pub numbers: Vec<Vec<f64>>,
    /// The columns of names, in the order they were wanted.
    pub texts: Vec<Texts>,
    /// The name of the column of times, which is the last one of `texts` then.
    pub time: Option<String>,
    /// Where the rows stand in the file.
    pub(super) places: Locations,
}

/// Where the rows of a table stand in a file of lines; empty where it has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Locations {
    /// Rows that do not stand on the line after the row before, each with its line.
    jumps: Vec<(usize, u64)>,
}

impl Locations {
    /// The last row so far, `row`, begins on `line`.
    pub fn push(&mut self, row: usize, line: u64) {
        if self.jumps.last().is_none_or(|&(from, at)| at + (row - from) as u64 != line) {
            self.jumps.push((row, line));
        }
    }

    /// The place of a row, in words.
    pub fn name(&self, row: usize) -> String {
        match self.jumps.partition_point(|&(from, _)| from <= row).checked_sub(1) {
            Some(last) => format!("line {}", self.jumps[last].1 + (row - self.jumps[last].0) as u64),
            None => format!("row {}", row + 1),
        }
    }
}

impl Frame {
    /// Without rows, for the columns at `positions` of `header`.
    pub(super) fn new(header: &[String], positions: &Positions) -> Self {
        let names: Vec<String> = positions.numbers.iter().map(|&at| header[at].clone()).collect();
        let numbers = vec![Vec::new(); names.len()];
        let texts = positions.texts.iter().map(|_| Texts::default()).collect();
        let time = positions.texts.last().filter(|_| positions.has_times).map(|&at| header[at].clone());
        Self { names, numbers, texts, time, places: Locations::default() }
    }

    /// Without rows, for columns of numbers of these names.
    #[cfg(test)]
    pub(super) fn of(names: &[&str]) -> Self {
        let header: Vec<String> = names.iter().map(ToString::to_string).collect();
        Self::new(&header, &Positions { numbers: (0..names.len()).collect(), texts: Vec::new(), has_times: false })
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.numbers.first().map_or(0, Vec::len)
    }

    /// Refuses a table that would not fit.
    pub(super) fn expect_room(&self, n_rows: usize) -> Result<()> {
        let limit = MAX_CELLS / (self.numbers.len() + self.texts.len()).max(1);
        if n_rows <= limit {
            return Ok(());
        }
        Err(Error::Data(format!(
            "it has more than {limit} rows, the most that are read of so many columns; split it, or choose fewer columns"
        )))
    }

    /// Refuses a table without rows.
    pub(super) fn expect_rows(self) -> Result<Self> {
        if self.n_rows() > 0 {
            return Ok(self);
        }
        Err(Error::Data("it has no rows below its header".to_owned()))
    }

    /// The positions of its columns `names`.
    ///
    /// # Panics
    /// When one is missing.
    pub(super) fn columns(&self, names: &[String]) -> Vec<usize> {
        let places: HashMap<&String, usize> = self.names.iter().enumerate().map(|(at, name)| (name, at)).collect();
        names.iter().map(|name| *places.get(name).expect("the column was asked for")).collect()
    }
}

impl Wanted {
    /// These columns of numbers once each, and these of texts, without times; no number may be missing.
    pub(super) fn named<'a>(numbers: impl IntoIterator<Item = &'a String>, texts: Vec<String>) -> Self {
        let mut seen = HashSet::new();
        let names = numbers.into_iter().filter(|&name| seen.insert(name)).cloned().collect();
        Self { numbers: super::Numbers::Named(names), texts, time: super::TimeColumn::None, may_miss: false }
    }
}

/// A column of names: every distinct one once, and one of them for each row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Texts {
    distinct: Vec<String>,
    rows: Vec<u32>,
    known: HashMap<String, u32>,
}

impl Texts {
    /// Adds a row.
    pub(super) fn push(&mut self, text: &str) -> Result<()> {
        let id = match self.known.get(text) {
            Some(&id) => id,
            None => {
                let id = u32::try_from(self.distinct.len()).map_err(|_| Error::Data("it has too many different names".to_owned()))?;
                self.distinct.push(text.to_owned());
                self.known.insert(text.to_owned(), id);
                id
            }
        };
        self.rows.push(id);
        Ok(())
    }

    /// The distinct names in order of their first row.
    pub fn distinct(&self) -> &[String] {
        &self.distinct
    }

    /// Which of the distinct names each row has.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }
}
