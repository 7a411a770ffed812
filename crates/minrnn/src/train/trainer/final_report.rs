//! The final scores of a run, and which of its checkpoints to use.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use minrnn_model::{Calibration, CheckpointFiles};

use super::Trainer;
use crate::checkpoint::SURPRISE_FILE;
use crate::data::table::{Comparison, Confusion, Example, Measure, Spreads};
use crate::rng::Purpose;
use crate::train::bits_per_byte::TextSize;
use crate::train::data::{Data, FINAL_BATCHES, Windows, full_pass};
use crate::train::evaluate::{Evaluation, compare};
use crate::train::run_dir::Pointer;
use crate::train::train_config::TrainConfig;
use crate::{Error, Result};

/// The final scores of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct FinalReport {
    /// The checkpoint to use: the kept one that scored best on the report's batches, or after a second round the one that learned from all
    /// data.
    pub checkpoint: PathBuf,
    /// The checkpoint that the scores belong to.
    pub scored: PathBuf,
    /// Number of updates before that checkpoint.
    pub iteration: u64,
    /// The scores on fixed batches, [`FINAL_BATCHES`] unless training was short, or on the test part of finite data.
    pub fixed: Evaluation,
    /// That loss in bits per byte of the test part, for a text.
    pub bits_per_byte: Option<f64>,
    /// Number of batches that each checkpoint was scored on, if training was too short for all.
    pub shortened_to: Option<u64>,
    /// Measures in the data's own units, beside a baseline's.
    pub compared: Vec<Measure>,
    /// The confusion matrix, for a table with classes.
    pub confusion: Option<Confusion>,
    /// Single sequences, worst first.
    pub examples: Vec<Example>,
    /// The scores of each kept checkpoint on the same batches, by iteration; for finite data only the one that validated best.
    pub kept: Vec<(u64, Evaluation)>,
    /// The divisor of the used model's logits, for calibrated probabilities.
    pub temperature: Option<f64>,
    /// The spread of the used model's quantiles, for calibrated intervals.
    pub spreads: Option<Spreads>,
    /// The scores of one pass over the whole test text, each window starting from the initial state; `None` if that has more batches than
    /// training had.
    pub full_pass: Option<Evaluation>,
}

impl Trainer {
    /// Scores the kept checkpoints of a text, or the one chosen by the validation batches of a task, on fixed test batches
    /// ([`final_batches`] of them); makes the best of them the run's best, and scores it in one pass over the test text. The surprise of
    /// held-out rows is stored with it. `None` if `stop` was raised.
    ///
    /// # Errors
    /// When a checkpoint cannot be read, or the run cannot be written.
    pub fn final_report(&self, stop: &AtomicBool) -> Result<Option<FinalReport>> {
        let (mut best, mut kept): (Option<Candidate>, _) = (None, Vec::new());
        let refitted = self.progress.refit.map(|_| self.checkpoint(Pointer::Last)).transpose()?.flatten();
        let candidates = match (&refitted, self.checkpoint(Pointer::Scored)?) {
            (Some(_), Some(scored)) => vec![(self.progress.refit.map_or(0, |refit| refit.updates), scored)],
            (Some(refitted), None) => vec![(self.progress.iteration, refitted.clone())],
            (None, _) => self.kept()?,
        };
        let (train, task) = (&self.experiment.train, self.experiment.data.task);
        let n_batches = final_batches(train, self.progress.iteration, candidates.len() as u64);
        for (iteration, path) in candidates {
            let set = self.data.fixed_batches(&self.experiment, n_batches, Purpose::TestData);
            let (mut set, model) = self.group.agree(set.and_then(|set| Ok((set, self.read_model(&path)?))))?;
            let mut comparison = self.data.comparison(Purpose::TestData);
            // The model to use is not the one that is scored.
            if let (Some(comparison), Some(spreads)) = (&mut comparison, &self.progress.spreads)
                && refitted.as_ref().is_some_and(|refitted| *refitted != path)
            {
                comparison.spread_by(spreads);
            }
            let Some(evaluation) = compare(&self.group, &model, &mut *set, comparison.as_deref_mut(), stop)? else { return Ok(None) };
            kept.push((iteration, evaluation));
            if best.as_ref().is_none_or(|best| task.score(&evaluation) < task.score(&best.evaluation)) {
                best = Some(Candidate { path, iteration, evaluation, comparison });
            }
        }
        let Some(best) = best else {
            let problem = "the run has no checkpoint to report on; train it first";
            return self.group.alike(Err(Error::malformed(self.run.path(), problem)));
        };
        let checkpoint = refitted.unwrap_or_else(|| best.path.clone());
        self.group.tell(|| {
            self.run.make_best(&checkpoint)?;
            let [of_scored, when_spread] = best.surprises();
            let of_used = when_spread.as_ref().or(of_scored.as_ref());
            for (path, surprise) in [(&best.path, of_scored.as_ref()), (&checkpoint, of_used)] {
                if let Some(surprise) = surprise {
                    CheckpointFiles::add(path, SURPRISE_FILE, surprise.to_json().as_bytes())?;
                }
            }
            Ok(())
        })?;
        let full_pass = match &self.data {
            Data::Text { text, .. } => {
                let set = full_pass(text.test().clone(), &self.experiment, Windows::Anew);
                let (mut set, model) = self.group.agree(set.and_then(|set| Ok((set, self.read_model(&checkpoint)?))))?;
                if set.n_batches() > trained_on(train, self.progress.iteration).max(train.eval_iterations) {
                    None
                } else {
                    let Some(evaluation) = compare(&self.group, &model, &mut *set, None, stop)? else { return Ok(None) };
                    Some(evaluation)
                }
            }
            Data::Task(_) => None,
        };
        let size = match &self.data {
            Data::Text { text, tokenizer } => {
                let mut size = None;
                let found = TextSize::of_part(text.test(), tokenizer, stop).map(|found| {
                    size = found;
                    size.is_none()
                });
                if self.group.agree_all(found)?.contains(&true) {
                    return Ok(None);
                }
                size
            }
            Data::Task(_) => None,
        };
        let shortened_to = Some(n_batches).filter(|&n| n < FINAL_BATCHES && !self.data.has_parts());
        let comparison = best.comparison.as_deref();
        Ok(Some(FinalReport {
            checkpoint,
            bits_per_byte: size.map(|size| size.bits_per_byte(best.evaluation.loss)),
            shortened_to,
            compared: comparison.map_or_else(Vec::new, |comparison| comparison.measures()),
            confusion: comparison.and_then(|comparison| comparison.confusion().cloned()),
            examples: comparison.map_or_else(Vec::new, |comparison| comparison.examples()),
            scored: best.path,
            iteration: best.iteration,
            fixed: best.evaluation,
            kept,
            temperature: self.progress.temperature,
            spreads: self.progress.spreads.clone(),
            full_pass,
        }))
    }

