//! Which steps of a series are for training and which are scored.

use std::ops::Range;

/// A part of every sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// For training.
    Training,
    /// For choosing the best checkpoint.
    Validation,
    /// For the report.
    Test,
}

impl Part {
    /// The name of the part.
    pub fn name(self) -> &'static str {
        match self {
            Self::Training => "training part",
            Self::Validation => "validation part",
            Self::Test => "test part",
        }
    }
}

/// Where the parts of a series end; a part that ends where it begins is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    pub training: usize,
    pub validation: usize,
    pub test: usize,
}

impl Bounds {
    /// Splits a series of `n` steps: what does not fit into `train_fraction` is held out for testing, or in halves for validation (if
    /// wanted) and testing, each with room for a whole forecast of `horizon` steps. A series too short for a test part is trained on, and
    /// so is the validation part of one too short for both.
    pub fn divide(n: usize, train_fraction: f64, horizon: usize, validates: bool) -> Self {
        let held_out = n - ((n as f64 * train_fraction) as usize).min(n);
        let room = |part: usize, left: usize| Some(part.max(horizon)).filter(|part| part.saturating_add(2) <= left).unwrap_or(0);
        let test = room(held_out.div_ceil(2), n);
        let validation = if validates && test > 0 { room(held_out / 2, n - test) } else { 0 };
        Self { training: n - test - validation, validation: n - test, test: n }
    }

    /// The parts of a series that continues in separate files: it has `validated` steps including those in a validation file, and `tested`
    /// including those in a test file. No step of such a file is trained on. Each file replaces only its own part: without a validation
    /// file the end of the training file validates, if wanted, and without a test file nothing tests.
    pub fn with_files(self, validated: Option<usize>, tested: Option<usize>, validates: bool) -> Self {
        let own = self.test;
        match (validated, tested) {
            (None, None) => self,
            (Some(validation), Some(test)) => Self { training: own, validation, test },
            (None, Some(test)) if validates => Self { training: self.validation, validation: own, test },
            (None, Some(test)) => Self { training: own, validation: own, test },
            (Some(validation), None) => Self { training: own, validation, test: validation },
        }
    }

    /// Trains on everything up to `end`.
    pub fn trained_to(self, end: usize) -> Self {
        Self { training: end, validation: end, test: self.test }
    }

    /// The steps of a part.
    pub fn of(&self, part: Part) -> Range<usize> {
        match part {
            Part::Training => 0..self.training,
            Part::Validation => self.training..self.validation,
            Part::Test => self.validation..self.test,
        }
    }

    /// The steps whose forecasts of `horizon` steps belong to a part. The predictions of a training step may extend beyond it; those of the
    /// other parts may not, except for the first step if no whole forecast fits.
    pub fn scored(&self, part: Part, horizon: usize) -> Range<usize> {
        let steps = self.of(part);
        let first = steps.start.saturating_sub(1);
        let end = match part {
            Part::Training => steps.end.saturating_sub(1),
            _ if steps.end <= first + 1 || steps.is_empty() => first,
            _ => steps.end.saturating_sub(horizon).max(first + 1),
        };
        first..end.max(first)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_long_series_is_divided_by_its_fraction_and_a_short_one_by_its_horizon() {
        let of = |n, fraction, horizon, validates| {
            let Bounds { training, validation, test } = Bounds::divide(n, fraction, horizon, validates);
            [training, validation, test]
        };
        assert_eq!(of(100, 0.8, 4, true), [80, 90, 100]);
        assert_eq!(of(100, 0.8, 4, false), [90, 90, 100]);
        // 48 months of which 18 are to come.
        assert_eq!(of(48, 0.8, 18, false), [30, 30, 48]);
        assert_eq!(of(48, 0.8, 18, true), [12, 30, 48]);
        assert_eq!(of(30, 0.8, 18, true), [12, 12, 30]);
        assert_eq!(of(19, 0.8, 18, false), [19, 19, 19]);
        assert_eq!(of(5, 0.5, usize::MAX, true), [5, 5, 5]);
    }

    #[test]
    fn a_file_holds_out_its_own_steps_and_the_division_only_what_no_file_does() {
        let of = |own, validated, tested, validates| {
            let divided = Bounds::divide(own, 0.5, 1, validates);
            let Bounds { training, validation, test } = divided.with_files(validated, tested, validates);
            [training, validation, test]
        };
        assert_eq!(of(10, None, None, true), [5, 7, 10]);
        assert_eq!(of(10, None, Some(20), true), [7, 10, 20]);
        assert_eq!(of(10, None, Some(20), false), [10, 10, 20]);
        assert_eq!(of(10, Some(14), None, true), [10, 14, 14]);
        assert_eq!(of(10, Some(14), Some(20), true), [10, 14, 20]);
        // A series that is only in a later file, and one that does not continue there.
        assert_eq!(of(0, Some(0), Some(4), true), [0, 0, 4]);
        assert_eq!(of(10, Some(10), Some(10), false), [10, 10, 10]);
    }

    #[test]
    fn a_step_is_scored_in_the_part_that_it_predicts() {
        let bounds = Bounds { training: 10, validation: 15, test: 17 };
        assert_eq!([Part::Training, Part::Validation, Part::Test].map(|part| bounds.scored(part, 3)), [0..9, 9..12, 14..15]);
        let other = Bounds { training: 0, validation: 0, test: 6 };
        assert_eq!([Part::Training, Part::Validation, Part::Test].map(|part| other.scored(part, 4)), [0..0, 0..0, 0..2]);
        assert_eq!(Bounds { training: 0, validation: 0, test: 1 }.scored(Part::Test, 1), 0..0);
    }

    proptest! {
        #[test]
        fn no_step_of_a_file_that_holds_out_is_trained_on(
            own in 0..50usize,
            more in prop::array::uniform2(0..50usize),
            files in prop::array::uniform2(any::<bool>()),
            fraction in 0.1..0.95f64,
            horizon in 1..10usize,
            validates: bool,
        ) {
            let validated = files[0].then_some(own + more[0]);
            let tested = files[1].then_some(validated.unwrap_or(own) + more[1]);
            let bounds = Bounds::divide(own, fraction, horizon, validates).with_files(validated, tested, validates);
            prop_assert!(bounds.training <= own && bounds.training <= bounds.validation && bounds.validation <= bounds.test);
            prop_assert_eq!(bounds.test, tested.or(validated).unwrap_or(own));
            prop_assert!(validated.is_none_or(|validated| bounds.validation == validated));
        }

        #[test]
        fn parts_follow_each_other_and_hold_whole_forecasts(n in 2..300usize, fraction in 0.1..0.95f64, horizon in 1..40usize, validates: bool) {
            let bounds = Bounds::divide(n, fraction, horizon, validates);
            prop_assert!(bounds.training >= 2.min(n) && bounds.training <= bounds.validation && bounds.validation <= bounds.test && bounds.test == n);
            for part in [Part::Validation, Part::Test] {
                let (steps, scored) = (bounds.of(part), bounds.scored(part, horizon));
                prop_assert_eq!(steps.is_empty(), scored.is_empty());
                if !scored.is_empty() {
                    prop_assert!(scored.start + 1 == steps.start && scored.end + horizon == steps.end);
                }
            }
        }
    }
}
