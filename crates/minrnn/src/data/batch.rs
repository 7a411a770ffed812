//! Batches, and the two contracts that produce them: for training and for evaluation.

use std::sync::Arc;

use crate::{Error, Result, Segments};

/// `B` sequences of `T` steps with the targets at each step.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// The model's inputs.
    pub inputs: Sequences,
    /// The targets at the same steps; meaningless where the mask is 0.
    pub targets: Sequences,
    /// 1 where a step is scored and 0 elsewhere, row-major `[B, T]`; `None` if every step is scored.
    pub mask: Option<Vec<f32>>,
    /// Which steps are real, and where rows are reset.
    pub segments: Segments,
    /// Number of rows `B`.
    pub batch_size: usize,
    /// Number of steps `T`.
    pub seq_len: usize,
}

/// The content of every step of a batch.
#[derive(Debug, Clone, PartialEq)]
pub enum Sequences {
    /// Token ids or classes, row-major `[B, T]`.
    Tokens(Vec<u32>),
    /// `width` numbers at every step, row-major `[B, T, width]`.
    Values {
        /// The numbers.
        values: Vec<f32>,
        /// Numbers per step.
        width: usize,
    },
    /// Targets whose quantiles are predicted: levels · width outputs at every step, with the levels of each number adjacent.
    Quantiles {
        /// The numbers; NaN where missing.
        values: Vec<f32>,
        /// Numbers per step.
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

    /// Checks that there is one entry at each of `n_steps` steps.
    fn check(&self, what: &str, n_steps: usize) -> Result<()> {
        let (found, width) = match self {
            Self::Tokens(tokens) => (tokens.len(), 1),
            Self::Values { values, width } | Self::Quantiles { values, width, .. } => (values.len(), *width),
        };
        if n_steps.checked_mul(width) == Some(found) {
            return Ok(());
        }
        Err(Error::Shape(format!(
            "batch: expected {what} of {width} numbers at each of {n_steps} steps, found {found}; make one for every step"
        )))
    }
}

impl From<Vec<u32>> for Sequences {
    fn from(tokens: Vec<u32>) -> Self {
        Self::Tokens(tokens)
    }
}

impl Batch {
    /// Checks that inputs, targets, mask and segments fit `batch_size` rows of `seq_len` steps.
    ///
    /// # Errors
    /// When one of them does not.
    pub fn check(&self) -> Result<()> {
        let (rows, seq_len) = (self.batch_size, self.seq_len);
        let Some(n_steps) = rows.checked_mul(seq_len) else {
            return Err(Error::Shape(format!("batch: {rows} rows of {seq_len} steps are more than memory has places; make fewer")));
        };
        self.inputs.check("inputs", n_steps)?;
        self.targets.check("targets", n_steps)?;
        match &self.mask {
            Some(mask) if mask.len() != n_steps => {
                let found = mask.len();
                Err(Error::Shape(format!(
                    "batch: expected a mask of {n_steps} weights, one for each step, found {found}; make one for every step"
                )))
            }
            _ => self.segments.check(rows, seq_len),
        }
    }

    /// Number of scored predictions, by which a summed loss is divided.
    pub fn n_scored(&self) -> usize {
        match &self.mask {
            None => self.batch_size * self.seq_len,
            Some(mask) => mask.iter().filter(|&&m| m != 0.0).count(),
        }
    }

    /// Number of classes or numbers that scored predictions are compared with, excluding missing ones and those beyond the end of a mask
    /// that is too short.
    pub fn n_targets(&self) -> usize {
        let (values, width) = match &self.targets {
            Sequences::Tokens(_) => return self.n_scored(),
            Sequences::Values { values, width } | Sequences::Quantiles { values, width, .. } => (values, *width),
        };
        let is_scored = |row: usize| self.mask.as_ref().is_none_or(|mask| mask.get(row).is_some_and(|&weight| weight != 0.0));
        let scored = values.chunks_exact(width.max(1)).enumerate().filter(|&(row, _)| is_scored(row));
        scored.map(|(_, values)| values.iter().filter(|value| !value.is_nan()).count()).sum()
    }
}

/// What happens to the model's state at the end of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carry {
    /// It is dropped: every batch starts from the initial state.
    Nowhere,
    /// It is carried to the next batch: through the micro-steps of an update, and from the last to the first of the next update.
    ToNextBatch,
    /// It is carried to the same micro-step of the next update: each micro-step has its own sequences, so they can be distributed among
    /// processes.
    ToNextUpdate,
}

/// An endless supply of training batches.
///
/// The batch of (iteration, micro-step) is a pure function of the source's settings and these two numbers, so a resumed run simply asks for
/// the next one; no position is saved.
pub trait BatchSource: Send {
    /// The batch of micro-step `micro` (from 0) of `iteration` (from 0).
    ///
    /// # Errors
    /// When the underlying data can no longer be read.
    fn batch(&mut self, iteration: u64, micro: u64) -> Result<Batch>;

    /// What happens to the model's state at the end of a batch.
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

    /// Whether the model's state at the end of a batch is the starting state of the next one.
    fn carries_state(&self) -> bool {
        false
    }
}

/// The first `n_batches` iterations of a source as an evaluation set: random batches with a fixed seed.
#[derive(Debug, Clone)]
pub struct FixedBatches<S> {
    source: S,
    n_batches: u64,
}

impl<S: BatchSource> FixedBatches<S> {
    /// The first `n_batches` iterations of `source`, which should have its own seed or purpose.
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

    #[test]
    fn parts_of_other_sizes_are_refused() {
        let batch = || Batch {
            inputs: vec![0; 6].into(),
            targets: Sequences::Values { values: vec![0.0; 12], width: 2 },
            mask: Some(vec![1.0; 6]),
            segments: Segments::from_lengths(vec![3, 1]),
            batch_size: 2,
            seq_len: 3,
        };
        let refusal = |change: &dyn Fn(&mut Batch)| {
            let mut batch = batch();
            change(&mut batch);
            batch.check().unwrap_err().to_string()
        };
        batch().check().unwrap();
        assert!(refusal(&|batch| batch.inputs = vec![0; 7].into()).contains("inputs of 1 numbers at each of 6 steps, found 7"));
        assert!(refusal(&|batch| batch.targets = vec![0; 5].into()).contains("targets of 1 numbers at each of 6 steps, found 5"));
        assert!(refusal(&|batch| batch.mask = Some(vec![1.0; 3])).contains("a mask of 6 weights, one for each step, found 3"));
        assert!(refusal(&|batch| batch.segments = Segments::from_lengths(vec![3])).contains("lengths for 2 rows, found 1"));
        assert!(refusal(&|batch| batch.batch_size = usize::MAX).contains("more than memory has places"));
    }

    #[test]
    fn targets_that_a_mask_is_too_short_for_do_not_count() {
        let targets = Sequences::Values { values: vec![0.0; 4], width: 1 };
        let (inputs, segments) = (vec![0; 4].into(), Segments::dense());
        assert_eq!(Batch { inputs, targets, mask: Some(vec![1.0; 3]), segments, batch_size: 1, seq_len: 4 }.n_targets(), 3);
    }
}
