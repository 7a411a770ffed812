//! From files to sequences with their parts.

use std::path::Path;
use std::sync::Arc;

use minrnn_model::{Category, Forecaster};

use super::super::frame::Lead;
use super::super::known_names::KnownNames;
use super::super::paces::{self, Paces};
use super::super::roles::{Understood, together};
use super::super::series::Series;
use super::super::values::Values;
use super::super::{
    Division, Frame, Names, Numbers, Opened, TableSource, Wanted, categories, leads, normalization, other_columns, other_targets,
    read_table,
};
use super::parts::{Bounds, Part};
use super::scaling::{Columns, Seen};
use super::table::Table;
use super::{Forecasting, ForecastingConfig, ScalingChoice};
use crate::{Error, Result};

/// What the training file says about its columns.
#[derive(Default)]
struct Found {
    names: Vec<String>,
    /// The names that each column holds, if it holds names.
    of_names: categories::Found,
    leads: Vec<Lead>,
    time: Option<String>,
}

/// The sequences of the files read so far.
#[derive(Default)]
struct Gathered {
    series: Vec<Series>,
    names: KnownNames,
}

impl Gathered {
    /// Appends the sequences of `frame` to those already there; returns the number of steps that each sequence then has.
    fn add(&mut self, frame: &Frame, config: &ForecastingConfig) -> Result<Vec<usize>> {
        let mut later = Vec::new();
        let found = Series::of(frame, config.group.as_ref().map(|_| &frame.texts[0]))?;
        // One more step of a known sequence is enough.
        if self.series.is_empty() {
            Series::expect_most_longer(&found)?;
        }
        let places = self.names.find_all(found.iter().map(|series| series.name.as_str()))?;
        for (series, place) in found.into_iter().zip(places) {
            match place {
                Some(at) => later.push((at, series)),
                None => {
                    self.names.insert(&series.name, self.series.len());
                    self.series.push(series);
                }
            }
        }
        Series::extend(&mut self.series, &later)?;
        Ok(self.series.iter().map(Series::len).collect())
    }
}

/// How many steps each sequence has by the end of each file.
struct Ends {
    trained: Vec<usize>,
    validated: Option<Vec<usize>>,
    tested: Option<Vec<usize>>,
}

impl Ends {
    /// Which steps of each of `n` sequences are trained on and which are scored.
    fn bounds(&self, n: usize, config: &ForecastingConfig) -> Vec<Bounds> {
        let end = |ends: &[usize], at: usize| ends.get(at).copied().unwrap_or(0);
        let of = |at: usize| {
            let [validated, tested] = [&self.validated, &self.tested].map(|ends| ends.as_ref().map(|ends| end(ends, at)));
            let (fraction, validates) = (config.division.train_fraction, config.division.validates);
            // From a single row nothing is learned; it is the history of later ones.
            let own = Some(end(&self.trained, at)).filter(|&own| own > 1).unwrap_or(0);
            Bounds::divide(own, fraction, config.horizon, validates).with_files(validated, tested, validates)
        };
        (0..n).map(of).collect()
    }

    /// A sentence about the sequences of the training file, the first of `series`, that have a single row there, if any.
    fn single_rows(&self, series: &[Series]) -> Understood {
        let single: Vec<&str> =
            self.trained.iter().zip(series).filter(|(own, _)| **own == 1).map(|(_, series)| series.name.as_str()).collect();
        let left_out = ["is left out, as training needs two", "are left out, as training needs two"];
        Series::single_rows(single.into_iter(), self.trained.len(), left_out)
    }
}

/// The steps of a season.
struct Season {
    steps: usize,
    /// A note about a season that was not given, if any.
    understood: Understood,
    /// Why no training should begin with the given season, if so.
    unfit: Option<String>,
}

