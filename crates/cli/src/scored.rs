//! Rows of a table and how surprising they are, as a table: sequence, time or number of the step, each target with its forecast, surprise and mark.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use minrnn::data::table::{ForecastRow, ForecastRows, Forecaster, Series, TableSource};
use minrnn::deployed::{Deployed, Usual};

use crate::cells::Cell;
use crate::failure::WrongInput;
use crate::free_name::free_name;
use crate::say::say;
use crate::{input, interrupt};

/// The rows of the table at `path`; `None` if `stop` was raised before they were read.
pub fn rows_of(path: &Path, forecaster: &Forecaster, stop: &AtomicBool) -> anyhow::Result<Option<ForecastRows>> {
    let (path, reads) = (input::path(path), forecaster.clone());
    Ok(interrupt::unless_stopped(stop, move || ForecastRows::read(TableSource::File(&path), &reads)).transpose()?)
}

/// How surprising usual rows are to a model: those of the table `calibrate`, notes on which are printed, or else those that its training held
/// out. `None` if `stop` was raised before the end.
pub fn usual_rows(
    calibrate: Option<&Path>,
    deployed: &Deployed,
    forecaster: &Forecaster,
    stop: &AtomicBool,
) -> anyhow::Result<Option<Usual>> {
    let Some(path) = calibrate else { return Ok(Some(Usual::from(deployed.surprise.clone()))) };
    let Some(rows) = rows_of(path, forecaster, stop)? else { return Ok(None) };
    let Some((usual, notes)) = Usual::of_rows(&path.display().to_string(), &rows, &deployed.model, stop)? else { return Ok(None) };
    notes.into_iter().for_each(say);
    Ok(Some(usual))
}

/// The threshold above which rows are marked, none if there is nothing to compare with, and what rows are compared with, as a sentence. The
/// share was given as `name`; `by` says how usual rows are given.
pub fn threshold(usual: &Usual, share: f64, name: &str, by: &str) -> Result<(Option<f64>, String), WrongInput> {
    usual.threshold(share, by).map_err(|error| match error {
        // The share is not at fault.
        minrnn_model::Error::Row(sentence) => WrongInput(sentence),
        error => WrongInput(format!("{name} {share:?}: {error}")),
    })
}

/// The columns of scored rows.
pub struct Columns<'a> {
    /// Their names.
    pub names: Vec<String>,
    /// Which names were taken by columns of the table, so that ours are called otherwise, a sentence each.
    pub notes: Vec<String>,
    forecaster: &'a Forecaster,
    series: &'a [Series],
}

impl<'a> Columns<'a> {
    /// The columns for the rows of `series`.
    pub fn new(forecaster: &'a Forecaster, series: &'a [Series]) -> Self {
        let has_times = series.iter().any(|series| !series.times.is_empty());
        let time = forecaster.time.as_ref().filter(|_| has_times);
        let of_table: Vec<String> = forecaster.group.iter().chain(time).chain(&forecaster.target).cloned().collect();
        let mut notes = Vec::new();
        let mut own = |name: String| {
            let free = free_name(name.clone(), "_scored", &of_table);
            if free != name {
                notes.push(format!("the table has a column '{name}': what scoring writes under this name is called '{free}'"));
            }
            free
        };
        let mut names: Vec<String> = forecaster.group.iter().cloned().collect();
        names.push(time.cloned().unwrap_or_else(|| own("step".to_owned())));
        for target in &forecaster.target {
            names.extend([target.clone(), own(format!("{target} forecast"))]);
        }
        names.extend(["surprise", "anomaly"].map(|name| own(name.to_owned())));
        Self { names, notes, forecaster, series }
    }

    /// The cells of `row`, which is at `step` of the sequence at `at`.
    pub fn cells(&self, at: usize, step: usize, row: &ForecastRow, is_marked: Option<bool>) -> Vec<Cell> {
        let series = &self.series[at];
        let name = self.forecaster.group.as_ref().map(|_| Cell::Text(series.name.clone()));
        let time = series.times.get(step).map_or(Cell::Step(step + 1), |&time| Cell::Text(series.clock.write(time)));
        let expected = |target: usize| row.expected.as_ref().map_or(f64::NAN, |expected| expected[target]);
        let targets = row.values.iter().enumerate().flat_map(|(target, &value)| [value, expected(target)].map(Cell::Number));
        let judged = [Cell::Rounded(row.surprise.unwrap_or(f64::NAN)), Cell::Mark(is_marked)];
        name.into_iter().chain([time]).chain(targets).chain(judged).collect()
    }
}
