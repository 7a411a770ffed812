//! What a model says of a whole table, read as the command reads one.

use std::path::Path;
use std::sync::Arc;

use minrnn::data::table::{Prediction, Series, TableSource, TableTask, read_series_from};
use minrnn::{Error, deployed};
use numpy::PyArrayDyn;
use pyo3::prelude::*;

use crate::arrays::filled;
use crate::failure::{Failure, Mistake, Result};
use crate::handed::Handed;
use crate::loaded::Loaded;
use crate::signals::interruptible;
use crate::table::prediction;
use crate::threads::{Threads, within};

/// What sentences call the tables.
const TABLE: &str = "the table";
const TO_COME: &str = "the rows to come";

/// Names of sequences, the times to come of each as they would be written where a column tells times, and numbers `[N, …]`.
pub(crate) type Predicted<'py> = (Vec<String>, Vec<Option<Vec<String>>>, Bound<'py, PyArrayDyn<f64>>);

/// What is predicted for the sequences of `table`, whose rows to come are `future`.
pub(crate) fn predict<'py>(
    py: Python<'py>,
    loaded: &Arc<Loaded>,
    table: Handed,
    future: Option<Handed>,
    threads: Threads,
) -> Result<Predicted<'py>> {
    let Some(task) = &loaded.table else {
        return Err(Failure::new(Mistake::Kind, "the model was not trained on a table: it has no rows to read"));
    };
    let pool = threads.pool(py, true)?;
    let found = interruptible(py, |stop| {
        within(pool.as_deref(), || {
            let source = |name: &'static str, table: Handed| TableSource::Batches(Path::new(name), table);
            let series = read_series_from(task, source(TABLE, table), future.map(|future| source(TO_COME, future)))?;
            let predictions = deployed::predict(&loaded.model, task, &series, stop)?;
            Ok::<_, Error>(predictions.map(|predictions| (series, predictions)))
        })
    })?;
    let found = found.map_err(|error| match error {
        // A table in memory is no file.
        Error::Malformed { path, problem } if [TABLE, TO_COME].map(Path::new).contains(&path.as_path()) => {
            Failure::input(format!("{}: {problem}", path.display()))
        }
        error => error.into(),
    })?;
    // Nothing is left out but by a stop, whose exception was raised.
    let (series, predictions) = found.unwrap_or_default();
    let shape = [&[series.len()][..], &prediction(task)].concat();
    let numbers = filled(py, &shape, |room: &mut [f64]| {
        let all = predictions.iter().flat_map(|prediction| match prediction {
            Prediction::Classes(numbers) | Prediction::Values(numbers) => numbers.iter().copied(),
        });
        room.iter_mut().zip(all).for_each(|(to, from)| *to = from);
        Ok(())
    })?;
    let times = series.iter().map(|series| times(task, series)).collect();
    Ok((series.into_iter().map(|series| series.name).collect(), times, numbers))
}

fn times(task: &TableTask, series: &Series) -> Option<Vec<String>> {
    match task {
        TableTask::Forecast(forecaster) => series.next_times(forecaster.horizon),
        TableTask::Classify(_) | TableTask::Regress(_) => None,
    }
}
