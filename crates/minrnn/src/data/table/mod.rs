//! Users' own tables: sequences of numbers from files (CSV, Parquet, Arrow, JSON Lines, `.ts`) or from memory, for classification, regression
//! or forecasting.
//!
//! A table is in long form: one row for each time step, in order of time or with a time column. A column may name the sequence that a row belongs to (a
//! machine, a patient, a meter); without one the whole table is one sequence. Sequences may have different lengths, and their rows may be interleaved.
//!
//! Which of these do I want?
//! * the columns of a file: [`read_table`];
//! * a class or a number for every sequence: [`Labelling`];
//! * the next values of every sequence: [`Forecasting`];
//! * each row beside what was forecast for it: [`ForecastRows`];
//! * how good forecasts would have been at the last origins of a table: [`Backtest`];
//! * what a trained model needs to be used on other tables: [`TableTask`], which every checkpoint keeps; with it [`read_series`] reads one.
//!
//! Numbers are normalised to mean 0 and deviation 1 over the training part, by a [`Normalization`] that is stored with the model.

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
pub use self::step::{MonthDay, Step};
pub use self::table_task::{read_series, read_series_from};
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

/// The wanted columns of the file `path`, in any of the formats of tables. It is read once, so it may be a pipe.
///
/// # Errors
/// When the file cannot be read, a column is missing or occurs twice, or a wanted cell does not hold a number that a model can read.
pub fn read_table(path: impl AsRef<Path>, wanted: &Wanted) -> Result<Frame> {
    Opened::new(path.as_ref())?.read(wanted)
}

/// Maximum bytes in memory of the table `path` during training: its numbers and those of its sequences (a text has about as many characters as
/// each of these has bytes), or the part of them not kept in files, and the order of its rows.
pub(crate) fn memory_of(path: &Path) -> u128 {
    const IN_MEMORY: u128 = 128 << 20;
    // A source that is not a file, such as a pipe, can be read only once.
    let Some(bytes) = path.metadata().ok().filter(std::fs::Metadata::is_file).map(|meta| u128::from(meta.len())) else { return 0 };
    let opened = Opened::new(path).ok().filter(|opened| values::may_lie_in_files(opened.header().len()));
    // A row of a text usually has at least this many characters: a name, a time and a number.
    let in_files = opened.map(|opened| IN_MEMORY + 4 * opened.reader.n_rows().map_or(bytes / 16, u128::from));
    in_files.map_or(2 * bytes, |in_files| in_files.min(2 * bytes))
}

/// Where a table is.
pub enum TableSource<'a> {
    /// In a file, in any of the formats of tables.
    File(&'a Path),
    /// The same for a file from an untrusted sender, read only up to a limit.
    Limited(&'a Path, TableLimit),
    /// In memory, as batches of rows, with its name in messages.
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

/// `error` with the name of the file, if the file is at fault: its content, or a failure to read it. An error about another file, such as one that
/// values are kept in, stays as it is.
fn naming(path: &Path, error: Error) -> Error {
    match error {
        Error::Io { action, path: unnamed, source } if unnamed.as_os_str().is_empty() => Error::io(action, path, source),
        error => error.in_file(path),
    }
}
