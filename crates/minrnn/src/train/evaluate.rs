//! Loss and accuracy of a model on a fixed list of batches.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use burn::tensor::{Device, Int, Tensor, TensorData};

use crate::data::{Batch, EvaluationSet};
use crate::model::LanguageModel;
use crate::nn::{Mode, State};
use crate::ops::cross_entropy;
use crate::{Result, nn};

/// The measures of an evaluation, over all scored predictions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation {
    /// Mean cross-entropy in nats.
    pub loss: f64,
    /// Share of predictions whose largest logit is the target.
    pub accuracy: f64,
    /// Scored predictions.
    pub n_scored: u64,
}

/// A batch as tensors.
pub(crate) struct BatchTensors {
    pub inputs: Tensor<2, Int>,
    pub targets: Arc<[i32]>,
    pub mask: Option<Arc<[f32]>>,
}

impl BatchTensors {
    pub(crate) fn new(batch: &Batch, device: &Device) -> Self {
        let inputs: Vec<i64> = batch.inputs.iter().map(|&id| i64::from(id)).collect();
        Self {
            inputs: Tensor::from_data(TensorData::new(inputs, [batch.batch_size, batch.seq_len]), device),
            targets: batch.targets.iter().map(|&id| id as i32).collect(),
            mask: batch.mask.as_deref().map(Into::into),
        }
    }
}

/// Scores `model` (below autodiff) on every batch of `set`; `None` when `stop` was raised before the end.
///
/// # Errors
/// When a batch cannot be read.
pub fn evaluate<M: nn::Mixer>(model: &LanguageModel<M>, set: &mut dyn EvaluationSet, stop: &AtomicBool) -> Result<Option<Evaluation>> {
    let device = model.device();
    let (mut loss, mut right, mut n_scored) = (0.0, 0u64, 0u64);
    let mut carried = None;
    for index in 0..set.n_batches() {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let batch = set.batch(index)?;
        let tensors = BatchTensors::new(&batch, &device);
        let steps = batch.segments.steps(batch.batch_size, batch.seq_len)?;
        let state = carried.take().unwrap_or_else(|| model.init_state(batch.batch_size));
        let (logits, state) = model.forward(tensors.inputs, state, &steps, Mode::Evaluate);
        carried = set.carries_state().then(|| state.detach());
        let logits = nn::linear::rows(logits);
        let n = batch.n_scored() as u64;
        right += count_right(&logits, &tensors.targets, tensors.mask.as_deref());
        let mean: f32 = cross_entropy(logits, tensors.targets, tensors.mask).into_scalar();
        loss += f64::from(mean) * n as f64;
        n_scored += n;
    }
    let n = n_scored.max(1) as f64;
    Ok(Some(Evaluation { loss: loss / n, accuracy: right as f64 / n, n_scored }))
}

fn count_right(logits: &Tensor<2>, targets: &[i32], mask: Option<&[f32]>) -> u64 {
    let classes = logits.dims()[1];
    let data = logits.clone().into_data();
    let values = data.as_slice::<f32>().expect("logits are f32");
    let is_right =
        |(row, &target): (&[f32], &i32)| row.iter().enumerate().all(|(class, &x)| class as i32 == target || x < row[target as usize]);
    let scored = |i: usize| mask.is_none_or(|mask| mask[i] != 0.0);
    values.chunks_exact(classes).zip(targets).enumerate().filter(|(i, _)| scored(*i)).filter(|(_, pair)| is_right(*pair)).count() as u64
}
