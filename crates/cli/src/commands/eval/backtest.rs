//! `minrnn eval RUN --data FILE --backtest K`: how good the forecasts from the last origins of a table would have been.

use std::io::{self, Write};
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use minrnn::data::expect_lasting;
use minrnn::data::table::{Backtest, Forecaster, MeasureKind, Origin, Origins, TableTask, read_series};
use minrnn::deployed::{self, Deployed};
use minrnn::train::{Data, Experiment, find_scored, has_learned_all, run_of};
use minrnn::words::counted;
use minrnn_model::CheckpointFiles;
use serde_json::json;

use super::inside::wanted_inside;
use super::output::Output;
use super::{BATCH_SIZE, expect_finite, stopped};
use crate::exit::ExitCode;
use crate::failure::{NO_STDOUT, WrongInput};
use crate::say::say;
use crate::text_table::aligned;
use crate::{input, interrupt};

#[derive(clap::Args)]
pub struct Args {
    /// Score forecasts from the last K origins of every sequence in --data, a horizon apart, each made from the history before it
    #[arg(
        long, value_name = "K", allow_negative_numbers = true, requires = "data",
        conflicts_with_all = ["against", "batches", "by_frequency", "by_length"],
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    backtest: Option<u32>,
    /// Steps from one origin of --backtest to the next [default: the horizon]
    #[arg(
        long, value_name = "STEPS", allow_negative_numbers = true, requires = "backtest",
        conflicts_with_all = ["against", "batches", "by_frequency", "by_length"],
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    stride: Option<u32>,
}

impl Args {
    /// The origins, if a backtest is asked for.
    pub fn origins(&self) -> Option<Origins> {
        Some(Origins { n: self.backtest? as usize, stride: self.stride.map(|stride| stride as usize) })
    }
}

