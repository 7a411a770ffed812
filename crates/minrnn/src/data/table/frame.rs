//! The wanted columns of a table.

use std::collections::HashMap;

use super::cells::{CellReader, Kind, NumberColumn, Place, how_to_choose};
use super::columns::{Numbers, Positions, Wanted};
use super::limit::TableLimit;
use super::text_cells::TextColumn;
use super::texts::Texts;
use super::time_cells::{TimeColumnCells, Times};
use super::unseen_names::UnseenNames;
use super::values::{Values, most_rows};
use crate::{Error, Result};

/// Columns of numbers and of names, all of the same length.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// Names of the columns of numbers.
    pub names: Vec<String>,
    /// The numbers of each column.
    pub numbers: Vec<Values<f64>>,
    /// For each column of numbers, the names they stand for if it holds names.
    pub categories: Vec<Option<Vec<String>>>,
    /// The columns with names that are not among those distinguished.
    pub unseen: Vec<UnseenNames>,
    /// The columns of names, in the order requested.
    pub texts: Vec<Texts>,
    /// The times of the rows, if there is a time column.
    pub(super) times: Option<Times>,
    /// The locations of the rows in the file.
    pub(super) places: Locations,
    /// Columns that hold other columns' values at later steps, once they are in sequences.
    pub(super) leads: Vec<Lead>,
}

/// A column that holds the values of another one at later steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lead {
    /// Its position in a row.
    pub at: usize,
    /// The position of the other column.
    pub of: usize,
    /// How many steps later.
    pub ahead: usize,
}

/// The locations of a table's rows in a file of lines; empty if it has no lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Locations {
    /// Rows that do not begin on the line after the previous row's, each with its line.
    jumps: Vec<(usize, u64)>,
    /// In a wide table, the first row of each series, and the series' name.
    series: Vec<(usize, String)>,
}

impl Locations {
    /// The last row so far, `row`, begins on `line`.
    fn push(&mut self, row: usize, line: u64) {
        if self.jumps.last().is_none_or(|&(from, at)| at + (row - from) as u64 != line) {
            self.jumps.push((row, line));
        }
    }

    /// Starts the series `name` of a wide table at the row `row`.
    pub fn begin_series(&mut self, row: usize, name: &str) {
        self.series.push((row, name.to_owned()));
    }

    /// The location of a row, in words.
    pub fn name(&self, row: usize) -> String {
        match self.series.partition_point(|&(from, _)| from <= row).checked_sub(1) {
            Some(last) => format!("series '{}', step {}", self.series[last].1, row - self.series[last].0 + 1),
            None => self.place(row).to_string(),
        }
    }

    fn place(&self, row: usize) -> Place {
        match self.jumps.partition_point(|&(from, _)| from <= row).checked_sub(1) {
            Some(last) => Place::Line(self.jumps[last].1 + (row - self.jumps[last].0) as u64),
            None => Place::Row(row),
        }
    }
}

impl Frame {
    /// A frame without rows, for columns of numbers with these names.
    #[cfg(test)]
    pub(super) fn of(names: &[&str]) -> Self {
        let header: Vec<String> = names.iter().map(ToString::to_string).collect();
        let positions = Positions { numbers: (0..names.len()).collect(), texts: Vec::new(), time: None };
        Filling::new(&header, &positions, &Wanted::default(), None).into_frame().unwrap()
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        let of_times = || self.times.as_ref().map_or(0, |times| times.values.len());
        self.numbers.first().map_or_else(of_times, |numbers| numbers.len())
    }

    /// The name of the time column.
    pub fn time(&self) -> Option<&str> {
        self.times.as_ref().map(|times| times.name.as_str())
    }

    /// The positions of the columns `names`.
    ///
    /// # Panics
    /// When one is missing.
    pub(super) fn columns(&self, names: &[String]) -> Vec<usize> {
        let places: HashMap<&String, usize> = self.names.iter().enumerate().map(|(at, name)| (name, at)).collect();
        names.iter().map(|name| *places.get(name).expect("the column was asked for")).collect()
    }
}

