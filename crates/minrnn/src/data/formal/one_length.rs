//! Strings of one length, for scores by length.

use super::super::batch::expect_index;
use super::super::{Batch, BatchSource, EvaluationSet};
use super::{FormalLanguage, FormalTask};
use crate::Result;
use crate::rng::Purpose;

/// Strings in a batch, as in DeepMind's study.
const BATCH_SIZE: u64 = 64;

/// A number of strings of a language, all of the same length.
#[derive(Debug, Clone)]
pub struct OneLength {
    source: FormalLanguage,
    length: usize,
    n_strings: u64,
}

impl OneLength {
    /// `n_strings` strings of `length` in the language and protocol of `task`, whose own lengths are ignored.
    ///
    /// # Errors
    /// As [`FormalTask::validate`].
    pub fn new(task: &FormalTask, length: usize, n_strings: u64, seed: u64) -> Result<Self> {
        let task = FormalTask { min_length: length, max_length: length, ..task.clone() };
        Ok(Self { source: FormalLanguage::new(task, BATCH_SIZE as usize, seed, Purpose::TestData)?, length, n_strings })
    }
}

impl EvaluationSet for OneLength {
    fn n_batches(&self) -> u64 {
        self.n_strings.div_ceil(BATCH_SIZE)
    }

    fn batch(&mut self, index: u64) -> Result<Batch> {
        expect_index(index, self.n_batches())?;
        self.source.batch_size = (self.n_strings - index * BATCH_SIZE).min(BATCH_SIZE) as usize;
        // The length stands for the iteration, so that no two lengths share their draws.
        self.source.batch(self.length as u64, index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_so_many_strings_of_the_length() {
        let task = FormalTask { min_length: 1, max_length: 40, ..FormalTask::default() };
        let mut set = OneLength::new(&task, 100, 130, 7).unwrap();
        let batches: Vec<Batch> = (0..set.n_batches()).map(|index| set.batch(index).unwrap()).collect();
        assert_eq!(batches.iter().map(|batch| batch.batch_size).collect::<Vec<_>>(), [64, 64, 2]);
        assert!(batches.iter().all(|batch| batch.seq_len == 101 && batch.n_scored() == batch.batch_size));
        assert_ne!(batches[0].inputs, batches[1].inputs);
        assert!(set.batch(3).is_err());
        assert!(OneLength::new(&task, 0, 1, 7).is_err());
    }
}
