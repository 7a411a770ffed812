//! How likely every row of a table was according to a forecaster.

use std::sync::atomic::{AtomicBool, Ordering};

use minrnn_model::{Calibration, ModelConfig};
use minrnn_stream::{Model, Workspace, expect_task_of};

use crate::data::table::{ForecastRow, ForecastRows, Series};
use crate::memory::{Estimate, Run, running};
use crate::{Result, expect_output};

/// Number of steps between two checks of `stop`.
const CHUNK_LEN: usize = 512;

/// The memory that [`score_rows`] needs for `rows` in addition to the model of `config`.
///
/// # Errors
/// When the configuration is not valid.
pub fn scoring_memory(config: &ModelConfig, rows: &ForecastRows) -> Result<Estimate> {
    let steps = rows.series().iter().map(Series::len).max().unwrap_or(0);
    let read = steps.min(CHUNK_LEN);
    running("scoring", config, Run { sessions: 1, steps, threads: 1, read, predicted: read })
}

/// Calls `see` with every row of `rows`, its sequence and its step, and what `model` forecast for it one step before; returns false if
/// `stop` was raised before the end.
///
/// # Errors
/// When `rows` were read for another model, a surprise is not finite, or any error of `see`.
pub fn score_rows(
    model: &Model,
    rows: &ForecastRows,
    stop: &AtomicBool,
    mut see: impl FnMut(usize, usize, ForecastRow) -> Result<()>,
) -> Result<bool> {
    expect_task_of(model, rows.task())?;
    let width = model.outputs();
    let (mut workspace, mut state) = (Workspace::new(), model.init_state(1)?);
    let (mut outputs, mut before): (Vec<f32>, Vec<f32>) = (Vec::new(), Vec::new());
    for (at, series) in rows.series().iter().enumerate() {
        model.restart(&mut state, 0)?;
        before.clear();
        for start in (0..series.len()).step_by(CHUNK_LEN) {
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let steps = start..series.len().min(start + CHUNK_LEN);
            outputs.resize(steps.len() * width, 0.0);
            model.forward_values(&rows.inputs(at, steps.clone()), &mut state, &mut outputs, &mut workspace)?;
            for (step, outputs) in steps.zip(outputs.chunks_exact(width)) {
                let row = rows.row(at, step, Some(before.as_slice()).filter(|before| !before.is_empty()));
                let numbers = row.surprise.iter().chain(row.expected.iter().flatten());
                expect_output(|| series.describe(), numbers.copied())?;
                see(at, step, row)?;
                before.clear();
                before.extend_from_slice(outputs);
            }
        }
    }
    Ok(true)
}

/// How surprising the rows of `rows` are to `model`, as a basis for comparison with others; `None` if `stop` was raised before the end.
///
/// # Errors
/// When `rows` were read for another model, or a surprise is not finite.
pub fn calibrate_rows(model: &Model, rows: &ForecastRows, stop: &AtomicBool) -> Result<Option<Calibration>> {
    let mut surprises = Vec::new();
    let is_whole = score_rows(model, rows, stop, |_, _, row| {
        surprises.extend(row.surprise);
        Ok(())
    })?;
    Ok(is_whole.then(|| Calibration::of(surprises)))
}
