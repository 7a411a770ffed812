//! The surprise of a number under a forecast of its quantiles.
//!
//! ```text
//! q[i]      the quantile of level τ[i], i = 0 … m, in order, and g = 10⁻³ apart at least:
//!           ← max(q[i], q[i − 1] + g)                          above the middle, upwards from it
//!           ← min(q[i], q[i + 1] − g)                          below it
//! z[i]      = (τ[i + 1] − τ[i]) / (q[i + 1] − q[i])            the density between two quantiles
//! p(y)      = z[i]                                             q[i] ≤ y < q[i + 1]
//!           = z[0] · exp(−(q[0] − y) · z[0] / τ[0])            y < q[0]
//!           = z[m − 1] · exp(−(y − q[m]) · z[m − 1] / (1 − τ[m]))    y ≥ q[m]
//! surprise  = −ln p(y)
//! ```
//!
//! The distribution function is linear between the quantiles. Beyond the outermost, the density falls exponentially from its value next to
//! them, so that τ[0] and 1 − τ[m] of the mass lie there: a proper density (Quiñonero-Candela et al. 2006, "Evaluating Predictive
//! Uncertainty Challenge"; Cannon 2011). Numbers are as the model sees them, in standard deviations of the training data, so that series of
//! any size can be compared; so is g.

use alloc::{format, string::String, vec::Vec};

use super::Forecaster;
use crate::{Error, Result};

/// Least distance between two quantiles, in the deviations that the model sees: without it, a forecast sure of one number could be surprised without
/// bounds.
const LEAST_GAP: f64 = 1e-3;

impl Forecaster {
    /// Whether the forecasts can tell how surprising a number is: they have at least two quantiles.
    pub fn tells_surprise(&self) -> bool {
        self.quantiles.len() > 1
    }

    /// How many of the model's outputs, the first, are the forecast of the next step, which decides how surprising its values are; 0 if
    /// forecasts do not [tell that](Self::tells_surprise).
    pub fn outputs_of_surprise(&self) -> usize {
        if self.tells_surprise() { self.target.len().saturating_mul(self.n_quantiles()) } else { 0 }
    }

    /// The columns that the values of the targets are read from, one for each.
    ///
    /// # Errors
    /// When a target is not among the columns.
    pub fn target_columns(&self) -> Result<Vec<usize>> {
        let unread = |name: &String| {
            let sentence = format!("column '{name}': it is forecast but not read, so a row does not say how surprising its value is");
            Error::Row(format!("{sentence}; train a model that reads it, too"))
        };
        (0..self.target.len()).map(|target| self.column_of(target).ok_or_else(|| unread(&self.target[target]))).collect()
    }

    /// The values of the targets in a `row` `[columns]`.
    ///
    /// # Errors
    /// As [`target_columns`](Self::target_columns).
    ///
    /// # Panics
    /// When the row has fewer numbers than there are columns.
    pub fn targets_of(&self, row: &[f64]) -> Result<Vec<f64>> {
        Ok(self.target_columns()?.into_iter().map(|column| row[column]).collect())
    }

    /// The joint surprise, in nats, of the next values `next` `[targets]` after the rows `recent`, given the model's `outputs`; NaN is a
    /// missing value. `None` if all are missing, if the forecast has no quantiles, and at the beginning of a sequence whose numbers are
    /// relative to rows that do not exist yet. `recent` may be empty if numbers are not relative to a level.
    ///
    /// # Panics
    /// When there are fewer outputs than [`outputs_of_surprise`](Self::outputs_of_surprise), or fewer values than targets.
    pub fn surprise(&self, recent: &[f64], outputs: &[f32], next: &[f64]) -> Option<f64> {
        let reaches_back = self.scaling.is_standard() || recent.len() / self.columns.len().max(1) >= self.scaling.reach();
        if !self.tells_surprise() || !reaches_back {
            return None;
        }
        let (expected, found) = (self.outputs_of_surprise(), outputs.len());
        assert!(
            found >= expected,
            "expected the {expected} outputs of the next step, found {found}; is this the forecaster of that model?"
        );
        let mut quantiles: Vec<f64> = Vec::with_capacity(self.quantiles.len());
        let mut sum = None;
        for (target, outputs) in outputs.chunks_exact(self.n_quantiles()).take(self.target.len()).enumerate() {
            if next[target].is_nan() {
                continue;
            }
            quantiles.clear();
            quantiles.extend(outputs.iter().map(|&x| f64::from(x)));
            // As in the forecast, those that cross are put in order.
            quantiles.sort_unstable_by(f64::total_cmp);
            part(&mut quantiles);
            let y = f64::from(self.target_scale(target, recent).apply(next[target]));
            *sum.get_or_insert(0.0) += negative_log_density(&self.quantiles, &quantiles, y);
        }
        sum
    }
}

/// Moves quantiles that are too close apart, from the one in the middle outwards.
fn part(quantiles: &mut [f64]) {
    let middle = quantiles.len() / 2;
    (middle + 1..quantiles.len()).for_each(|at| quantiles[at] = quantiles[at].max(quantiles[at - 1] + LEAST_GAP));
    (0..middle).rev().for_each(|at| quantiles[at] = quantiles[at].min(quantiles[at + 1] - LEAST_GAP));
}

