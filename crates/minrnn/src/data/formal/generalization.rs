//! Learning a language on short strings and being scored on longer ones.

use super::{FormalLanguage, FormalTask};
use crate::Result;
use crate::data::{BatchSource, EvaluationSet, FixedBatches, IoKind, SequenceTask};
use crate::rng::Purpose;

/// A formal language learned on short strings and scored on longer ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generalization {
    /// The training task.
    pub training: FormalTask,
    /// The scored task: the same language and protocol.
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

impl SequenceTask for Generalization {
    fn reads(&self) -> IoKind {
        IoKind::Tokens { n: self.training.vocab_size().expect("checked when it was made") }
    }

    fn longest(&self) -> usize {
        // A string and the longest answer, the string twice.
        self.training.max_length.max(self.evaluation.max_length).saturating_mul(3)
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
