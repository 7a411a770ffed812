//! What a batch is, and the two contracts that produce batches: for training and for evaluation.

use std::sync::Arc;

use crate::{Error, Result, Segments};

/// `B` sequences of `T` steps with what should be predicted at each step.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// What the model reads.
    pub inputs: Sequences,
    /// What it should predict at the same step. Where the mask is 0 it means nothing.
    pub targets: Sequences,
    /// 1 where a step is scored, 0 where it is not, row-major `[B, T]`; `None` when every step is scored.
    pub mask: Option<Vec<f32>>,
    /// Which steps are real, and where rows start anew.
    pub segments: Segments,
    /// Number of rows `B`.
    pub batch_size: usize,
    /// Number of steps `T`.
    pub seq_len: usize,
}

/// What stands at every step of a batch.
#[derive(Debug, Clone, PartialEq)]
pub enum Sequences {
    /// Token ids or classes, row-major `[B, T]`.
    Tokens(Vec<u32>),
    /// `width` numbers at every step, row-major `[B, T, width]`.
    Values {
        /// The numbers.
        values: Vec<f32>,
        /// How many belong to a step.
        width: usize,
    },
    /// The same as targets, of which quantiles are predicted: levels · width of them at every step, the levels of each number together.
    Quantiles {
        /// The numbers; NaN where one is missing.
        values: Vec<f32>,
        /// How many belong to a step.
        width: usize,
        /// The levels, between 0 and 1.
        levels: Arc<[f32]>,
    },
}

impl Sequences {
    /// The token ids.
    ///
    /// # Panics
    /// When these are values.
    pub fn tokens(&self) -> &[u32] {
        match self {
            Self::Tokens(tokens) => tokens,
            Self::Values { .. } | Self::Quantiles { .. } => panic!("expected tokens, found values"),
        }
    }

    /// The numbers.
    ///
    /// # Panics
    /// When these are tokens.
    pub fn values(&self) -> &[f32] {
        match self {
            Self::Values { values, .. } | Self::Quantiles { values, .. } => values,
            Self::Tokens(_) => panic!("expected values, found tokens"),
        }
    }
}

impl From<Vec<u32>> for Sequences {
    fn from(tokens: Vec<u32>) -> Self {
        Self::Tokens(tokens)
    }
}

impl Batch {
    /// Number of scored predictions, by which a summed loss is divided.
    pub fn n_scored(&self) -> usize {
        match &self.mask {
            None => self.batch_size * self.seq_len,
            Some(mask) => mask.iter().filter(|&&m| m != 0.0).count(),
        }
    }

    /// Number of classes or numbers that scored predictions are compared with; those that are missing do not count.
    pub fn n_targets(&self) -> usize {
        let (values, width) = match &self.targets {
            Sequences::Tokens(_) => return self.n_scored(),
            Sequences::Values { values, width } | Sequences::Quantiles { values, width, .. } => (values, *width),
        };
        let is_scored = |row: usize| self.mask.as_ref().is_none_or(|mask| mask[row] != 0.0);
        let scored = values.chunks_exact(width.max(1)).enumerate().filter(|&(row, _)| is_scored(row));
        scored.map(|(_, values)| values.iter().filter(|value| !value.is_nan()).count()).sum()
    }
}

/// Where the model's state at the end of a batch goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carry {
    /// It is dropped: every batch starts from the initial state.
    Nowhere,
    /// To the next batch: through the micro-steps of an update, and from its last to the first of the next update.
    ToNextBatch,
    /// To the same micro-step of the next update: each has sequences of its own, and so they can be shared out.
    ToNextUpdate,
}

/// An endless supply of training batches.
///
/// The batch of (iteration, micro-step) is a pure function of the source's own settings and these two numbers, so a
/// resumed run asks for the next one and needs no saved position.
pub trait BatchSource: Send {
    /// The batch of micro-step `micro` (from 0) of `iteration` (from 0).
    ///
    /// # Errors
    /// When the data behind it cannot be read any more.
    fn batch(&mut self, iteration: u64, micro: u64) -> Result<Batch>;

    /// Where the model's state at the end of a batch goes.
    fn carry(&self) -> Carry {
        Carry::Nowhere
    }

    /// Steps fed to the model per batch, `B · T`.
    fn tokens_per_batch(&self) -> usize;
}

/// A fixed, finite list of batches to score.
pub trait EvaluationSet: Send {
    /// Number of batches.
    fn n_batches(&self) -> u64;

    /// Batch `index` (from 0), the same every time.
    ///
    /// # Errors
    /// When `index` is not below [`EvaluationSet::n_batches`] or the data cannot be read.
    fn batch(&mut self, index: u64) -> Result<Batch>;

    /// True when the model's state at the end of a batch is the starting state of the next one.
    fn carries_state(&self) -> bool {
        false
    }
}

/// The first `n_batches` iterations of a source, as an evaluation set: random batches with a fixed seed.
#[derive(Debug, Clone)]
pub struct FixedBatches<S> {
    source: S,
    n_batches: u64,
}

impl<S: BatchSource> FixedBatches<S> {
    /// The first `n_batches` iterations of `source`, which should have a seed or purpose of its own.
    pub fn new(source: S, n_batches: u64) -> Self {
        Self { source, n_batches }
    }
}

impl<S: BatchSource> EvaluationSet for FixedBatches<S> {
    fn n_batches(&self) -> u64 {
        self.n_batches
    }

    fn batch(&mut self, index: u64) -> Result<Batch> {
        expect_index(index, self.n_batches)?;
        self.source.batch(index, 0)
    }

    fn carries_state(&self) -> bool {
        self.source.carry() != Carry::Nowhere
    }
}

/// Refuses a batch that is not in an evaluation set.
pub(super) fn expect_index(index: u64, n_batches: u64) -> Result<()> {
    if index < n_batches {
        return Ok(());
    }
    Err(Error::Shape(format!("the evaluation set has {n_batches} batches, but batch {index} (counted from 0) was asked for")))
}

/// Refuses shapes that are empty or whose size cannot be allocated; returns `B · T`.
pub(super) fn check_shape(batch_size: usize, seq_len: usize) -> Result<usize> {
    if batch_size == 0 || seq_len == 0 {
        return Err(Error::Config(format!("batch_size and seq_len must be at least 1, found {batch_size} and {seq_len}")));
    }
    match batch_size.checked_mul(seq_len) {
        Some(n) if n <= i32::MAX as usize => Ok(n),
        _ => Err(Error::Config(format!(
            "batch_size {batch_size} times seq_len {seq_len} is more than {} tokens in one batch; lower one of them and use accumulation",
            i32::MAX
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_shapes_are_refused() {
        assert_eq!(check_shape(3, 4).unwrap(), 12);
        for (b, t) in [(0, 1), (1, 0), (usize::MAX, 2), (1 << 20, 1 << 20)] {
            assert!(matches!(check_shape(b, t), Err(Error::Config(_))));
        }
    }

    #[test]
    fn only_masked_steps_count_as_scored() {
        let mut batch = Batch {
            inputs: vec![0; 6].into(),
            targets: vec![0; 6].into(),
            mask: None,
            segments: Segments::dense(),
            batch_size: 2,
            seq_len: 3,
        };
        assert_eq!(batch.n_scored(), 6);
        batch.mask = Some(vec![0.0, 1.0, 0.0, 1.0, 1.0, 0.0]);
        assert_eq!(batch.n_scored(), 3);
    }
}
