//! Masked softmax cross-entropy.

use super::Float;
use alloc::vec;
use alloc::vec::Vec;

/// Probabilities of a row and the logarithm of the sum of its exponentials.
fn softmax<T: Float>(row: &[T]) -> (Vec<T>, T) {
    let most = row.iter().fold(T::NEG_INFINITY, |most, &x| most.max(x));
    let sum = row.iter().fold(T::ZERO, |sum, &x| sum + (x - most).exp());
    (row.iter().map(|&x| (x - most).exp() / sum).collect(), most + sum.ln())
}

/// (Σ mask · nll, Σ mask); as [`crate::cross_entropy::forward`].
pub fn forward<T: Float>(rows: usize, classes: usize, logits: &[T], targets: &[i32], mask: Option<&[T]>) -> (T, T) {
    let (mut loss, mut weight) = (T::ZERO, T::ZERO);
    for n in (0..rows).filter(|&n| mask.is_none_or(|mask| mask[n] != T::ZERO)) {
        let row = &logits[n * classes..(n + 1) * classes];
        let w = mask.map_or(T::ONE, |mask| mask[n]);
        loss += w * (softmax(row).1 - row[targets[n] as usize]);
        weight += w;
    }
    (loss, weight)
}

/// d_logits `[rows, classes]`; as [`crate::cross_entropy::backward`].
pub fn backward<T: Float>(rows: usize, classes: usize, logits: &[T], targets: &[i32], mask: Option<&[T]>, scale: T) -> Vec<T> {
    let mut d_logits = vec![T::ZERO; logits.len()];
    for n in (0..rows).filter(|&n| mask.is_none_or(|mask| mask[n] != T::ZERO)) {
        let w = scale * mask.map_or(T::ONE, |mask| mask[n]);
        for (c, p) in softmax(&logits[n * classes..(n + 1) * classes]).0.into_iter().enumerate() {
            d_logits[n * classes + c] = w * p;
        }
        d_logits[n * classes + targets[n] as usize] -= w;
    }
    d_logits
}
