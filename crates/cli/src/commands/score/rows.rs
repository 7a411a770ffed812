//! Rows of a table.

use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use minrnn::csv::quoted;
use minrnn::data::table::{ForecastRow, ForecastRows, Forecaster, Series, TableSource};
use minrnn::deployed::{Deployed, Usual, calibrate_rows, exceeds, score_rows};
use minrnn::numbers::Shortest;

use super::tally::{Tally, mark};
use super::{Args, threshold};
use crate::free_name::free_name;
use crate::say::say;
use crate::sink::Sink;
use crate::{input, interrupt};

/// Scores every row; false when `stop` was raised before the end.
pub fn score(args: &Args, deployed: &Deployed, forecaster: &Forecaster, stop: &AtomicBool) -> anyhow::Result<bool> {
    let calibration = match &args.calibrate {
        None => deployed.surprise.clone(),
        Some(path) => {
            let Some(rows) = read(path, forecaster, stop)? else { return Ok(false) };
            rows.notes().into_iter().for_each(|note| say(format_args!("{}: {note}", path.display())));
            let Some(calibration) = calibrate_rows(&deployed.model, &rows, stop)? else { return Ok(false) };
            Some(calibration)
        }
    };
    let Some(rows) = read(&args.data, forecaster, stop)? else { return Ok(false) };
    rows.notes().into_iter().for_each(say);
    let threshold = threshold(args, &Usual::from(calibration))?;
    let mut sink = Sink::open(args.out.as_deref())?;
    sink.write(&header(forecaster, rows.series()))?;
    let (mut tally, mut line) = (Tally::default(), String::new());
    let see = |at: usize, step: usize, row: ForecastRow| {
        let series = &rows.series()[at];
        let is_marked = exceeds(row.surprise, threshold);
        tally.count(row.surprise, is_marked, false, || name(series, step));
        line.clear();
        if forecaster.group.is_some() {
            line += &quoted(&series.name);
            line.push(',');
        }
        match series.times.get(step) {
            Some(&time) => line += &quoted(&series.clock.write(time)),
            None => _ = write!(line, "{}", step + 1),
        }
        for (target, value) in row.values.iter().enumerate() {
            let number = |x: f64| if x.is_nan() { String::new() } else { Shortest(x).to_string() };
            let expected = row.expected.as_ref().map_or(String::new(), |expected| number(expected[target]));
            let _ = write!(line, ",{},{expected}", number(*value));
        }
        let surprise = row.surprise.map_or(String::new(), |surprise| format!("{surprise:.6}"));
        let _ = writeln!(line, ",{surprise},{}", mark(is_marked));
        sink.write(&line)
    };
    if !score_rows(&deployed.model, &rows, stop, see)? {
        return Ok(false);
    }
    sink.finish()?;
    tally.tell("row");
    if let Some(out) = &args.out {
        say(format_args!("rows: {}", out.display()));
    }
    Ok(true)
}

fn read(path: &Path, forecaster: &Forecaster, stop: &AtomicBool) -> anyhow::Result<Option<ForecastRows>> {
    let (path, reads) = (input::path(path), forecaster.clone());
    Ok(interrupt::unless_stopped(stop, move || ForecastRows::read(TableSource::File(&path), &reads)).transpose()?)
}

/// Group, time or the number of the step, each target with its forecast, surprise and mark. A column of ours whose name is taken gets another name,
/// which is reported.
fn header(forecaster: &Forecaster, series: &[Series]) -> String {
    let has_times = series.iter().any(|series| !series.times.is_empty());
    let time = forecaster.time.as_ref().filter(|_| has_times);
    let of_table: Vec<String> = forecaster.group.iter().chain(time).chain(&forecaster.target).cloned().collect();
    let own = |name: String| {
        let free = free_name(name.clone(), "_scored", &of_table);
        if free != name {
            say(format_args!("the table has a column '{name}': what scoring writes under this name is called '{free}'"));
        }
        free
    };
    let mut cells: Vec<String> = forecaster.group.iter().cloned().collect();
    cells.push(time.cloned().unwrap_or_else(|| own("step".to_owned())));
    for target in &forecaster.target {
        cells.extend([target.clone(), own(format!("{target} forecast"))]);
    }
    cells.extend(["surprise", "anomaly"].map(|name| own(name.to_owned())));
    cells.iter().map(|cell| quoted(cell)).collect::<Vec<_>>().join(",") + "\n"
}

/// What a row is called.
fn name(series: &Series, step: usize) -> String {
    let of = if series.name.is_empty() { String::new() } else { format!("'{}', ", series.name) };
    match series.times.get(step) {
        Some(&time) => format!("{of}{}", series.clock.write(time)),
        None => format!("{of}step {}", step + 1),
    }
}