/// Whether a model has learned from the values that it is scored on, as far as is known.
enum Learned {
    /// This many forecasts are of such values.
    Known(usize),
    /// It is not known, for this reason.
    Unknown(&'static str),
}

pub fn score(args: &super::Args, origins: Origins, stop: &AtomicBool) -> anyhow::Result<ExitCode> {
    if !args.device.is_cpu()? {
        return Err(WrongInput("a backtest runs on the CPU; leave --device out".to_owned()).into());
    }
    let mut deployed = Deployed::load(&args.run)?;
    let Some(TableTask::Forecast(forecaster)) = deployed.table.clone() else {
        let sentence = "it does not forecast; a backtest needs a model of minrnn train --task forecast";
        return Err(WrongInput(format!("'{}': {sentence}", args.run.display())).into());
    };
    let inside = wanted_inside(args, deployed.model.config())?;
    let path = input::path(args.data.as_deref().context("the table to forecast is given")?);
    let (table, reads) = (path.clone(), forecaster.clone());
    let open = move || Backtest::open(&table, &reads, origins);
    let Some(backtest) = interrupt::unless_stopped(stop, open).transpose()? else { return Ok(stopped()) };
    let [sequences, longest] = backtest.extent();
    deployed::evaluate_memory(deployed.model.config(), sequences.min(BATCH_SIZE), longest)?.expect_room(args.memory.given())?;
    let mut learned = learned(&backtest, &deployed)?;
    if let Learned::Known(1..) = learned {
        // The run may have a checkpoint that has learned from less.
        let scored = if args.run == deployed.path { args.run.clone() } else { find_scored(&args.run)? };
        if scored != deployed.path {
            deployed = Deployed::load(&scored)?;
            learned = self::learned(&backtest, &deployed)?;
            say("the model has learned from this table: scoring the earlier one, which never saw the test part");
        }
    }
    let (mut set, mut errors) = (backtest.evaluation(BATCH_SIZE), backtest.errors());
    let Some(evaluation) = deployed::evaluate(&deployed.model, &mut *set, Some(&mut errors), stop)? else { return Ok(stopped()) };
    if !evaluation.loss.is_finite() && expect_lasting(&path).is_ok() {
        // Predicting names the first sequence at fault.
        let task = TableTask::Forecast(forecaster.clone());
        deployed::predict(&deployed.model, &task, &read_series(&task, &path)?, stop)?;
    }
    expect_finite("the table", &evaluation)?;
    backtest.understood().iter().for_each(say);
    backtest.unseen_names().iter().for_each(say);
    tell_what_is_short(&backtest, origins);
    tell_what_is_learned(&learned, &backtest);
    let output = args.output();
    output.print_model(&deployed.path)?;
    let horizon = forecaster.horizon;
    let (n, sequences, stride) = (backtest.n_forecasts(), backtest.n_sequences(), origins.stride.unwrap_or(horizon));
    let by_origin = errors.by_origin();
    if output == Output::Json {
        let learned = if let Learned::Known(n) = learned { Some(n) } else { None };
        let about = json!({"measure": "backtest", "forecasts": n, "sequences": sequences, "horizon": horizon, "stride": stride, "learned": learned});
        writeln!(io::stdout(), "{about}").context(NO_STDOUT)?;
    } else {
        let [of, steps, apart] = [(sequences, "sequence"), (horizon, "step"), (stride, "step")].map(|(n, one)| counted(n, one));
        let forecasts = counted(n, "forecast");
        writeln!(io::stdout(), "{forecasts} of {steps}, the last of {of}, {apart} apart").context(NO_STDOUT)?;
    }
    output.print_comparison(&errors).context(NO_STDOUT)?;
    match output {
        Output::Json => print_objects(&by_origin),
        Output::Text => print_table(&by_origin, &forecaster),
    }
    .context(NO_STDOUT)?;
    // Of the model that was asked for, which may not be the one that was scored.
    inside.map_or(Ok(ExitCode::SUCCESS), |inside| inside.write(&Deployed::load(&args.run)?, None, stop))
}

/// How many forecasts are of values that the model has learned from.
fn learned(backtest: &Backtest, deployed: &Deployed) -> anyhow::Result<Learned> {
    if deployed.is_packed() {
        return Ok(Learned::Unknown("a packed model does not say what it has learned from"));
    }
    let Ok(run) = run_of(&deployed.path) else {
        return Ok(Learned::Unknown("a checkpoint outside its run does not say what it has learned from"));
    };
    let config = CheckpointFiles::open(&deployed.path).and_then(|files| files.config()).map_err(minrnn::Error::from)?;
    let experiment = Experiment::of_checkpoint(&config, &deployed.path)?;
    Ok(match Data::learned_forecasts(&experiment, &run)? {
        Some(task) => Learned::Known(backtest.n_learned(&task, has_learned_all(&deployed.path)?)),
        None => Learned::Unknown("the table that the model has learned from is gone, or has changed"),
    })
}

fn tell_what_is_learned(learned: &Learned, backtest: &Backtest) {
    match learned {
        Learned::Known(0) => {}
        Learned::Known(n) => say(format_args!(
            "{n} of {} forecasts are of values that the model has learned from: these numbers flatter it",
            backtest.n_forecasts()
        )),
        Learned::Unknown(why) => say(format_args!("{why}: if it was this table, these numbers flatter it")),
    }
}

fn tell_what_is_short(backtest: &Backtest, origins: Origins) {
    let short = backtest.too_short();
    let Some(first) = short.iter().min_by_key(|short| short.origins) else { return };
    let name = if first.name.is_empty() { "the table".to_owned() } else { format!("'{}'", first.name) };
    say(format_args!(
        "{} of {} sequences {} too short for {}: {name} has {}, which is enough for {}",
        short.len(),
        backtest.n_all_sequences(),
        if short.len() == 1 { "is" } else { "are" },
        counted(origins.n, "forecast"),
        counted(first.steps, "step"),
        first.origins
    ));
}

fn print_objects(by_origin: &[Origin]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for origin in by_origin {
        for measure in &origin.measures {
            let mut object = measure.to_json();
            object["steps_to_end"] = origin.steps_to_end.into();
            object["sequences"] = origin.n.into();
            if let Some(times) = &origin.times {
                object["from"] = times[0].clone().into();
            }
            writeln!(out, "{object}")?;
        }
    }
    Ok(())
}

/// A table for each target: a row for each origin, and a column for each measure and for that of its baseline, if there is one.
fn print_table(by_origin: &[Origin], forecaster: &Forecaster) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for target in &forecaster.target {
        let mut rows = Vec::new();
        for origin in by_origin {
            let (mut names, mut cells) = (vec!["from".to_owned(), "n".to_owned()], vec![from(origin), origin.n.to_string()]);
            for (is_it, head, of_baseline) in COLUMNS {
                let mut of_target = origin.measures.iter().filter(|measure| measure.target.as_ref() == Some(target));
                let measure = of_target.find(|measure| is_it(measure.kind));
                names.push(head.to_owned());
                cells.push(measure.map_or("-".to_owned(), |measure| measure.shown(measure.found)));
                if !of_baseline.is_empty() {
                    names.push(of_baseline.to_owned());
                    let baseline = measure.and_then(|measure| Some(measure.shown(measure.baseline.as_ref()?.found)));
                    cells.push(baseline.unwrap_or("-".to_owned()));
                }
            }
            if rows.is_empty() {
                rows.push(names);
            }
            rows.push(cells);
        }
        writeln!(out, "{target} by origin, the oldest first:")?;
        write!(out, "{}", aligned(&rows))?;
    }
    Ok(())
}

/// A measure, and the heads of its column and of its baseline's.
type Column = (fn(MeasureKind) -> bool, &'static str, &'static str);

const COLUMNS: [Column; 4] = [
    (|kind| kind == MeasureKind::AbsoluteError, "MAE", "naive"),
    (|kind| kind == MeasureKind::SymmetricPercentageError, "sMAPE", "naive"),
    (|kind| kind == MeasureKind::ScaledError, "MASE", "naive"),
    (|kind| matches!(kind, MeasureKind::Covers(_)), "covers", ""),
];

/// Where an origin lies.
fn from(origin: &Origin) -> String {
    match &origin.times {
        Some([first, last]) if first == last => first.clone(),
        Some([first, last]) => format!("{first} to {last}"),
        None => format!("{} steps before the end", origin.steps_to_end),
    }
}