impl Season {
    /// The season `named`, or if that is 0 the usual one for `paces`; the longest sequence has `longest` steps to learn from.
    fn of(named: usize, paces: &Paces, longest: usize) -> Self {
        let is_overlong = |season: usize| season > 1 && season >= longest;
        match (named, paces.season()) {
            (0, usual) if is_overlong(usual) => Self { steps: 0, understood: Some(untaken(usual, longest)), unfit: None },
            (0, usual) => Self { steps: usual, understood: paces.mixture(), unfit: None },
            (named, _) => Self { steps: named, understood: None, unfit: is_overlong(named).then(|| overlong(named, longest)) },
        }
    }
}

/// States that in a sequence of `longest` steps no value lies a season after another.
fn shortness(longest: usize) -> String {
    format!("the longest sequence has {longest} steps to learn from, expected more than a season")
}

/// States that a requested season is refused.
fn overlong(season: usize, longest: usize) -> String {
    format!("season = {season} is too long: {}; give a shorter one, or 0 for the usual one of the column of times", shortness(longest))
}

/// States that the season suggested by the time column is not used.
fn untaken(season: usize, longest: usize) -> String {
    format!(
        "the season that is usual at the pace of the times, {season} steps, is not taken: {}; forecasts are compared with the last value; give longer \
         sequences, or choose a shorter season",
        shortness(longest)
    )
}

/// Sentences if the file of `part` has sequences that no earlier file has.
fn novelty(part: Part, new: &[Series]) -> Understood {
    let (scored, single): (Vec<&Series>, Vec<&Series>) = new.iter().partition(|series| series.len() > 1);
    let part = part.name();
    let of_scored = scored.first().map(|Series { name, .. }| match scored.len() {
        1 => {
            format!("1 sequence of the {part}, '{name}', is in no table before it: it is scored from its first step on, without a history")
        }
        n => format!(
            "{n} sequences of the {part}, such as '{name}', are in no table before it: they are scored from their first step on, without a history"
        ),
    });
    let of_single = single.first().map(|Series { name, .. }| match single.len() {
        1 => format!("1 sequence of the {part}, '{name}', has a single row and none in a table before it: it is not scored"),
        n => {
            format!("{n} sequences of the {part}, such as '{name}', have a single row and none in a table before it: they are not scored")
        }
    });
    together([of_scored, of_single])
}

