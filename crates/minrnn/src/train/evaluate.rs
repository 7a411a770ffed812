//! Scores a model on a fixed list of batches.

use std::sync::atomic::{AtomicBool, Ordering};

use minrnn_model::log_sum_exp;
use serde::{Deserialize, Serialize};

use super::differentiate::MicroBatch;
use super::group::Group;
use super::predictor::{Predictor, Wanted};
use crate::Result;
use crate::data::table::Comparison;
use crate::data::{Batch, EvaluationSet};
use crate::model::{Scored, Targets};

/// The scores of an evaluation, over all scored predictions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation {
    /// Mean loss: cross-entropy in nats for classes, mean squared error for numbers, pinball loss for quantiles.
    pub loss: f64,
    /// Share of predictions whose largest logit is the target, if classes are predicted.
    pub accuracy: Option<f64>,
    /// Number of scored predictions.
    pub n_scored: u64,
}

impl Evaluation {
    /// The [scaled accuracy](scaled_accuracy), if there is an accuracy.
    pub fn scaled_accuracy(&self, chance: f64) -> Option<f64> {
        self.accuracy.map(|accuracy| scaled_accuracy(accuracy, chance))
    }
}

/// `accuracy` on a scale where guessing, right with probability `chance`, is 0 and perfection is 1.
pub fn scaled_accuracy(accuracy: f64, chance: f64) -> f64 {
    (accuracy - chance) / (1.0 - chance)
}

/// The accuracy whose [scaled accuracy](scaled_accuracy) is `scaled`.
pub fn unscaled_accuracy(scaled: f64, chance: f64) -> f64 {
    chance + scaled * (1.0 - chance)
}

/// Scores `model` (below autodiff) on every batch of `set`; `None` if `stop` was raised before the end.
///
/// # Errors
/// When a batch cannot be read, is inconsistent, or does not have the inputs and targets of the model.
pub fn evaluate(model: &impl Predictor, set: &mut dyn EvaluationSet, stop: &AtomicBool) -> Result<Option<Evaluation>> {
    compare(&Group::alone(), model, set, None, stop)
}

