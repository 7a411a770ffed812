//! Forecasting: at every step the next `horizon` values of some columns, from all that was read before.
//!
//! The model reads numbers `x[t]` and predicts, all at once, `y[t + 1] … y[t + H]`:
//!
//! ```text
//! time      0 ──────────────── training ──── validation ──── n
//! part      training           validation    test
//! scored    t + 1 < training   t ≥ training − 1, t + H < validation   …
//! ```
//!
//! where: H the horizon, n the length of a sequence. Where a validation or a test file is given, its rows follow those of the training file
//! in the sequences of the same name, and its other sequences are of that part from their first step on. Otherwise the parts are taken
//! from the end of every sequence that has room for them ([`parts`]). A step is scored in a part when what it predicts lies there, so nothing that
//! is scored was trained on; near the end of the training part the values are missing that lie behind it. How numbers are seen is decided by the
//! training parts alone. To validate and to test, a sequence is read from its first step on: the history before a part is context.

mod backtest;
mod errors;
mod examples;
mod learned;
mod parts;
mod rows;
mod scaling;
mod spreads;
mod windows;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use minrnn_model::{Category, Forecaster, Normalization, TableTask, Transform};

pub use self::backtest::{Backtest, BacktestErrors, Origin, Origins, TooShort};
use self::errors::ForecastErrors;
use self::parts::{Bounds, Part};
pub use self::rows::{ForecastRow, ForecastRows};
pub use self::scaling::ScalingChoice;
use self::scaling::{Columns, Seen};
pub use self::spreads::Spreads;
use self::windows::ForecastWindows;
use super::calendar::CalendarPart;
use super::categories;
use super::columns::TimeColumn;
use super::frame::Lead;
use super::leads;
use super::measure::Comparison;
use super::paces::{self, Paces};
use super::roles::{Roles, Understood};
use super::series::Series;
use super::unseen_names::UnseenNames;
use super::values::Values;
use super::{Division, Frame, Names, Opened, Wanted, WholeSeries, normalization, other_columns, read_table};
use crate::data::batch::{check_shape, expect_index};
use crate::data::{Batch, BatchSource, EvaluationSet, Extent, IoKind, SequenceTask, Sequences};
use crate::rng::Purpose;
use crate::{Error, Result};

/// What is forecast from what.
#[derive(Debug, Clone, PartialEq)]
pub struct ForecastingConfig {
    /// Columns that are read; none: those that are forecast.
    pub columns: Vec<String>,
    /// Parts of the calendar that are read too, from the column of times.
    pub calendar: Vec<CalendarPart>,
    /// Columns that are known ahead: they are read, and their values at the steps that are forecast.
    pub known_ahead: Vec<String>,
    /// Columns that are forecast; none: the one that is called y or value.
    pub target: Vec<String>,
    /// The column that names the sequence of a row; none: the table is one sequence, but where the target is not named either, what a column
    /// unique_id or series says.
    pub group: Option<String>,
    /// How many steps ahead are predicted, H.
    pub horizon: usize,
    /// Steps of a season of the naive forecast; 0: what is usual at the pace of most rows by the column of times, without one the last value.
    pub season: usize,
    /// What numbers are seen relative to.
    pub scaling: ScalingChoice,
    /// The quantiles that are predicted, rising, the median among them; none: the mean.
    pub quantiles: Vec<f64>,
    /// A model whose view of numbers stays, and `scaling` with it; none: what the training part asks for.
    pub like: Option<Forecaster>,
    /// How the files are read, and which part each of them is.
    pub division: Division,
    /// Steps T of a training window.
    pub seq_len: usize,
}

/// The task of forecasting the sequences of a table.
#[derive(Debug, Clone)]
pub struct Forecasting {
    table: Arc<Table>,
    understood: Understood,
    unseen: Vec<UnseenNames>,
}

