//! How surprising each row of a table is to a forecaster; the table is read as the command reads one.

use std::path::PathBuf;
use std::sync::Arc;

use minrnn::data::table::{ForecastRows, Series};
use minrnn::deployed::{Usual, score_rows};
use minrnn_model::Calibration;
use minrnn_stream::expect_surprise;
use numpy::PyArrayDyn;
use pyo3::prelude::*;

use crate::arrays::filled;
use crate::failure::{Failure, Mistake, Result};
use crate::handed::Read;
use crate::loaded::Loaded;
use crate::prediction::{TABLE, USUAL, in_memory, source, task};
use crate::signals::interruptible;
use crate::threads::{Reading, Threads, within};

/// How rows with nothing unusual are given, in messages.
pub(crate) const BY: &str = "as calibrate";

/// For each sequence its name, the number of its rows and their times as they would be written (if a column holds times); for all rows the values of the
/// targets `[N, targets]`, their forecasts `[N, targets]` and the surprise `[N]`, NaN where there is none; the threshold; and notes on the tables and the
/// threshold, a sentence each.
pub(crate) type Scored<'py> = (Vec<(String, usize, Option<Vec<String>>)>, [Bound<'py, PyArrayDyn<f64>>; 3], Option<f64>, Vec<String>);

/// How surprising the rows of `table` are, and the threshold above which a row is marked: more surprising than a share of the rows held out in training,
/// or of those of `usual`.
pub(crate) fn score<'py>(
    py: Python<'py>,
    loaded: &Arc<Loaded>,
    table: Read,
    usual: Option<Read>,
    share: f64,
    threads: Threads,
) -> Result<Scored<'py>> {
    let forecaster = expect_surprise(task(loaded)?)?;
    let pool = threads.pool(py, Reading::Sequences)?;
    let width = forecaster.target.len();
    let [mut values, mut expected, mut surprises] = [const { Vec::new() }; 3];
    let found = interruptible(py, |stop| {
        within(pool.as_deref(), || {
            let read = |name, read| ForecastRows::read(source(name, read, &mut PathBuf::new()), forecaster);
            let mut notes = Vec::new();
            // The answer to one that was stopped is not used.
            let usual = match usual {
                None => Usual::from(loaded.surprise.clone()),
                Some(usual) => {
                    let told = Usual::of_rows(USUAL, &read(USUAL, usual)?, &loaded.model, stop)?;
                    let (usual, of_usual) = told.unwrap_or((Usual::from(None), Vec::new()));
                    notes.extend(of_usual);
                    usual
                }
            };
            let rows = read(TABLE, table)?;
            score_rows(&loaded.model, &rows, stop, |_, _, row| {
                values.extend(row.values);
                expected.extend(row.expected.unwrap_or_else(|| vec![f64::NAN; width]));
                surprises.push(row.surprise.unwrap_or(f64::NAN));
                Ok(())
            })?;
            notes.extend(rows.notes());
            Ok::<_, minrnn::Error>((usual, rows, notes))
        })
    })?;
    let (usual, rows, mut notes) = found.map_err(in_memory)?;
    let (threshold, told) = usual.threshold(share, BY)?;
    notes.push(told);
    let array = |shape: &[usize], numbers: &[f64]| {
        filled(py, shape, |room| {
            room.copy_from_slice(numbers);
            Ok(())
        })
    };
    let n = surprises.len();
    let numbers = [array(&[n, width], &values)?, array(&[n, width], &expected)?, array(&[n], &surprises)?];
    let times = |series: &Series| series.times.iter().map(|&time| series.clock.write(time)).collect();
    let tells = |series: &&Series| !series.times.is_empty();
    let sequences = rows.series().iter().map(|series| (series.name.clone(), series.len(), Some(series).filter(tells).map(times)));
    Ok((sequences.collect(), numbers, threshold, notes))
}

/// The surprise that a share of the rows held out in training did not exceed, if known.
pub(crate) fn threshold(loaded: &Loaded, share: f64) -> Result<Option<f64>> {
    expect_surprise(task(loaded)?)?;
    Ok(Usual::from(loaded.surprise.clone()).threshold(share, BY)?.0)
}

/// The share of usual rows that is not marked, given as `threshold`.
pub(crate) fn share(threshold: &Bound<'_, PyAny>) -> Result<f64> {
    share_as("threshold", threshold)
}

/// The same, given as `share`.
pub(crate) fn own_share(share: &Bound<'_, PyAny>) -> PyResult<f64> {
    Ok(share_as("share", share)?)
}

fn share_as(name: &str, given: &Bound<'_, PyAny>) -> Result<f64> {
    let no_number = |_| Failure::new(Mistake::Kind, format!("{name}: expected a number, found {}", given.get_type()));
    let share: f64 = given.extract().map_err(no_number)?;
    Calibration::expect_share(share).map(|()| share).map_err(|error| Failure::input(format!("{name}: {error}")))
}