/// As [`evaluate`], with the batches distributed among the processes of `group`, and all predictions passed to `comparison`. Scores are
/// added in the order of batches, so their bits do not depend on the number of processes.
///
/// # Errors
/// As [`evaluate`], on any of the processes.
pub fn compare(
    group: &Group,
    model: &impl Predictor,
    set: &mut dyn EvaluationSet,
    mut comparison: Option<&mut (dyn Comparison + 'static)>,
    stop: &AtomicBool,
) -> Result<Option<Evaluation>> {
    let wanted = if comparison.is_some() { Wanted::All } else { Wanted::Scored };
    // A state carried from batch to batch stays within one process.
    let sharing = if set.carries_state() { 1 } else { group.size() as u64 };
    let (mut carried, mut sums) = (None, Sums::default());
    for first in (0..set.n_batches()).step_by(sharing as usize) {
        let round = first..(first + sharing).min(set.n_batches());
        let own = Some(first + group.rank() as u64).filter(|own| round.contains(own));
        let stopped = stop.load(Ordering::Relaxed);
        let mut batches = Vec::new();
        let mut score = || {
            for index in round.clone() {
                // Predictions of other processes are compared here too.
                let is_needed = own == Some(index) || comparison.is_some();
                batches.push(if is_needed { Some(set.batch(index)?) } else { None });
            }
            let own = own.and_then(|own| Some((own, batches[(own - first) as usize].as_ref()?)));
            let Some((index, batch)) = own else { return Ok(None) };
            let (scored, state) = model.predict(prepared(model, batch)?, carried.take(), wanted);
            carried = set.carries_state().then_some(state);
            let looks_past = || comparison.as_deref().is_some_and(|comparison| comparison.looks_past(index, batch));
            let is_taken = batch.n_targets() > 0 || looks_past();
            Ok(is_taken.then(|| BatchScore::new(batch, scored, comparison.is_some())))
        };
        let scored = if stopped { Ok(None) } else { score() };
        let scored = group.agree_all(scored.map(|scored| (stopped, scored)))?;
        if scored.iter().any(|(stopped, _)| *stopped) {
            return Ok(None);
        }
        for ((index, batch), (_, scored)) in round.zip(batches).zip(scored) {
            let Some(scored) = scored else { continue };
            if let (Some(comparison), Some(batch)) = (&mut comparison, &batch) {
                comparison.add(index, batch, &scored.predicted());
            }
            sums.add(&scored);
        }
    }
    Ok(Some(sums.evaluation()))
}

/// `batch` as `model` reads it.
///
/// # Errors
/// When its parts do not fit one another, or its inputs and targets do not fit the model.
fn prepared(model: &impl Predictor, batch: &Batch) -> Result<MicroBatch> {
    let micro = MicroBatch::new(batch, &model.device())?;
    model.check(batch)?;
    Ok(micro)
}

/// The contribution of one batch to an evaluation; it is sent between processes with its bits preserved.
#[derive(Serialize, Deserialize)]
struct BatchScore {
    /// The mean loss, as bits.
    mean: u32,
    right: Option<u64>,
    n_targets: u64,
    n_scored: u64,
    /// All outputs as bits, if they are compared.
    predicted: Vec<u32>,
}

impl BatchScore {
    fn new(batch: &Batch, scored: Scored, with_outputs: bool) -> Self {
        let outputs = || scored.predicted.clone().into_data().try_to_vec::<f32>().expect("outputs are f32");
        let predicted = if with_outputs { outputs().into_iter().map(f32::to_bits).collect() } else { Vec::new() };
        let mut right = None;
        if let Targets::Classes(classes) = &scored.targets {
            let mut count = 0;
            for_each_row(&scored, classes, |logits, target| count += u64::from(is_right(logits, target)));
            right = Some(count);
        }
        let n_targets = batch.n_targets() as u64;
        // Without targets there is no mean.
        let mean = if n_targets > 0 { scored.loss().into_scalar::<f32>().to_bits() } else { 0 };
        Self { mean, right, n_targets, n_scored: batch.n_scored() as u64, predicted }
    }

    fn predicted(&self) -> Vec<f32> {
        self.predicted.iter().map(|&bits| f32::from_bits(bits)).collect()
    }
}

/// Running sums of the measures of an evaluation.
#[derive(Default)]
struct Sums {
    loss: f64,
    right: Option<u64>,
    n_targets: u64,
    n_scored: u64,
}

impl Sums {
    fn add(&mut self, scored: &BatchScore) {
        self.loss += f64::from(f32::from_bits(scored.mean)) * scored.n_targets as f64;
        if let Some(right) = scored.right {
            *self.right.get_or_insert(0) += right;
        }
        self.n_targets += scored.n_targets;
        self.n_scored += scored.n_scored;
    }

    fn evaluation(self) -> Evaluation {
        let accuracy = self.right.map(|right| right as f64 / self.n_scored.max(1) as f64);
        Evaluation { loss: self.loss / self.n_targets.max(1) as f64, accuracy, n_scored: self.n_scored }
    }
}

/// Runs `model` (below autodiff) on every batch of `set` and passes each scored prediction of a class to `see`: the class, its loss in
/// nats, and whether it is right. Returns false if `stop` was raised before the end.
///
/// # Errors
/// As [`evaluate`].
pub(super) fn evaluate_each(
    model: &impl Predictor,
    set: &mut dyn EvaluationSet,
    stop: &AtomicBool,
    mut see: impl FnMut(usize, f64, bool),
) -> Result<bool> {
    for_each_prediction(model, set, stop, |logits, target| see(target, loss_of(logits, target), is_right(logits, target)))
}

/// The same, passing the logits of each prediction and its class.
pub(super) fn for_each_prediction(
    model: &impl Predictor,
    set: &mut dyn EvaluationSet,
    stop: &AtomicBool,
    mut see: impl FnMut(&[f32], usize),
) -> Result<bool> {
    let mut carried = None;
    for index in 0..set.n_batches() {
        if stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let batch = set.batch(index)?;
        let (scored, state) = model.predict(prepared(model, &batch)?, carried.take(), Wanted::Scored);
        carried = set.carries_state().then_some(state);
        if let Targets::Classes(classes) = &scored.targets
            && batch.n_targets() > 0
        {
            for_each_row(&scored, classes, &mut see);
        }
    }
    Ok(true)
}

/// Passes the logits of every scored position, with its class, to `see`.
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
    log_sum_exp(logits) - f64::from(logits[target])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accuracies_are_scaled_between_guessing_and_knowing() {
        let scaled = |accuracy, chance| Evaluation { loss: 0.0, accuracy, n_scored: 1 }.scaled_accuracy(chance);
        // The published 0.79 on cycle navigation, where guessing one of five places is right with 0.2.
        assert!((scaled(Some(0.79), 0.2).unwrap() - 0.7375).abs() < 1e-12);
        assert_eq!([0.5, 1.0, 0.0].map(|accuracy| scaled(Some(accuracy), 0.5)), [Some(0.0), Some(1.0), Some(-1.0)]);
        assert_eq!(scaled(None, 0.5), None);
        assert!((unscaled_accuracy(0.7375, 0.2) - 0.79).abs() < 1e-12);
    }

    #[test]
    fn a_prediction_is_scored_by_the_softmax_of_its_row() {
        assert!((loss_of(&[0.0, 0.0], 1) - std::f64::consts::LN_2).abs() < 1e-12);
        assert!((loss_of(&[1000.0, 0.0], 1) - 1000.0).abs() < 1e-9);
        assert!(is_right(&[0.0, 2.0, 1.0], 1) && !is_right(&[0.0, 2.0, 2.0], 1));
    }
}
