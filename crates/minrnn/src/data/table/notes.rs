//! What readers of predictions should know about the underlying table.

use minrnn_model::{Forecaster, TableTask};

use super::paces::Paces;
use super::{Series, UnseenNames, gaps};

/// Sentences: which names training never saw, where steps are longer than usual and, for forecasts, whether they continue otherwise than the
/// table does, which series end early, and which have no known value to forecast from.
pub fn notes(task: &TableTask, series: &[Series], unseen: &[UnseenNames]) -> Vec<String> {
    let mut notes = of_rows(task, series, unseen);
    if let TableTask::Forecast(forecaster) = task {
        // Rows to come bring their own times.
        if series.iter().all(|series| series.to_come.is_empty()) {
            notes.extend(Paces::of(series).continuation());
        }
        notes.extend(what_has_no_step(forecaster, series));
        notes.extend(what_ended(series));
        notes.extend(what_is_unknown(forecaster, task.reach(), series));
    }
    notes
}

/// The first two of these notes.
pub(super) fn of_rows(task: &TableTask, series: &[Series], unseen: &[UnseenNames]) -> Vec<String> {
    let mut notes: Vec<String> = unseen.iter().map(UnseenNames::to_string).collect();
    notes.extend(gaps(series, task).iter().flat_map(|gaps| gaps.lines()).map(str::to_owned));
    notes
}

/// Which series have a single row, in a table that gives no time step.
fn what_has_no_step(forecaster: &Forecaster, series: &[Series]) -> Option<String> {
    let is_untold = |series: &&Series| series.len() == 1 && series.next_times(forecaster.horizon).is_none();
    let first = series.iter().find(is_untold).filter(|_| forecaster.time.is_some())?;
    Some(format!("{} has a single row, which tells no time to the next: the times of its forecasts are left out", first.describe()))
}

/// Which series end before the newest, and are forecast from there on.
fn what_ended(series: &[Series]) -> Option<String> {
    let last = |series: &Series| series.times.last().copied();
    let newest = series.iter().filter_map(last).max_by(f64::total_cmp)?;
    let mut ended = series.iter().filter(|series| last(series).is_some_and(|last| last < newest));
    let first = ended.next()?;
    let (name, n) = (&first.name, 1 + ended.count());
    let [end, newest] = [last(first).unwrap_or(newest), newest].map(|time| first.clock.write(time));
    Some(format!(
        "{n} of {} sequences end before the newest ({newest}) and are forecast from their own end on: '{name}' from {end} on",
        series.len()
    ))
}

/// Which series have no known value to forecast from in the rows that the model reads.
fn what_is_unknown(forecaster: &Forecaster, reach: usize, series: &[Series]) -> Option<String> {
    let unknown = |series: &Series| {
        let recent = series.recent(series.len() - 1, reach);
        (0..forecaster.target.len()).find(|&target| !forecaster.knows(target, recent))
    };
    let mut all = series.iter().filter_map(|series| Some((series, unknown(series)?)));
    let (first, target) = all.next()?;
    let n = 1 + all.count();
    let (which, have) = match n {
        1 => (first.describe(), "has"),
        _ => (format!("{n} of {} sequences, such as '{}',", series.len(), first.name), "have"),
    };
    let what = if forecaster.scaling.is_standard() { "mean" } else { "level" };
    let (target, rows) = (&forecaster.target[target], forecaster.scaling.looks_back());
    Some(format!("{which} {have} no known value of '{target}' in the last {rows} rows: forecast at the {what} of the whole table"))
}
