//! The measures of a model on a fixed list of batches.

use std::sync::atomic::{AtomicBool, Ordering};

use super::differentiate::MicroBatch;
use super::predictor::{Predictor, Wanted};
use crate::Result;
use crate::data::table::Comparison;
use crate::data::{Batch, EvaluationSet};
use crate::model::{Scored, Targets};

/// The measures of an evaluation, over all scored predictions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation {
    /// Mean loss: cross-entropy in nats where classes are predicted, the mean squared error where numbers are, and the pinball loss where
    /// quantiles are.
    pub loss: f64,
    /// Share of predictions whose largest logit is the target, where classes are predicted.
    pub accuracy: Option<f64>,
    /// Scored predictions.
    pub n_scored: u64,
}

impl Evaluation {
    /// The accuracy, where there is one, on a scale on which guessing, right with probability `chance`, is 0 and knowing is 1.
    pub fn scaled_accuracy(&self, chance: f64) -> Option<f64> {
        self.accuracy.map(|accuracy| (accuracy - chance) / (1.0 - chance))
    }
}

/// Scores `model` (below autodiff) on every batch of `set`; `None` when `stop` was raised before the end.
///
/// # Errors
/// When a batch cannot be read.
pub fn evaluate(model: &impl Predictor, set: &mut dyn EvaluationSet, stop: &AtomicBool) -> Result<Option<Evaluation>> {
    compare(model, set, None, stop)
}

/// The same, and `comparison` sees everything that is predicted.
///
/// # Errors
/// When a batch cannot be read.
pub fn compare(
    model: &impl Predictor,
    set: &mut dyn EvaluationSet,
    mut comparison: Option<&mut (dyn Comparison + 'static)>,
    stop: &AtomicBool,
) -> Result<Option<Evaluation>> {
    let (mut loss, mut right, mut n_scored, mut n_targets) = (0.0, None, 0u64, 0u64);
    let wanted = if comparison.is_some() { Wanted::All } else { Wanted::Scored };
    let finished = for_each_batch(model, set, stop, wanted, |index, batch, scored| {
        let n = batch.n_targets() as u64;
        if let Some(comparison) = &mut comparison {
            comparison.add(index, batch, &scored.predicted.clone().into_data().try_to_vec::<f32>().expect("outputs are f32"));
        }
        if let Targets::Classes(classes) = &scored.targets {
            let mut count = 0;
            for_each_row(&scored, classes, |logits, target| count += u64::from(is_right(logits, target)));
            *right.get_or_insert(0) += count;
        }
        let mean: f32 = scored.loss().into_scalar();
        loss += f64::from(mean) * n as f64;
        n_targets += n;
        n_scored += batch.n_scored() as u64;
    })?;
    let accuracy = right.map(|right: u64| right as f64 / n_scored.max(1) as f64);
    Ok(finished.then_some(Evaluation { loss: loss / n_targets.max(1) as f64, accuracy, n_scored }))
}

/// Runs `model` (below autodiff) on every batch of `set` and hands each scored prediction of a class to `see`: the class, its loss in nats,
/// and whether it is right. False when `stop` was raised before the end.
///
/// # Errors
/// When a batch cannot be read.
pub(super) fn evaluate_each(
    model: &impl Predictor,
    set: &mut dyn EvaluationSet,
    stop: &AtomicBool,
    mut see: impl FnMut(usize, f64, bool),
) -> Result<bool> {
    for_each_prediction(model, set, stop, |logits, target| see(target, loss_of(logits, target), is_right(logits, target)))
}

/// The same with the logits of each prediction, and its class.
pub(super) fn for_each_prediction(
    model: &impl Predictor,
    set: &mut dyn EvaluationSet,
    stop: &AtomicBool,
    mut see: impl FnMut(&[f32], usize),
) -> Result<bool> {
    for_each_batch(model, set, stop, Wanted::Scored, |_, _, scored| {
        let Targets::Classes(classes) = &scored.targets else { return };
        for_each_row(&scored, classes, &mut see);
    })
}

/// Runs `model` (below autodiff) on every batch of `set` and hands it to `see` with its index and what is `wanted` of its predictions; false when
/// `stop` was raised before the end.
fn for_each_batch(
    model: &impl Predictor,
    set: &mut dyn EvaluationSet,
    stop: &AtomicBool,
    wanted: Wanted,
    mut see: impl FnMut(u64, &Batch, Scored),
) -> Result<bool> {
    let device = model.device();
    let mut carried = None;
    for index in 0..set.n_batches() {
        if stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let batch = set.batch(index)?;
        let (scored, state) = model.predict(MicroBatch::new(&batch, &device)?, carried.take(), wanted);
        carried = set.carries_state().then_some(state);
        if batch.n_targets() > 0 {
            see(index, &batch, scored);
        }
    }
    Ok(true)
}

/// Hands the logits of every scored position to `see`, with its class.
fn for_each_row(scored: &Scored, classes: &[i32], mut see: impl FnMut(&[f32], usize)) {
    let n = scored.predicted.dims()[1];
    let data = scored.predicted.clone().into_data();
    let rows = data.as_slice::<f32>().expect("logits are f32").chunks_exact(n);
    for (i, (row, &class)) in rows.zip(classes).enumerate() {
        if scored.mask.as_ref().is_none_or(|mask| mask[i] != 0.0) {
            see(row, class as usize);
        }
    }
}

/// Whether the target's logit is larger than all others.
pub(crate) fn is_right(logits: &[f32], target: usize) -> bool {
    logits.iter().enumerate().all(|(class, &x)| class == target || x < logits[target])
}

/// −ln softmax(logits)[target].
pub(crate) fn loss_of(logits: &[f32], target: usize) -> f64 {
    let largest = logits.iter().fold(f64::NEG_INFINITY, |largest, &x| largest.max(f64::from(x)));
    let sum: f64 = logits.iter().map(|&x| (f64::from(x) - largest).exp()).sum();
    sum.ln() + largest - f64::from(logits[target])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accuracies_are_scaled_between_guessing_and_knowing() {
        let scaled = |accuracy, chance| Evaluation { loss: 0.0, accuracy, n_scored: 1 }.scaled_accuracy(chance);
        // The published 0.79 on cycle navigation, whose five places are guessed with 0.2.
        assert!((scaled(Some(0.79), 0.2).unwrap() - 0.7375).abs() < 1e-12);
        assert_eq!([0.5, 1.0, 0.0].map(|accuracy| scaled(Some(accuracy), 0.5)), [Some(0.0), Some(1.0), Some(-1.0)]);
        assert_eq!(scaled(None, 0.5), None);
    }

    #[test]
    fn a_prediction_is_scored_by_the_softmax_of_its_row() {
        assert!((loss_of(&[0.0, 0.0], 1) - std::f64::consts::LN_2).abs() < 1e-12);
        assert!((loss_of(&[1000.0, 0.0], 1) - 1000.0).abs() < 1e-9);
        assert!(is_right(&[0.0, 2.0, 1.0], 1) && !is_right(&[0.0, 2.0, 2.0], 1));
    }
}