/// A frame being filled, by rows or by columns.
#[derive(Debug)]
pub(super) struct Filling {
    names: Vec<String>,
    pub numbers: Vec<NumberColumn>,
    pub texts: Vec<TextColumn>,
    pub times: Option<TimeColumnCells>,
    places: Locations,
    limit: Option<TableLimit>,
}

impl Filling {
    /// An empty frame for the columns at `positions` of `header`; `limit` bounds what is read into it.
    pub fn new(header: &[String], positions: &Positions, wanted: &Wanted, limit: Option<TableLimit>) -> Self {
        let names: Vec<String> = positions.numbers.iter().map(|&at| header[at].clone()).collect();
        let kinds: HashMap<&String, Kind> = wanted.categories.iter().map(|names| (&names.column, names.kind())).collect();
        let n_columns = positions.numbers.len() + positions.texts.len() + usize::from(positions.time.is_some());
        let unasked = (wanted.numbers == Numbers::AllOthers).then(|| how_to_choose(&names));
        let reader = |name: &String| {
            let kind = kinds.get(name).cloned().unwrap_or(Kind::Numbers);
            NumberColumn::new(CellReader::new(name.clone(), wanted.may_miss, kind).unasked(unasked.clone()), n_columns)
        };
        let numbers = names.iter().map(reader).collect();
        let holds_numbers = |name: &String| wanted.number.as_ref() == Some(name);
        let text = |&at: &usize| TextColumn::new(header[at].clone(), n_columns).of_numbers(holds_numbers(&header[at]));
        let texts = positions.texts.iter().map(text).collect();
        let times = positions.time.map(|at| TimeColumnCells::new(header[at].clone(), n_columns));
        Self { names, numbers, texts, times, places: Locations::default(), limit }
    }

    /// Number of rows; those of the times if no numbers are read.
    pub fn n_rows(&self) -> usize {
        let of_times = || self.times.as_ref().map_or(0, TimeColumnCells::len);
        self.numbers.first().map_or_else(of_times, NumberColumn::len)
    }

    /// Starts the next row, on `line`.
    ///
    /// # Errors
    /// When there is no room for it.
    pub fn begin_row(&mut self, line: u64) -> Result<()> {
        let row = self.n_rows();
        self.expect_room(row + 1)?;
        self.places.push(row, line);
        Ok(())
    }

    /// Checks that a table of `n_rows` would fit.
    pub fn expect_room(&self, n_rows: usize) -> Result<()> {
        let n_columns = self.numbers.len() + self.texts.len() + usize::from(self.times.is_some());
        self.limit.map_or(Ok(()), |limit| limit.expect_room(n_rows, n_columns))?;
        let limit = most_rows(n_columns);
        if n_rows <= limit {
            return Ok(());
        }
        Err(Error::Data(format!(
            "it has more than {limit} rows, the most that are read of so many columns; split it, or choose fewer columns"
        )))
    }

    /// The frame.
    ///
    /// # Errors
    /// When it has no rows, or its values cannot be stored.
    pub fn finish(self) -> Result<Frame> {
        if self.n_rows() > 0 {
            return self.into_frame();
        }
        Err(Error::Data("it has no rows below its header".to_owned()))
    }

    fn into_frame(self) -> Result<Frame> {
        let unseen = self.numbers.iter().filter_map(NumberColumn::unseen_names).collect();
        let columns = self.numbers.into_iter().map(NumberColumn::finish).collect::<Result<Vec<_>>>()?;
        let (numbers, categories) = columns.into_iter().unzip();
        Ok(Frame {
            names: self.names,
            numbers,
            categories,
            unseen,
            texts: self.texts.into_iter().map(TextColumn::finish).collect::<Result<_>>()?,
            times: self.times.map(TimeColumnCells::finish).transpose()?,
            places: self.places,
            leads: Vec::new(),
        })
    }
}
