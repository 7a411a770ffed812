//! `minrnn stream`: rows or text from standard input, a prediction for each on standard output as soon as it is there.

mod arriving;
mod order;
mod rows;
mod scoring;
mod text;

use std::cell::RefCell;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use minrnn::deployed::Deployed;
use minrnn::output::{expect_harmless, expect_writable};

use self::arriving::{Arriving, Out};
use crate::exit::ExitCode;
use crate::failure::WrongInput;
use crate::input;
use crate::say::say;
use crate::threads::Threads;

/// Sequences that are remembered unless told otherwise.
const MAX_GROUPS: usize = 65_536;

#[derive(clap::Args)]
pub struct Args {
    /// Run directory (its best checkpoint is taken), checkpoint directory or packed model
    #[arg(value_name = "RUN|FILE")]
    model: PathBuf,
    /// Print one JSON object per line instead of CSV
    #[arg(long)]
    json: bool,
    /// The column with the name of each row's sequence [default: that of the table the model was trained on]
    #[arg(long, value_name = "COLUMN", conflicts_with = "one_sequence")]
    group: Option<String>,
    /// Treat all rows as one sequence
    #[arg(long)]
    one_sequence: bool,
    /// Remember at most this many sequences; beyond that, forget the one that has been silent longest [default: 65536]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    max_groups: Option<usize>,
    /// Also say how surprising each row is and mark the unusual ones, for a forecaster with quantiles
    #[arg(long)]
    surprise: bool,
    /// Mark rows that are more surprising than this share of rows that the model was not trained on [default: 0.999]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true, requires = "surprise")]
    threshold: Option<f64>,
    /// Compare with the rows of this table, which should hold nothing unusual, instead of the part held out in training
    #[arg(long, value_name = "FILE", requires = "surprise")]
    calibrate: Option<PathBuf>,
    /// Report what is wrong with a row and go on, instead of stopping there
    #[arg(long)]
    skip_bad_rows: bool,
    /// Continue from a state that --save-state wrote
    #[arg(long, value_name = "FILE")]
    load_state: Option<PathBuf>,
    /// Save the state to this file at the end
    #[arg(long, value_name = "FILE")]
    save_state: Option<PathBuf>,
    #[command(flatten)]
    threads: Threads,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    args.threads.install(|| answer(&args))
}

fn answer(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(path) = &args.save_state {
        // A state may replace the one that it continues.
        let read = input::path(Path::new("-"));
        expect_harmless(path, [args.model.as_path(), &read].into_iter().chain(args.calibrate.as_deref()))?;
        expect_writable(path)?;
    }
    let deployed = Deployed::load(&args.model)?;
    let out: Out = Rc::new(RefCell::new(BufWriter::with_capacity(1 << 16, io::stdout())));
    // A signal raises it only once the state to continue from has been read, which may be a pipe that nobody writes to.
    let stop = Arc::new(AtomicBool::new(false));
    let input = Arriving::new(out.clone(), stop.clone());
    match (&deployed.table, &deployed.tokenizer) {
        (Some(task), _) => rows::answer(args, &deployed, task, input, &out, &stop)?,
        (None, Some(tokenizer)) => text::answer(args, &deployed, tokenizer, input, &out, &stop)?,
        (None, None) if deployed.policy.is_some() => {
            let sentence = "it is a policy, which acts on the results of its actions; use minrnn rollout or the library minrnn-stream";
            return Err(WrongInput(format!("'{}': {sentence}", args.model.display())).into());
        }
        (None, None) => {
            let sentence = "it was trained neither on a table nor on text; give a model of minrnn train --data";
            return Err(WrongInput(format!("'{}': {sentence}", args.model.display())).into());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether to go on after what was `written`: a reader that has gone away has read enough.
fn goes_on(written: io::Result<()>) -> anyhow::Result<bool> {
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(anyhow::Error::new(error).context("could not print")),
    }
}

/// Whether the error is that the reader of stdout has gone away.
fn is_closed(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe))
}

/// Writes what is left to write, however it `ended`.
fn finish(ended: anyhow::Result<()>, saved: minrnn::Result<()>, out: &Out) -> anyhow::Result<()> {
    let ended = match ended {
        Err(error) if is_closed(&error) => Ok(()),
        // That nothing can be printed may have been noticed while reading.
        ended => goes_on(out.borrow_mut().flush()).and(ended),
    };
    if let (Err(_), Err(error)) = (&ended, &saved) {
        say(error);
    }
    ended?;
    Ok(saved?)
}

impl Args {
    fn max_groups(&self) -> usize {
        self.max_groups.unwrap_or(MAX_GROUPS)
    }

    /// Ends at a flaw, or reports it and goes on.
    fn pass_over(&self, flaw: minrnn::Error) -> minrnn::Result<()> {
        if !self.skip_bad_rows {
            return Err(flaw);
        }
        say(format_args!("passed over: {flaw}"));
        Ok(())
    }
}