/// The sequences, their parts, and how their numbers are seen.
#[derive(Debug, Clone)]
struct Table {
    series: Arc<[Series]>,
    bounds: Vec<Bounds>,
    /// Where the columns stand that are predicted.
    predicted: Vec<usize>,
    forecaster: Forecaster,
    task: TableTask,
    levels: Arc<[f32]>,
    seq_len: usize,
    has_test_file: bool,
}

/// What the training file says of its columns.
#[derive(Default)]
struct Found {
    names: Vec<String>,
    /// Of each the names it holds, where it holds names.
    of_names: categories::Found,
    leads: Vec<Lead>,
    time: Option<String>,
}

/// Rows of the sequences that a file adds, by their place among all sequences.
#[derive(Default)]
struct Gathered {
    series: Vec<Series>,
    places: HashMap<String, usize>,
}

impl Gathered {
    /// Puts the sequences of `frame` behind those that are there already; the number of steps that each sequence has by then.
    fn add(&mut self, frame: &Frame, config: &ForecastingConfig) -> Result<Vec<usize>> {
        // One step more of a known sequence is enough.
        let least = if self.series.is_empty() { 2 } else { 1 };
        let mut later = Vec::new();
        for series in Series::of_at_least(frame, config.group.as_ref().map(|_| &frame.texts[0]), least)? {
            match self.places.get(&series.name) {
                Some(&at) => later.push((at, series)),
                None => {
                    self.places.insert(series.name.clone(), self.series.len());
                    self.series.push(series);
                }
            }
        }
        Series::extend(&mut self.series, &later)?;
        Ok(self.series.iter().map(Series::len).collect())
    }
}

impl Forecasting {
    /// The task on the file `path`, and those for validation and test where there are some.
    ///
    /// # Errors
    /// When a file cannot be read, or no sequence is long enough for a part.
    pub fn open(path: &Path, config: &ForecastingConfig) -> Result<Self> {
        let mut opened = Opened::new(path)?;
        let (config, understood) = &config.understood(&mut opened)?;
        if let Some(like) = &config.like {
            for (trained, asked) in [(&like.columns[..], config.read()), (&like.target, &config.target)] {
                if trained != asked {
                    return Err(other_columns(trained, asked).in_file(path));
                }
            }
        }
        let mut gathered = Gathered::default();
        let mut found: Option<Found> = None;
        let mut add = |path: &Path, opened: Opened| -> Result<Vec<usize>> {
            let mut wanted = config.wanted();
            if let Some(like) = &config.like {
                wanted.categories = Names::known(&like.columns, &like.categories);
            } else if let Some(found) = &found {
                wanted.categories = categories::of_file(&found.names, &found.of_names);
            }
            let frame = opened.read(&wanted)?;
            let (names, time) = (&frame.names, frame.time());
            found.get_or_insert_with(|| Found {
                names: names.clone(),
                of_names: frame.categories.clone(),
                leads: frame.leads.clone(),
                time: time.map(str::to_owned),
            });
            gathered.add(&frame, config).map_err(|error| error.in_file(path))
        };
        let trained = add(path, opened)?;
        let mut read = |path: &Path| add(path, Opened::new(path)?);
        let validated = config.division.validation.as_deref().map(&mut read).transpose()?;
        let tested = config.division.test.as_deref().map(&mut read).transpose()?;
        let end = |ends: &[usize], at: usize| ends.get(at).copied().unwrap_or(0);
        let bounds = |(at, series): (usize, &Series)| {
            let (n, own) = (series.len(), end(&trained, at));
            let divided = Bounds::divide(own, config.division.train_fraction, config.horizon, config.division.validates);
            match (&validated, &tested) {
                (None, None) => divided,
                (Some(validated), Some(_)) => Bounds { training: own, validation: end(validated, at), test: n },
                // What is held out of the training file validates, or tests.
                (None, Some(_)) if config.division.validates => Bounds { training: divided.validation, validation: own, test: n },
                (None, Some(_)) => Bounds { training: own, validation: own, test: n },
                (Some(_), None) => Bounds { training: own, validation: n, test: n },
            }
        };
        let bounds: Vec<Bounds> = gathered.series.iter().enumerate().map(bounds).collect();
        let Found { of_names, time, leads, .. } = found.unwrap_or_default();
        let categories = match &config.like {
            Some(like) => like.categories.clone(),
            None => leads::settle(categories::settle(of_names, &mut gathered.series, |at| bounds[at].training)?, &leads),
        };
        // Later files go on with sequences, and names have got their numbers.
        Series::fill_leads(&mut gathered.series, &leads)?;
        let paces = Paces::of(&gathered.series);
        let season = if config.season == 0 { paces.season() } else { config.season };
        let mixture = if config.season == 0 { paces.mixture() } else { None };
        let told = [understood.clone(), config.blindness(), mixture, paces.gaps(season, config.division.missing)];
        let understood = told.into_iter().flatten().reduce(|all, sentence| all + "\n" + &sentence);
        // What comes when is settled.
        gathered.series.iter_mut().for_each(|series| series.times = Values::default());
        let config = &ForecastingConfig { season, ..config.clone() };
        let task = Self::new(gathered.series.into(), bounds, config, time, categories).map_err(|error| error.in_file(path))?;
        let task = Self { understood, ..task };
        task.table.expect_all_readable(|| {
            let known = Names::known(&task.table.forecaster.columns, &task.table.forecaster.categories);
            let wanted = Wanted { categories: known, ..config.wanted() };
            // Where the number stands, its file tells.
            let files = [Some(path), config.division.validation.as_deref(), config.division.test.as_deref()];
            files.into_iter().flatten().try_for_each(|path| {
                let frame = read_table(path, &wanted)?;
                task.table.expect_readable(&frame).map_err(|error| error.in_file(path))
            })
        })?;
        Ok(task)
    }

