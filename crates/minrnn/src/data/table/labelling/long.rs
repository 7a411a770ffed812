//! Long sequences, of which a step of the model has several rows.

use minrnn_model::{Category, MAX_ROWS_PER_STEP, RowsPerStep};

use super::super::normalization;
use super::super::series::Series;
use crate::Result;

/// Rows up to which, on average, every row is a step.
const MOST_ROWS: usize = 512;
/// Most steps that longer sequences have, on average.
const STEPS: usize = 256;

/// How many rows of sequences are a step if nothing else is wanted: one, or for long sequences as few as leave at most `STEPS` steps on average.
pub(super) fn usual_rows_per_step<'a>(sequences: impl Iterator<Item = &'a Series>) -> usize {
    let (rows, n) = sequences.fold((0, 0), |(rows, n), series| (rows + series.len(), n + 1));
    rows_of_length(rows.div_ceil(n.max(1)))
}

/// The same for sequences of `rows` rows on average.
fn rows_of_length(rows: usize) -> usize {
    if rows > MOST_ROWS { rows.div_ceil(STEPS).min(MAX_ROWS_PER_STEP) } else { 1 }
}

/// Steps of `n` rows, on the scale of the `sequences`, whose rows have `width` columns, some of them `categories`; `None` for single rows.
///
/// # Errors
/// When numbers are too large to be squared.
pub(super) fn fit<'a>(
    n: usize,
    width: usize,
    categories: &[Category],
    sequences: impl Iterator<Item = &'a Series> + Clone,
) -> Result<Option<RowsPerStep>> {
    if n < 2 {
        return Ok(None);
    }
    let is_number: Vec<bool> = (0..width).map(|column| categories.iter().all(|category| category.column != column)).collect();
    let of_step = |rows: &[f64]| -> Vec<f64> {
        let summary = |column: usize| RowsPerStep::summary(rows, width, column).filter(|_| is_number[column]);
        (0..width).flat_map(|column| summary(column).unwrap_or([f64::NAN; RowsPerStep::INPUTS])).collect()
    };
    let steps = sequences.flat_map(|series| series.rows_at_a_time(n).map(&of_step));
    Ok(Some(RowsPerStep { n, normalization: normalization::fit(RowsPerStep::INPUTS * width, steps)? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_sequences_have_about_as_many_steps_and_no_step_has_too_many_rows() {
        for (mean, expected) in [(1, 1), (512, 1), (513, 3), (768, 3), (769, 4), (2000, 8), (20_000_000, MAX_ROWS_PER_STEP)] {
            assert_eq!(rows_of_length(mean), expected, "{mean}");
        }
    }
}
