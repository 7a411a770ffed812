//! Sequences of known numbers: inputs and targets at each step, and which steps are scored.

use std::sync::Arc;

use minrnn_model::{Forecaster, Normalization, TableTask, Transform};

use super::super::roles::Understood;
use super::super::series::Series;
use super::super::{Frame, normalization};
use super::ForecastingConfig;
use super::parts::{Bounds, Part};
use crate::data::{Batch, Sequences};
use crate::{Error, Result};

/// The sequences, their parts, and how their numbers are seen.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) series: Arc<[Series]>,
    pub(super) bounds: Vec<Bounds>,
    /// The indices of the predicted columns.
    pub(super) predicted: Vec<usize>,
    pub(super) forecaster: Forecaster,
    pub(super) task: TableTask,
    pub(super) levels: Arc<[f32]>,
    pub(super) seq_len: usize,
    pub(super) has_test_file: bool,
}

impl Table {
    pub(super) fn new(
        series: Arc<[Series]>,
        bounds: Vec<Bounds>,
        predicted: Vec<usize>,
        forecaster: Forecaster,
        seq_len: usize,
        has_test_file: bool,
    ) -> Self {
        let levels = forecaster.quantiles.iter().map(|&level| level as f32).collect();
        let task = TableTask::Forecast(forecaster.clone());
        Self { series, bounds, predicted, forecaster, task, levels, seq_len, has_test_file }
    }

    /// Refuses a number of `frame` that is too far from those trained on, or that has no logarithm where one is read.
    pub(super) fn expect_readable(&self, frame: &Frame) -> Result<()> {
        normalization::expect_near(&self.of_rows(frame.names.len()), frame)?;
        normalization::expect_logarithms(self.transforms(), frame)
    }

    pub(super) fn transforms(&self) -> impl Iterator<Item = Transform> {
        (0..self.forecaster.columns.len()).map(|column| self.forecaster.scaling.transform(column))
    }

    /// Calls `place` for its error if a number of the sequences would be [refused](Self::expect_readable).
    pub(super) fn expect_all_readable(&self, place: impl FnOnce() -> Result<()>) -> Result<()> {
        let width = self.series.first().map_or(0, |series| series.width);
        let (known, mut transforms) = (self.of_rows(width), vec![Transform::Identity; width]);
        transforms.iter_mut().zip(self.transforms()).for_each(|(of_row, transform)| *of_row = transform);
        let is_readable = |(column, &x): (usize, &f64)| x.is_nan() || known.is_near(column, x) && transforms[column].reads(x);
        if self.series.iter().flat_map(Series::rows).all(|row| row.iter().enumerate().all(is_readable)) {
            return Ok(());
        }
        place().and(Err(Error::Data("it has changed while it was read".to_owned())))
    }

    /// Means and deviations of the columns of a row.
    pub(super) fn of_rows(&self, width: usize) -> Normalization {
        let (normalization, target_normalization) = (self.task.of_table(), &self.forecaster.target_normalization);
        let mut of_frame = Normalization { mean: vec![0.0; width], deviation: vec![1.0; width] };
        let read = (0..self.forecaster.columns.len()).map(|column| (column, normalization, column));
        // With a level, every target is among the columns that are read.
        let targets = self.predicted.iter().enumerate().filter(|_| self.forecaster.scaling.is_standard());
        let targets = targets.map(|(at, &column)| (column, target_normalization, at));
        for (column, known, at) in read.chain(targets) {
            (of_frame.mean[column], of_frame.deviation[column]) = (known.mean[at], known.deviation[at]);
        }
        of_frame
    }

    /// The steps of sequence `series` that are scored in `part`.
    pub(super) fn scored(&self, series: usize, part: Part) -> std::ops::Range<usize> {
        self.bounds[series].scored(part, self.forecaster.horizon)
    }

    /// The steps of sequence `series` whose next value lies in `part`: the scored steps and, if surprises are recorded, the later ones that do not
    /// have a whole forecast ahead of them.
    pub(super) fn followed(&self, series: usize, part: Part) -> std::ops::Range<usize> {
        let (scored, end) = (self.scored(series, part), self.bounds[series].of(part).end);
        match part == Part::Test && self.forecaster.tells_surprise() && !scored.is_empty() {
            true => scored.start..scored.end.max(end.saturating_sub(1)),
            false => scored,
        }
    }

    /// How many steps of sequence `series` hold values that are scored in `part`.
    pub(super) fn n_forecast(&self, series: usize, part: Part) -> usize {
        let scored = self.scored(series, part);
        if scored.is_empty() { 0 } else { self.bounds[series].of(part).end.saturating_sub(scored.start + 1) }
    }

    /// A sentence if sequences have fewer steps in `part` than are forecast.
    pub(super) fn shortness(&self, part: Part) -> Understood {
        let (name, horizon) = (part.name(), self.forecaster.horizon);
        let all: Vec<usize> = (0..self.series.len()).map(|series| self.n_forecast(series, part)).filter(|&n| n > 0).collect();
        let short = all.iter().copied().filter(|&n| n < horizon);
        let (n_short, n, most) = (short.clone().count(), all.len(), short.max()?);
        let of = if n_short < n { format!(" of {n_short} of {n} sequences") } else { String::new() };
        let at_most = if n_short > 1 { "at most " } else { "" };
        Some(format!(
            "the {name}{of} has values for {at_most}{most} of the {horizon} steps that are forecast: the steps behind them are not scored"
        ))
    }