    fn new(
        series: Arc<[Series]>,
        bounds: Vec<Bounds>,
        config: &ForecastingConfig,
        time: Option<String>,
        categories: Vec<Category>,
    ) -> Result<Self> {
        let Wanted { numbers, .. } = config.wanted();
        let super::Numbers::Named(names) = numbers else { unreachable!("the columns are named") };
        let place = |name: &String| names.iter().position(|other| other == name).expect("the column was asked for");
        let predicted: Vec<usize> = config.target.iter().map(place).collect();
        let read_targets = Some(&predicted[..]).filter(|targets| targets.iter().all(|&at| at < config.read().len()));
        let season = config.season;
        let columns =
            Columns { names: config.read(), categories: &categories, targets: &predicted, read_targets, season, horizon: config.horizon };
        let trained = series.iter().zip(&bounds).flat_map(|(series, bounds)| series.steps().take(bounds.training));
        normalization::expect_known(&names, trained)?;
        let Seen { scaling, normalization, target_normalization, of_table } = match &config.like {
            Some(like) => Seen::of(like),
            None => Seen::fit(config.scaling, &series, &bounds, &columns)?,
        };
        let forecaster = Forecaster {
            columns: config.read().to_vec(),
            group: config.group.clone(),
            target: config.target.clone(),
            horizon: config.horizon,
            season,
            time,
            missing: config.division.missing,
            layout: config.division.layout(),
            categories,
            normalization,
            target_normalization,
            scaling,
            of_table,
            quantiles: config.quantiles.clone(),
        };
        let table = Table::new(series, bounds, predicted, forecaster, config.seq_len, config.division.test.is_some());
        let validates = config.division.validates || config.division.validation.is_some();
        let parts = [Some(Part::Training), Some(Part::Validation).filter(|_| validates), Some(Part::Test)];
        parts.into_iter().flatten().try_for_each(|part| table.expect_scored(part, config))?;
        Ok(Self { table: Arc::new(table), understood: None, unseen: Vec::new() })
    }

