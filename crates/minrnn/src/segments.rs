//! Which parts of a batch are real: padding at the end of rows, and resets inside them.

use crate::ops::StepCodes;
use crate::{Error, Result};

/// The real part of a batch `[B, T]`: dense, padded to lengths, or with resets inside rows (packing, episode boundaries).
///
/// A reset before step `t` restores the row's initial state, and no gradient crosses it. Steps past a row's length keep the state and
/// output 0.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Segments {
    lengths: Option<Vec<usize>>,
    resets: Option<Vec<Vec<usize>>>,
}

impl Segments {
    /// Every step of every row is real and no row is reset.
    pub fn dense() -> Self {
        Self::default()
    }

    /// Row `b` is real for its first `lengths[b]` steps. A length of 0 returns the carried state.
    pub fn from_lengths(lengths: Vec<usize>) -> Self {
        Self { lengths: Some(lengths), resets: None }
    }

    /// Adds resets: row `b` is reset before each step listed in `resets[b]`.
    pub fn with_resets(mut self, resets: Vec<Vec<usize>>) -> Self {
        self.resets = Some(resets);
        self
    }

    /// Whether every step is real and nothing is reset.
    pub fn is_dense(&self) -> bool {
        self.lengths.is_none() && self.resets.is_none()
    }

    /// Number of real steps of each row, or `None` when all are real.
    pub fn lengths(&self) -> Option<&[usize]> {
        self.lengths.as_deref()
    }

    /// Steps before which each row is reset, or `None` when no row is.
    pub fn resets(&self) -> Option<&[Vec<usize>]> {
        self.resets.as_deref()
    }

    /// Splits before step `at` into the segments of steps `0..at` and of steps `at..`.
    pub fn split(&self, at: usize) -> (Self, Self) {
        let cut = |keep: &dyn Fn(usize) -> Option<usize>| {
            self.resets.as_ref().map(|rows| rows.iter().map(|row| row.iter().filter_map(|&t| keep(t)).collect()).collect())
        };
        let first = Self {
            lengths: self.lengths.as_ref().map(|l| l.iter().map(|&n| n.min(at)).collect()),
            resets: cut(&|t| (t < at).then_some(t)),
        };
        let second = Self {
            lengths: self.lengths.as_ref().map(|l| l.iter().map(|&n| n.saturating_sub(at)).collect()),
            resets: cut(&|t| t.checked_sub(at)),
        };
        (first, second)
    }

    /// One code per step, row-major `[B, T]`, for the kernels; `None` when dense.
    ///
    /// # Errors
    /// When the number of rows, a length or a reset does not fit `[batch_size, seq_len]`, or there are more steps than can be allocated.
    pub fn codes(&self, batch_size: usize, seq_len: usize) -> Result<Option<Vec<i32>>> {
        self.check(batch_size, seq_len)?;
        if self.is_dense() {
            return Ok(None);
        }
        let mut codes = Vec::new();
        let n_steps = batch_size.checked_mul(seq_len).filter(|&n_steps| codes.try_reserve_exact(n_steps).is_ok());
        let Some(n_steps) = n_steps else {
            return Err(Error::Shape(format!(
                "segments: {batch_size} rows of {seq_len} steps are more than memory has places; make fewer"
            )));
        };
        codes.resize(n_steps, minrnn_kernels::segments::CONTINUE);
        for (b, row) in self.resets.iter().flatten().enumerate() {
            row.iter().for_each(|t| codes[b * seq_len + t] = minrnn_kernels::segments::RESET);
        }
        for (b, &n) in self.lengths.iter().flatten().enumerate() {
            codes[b * seq_len + n..(b + 1) * seq_len].fill(minrnn_kernels::segments::PADDING);
        }
        Ok(Some(codes))
    }

    /// Checks that these segments fit a batch `[batch_size, seq_len]`.
    ///
    /// # Errors
    /// When the number of rows, a length or a reset does not fit.
    pub(crate) fn check(&self, batch_size: usize, seq_len: usize) -> Result<()> {
        if let Some(rows) = &self.resets {
            expect_rows("resets", rows.len(), batch_size)?;
            for (b, row) in rows.iter().enumerate() {
                if let Some(t) = row.iter().find(|&&t| t >= seq_len) {
                    return Err(Error::Shape(format!("segments: row {b} is reset before step {t}, but the batch has {seq_len} steps")));
                }
            }
        }
        if let Some(lengths) = &self.lengths {
            expect_rows("lengths", lengths.len(), batch_size)?;
            for (b, &n) in lengths.iter().enumerate() {
                if n > seq_len {
                    return Err(Error::Shape(format!("segments: row {b} has length {n}, but the batch has {seq_len} steps")));
                }
            }
        }
        Ok(())
    }

    /// The same for operations and models; compute it once per batch.
    ///
    /// # Errors
    /// As [`Segments::codes`].
    pub fn steps(&self, batch_size: usize, seq_len: usize) -> Result<StepCodes> {
        Ok(self.codes(batch_size, seq_len)?.map_or_else(StepCodes::dense, |codes| StepCodes::new(codes, seq_len)))
    }
}

fn expect_rows(what: &str, found: usize, batch_size: usize) -> Result<()> {
    if found == batch_size {
        return Ok(());
    }
    Err(Error::Shape(format!("segments: expected {what} for {batch_size} rows, found {found}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_mark_resets_and_padding() {
        let segments = Segments::from_lengths(vec![3, 0]).with_resets(vec![vec![0, 2], vec![]]);
        assert_eq!(segments.codes(2, 4).unwrap().unwrap(), [1, 0, 1, 2, 2, 2, 2, 2]);
        assert_eq!(Segments::dense().codes(2, 4).unwrap(), None);
    }

    #[test]
    fn splitting_keeps_every_code() {
        let segments = Segments::from_lengths(vec![5, 2]).with_resets(vec![vec![1, 4], vec![0]]);
        let whole = segments.codes(2, 6).unwrap().unwrap();
        for at in 0..=6 {
            let (first, second) = segments.split(at);
            let (first, second) = (first.codes(2, at).unwrap().unwrap(), second.codes(2, 6 - at).unwrap().unwrap());
            for b in 0..2 {
                let joined: Vec<i32> =
                    first[b * at..(b + 1) * at].iter().chain(&second[b * (6 - at)..(b + 1) * (6 - at)]).copied().collect();
                assert_eq!(joined, whole[b * 6..(b + 1) * 6], "cut {at} row {b}");
            }
        }
    }

    #[test]
    fn segments_that_do_not_fit_are_refused() {
        assert!(Segments::from_lengths(vec![5]).codes(1, 4).unwrap_err().to_string().contains("length 5"));
        assert!(Segments::from_lengths(vec![1]).codes(2, 4).unwrap_err().to_string().contains("2 rows"));
        assert!(Segments::dense().with_resets(vec![vec![4]]).codes(1, 4).unwrap_err().to_string().contains("step 4"));
    }

    #[test]
    fn rows_are_compared_before_memory_is_taken_for_them() {
        let refusal = |rows, steps| Segments::from_lengths(vec![1]).codes(rows, steps).unwrap_err().to_string();
        assert!(refusal(1 << 40, 1 << 20).contains("expected lengths for 1099511627776 rows, found 1"));
        for steps in [usize::MAX, 1 << 60] {
            assert!(refusal(1, steps).contains("more than memory has places"));
        }
    }
}
