//! Estimates how long trainings would take on this device: a few updates and an evaluation of each, extrapolated.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use burn::module::Module;
use minrnn::rng::Purpose;
use minrnn::train::{Experiment, KEPT_BEST, RunDir, Task, Trainer, evaluate, final_batches};

use crate::training::{self, Options};
use crate::{Host, Result, Training};

/// The cost of training an experiment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Seconds per update.
    pub update: f64,
    /// Seconds per test batch.
    pub evaluation: f64,
}

/// Updates and test batches before timing starts: the first ones allocate their memory.
const WARM_UP: usize = 3;
/// Seconds for which updates are measured, and then test batches as well.
const MEASURED: f64 = 0.5;

impl Cost {
    /// Measures updates and test batches for a moment each, not counting the first few.
    ///
    /// # Errors
    /// When the training cannot start.
    pub fn measure(training: &Training, options: &Options, host: &mut dyn Host) -> Result<Self> {
        let experiment = training::with_data(training, 1, options, host)?;
        let scratch = tempfile::tempdir();
        let scratch = scratch.map_err(|source| minrnn::Error::io("create a temporary folder in", std::env::temp_dir(), source))?;
        let mut trainer = Trainer::new(experiment, RunDir::create(scratch.path().join("run"))?)?;
        let update = seconds_of_one(|| trainer.update().map(drop))?;
        let model = trainer.model().valid();
        let evaluation = seconds_of_one(|| {
            let mut batch = trainer.data().fixed_batches(trainer.experiment(), 1, Purpose::ValidationData)?;
            evaluate(&model, &mut *batch, &AtomicBool::new(false)).map(drop)
        })?;
        Ok(Self { update, evaluation })
    }

    /// Seconds for a training with all of its iterations, its evaluations and its final report.
    pub fn of(&self, experiment: &Experiment) -> f64 {
        let train = &experiment.train;
        let evaluations = (train.max_iterations / train.eval_every + 1) * train.eval_iterations;
        let checkpoints = if experiment.data.task == Task::Text { KEPT_BEST as u64 } else { 1 };
        let scored_again = checkpoints * final_batches(train, train.max_iterations, checkpoints);
        self.update * train.max_iterations as f64 + self.evaluation * (evaluations + scored_again) as f64
    }
}

/// Mean seconds of `work` over several runs.
fn seconds_of_one(mut work: impl FnMut() -> minrnn::Result<()>) -> minrnn::Result<f64> {
    let begun = Instant::now();
    let mut last = 0.0;
    for _ in 0..WARM_UP {
        let started = Instant::now();
        work()?;
        last = started.elapsed().as_secs_f64();
        // For work that takes seconds, the extra cost of the first run is negligible.
        if begun.elapsed().as_secs_f64() > 10.0 * MEASURED {
            return Ok(last);
        }
    }
    let (started, mut times) = (Instant::now(), 0);
    while times == 0 || started.elapsed().as_secs_f64() + last < MEASURED {
        work()?;
        times += 1;
    }
    Ok(started.elapsed().as_secs_f64() / f64::from(times))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_training_costs_its_updates_evaluations_and_final_report() {
        let settings = ["max_iterations=100", "eval_every=25", "eval_iterations=10"].map(str::to_owned);
        let experiment = Experiment::load("selective-copying", &settings).unwrap();
        // 100 updates; 5 evaluations of 10 batches and the best checkpoint on 100.
        let cost = Cost { update: 2.0, evaluation: 0.5 };
        assert_eq!(cost.of(&experiment), 200.0 + 0.5 * (50.0 + 100.0));
    }
}