    /// The task of a trained model on another table, all of which is to be scored.
    ///
    /// # Errors
    /// When the file cannot be read or no sequence is longer than the horizon.
    pub fn unseen(path: &Path, forecaster: &Forecaster) -> Result<Self> {
        let all = |series: &Series| Bounds { training: 0, validation: 0, test: series.len() };
        Self::of_trained(path, forecaster, all, |table, config| table.expect_scored(Part::Test, config))
    }

    /// The task of a trained model on another table, divided by `bounds`, unless `check` refuses it.
    fn of_trained(
        path: &Path,
        forecaster: &Forecaster,
        bounds: impl Fn(&Series) -> Bounds,
        check: impl Fn(&Table, &ForecastingConfig) -> Result<()>,
    ) -> Result<Self> {
        let config = ForecastingConfig {
            columns: forecaster.columns.clone(),
            calendar: Vec::new(),
            known_ahead: Vec::new(),
            target: forecaster.target.clone(),
            group: forecaster.group.clone(),
            horizon: forecaster.horizon,
            season: forecaster.season,
            scaling: ScalingChoice::Standard,
            quantiles: forecaster.quantiles.clone(),
            like: None,
            division: Division::unseen(path, forecaster.time.as_deref(), forecaster.layout, forecaster.missing),
            seq_len: 1,
        };
        let known = Names::known(&forecaster.columns, &forecaster.categories);
        // What was known ahead in training stands in no table.
        let leads = forecaster.columns.clone();
        let frame = read_table(path, &Wanted { categories: known, leads, ..config.wanted() })?;
        let found = || {
            let series = Series::of(&frame, config.group.as_ref().map(|_| &frame.texts[0]))?;
            let predicted = frame.columns(&config.target);
            let bounds = series.iter().map(bounds).collect();
            let table = Table::new(series.into(), bounds, predicted, forecaster.clone(), 1, true);
            table.expect_readable(&frame)?;
            check(&table, &config)?;
            let understood = paces::gaps(&table.series, forecaster);
            Ok(Self { table: Arc::new(table), understood, unseen: frame.unseen.clone() })
        };
        found().map_err(|error: Error| error.in_file(path))
    }
}

impl ForecastingConfig {
    /// The same with the columns that the table tells where nobody names them.
    fn understood(&self, opened: &mut Opened) -> Result<(Self, Understood)> {
        let Self { columns, group, target, division: Division { time, layout, .. }, .. } = self.clone();
        let asked = Roles { columns, group, target, time, layout };
        let (mut roles, mut understood) = asked.to_forecast(opened.header())?;
        if roles.lacks_time(opened.header())
            && let Some(name) = opened.only_dates(&roles.named())?
        {
            (roles, understood) = asked.with_dates(roles, understood, name, opened.header())?;
        }
        let header = opened.header();
        let Roles { group, target, time, layout, .. } = roles;
        let division = Division { time, layout, ..self.division.clone() };
        let config = Self { group, target, division, ..self.clone() };
        Ok((config.with_calendar(header)?.with_known_ahead()?, understood))
    }

    /// With the parts of the calendar among the columns that are read.
    fn with_calendar(self, header: &[String]) -> Result<Self> {
        let Some(first) = self.calendar.first() else { return Ok(self) };
        let Some(time) = self.wanted().time_in(header)?.map(|at| header[at].clone()) else {
            let sentence = format!("calendar = {first} is read from a column of times, and there is none; name it with time");
            return Err(Error::Config(sentence));
        };
        let mut columns = self.read().to_vec();
        for name in self.calendar.iter().map(|part| part.column(&time)) {
            if !columns.contains(&name) {
                columns.push(name);
            }
        }
        Ok(Self { columns, division: Division { time: TimeColumn::Named(time), ..self.division }, ..self })
    }

