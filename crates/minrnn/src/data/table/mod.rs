//! Tables of a user's own: sequences of numbers from files (CSV, Parquet, Arrow, JSON Lines, `.ts`) or from memory, to classify, to regress or
//! to forecast.
//!
//! A table is in long form: one row for each time step, in the order of time or with a column that tells it. A column may name the sequence that a row belongs to (a
//! machine, a patient, a meter); without one the whole table is one sequence. Sequences may have different lengths, and their rows may lie
//! between each other.
//!
//! Which of these do I want?
//! * the columns of a file: [`read_table`];
//! * a class or a number for every sequence: [`Labelling`];
//! * the next values of every sequence: [`Forecasting`];
//! * each row beside what was forecast for it: [`ForecastRows`];
//! * how good they would have been at the last origins of a table: [`Backtest`];
//! * what a trained model needs to be used on other tables: [`TableTask`], which every checkpoint keeps; with it [`read_series`] reads one.
//!
//! Numbers are read with mean 0 and deviation 1 over the part that is trained on, by a [`Normalization`] that is kept.

mod calendar;
mod categories;
mod category_names;
mod cells;
mod clock;
mod columns;
mod confusion;
mod division;
mod example;
mod forecasting;
mod formats;
mod frame;
mod known_names;
mod label;
mod labelling;
mod layout;
mod leads;
mod limit;
mod measure;
mod missing;
mod normalization;
mod notes;
mod output_names;
mod pace;
mod paces;
mod quiet;
mod roles;
mod rows;
mod seasonal_naive;
mod series;
mod step;
mod table_task;
#[cfg(test)]
mod tests;
mod text_cells;
mod texts;
mod time_cells;
mod unseen_names;
mod values;
mod whole_series;

use std::path::Path;

use arrow_array::RecordBatchReader;

pub use self::calendar::CalendarPart;
pub use self::category_names::CategoryNames;
pub use self::clock::Clock;
pub(crate) use self::columns::twice;
pub use self::columns::{Names, Numbers, TimeColumn, Wanted};
use self::columns::{other_columns, other_targets};
pub use self::confusion::{Confusion, OfClass};
pub use self::division::Division;
pub use self::example::Example;
pub use self::forecasting::{
    Backtest, BacktestErrors, ForecastRow, ForecastRows, Forecasting, ForecastingConfig, Origin, Origins, ScalingChoice, Spreads, TooShort,
};
use self::formats::Reader;
pub(crate) use self::formats::is_named_as_table;
pub use self::frame::Frame;
pub use self::label::Label;
pub use self::labelling::{ClassWeights, Labelling, LabellingConfig, read_labels};
pub use self::layout::LayoutChoice;
pub use self::limit::TableLimit;
pub use self::measure::{Baseline, Cases, Comparison, Measure, MeasureKind, Verdict, left_out};
pub use self::notes::notes;
pub use self::output_names::output_names;
pub use self::paces::gaps;
pub use self::rows::{Arrival, Row, Rows};
pub use self::seasonal_naive::SeasonalNaive;
pub use self::series::Series;
pub use self::step::Step;
pub use self::table_task::{read_series, read_series_and_unseen, read_series_from, read_series_to_forecast};
pub use self::texts::Texts;
pub use self::unseen_names::UnseenNames;
pub use self::values::Values;
pub(crate) use self::whole_series::CHUNK_LEN;
pub use self::whole_series::{Chunk, WholeSeries};
use crate::{Error, Result};
pub use minrnn_model::{
    Category, Classifier, Forecaster, History, Layout, MAX_DEVIATIONS, Missing, Normalization, Prediction, Regressor, Scale, Scaling,
    TableTask, Transform,
};

/// The wanted columns of the file `path`, in whichever format of tables it is. It is read once, so that it may be a pipe.
///
/// # Errors
/// When the file cannot be read, a column is missing or there twice, or a cell that is wanted holds no number that a model can read.
pub fn read_table(path: impl AsRef<Path>, wanted: &Wanted) -> Result<Frame> {
    Opened::new(path.as_ref())?.read(wanted)
}

/// Bytes in memory of the table `path` while it is learned from, at most: its numbers and those of its sequences, of which a text has about as
/// many characters as these have bytes, or the part of them that does not lie in files, and the order of its rows.
pub(crate) fn memory_of(path: &Path) -> u128 {
    const IN_MEMORY: u128 = 128 << 20;
    // What is no file, such as a pipe, is read once.
    let Some(bytes) = path.metadata().ok().filter(std::fs::Metadata::is_file).map(|meta| u128::from(meta.len())) else { return 0 };
    let opened = Opened::new(path).ok().filter(|opened| values::may_lie_in_files(opened.header().len()));
    // A row of a text has at least so many characters, as a rule: a name, a time and a number.
    let in_files = opened.map(|opened| IN_MEMORY + 4 * opened.reader.n_rows().map_or(bytes / 16, u128::from));
    in_files.map_or(2 * bytes, |in_files| in_files.min(2 * bytes))
}

/// Where a table is.
pub enum TableSource<'a> {
    /// In a file, in whichever format of tables it is.
    File(&'a Path),
    /// The same of a file that somebody sent, of which no more is read than a limit.
    Limited(&'a Path, TableLimit),
    /// In memory, as batches of rows, with the name that sentences have for it.
    Batches(&'a Path, Box<dyn RecordBatchReader>),
}

impl<'a> TableSource<'a> {
    fn path(&self) -> &'a Path {
        match self {
            Self::File(path) | Self::Limited(path, _) | Self::Batches(path, _) => path,
        }
    }

    fn open(self) -> Result<Opened<'a>> {
        match self {
            Self::File(path) => Opened::new(path),
            Self::Limited(path, limit) => Opened::limited(path, Some(limit)),
            Self::Batches(path, batches) => Ok(Opened { path, reader: formats::in_memory(batches) }),
        }
    }
}

/// A table whose columns are known and whose rows are still to be read.
struct Opened<'a> {
    path: &'a Path,
    reader: Box<dyn Reader>,
}

impl<'a> Opened<'a> {
    fn new(path: &'a Path) -> Result<Self> {
        Self::limited(path, None)
    }

    fn limited(path: &'a Path, limit: Option<TableLimit>) -> Result<Self> {
        let reader = formats::open(path, limit).map_err(|error| naming(path, error))?;
        Ok(Self { path, reader })
    }

    fn header(&self) -> &[String] {
        self.reader.header()
    }

    /// The columns that hold dates.
    fn dates(&mut self) -> Result<Vec<String>> {
        let dates = self.reader.dates().map_err(|error| naming(self.path, error))?;
        Ok(self.header().iter().zip(dates).filter(|(_, is_date)| *is_date).map(|(name, _)| name.clone()).collect())
    }

    fn read(self, wanted: &Wanted) -> Result<Frame> {
        layout::frame(self.reader, wanted).map_err(|error| naming(self.path, error))
    }
}

/// `error` with the name of the file, where that is at fault: its content, or what kept it from being read. What is told of another file, such as one
/// that values are kept in, stays as it is.
fn naming(path: &Path, error: Error) -> Error {
    match error {
        Error::Io { action, path: unnamed, source } if unnamed.as_os_str().is_empty() => Error::io(action, path, source),
        error => error.in_file(path),
    }
}
