//! How surprising each row of a table is to a forecaster; the table is read as the command reads one.

use std::path::PathBuf;
use std::sync::Arc;

use minrnn::data::table::{ForecastRows, Forecaster, Series, TableTask};
use minrnn::deployed::{Usual, calibrate_rows, score_rows};
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
    let forecaster = forecaster(loaded)?;
    let pool = threads.pool(py, Reading::Sequences)?;
    let width = forecaster.target.len();
    let [mut values, mut expected, mut surprises] = [const { Vec::new() }; 3];
    let found = interruptible(py, |stop| {
        within(pool.as_deref(), || {
            let read = |name, read| ForecastRows::read(source(name, read, &mut PathBuf::new()), forecaster);
            let mut notes = Vec::new();
            let calibration = match usual {
                None => loaded.surprise.clone(),
                Some(usual) => {
                    let rows = read(USUAL, usual)?;
                    notes.extend(rows.notes().iter().map(|note| format!("{USUAL}: {note}")));
                    calibrate_rows(&loaded.model, &rows, stop)?
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
            Ok::<_, minrnn::Error>((calibration, rows, notes))
        })
    })?;
    let (calibration, rows, mut notes) = found.map_err(in_memory)?;
    let (threshold, told) = Usual::from(calibration).threshold(share, BY)?;
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

/// The share of usual rows that is not marked.
pub(crate) fn share(threshold: &Bound<'_, PyAny>) -> Result<f64> {
    let no_number = |_| Failure::new(Mistake::Kind, format!("threshold: expected a number, found {}", threshold.get_type()));
    let share: f64 = threshold.extract().map_err(no_number)?;
    if share > 0.0 && share < 1.0 {
        return Ok(share);
    }
    Err(Failure::input(format!("threshold: expected a share of rows above 0 and below 1, such as 0.999, found {share:?}")))
}

/// The model's task as a forecaster whose forecasts tell how likely a value is.
fn forecaster(loaded: &Loaded) -> Result<&Forecaster> {
    let refused = |sentence: &str| Err(Failure::new(Mistake::Kind, sentence));
    match task(loaded)? {
        TableTask::Forecast(forecaster) if forecaster.tells_surprise() => Ok(forecaster),
        TableTask::Forecast(_) => {
            refused("the model forecasts a single number without a spread to judge surprise by; train it with quantiles=[0.1, 0.5, 0.9]")
        }
        TableTask::Classify(_) | TableTask::Regress(_) => {
            refused("the model labels whole sequences and predicts no rows, which are scored by a forecaster: minrnn.train('forecast', …)")
        }
    }
}
