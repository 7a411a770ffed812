//! Predictions of a deployed model for the sequences of a table.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use minrnn_model::{ModelConfig, Prediction, TableTask};
use minrnn_stream::{Model, Workspace, ambient_threads, expect_task_of};
use rayon::prelude::*;

use crate::Result;
use crate::data::table::Series;
use crate::memory::{Estimate, Part, Run, running};
use crate::predict::finite;

/// Number of steps of each sequence between two checks of `stop`.
const CHUNK_LEN: usize = 2048;
/// Number of sequences in a bunch that has enough steps.
const ENOUGH: usize = 8;
/// Number of steps in a bunch that keep the arithmetic busy.
const ENOUGH_STEPS: usize = 512;
/// Maximum number of sequences in a bunch with fewer steps.
const MOST: usize = 32;
/// Bytes of a number that is predicted: itself, and its share of the text of an answer, with the names beside it. Measured.
const PREDICTED: u128 = 48;

/// The memory that [`predict`] needs for `series` in addition to the model of `config`, trained for `task`, with all its predictions as a text.
///
/// # Errors
/// When the configuration is not valid.
pub fn prediction_memory(config: &ModelConfig, task: &TableTask, series: &[Series]) -> Result<Estimate> {
    let threads = ambient_threads();
    let steps = series.iter().map(|series| series.steps_of(task)).max().unwrap_or(0);
    let largest = bunches(task, series).iter().map(|bunch| bunch.len()).max().unwrap_or(0);
    let sessions = series.len().min(largest.saturating_mul(threads));
    let run = Run { sessions, steps, threads, read: sessions.saturating_mul(steps.min(CHUNK_LEN)), predicted: sessions };
    let mut needed = running("prediction", config, run)?;
    let bytes = (series.len() as u128).saturating_mul(config.outputs() as u128).saturating_mul(PREDICTED);
    needed.parts.push(Part { name: "predictions", bytes, remedies: &["take fewer sequences at a time"] });
    Ok(needed)
}

/// The predictions of `model` at the last step of each of `series`, read from its first step; `None` if `stop` was raised before the end.
/// The threads of the ambient pool read different sequences.
///
/// # Errors
/// When `task` is that of another model, or a prediction is not finite: the error names the first such sequence.
pub fn predict(model: &Model, task: &TableTask, series: &[Series], stop: &AtomicBool) -> Result<Option<Vec<Prediction>>> {
    expect_task_of(model, task)?;
    let (bunches, threads) = (bunches(task, series), ambient_threads());
    let read = |workspace: &mut Workspace, bunch: &[Series]| of_bunch(model, task, bunch, workspace, stop);
    let found: Vec<Option<Vec<Prediction>>> = if threads > 1 && bunches.len() > 1 {
        let workspace = || {
            let mut workspace = Workspace::new();
            workspace.set_threads((threads / bunches.len()).max(1));
            workspace
        };
        // After a faulty bunch nothing needs to be read, but everything before it does: an earlier one may be the first fault.
        let at_fault = AtomicUsize::new(usize::MAX);
        let read = |workspace: &mut Workspace, (at, bunch): (usize, &&[Series])| match at_fault.load(Ordering::Relaxed) < at {
            true => Ok(None),
            false => read(workspace, bunch).inspect_err(|_| _ = at_fault.fetch_min(at, Ordering::Relaxed)),
        };
        let found: Vec<Result<_>> = bunches.par_iter().enumerate().map_init(workspace, read).collect();
        found.into_iter().collect::<Result<_>>()?
    } else {
        let mut workspace = Workspace::new();
        bunches.iter().map(|bunch| read(&mut workspace, bunch)).collect::<Result<_>>()?
    };
    Ok(found.into_iter().collect::<Option<Vec<_>>>().map(|found| found.into_iter().flatten().collect()))
}

/// The sequences that are read together, regardless of the number of threads, on which no prediction may depend.
fn bunches<'a>(task: &TableTask, mut series: &'a [Series]) -> Vec<&'a [Series]> {
    let mut bunches = Vec::new();
    while !series.is_empty() {
        let (mut n, mut steps) = (0, 0);
        while n < series.len().min(MOST) && (n < ENOUGH || steps < ENOUGH_STEPS) {
            steps += series[n].steps_of(task);
            n += 1;
        }
        let (bunch, rest) = series.split_at(n);
        bunches.push(bunch);
        series = rest;
    }
    bunches
}

/// The same for sequences that are read together.
fn of_bunch(
    model: &Model,
    task: &TableTask,
    bunch: &[Series],
    workspace: &mut Workspace,
    stop: &AtomicBool,
) -> Result<Option<Vec<Prediction>>> {
    let mut state = model.init_state(bunch.len())?;
    // All but the last step of each, since they differ in length.
    let longest = bunch.iter().map(|series| series.steps_of(task) - 1).max().unwrap_or(0);
    for start in (0..longest).step_by(CHUNK_LEN) {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let part = |series: &Series| series.seen(task, start..(series.steps_of(task) - 1).min(start + CHUNK_LEN));
        model.advance_values(&bunch.iter().map(part).collect::<Vec<_>>(), &mut state, workspace)?;
    }
    let last: Vec<f32> = bunch.iter().flat_map(|series| series.seen(task, series.steps_of(task) - 1..series.steps_of(task))).collect();
    let mut outputs = vec![0.0; bunch.len() * model.outputs()];
    model.step_values(&last, &mut state, &mut outputs, workspace)?;
    let predictions = bunch.iter().zip(outputs.chunks_exact(model.outputs()));
    predictions.map(|(series, outputs)| finite(task, series, outputs)).collect::<Result<_>>().map(Some)
}
