//! Rows of a table.

use std::sync::atomic::AtomicBool;

use minrnn::data::table::{ForecastRow, Forecaster, Series};
use minrnn::deployed::{Deployed, exceeds, score_rows};

use super::tally::Tally;
use super::{Args, threshold};
use crate::cells::{header, write_line};
use crate::say::say;
use crate::scored::{Columns, rows_of, usual_rows};
use crate::sink::Sink;

/// Scores every row; false when `stop` was raised before the end.
pub fn score(args: &Args, deployed: &Deployed, forecaster: &Forecaster, stop: &AtomicBool) -> anyhow::Result<bool> {
    let Some(usual) = usual_rows(args.calibrate.as_deref(), deployed, forecaster, stop)? else { return Ok(false) };
    let Some(rows) = rows_of(&args.data, forecaster, stop)? else { return Ok(false) };
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

/// What a row is called.
fn name(series: &Series, step: usize) -> String {
    let of = if series.name.is_empty() { String::new() } else { format!("'{}', ", series.name) };
    match series.times.get(step) {
        Some(&time) => format!("{of}{}", series.clock.write(time)),
        None => format!("{of}step {}", step + 1),
    }
}
