//! Tasks that make their own data, without end.

use std::fmt::Debug;

use super::{BatchSource, Copying, EvaluationSet, FixedBatches, FormalLanguage, FormalTask, SelectiveCopying};
use crate::Result;
use crate::rng::Purpose;

/// A task whose batches are drawn, not read: what training and scoring need to know of it.
pub trait GeneratedTask: Debug + Send + Sync {
    /// Number of token ids V.
    fn vocab_size(&self) -> usize;

    /// The accuracy of guessing, where accuracies are compared on a scale on which guessing is 0.
    fn chance(&self) -> Option<f64> {
        None
    }

    /// Batches to train on.
    ///
    /// # Errors
    /// When a batch would be too large.
    fn training(&self, batch_size: usize, seed: u64) -> Result<Box<dyn BatchSource>>;

    /// The first `n_batches` batches drawn for `purpose`.
    ///
    /// # Errors
    /// When a batch would be too large.
    fn evaluation(&self, batch_size: usize, seed: u64, purpose: Purpose, n_batches: u64) -> Result<Box<dyn EvaluationSet>>;
}

impl GeneratedTask for Copying {
    fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    fn training(&self, batch_size: usize, seed: u64) -> Result<Box<dyn BatchSource>> {
        Ok(Box::new(SelectiveCopying::new(self.clone(), batch_size, seed, Purpose::TrainData)?))
    }

    fn evaluation(&self, batch_size: usize, seed: u64, purpose: Purpose, n_batches: u64) -> Result<Box<dyn EvaluationSet>> {
        Ok(Box::new(FixedBatches::new(SelectiveCopying::new(self.clone(), batch_size, seed, purpose)?, n_batches)))
    }
}

/// A formal language learned on short strings and scored on longer ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generalization {
    /// What is trained on.
    pub training: FormalTask,
    /// What is scored; the same language and protocol.
    pub evaluation: FormalTask,
}

impl Generalization {
    /// `language` with lengths for training and for evaluation.
    ///
    /// # Errors
    /// As [`FormalTask::validate`].
    pub fn new(training: FormalTask, eval_min_length: usize, eval_max_length: usize) -> Result<Self> {
        let evaluation = FormalTask { min_length: eval_min_length, max_length: eval_max_length, ..training.clone() };
        training.validate()?;
        evaluation.validate()?;
        Ok(Self { training, evaluation })
    }
}

impl GeneratedTask for Generalization {
    fn vocab_size(&self) -> usize {
        self.training.vocab_size().expect("checked when it was made")
    }

    fn chance(&self) -> Option<f64> {
        self.training.chance().ok()
    }

    fn training(&self, batch_size: usize, seed: u64) -> Result<Box<dyn BatchSource>> {
        Ok(Box::new(FormalLanguage::new(self.training.clone(), batch_size, seed, Purpose::TrainData)?))
    }

    fn evaluation(&self, batch_size: usize, seed: u64, purpose: Purpose, n_batches: u64) -> Result<Box<dyn EvaluationSet>> {
        Ok(Box::new(FixedBatches::new(FormalLanguage::new(self.evaluation.clone(), batch_size, seed, purpose)?, n_batches)))
    }
}
