//! Forecasting: at every step the next `horizon` values of some columns, from all that was read before.
//!
//! The model reads numbers `x[t]` and predicts, all at once, `y[t + 1] … y[t + H]`:
//!
//! ```text
//! time      0 ──────────────── train_end ──── test_start ──── n
//! part      training           validation     test
//! scored    t + H < train_end  t ≥ train_end − 1, t + H < test_start   …
//! ```
//!
//! where: H the horizon, n the length of a sequence, train_end = ⌊train_fraction · n⌋; the rest is halved. A step is scored in a part when
//! everything it predicts lies there, so nothing that is scored was trained on. Means and deviations are those of the training parts. To
//! validate and to test, a sequence is read from its first step on: the history before a part is context.

mod windows;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use minrnn_model::{Forecaster, Normalization, TableTask};

use self::windows::ForecastWindows;
use super::measure::{Comparison, Measure};
use super::series::Series;
use super::{Frame, SeasonalNaive, Wanted, WholeSeries, normalization, read_table};
use crate::data::batch::{check_shape, expect_index};
use crate::data::{Batch, BatchSource, EvaluationSet, IoKind, SequenceTask, Sequences};
use crate::rng::Purpose;
use crate::{Error, Result};

/// What is forecast from what.
#[derive(Debug, Clone, PartialEq)]
pub struct ForecastingConfig {
    /// Columns that are read; none: those that are forecast.
    pub columns: Vec<String>,
    /// Columns that are forecast.
    pub target: Vec<String>,
    /// The column that names the sequence of a row; none: the table is one sequence.
    pub group: Option<String>,
    /// How many steps ahead are predicted, H.
    pub horizon: usize,
    /// Steps of a season of the naive forecast; 0: the last value.
    pub season: usize,
    /// Share of every sequence, from its start, that is trained on.
    pub train_fraction: f64,
    /// Steps T of a training window.
    pub seq_len: usize,
}

/// A part of every sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// What is trained on.
    Training,
    /// What chooses the best checkpoint.
    Validation,
    /// What is reported.
    Test,
    /// All of it, of a table that was not trained on.
    Whole,
}

/// The task of forecasting the sequences of a table.
#[derive(Debug, Clone)]
pub struct Forecasting {
    pub(super) table: Arc<Table>,
}

/// The sequences, and which of their numbers are read and predicted.
#[derive(Debug)]
pub(super) struct Table {
    pub series: Vec<Series>,
    /// Positions of the columns that are read.
    read: Vec<usize>,
    /// Positions of the columns that are predicted.
    predicted: Vec<usize>,
    normalization: Normalization,
    pub config: ForecastingConfig,
    /// True when nothing of it was trained on.
    is_unseen: bool,
}

impl Forecasting {
    /// The task on the file `path`.
    ///
    /// # Errors
    /// When the file cannot be read or no sequence is long enough for a part.
    pub fn open(path: &Path, config: ForecastingConfig) -> Result<Self> {
        let frame = read_table(path, &config.wanted())?;
        Self::new(&frame, config).map_err(|error| error.in_file(path))
    }

    /// The task on a table.
    ///
    /// # Errors
    /// When no sequence is long enough for a part.
    pub(super) fn new(frame: &Frame, config: ForecastingConfig) -> Result<Self> {
        let series = Series::of(frame, config.group.as_ref().map(|_| &frame.texts[0]))?;
        let width = frame.names.len();
        let fraction = config.train_fraction;
        let training = series.iter().flat_map(|series| series.steps().take(parts(series.len(), fraction)[0].end));
        let normalization = normalization::fit(width, training)?;
        normalization::expect_near(&normalization, frame)?;
        let (read, predicted) = (frame.columns(config.read()), frame.columns(&config.target));
        let table = Table { series, read, predicted, normalization, config, is_unseen: false };
        for part in [Part::Training, Part::Validation, Part::Test] {
            table.expect_scored(part)?;
        }
        Ok(Self { table: Arc::new(table) })
    }

    /// The task of a trained model on another table, all of which is to be scored.
    ///
    /// # Errors
    /// When the file cannot be read or no sequence is longer than the horizon.
    pub fn unseen(path: &Path, forecaster: &Forecaster) -> Result<Self> {
        let config = ForecastingConfig {
            columns: forecaster.columns.clone(),
            target: forecaster.target.clone(),
            group: forecaster.group.clone(),
            horizon: forecaster.horizon,
            season: forecaster.season,
            train_fraction: 1.0,
            seq_len: 1,
        };
        let frame = read_table(path, &config.wanted())?;
        let series = Series::of(&frame, config.group.as_ref().map(|_| &frame.texts[0])).map_err(|error| error.in_file(path))?;
        let (read, predicted) = (frame.columns(config.read()), frame.columns(&config.target));
        let mut normalization = Normalization { mean: vec![0.0; frame.names.len()], deviation: vec![1.0; frame.names.len()] };
        let known = [(&read, &forecaster.normalization), (&predicted, &forecaster.target_normalization)];
        for (columns, known) in known {
            for (at, &column) in columns.iter().enumerate() {
                (normalization.mean[column], normalization.deviation[column]) = (known.mean[at], known.deviation[at]);
            }
        }
        normalization::expect_near(&normalization, &frame).map_err(|error| error.in_file(path))?;
        let table = Table { series, read, predicted, normalization, config, is_unseen: true };
        table.expect_scored(Part::Whole).map_err(|error| error.in_file(path))?;
        Ok(Self { table: Arc::new(table) })
    }