/// −ln p(y) of the density given by `quantiles` of `levels`, both rising, two or more.
fn negative_log_density(levels: &[f64], quantiles: &[f64], y: f64) -> f64 {
    let last = quantiles.len() - 1;
    let between = quantiles.iter().take_while(|&&quantile| quantile <= y).count().clamp(1, last);
    let density = (levels[between] - levels[between - 1]) / (quantiles[between] - quantiles[between - 1]);
    let behind = match y {
        y if y < quantiles[0] => (quantiles[0] - y) / levels[0],
        y if y > quantiles[last] => (y - quantiles[last]) / (1.0 - levels[last]),
        _ => 0.0,
    };
    density * behind - libm::log(density)
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::{Missing, Normalization, Scaling, Transform};

    fn forecaster(levels: &[f64]) -> Forecaster {
        let of = |mean, deviation| Normalization { mean: vec![mean], deviation: vec![deviation] };
        Forecaster {
            columns: vec!["x".into()],
            group: None,
            target: vec!["x".into()],
            time: None,
            horizon: 1,
            season: 0,
            normalization: of(100.0, 10.0),
            target_normalization: of(100.0, 10.0),
            scaling: Scaling::Standard,
            missing: Missing::Error,
            layout: Default::default(),
            categories: Vec::new(),
            of_table: None,
            quantiles: levels.to_vec(),
        }
    }

    #[test]
    fn the_surprise_is_that_by_hand() {
        // Quantiles −1, 0, 2 as the model sees them: 90, 100, 120.
        let of = |y: f64| forecaster(&[0.1, 0.5, 0.9]).surprise(&[100.0], &[-1.0, 0.0, 2.0], &[y]).unwrap();
        let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        close(of(95.0), -libm::log(0.4));
        close(of(110.0), -libm::log(0.2));
        close(of(80.0), -libm::log(0.4) + 0.4 / 0.1);
        close(of(150.0), -libm::log(0.2) + 3.0 * 0.2 / 0.1);
        // Outputs in another order are the same quantiles.
        let crossed = forecaster(&[0.1, 0.5, 0.9]).surprise(&[100.0], &[2.0, -1.0, 0.0], &[150.0]).unwrap();
        close(crossed, of(150.0));
    }

    #[test]
    fn without_quantiles_or_values_nothing_is_told() {
        let new = Forecaster {
            scaling: Scaling::Level { transforms: vec![Transform::Identity], span: 2, lags: vec![2] },
            ..forecaster(&[0.1, 0.5, 0.9])
        };
        let of = |recent: &[f64]| new.surprise(recent, &[-1.0, 0.0, 2.0], &[1.0]);
        assert!(of(&[100.0, 100.0]).is_none() && of(&[100.0; 3]).is_some());
        assert_eq!(forecaster(&[]).surprise(&[100.0], &[0.0], &[1.0]), None);
        assert_eq!(forecaster(&[0.5]).surprise(&[100.0], &[0.0], &[1.0]), None);
        assert_eq!(forecaster(&[0.1, 0.5]).surprise(&[100.0], &[0.0, 1.0], &[f64::NAN]), None);
    }

    proptest::proptest! {
        #[test]
        fn it_is_that_of_a_density(mut quantiles in proptest::collection::vec(-3.0..3.0f64, 2..6), equal: bool) {
            let n = quantiles.len();
            if equal {
                quantiles[1] = quantiles[0];
            }
            quantiles.sort_unstable_by(f64::total_cmp);
            part(&mut quantiles);
            let levels: Vec<f64> = (1..=n).map(|level| level as f64 / (n + 1) as f64).collect();
            let density = |y: f64| libm::exp(-negative_log_density(&levels, &quantiles, y));
            // The mass of each piece: constant between quantiles, and beyond them as far as it matters.
            let mut mass = 0.0;
            for at in 0..n - 1 {
                mass += density((quantiles[at] + quantiles[at + 1]) / 2.0) * (quantiles[at + 1] - quantiles[at]);
            }
            for (edge, side, share) in [(quantiles[0], -1.0, levels[0]), (quantiles[n - 1], 1.0, 1.0 - levels[n - 1])] {
                let reach = 40.0 * share / density(edge + side * 1e-12);
                let step = reach / 200_000.0;
                mass += (0..200_000).map(|at| density(edge + side * (f64::from(at) + 0.5) * step) * step).sum::<f64>();
            }
            proptest::prop_assert!((mass - 1.0).abs() < 1e-3, "{mass}");
        }

        #[test]
        fn farther_out_is_more_surprising(quantiles in proptest::collection::vec(-3.0..3.0f32, 3), far in 0.1..1e5f64, farther in 0.1..1e5f64) {
            let forecaster = forecaster(&[0.1, 0.5, 0.9]);
            let largest = 100.0 + 10.0 * f64::from(quantiles.iter().copied().fold(f32::MIN, f32::max)) + 1.0;
            let [near, away] = [far, far + farther].map(|by| forecaster.surprise(&[1.0], &quantiles, &[largest + by]).unwrap());
            proptest::prop_assert!(near < away && away.is_finite(), "{near} {away}");
        }
    }
}
