//! What a model says of a whole table, read as the command reads one.

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
use crate::threads::{Reading, Threads, within};

/// What sentences call the tables.
pub(crate) const TABLE: &str = "the table";
/// The same of rows to come.
const TO_COME: &str = "the rows to come";
/// The same of rows that others are compared with.
pub(crate) const USUAL: &str = "the usual rows";

/// Names of sequences, the times to come of each as they would be written where a column tells times, numbers `[N, …]`, and what should be known of the
/// table, in sentences.
pub(crate) type Predicted<'py> = (Vec<String>, Vec<Option<Vec<String>>>, Bound<'py, PyArrayDyn<f64>>, Vec<String>);

/// What is predicted for the sequences of `table`, whose rows to come are `future`.
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
    // Nothing is left out but by a stop, whose exception was raised.
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

/// The label of each sequence of `table` as it stands there, in the order in which [`predict`] has them.
pub(crate) fn labels(py: Python<'_>, loaded: &Arc<Loaded>, table: Read) -> Result<Vec<String>> {
    let task = task(loaded)?;
    let found = interruptible(py, |_| read_labels(task, source(TABLE, table, &mut PathBuf::new())))?;
    found.map_err(in_memory)
}

/// The task of a model that was trained on a table.
pub(crate) fn task(loaded: &Loaded) -> Result<&TableTask> {
    Ok(expect_table(loaded.table.as_ref())?)
}

/// `error` as a sentence in which a table in memory is no file.
pub(crate) fn in_memory(error: Error) -> Failure {
    match error {
        Error::Malformed { path, problem, .. } if [TABLE, TO_COME, USUAL].map(Path::new).contains(&path.as_path()) => {
            Failure::input(format!("{}: {problem}", path.display()))
        }
        Error::Malformed { .. } => Failure::input(error.to_string()),
        error => error.into(),
    }
}

/// Where `table` is; `path` keeps the name of a file.
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
