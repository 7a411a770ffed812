//! Errors of forecasts, in the units of the table.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::super::example::Example;
use super::super::measure::{Cases, Comparison, Measure, MeasureKind};
use super::super::{Chunk, SeasonalNaive};
use super::examples::LastForecasts;
use super::spreads::Ratios;
use super::{Part, Spreads, Table, WholeSeries, whole};
use crate::data::Batch;

/// Minimum number of sequences for each to be a case of its own.
const ENOUGH_SERIES: usize = 10;

/// Errors of a model and of the naive forecast.
pub(super) struct ForecastErrors {
    table: Arc<Table>,
    part: Part,
    /// For each stretch of steps, the sums of each column.
    sums: Vec<Vec<Sums>>,
    /// Steps of a stretch; `None`: the whole sequence.
    stretch: Option<usize>,
    /// Stretches and steps of a case, if a sequence has several; what is left at the end belongs to the last case.
    case: Option<[usize; 2]>,
    /// The first stretch of each sequence.
    first: Vec<usize>,
    /// How the sequences are laid out in the batches.
    whole: OnceLock<WholeSeries>,
    /// Whether the naive forecast of any value was taken from a season before.
    is_seasonal: bool,
    /// Whether surprises are recorded at all steps that are followed by a value, not only at scored steps.
    follows_all: bool,
    /// The surprises of the row after each followed step.
    surprises: Vec<f64>,
    /// The same with calibrated quantiles.
    spread: Option<(Spreads, Vec<f64>)>,
    /// How far values lie from the median, relative to the quantiles.
    ratios: Option<Ratios>,
    last: LastForecasts,
    /// The seasonal difference of each sequence and target.
    differences: OnceLock<Vec<Option<f64>>>,
}

/// A case: the sequence, and the sums of each column.
type Case = (usize, Vec<Sums>);

/// Sums over the values of a stretch; pairs hold the model's and the naive forecast's.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    absolute: [f64; 2],
    squared: [f64; 2],
    /// 2 |e| / (|y| + |ŷ|).
    relative: [f64; 2],
    /// Values between the outermost quantiles, and the distance between these.
    inside: f64,
    width: f64,
    n: f64,
    /// Values that are not above 0.
    n_not_positive: f64,
}

impl Sums {
    fn add(&mut self, value: f64, forecasts: [f64; 2], [low, high]: [f64; 2]) {
        for (at, forecast) in forecasts.into_iter().enumerate() {
            let (error, size) = (value - forecast, value.abs() + forecast.abs());
            self.absolute[at] += error.abs();
            self.squared[at] += error * error;
            self.relative[at] += if size > 0.0 { 2.0 * error.abs() / size } else { 0.0 };
        }
        self.inside += f64::from(u8::from((low..=high).contains(&value)));
        self.width += high - low;
        self.n += 1.0;
        self.n_not_positive += f64::from(u8::from(value <= 0.0));
    }

    fn add_all(&mut self, other: &Self) {
        for (own, other) in [(&mut self.absolute, other.absolute), (&mut self.squared, other.squared), (&mut self.relative, other.relative)]
        {
            own.iter_mut().zip(other).for_each(|(own, other)| *own += other);
        }
        self.inside += other.inside;
        self.width += other.width;
        self.n += other.n;
        self.n_not_positive += other.n_not_positive;
    }
}

impl ForecastErrors {
    pub fn new(table: Arc<Table>, part: Part) -> Self {
        let stretch = steps_of_case(&table, part);
        let n_stretches = |steps: usize| stretch.map_or(1, |stretch| steps / stretch).max(1);
        Self { follows_all: true, ..Self::divided(table, part, stretch, n_stretches) }
    }

    /// The same for forecasts made every `stride` steps, also keeping the errors of each.
    pub fn of_origins(table: Arc<Table>, part: Part, stride: usize) -> Self {
        Self::divided(table, part, Some(stride), |steps| steps.div_ceil(stride))
    }

