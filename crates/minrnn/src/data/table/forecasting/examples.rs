//! The last forecast of single sequences, beside the actual values.

use super::super::example::{Example, MOST, MOST_STEPS};
use super::{Part, Table};

/// Maximum number of sequences whose forecasts are kept until it is known which are shown.
const MOST_KEPT: usize = 4096;

/// The last forecast of each sequence.
#[derive(Default)]
pub(super) struct LastForecasts {
    /// Sequence, step and numbers `[horizon, targets, quantiles]`.
    kept: Vec<(usize, usize, Vec<f64>)>,
}

impl LastForecasts {
    /// Takes the `numbers` forecast for sequence `series` after `step`, if no later step is scored in `part`.
    pub fn add(&mut self, table: &Table, part: Part, series: usize, step: usize, numbers: &[f64]) {
        if step + 1 == table.scored(series, part).end && self.kept.len() < MOST_KEPT {
            self.kept.push((series, step, numbers.to_vec()));
        }
    }

    /// The worst forecasts, and others of all ranks to the best, by mean absolute error over the seasonal difference, which `difference`
    /// returns for `(sequence, target)`.
    pub fn examples(&self, table: &Table, part: Part, difference: impl Fn(usize, usize) -> Option<f64>) -> Vec<Example> {
        let n_targets = table.predicted.len();
        let mut errors = Vec::new();
        for (at, (series, step, numbers)) in self.kept.iter().enumerate() {
            for target in 0..n_targets {
                let scale = difference(*series, target);
                let found = table.last_forecast(part, [*series, *step, target], numbers);
                let off: Vec<f64> =
                    found.came.iter().zip(&found.median).map(|(came, median)| (came - median).abs()).filter(|x| x.is_finite()).collect();
                let error = scale.filter(|_| !off.is_empty()).map(|scale| off.iter().sum::<f64>() / off.len() as f64 / scale);
                errors.push((error, at, target));
            }
        }
        errors.sort_by(|a, b| b.0.unwrap_or(-1.0).total_cmp(&a.0.unwrap_or(-1.0)));
        let worst = (MOST / 2).min(errors.len());
        let others = errors.len() - worst;
        let n = (MOST - worst).min(others);
        let places = (0..worst).chain((1..=n).map(|k| worst + k * others / n.max(1) - 1));
        let shown = places.map(|place| {
            let (error, at, target) = errors[place];
            let (series, step, numbers) = &self.kept[at];
            let Found { past, came, median, interval } = table.last_forecast(part, [*series, *step, target], numbers);
            let (name, target) = (table.series[*series].name.to_string(), table.forecaster.target[target].clone());
            Example::Forecast { name, target, past, came, median, interval, error }
        });
        shown.collect()
    }
}

/// A forecast and its context.
struct Found {
    past: Vec<f64>,
    came: Vec<f64>,
    median: Vec<f64>,
    interval: Vec<(f64, f64)>,
}

impl Table {
    /// The forecast in `numbers` of one target of a sequence after a step.
    fn last_forecast(&self, part: Part, [series, step, target]: [usize; 3], numbers: &[f64]) -> Found {
        let (of, column) = (&self.series[series], self.predicted[target]);
        let (n_quantiles, n_targets) = (self.forecaster.n_quantiles(), self.predicted.len());
        let before = (4 * self.forecaster.horizon.max(self.forecaster.season)).clamp(12, MOST_STEPS);
        let known = |range: std::ops::Range<usize>| range.map(|t| of.row(t)[column]).collect::<Vec<f64>>();
        let end = self.bounds[series].of(part).end.min(step + 1 + self.forecaster.horizon);
        let quantiles = numbers.chunks_exact(n_quantiles).skip(target).step_by(n_targets);
        let median = quantiles.clone().map(|quantiles| quantiles[self.forecaster.point()]).collect();
        let interval = quantiles.filter(|quantiles| quantiles.len() > 1).map(|quantiles| (quantiles[0], quantiles[n_quantiles - 1]));
        Found { past: known((step + 1).saturating_sub(before)..step + 1), came: known(step + 1..end), median, interval: interval.collect() }
    }
}
