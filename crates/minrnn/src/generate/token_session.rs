//! What text generation needs from a model: sequences read so far, and the logits after one more token.

use crate::{Error, Result};

/// Logits of the next token, one row for each sequence.
#[derive(Debug, Clone, PartialEq)]
pub struct Logits {
    values: Vec<f32>,
    vocab_size: usize,
}

impl Logits {
    /// Rows of `vocab_size` values each.
    pub(super) fn new(values: Vec<f32>, vocab_size: usize) -> Self {
        Self { values, vocab_size }
    }

    /// The V logits of sequence `row`.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.vocab_size..][..self.vocab_size]
    }

    /// The same for modification: masks and penalties are written into it.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn row_mut(&mut self, row: usize) -> &mut [f32] {
        &mut self.values[row * self.vocab_size..][..self.vocab_size]
    }
}

/// Name, shape and values of a part of a state, whose first dimension is the batch.
pub type StateTensor = (String, Vec<usize>, Vec<f32>);

/// Refuses named parts with numbers that no state of a working model holds.
///
/// # Errors
/// When one is NaN or infinite.
pub(super) fn expect_finite<'a>(parts: impl IntoIterator<Item = (&'a str, &'a [f32])>) -> Result<()> {
    let flawed = parts.into_iter().find_map(|(name, values)| Some((name, values.iter().find(|value| !value.is_finite())?)));
    flawed.map_or(Ok(()), |(name, value)| {
        Err(Error::Data(format!("its state '{name}' holds {value}, expected finite numbers; start a new session")))
    })
}

/// A batch of sequences and the model's state for each. Cloning forks it.
pub trait TokenSession: Clone {
    /// Number of sequences.
    fn batch_size(&self) -> usize;

    /// Number of tokens the model knows.
    fn vocab_size(&self) -> usize;

    /// Reads more of every sequence, in parallel over time; an empty row stays as it is.
    ///
    /// # Errors
    /// When there is not one prompt for each row, or a token is not in the vocabulary; nothing is then read.
    fn advance<P: AsRef<[u32]>>(&mut self, prompts: &[P]) -> Result<()>;

    /// Reads one token for each of the sequences `rows`, ascending, and returns their logits in that order; the others stay as they are.
    ///
    /// # Errors
    /// When there is not one token for each of the rows, they are not ascending or do not exist, or a token is not in the vocabulary.
    fn step_rows(&mut self, rows: &[usize], tokens: &[u32]) -> Result<Logits>;

    /// A session of the rows `rows`, in that order; a row may be chosen several times.
    ///
    /// # Errors
    /// When a row does not exist.
    fn select(&self, rows: &[usize]) -> Result<Self>;

    /// Number of f32 values in the state of one new sequence.
    fn values_per_row(&self) -> usize;

    /// Every part of the state.
    fn tensors(&self) -> Vec<StateTensor>;

    /// A session of the same model with `batch_size` rows and the state returned by [`tensors`](TokenSession::tensors).
    ///
    /// # Errors
    /// When a part is missing, has another shape, or holds a number that is not finite.
    fn restore(&self, batch_size: usize, tensors: Vec<StateTensor>) -> Result<Self>;
}

pub(super) fn expect_step(rows: &[usize], tokens: &[u32], batch_size: usize) -> Result<()> {
    if rows.len() != tokens.len() {
        return Err(Error::Shape(format!("expected one token for each of {} rows, found {}", rows.len(), tokens.len())));
    }
    if rows.windows(2).any(|pair| pair[0] >= pair[1]) || rows.last().is_some_and(|&row| row >= batch_size) {
        return Err(Error::Shape(format!("expected ascending rows below {batch_size}, found {rows:?}")));
    }
    Ok(())
}

pub(super) fn expect_rows(rows: &[usize], batch_size: usize) -> Result<()> {
    match rows.iter().find(|&&row| row >= batch_size) {
        None => Ok(()),
        Some(row) => Err(Error::Shape(format!("the session has {batch_size} rows, there is no row {row}"))),
    }
}