    /// The part that is scored for `purpose`.
    fn part(&self, purpose: Purpose) -> Part {
        match purpose {
            _ if self.table.is_unseen => Part::Whole,
            Purpose::ValidationData => Part::Validation,
            _ => Part::Test,
        }
    }
}

impl ForecastingConfig {
    fn read(&self) -> &[String] {
        if self.columns.is_empty() { &self.target } else { &self.columns }
    }

    fn wanted(&self) -> Wanted {
        Wanted::named(self.read().iter().chain(&self.target), self.group.iter().cloned().collect())
    }
}

/// Training, validation and test part of a sequence of `n` ≥ 2 steps.
fn parts(n: usize, train_fraction: f64) -> [Range<usize>; 3] {
    let train_end = ((n as f64 * train_fraction) as usize).clamp(1, n);
    let test_start = train_end + (n - train_end) / 2;
    [0..train_end, train_end..test_start, test_start..n]
}

impl Table {
    /// The steps of a sequence of `n` steps whose predictions all lie in `part`.
    pub fn scored(&self, n: usize, part: Part) -> Range<usize> {
        let [training, validation, test] = parts(n, self.config.train_fraction);
        let part = match part {
            Part::Training => training,
            Part::Validation => validation,
            Part::Test => test,
            Part::Whole => 0..n,
        };
        part.start.saturating_sub(1)..part.end.saturating_sub(self.config.horizon)
    }

    fn expect_scored(&self, part: Part) -> Result<()> {
        if self.series.iter().any(|series| !self.scored(series.len(), part).is_empty()) {
            return Ok(());
        }
        let horizon = self.config.horizon;
        let longest = self.series.iter().map(Series::len).max().unwrap_or(0);
        let (name, share) = match part {
            Part::Training => ("training part", format!(" with train_fraction = {}", self.config.train_fraction)),
            Part::Validation => ("validation part", format!(" with train_fraction = {}", self.config.train_fraction)),
            Part::Test => ("test part", format!(" with train_fraction = {}", self.config.train_fraction)),
            Part::Whole => ("whole", String::new()),
        };
        Err(Error::Data(format!(
            "no sequence is long enough to forecast {horizon} steps within its {name}: the longest has {longest} steps{share}; lower the horizon, or \
             give longer sequences"
        )))
    }

    pub fn n_inputs(&self) -> usize {
        self.read.len()
    }

    pub fn n_outputs(&self) -> usize {
        self.config.horizon * self.predicted.len()
    }

    /// What the model reads at step `t`.
    pub fn fill_inputs(&self, series: usize, t: usize, out: &mut [f32]) {
        let step = self.series[series].step(t);
        out.iter_mut().zip(&self.read).for_each(|(x, &column)| *x = self.normalization.apply(column, step[column]));
    }

    /// What it should predict there: the columns of the next step, then those of the one after, ….
    pub fn fill_targets(&self, series: usize, t: usize, out: &mut [f32]) {
        for (ahead, out) in out.chunks_exact_mut(self.predicted.len()).enumerate() {
            let step = self.series[series].step(t + 1 + ahead);
            out.iter_mut().zip(&self.predicted).for_each(|(y, &column)| *y = self.normalization.apply(column, step[column]));
        }
    }
}

impl SequenceTask for Forecasting {
    fn reads(&self) -> IoKind {
        IoKind::Values { width: self.table.n_inputs() }
    }

    fn predicts(&self) -> IoKind {
        IoKind::Values { width: self.table.n_outputs() }
    }

    fn longest(&self) -> usize {
        self.table.series.iter().map(Series::len).max().unwrap_or(0)
    }

    fn has_parts(&self) -> bool {
        true
    }

    fn description(&self) -> Option<serde_json::Value> {
        let table = &self.table;
        let forecaster = Forecaster {
            columns: table.config.read().to_vec(),
            group: table.config.group.clone(),
            target: table.config.target.clone(),
            horizon: table.config.horizon,
            season: table.config.season,
            normalization: normalization::of_columns(&table.normalization, &table.read),
            target_normalization: normalization::of_columns(&table.normalization, &table.predicted),
        };
        serde_json::to_value(TableTask::Forecast(forecaster)).ok()
    }

    fn training(&self, batch_size: usize, seed: u64) -> Result<Box<dyn BatchSource>> {
        Ok(Box::new(ForecastWindows::new(Arc::clone(&self.table), batch_size, seed)?))
    }

