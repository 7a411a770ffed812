//! How long trainings would take on the device at hand: a few updates and an evaluation of each, extrapolated.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::Context;
use burn::module::Module;
use minrnn::rng::Purpose;
use minrnn::train::{Experiment, FINAL_BATCHES, KEPT_BEST, RunDir, Trainer, evaluate};

use super::plan::Training;
use super::training::{self, Options};

/// What a training of an experiment costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Seconds of an update.
    pub update: f64,
    /// Seconds of a test batch.
    pub evaluation: f64,
}

impl Cost {
    /// Measures two updates, the first not counted, and two test batches.
    ///
    /// # Errors
    /// When the training cannot begin.
    pub fn measure(training: &Training, options: &Options) -> anyhow::Result<Self> {
        let experiment = training::with_data(training, 1, options)?;
        let scratch = tempfile::tempdir().context("could not create a temporary folder")?;
        let mut trainer = Trainer::new(experiment, RunDir::create(scratch.path().join("run"))?)?;
        trainer.update()?;
        let update = seconds(|| trainer.update().map(drop))?;
        let mut batches = trainer.data().fixed_batches(trainer.experiment(), 2, Purpose::ValidationData)?;
        let n_batches = batches.n_batches().max(1) as f64;
        let model = trainer.model().valid();
        let evaluation = seconds(|| evaluate(&model, &mut *batches, &AtomicBool::new(false)).map(drop))? / n_batches;
        Ok(Self { update, evaluation })
    }

    /// Seconds of a training that makes all of its iterations, with its evaluations and its final report.
    pub fn of(&self, experiment: &Experiment) -> f64 {
        let train = &experiment.train;
        let evaluations = (train.max_iterations / train.eval_every + 1) * train.eval_iterations;
        let scored_again = KEPT_BEST as u64 * FINAL_BATCHES.max(train.eval_iterations);
        self.update * train.max_iterations as f64 + self.evaluation * (evaluations + scored_again) as f64
    }
}

fn seconds(work: impl FnOnce() -> minrnn::Result<()>) -> minrnn::Result<f64> {
    let started = Instant::now();
    work()?;
    Ok(started.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_training_costs_its_updates_evaluations_and_final_report() {
        let settings = ["max_iterations=100", "eval_every=25", "eval_iterations=10"].map(str::to_owned);
        let experiment = Experiment::load("selective-copying", &settings).unwrap();
        // 100 updates; 5 evaluations of 10 batches and 3 checkpoints on 200.
        let cost = Cost { update: 2.0, evaluation: 0.5 };
        assert_eq!(cost.of(&experiment), 200.0 + 0.5 * (50.0 + 600.0));
    }
}