    /// Errors by stretches of `stretch` steps, `None` for whole sequences; `n_stretches` maps a sequence's scored steps to its stretches.
    fn divided(table: Arc<Table>, part: Part, stretch: Option<usize>, n_stretches: impl Fn(usize) -> usize) -> Self {
        let longest = (0..table.series.len()).map(|series| table.n_forecast(series, part)).max().unwrap_or(0);
        let of_case = |steps: usize| {
            let n = stretch.map_or(1, |stretch| steps.div_ceil(stretch));
            [n, stretch.map_or(steps, |stretch| n.saturating_mul(stretch).min(longest))]
        };
        let case = steps_of_case(&table, part).map(of_case);
        let mut n = 0;
        let first = (0..table.series.len()).map(|series| {
            let (first, steps) = (n, table.scored(series, part).len());
            n += if steps == 0 { 0 } else { n_stretches(steps) };
            first
        });
        let first = first.collect();
        let sums = vec![vec![Sums::default(); table.predicted.len()]; n];
        Self {
            table,
            part,
            sums,
            stretch,
            case,
            first,
            whole: OnceLock::new(),
            is_seasonal: false,
            follows_all: false,
            surprises: Vec::new(),
            spread: None,
            ratios: None,
            last: LastForecasts::default(),
            differences: OnceLock::new(),
        }
    }

    /// Batch `index` of these.
    fn chunk(&self, index: u64, batch: &Batch) -> Chunk {
        self.whole.get_or_init(|| whole(&self.table, |series| self.wanted(series), batch.batch_size)).chunk(index as usize)
    }

    /// The steps of sequence `series` that are wanted; it is read up to the last of them.
    fn wanted(&self, series: usize) -> Range<usize> {
        if self.follows_all { self.table.followed(series, self.part) } else { self.table.scored(series, self.part) }
    }

    /// The steps of sequence `series` at which surprises are recorded whether they are scored or not.
    fn followed(&self, series: usize) -> Range<usize> {
        if self.follows_all { self.table.followed(series, self.part) } else { 0..0 }
    }

    fn stretch_of(&self, series: usize, step: usize) -> usize {
        let (start, stretches) = (self.table.scored(series, self.part).start, self.stretches(series));
        stretches.end.min(stretches.start + 1 + self.stretch.map_or(0, |stretch| (step - start) / stretch)) - 1
    }

    /// [`difference_of`](Self::difference_of) a sequence and a target, computed once per sequence, since a long one has many cases.
    fn seasonal_difference(&self, series: usize, target: usize) -> Option<f64> {
        let all = self.differences.get_or_init(|| {
            let of = |series: usize| self.table.predicted.iter().map(move |&column| self.difference_of(series, column));
            (0..self.table.series.len()).flat_map(of).collect()
        });
        all[series * self.table.predicted.len() + target]
    }

    /// The mean of all absolute seasonal differences before the part, or in the whole sequence if it has no more than a season before the part, which
    /// makes errors of different sequences comparable (Hyndman and Koehler 2006); `None` if there are none or all are 0.
    fn difference_of(&self, series: usize, column: usize) -> Option<f64> {
        let (of, season) = (&self.table.series[series], self.table.forecaster.season.max(1));
        let before = Some(self.table.bounds[series].of(self.part).start).filter(|&end| end > season).unwrap_or(of.len());
        let differences = (season..before).map(|t| (of.row(t)[column] - of.row(t - season)[column]).abs());
        let (sum, n) = differences.filter(|difference| !difference.is_nan()).fold((0.0, 0.0), |(sum, n), x| (sum + x, n + 1.0));
        let mean = sum / f64::max(n, 1.0);
        // A season that repeats up to rounding counts as never changing.
        let largest = (0..before).map(|t| of.row(t)[column].abs()).fold(0.0, f64::max);
        (mean > 1e-12 * largest).then_some(mean)
    }

