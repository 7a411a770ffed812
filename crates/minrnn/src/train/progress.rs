//! What training remembers beside weights and moments: `progress.json` in a checkpoint.

use serde::{Deserialize, Serialize};

/// How many of the best evaluations keep their checkpoints, to be scored again with more batches.
pub const KEPT_BEST: usize = 3;

/// Counters of a run. All randomness follows from the seed and the iteration, so no generator is stored.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// Updates made.
    pub iteration: u64,
    /// Updates made before the last evaluation, if there was one.
    pub evaluated_at: Option<u64>,
    /// The best evaluations, best first, at most [`KEPT_BEST`].
    pub best: Vec<Evaluated>,
    /// Evaluations since the best one.
    pub without_gain: u64,
    /// Tokens trained on.
    pub tokens: u64,
    /// Seconds spent in updates.
    pub seconds: f64,
}

/// An evaluation as far as it decides what is best.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evaluated {
    /// Updates made before it.
    pub iteration: u64,
    /// What is minimised: the test loss, or one minus the accuracy where a task is scored by accuracy.
    pub score: f64,
}

impl Progress {
    /// Records an evaluation; true when it is the best so far, and whether it is among the kept.
    pub fn evaluated(&mut self, score: f64) -> (bool, bool) {
        self.evaluated_at = Some(self.iteration);
        let is_best = self.best.first().is_none_or(|best| score < best.score);
        self.without_gain = if is_best { 0 } else { self.without_gain + 1 };
        let place = self.best.iter().position(|kept| score < kept.score).unwrap_or(self.best.len());
        self.best.insert(place, Evaluated { iteration: self.iteration, score });
        self.best.truncate(KEPT_BEST);
        (is_best, place < KEPT_BEST)
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
            progress.evaluated(score)
        };
        assert_eq!(evaluate(0, 4.0), (true, true));
        assert_eq!(evaluate(1, 3.0), (true, true));
        assert_eq!(evaluate(2, 3.5), (false, true));
        assert_eq!(evaluate(3, 3.0), (false, true));
        assert_eq!(evaluate(4, 9.0), (false, false));
        assert_eq!(progress.kept(), [1, 3, 2]);
        assert_eq!(progress.without_gain, 3);
    }

    #[test]
    fn every_finite_number_is_read_back_to_the_last_bit() {
        let mut state = 1u64;
        for _ in 0..100_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Numbers of every size, and those of a loss or an accuracy, where a reader that rounds early goes wrong most often.
            for score in [f64::from_bits(state), (state >> 11) as f64 / (1u64 << 53) as f64] {
                if score.is_finite() {
                    let written = Progress { best: vec![Evaluated { iteration: 1, score }], ..Progress::default() };
                    let read: Progress = serde_json::from_str(&serde_json::to_string(&written).unwrap()).unwrap();
                    assert_eq!(read.best[0].score.to_bits(), score.to_bits(), "{score:e}");
                }
            }
        }
    }
}
