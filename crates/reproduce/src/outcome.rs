//! What a piece of work came to, as it is kept in the results folder.

use minrnn::train::{Ending, FinalReport, Record, Trainer};
use serde::{Deserialize, Serialize};

use crate::lengths::AtLength;

/// What a result was made on and by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Origin {
    /// Processor and cores.
    pub machine: String,
    /// Threads of the processor.
    pub threads: usize,
    /// `cpu`, `vulkan`, …
    pub device: String,
    /// Of the program.
    pub commit: String,
}

impl Origin {
    /// This machine, and the program of that commit.
    pub(crate) fn here(device: String, commit: String) -> Self {
        Self { machine: minrnn_bench::machine::name(), threads: rayon::current_num_threads(), device, commit }
    }
}

/// Why a training ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// All iterations are done.
    Finished,
    /// `patience` evaluations in a row brought no gain.
    EarlyStopped,
    /// An evaluation reached `solved_at`.
    Solved,
}

/// An evaluation during training.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Updates made before it.
    pub iteration: u64,
    /// The loss on the validation batches.
    pub loss: f64,
    /// 0 to 1, where the task is scored by it.
    pub accuracy: Option<f64>,
}

/// `result.json` of a training: its best checkpoint on the test batches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Of the training.
    pub seed: u64,
    /// Test loss.
    pub loss: f64,
    /// 0 to 1, where the task is scored by it.
    pub accuracy: Option<f64>,
    /// The accuracy of guessing, where there is one.
    pub chance: Option<f64>,
    /// Loss of one pass over a whole test text.
    pub full_pass_loss: Option<f64>,
    /// Updates made before the best checkpoint.
    pub best_iteration: u64,
    /// Updates made.
    pub iterations: u64,
    /// Why it ended.
    pub end: End,
    /// Seconds spent in updates.
    pub seconds: f64,
    /// Trainable parameters.
    pub parameters: usize,
    /// Its evaluations.
    pub curve: Vec<Point>,
    /// The accuracy by the length of the strings of a formal language.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lengths: Vec<AtLength>,
    /// Where it was made.
    pub origin: Origin,
}

impl Outcome {
    /// Of a training that ended, with its log; not yet by length.
    pub(crate) fn new(trainer: &Trainer, ending: Ending, report: &FinalReport, log: &[Record], origin: Origin) -> Self {
        let by_accuracy = trainer.data().is_scored_by_accuracy();
        let point = |record: &Record| match *record {
            Record::Eval { iteration, test_loss: loss, test_accuracy, .. } => {
                Some(Point { iteration, loss, accuracy: test_accuracy.filter(|_| by_accuracy) })
            }
            Record::Train { .. } => None,
        };
        let progress = trainer.progress();
        Self {
            seed: trainer.experiment().train.seed,
            loss: report.fixed.loss,
            accuracy: report.fixed.accuracy.filter(|_| by_accuracy),
            chance: trainer.data().chance(),
            full_pass_loss: report.full_pass.map(|evaluation| evaluation.loss),
            best_iteration: report.iteration,
            iterations: progress.iteration,
            end: match ending {
                Ending::EarlyStopped => End::EarlyStopped,
                Ending::Solved => End::Solved,
                _ => End::Finished,
            },
            seconds: progress.seconds,
            parameters: minrnn::checkpoint::parameter_count(trainer.model()),
            curve: log.iter().filter_map(point).collect(),
            lengths: Vec::new(),
            origin,
        }
    }

    /// The accuracy on the scale where guessing is 0.
    pub fn scaled_accuracy(&self) -> Option<f64> {
        let chance = self.chance?;
        Some((self.accuracy? - chance) / (1.0 - chance))
    }

    /// Updates made before the first evaluation with an accuracy of at least `goal`.
    pub fn iterations_to(&self, goal: f64) -> Option<u64> {
        self.curve.iter().find(|point| point.accuracy.is_some_and(|accuracy| accuracy >= goal)).map(|point| point.iteration)
    }
}

/// `failed.json` of a training that diverged (NaN): it would diverge again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub sentence: String,
    pub origin: Origin,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A solved training with that accuracy.
    pub fn outcome(seed: u64, accuracy: f64) -> Outcome {
        let point = |(iteration, accuracy)| Point { iteration, loss: 1.0 - accuracy, accuracy: Some(accuracy) };
        Outcome {
            seed,
            loss: 0.25,
            accuracy: Some(accuracy),
            chance: Some(0.2),
            full_pass_loss: None,
            best_iteration: 40,
            iterations: 50,
            end: End::Solved,
            seconds: 90.0,
            parameters: 1234,
            curve: [(0, 0.1), (20, 0.6), (40, accuracy)].map(point).to_vec(),
            lengths: [(8, 1.0), (16, accuracy)].map(|(length, accuracy)| AtLength { length, accuracy }).to_vec(),
            origin: Origin { machine: "box, 2 cores".to_owned(), threads: 2, device: "cpu".to_owned(), commit: "abc1234".to_owned() },
        }
    }

    #[test]
    fn accuracy_is_scaled_by_chance_and_followed_over_the_iterations() {
        let outcome = outcome(1, 0.95);
        assert!((outcome.scaled_accuracy().unwrap() - 0.9375).abs() < 1e-12);
        assert_eq!((outcome.iterations_to(0.5), outcome.iterations_to(0.9), outcome.iterations_to(0.99)), (Some(20), Some(40), None));
        assert_eq!(Outcome { chance: None, ..outcome }.scaled_accuracy(), None);
    }
}