    /// The stretches of sequence `series`, from its first step on.
    pub fn stretches(&self, series: usize) -> Range<usize> {
        self.first[series]..self.first.get(series + 1).copied().unwrap_or(self.sums.len())
    }

    /// The cases; neighbouring stretches form one case.
    fn cases(&self) -> Vec<Case> {
        let mut cases: Vec<Case> = Vec::new();
        for series in 0..self.first.len() {
            let (stretches, mut last) = (self.stretches(series), None);
            let case_of = |at: usize| self.case.map_or(0, |[n, _]| (at / n).min((stretches.len() / n).max(1) - 1));
            for (at, stretch) in stretches.clone().enumerate() {
                let case = case_of(at);
                match cases.last_mut() {
                    Some((_, sums)) if last == Some(case) => {
                        sums.iter_mut().zip(&self.sums[stretch]).for_each(|(own, more)| own.add_all(more))
                    }
                    _ => cases.push((series, self.sums[stretch].clone())),
                }
                last = Some(case);
            }
        }
        cases
    }

    /// The measures of the given stretches `(sequence, stretch)`, each of which holds one forecast and is one case: means over all values where
    /// [`measures`](Comparison::measures) has such means, otherwise over sequences.
    pub fn measures_of_forecasts(&self, stretches: &[(usize, usize)]) -> Vec<Measure> {
        let cases: Vec<Case> = stretches.iter().map(|&(series, stretch)| (series, self.sums[stretch].clone())).collect();
        let what = self.case.map_or(Cases::Sequences, |_| Cases::Stretches(self.table.forecaster.horizon));
        self.measures_of_cases(&cases, what)
    }

    fn measures_of_cases(&self, cases: &[Case], what: Cases) -> Vec<Measure> {
        (0..self.table.predicted.len()).flat_map(|target| self.measures_of(target, cases, what)).collect()
    }

    fn measures_of(&self, target: usize, cases: &[Case], what: Cases) -> Vec<Measure> {
        let forecaster = &self.table.forecaster;
        // If less than a season is known, it is the last value.
        let naive = SeasonalNaive::new(if self.is_seasonal { forecaster.season } else { 1 }).name();
        let name = &forecaster.target[target];
        let cases = cases.iter().map(|(series, sums)| (*series, &sums[target]));
        let sums: Vec<(usize, &Sums)> = cases.filter(|(_, sums)| sums.n > 0.0).collect();
        if sums.is_empty() {
            return Vec::new();
        }
        let all = |of: fn(&Sums) -> [f64; 2]| sums.iter().map(|(_, sums)| (of(sums), sums.n)).collect::<Vec<_>>();
        let errors = |kind: MeasureKind, of: &[([f64; 2], f64)]| Measure::of_errors(kind, name, what, &means(of, what), &naive);
        let mut measures = vec![errors(MeasureKind::AbsoluteError, &all(|sums| sums.absolute))];
        let mut root = errors(MeasureKind::RootSquaredError, &all(|sums| sums.squared));
        root.found = root.found.sqrt();
        root.interval = root.interval.map(|bounds| bounds.map(f64::sqrt));
        if let Some(baseline) = &mut root.baseline {
            baseline.found = baseline.found.sqrt();
        }
        measures.push(root);
        if sums.iter().all(|(_, sums)| sums.n_not_positive == 0.0) {
            measures.push(errors(MeasureKind::SymmetricPercentageError, &all(|sums| sums.relative.map(|sum| 100.0 * sum))));
        }
        let scaled = sums.iter().filter_map(|(series, sums)| {
            let difference = self.seasonal_difference(*series, target)?;
            Some((sums.absolute.map(|sum| sum / difference), sums.n))
        });
        let scaled: Vec<([f64; 2], f64)> = scaled.collect();
        // A sequence without such differences has no scale for its errors.
        if !scaled.is_empty() {
            measures.push(errors(MeasureKind::ScaledError, &scaled));
        }
        if let [lowest, .., highest] = forecaster.quantiles[..] {
            let n: f64 = sums.iter().map(|(_, sums)| sums.n).sum();
            let mean = |of: fn(&Sums) -> f64| sums.iter().map(|(_, sums)| of(sums)).sum::<f64>() / n.max(1.0);
            let of_interval = |kind, found| {
                let target = Some(name.clone());
                Measure { kind, target, found, interval: None, n: n as u64, cases: Cases::Values, baseline: None }
            };
            let share = highest - lowest;
            measures.push(of_interval(MeasureKind::Covers(share), mean(|sums| sums.inside)));
            measures.push(of_interval(MeasureKind::Width(share), mean(|sums| sums.width)));
        }
        measures
    }
}

