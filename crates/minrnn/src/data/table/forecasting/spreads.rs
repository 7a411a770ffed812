//! Calibration of a forecast's quantiles: how far they should be from the median, according to held-out values.
//!
//! ```text
//! q′ = m + f · (q − m)                       m the median, q another quantile, as the model gives them
//! r  = (y − m) / (q − m)                     of an actual value y; ∞ if q has crossed m and y lies beyond it, else −∞
//! c  = the ⌈(n + 1) · p⌉-th smallest of n r   p = τ for levels τ above a half, else 1 − τ
//! f  = max c^(s / (s + s₀))                  s stretches of a forecast's length; of q and those between it and m
//! ```
//!
//! So a share p of the values, or more, lies on the inner side of q′: conformal quantile regression with each side by itself (Romano,
//! Patterson and Candès 2019, arXiv:1905.03222, theorem 2) and the distance to the median as the unit (Kivaranovic, Johnson and Leeb 2020,
//! arXiv:1905.10634). Values of one stretch are dependent, so a few stretches say little, and f then stays near 1.
//!
//! Treating each level by itself could move an outer quantile inside an inner one. As f never decreases from the median outwards, quantiles
//! that do not cross remain so; an outer interval that takes over an inner f covers more than it asks for, never less.

use minrnn_model::TableTask;
use serde::{Deserialize, Serialize};

/// Minimum number of stretches for a calibration.
const FEWEST: usize = 10;
/// Number of stretches at which the exponent is a half, s₀.
const HALF_BELIEVED: f64 = 10.0;
/// The largest c that can be found, and the inverse of the smallest, as a power of two.
const FARTHEST: f64 = 3.0;
/// Bins per power of two.
const FINENESS: f64 = 256.0;
const N_BINS: usize = (2.0 * FARTHEST * FINENESS) as usize;

/// The factors applied to the distances of quantiles from their median.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spreads {
    /// Which level is the median.
    median: usize,
    /// For each target and level; 1 for the median.
    factors: Vec<Vec<f64>>,
}

impl Spreads {
    /// Whether they fit `n_outputs` outputs, `[horizon, targets, levels]`.
    pub fn fits(&self, n_outputs: usize) -> bool {
        let levels = self.factors.first().map_or(0, Vec::len);
        let n = self.factors.len().saturating_mul(levels);
        let is_usable = |of_target: &Vec<f64>| of_target.len() == levels && of_target.iter().all(|f| f.is_finite() && *f > 0.0);
        self.median < levels && n_outputs.is_multiple_of(n) && self.factors.iter().all(is_usable)
    }

    /// The factor of each level, for each target.
    pub fn factors(&self) -> &[Vec<f64>] {
        &self.factors
    }

    /// Sentences about their effect on the intervals of each number that `task` forecasts; empty for another task.
    pub fn describe(&self, task: &TableTask) -> Vec<String> {
        let TableTask::Forecast(forecaster) = task else { return Vec::new() };
        let of_target = |(name, factors): (&String, &Vec<f64>)| {
            let others = forecaster.quantiles.iter().zip(factors).enumerate().filter(|(at, _)| *at != forecaster.point());
            let others: Vec<String> = others.map(|(_, (level, factor))| format!("q{level} {factor:.2}")).collect();
            format!("interval of {name}: calibrated on the held-out part ({} times as far from the median as learned)", others.join(", "))
        };
        forecaster.target.iter().zip(&self.factors).map(of_target).collect()
    }

    /// Spreads the quantiles of `outputs`, `[horizon, targets, levels]`, or of anything linear in them, such as a column of the output
    /// matrix.
    ///
    /// # Panics
    /// When [they do not fit](Self::fits).
    pub fn apply(&self, outputs: &mut [f32]) {
        assert!(self.fits(outputs.len()), "{} outputs for the spreads of {} targets", outputs.len(), self.factors.len());
        let levels = self.factors[0].len();
        for (quantiles, factors) in outputs.chunks_exact_mut(levels).zip(self.factors.iter().cycle()) {
            let median = f64::from(quantiles[self.median]);
            let spread = |(quantile, factor): (&mut f32, &f64)| *quantile = (median + factor * (f64::from(*quantile) - median)) as f32;
            let others = quantiles.iter_mut().zip(factors).enumerate().filter(|(at, _)| *at != self.median);
            others.for_each(|(_, pair)| spread(pair));
        }
    }
}

