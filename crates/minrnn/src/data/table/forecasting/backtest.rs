//! Forecasts from the last origins of a table, each made only from the history before it (rolling origins; Tashman 2000).
//!
//! ```text
//! origins   t[k] = n − 1 − H − (k − 1) · S        k = K … 1, the oldest first
//! scored    y[t + 1] … y[t + H]                   of every origin t
//! ```
//!
//! where: n is the length of a sequence, H the horizon, S the stride. A sequence has only as many origins as leave it two steps of history.
//! The divisor of scaled errors is computed from the values before the oldest origin, or from the whole sequence if it has no more than a season before it.

use std::path::Path;
use std::sync::Arc;

use minrnn_model::Forecaster;

use super::errors::ForecastErrors;
use super::parts::{Bounds, Part};
use super::{ForecastEvaluation, Forecasting, Series, Table, Understood, whole};
use crate::data::table::{Comparison, Measure, TableSource, UnseenNames};
use crate::data::{Batch, EvaluationSet};
use crate::{Error, Result};

/// Minimum steps of history at the oldest origin, including the origin itself.
const LEAST_HISTORY: usize = 2;

/// The number of origins and their distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origins {
    /// K.
    pub n: usize,
    /// S, the steps from one origin to the next; `None`: the horizon, so that every value is forecast once.
    pub stride: Option<usize>,
}

/// The last forecasts of a table's sequences.
#[derive(Debug, Clone)]
pub struct Backtest {
    table: Arc<Table>,
    origins: Origins,
    understood: Understood,
    unseen: Vec<UnseenNames>,
}

impl Backtest {
    /// The number of sequences, and the length of the longest in steps.
    pub fn extent(&self) -> [usize; 2] {
        let series = &self.table.series;
        [series.len(), series.iter().map(Series::len).max().unwrap_or(0)]
    }
}

/// A sequence without room for all origins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooShort {
    /// Its name, empty if the table is a single sequence.
    pub name: String,
    /// Its length in steps.
    pub steps: usize,
    /// The number of origins it has room for.
    pub origins: usize,
}

/// Forecasts made equally long before the ends of their sequences.
#[derive(Debug, Clone, PartialEq)]
pub struct Origin {
    /// Steps of a sequence after the origin.
    pub steps_to_end: usize,
    /// Number of sequences that have it.
    pub n: usize,
    /// The earliest and the latest time of its last step of history; `None` without a time column.
    pub times: Option<[String; 2]>,
    /// The measures of these forecasts, with one case per sequence. As for all origins together, errors are means over all values if there are too few
    /// sequences to be compared, otherwise over sequences.
    pub measures: Vec<Measure>,
}

impl Origins {
    fn stride(&self, horizon: usize) -> usize {
        self.stride.unwrap_or(horizon)
    }

    /// The number of origins that a sequence of `steps` has room for.
    fn fitting(&self, steps: usize, horizon: usize) -> usize {
        let more = steps.checked_sub(horizon.saturating_add(LEAST_HISTORY));
        more.map_or(0, |more| (1 + more / self.stride(horizon)).min(self.n))
    }

    /// The parts, where the test part is everything that is forecast.
    fn bounds(&self, steps: usize, horizon: usize) -> Bounds {
        match self.fitting(steps, horizon) {
            0 => Bounds { training: 0, validation: 0, test: 0 },
            n => {
                let start = steps - horizon - (n - 1) * self.stride(horizon);
                Bounds { training: start, validation: start, test: steps }
            }
        }
    }
}

impl Backtest {
    /// The last `origins` of every sequence in the table `path`, for the model of `forecaster`.
    ///
    /// # Errors
    /// When the table cannot be read, there are no origins or the stride is 0, or no sequence has room for one.
    pub fn open(path: &Path, forecaster: &Forecaster, origins: Origins) -> Result<Self> {
        let horizon = forecaster.horizon;
        if origins.n == 0 || origins.stride == Some(0) {
            return Err(Error::Config("a backtest needs at least 1 origin, each at least 1 step after the one before, found 0".to_owned()));
        }
        let check = |table: &Table, _: &_| {
            let longest = table.series.iter().map(Series::len).max().unwrap_or(0);
            if origins.fitting(longest, horizon) > 0 {
                return Ok(());
            }
            Err(Error::Data(format!(
                "no sequence is long enough to forecast {horizon} steps from {LEAST_HISTORY} steps of history or more: the longest has {longest} \
                 steps, expected at least {}",
                horizon.saturating_add(LEAST_HISTORY)
            )))
        };
        let bounds = |series: &Series| origins.bounds(series.len(), horizon);
        let Forecasting { table, understood, unseen, .. } = Forecasting::of_trained(TableSource::File(path), forecaster, bounds, check)?;
        Ok(Self { table, origins, understood, unseen })
    }

    /// What should be known about the rows of the table, one sentence per line, if anything.
    pub fn understood(&self) -> Option<&str> {
        self.understood.as_deref()
    }

    /// The columns with names that training never saw.
    pub fn unseen_names(&self) -> &[UnseenNames] {
        &self.unseen
    }

    fn horizon(&self) -> usize {
        self.table.forecaster.horizon
    }

    /// The origins of sequence `series`.
    fn origins_of(&self, series: usize) -> usize {
        self.origins.fitting(self.table.series[series].len(), self.horizon())
    }