impl Comparison for ForecastErrors {
    fn looks_past(&self, index: u64, batch: &Batch) -> bool {
        let is_followed = |(series, steps): &(usize, Range<usize>)| {
            let followed = self.followed(*series);
            followed.start < steps.end && steps.start < followed.end
        };
        self.follows_all && self.chunk(index, batch).rows.iter().flatten().any(is_followed)
    }

    fn add(&mut self, index: u64, batch: &Batch, outputs: &[f32]) {
        let table = Arc::clone(&self.table);
        let forecaster = &table.forecaster;
        let (width, n_targets, n_quantiles) = (table.n_outputs(), table.predicted.len(), forecaster.n_quantiles());
        let naive = SeasonalNaive::new(forecaster.season);
        let chunk = self.chunk(index, batch);
        let (mut kept, mut numbers, mut next, mut spread) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut scales = Vec::new();
        for (series, step, place) in chunk.places() {
            let is_scored = batch.mask.as_ref().is_none_or(|mask| mask[place] != 0.0);
            if !is_scored && !self.followed(series).contains(&step) {
                continue;
            }
            let (recent, outputs) = (table.recent(series, step, &mut kept), &outputs[place * width..][..width]);
            next.clear();
            next.extend(table.predicted.iter().map(|&column| table.series[series].row(step + 1)[column]));
            self.surprises.extend(forecaster.surprise(recent, outputs, &next));
            if let Some((spreads, surprises)) = &mut self.spread {
                spread.clear();
                spread.extend_from_slice(outputs);
                spreads.apply(&mut spread);
                surprises.extend(forecaster.surprise(recent, &spread, &next));
            }
            if !is_scored {
                continue;
            }
            let stretch = self.stretch_of(series, step);
            table.task.predict_into(recent, outputs, &mut numbers);
            if self.ratios.is_some() {
                scales.clear();
                scales.extend((0..n_targets).map(|target| forecaster.target_scale(target, recent)));
            }
            self.last.add(&table, self.part, series, step, &numbers);
            let (of, end) = (&table.series[series], table.bounds[series].of(self.part).end);
            for (at, quantiles) in numbers.chunks_exact(n_quantiles).enumerate() {
                let (ahead, target) = (1 + at / n_targets, at % n_targets);
                if step + ahead < end {
                    let column = table.predicted[target];
                    let value = of.row(step + ahead)[column];
                    if value.is_nan() {
                        continue;
                    }
                    // The naive forecast takes the last known value at its place, or the first one after that place.
                    let source = naive.seasonal_source(step, ahead);
                    self.is_seasonal |= source.is_some();
                    let source = source.unwrap_or(step);
                    let mut before = (0..=source).rev().chain(source + 1..=step).map(|t| of.row(t)[column]).filter(|x| !x.is_nan());
                    let Some(before) = before.next() else { continue };
                    if let Some(ratios) = &mut self.ratios {
                        ratios.add(target, scales[target].apply(value), &outputs[at * n_quantiles..][..n_quantiles]);
                    }
                    let outermost = [quantiles[0], quantiles[n_quantiles - 1]];
                    self.sums[stretch][target].add(value, [quantiles[forecaster.point()], before], outermost);
                }
            }
        }
    }