/// Counts of r for each target and level; memory does not depend on the number of values.
pub(super) struct Ratios {
    levels: Vec<f64>,
    median: usize,
    /// `[targets, levels]`; empty for the median.
    counts: Vec<Counts>,
}

impl Ratios {
    /// For quantiles of `levels`, with the median at index `median`.
    pub fn new(n_targets: usize, levels: &[f64], median: usize) -> Self {
        Self { levels: levels.to_vec(), median, counts: vec![Counts::default(); n_targets * levels.len()] }
    }

    /// Takes an actual `value` and its predicted `quantiles`, both as the model sees them.
    pub fn add(&mut self, target: usize, value: f32, quantiles: &[f32]) {
        let median = f64::from(quantiles[self.median]);
        let counts = &mut self.counts[target * self.levels.len()..];
        for (at, &quantile) in quantiles.iter().enumerate().filter(|&(at, _)| at != self.median) {
            let side = if at > self.median { 1.0 } else { -1.0 };
            let (distance, behind) = (side * (f64::from(quantile) - median), side * (f64::from(value) - median));
            counts[at].add(match distance > 0.0 {
                true => behind / distance,
                false if behind > 0.0 => f64::INFINITY,
                false => f64::NEG_INFINITY,
            });
        }
    }

    /// The spreads that the values require, given `n_stretches` stretches; `None` if they are too few.
    pub fn spreads(&self, n_stretches: usize) -> Option<Spreads> {
        let believed = n_stretches as f64 / (n_stretches as f64 + HALF_BELIEVED);
        let factor = |(at, counts): (usize, &Counts)| {
            let level = self.levels[at];
            if at == self.median { 1.0 } else { counts.smallest(level.max(1.0 - level)).powf(believed) }
        };
        let of_target = |counts: &[Counts]| {
            let mut factors: Vec<f64> = counts.iter().enumerate().map(factor).collect();
            (self.median + 2..factors.len()).for_each(|at| factors[at] = factors[at].max(factors[at - 1]));
            (1..self.median).rev().for_each(|at| factors[at - 1] = factors[at - 1].max(factors[at]));
            factors
        };
        let factors = self.counts.chunks_exact(self.levels.len()).map(of_target).collect();
        (n_stretches >= FEWEST).then_some(Spreads { median: self.median, factors })
    }
}

/// A histogram of numbers by their logarithms.
#[derive(Clone, Default)]
struct Counts {
    below: u64,
    bins: Vec<u64>,
    above: u64,
}

impl Counts {
    fn add(&mut self, ratio: f64) {
        // The logarithm of a number not above 0 is NaN or −∞.
        let bin = (ratio.log2() + FARTHEST) * FINENESS;
        if bin >= N_BINS as f64 {
            self.above += 1;
        } else if bin >= 0.0 {
            self.bins.resize(N_BINS, 0);
            self.bins[bin as usize] += 1;
        } else {
            self.below += 1;
        }
    }

