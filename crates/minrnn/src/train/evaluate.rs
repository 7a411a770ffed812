//! The measures of a model on a fixed list of batches.

use std::sync::atomic::{AtomicBool, Ordering};

use burn::tensor::Tensor;

use super::differentiate::MicroBatch;
use crate::data::EvaluationSet;
use crate::data::table::Comparison;
use crate::model::{LanguageModel, Targets};
use crate::nn::{Mode, State};
use crate::{Result, model, nn};

/// The measures of an evaluation, over all scored predictions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation {
    /// Mean loss: cross-entropy in nats where classes are predicted, the mean squared error where numbers are.
    pub loss: f64,
    /// Share of predictions whose largest logit is the target, where classes are predicted.
    pub accuracy: Option<f64>,
    /// Scored predictions.
    pub n_scored: u64,
}

/// Scores `model` (below autodiff) on every batch of `set`; `None` when `stop` was raised before the end.
///
/// # Errors
/// When a batch cannot be read.
pub fn evaluate<M: nn::Mixer>(model: &LanguageModel<M>, set: &mut dyn EvaluationSet, stop: &AtomicBool) -> Result<Option<Evaluation>> {
    compare(model, set, None, stop)
}

/// The same, and `comparison` sees everything that is predicted.
///
/// # Errors
/// When a batch cannot be read.
pub fn compare<M: nn::Mixer>(
    model: &LanguageModel<M>,
    set: &mut dyn EvaluationSet,
    mut comparison: Option<&mut (dyn Comparison + 'static)>,
    stop: &AtomicBool,
) -> Result<Option<Evaluation>> {
    let device = model.device();
    let (mut loss, mut right, mut n_scored) = (0.0, None, 0u64);
    let mut carried = None;
    for index in 0..set.n_batches() {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let batch = set.batch(index)?;
        let MicroBatch { inputs, targets, mask, steps } = MicroBatch::new(&batch, &device)?;
        let state = carried.take().unwrap_or_else(|| model.init_state(batch.batch_size));
        let (predicted, state) = model.forward(inputs, state, &steps, Mode::Evaluate);
        carried = set.carries_state().then(|| state.detach());
        let n = batch.n_scored() as u64;
        if n == 0 {
            continue;
        }
        if let Some(comparison) = &mut comparison {
            comparison.add(&batch, &predicted.clone().into_data().try_to_vec::<f32>().expect("outputs are f32"));
        }
        if let Targets::Classes(classes) = &targets {
            *right.get_or_insert(0) += count_right(&nn::linear::rows(predicted.clone()), classes, mask.as_deref());
        }
        let mean: f32 = model::loss(predicted, targets, mask).into_scalar();
        loss += f64::from(mean) * n as f64;
        n_scored += n;
    }
    let n = n_scored.max(1) as f64;
    Ok(Some(Evaluation { loss: loss / n, accuracy: right.map(|right: u64| right as f64 / n), n_scored }))
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