    /// A sentence about the sequences that have a single row, if any, with what follows from it, for one and for several.
    pub(super) fn single_rows(&self, follows: [&str; 2]) -> Understood {
        let single: Vec<&str> = self.series.iter().filter(|series| series.len() == 1).map(|series| series.name.as_str()).collect();
        Series::single_rows(single.into_iter(), self.series.len(), follows)
    }

    pub(super) fn expect_scored(&self, part: Part, config: &ForecastingConfig) -> Result<()> {
        let name = part.name();
        let horizon = self.forecaster.horizon;
        if (0..self.series.len()).any(|series| !self.scored(series, part).is_empty()) {
            let is_known = |&column: &usize| (0..self.series.len()).any(|series| self.knows(series, column, part));
            let targets = self.forecaster.target.join("', '");
            return match self.predicted.iter().any(is_known) {
                true => Ok(()),
                false => Err(Error::Data(format!(
                    "nothing can be scored in its {name}: '{targets}' has no value behind another one there; fill it, or give more rows"
                ))),
            };
        }
        let longest = self.series.iter().map(Series::len).max().unwrap_or(0);
        let fraction = config.division.train_fraction;
        let share = if fraction < 1.0 { format!(" with train_fraction = {fraction}") } else { String::new() };
        Err(Error::Data(format!(
            "no sequence is long enough to forecast {horizon} steps within its {name}: the longest has {longest} steps{share}; lower the horizon, or \
             give longer sequences"
        )))
    }

    /// Steps of a sequence that are learned from in the final training on all data.
    pub(super) fn end_of_all(&self, bounds: &Bounds) -> usize {
        if self.has_test_file { bounds.validation } else { bounds.test }
    }

    /// Whether in `part` of sequence `series` there is a value of `column` to predict after an earlier known one.
    pub(super) fn knows(&self, series: usize, column: usize, part: Part) -> bool {
        let (of, steps, end) = (&self.series[series], self.scored(series, part), self.bounds[series].of(part).end);
        let is_known = |&t: &usize| !of.row(t)[column].is_nan();
        let Some(first) = (0..steps.end).find(is_known) else { return false };
        let last = (steps.end + self.forecaster.horizon).min(end);
        !steps.is_empty() && (first.max(steps.start) + 1..last).any(|t| is_known(&t))
    }

    pub(super) fn n_inputs(&self) -> usize {
        self.task.n_inputs()
    }

    /// Number of future values at each step; quantiles of each may be predicted.
    pub(super) fn n_targets(&self) -> usize {
        self.forecaster.horizon * self.predicted.len()
    }

    pub(super) fn n_outputs(&self) -> usize {
        self.n_targets() * self.forecaster.n_quantiles()
    }

    /// The columns that are read, in the rows up to step `t` that determine how numbers are seen there.
    pub(super) fn recent<'a>(&self, series: usize, t: usize, kept: &'a mut Vec<f64>) -> &'a [f64]
    where
        Self: 'a,
    {
        let (of, width) = (&self.series[series], self.forecaster.columns.len());
        kept.clear();
        // Targets that are not read follow the columns that are.
        (t.saturating_sub(self.task.reach() - 1)..=t).for_each(|t| kept.extend_from_slice(&of.row(t)[..width]));
        kept
    }

    /// What the model reads at step `t`.
    pub(super) fn fill_inputs(&self, series: usize, t: usize, kept: &mut Vec<f64>, out: &mut [f32]) {
        self.task.show(self.recent(series, t, kept), out);
    }

    /// What the model should predict there in `part`: the columns of the next step, then those of the step after, …; NaN beyond the end of
    /// the part.
    pub(super) fn fill_targets(&self, series: usize, t: usize, part: Part, kept: &mut Vec<f64>, out: &mut [f32]) {
        let (of, end) = (&self.series[series], self.bounds[series].of(part).end);
        let recent = self.recent(series, t, kept);
        for (at, &column) in self.predicted.iter().enumerate() {
            let scale = self.forecaster.target_scale(at, recent);
            for (ahead, out) in out.iter_mut().skip(at).step_by(self.predicted.len()).enumerate() {
                let step = t + 1 + ahead;
                *out = if step < end { scale.apply(of.row(step)[column]) } else { f32::NAN };
            }
        }
    }

    /// A batch of inputs and targets.
    pub(super) fn batch(&self, inputs: Vec<f32>, targets: Vec<f32>, mask: Vec<f32>, segments: crate::Segments, batch_size: usize) -> Batch {
        let (values, width) = (targets, self.n_targets());
        Batch {
            seq_len: mask.len() / batch_size.max(1),
            inputs: Sequences::Values { values: inputs, width: self.n_inputs() },
            targets: match self.levels.is_empty() {
                true => Sequences::Values { values, width },
                false => Sequences::Quantiles { values, width, levels: Arc::clone(&self.levels) },
            },
            mask: Some(mask),
            segments,
            batch_size,
        }
    }
}