    /// The ⌈(n + 1) · share⌉-th smallest number, to a third of a per cent; the largest if there are too few, 1 if there are none.
    fn smallest(&self, share: f64) -> f64 {
        let n = self.below + self.bins.iter().sum::<u64>() + self.above;
        let wanted = (((n + 1) as f64 * share).ceil() as u64).min(n);
        let at_bin = |bin: f64| (bin / FINENESS - FARTHEST).exp2();
        if wanted <= self.below {
            return if n == 0 { 1.0 } else { at_bin(0.0) };
        }
        let mut seen = self.below;
        let found = self.bins.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        at_bin(found.map_or(N_BINS as f64, |bin| bin as f64 + 0.5))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::RngExt;

    use super::*;
    use crate::rng::{Purpose, stream};

    const LEVELS: [f64; 4] = [0.05, 0.2, 0.5, 0.9];

    /// Values drawn from a distribution with one tail longer than the other, and its quantiles at `LEVELS`.
    fn drawn(n: usize, seed: u64) -> (Vec<f32>, [f32; 4]) {
        let mut rng = stream(seed, Purpose::TestData, 0);
        let quantile = |p: f64| (-(1.0 - p).ln() + 0.5 * p.ln()) as f32;
        ((0..n).map(|_| quantile(rng.random_range(1e-9..1.0))).collect(), LEVELS.map(quantile))
    }

    #[test]
    fn quantiles_that_are_too_wide_or_too_narrow_are_put_right() {
        let (values, right) = drawn(40_000, 5);
        for wrong in [[0.3, 0.5, 1.0, 2.0], [1.0, 1.0, 1.0, 1.0], [1.5, 3.0, 1.0, 0.4]] {
            let mut ratios = Ratios::new(2, &LEVELS, 2);
            let mut quantiles: [f32; 4] = std::array::from_fn(|at| right[2] + wrong[at] * (right[at] - right[2]));
            values.iter().for_each(|&value| ratios.add(1, value, &quantiles));
            let spreads = ratios.spreads(1 << 20).unwrap();
            // Nothing was added for the first target.
            assert_eq!(spreads.factors()[0], [1.0; 4]);
            let mut both = [right, quantiles].concat();
            spreads.apply(&mut both);
            assert_eq!(both[..4], right);
            quantiles.copy_from_slice(&both[4..]);
            for (at, level) in LEVELS.into_iter().enumerate() {
                let below = values.iter().filter(|value| **value < quantiles[at]).count() as f64 / values.len() as f64;
                assert!((below - level).abs() < 0.01, "{wrong:?}: {below} below the quantile of {level}");
            }
        }
    }

    #[test]
    fn few_stretches_say_little_and_fewer_nothing() {
        let mut ratios = Ratios::new(1, &[0.1, 0.5, 0.9], 1);
        (0..1000).for_each(|_| ratios.add(0, 4.0, &[-1.0, 0.0, 1.0]));
        let above = |n| ratios.spreads(n).map(|spreads| spreads.factors()[0][2]);
        assert_eq!([0, 9].map(above), [None, None]);
        let [ten, many] = [10, 1_000_000].map(|n| above(n).unwrap());
        assert!((ten - 2.0).abs() < 0.01 && (many - 4.0).abs() < 0.02, "{ten} {many}");
    }

    #[test]
    fn what_nothing_is_known_of_stays_within_bounds() {
        let spreads_of = |quantiles: [f32; 3], value: f32| {
            let mut ratios = Ratios::new(1, &[0.1, 0.5, 0.9], 1);
            (0..50).for_each(|_| ratios.add(0, value, &quantiles));
            ratios.spreads(1 << 30).unwrap()
        };
        // Quantiles on the median or beyond it, and values far away, on the median, and not finite.
        for quantiles in [[0.0, 0.0, 0.0], [1.0, 0.0, -1.0], [-1.0, 0.0, 1.0], [f32::NAN, 0.0, f32::INFINITY]] {
            for value in [0.0, 1e30, -1e30, f32::INFINITY, f32::NAN] {
                let spreads = spreads_of(quantiles, value);
                assert!(
                    spreads.fits(6) && spreads.factors()[0].iter().all(|f| (0.12..8.01).contains(f)),
                    "{quantiles:?} {value}: {spreads:?}"
                );
            }
        }
    }

    #[test]
    fn spreads_of_something_else_do_not_fit() {
        let of = |json: &str| serde_json::from_str::<Spreads>(json).unwrap();
        assert!(of(r#"{"median": 1, "factors": [[0.5, 1, 2], [1, 1, 1]]}"#).fits(12));
        for (json, n_outputs) in [
            (r#"{"median": 1, "factors": [[0.5, 1, 2]]}"#, 4),
            (r#"{"median": 3, "factors": [[0.5, 1, 2]]}"#, 3),
            (r#"{"median": 1, "factors": [[0.5, 1, 2], [1]]}"#, 6),
            (r#"{"median": 1, "factors": [[0.5, 1, 0]]}"#, 3),
            (r#"{"median": 0, "factors": [[]]}"#, 3),
            (r#"{"median": 0, "factors": []}"#, 3),
        ] {
            assert!(!of(json).fits(n_outputs), "{json}");
        }
    }

    /// How many of `values` lie beyond the quantile at `at`, and by more than the width of a bin.
    fn n_beyond(values: &[f32], quantiles: &[f32; 4], at: usize) -> f64 {
        let [median, quantile] = [quantiles[2], quantiles[at]].map(f64::from);
        let edge = median + (quantile - median) * (1.0 / FINENESS).exp2();
        let is_beyond = |value: f64| if at < 2 { value < edge } else { value > edge };
        values.iter().filter(|&&value| is_beyond(f64::from(value))).count() as f64
    }

    proptest! {
        #[test]
        fn the_promised_share_of_what_was_held_out_lies_inside(n in 10..400usize, seed: u64, by in 0.3..4.0f32) {
            let (values, right) = drawn(n, seed);
            let quantiles = right.map(|x| right[2] + by * (x - right[2]));
            let mut ratios = Ratios::new(1, &LEVELS, 2);
            values.iter().for_each(|&value| ratios.add(0, value, &quantiles));
            let mut spread = quantiles;
            ratios.spreads(1 << 40).unwrap().apply(&mut spread);
            for (at, share) in [(0, 0.05), (1, 0.2), (3, 0.1)] {
                let beyond = n_beyond(&values, &spread, at);
                // The largest factor stands for everything beyond the last bin.
                prop_assert!(beyond <= share * n as f64 + 1.0, "{beyond} of {n} beyond the quantile of {}", LEVELS[at]);
            }
        }

        #[test]
        fn factors_never_fall_outwards_and_quantiles_that_do_not_cross_stay_so(
            forecasts in prop::collection::vec((prop::array::uniform6(0.0..2.0f32), -3.0..3.0f32, -6.0..6.0f32), 10..60),
            n_stretches in FEWEST..1000,
        ) {
            const SEVEN: [f64; 7] = [0.02, 0.1, 0.3, 0.5, 0.75, 0.9, 0.99];
            // From the lowest level to the highest, given the gaps between neighbours.
            let rising = |gaps: [f32; 6], lowest: f32| -> [f32; 7] {
                let mut quantiles = [lowest; 7];
                (0..6).for_each(|at| quantiles[at + 1] = quantiles[at] + gaps[at]);
                quantiles
            };
            let mut ratios = Ratios::new(1, &SEVEN, 3);
            forecasts.iter().for_each(|&(gaps, lowest, value)| ratios.add(0, value, &rising(gaps, lowest)));
            let spreads = ratios.spreads(n_stretches).unwrap();
            let factors = &spreads.factors()[0];
            prop_assert!(factors[..3].is_sorted_by(|outer, inner| outer >= inner) && factors[4..].is_sorted(), "{factors:?}");
            for &(gaps, lowest, _) in &forecasts {
                let mut quantiles = rising(gaps, lowest);
                spreads.apply(&mut quantiles);
                prop_assert!(quantiles.is_sorted(), "{factors:?}: {quantiles:?}");
            }
        }

        #[test]
        fn no_interval_of_many_levels_covers_less_than_it_asks_for(n in 40..400usize, seed: u64, by in prop::array::uniform4(0.3..3.0f32)) {
            let (values, right) = drawn(n, seed);
            // Each level is wrong by itself, so that correcting each alone would need factors that decrease outwards.
            let mut quantiles: [f32; 4] = std::array::from_fn(|at| right[2] + by[at] * (right[at] - right[2]));
            quantiles[0] = quantiles[0].min(quantiles[1]);
            let mut ratios = Ratios::new(1, &LEVELS, 2);
            values.iter().for_each(|&value| ratios.add(0, value, &quantiles));
            ratios.spreads(1 << 40).unwrap().apply(&mut quantiles);
            for (at, share) in [(0, 0.05), (1, 0.2), (3, 0.1)] {
                let beyond = n_beyond(&values, &quantiles, at);
                prop_assert!(beyond <= share * n as f64 + 1.0, "{beyond} of {n} beyond the quantile of {}", LEVELS[at]);
            }
        }
    }
}