    /// With the columns that are known ahead, and their values at the next steps.
    fn with_known_ahead(self) -> Result<Self> {
        if self.known_ahead.is_empty() {
            return Ok(self);
        }
        let role = |name: &String| match name {
            name if self.target.contains(name) => Some("is forecast: nothing of it is known ahead"),
            name if self.group.as_ref() == Some(name) => Some("names sequences"),
            name if matches!(&self.division.time, TimeColumn::Named(time) if time == name) => Some("tells the time"),
            _ => None,
        };
        if let Some((name, role)) = self.known_ahead.iter().find_map(|name| Some((name, role(name)?))) {
            return Err(Error::Config(format!("known_ahead names the column '{name}', which {role}; leave it out")));
        }
        let mut columns = self.read().to_vec();
        for name in self.known_ahead.iter().cloned().chain(self.leads()) {
            if !columns.contains(&name) {
                columns.push(name);
            }
        }
        Ok(Self { columns, ..self })
    }

    /// The values at the next steps of the columns that are known ahead.
    fn leads(&self) -> Vec<String> {
        self.known_ahead.iter().flat_map(|column| leads::names(column, self.horizon)).collect()
    }

    /// That nothing is read of what is forecast, if so, as a sentence.
    fn blindness(&self) -> Understood {
        let unread: Vec<&str> = self.target.iter().filter(|target| !self.read().contains(target)).map(String::as_str).collect();
        let targets = unread.join("', '");
        (!unread.is_empty()).then(|| {
            format!(
                "'{targets}' is not among the columns that are read: it is forecast without its own values of before; add it to columns if these \
                 should count"
            )
        })
    }

    fn read(&self) -> &[String] {
        if self.columns.is_empty() { &self.target } else { &self.columns }
    }

    fn wanted(&self) -> Wanted {
        let named = Wanted::named(self.read().iter().chain(&self.target), self.group.iter().cloned().collect());
        let categories = categories::open(&self.columns, &self.target);
        self.division.wanted(Wanted { categories, leads: self.leads(), ..named })
    }
}

