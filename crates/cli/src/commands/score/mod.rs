//! `minrnn score`: how surprising each row of a table, or each line of a text, is to a trained model, and which rows are anomalies.

mod rows;
mod tally;
mod text;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use minrnn::deployed::{Deployed, RowUnit, Usual};
use minrnn::output::{expect_harmless, expect_writable};
use minrnn_stream::expect_surprise;

use crate::exit::ExitCode;
use crate::failure::{FAILED, WrongInput};
use crate::say::say;
use crate::share::{SHARE, expect_share};
use crate::threads::Threads;
use crate::{input, interrupt, scored};

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
    #[arg(long, value_name = "UNIT", default_value_t, value_parser = units())]
    by: RowUnit,
    #[command(flatten)]
    threads: Threads,
}

fn units() -> impl TypedValueParser<Value = RowUnit> {
    PossibleValuesParser::new(RowUnit::ALL.iter().map(|unit| unit.name())).try_map(|name| name.parse())
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let stop = interrupt::stop_flag()?;
    args.threads.install(|| score(&args, &stop))
}

fn score(args: &Args, stop: &AtomicBool) -> anyhow::Result<ExitCode> {
    expect_share(args.threshold)?;
    let (data, usual) = (input::path(&args.data), args.calibrate.as_deref().map(input::path));
    input::expect_apart(&args.data, "--data", args.calibrate.as_deref())?;
    if let Some(out) = &args.out {
        expect_harmless(out, [data.as_path(), &args.model].into_iter().chain(usual.as_deref()))?;
        expect_writable(out)?;
    }
    let deployed = Deployed::load(&args.model)?;
    let refused = |sentence: &str| Err(WrongInput(format!("'{}': {sentence}", args.model.display())).into());
    if deployed.table.is_some() && args.by == RowUnit::Token {
        return refused("it reads tables, whose rows are scored, and --by token is for texts; leave it out");
    }
    let finished = match (&deployed.table, &deployed.tokenizer) {
        (Some(task), _) => match expect_surprise(task) {
            Ok(forecaster) => rows::score(args, &deployed, forecaster, stop)?,
            Err(error) => return refused(&error.to_string()),
        },
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
    let (threshold, told) = scored::threshold(usual, args.threshold, "--threshold", "with --calibrate FILE")?;
    say(told);
    Ok(threshold)
}
