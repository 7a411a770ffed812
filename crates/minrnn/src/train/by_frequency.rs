//! Scores by the frequency of the target token in the training text: how well rare tokens are predicted.
//!
//! With c the count of a token in the training text and C the largest of all counts, bin k = 0 … K − 1 holds the tokens with
//!
//! `C^(k/K) ≤ c < C^((k+1)/K)`, and the last bin also those with c = C:
//!
//! so bins have equal width in the logarithm of the count. Tokens that never occur have their own bin before these.

use std::ops::RangeInclusive;
use std::sync::atomic::AtomicBool;

use super::evaluate::{Evaluation, evaluate_each};
use super::predictor::Predictor;
use crate::Result;
use crate::data::{EvaluationSet, TextPart};

/// Tokens read from a file at once.
const CHUNK: usize = 1 << 16;

/// The scores of predictions whose targets are about equally frequent.
#[derive(Debug, Clone, PartialEq)]
pub struct FrequencyScore {
    /// Number of occurrences of such a token in the training text.
    pub counts: RangeInclusive<u64>,
    /// Number of vocabulary tokens with such a count.
    pub n_tokens: usize,
    /// Share of all predictions.
    pub share: f64,
    /// The measures.
    pub evaluation: Evaluation,
}

/// How often each token occurs in `part`.
///
/// # Errors
/// When the tokens cannot be read.
pub fn token_counts(part: &TextPart) -> Result<Vec<u64>> {
    let mut counts = vec![0; part.vocab_size()];
    let mut tokens = vec![0; CHUNK];
    for offset in (0..part.len()).step_by(CHUNK) {
        let n = (part.len() - offset).min(CHUNK as u64) as usize;
        part.read(offset, &mut tokens[..n])?;
        tokens[..n].iter().for_each(|&token| counts[token as usize] += 1);
    }
    Ok(counts)
}

/// Scores `model` (below autodiff) on `set` in up to `n_bins` bins of equal width in the logarithm of `counts`, rarest first; empty bins
/// are left out. `None` if `stop` was raised before the end.
///
/// # Errors
/// When a batch cannot be read.
pub fn evaluate_by_frequency(
    model: &impl Predictor,
    set: &mut dyn EvaluationSet,
    counts: &[u64],
    n_bins: usize,
    stop: &AtomicBool,
) -> Result<Option<Vec<FrequencyScore>>> {
    let bounds = bounds(counts.iter().copied().max().unwrap_or(0), n_bins);
    let bin_of: Vec<usize> = counts.iter().map(|&count| bin_of(count, &bounds)).collect();
    let mut sums = vec![Sum::default(); bounds.len() - 1];
    let finished = evaluate_each(model, set, stop, |target, loss, is_right| {
        let sum = &mut sums[bin_of[target]];
        sum.loss += loss;
        sum.right += u64::from(is_right);
        sum.n += 1;
    })?;
    let total = sums.iter().map(|sum| sum.n).sum::<u64>().max(1) as f64;
    let scores = sums.into_iter().enumerate().map(|(bin, Sum { loss, right, n })| FrequencyScore {
        counts: bounds[bin]..=bounds[bin + 1] - 1,
        n_tokens: bin_of.iter().filter(|&&of| of == bin).count(),
        share: n as f64 / total,
        evaluation: Evaluation { loss: loss / n.max(1) as f64, accuracy: Some(right as f64 / n.max(1) as f64), n_scored: n },
    });
    Ok(finished.then(|| scores.filter(|score| score.n_tokens > 0).collect()))
}

#[derive(Clone, Default)]
struct Sum {
    loss: f64,
    right: u64,
    n: u64,
}

/// The smallest count of each bin, the first of which is for 0, followed by one more than the greatest count.
fn bounds(greatest: u64, n_bins: usize) -> Vec<u64> {
    let greatest = greatest.max(1);
    // A bound that is an integer may come out slightly above it.
    let bound = |k| ((greatest as f64).powf(k as f64 / n_bins as f64) * (1.0 - 1e-12)).ceil() as u64;
    let mut bounds: Vec<u64> = [0].into_iter().chain((0..n_bins).map(bound)).chain([greatest + 1]).collect();
    bounds.dedup();
    bounds
}

fn bin_of(count: u64, bounds: &[u64]) -> usize {
    bounds.partition_point(|&bound| bound <= count) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_of_equal_width_in_the_logarithm() {
        // The cube root of 1000 is 10.
        assert_eq!(bounds(1000, 3), [0, 1, 10, 100, 1001]);
        assert_eq!([0, 1, 9, 10, 99, 100, 1000].map(|count| bin_of(count, &bounds(1000, 3))), [0, 1, 1, 2, 2, 3, 3]);
        // √2, 2 and 2^(3/2): no count lies between the first two.
        assert_eq!(bounds(4, 4), [0, 1, 2, 3, 5]);
        assert_eq!((bounds(1, 5), bounds(7, 1)), (vec![0, 1, 2], vec![0, 1, 8]));
    }
}
