//! The counters of a training, stored beside weights and moments: `progress.json` in a checkpoint.

use std::path::Path;

use minrnn_model::read_text;
use serde::{Deserialize, Serialize};

use crate::data::table::Spreads;
use crate::{Error, Result};

/// Name of the file of counters in a checkpoint.
pub const PROGRESS_FILE: &str = "progress.json";
/// Maximum size of the file of counters in bytes: it includes the spreads of a model with many outputs.
pub const MAX_PROGRESS_BYTES: u64 = 1 << 20;
/// How many of the best evaluations keep their checkpoints, to be scored again on more batches.
pub const KEPT_BEST: usize = 3;

/// Counters of a run. All randomness follows from the seed and the iteration, so no generator is stored.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// Number of updates.
    pub iteration: u64,
    /// Number of updates before the last evaluation, if there was one.
    pub evaluated_at: Option<u64>,
    /// The best evaluations, best first, at most [`KEPT_BEST`].
    pub best: Vec<Evaluated>,
    /// Evaluations since the best one.
    pub without_gain: u64,
    /// Tokens trained on.
    pub tokens: u64,
    /// Seconds spent in updates.
    pub seconds: f64,
    /// Number of updates averaged in the model's weights.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub averaged: u64,
    /// The divisor of the second-round model's logits, as determined for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The spread of the second-round model's quantiles, as determined for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spreads: Option<Spreads>,
    /// The second round, in which a table is learned again from all of its data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refit: Option<Refit>,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// A round that restarted from the initial weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refit {
    /// Number of updates before it.
    pub began_at: u64,
    /// Number of updates in it.
    pub updates: u64,
}

/// The part of an evaluation that determines the best.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evaluated {
    /// Number of updates before it.
    pub iteration: u64,
    /// What is minimised: the test loss, or one minus the accuracy if the task is scored by accuracy.
    pub score: f64,
    /// The test loss, if it is not the score: among equal accuracies the lower loss is better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
}

impl Evaluated {
    /// Whether it ranks before `other`. Runs of older versions have no loss beside the accuracy; in a tie the earlier one stays.
    fn is_better(&self, other: &Self) -> bool {
        let by_loss = || self.loss.zip(other.loss).is_some_and(|(own, others)| own < others);
        self.score < other.score || self.score == other.score && by_loss()
    }
}

impl Progress {
    /// The progress of the checkpoint in `directory`.
    ///
    /// # Errors
    /// When its file cannot be read or parsed.
    pub fn read(directory: impl AsRef<Path>) -> Result<Self> {
        let path = directory.as_ref().join(PROGRESS_FILE);
        Self::from_json(&read_text(&path, MAX_PROGRESS_BYTES)?, &path)
    }

    /// Parses the `text` of the file `path`.
    pub(super) fn from_json(text: &str, path: &Path) -> Result<Self> {
        serde_json::from_str(text).map_err(|error| Error::malformed(path, format!("expected the counters of a run: {error}")))
    }

    /// Records an evaluation with its test loss; returns whether it is the best so far, and whether it is among those kept. An evaluation
    /// of the untrained model is neither. A lower loss at the same accuracy is better, but does not count as a gain for patience.
    pub fn evaluated(&mut self, score: f64, loss: f64) -> (bool, bool) {
        self.evaluated_at = Some(self.iteration);
        if self.iteration == 0 {
            return (false, false);
        }
        let found = Evaluated { iteration: self.iteration, score, loss: (loss != score).then_some(loss) };
        let is_gain = self.best.first().is_none_or(|best| score < best.score);
        self.without_gain = if is_gain { 0 } else { self.without_gain + 1 };
        let place = self.best.iter().position(|kept| found.is_better(kept)).unwrap_or(self.best.len());
        self.best.insert(place, found);
        self.best.truncate(KEPT_BEST);
        (place == 0, place < KEPT_BEST)
    }

    /// Forgets that a run of an older version may have counted the untrained model among the best.
    pub(super) fn forget_untrained(&mut self) {
        self.best.retain(|kept| kept.iteration > 0);
    }

    /// Number of updates in this round.
    pub fn of_round(&self) -> u64 {
        self.iteration - self.refit.map_or(0, |refit| refit.began_at.min(self.iteration))
    }

