//! Windows at random positions, as nanoGPT trains and evaluates. Every window starts from the initial state.

use rand::RngExt;

use super::super::batch::check_shape;
use super::super::{Batch, BatchSource};
use super::{TextPart, read_windows};
use crate::rng::{self, Purpose};
use crate::{Result, Segments};

/// Batches of `B` windows whose starts are independent and uniform on `0..N − T`, with replacement.
#[derive(Debug, Clone)]
pub struct RandomWindows {
    part: TextPart,
    batch_size: usize,
    seq_len: usize,
    seed: u64,
    purpose: Purpose,
}

impl RandomWindows {
    /// Windows of `seq_len` inputs from `part`. The same `seed` with another `purpose` gives other positions: training uses
    /// [`Purpose::TrainData`], evaluation [`Purpose::ValidationData`] or [`Purpose::TestData`].
    ///
    /// # Errors
    /// [`crate::Error::Config`] when a size is 0 or the batch too large, [`crate::Error::Data`] when the part is
    /// shorter than one window and its last target (`T + 1` tokens).
    pub fn new(part: TextPart, batch_size: usize, seq_len: usize, seed: u64, purpose: Purpose) -> Result<Self> {
        check_shape(batch_size, seq_len)?;
        part.expect_len(seq_len as u64 + 1, &format!("a window of seq_len {seq_len}"), "or lower seq_len")?;
        Ok(Self { part, batch_size, seq_len, seed, purpose })
    }
}

impl BatchSource for RandomWindows {
    fn batch(&mut self, iteration: u64, micro: u64) -> Result<Batch> {
        let mut rng = rng::substream(self.seed, self.purpose, iteration, micro);
        let n_starts = self.part.len() - self.seq_len as u64;
        let offsets = (0..self.batch_size).map(|_| rng.random_range(0..n_starts));
        let (inputs, targets) = read_windows(&self.part, offsets, self.seq_len)?;
        Ok(Batch {
            inputs: inputs.into(),
            targets: targets.into(),
            mask: None,
            segments: Segments::dense(),
            batch_size: self.batch_size,
            seq_len: self.seq_len,
        })
    }

    fn tokens_per_batch(&self) -> usize {
        self.batch_size * self.seq_len
    }
}

#[cfg(test)]
mod tests {
    use super::super::TextData;
    use super::super::tests::counting;
    use super::*;

    fn windows(n: u32, batch_size: usize, seq_len: usize, purpose: Purpose) -> Result<RandomWindows> {
        RandomWindows::new(TextData::new(counting(n), 1.0)?.train().clone(), batch_size, seq_len, 5, purpose)
    }

    #[test]
    fn targets_are_the_inputs_shifted_by_one() {
        let batch = windows(100, 8, 10, Purpose::TrainData).unwrap().batch(3, 0).unwrap();
        for row in batch.inputs.tokens().chunks(10) {
            assert!(row.windows(2).all(|pair| pair[1] == pair[0] + 1));
        }
        assert!(batch.inputs.tokens().iter().zip(batch.targets.tokens()).all(|(x, y)| *y == x + 1));
        assert_eq!((batch.inputs.tokens().len(), batch.n_scored(), batch.segments.is_dense()), (80, 80, true));
    }

    #[test]
    fn every_start_is_reached_equally_often_and_none_beyond() {
        let mut source = windows(14, 1000, 4, Purpose::TrainData).unwrap();
        let mut counts = [0_u32; 10];
        for iteration in 0..20 {
            source.batch(iteration, 0).unwrap().inputs.tokens().chunks(4).for_each(|row| counts[row[0] as usize] += 1);
        }
        // 20 000 draws over 10 starts: mean 2000, standard deviation 42.
        assert!(counts.iter().all(|c| c.abs_diff(2000) < 215), "{counts:?}");
    }

    #[test]
    fn a_batch_depends_on_iteration_micro_step_and_purpose_only() {
        let mut train = windows(1000, 4, 10, Purpose::TrainData).unwrap();
        let first = train.batch(7, 1).unwrap();
        train.batch(0, 0).unwrap();
        assert_eq!(train.batch(7, 1).unwrap(), first);
        assert_ne!(train.batch(7, 0).unwrap(), first);
        assert_ne!(train.batch(8, 1).unwrap(), first);
        assert_ne!(windows(1000, 4, 10, Purpose::TestData).unwrap().batch(7, 1).unwrap(), first);
    }

    #[test]
    fn a_text_shorter_than_a_window_is_refused_with_both_numbers() {
        windows(11, 1, 10, Purpose::TrainData).unwrap().batch(0, 0).unwrap();
        let message = windows(10, 1, 10, Purpose::TrainData).unwrap_err().to_string();
        assert!(message.contains("has 10 tokens") && message.contains("at least 11") && message.contains("seq_len 10"), "{message}");
    }
}
