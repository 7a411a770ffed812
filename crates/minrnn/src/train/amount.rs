//! How long a table is learned from, and in how large batches, by how much there is of it.

use super::train_config::TrainConfig;
use crate::data::Extent;

/// Sequences of a batch of short ones, and of one of long ones.
pub(super) const MOST_ROWS: usize = 32;
const LEAST_ROWS: usize = 8;
/// Steps beyond which a batch has fewer sequences.
const MOST_STEPS: usize = 24_000;
/// How often every sequence is learned from where there are many.
const PASSES: u64 = 10;
/// Updates of windows for each square root of a step: a single short series is soon known by heart, and thousands are not.
const OF_ROOT: f64 = 3.6;
/// Updates after which more data do not make a training longer.
const MOST_UPDATES: u64 = 20_000;

impl TrainConfig {
    /// Puts numbers that fit `data` in the place of a `batch_size` and `max_iterations` of 0.
    pub(super) fn fit_to(&mut self, data: Extent) {
        let length = data.length.clamp(1, self.longest_window(data));
        if self.batch_size == 0 {
            let room = (MOST_STEPS / length).clamp(LEAST_ROWS, MOST_ROWS);
            self.batch_size = 1 << room.ilog2();
        }
        if self.max_iterations == 0 {
            let of_update = (self.batch_size * self.accumulation * length) as u64;
            let wanted = match data.in_windows {
                true => (OF_ROOT * (data.steps as f64).sqrt()) as u64,
                false => PASSES.saturating_mul(data.steps as u64) / of_update.max(1),
            };
            self.max_iterations = wanted.clamp(data.least_updates, MOST_UPDATES.max(data.least_updates));
        }
    }

    fn longest_window(&self, data: Extent) -> usize {
        if data.in_windows { self.seq_len } else { usize::MAX }
    }

    /// Sequences of a micro-batch, as far as they are known before the data are read.
    pub(super) fn assumed_batch_size(&self) -> usize {
        if self.batch_size == 0 { MOST_ROWS } else { self.batch_size }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(data: Extent) -> (usize, u64) {
        let mut train = TrainConfig { batch_size: 0, max_iterations: 0, seq_len: 128, ..TrainConfig::default() };
        train.fit_to(data);
        (train.batch_size, train.max_iterations)
    }

    #[test]
    fn long_sequences_come_in_small_batches_and_many_are_learned_from_for_longer() {
        let whole = |n: usize, length: usize| Extent { steps: n * length, length, in_windows: false, least_updates: 600 };
        assert_eq!([50, 750, 751, 1500, 1501, 100_000].map(|length| fitted(whole(40, length)).0), [32, 32, 16, 16, 8, 8]);
        assert_eq!([1, 40, 1920, 4000, 1 << 30].map(|n| fitted(whole(n, 50)).1), [600, 600, 600, 1250, 20_000]);
        let windows = |n: usize, length: usize| Extent { steps: n * length, length, in_windows: true, least_updates: 100 };
        assert_eq!(
            [10, 2000, 1_000_000, 1 << 40].map(|length| fitted(windows(1, length))),
            [(32, 100), (32, 160), (32, 3600), (32, 20_000)]
        );
    }

    #[test]
    fn what_is_set_stays() {
        let data = Extent { steps: 1 << 40, length: 1 << 20, in_windows: false, least_updates: 600 };
        let mut train = TrainConfig { batch_size: 3, max_iterations: 7, ..TrainConfig::default() };
        train.fit_to(data);
        assert_eq!((train.batch_size, train.max_iterations), (3, 7));
    }
}