    fn evaluation(&self, batch_size: usize, _seed: u64, purpose: Purpose, _n_batches: u64) -> Result<Box<dyn EvaluationSet>> {
        check_shape(batch_size, CHUNK_LEN)?;
        let (table, part) = (Arc::clone(&self.table), self.part(purpose));
        // Nothing after the last scored step has to be read.
        let last =
            |series: &Series| Some(table.scored(series.len(), part)).filter(|scored| !scored.is_empty()).map_or(0, |scored| scored.end);
        let whole = WholeSeries::new(table.series.iter().map(last).collect(), batch_size, CHUNK_LEN);
        Ok(Box::new(ForecastEvaluation { table, part, whole }))
    }

    fn comparison(&self, purpose: Purpose) -> Option<Box<dyn Comparison>> {
        Some(Box::new(ForecastErrors::new(Arc::clone(&self.table), self.part(purpose))))
    }
}

/// Steps of an evaluation batch.
const CHUNK_LEN: usize = 512;

/// Every sequence from its first step to the last that is scored in a part.
struct ForecastEvaluation {
    table: Arc<Table>,
    part: Part,
    whole: WholeSeries,
}

impl EvaluationSet for ForecastEvaluation {
    fn n_batches(&self) -> u64 {
        self.whole.n_chunks() as u64
    }

    fn batch(&mut self, index: u64) -> Result<Batch> {
        expect_index(index, self.n_batches())?;
        let chunk = self.whole.chunk(index as usize);
        let (table, batch_size) = (&self.table, self.whole.batch_size());
        let (n, inputs_width, targets_width) = (batch_size * chunk.seq_len, table.n_inputs(), table.n_outputs());
        let (mut inputs, mut targets, mut mask) = (vec![0.0; n * inputs_width], vec![0.0; n * targets_width], vec![0.0; n]);
        for (series, step, place) in chunk.places() {
            table.fill_inputs(series, step, &mut inputs[place * inputs_width..][..inputs_width]);
            if table.scored(table.series[series].len(), self.part).contains(&step) {
                table.fill_targets(series, step, &mut targets[place * targets_width..][..targets_width]);
                mask[place] = 1.0;
            }
        }
        Ok(Batch {
            inputs: Sequences::Values { values: inputs, width: inputs_width },
            targets: Sequences::Values { values: targets, width: targets_width },
            mask: Some(mask),
            segments: chunk.segments,
            batch_size,
            seq_len: chunk.seq_len,
        })
    }

    fn carries_state(&self) -> bool {
        true
    }
}

/// Errors of forecasts, in the units of the table.
struct ForecastErrors {
    table: Arc<Table>,
    part: Part,
    sums: Vec<ErrorSums>,
}

/// Sums over the predictions of a column.
#[derive(Debug, Clone, Copy, Default)]
struct ErrorSums {
    absolute: f64,
    squared: f64,
    n: f64,
}

impl ErrorSums {
    fn add(&mut self, error: f64) {
        self.absolute += error.abs();
        self.squared += error * error;
        self.n += 1.0;
    }

    /// Mean absolute error, and the root of the mean squared one.
    fn means(&self) -> [f64; 2] {
        let n = self.n.max(1.0);
        [self.absolute / n, (self.squared / n).sqrt()]
    }
}

impl ForecastErrors {
    fn new(table: Arc<Table>, part: Part) -> Self {
        let sums = vec![ErrorSums::default(); table.predicted.len()];
        Self { table, part, sums }
    }

    /// Those of the naive forecast, which needs the table alone.
    fn baseline(&self, column: usize) -> ErrorSums {
        let (table, naive) = (&self.table, SeasonalNaive::new(self.table.config.season));
        let mut sums = ErrorSums::default();
        for series in &table.series {
            for t in table.scored(series.len(), self.part) {
                for ahead in 1..=table.config.horizon {
                    sums.add(series.step(t + ahead)[column] - series.step(naive.source(t, ahead))[column]);
                }
            }
        }
        sums
    }
}

impl Comparison for ForecastErrors {
    fn add(&mut self, batch: &Batch, outputs: &[f32]) {
        let (width, n_columns) = (self.table.n_outputs(), self.table.predicted.len());
        let steps = outputs.chunks_exact(width).zip(batch.targets.values().chunks_exact(width));
        for (place, (found, expected)) in steps.enumerate() {
            if batch.mask.as_ref().is_some_and(|mask| mask[place] == 0.0) {
                continue;
            }
            for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
                let column = at % n_columns;
                let deviation = self.table.normalization.deviation[self.table.predicted[column]];
                self.sums[column].add((f64::from(*found) - f64::from(*expected)) * deviation);
            }
        }
    }

    fn measures(&self) -> Vec<Measure> {
        let baseline_name = SeasonalNaive::new(self.table.config.season).name();
        let of_column = |(sums, (name, &column)): (&ErrorSums, (&String, &usize))| {
            let (found, baseline) = (sums.means(), self.baseline(column).means());
            [("mean absolute error", 0), ("root mean squared error", 1)].map(|(measure, at)| Measure {
                name: format!("{measure} of {name}"),
                found: found[at],
                baseline: baseline[at],
                baseline_name: baseline_name.clone(),
                is_gain: false,
            })
        };
        self.sums.iter().zip(self.table.config.target.iter().zip(&self.table.predicted)).flat_map(of_column).collect()
    }
}
