//! The metrics shown in tables.

use minrnn_kernels::choices;

choices! {
    /// A metric of a piece of work.
    #[derive(PartialOrd, Ord)]
    Metric, "metric" {
        /// Share of correct answers on the test batches, 0 to 1.
        #[default]
        Accuracy = "accuracy",
        /// The same, scaled so that guessing is 0.
        ScaledAccuracy = "scaled-accuracy",
        /// The same as a percentage.
        AccuracyPercent = "accuracy-percent",
        /// Test loss of the best checkpoint on 200 batches, fewer after a short training: nats, or mean squared error if numbers are predicted.
        Loss = "loss",
        /// Number of updates before the best evaluation.
        BestIteration = "best-iteration",
        /// Number of updates before the first evaluation with an accuracy of at least 0.9.
        IterationsTo90Percent = "iterations-to-90-percent",
        /// Median time.
        Milliseconds = "milliseconds",
        /// Median time divided by the length.
        MillisecondsPerStep = "milliseconds-per-step",
        /// Peak memory of the process.
        Mebibytes = "mebibytes",
        /// Time of the counterpart divided by its own time.
        SpeedUp = "speed-up",
        /// 100 (1 − own time / time of the counterpart).
        TimeSavedPercent = "time-saved-percent",
        /// D4RL's normalised score: 0 for a random policy, 100 for an expert.
        Score = "score",
        /// 100 × parameters / parameters of the counterpart.
        ParameterPercent = "parameter-percent",
    }
}

impl Metric {
    /// Its heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::Accuracy => "Test accuracy (0 to 1)",
            Self::ScaledAccuracy => "Test accuracy, scaled so that guessing is 0",
            Self::AccuracyPercent => "Test accuracy (%)",
            Self::Loss => "Test loss",
            Self::BestIteration => "Iteration of the best checkpoint",
            Self::IterationsTo90Percent => "Iterations to 90 % accuracy",
            Self::Milliseconds => "Time (ms)",
            Self::MillisecondsPerStep => "Time per step (ms)",
            Self::Mebibytes => "Peak memory (MiB)",
            Self::SpeedUp => "Speed-up over the counterpart",
            Self::TimeSavedPercent => "Time saved against the counterpart (%)",
            Self::Score => "Normalised score",
            Self::ParameterPercent => "Parameters, in % of the counterpart's",
        }
    }

    /// The widest 95 % interval that is informative about a published value; `None` for metrics that are not compared in this way.
    pub fn widest(self) -> Option<f64> {
        match self {
            Self::Accuracy | Self::ScaledAccuracy | Self::Loss => Some(0.05),
            Self::AccuracyPercent => Some(5.0),
            _ => None,
        }
    }

    /// The limits of its axis in pictures; empty if the values alone determine them.
    pub fn limits(self) -> &'static [f64] {
        match self {
            Self::Accuracy | Self::ScaledAccuracy => &[0.0, 1.0],
            Self::AccuracyPercent => &[0.0, 100.0],
            _ => &[],
        }
    }

    /// Number of decimals shown for `value`.
    pub fn decimals(self, value: f64) -> usize {
        match self {
            Self::Accuracy | Self::ScaledAccuracy | Self::Loss => 3,
            Self::AccuracyPercent | Self::TimeSavedPercent | Self::Score | Self::ParameterPercent => 1,
            Self::BestIteration | Self::IterationsTo90Percent | Self::Mebibytes => 0,
            // Three significant digits.
            Self::Milliseconds | Self::MillisecondsPerStep | Self::SpeedUp => {
                (2.0 - value.abs().max(1e-3).log10().floor()).clamp(0.0, 5.0) as usize
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits() {
        assert_eq!([0.01234, 2.7, 35.1, 4641.0].map(|time| Metric::Milliseconds.decimals(time)), [4, 2, 1, 0]);
    }
}