    /// A caveat about the score on finite data, if the model started from another's weights.
    pub fn start_caveat(&self) -> Option<String> {
        let from = self.experiment.train.from.as_ref().filter(|_| self.data.has_parts())?;
        Some(format!(
            "the weights of '{}' may have been trained on what is scored here: if so, the score flatters the model",
            from.display()
        ))
    }
}

/// A checkpoint that was scored.
struct Candidate {
    path: PathBuf,
    /// Updates made before it.
    iteration: u64,
    evaluation: Evaluation,
    /// What it was compared with on the same batches.
    comparison: Option<Box<dyn Comparison>>,
}

impl Candidate {
    /// How surprising the rows were to it, as it is and with its intervals calibrated, if known.
    fn surprises(&self) -> [Option<Calibration>; 2] {
        let Some(comparison) = &self.comparison else { return [None, None] };
        let calibration = |surprises: &[f64]| (!surprises.is_empty()).then(|| Calibration::of(surprises.iter().copied()));
        [comparison.surprises(), comparison.surprises_when_spread()].map(calibration)
    }
}

/// Number of batches fed in `iterations` updates.
fn trained_on(train: &TrainConfig, iterations: u64) -> u64 {
    iterations.saturating_mul(train.accumulation as u64)
}

/// Number of fixed batches on which the final report scores each of `checkpoints` after `iterations` updates: [`FINAL_BATCHES`], or after a
/// short training as many for all of them together as were trained on, but no fewer than in an evaluation.
pub fn final_batches(train: &TrainConfig, iterations: u64, checkpoints: u64) -> u64 {
    let all = FINAL_BATCHES.max(train.eval_iterations);
    (trained_on(train, iterations) / checkpoints.max(1)).clamp(train.eval_iterations, all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_training_is_not_scored_on_more_batches_than_it_was_trained_on() {
        let train = TrainConfig { eval_iterations: 20, ..TrainConfig::default() };
        assert_eq!([5000, 600, 300, 30].map(|iterations| final_batches(&train, iterations, 3)), [200, 200, 100, 20]);
        assert_eq!([200, 150, 6].map(|iterations| final_batches(&train, iterations, 1)), [200, 150, 20]);
        let accumulated = TrainConfig { accumulation: 4, ..train.clone() };
        assert_eq!(final_batches(&accumulated, 30, 1), 120);
        assert_eq!(final_batches(&TrainConfig { eval_iterations: 400, ..train }, 1, 3), 400);
    }
}