impl Forecasting {
    /// The task on the file `path`, and on those for validation and test, if any.
    ///
    /// # Errors
    /// When a file cannot be read, or no sequence is long enough for a part.
    pub fn open(path: &Path, config: &ForecastingConfig) -> Result<Self> {
        let mut opened = Opened::new(path)?;
        let (config, understood, unfit) = &config.understood(&mut opened)?;
        if let Some(like) = &config.like {
            // Unless named, the columns read follow from the columns forecast.
            if like.target != config.target {
                return Err(other_targets(&like.target, &config.target).in_file(path));
            }
            if like.columns != config.read() {
                return Err(other_columns(&like.columns, config.read()).in_file(path));
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
        // Dates read as names are often too many of them.
        let trained = add(path, opened).map_err(|error| unfit.clone().map_or(error, Error::Config))?;
        let mut read = |path: &Path| add(path, Opened::new(path)?);
        let validated = config.division.validation.as_deref().map(&mut read).transpose()?;
        let tested = config.division.test.as_deref().map(&mut read).transpose()?;
        let ends = Ends { trained, validated, tested };
        let bounds = ends.bounds(gathered.series.len(), config);
        let n_trained = ends.trained.len();
        let read_before = ends.validated.as_ref().map_or(n_trained, Vec::len);
        let [new_to_validate, new_to_test] = [(Part::Validation, n_trained..read_before), (Part::Test, read_before..gathered.series.len())]
            .map(|(part, new)| novelty(part, &gathered.series[new]));
        let Found { of_names, time, leads, .. } = found.unwrap_or_default();
        let categories = match &config.like {
            Some(like) => like.categories.clone(),
            None => leads::settle(categories::settle(of_names, &mut gathered.series, |at| bounds[at].training)?, &leads),
        };
        // Only now have later files continued the sequences and names received their codes.
        Series::fill_leads(&mut gathered.series, &leads)?;
        let paces = Paces::of(&gathered.series);
        let longest = bounds.iter().map(|bounds| bounds.training).max().unwrap_or(0);
        let season = Season::of(config.season, &paces, longest);
        let gaps = paces.gaps(season.steps, config.division.missing, paces::NO_TARGET);
        // Forecasts have the times of the rows to come, where these are needed.
        let continuation = if leads.is_empty() { paces.continuation() } else { Vec::new() };
        let single_rows = ends.single_rows(&gathered.series);
        let unfit = config.placelessness().or(unfit.clone()).or(season.unfit);
        // The order and pace are settled, so times are no longer needed.
        gathered.series.iter_mut().for_each(|series| series.times = Values::default());
        let config = &ForecastingConfig { season: season.steps, ..config.clone() };
        let task = Self::new(gathered.series.into(), bounds, config, time, categories).map_err(|error| error.in_file(path))?;
        let [validated, tested] = [Part::Validation, Part::Test].map(|part| task.table.shortness(part));
        let understood = [understood.clone(), config.blindness(), single_rows, new_to_validate, new_to_test, season.understood, gaps];
        let understood = together(understood.into_iter().chain(continuation.into_iter().map(Some)).chain([validated, tested]));
        let task = Self { understood, unfit, ..task };
        task.table.expect_all_readable(|| {
            let known = Names::known(&task.table.forecaster.columns, &task.table.forecaster.categories);
            let wanted = Wanted { categories: known, ..config.wanted() };
            // The file tells the place of the number.
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
        let Numbers::Named(names) = numbers else { unreachable!("the columns are named") };
        let place = |name: &String| names.iter().position(|other| other == name).expect("the column was asked for");
        let predicted: Vec<usize> = config.target.iter().map(place).collect();
        let read_targets = Some(&predicted[..]).filter(|targets| targets.iter().all(|&at| at < config.read().len()));
        let season = config.season;
        let columns =
            Columns { names: config.read(), categories: &categories, targets: &predicted, read_targets, season, horizon: config.horizon };
        let trained = series.iter().zip(&bounds).flat_map(|(series, bounds)| series.rows().take(bounds.training));
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
        Ok(Self { table: Arc::new(table), understood: None, unseen: Vec::new(), unfit: None })
    }

    /// The task of a trained model on another table, all of it for scoring.
    ///
    /// # Errors
    /// When the file cannot be read or no sequence is longer than the horizon.
    pub fn unseen(path: &Path, forecaster: &Forecaster) -> Result<Self> {
        let all = |series: &Series| Bounds { training: 0, validation: 0, test: series.len() };
        let task = Self::of_trained(TableSource::File(path), forecaster, all, |table, config| table.expect_scored(Part::Test, config))?;
        let left_out = ["is left out, as scoring needs two", "are left out, as scoring needs two"];
        let understood = together([task.table.single_rows(left_out), task.understood]);
        Ok(Self { understood, ..task })
    }

    /// The task of a trained model on another table, divided by `bounds`, unless `check` refuses it.
    pub(super) fn of_trained(
        source: TableSource<'_>,
        forecaster: &Forecaster,
        bounds: impl Fn(&Series) -> Bounds,
        check: impl Fn(&Table, &ForecastingConfig) -> Result<()>,
    ) -> Result<Self> {
        let path = source.path();
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
        // Values known ahead in training have no columns in the table.
        let leads = forecaster.columns.clone();
        let frame = source.open()?.read(&Wanted { categories: known, leads, ..config.wanted() })?;
        let found = || {
            let series = Series::of(&frame, config.group.as_ref().map(|_| &frame.texts[0]))?;
            Series::expect_most_longer(&series)?;
            let predicted = frame.columns(&config.target);
            let bounds = series.iter().map(bounds).collect();
            let table = Table::new(series.into(), bounds, predicted, forecaster.clone(), 1, true);
            table.expect_readable(&frame)?;
            check(&table, &config)?;
            let understood = together([paces::gaps(&table.series, &table.task), table.shortness(Part::Test)]);
            Ok(Self { table: Arc::new(table), understood, unseen: frame.unseen.clone(), unfit: None })
        };
        found().map_err(|error: Error| error.in_file(path))
    }
}
