//! What training and scoring need to know about a task.

use std::fmt::Debug;

use super::table::{Comparison, TableTask, UnseenNames};
use super::{BatchSource, EvaluationSet};
use crate::Result;
use crate::rng::Purpose;

/// What each step of a task's sequences consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoKind {
    /// A token or class below `n`.
    Tokens {
        /// How many there are.
        n: usize,
    },
    /// `width` numbers.
    Values {
        /// Numbers per step.
        width: usize,
    },
}

/// The amount of training data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Total number of steps of all sequences.
    pub steps: usize,
    /// Mean number of steps of a sequence, rounded up.
    pub length: usize,
    /// Number of steps of the longest training sequence, including those of a second round on all data.
    pub longest: usize,
    /// Whether training uses windows of at most `train.seq_len` steps instead of whole sequences.
    pub in_windows: bool,
    /// Number of updates that the smallest data set needs.
    pub least_updates: u64,
}

/// A task other than plain text: what its sequences look like, and where its batches come from.
///
/// A task with one label for a whole sequence has it as the target of the last step and masks all others.
pub trait SequenceTask: Debug + Send + Sync {
    /// The model's inputs.
    fn reads(&self) -> IoKind;

    /// Its outputs: one of several classes, scored by cross-entropy and accuracy, or numbers, scored by the mean squared error.
    fn predicts(&self) -> IoKind {
        self.reads()
    }

    /// Number of steps of the longest sequence.
    fn longest(&self) -> usize;

    /// The amount of training data, if it is finite and may determine how long to train.
    fn extent(&self) -> Option<Extent> {
        None
    }

    /// The accuracy of guessing, if accuracies are compared on a scale where guessing scores 0.
    fn chance(&self) -> Option<f64> {
        None
    }

    /// Whether the data are finite and split once: the part for `Purpose::ValidationData` then chooses the checkpoint, and the part for
    /// `Purpose::TestData` is scored once.
    fn has_parts(&self) -> bool {
        false
    }

    /// The same task trained on everything outside a test file; `None` if it already is, or if the data are generated.
    fn all(&self) -> Option<Box<dyn SequenceTask>> {
        None
    }

    /// Whether the test part is a file of its own.
    fn has_test_file(&self) -> bool {
        false
    }

    /// Refuses settings that no new training run should use, although models trained with them can still be used and scored.
    ///
    /// # Errors
    /// With a sentence that says what to change.
    fn expect_to_begin(&self) -> Result<()> {
        Ok(())
    }

    /// What was inferred from the data, as a sentence, if anything.
    fn understood(&self) -> Option<&str> {
        None
    }

    /// The columns of a table with names that the model's training did not see; empty if they are learned.
    fn unseen_names(&self) -> &[UnseenNames] {
        &[]
    }

    /// Measures in the data's own units beside a baseline's, on the part for `purpose`, if there are any.
    fn comparison(&self, _purpose: Purpose) -> Option<Box<dyn Comparison>> {
        None
    }

    /// The task on tables, if it is one.
    fn table_task(&self) -> Option<TableTask> {
        None
    }

    /// What users of the trained model need to know: names of classes and columns, means and deviations. It is stored in every checkpoint.
    /// For a task on tables it is [`table_task`](Self::table_task).
    fn description(&self) -> Option<serde_json::Value> {
        serde_json::to_value(self.table_task()?).ok()
    }

    /// Training batches.
    ///
    /// # Errors
    /// When a batch would be too large, or data cannot be read.
    fn training(&self, batch_size: usize, seed: u64) -> Result<Box<dyn BatchSource>>;

    /// Batches to score: the first `n_batches` drawn for `purpose`, or the whole part of a finite data set reserved for it.
    ///
    /// # Errors
    /// When a batch would be too large, or data cannot be read.
    fn evaluation(&self, batch_size: usize, seed: u64, purpose: Purpose, n_batches: u64) -> Result<Box<dyn EvaluationSet>>;
}
