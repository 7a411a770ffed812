//! Sequences with one class each, as a batch: the class is the target of the last step, and nothing else is scored.

use super::Batch;
use crate::Segments;

/// A sequence of at least one token and its class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Labelled {
    pub tokens: Vec<u32>,
    /// The step before which the model is reset, if the sequence is two concatenated ones.
    pub restart: Option<usize>,
    pub class: u32,
}

/// Rows padded at their ends with token 0.
pub(super) fn side_by_side(rows: &[Labelled]) -> Batch {
    let lengths: Vec<usize> = rows.iter().map(|row| row.tokens.len()).collect();
    let (batch_size, seq_len) = (rows.len(), lengths.iter().copied().max().unwrap_or(0));
    let mut inputs = vec![0; batch_size * seq_len];
    for (row, out) in rows.iter().zip(inputs.chunks_exact_mut(seq_len.max(1))) {
        out[..row.tokens.len()].copy_from_slice(&row.tokens);
    }
    let (targets, mask) = targets_at_the_ends(rows.iter().map(|row| row.class), &lengths, seq_len);
    let mut segments = if lengths.iter().all(|&length| length == seq_len) { Segments::dense() } else { Segments::from_lengths(lengths) };
    if rows.iter().any(|row| row.restart.is_some()) {
        segments = segments.with_resets(rows.iter().map(|row| row.restart.into_iter().collect()).collect());
    }
    Batch { inputs: inputs.into(), targets: targets.into(), mask: Some(mask), segments, batch_size, seq_len }
}

/// Targets and mask `[B, T]` with one class for each row, at its last step.
pub(super) fn targets_at_the_ends(classes: impl Iterator<Item = u32>, lengths: &[usize], seq_len: usize) -> (Vec<u32>, Vec<f32>) {
    let (mut targets, mut mask) = (vec![0; lengths.len() * seq_len], vec![0.0; lengths.len() * seq_len]);
    for (row, (class, &length)) in classes.zip(lengths).enumerate() {
        let last = row * seq_len + length - 1;
        targets[last] = class;
        mask[last] = 1.0;
    }
    (targets, mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_stands_at_the_last_real_step() {
        let row = |tokens: &[u32], restart, class| Labelled { tokens: tokens.to_vec(), restart, class };
        let batch = side_by_side(&[row(&[5, 6], None, 3), row(&[7, 8, 9], Some(1), 2)]);
        assert_eq!(batch.inputs.tokens(), [5, 6, 0, 7, 8, 9]);
        assert_eq!(batch.targets.tokens(), [0, 3, 0, 0, 0, 2]);
        assert_eq!(batch.mask.unwrap(), [0.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
        assert_eq!(batch.segments, Segments::from_lengths(vec![2, 3]).with_resets(vec![vec![], vec![1]]));
        assert!(side_by_side(&[row(&[1], None, 0), row(&[2], None, 1)]).segments.is_dense());
    }
}
