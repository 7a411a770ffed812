//! Predictions of a deployed model for the sequences of a table.

use std::sync::atomic::{AtomicBool, Ordering};

use minrnn_model::{Prediction, TableTask};
use minrnn_stream::{Model, Workspace};

use crate::Result;
use crate::data::table::Series;
use crate::predict::finite;

/// Sequences read at once.
const BATCH_SIZE: usize = 32;
/// Steps of each between two looks at `stop`.
const CHUNK_LEN: usize = 1 << 14;

/// What `model` says at the last step of each of `series`, each read from its first step on; `None` when `stop` was raised before the end.
///
/// # Errors
/// When the model does not read the columns of `task`, or what is predicted for a sequence is no number.
pub fn predict(model: &Model, task: &TableTask, series: &[Series], stop: &AtomicBool) -> Result<Option<Vec<Prediction>>> {
    let (mut workspace, mut predictions) = (Workspace::new(), Vec::with_capacity(series.len()));
    for bunch in series.chunks(BATCH_SIZE) {
        let mut state = model.init_state(bunch.len())?;
        // All but the last step of each, which have different numbers of them.
        let longest = bunch.iter().map(|series| series.len() - 1).max().unwrap_or(0);
        for start in (0..longest).step_by(CHUNK_LEN) {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let part = |series: &Series| series.seen(task, start..(series.len() - 1).min(start + CHUNK_LEN));
            model.advance_values(&bunch.iter().map(part).collect::<Vec<_>>(), &mut state, &mut workspace)?;
        }
        let last: Vec<f32> = bunch.iter().flat_map(|series| series.seen(task, series.len() - 1..series.len())).collect();
        let mut outputs = vec![0.0; bunch.len() * model.outputs()];
        model.step_values(&last, &mut state, &mut outputs, &mut workspace)?;
        for (series, outputs) in bunch.iter().zip(outputs.chunks_exact(model.outputs())) {
            predictions.push(finite(task, series, outputs)?);
        }
    }
    Ok(Some(predictions))
}