    /// Total number of forecasts.
    pub fn n_forecasts(&self) -> usize {
        (0..self.table.series.len()).map(|series| self.origins_of(series)).sum()
    }

    /// Number of sequences in the table.
    pub fn n_all_sequences(&self) -> usize {
        self.table.series.len()
    }

    /// Number of sequences with forecasts.
    pub fn n_sequences(&self) -> usize {
        (0..self.table.series.len()).filter(|&series| self.origins_of(series) > 0).count()
    }

    /// The sequences without room for all origins.
    pub fn too_short(&self) -> Vec<TooShort> {
        let series = self.table.series.iter().enumerate();
        let short = series.map(|(at, series)| TooShort { name: series.name.clone(), steps: series.len(), origins: self.origins_of(at) });
        short.filter(|short| short.origins < self.origins.n).collect()
    }

    /// How many of the forecasts are for values that the model of `task` was trained on or selected by; `learned_all`: the model was
    /// retrained on the test part too.
    pub fn n_learned(&self, task: &Forecasting, learned_all: bool) -> usize {
        let learned = task.learned_steps(&self.table.series, learned_all);
        let of = |(series, learned): (usize, usize)| {
            let (scored, stride) = (self.table.scored(series, Part::Test), self.origins.stride(self.horizon()));
            scored.step_by(stride).filter(|origin| origin + 1 < learned).count()
        };
        learned.into_iter().enumerate().map(of).sum()
    }

    /// Batches of at most `batch_size` sequences that are scored at their origins only.
    pub fn evaluation(&self, batch_size: usize) -> Box<dyn EvaluationSet> {
        let (table, part, stride) = (Arc::clone(&self.table), Part::Test, self.origins.stride(self.horizon()));
        let whole = whole(&table, |series| table.scored(series, part), batch_size.max(1));
        Box::new(ForecastEvaluation { table, part, whole, stride })
    }

    /// The errors on [`evaluation`](Self::evaluation), initially empty.
    pub fn errors(&self) -> BacktestErrors {
        let stride = self.origins.stride(self.horizon());
        BacktestErrors { errors: ForecastErrors::of_origins(Arc::clone(&self.table), Part::Test, stride), backtest: self.clone() }
    }
}

/// The errors of a backtest.
pub struct BacktestErrors {
    /// Each stretch is an origin.
    errors: ForecastErrors,
    backtest: Backtest,
}

impl BacktestErrors {
    /// The measures by origin, oldest first.
    pub fn by_origin(&self) -> Vec<Origin> {
        let Backtest { table, origins, .. } = &self.backtest;
        let (horizon, n_series) = (self.backtest.horizon(), table.series.len());
        let most = (0..n_series).map(|series| self.backtest.origins_of(series)).max().unwrap_or(0);
        let of = |k: usize| {
            let steps_to_end = horizon + k * origins.stride(horizon);
            let stretches: Vec<(usize, usize)> =
                (0..n_series).filter_map(|series| Some((series, self.errors.stretches(series).rev().nth(k)?))).collect();
            let time = |&(series, _): &(usize, usize)| {
                let series = &table.series[series];
                let at = series.len() - 1 - steps_to_end;
                series.times.get(at).map(|&time| (time, series.clock.write(time)))
            };
            let times: Option<Vec<(f64, String)>> = stretches.iter().map(time).collect();
            let by_time = |a: &&(f64, String), b: &&(f64, String)| a.0.total_cmp(&b.0);
            let times = times.and_then(|times| Some([times.iter().min_by(by_time)?.1.clone(), times.iter().max_by(by_time)?.1.clone()]));
            Origin { steps_to_end, n: stretches.len(), times, measures: self.errors.measures_of_forecasts(&stretches) }
        };
        (0..most).rev().map(of).collect()
    }
}

impl Comparison for BacktestErrors {
    fn add(&mut self, index: u64, batch: &Batch, outputs: &[f32]) {
        self.errors.add(index, batch, outputs);
    }

    fn measures(&self) -> Vec<Measure> {
        self.errors.measures()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn origins_leave_history_and_a_whole_forecast_and_are_the_last_ones(
            steps in 1..200usize, horizon in 1..40usize, n in 1..12usize, stride in prop::option::of(1..30usize),
        ) {
            let origins = Origins { n, stride };
            let (fitting, bounds) = (origins.fitting(steps, horizon), origins.bounds(steps, horizon));
            let stride = stride.unwrap_or(horizon);
            let scored: Vec<usize> = bounds.scored(Part::Test, horizon).step_by(stride).collect();
            let expected: Vec<usize> =
                (0..n).rev().filter_map(|k| steps.checked_sub(1 + horizon + k * stride)).filter(|&origin| origin >= 1).collect();
            prop_assert_eq!(scored.len(), fitting);
            prop_assert_eq!(scored, expected);
        }
    }

    #[test]
    fn a_sequence_that_is_too_short_has_no_origin() {
        let origins = Origins { n: usize::MAX, stride: None };
        assert_eq!([3, 4, 5, 6, 9].map(|steps| origins.fitting(steps, 2)), [0, 1, 1, 2, 3]);
        assert_eq!(origins.fitting(1 << 40, usize::MAX), 0);
    }
}
