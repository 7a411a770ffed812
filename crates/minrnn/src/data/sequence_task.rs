//! What training and scoring need to know of a task.

use std::fmt::Debug;

use super::table::{Comparison, TableTask, UnseenNames};
use super::{BatchSource, EvaluationSet};
use crate::Result;
use crate::rng::Purpose;

/// What stands at every step of a task's sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoKind {
    /// A token or class below `n`.
    Tokens {
        /// How many there are.
        n: usize,
    },
    /// `width` numbers.
    Values {
        /// How many belong to a step.
        width: usize,
    },
}

/// How much there is to learn from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Steps of all sequences.
    pub steps: usize,
    /// Steps of a sequence on average, rounded up.
    pub length: usize,
    /// Steps of the longest sequence that can be learned from, also by a second round from all data.
    pub longest: usize,
    /// True where windows of at most `train.seq_len` steps are learned from instead of whole sequences.
    pub in_windows: bool,
    /// Updates that the smallest data need.
    pub least_updates: u64,
}

/// A task that is not plain text: how its sequences look, and where batches of them come from.
///
/// A task that gives one label to a whole sequence has it as the target of the sequence's last step and masks all others.
pub trait SequenceTask: Debug + Send + Sync {
    /// What the model reads.
    fn reads(&self) -> IoKind;

    /// What it predicts: a class of several, scored by cross-entropy and accuracy, or numbers, scored by the mean squared error.
    fn predicts(&self) -> IoKind {
        self.reads()
    }

    /// Steps of the longest sequence.
    fn longest(&self) -> usize;

    /// How much there is to learn from, where data are finite and a training may be as long as they ask for.
    fn extent(&self) -> Option<Extent> {
        None
    }

    /// The accuracy of guessing, where accuracies are compared on a scale on which guessing is 0.
    fn chance(&self) -> Option<f64> {
        None
    }

    /// True where data are finite and divided once: the part for `Purpose::ValidationData` then chooses the checkpoint alone, and the one for
    /// `Purpose::TestData` is scored once.
    fn has_parts(&self) -> bool {
        false
    }

    /// The same task with all that is not in a test file to train on; none where that is trained on already, or data are made as they are
    /// needed.
    fn all(&self) -> Option<Box<dyn SequenceTask>> {
        None
    }

    /// True where a file of its own is the test part.
    fn has_test_file(&self) -> bool {
        false
    }

    /// Refuses what no training should begin with, though models that did are used and scored.
    ///
    /// # Errors
    /// A sentence that says what to change.
    fn expect_to_begin(&self) -> Result<()> {
        Ok(())
    }

    /// What was taken from the data without being told, as a sentence; none where nothing was.
    fn understood(&self) -> Option<&str> {
        None
    }

    /// The columns of a table whose names the training of the model did not all see; none where they are learned.
    fn unseen_names(&self) -> &[UnseenNames] {
        &[]
    }

    /// Measures in the data's own units beside those of a baseline, where there are some, of the part for `purpose`.
    fn comparison(&self, _purpose: Purpose) -> Option<Box<dyn Comparison>> {
        None
    }

    /// The task on tables that it is, if it is one.
    fn table_task(&self) -> Option<TableTask> {
        None
    }

    /// What whoever uses the trained model needs to know: names of classes and columns, means and deviations. It is kept in every
    /// checkpoint. Of a task on tables it is [`table_task`](Self::table_task).
    fn description(&self) -> Option<serde_json::Value> {
        serde_json::to_value(self.table_task()?).ok()
    }

    /// Batches to train on.
    ///
    /// # Errors
    /// When a batch would be too large, or data cannot be read.
    fn training(&self, batch_size: usize, seed: u64) -> Result<Box<dyn BatchSource>>;

    /// Batches to score: the first `n_batches` drawn for `purpose`, or all of the part of a finite data set that is kept for it.
    ///
    /// # Errors
    /// When a batch would be too large, or data cannot be read.
    fn evaluation(&self, batch_size: usize, seed: u64, purpose: Purpose, n_batches: u64) -> Result<Box<dyn EvaluationSet>>;
}
