//! `minrnn score`: how surprising each row of a table, or each line of a text, is to a trained model, and which rows are anomalies.

mod rows;
mod tally;
mod text;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use minrnn::data::table::TableTask;
use minrnn::deployed::{Deployed, RowUnit, Usual};
use minrnn::output::{expect_harmless, expect_writable};

use crate::exit::ExitCode;
use crate::failure::{FAILED, WrongInput};
use crate::say::say;
use crate::threads::Threads;
use crate::{input, interrupt};

/// The share of held-out rows that is not marked.
const SHARE: f64 = 0.999;

#[derive(clap::Args)]
pub struct Args {
    /// Run directory (its best checkpoint is taken), checkpoint directory or packed model: a forecaster with quantiles, or a model of text
    #[arg(value_name = "RUN|FILE")]
    model: PathBuf,
    /// The table or text; - for standard input
    #[arg(long, value_name = "FILE")]
    data: PathBuf,
    /// Write the rows to this CSV file [default: to stdout]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Mark rows that are more surprising than this share of rows that the model was not trained on
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true, default_value_t = SHARE)]
    threshold: f64,
    /// Compare with the rows of this table or text, which should hold nothing unusual, instead of the part held out in training
    #[arg(long, value_name = "FILE")]
    calibrate: Option<PathBuf>,
    /// What to score in a text
    #[arg(long, value_name = "UNIT", default_value = RowUnit::Line.name(), value_parser = RowUnit::NAMES)]
    by: String,
    #[command(flatten)]
    threads: Threads,
}

impl Args {
    fn unit(&self) -> RowUnit {
        RowUnit::named(&self.by).unwrap_or(RowUnit::Line)
    }
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let stop = interrupt::stop_flag()?;
    args.threads.install(|| score(&args, &stop))
}

fn score(args: &Args, stop: &AtomicBool) -> anyhow::Result<ExitCode> {
    if !(args.threshold > 0.0 && args.threshold < 1.0) {
        let found = args.threshold;
        return Err(WrongInput(format!("--threshold must be a share above 0 and below 1, such as {SHARE}, found {found:?}")).into());
    }
    let (data, usual) = (input::path(&args.data), args.calibrate.as_deref().map(input::path));
    // A regular file can be opened twice, even if it is standard input for one of them.
    let is_read_once = || args.calibrate.as_ref().is_some_and(|usual| *usual == args.data && usual.as_os_str() == "-") || !data.is_file();
    if input::same_file(Some(&data), usual.as_deref()) && is_read_once() {
        let sentence = "--data and --calibrate would both be read from it, but it can be read only once; save one of them to a file";
        return Err(WrongInput(format!("'{}': {sentence}", args.data.display())).into());
    }
    if let Some(out) = &args.out {
        expect_harmless(out, [data.as_path(), &args.model].into_iter().chain(usual.as_deref()))?;
        expect_writable(out)?;
    }
    let deployed = Deployed::load(&args.model)?;
    let refused = |sentence: &str| Err(WrongInput(format!("'{}': {sentence}", args.model.display())).into());
    if deployed.table.is_some() && args.unit() == RowUnit::Token {
        return refused("it reads tables, whose rows are scored, and --by token is for texts; leave it out");
    }
    let finished = match (&deployed.table, &deployed.tokenizer) {
        (Some(TableTask::Forecast(forecaster)), _) if forecaster.tells_surprise() => rows::score(args, &deployed, forecaster, stop)?,
        (Some(TableTask::Forecast(_)), _) => {
            return refused("it forecasts a single number without a spread to judge surprise by; train it with --quantiles 0.1,0.5,0.9");
        }
        (Some(TableTask::Classify(_) | TableTask::Regress(_)), _) => {
            return refused("it labels whole sequences and predicts no rows; give a model of minrnn train --task forecast");
        }
        (None, Some(tokenizer)) => text::score(args, &deployed, tokenizer, stop)?,
        (None, None) => return refused("it was trained neither to forecast a table nor on text; give a model of minrnn train --data"),
    };
    if finished {
        return Ok(ExitCode::SUCCESS);
    }
    say("stopped before everything was scored");
    Ok(ExitCode::from(FAILED))
}

/// The threshold above which rows are marked; none if there is nothing to compare with. Says what rows are compared with.
fn threshold(args: &Args, usual: &Usual) -> anyhow::Result<Option<f64>> {
    let share = args.threshold;
    let found = usual.threshold(share, "with --calibrate FILE");
    let (threshold, told) = found.map_err(|error| WrongInput(format!("--threshold {share:?}: {error}")))?;
    say(told);
    Ok(threshold)
}