impl Table {
    fn new(
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

    /// Refuses a number of `frame` that lies too far from those that were trained on, or has no logarithm where that is read.
    fn expect_readable(&self, frame: &Frame) -> Result<()> {
        normalization::expect_near(&self.of_rows(frame.names.len()), frame)?;
        normalization::expect_logarithms(self.transforms(), frame)
    }

    fn transforms(&self) -> impl Iterator<Item = Transform> {
        (0..self.forecaster.columns.len()).map(|column| self.forecaster.scaling.transform(column))
    }

    /// Asks `place` for a sentence where a number of the sequences is [refused](Self::expect_readable).
    fn expect_all_readable(&self, place: impl FnOnce() -> Result<()>) -> Result<()> {
        let width = self.series.first().map_or(0, |series| series.width);
        let (known, mut transforms) = (self.of_rows(width), vec![Transform::Identity; width]);
        transforms.iter_mut().zip(self.transforms()).for_each(|(of_row, transform)| *of_row = transform);
        let is_readable = |(column, &x): (usize, &f64)| x.is_nan() || known.is_near(column, x) && transforms[column].reads(x);
        if self.series.iter().flat_map(Series::steps).all(|row| row.iter().enumerate().all(is_readable)) {
            return Ok(());
        }
        place().and(Err(Error::Data("it has changed while it was read".to_owned())))
    }

    /// Means and deviations of the columns of a row.
    fn of_rows(&self, width: usize) -> Normalization {
        let (normalization, target_normalization) = (self.task.of_table(), &self.forecaster.target_normalization);
        let mut of_frame = Normalization { mean: vec![0.0; width], deviation: vec![1.0; width] };
        let read = (0..self.forecaster.columns.len()).map(|column| (column, normalization, column));
        // With a level every target is among those that are read.
        let targets = self.predicted.iter().enumerate().filter(|_| self.forecaster.scaling.is_standard());
        let targets = targets.map(|(at, &column)| (column, target_normalization, at));
        for (column, known, at) in read.chain(targets) {
            (of_frame.mean[column], of_frame.deviation[column]) = (known.mean[at], known.deviation[at]);
        }
        of_frame
    }

    /// The steps of sequence `series` that are scored in `part`.
    fn scored(&self, series: usize, part: Part) -> std::ops::Range<usize> {
        self.bounds[series].scored(part, self.forecaster.horizon)
    }

    fn expect_scored(&self, part: Part, config: &ForecastingConfig) -> Result<()> {
        let name = match part {
            Part::Training => "training part",
            Part::Validation => "validation part",
            Part::Test => "test part",
        };
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

    /// Steps of a sequence that are learned from in the end.
    fn end_of_all(&self, bounds: &Bounds) -> usize {
        if self.has_test_file { bounds.validation } else { bounds.test }
    }

    /// Whether a value of `column` is to be predicted in `part` of sequence `series` behind one that is known.
    fn knows(&self, series: usize, column: usize, part: Part) -> bool {
        let (of, steps, end) = (&self.series[series], self.scored(series, part), self.bounds[series].of(part).end);
        let is_known = |&t: &usize| !of.step(t)[column].is_nan();
        let Some(first) = (0..steps.end).find(is_known) else { return false };
        let last = (steps.end + self.forecaster.horizon).min(end);
        !steps.is_empty() && (first.max(steps.start) + 1..last).any(|t| is_known(&t))
    }

    fn n_inputs(&self) -> usize {
        self.task.n_inputs()
    }

    /// Numbers that are to come at each step; of each, quantiles are predicted.
    fn n_targets(&self) -> usize {
        self.forecaster.horizon * self.predicted.len()
    }

    fn n_outputs(&self) -> usize {
        self.n_targets() * self.forecaster.n_quantiles()
    }

    /// The columns that are read, of the rows up to step `t` that decide how numbers are seen there.
    fn recent<'a>(&self, series: usize, t: usize, kept: &'a mut Vec<f64>) -> &'a [f64]
    where
        Self: 'a,
    {
        let (of, width) = (&self.series[series], self.forecaster.columns.len());
        kept.clear();
        // Targets that are not read stand behind the columns that are.
        (t.saturating_sub(self.task.reach() - 1)..=t).for_each(|t| kept.extend_from_slice(&of.step(t)[..width]));
        kept
    }

    /// What the model reads at step `t`.
    fn fill_inputs(&self, series: usize, t: usize, kept: &mut Vec<f64>, out: &mut [f32]) {
        self.task.show(self.recent(series, t, kept), out);
    }

    /// What it should predict there in `part`: the columns of the next step, then those of the one after, …; NaN where that lies behind it.
    fn fill_targets(&self, series: usize, t: usize, part: Part, kept: &mut Vec<f64>, out: &mut [f32]) {
        let (of, end) = (&self.series[series], self.bounds[series].of(part).end);
        let recent = self.recent(series, t, kept);
        for (at, &column) in self.predicted.iter().enumerate() {
            let scale = self.forecaster.target_scale(at, recent);
            for (ahead, out) in out.iter_mut().skip(at).step_by(self.predicted.len()).enumerate() {
                let step = t + 1 + ahead;
                *out = if step < end { scale.apply(of.step(step)[column]) } else { f32::NAN };
            }
        }
    }

    /// A batch of inputs and targets.
    fn batch(&self, inputs: Vec<f32>, targets: Vec<f32>, mask: Vec<f32>, segments: crate::Segments, batch_size: usize) -> Batch {
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

/// The part that is scored for `purpose`.
fn part(purpose: Purpose) -> Part {
    match purpose {
        Purpose::TrainData => Part::Training,
        Purpose::ValidationData => Part::Validation,
        _ => Part::Test,
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

    fn extent(&self) -> Option<Extent> {
        let trained = |at: usize| self.table.scored(at, Part::Training).len();
        let lengths = (0..self.table.series.len()).map(trained).filter(|&length| length > 0);
        let (n, steps) = lengths.fold((0, 0), |(n, steps), length| (n + 1, steps + length));
        Some(Extent { steps, length: steps.div_ceil(n.max(1)), in_windows: true, least_updates: LEAST_UPDATES })
    }

    fn has_parts(&self) -> bool {
        true
    }

    fn table_task(&self) -> Option<TableTask> {
        Some(self.table.task.clone())
    }

    fn description(&self) -> Option<serde_json::Value> {
        serde_json::to_value(&self.table.task).ok()
    }

    fn training(&self, batch_size: usize, seed: u64) -> Result<Box<dyn BatchSource>> {
        Ok(Box::new(ForecastWindows::new(Arc::clone(&self.table), batch_size, seed)?))
    }

    fn evaluation(&self, batch_size: usize, _seed: u64, purpose: Purpose, _n_batches: u64) -> Result<Box<dyn EvaluationSet>> {
        check_shape(batch_size, CHUNK_LEN)?;
        let (table, part) = (Arc::clone(&self.table), part(purpose));
        let whole = whole(&table, part, batch_size);
        Ok(Box::new(ForecastEvaluation { table, part, whole, stride: 1 }))
    }

    fn comparison(&self, purpose: Purpose) -> Option<Box<dyn Comparison>> {
        Some(Box::new(ForecastErrors::new(Arc::clone(&self.table), part(purpose))))
    }

    fn all(&self) -> Option<Box<dyn SequenceTask>> {
        let bounds: Vec<Bounds> = self.table.bounds.iter().map(|bounds| bounds.trained_to(self.table.end_of_all(bounds))).collect();
        let is_more = bounds != self.table.bounds;
        is_more.then(|| {
            let table = Arc::new(Table { bounds, ..Table::clone(&self.table) });
            Box::new(Self { table, understood: None, unseen: Vec::new() }) as Box<dyn SequenceTask>
        })
    }

    fn understood(&self) -> Option<&str> {
        self.understood.as_deref()
    }

    fn unseen_names(&self) -> &[UnseenNames] {
        &self.unseen
    }

    fn has_test_file(&self) -> bool {
        self.table.has_test_file
    }
}

/// Steps of an evaluation batch.
const CHUNK_LEN: usize = 512;
/// Updates that a short series needs.
const LEAST_UPDATES: u64 = 100;

/// Every sequence that is scored in `part`, from its first step to the last that is; nothing after it has to be read.
fn whole(table: &Table, part: Part, batch_size: usize) -> WholeSeries {
    let last = |series: usize| Some(table.scored(series, part)).filter(|scored| !scored.is_empty()).map_or(0, |scored| scored.end);
    WholeSeries::new((0..table.series.len()).map(last).collect(), batch_size, CHUNK_LEN)
}

/// Every sequence from its first step to the last that is scored in a part.
struct ForecastEvaluation {
    table: Arc<Table>,
    part: Part,
    whole: WholeSeries,
    /// Steps from one that is scored to the next.
    stride: usize,
}

impl EvaluationSet for ForecastEvaluation {
    fn n_batches(&self) -> u64 {
        self.whole.n_chunks() as u64
    }

    fn batch(&mut self, index: u64) -> Result<Batch> {
        expect_index(index, self.n_batches())?;
        let chunk = self.whole.chunk(index as usize);
        let (table, batch_size) = (&self.table, self.whole.batch_size());
        let (n, inputs_width, targets_width) = (batch_size * chunk.seq_len, table.n_inputs(), table.n_targets());
        let (mut inputs, mut targets, mut mask) = (vec![0.0; n * inputs_width], vec![0.0; n * targets_width], vec![0.0; n]);
        let mut kept = Vec::new();
        for (series, step, place) in chunk.places() {
            table.fill_inputs(series, step, &mut kept, &mut inputs[place * inputs_width..][..inputs_width]);
            let scored = table.scored(series, self.part);
            if scored.contains(&step) && (step - scored.start).is_multiple_of(self.stride) {
                table.fill_targets(series, step, self.part, &mut kept, &mut targets[place * targets_width..][..targets_width]);
                mask[place] = 1.0;
            }
        }
        Ok(table.batch(inputs, targets, mask, chunk.segments, batch_size))
    }

    fn carries_state(&self) -> bool {
        true
    }
}
