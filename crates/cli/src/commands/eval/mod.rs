//! `minrnn eval`: the measures of a trained model on its test data, or on a text of yours.

mod backtest;
mod by_frequency;
mod by_length;
mod inside;
mod output;
mod packed;
mod sets;
mod tokens;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use minrnn::deployed::Deployed;
use minrnn::train::{Data, Evaluation, FINAL_BATCHES, Group, compare, expect_same_scores, run_of};

use self::inside::wanted_inside;
use self::output::Output;
use self::sets::{Loaded, Sets};
use crate::device::DeviceArg;
use crate::exit::ExitCode;
use crate::failure::{FAILED, NO_STDOUT, WrongInput};
use crate::inside::InsideArgs;
use crate::memory::MemoryArg;
use crate::ranks::Together;
use crate::say::say;
use crate::threads::Threads;
use crate::{interrupt, ranks};

/// Sequences of a table that a packed model reads side by side.
const BATCH_SIZE: usize = 32;

#[derive(clap::Args)]
pub struct Args {
    /// Run directory (its best checkpoint is taken), checkpoint directory, or packed model (with --data)
    #[arg(value_name = "RUN|FILE")]
    run: PathBuf,
    /// Score all of this text or table instead of the run's test part; - for standard input
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Number of fixed random batches of a text or a task's own data; packed models use none [default: 200]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..))]
    batches: Option<u64>,
    /// Also measure the top-1 agreement of a packed model of text with this run, checkpoint or packed model
    #[arg(long, value_name = "RUN|FILE", requires = "data")]
    against: Option<PathBuf>,
    /// Loss and accuracy by how often the token occurs in the training text, in this many bins (6 if no number is given) of equal
    /// width on a log scale
    #[arg(
        long, value_name = "BINS", allow_negative_numbers = true, num_args = 0..=1, default_missing_value = "6",
        conflicts_with_all = ["data", "batches", "by_length", "against", "logits", "hidden", "layer", "embeddings"], value_parser = clap::value_parser!(u32).range(1..=100)
    )]
    by_frequency: Option<u32>,
    #[command(flatten)]
    by_length: by_length::Args,
    #[command(flatten)]
    backtest: backtest::Args,
    #[command(flatten)]
    inside: InsideArgs,
    #[command(flatten)]
    device: DeviceArg,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    memory: MemoryArg,
    /// One JSON object per line
    #[arg(long)]
    json: bool,
}

impl Args {
    fn output(&self) -> Output {
        if self.json { Output::Json } else { Output::Text }
    }

    fn batches(&self) -> u64 {
        self.batches.unwrap_or(FINAL_BATCHES)
    }

    /// Refuses a number of batches for a table.
    fn expect_no_batches(&self) -> anyhow::Result<()> {
        match self.batches {
            Some(_) => {
                Err(WrongInput("--batches is about random batches, and a table is scored as a whole; leave it out".to_owned()).into())
            }
            None => Ok(()),
        }
    }
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    ranks::together(|Together { group, threads, .. }| {
        let stop = interrupt::stop_flag()?;
        args.threads.install_or(*threads, || score(&args, group, &stop))
    })
}

fn score(args: &Args, group: &Group, stop: &AtomicBool) -> anyhow::Result<ExitCode> {
    ranks::agree(group, if group.is_alone() { Ok(()) } else { expect_shareable(args) })?;
    if let Some(origins) = args.backtest.origins() {
        return backtest::score(args, origins, stop);
    }
    if args.run.is_file() {
        if args.by_frequency.is_some() || args.by_length.width().is_some() {
            let sentence = "--by-frequency and --by-length need the data of a run; give a run directory instead of a packed model";
            return Err(WrongInput(sentence.to_owned()).into());
        }
        args.device.expect_cpu()?;
        return packed::score(args, stop);
    }
    if args.against.is_some() {
        return Err(
            WrongInput("--against compares a packed model of text with another; give one to score, or leave it out".to_owned()).into()
        );
    }
    let output = args.output();
    let loaded = ranks::agree(group, Loaded::new(args))?;
    let Loaded { checkpoint, model, experiment, .. } = &loaded;
    let inside = wanted_inside(args, &experiment.model)?;
    if let Some(width) = args.by_length.width() {
        let scores = by_length::Strings::new(experiment, &args.by_length)?;
        output.print_model(checkpoint)?;
        return scores.score(model.sequence()?, width, output, stop);
    }
    if let Some(n_bins) = args.by_frequency {
        let Data::Text { text, .. } = Data::open(experiment, &run_of(checkpoint)?)? else {
            let sentence = "--by-frequency needs a model trained on a text, whose tokens are rare or frequent; leave it out";
            return Err(WrongInput(sentence.to_owned()).into());
        };
        output.print_model(checkpoint)?;
        return by_frequency::score(model.sequence()?, &text, experiment, n_bins as usize, output, stop);
    }
    // The folder holds the tokens of `--data` until the scores are out.
    let folder = tempfile::tempdir().context("could not create a temporary directory")?;
    let found = ranks::agree(group, loaded.sets(args, folder.path(), stop))?;
    if group.agree_all(Ok(found.is_none()))?.contains(&true) {
        return Ok(stopped());
    }
    let Some(Sets { mut sets, size, mut comparison, told }) = found else { return Ok(stopped()) };
    expect_same_scores(group, model, sets.iter_mut().map(|(_, set)| set))?;
    if group.is_first() {
        output.print_model(checkpoint)?;
        if let Some(data) = &args.data {
            loaded.tell_what_is_learned(data);
        }
        told.iter().for_each(say);
    }
    for (scored, mut set) in sets {
        let Some(evaluation) = compare(group, model, &mut *set, comparison.as_deref_mut(), stop)? else { return Ok(stopped()) };
        let checked = loaded.expect_finite(args, scored, &evaluation, stop);
        ranks::agree(group, checked)?;
        if group.is_first() {
            output.print(scored, &evaluation, size).context(NO_STDOUT)?;
        }
    }
    if let Some(comparison) = comparison.filter(|_| group.is_first()) {
        output.print_comparison(&*comparison).context(NO_STDOUT)?;
    }
    match inside {
        Some(inside) => inside.write(&Deployed::load(&args.run)?, None, stop),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Refuses what only a single process can do.
fn expect_shareable(args: &Args) -> anyhow::Result<()> {
    let is_shared = !(args.inside.is_any() || args.run.is_file() || args.by_frequency.is_some() || args.by_length.width().is_some());
    if is_shared && args.backtest.origins().is_none() && args.data.as_deref() != Some(Path::new("-")) {
        return Ok(());
    }
    let sentence =
        "only the scores of a run or a checkpoint on its data or a file are shared out among processes; start this without mpiexec";
    Err(WrongInput(sentence.to_owned()).into())
}

/// Reports that scoring was stopped.
fn stopped() -> ExitCode {
    say("stopped before everything was scored");
    ExitCode::from(FAILED)
}

/// Refuses a score that is not finite; `what` was scored.
fn expect_finite(what: impl Into<String>, evaluation: &Evaluation) -> minrnn::Result<()> {
    minrnn::expect_output(|| what.into(), [evaluation.loss])
}
