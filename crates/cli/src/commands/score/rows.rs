//! Rows of a table.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use minrnn::data::table::{ForecastRow, ForecastRows, Forecaster, Series, TableSource};
use minrnn::deployed::{Deployed, Usual, exceeds, score_rows};

use super::tally::Tally;
use super::{Args, threshold};
use crate::cells::{header, write_line};
use crate::say::say;
use crate::scored::Columns;
use crate::sink::Sink;
use crate::{input, interrupt};

/// Scores every row; false when `stop` was raised before the end.
pub fn score(args: &Args, deployed: &Deployed, forecaster: &Forecaster, stop: &AtomicBool) -> anyhow::Result<bool> {
    let usual = match &args.calibrate {
        None => Usual::from(deployed.surprise.clone()),
        Some(path) => {
            let Some(rows) = read(path, forecaster, stop)? else { return Ok(false) };
            let name = path.display().to_string();
            let Some((usual, notes)) = Usual::of_rows(&name, &rows, &deployed.model, stop)? else { return Ok(false) };
            notes.into_iter().for_each(say);
            usual
        }
    };
    let Some(rows) = read(&args.data, forecaster, stop)? else { return Ok(false) };
    rows.notes().into_iter().for_each(say);
    let threshold = threshold(args, &usual)?;
    let mut sink = Sink::open(args.out.as_deref())?;
    let columns = Columns::new(forecaster, rows.series());
    columns.notes.iter().for_each(say);
    sink.write(&header(&columns.names))?;
    let (mut tally, mut line) = (Tally::default(), String::new());
    let see = |at: usize, step: usize, row: ForecastRow| {
        let is_marked = exceeds(row.surprise, threshold);
        tally.count(row.surprise, is_marked, false, || name(&rows.series()[at], step));
        line.clear();
        write_line(&columns.cells(at, step, &row, is_marked), &mut line);
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

/// What a row is called.
fn name(series: &Series, step: usize) -> String {
    let of = if series.name.is_empty() { String::new() } else { format!("'{}', ", series.name) };
    match series.times.get(step) {
        Some(&time) => format!("{of}{}", series.clock.write(time)),
        None => format!("{of}step {}", step + 1),
    }
}