    /// Iterations whose checkpoints are kept.
    pub fn kept(&self) -> Vec<u64> {
        self.best.iter().map(|kept| kept.iteration).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_three_are_kept_in_order() {
        let mut progress = Progress::default();
        let mut evaluate = |iteration, score| {
            progress.iteration = iteration;
            progress.evaluated(score, score)
        };
        assert_eq!(evaluate(1, 4.0), (true, true));
        assert_eq!(evaluate(2, 3.0), (true, true));
        assert_eq!(evaluate(3, 3.5), (false, true));
        assert_eq!(evaluate(4, 3.0), (false, true));
        assert_eq!(evaluate(5, 9.0), (false, false));
        assert_eq!(progress.kept(), [2, 4, 3]);
        assert_eq!(progress.without_gain, 3);
    }

    #[test]
    fn equal_accuracies_are_told_apart_by_their_loss() {
        let mut progress = Progress::default();
        let mut evaluate = |iteration, accuracy: f64, loss| {
            progress.iteration = iteration;
            progress.evaluated(1.0 - accuracy, loss)
        };
        assert_eq!(evaluate(10, 1.0, 0.5), (true, true));
        assert_eq!(evaluate(20, 1.0, 0.1), (true, true));
        assert_eq!(evaluate(30, 1.0, 0.3), (false, true));
        assert_eq!(evaluate(40, 0.9, 0.01), (false, false));
        assert_eq!(progress.kept(), [20, 30, 10]);
        assert_eq!(progress.without_gain, 3, "patience waits for accuracy");
    }

    #[test]
    fn equal_scores_of_an_older_run_keep_the_earlier() {
        let text = r#"{"iteration": 10, "evaluated_at": 10, "best": [{"iteration": 10, "score": 0.0}], "without_gain": 0, "tokens": 1, "seconds": 1.0}"#;
        let mut progress = Progress { iteration: 20, ..serde_json::from_str(text).unwrap() };
        assert_eq!(progress.evaluated(0.0, 0.1), (false, true));
        assert_eq!(progress.kept(), [10, 20]);
    }

    #[test]
    fn the_untrained_model_is_never_the_best() {
        let mut progress = Progress::default();
        assert_eq!(progress.evaluated(0.1, 0.1), (false, false));
        assert_eq!((progress.evaluated_at, progress.without_gain, progress.kept()), (Some(0), 0, vec![]));
        progress.iteration = 5;
        assert_eq!(progress.evaluated(9.0, 9.0), (true, true));
        // A run of an older version.
        progress.best.insert(0, Evaluated { iteration: 0, score: 0.1, loss: None });
        progress.forget_untrained();
        assert_eq!(progress.kept(), [5]);
    }

    #[test]
    fn counters_of_many_spreads_are_read_and_larger_files_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(PROGRESS_FILE);
        let written = Progress { iteration: 7, ..Progress::default() };
        let mut text = serde_json::to_string(&written).unwrap();
        text.extend(std::iter::repeat_n(' ', (MAX_PROGRESS_BYTES as usize) - text.len()));
        std::fs::write(&path, &text).unwrap();
        assert_eq!(Progress::read(&directory).unwrap(), written);
        std::fs::write(&path, text + " ").unwrap();
        assert!(Progress::read(&directory).unwrap_err().to_string().contains("larger than"));
        std::fs::write(&path, "[1").unwrap();
        assert!(Progress::read(&directory).unwrap_err().to_string().contains("expected the counters of a run"));
    }

    #[test]
    fn every_finite_number_is_read_back_to_the_last_bit() {
        let mut state = 1u64;
        for _ in 0..100_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Numbers of every size, and typical losses and accuracies, where a reader that rounds early goes wrong most often.
            for score in [f64::from_bits(state), (state >> 11) as f64 / (1u64 << 53) as f64] {
                if score.is_finite() {
                    let written = Progress { best: vec![Evaluated { iteration: 1, score, loss: None }], ..Progress::default() };
                    let read: Progress = serde_json::from_str(&serde_json::to_string(&written).unwrap()).unwrap();
                    assert_eq!(read.best[0].score.to_bits(), score.to_bits(), "{score:e}");
                }
            }
        }
    }
}
