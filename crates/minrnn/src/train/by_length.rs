//! Scores of a formal language at each string length: the range evaluation of DeepMind's study of the Chomsky hierarchy.

use std::ops::RangeInclusive;
use std::sync::atomic::AtomicBool;

use super::evaluate::{Evaluation, evaluate};
use super::predictor::Predictor;
use crate::Result;
use crate::data::{FormalTask, OneLength};

/// The scores of strings of some lengths. Loss and accuracy are means over lengths, each with the same weight however many answers its
/// strings have.
#[derive(Debug, Clone, PartialEq)]
pub struct LengthScore {
    /// The lengths, as the protocol counts them.
    pub lengths: RangeInclusive<usize>,
    /// Number of strings of each length.
    pub n_strings: u64,
    /// The measures.
    pub evaluation: Evaluation,
}

impl LengthScore {
    /// The mean over lengths of `scores`, which must be adjacent; `None` if there are none.
    pub fn mean(scores: &[Self]) -> Option<Self> {
        let (first, last) = (scores.first()?, scores.last()?);
        let lengths = |score: &Self| (score.lengths.end() + 1 - score.lengths.start()) as f64;
        let total: f64 = scores.iter().map(lengths).sum();
        let mean =
            |value: fn(&Evaluation) -> f64| scores.iter().map(|score| lengths(score) * value(&score.evaluation)).sum::<f64>() / total;
        let evaluation = Evaluation {
            loss: mean(|evaluation| evaluation.loss),
            accuracy: Some(mean(|evaluation| evaluation.accuracy.unwrap_or(0.0))),
            n_scored: scores.iter().map(|score| score.evaluation.n_scored).sum(),
        };
        Some(Self { lengths: *first.lengths.start()..=*last.lengths.end(), n_strings: first.n_strings, evaluation })
    }
}

/// Scores `model` (below autodiff) on `n_strings` strings of `length` in the language of `task`; `None` if `stop` was raised before the
/// end.
///
/// # Errors
/// When there are no strings of that length.
pub fn evaluate_length(
    model: &impl Predictor,
    task: &FormalTask,
    length: usize,
    n_strings: u64,
    seed: u64,
    stop: &AtomicBool,
) -> Result<Option<LengthScore>> {
    let evaluation = evaluate(model, &mut OneLength::new(task, length, n_strings, seed)?, stop)?;
    Ok(evaluation.map(|evaluation| LengthScore { lengths: length..=length, n_strings, evaluation }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_counts_the_same() {
        let score = |lengths: RangeInclusive<usize>, loss, accuracy, n_scored| LengthScore {
            lengths,
            n_strings: 4,
            evaluation: Evaluation { loss, accuracy: Some(accuracy), n_scored },
        };
        // Bucket sort has as many answers as symbols, yet lengths 1, 2 and 3 have equal weight.
        let scores = [score(1..=1, 0.0, 1.0, 4), score(2..=2, 0.3, 0.5, 8), score(3..=3, 0.9, 0.25, 12)];
        let mean = LengthScore::mean(&scores).unwrap();
        assert_eq!((mean.lengths.clone(), mean.n_strings, mean.evaluation.n_scored), (1..=3, 4, 24));
        assert!((mean.evaluation.loss - 0.4).abs() < 1e-12 && (mean.evaluation.accuracy.unwrap() - 1.75 / 3.0).abs() < 1e-12);
        // The mean of means of unequal ranges is that of all lengths.
        let again = LengthScore::mean(&[LengthScore::mean(&scores[..2]).unwrap(), scores[2].clone()]).unwrap();
        assert!((again.evaluation.accuracy.unwrap() - mean.evaluation.accuracy.unwrap()).abs() < 1e-12);
        assert_eq!(LengthScore::mean(&[]), None);
    }
}
