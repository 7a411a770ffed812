//! Which sequences belong to which part.

use rand::seq::SliceRandom;

use super::super::Division;
use crate::rng::{self, Purpose};
use crate::{Error, Result};

/// The indices of the sequences of each part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Parts {
    pub training: Vec<usize>,
    pub validation: Vec<usize>,
    pub test: Vec<usize>,
}

impl Parts {
    /// Splits the sequences of each of `n_kinds` kinds in a seeded order, the first ones for training.
    pub fn divide(kinds: &[u32], n_kinds: usize, train_fraction: f64, seed: u64) -> Self {
        let mut rng = rng::stream(seed, Purpose::Order, 0);
        let mut parts = Self::default();
        for kind in 0..n_kinds {
            let mut of_kind: Vec<usize> = (0..kinds.len()).filter(|&at| kinds[at] as usize == kind).collect();
            of_kind.shuffle(&mut rng);
            let n_training = ((of_kind.len() as f64 * train_fraction).round() as usize).max(1).min(of_kind.len());
            parts.training.extend(&of_kind[..n_training]);
            parts.test.extend(&of_kind[n_training..]);
        }
        parts
    }

    /// Uses every other held-out sequence for validation, if wanted.
    pub fn halved(mut self, validates: bool) -> Self {
        if validates {
            let held_out = std::mem::take(&mut self.test);
            for (at, series) in held_out.into_iter().enumerate() {
                (if at % 2 == 0 { &mut self.test } else { &mut self.validation }).push(series);
            }
        }
        self
    }

    /// Checks that every part that is needed has sequences, given `n_kinds` kinds.
    ///
    /// # Errors
    /// With a sentence that says what to change.
    pub fn expect_enough(&self, division: &Division, n_kinds: usize) -> Result<()> {
        let lacks_validation = division.validates && self.validation.is_empty();
        if !self.test.is_empty() && !lacks_validation {
            return Ok(());
        }
        let (fraction, held_out) = (division.train_fraction, self.validation.len() + self.test.len());
        let expected = if division.validates { "at least 2: one to validate and one to test with" } else { "at least 1 to test with" };
        // At least one sequence of each kind is always learned from.
        let way = match (n_kinds, self.training.len() > n_kinds) {
            (_, true) => "give more sequences or lower train_fraction",
            (1, false) => "give more sequences",
            (_, false) => "one sequence of every class is learned from, so give at least two of each",
        };
        Err(Error::Data(format!(
            "with train_fraction = {fraction}, {held_out} of its {} sequences are held out, expected {expected}; {way}",
            self.training.len() + held_out
        )))
    }

    pub fn of(&self, purpose: Purpose) -> &[usize] {
        match purpose {
            Purpose::TrainData => &self.training,
            Purpose::ValidationData => &self.validation,
            _ => &self.test,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_sequence_is_in_one_part_and_every_class_is_trained_on(
            classes in prop::collection::vec(0..3u32, 6..60), train_fraction in 0.3..0.8f64, seed: u64, validates: bool,
        ) {
            let parts = Parts::divide(&classes, 3, train_fraction, seed).halved(validates);
            let mut all: Vec<usize> = [&parts.training, &parts.validation, &parts.test].into_iter().flatten().copied().collect();
            all.sort_unstable();
            prop_assert_eq!(all, (0..classes.len()).collect::<Vec<_>>());
            prop_assert!(!validates || parts.test.len() - parts.validation.len() <= 1);
            prop_assert!(validates || parts.validation.is_empty());
            for class in &classes {
                prop_assert!(parts.training.iter().any(|&at| classes[at] == *class));
            }
            prop_assert_eq!(&parts, &Parts::divide(&classes, 3, train_fraction, seed).halved(validates));
        }
    }
}
