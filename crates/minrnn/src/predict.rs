//! Predictions of a trained model for the sequences of a table.

use std::sync::atomic::{AtomicBool, Ordering};

use burn::tensor::{Tensor, TensorData};
use minrnn_model::ModelConfig;

use crate::data::table::{CHUNK_LEN, Prediction, Series, TableTask, WholeSeries};
use crate::memory::{Estimate, Sizes, inference};
use crate::model::SequenceModel;
use crate::nn::{Mixer, Mode, State};
use crate::{Result, expect_output};

/// Number of sequences read at once.
const BATCH_SIZE: usize = 32;

/// The memory that [`predict`] needs for `series` with a model of `config`, trained for `task`.
///
/// # Errors
/// When the configuration is not valid.
pub fn prediction_memory(config: &ModelConfig, task: &TableTask, series: &[Series]) -> Result<Estimate> {
    let longest = series.iter().map(|series| series.steps_of(task)).max().unwrap_or(0);
    let threads = rayon::current_num_threads();
    let (batch_size, seq_len) = (series.len().min(BATCH_SIZE), longest.min(CHUNK_LEN));
    let sizes = Sizes { batch_size, seq_len, scored: (batch_size * seq_len) as u128, threads };
    inference("prediction", config, sizes)
}

/// The predictions of `model` at the last step of each of `series`, read from its first step; `None` if `stop` was raised before the end.
///
/// # Errors
/// When a batch is inconsistent, or a prediction is not finite.
///
/// # Panics
/// When the model does not read the [`n_inputs`](TableTask::n_inputs) numbers of `task`, or predicts others than its
/// [`n_outputs`](TableTask::n_outputs).
pub fn predict<M: Mixer>(
    model: &SequenceModel<M>,
    task: &TableTask,
    series: &[Series],
    stop: &AtomicBool,
) -> Result<Option<Vec<Prediction>>> {
    let device = model.device();
    let width = task.n_inputs();
    let whole = WholeSeries::new(series.iter().map(|series| series.steps_of(task)).collect(), BATCH_SIZE, CHUNK_LEN);
    let batch_size = whole.batch_size();
    let mut state = model.init_state(batch_size);
    let mut predictions: Vec<Option<Prediction>> = vec![None; series.len()];
    for index in 0..whole.n_chunks() {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let chunk = whole.chunk(index);
        let mut inputs = vec![0.0; batch_size * chunk.seq_len * width];
        for (at, step, place) in chunk.places() {
            series[at].show(task, step, &mut inputs[place * width..][..width]);
        }
        let inputs = Tensor::<3>::from_data(TensorData::new(inputs, [batch_size, chunk.seq_len, width]), &device);
        let steps = chunk.segments.steps(batch_size, chunk.seq_len)?;
        let (outputs, after) = model.forward(inputs, state, &steps, Mode::Evaluate);
        state = after.detach();
        let n_outputs = outputs.dims()[2];
        let outputs = outputs.into_data().try_to_vec::<f32>().expect("outputs are f32");
        for (at, _, place) in chunk.places().filter(|&(at, step, _)| step + 1 == series[at].steps_of(task)) {
            predictions[at] = Some(finite(task, &series[at], &outputs[place * n_outputs..][..n_outputs])?);
        }
    }
    Ok(Some(predictions.into_iter().map(|prediction| prediction.expect("every sequence has a last step")).collect()))
}

/// The prediction from the `outputs` after the last step of `series`; refused unless it is finite.
pub(crate) fn finite(task: &TableTask, series: &Series, outputs: &[f32]) -> Result<Prediction> {
    let prediction = task.prediction(series.recent(series.len() - 1, task.reach()), outputs);
    let (Prediction::Classes(numbers) | Prediction::Values(numbers)) = &prediction;
    expect_output(|| series.describe(), outputs.iter().map(|&output| f64::from(output)).chain(numbers.iter().copied()))?;
    Ok(prediction)
}
