//! How long to learn from a table, and with what batch size, depending on its amount of data.

use super::train_config::TrainConfig;
use crate::counted::counted;
use crate::data::Extent;

/// Sequences per batch: of short ones, and of long ones.
pub(super) const MOST_ROWS: usize = 32;
const LEAST_ROWS: usize = 8;
/// Steps beyond which a batch has fewer sequences.
const MOST_STEPS: usize = 24_000;
/// How many times the mean length the longest sequence may have before batches get fewer sequences for its sake.
const RAGGED: usize = 8;
/// Number of passes over the sequences if there are many.
const PASSES: u64 = 10;
/// Updates on windows per square root of the number of steps: a single short series is soon memorised, thousands of series are not.
const OF_ROOT: f64 = 3.6;
/// Maximum number of updates, however much data there are.
const MOST_UPDATES: u64 = 20_000;

impl TrainConfig {
    /// Replaces a `batch_size` or `max_iterations` of 0 by a number that fits `data`.
    pub(super) fn fit_to(&mut self, data: Extent) {
        let length = data.length.clamp(1, self.longest_window(data));
        if self.batch_size == 0 {
            self.batch_size = rows(length);
            if !data.in_windows {
                let room = most_padded(length) / data.longest.max(1);
                self.batch_size = self.batch_size.min(1 << room.max(1).ilog2());
            }
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

    /// A sentence about the effect of the longest sequence of `data` on its batches, if it is so much longer than the others that it determines what
    /// they take.
    pub(super) fn longest_warning(&self, data: Extent) -> Option<String> {
        let (mean, longest) = (data.length, data.longest);
        let rows = self.batch_size.max(rows(mean.max(1)));
        if data.in_windows || longest <= RAGGED * mean || rows * longest <= RAGGED * MOST_STEPS {
            return None;
        }
        let rows = self.batch_size;
        let remedy = if rows > 1 { "cut it, or set train.batch_size" } else { "cut it where that is too much" };
        Some(format!(
            "the longest sequence has {longest} steps, the mean is {mean}: batches are padded to it, up to {} of {longest} steps each; {remedy}",
            counted(rows, "sequence")
        ))
    }

    fn longest_window(&self, data: Extent) -> usize {
        if data.in_windows { self.seq_len } else { usize::MAX }
    }

    /// Sequences per micro-batch, as assumed before the data are read.
    pub(super) fn assumed_batch_size(&self) -> usize {
        if self.batch_size == 0 { MOST_ROWS } else { self.batch_size }
    }
}

/// Sequences per batch for a mean of `length` steps: a power of two.
fn rows(length: usize) -> usize {
    let room = (MOST_STEPS / length).clamp(LEAST_ROWS, MOST_ROWS);
    1 << room.ilog2()
}

/// Maximum number of steps, including padding, of a batch of such sequences.
fn most_padded(length: usize) -> usize {
    RAGGED * MOST_STEPS.max(rows(length) * length)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn open() -> TrainConfig {
        TrainConfig { batch_size: 0, max_iterations: 0, seq_len: 128, ..TrainConfig::default() }
    }

    fn fitted(data: Extent) -> (usize, u64) {
        let mut train = open();
        train.fit_to(data);
        (train.batch_size, train.max_iterations)
    }

    #[test]
    fn long_sequences_come_in_small_batches_and_many_are_learned_from_for_longer() {
        let whole = |n: usize, length: usize| Extent { steps: n * length, length, longest: length, in_windows: false, least_updates: 600 };
        assert_eq!([50, 750, 751, 1500, 1501, 100_000].map(|length| fitted(whole(40, length)).0), [32, 32, 16, 16, 8, 8]);
        assert_eq!([1, 40, 1920, 4000, 1 << 30].map(|n| fitted(whole(n, 50)).1), [600, 600, 600, 1250, 20_000]);
        let windows = |n: usize, length: usize| Extent { steps: n * length, length, longest: length, in_windows: true, least_updates: 100 };
        assert_eq!(
            [10, 2000, 1_000_000, 1 << 40].map(|length| fitted(windows(1, length))),
            [(32, 100), (32, 160), (32, 3600), (32, 20_000)]
        );
    }

    #[test]
    fn what_is_set_stays() {
        let data = Extent { steps: 1 << 40, length: 1 << 20, longest: 1 << 20, in_windows: false, least_updates: 600 };
        let mut train = TrainConfig { batch_size: 3, max_iterations: 7, ..TrainConfig::default() };
        train.fit_to(data);
        assert_eq!((train.batch_size, train.max_iterations), (3, 7));
    }

    #[test]
    fn one_sequence_that_is_much_longer_than_all_others_makes_batches_smaller_and_is_told() {
        let of = |length: usize, longest: usize, in_windows: bool| {
            let data = Extent { steps: 61 * length, length, longest, in_windows, least_updates: 600 };
            let mut train = open();
            train.fit_to(data);
            (train.batch_size, train.longest_warning(data))
        };
        let (rows, told) = of(685, 40_000, false);
        assert_eq!(rows, 4);
        assert_eq!(
            told.unwrap(),
            "the longest sequence has 40000 steps, the mean is 685: batches are padded to it, up to 4 sequences of 40000 steps each; cut it, or \
             set train.batch_size"
        );
        // A sequence that gets a batch to itself, and a requested number of sequences per batch.
        let (rows, told) = of(685, 400_000, false);
        assert!(rows == 1 && told.unwrap().ends_with("up to 1 sequence of 400000 steps each; cut it where that is too much"));
        let asked = TrainConfig { batch_size: 64, ..TrainConfig::default() };
        assert!(
            asked
                .longest_warning(Extent { steps: 61 * 685, length: 685, longest: 40_000, in_windows: false, least_updates: 600 })
                .is_some()
        );
        // Short sequences take little room however much their lengths differ, and windows are no longer than set.
        assert_eq!(of(30, 6000, false), (32, None));
        assert_eq!(of(685, 40_000, true), (32, None));
    }

    proptest! {
        #[test]
        fn sequences_within_eight_times_the_mean_have_the_batches_of_equal_ones(length in 1..50_000usize, share in 0.0..1.0f64) {
            let data = Extent { steps: 100 * length, length, longest: length, in_windows: false, least_updates: 600 };
            let of_more = Extent { longest: length + (share * (7 * length) as f64) as usize, ..data };
            let (mut equal, mut ragged) = (open(), open());
            equal.fit_to(data);
            ragged.fit_to(of_more);
            prop_assert_eq!((&equal, ragged.longest_warning(of_more)), (&ragged, None));
        }

        #[test]
        fn a_padded_batch_has_a_bound(length in 1..50_000usize, longest in 1..1_000_000usize) {
            let mut train = open();
            train.fit_to(Extent { steps: 100 * length, length, longest, in_windows: false, least_updates: 600 });
            prop_assert!(train.batch_size == 1 || train.batch_size * longest <= most_padded(length), "{}", train.batch_size);
        }
    }
}
