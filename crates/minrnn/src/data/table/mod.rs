//! Tables of a user's own: sequences of numbers from CSV or Parquet files, to classify or to forecast.
//!
//! A table is in long form: one row for each time step, in the order of time or with a column that tells it. A column may name the sequence that a row belongs to (a
//! machine, a patient, a meter); without one the whole table is one sequence. Sequences may have different lengths, and their rows may lie
//! between each other.
//!
//! Which of these do I want?
//! * the columns of a file: [`read_table`];
//! * a class for every sequence: [`Classification`];
//! * the next values of every sequence: [`Forecasting`];
//! * each row beside what was forecast for it: [`ForecastRows`];
//! * how good they would have been at the last origins of a table: [`Backtest`];
//! * what a trained model needs to be used on other tables: [`TableTask`], which every checkpoint keeps; with it [`read_series`] reads one.
//!
//! Numbers are read with mean 0 and deviation 1 over the part that is trained on, by a [`Normalization`] that is kept.

mod classification;
mod columns;
mod confusion;
mod csv;
mod division;
mod example;
mod forecasting;
mod frame;
mod measure;
mod normalization;
mod parquet;
mod quiet;
mod rows;
mod seasonal_naive;
mod series;
mod table_task;
#[cfg(test)]
mod tests;
mod times;
mod whole_series;

use std::io::Read;
use std::path::Path;

use bytes::Bytes;

pub use self::classification::{Classification, ClassificationConfig};
use self::columns::other_columns;
pub(crate) use self::columns::twice;
pub use self::columns::{Numbers, TimeColumn, Wanted};
pub use self::confusion::{Confusion, OfClass};
pub use self::division::Division;
pub use self::example::Example;
pub use self::forecasting::{
    Backtest, BacktestErrors, ForecastRow, ForecastRows, Forecasting, ForecastingConfig, Origin, Origins, ScalingChoice, TooShort,
};
pub use self::frame::{Frame, Texts};
pub use self::measure::{Baseline, Cases, Comparison, Measure, Verdict};
pub use self::rows::{Arrival, Row, Rows};
pub use self::seasonal_naive::SeasonalNaive;
pub use self::series::Series;
pub use self::table_task::read_series;
pub use self::times::{Clock, Step};
pub use self::whole_series::{Chunk, WholeSeries};
use super::source::Source;
use crate::{Error, Result};
pub use minrnn_model::{
    Classifier, Forecaster, History, MAX_DEVIATIONS, Missing, Normalization, Prediction, Scale, Scaling, TableTask, Transform,
};

/// What every Parquet file begins with.
const PARQUET_MAGIC: &[u8] = b"PAR1";

/// The wanted columns of the file `path`, which is Parquet if it says so in its first bytes and else CSV with a header. It is read once, so
/// that it may be a pipe.
///
/// # Errors
/// When the file cannot be read, a column is missing or there twice, or a cell that is wanted holds no number that a model can read.
pub fn read_table(path: impl AsRef<Path>, wanted: &Wanted) -> Result<Frame> {
    let path = path.as_ref();
    let failed = |source| Error::io("read the table", path, source);
    let mut source = Source::open(path).map_err(failed)?;
    let mut beginning = Vec::new();
    source.by_ref().take(PARQUET_MAGIC.len() as u64).read_to_end(&mut beginning).map_err(failed)?;
    let found = if beginning == PARQUET_MAGIC {
        match source.into_file() {
            Ok(file) => parquet::read(file, wanted),
            // It is read from its end on.
            Err(mut pipe) => {
                pipe.read_to_end(&mut beginning).map_err(failed)?;
                parquet::read(Bytes::from(beginning), wanted)
            }
        }
    } else {
        csv::read(beginning.as_slice().chain(source), wanted)
    };
    // What is wrong inside names the file.
    found.map_err(|error| match error {
        Error::Data(problem) => Error::malformed(path, problem),
        Error::Io { source, .. } => Error::io("read the table", path, source),
        other => other,
    })
}
