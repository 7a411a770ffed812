//! A model's predictions for a whole table, which is read as the command reads one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use minrnn::data::table::{Prediction, Series, TableSource, TableTask, notes, read_labels, read_series_from};
use minrnn::{Error, deployed};
use minrnn_stream::expect_table;
use numpy::PyArrayDyn;
use pyo3::prelude::*;

use crate::arrays::filled;
use crate::failure::{Failure, Result};
use crate::handed::Read;
use crate::loaded::Loaded;
use crate::signals::interruptible;
use crate::table::prediction;
use crate::texts::{TEXT, USUAL_TEXT};
use crate::threads::{Reading, Threads, within};

/// What errors call the table.
pub(crate) const TABLE: &str = "the table";
/// What errors call the table of future rows.
const TO_COME: &str = "the rows to come";
/// What errors call the table of rows that others are compared with.
pub(crate) const USUAL: &str = "the usual rows";

/// The names of the sequences, the future times of each as they would be written (if a column holds times), numbers `[N, …]`, and notes on the table, a
/// sentence each.
pub(crate) type Predicted<'py> = (Vec<String>, Vec<Option<Vec<String>>>, Bound<'py, PyArrayDyn<f64>>, Vec<String>);

/// The predictions for the sequences of `table`, whose future rows are `future`.
pub(crate) fn predict<'py>(
    py: Python<'py>,
    loaded: &Arc<Loaded>,
    table: Read,
    future: Option<Read>,
    threads: Threads,
) -> Result<Predicted<'py>> {
    let task = task(loaded)?;
    let pool = threads.pool(py, Reading::Sequences)?;
    let found = interruptible(py, |stop| {
        within(pool.as_deref(), || {
            let (mut file, mut file_to_come) = (PathBuf::new(), PathBuf::new());
            let table = source(TABLE, table, &mut file);
            let future = future.map(|future| source(TO_COME, future, &mut file_to_come));
            let (series, unseen) = read_series_from(task, table, future)?;
            let predictions = deployed::predict(&loaded.model, task, &series, stop)?;
            let notes = notes(task, &series, &unseen);
            Ok::<_, Error>(predictions.map(|predictions| (series, predictions, notes)))
        })
    })?;
    // The predictions are only missing after a stop, whose exception has been raised above.
    let (series, predictions, notes) = found.map_err(in_memory)?.unwrap_or_default();
    let shape = [&[series.len()][..], &prediction(task)].concat();
    let numbers = filled(py, &shape, |room: &mut [f64]| {
        let all = predictions.iter().flat_map(|prediction| match prediction {
            Prediction::Classes(numbers) | Prediction::Values(numbers) => numbers.iter().copied(),
        });
        room.iter_mut().zip(all).for_each(|(to, from)| *to = from);
        Ok(())
    })?;
    let times = series.iter().map(|series| times(task, series)).collect();
    Ok((series.into_iter().map(|series| series.name).collect(), times, numbers, notes))
}

/// The label of each sequence of `table`, as the table has it, in the order of [`predict`].
pub(crate) fn labels(py: Python<'_>, loaded: &Arc<Loaded>, table: Read) -> Result<Vec<String>> {
    let task = task(loaded)?;
    let found = interruptible(py, |_| read_labels(task, source(TABLE, table, &mut PathBuf::new())))?;
    found.map_err(in_memory)
}

/// The task of a model that was trained on a table.
pub(crate) fn task(loaded: &Loaded) -> Result<&TableTask> {
    Ok(expect_table(loaded.table.as_ref())?)
}

/// `error` with a message in which a table or a text in memory is not called a file.
pub(crate) fn in_memory(error: Error) -> Failure {
    match error {
        Error::Malformed { path, problem, .. } if [TABLE, TO_COME, USUAL, TEXT, USUAL_TEXT].map(Path::new).contains(&path.as_path()) => {
            Failure::input(format!("{}: {problem}", path.display()))
        }
        Error::Malformed { .. } => Failure::input(error.to_string()),
        error => error.into(),
    }
}

/// The source of `table`; if it is a file, `path` holds its path.
pub(crate) fn source<'a>(name: &'static str, table: Read, path: &'a mut PathBuf) -> TableSource<'a> {
    match table {
        Read::Handed(table) => TableSource::Batches(Path::new(name), table),
        Read::File(file) => {
            *path = file;
            TableSource::File(path)
        }
    }
}

fn times(task: &TableTask, series: &Series) -> Option<Vec<String>> {
    match task {
        TableTask::Forecast(forecaster) => series.next_times(forecaster.horizon),
        TableTask::Classify(_) | TableTask::Regress(_) => None,
    }
}