    fn examples(&self) -> Vec<Example> {
        self.last.examples(&self.table, self.part, |series, target| self.seasonal_difference(series, target))
    }

    fn measures(&self) -> Vec<Measure> {
        self.measures_of_cases(&self.cases(), self.case.map_or(Cases::Sequences, |[_, steps]| Cases::Stretches(steps)))
    }

    fn surprises(&self) -> &[f64] {
        &self.surprises
    }

    fn spread_by(&mut self, spreads: &Spreads) {
        self.spread = Some((spreads.clone(), Vec::new()));
    }

    fn surprises_when_spread(&self) -> &[f64] {
        self.spread.as_ref().map_or(&[], |(_, surprises)| surprises)
    }

    fn find_spreads(&mut self) -> bool {
        let forecaster = &self.table.forecaster;
        if forecaster.quantiles.len() > 1 {
            self.ratios = Some(Ratios::new(self.table.predicted.len(), &forecaster.quantiles, forecaster.point()));
        }
        self.ratios.is_some()
    }

    fn spreads(&self) -> Option<Spreads> {
        let horizon = self.table.forecaster.horizon;
        let n_stretches = (0..self.table.series.len()).map(|series| self.table.scored(series, self.part).len().div_ceil(horizon)).sum();
        self.ratios.as_ref()?.spreads(n_stretches)
    }
}

/// The errors of cases, given each case's sum over its values and their number. Sequences count equally, whatever their length. Stretches are weighted by
/// their number of values: each returned number is a contribution whose mean over cases is the mean over all values, and whose scatter is that of a ratio of
/// sums (Cochran 1977, §2.11).
fn means(sums: &[([f64; 2], f64)], what: Cases) -> Vec<[f64; 2]> {
    if !matches!(what, Cases::Stretches(_)) {
        return sums.iter().map(|&(sums, n)| sums.map(|sum| sum / n)).collect();
    }
    let all: f64 = sums.iter().map(|&(_, n)| n).sum();
    let whole = [0, 1].map(|of| sums.iter().map(|(sums, _)| sums[of]).sum::<f64>() / all);
    let usual = all / sums.len() as f64;
    sums.iter().map(|&(sums, n)| [0, 1].map(|of| whole[of] + (sums[of] - n * whole[of]) / usual)).collect()
}

/// Steps of a case where sequences are too few to be one case each: forecasts from steps within a horizon or a season of each other share
/// most of their errors. No case has more steps than are scored.
fn steps_of_case(table: &Table, part: Part) -> Option<usize> {
    let scored: Vec<usize> = (0..table.series.len()).map(|series| table.n_forecast(series, part)).filter(|&n| n > 0).collect();
    let longest = scored.iter().copied().max().unwrap_or(1);
    (scored.len() < ENOUGH_SERIES).then(|| table.forecaster.horizon.max(table.forecaster.season).min(longest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_count_as_much_as_they_have_values_and_sequences_alike() {
        // Twenty-four values without an error of the naive forecast, and one that is off by 100.
        let sums = [([12.0, 0.0], 24.0), ([0.5, 100.0], 1.0)];
        let mean = |what: Cases, of: usize| means(&sums, what).iter().map(|pair| pair[of]).sum::<f64>() / 2.0;
        assert!((mean(Cases::Stretches(24), 0) - 0.5).abs() < 1e-12 && (mean(Cases::Stretches(24), 1) - 4.0).abs() < 1e-12);
        assert_eq!([0, 1].map(|of| mean(Cases::Sequences, of)), [0.5, 50.0]);
        let equal = [([3.0, 1.0], 2.0), ([5.0, 7.0], 2.0)];
        assert_eq!(means(&equal, Cases::Stretches(2)), means(&equal, Cases::Sequences));
    }
}
