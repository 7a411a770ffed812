//! The `minrnn` command as a library for hosts that are not Rust programs, such as the Python package: all of it as [`run`], and
//! one step of a model as a graph as [`write_graph`].
//!
//! Exit codes: 0 ok, 1 a check or a run failed, 2 wrong input.

#![deny(missing_docs)]

mod cells;
mod commands;
mod corpus;
mod csv;
mod device;
mod device_failure;
mod display;
mod exit;
mod failure;
mod formats;
mod free_name;
mod graph;
mod hint;
mod input;
mod inside;
mod interrupt;
mod memory;
mod output;
mod predicted;
mod printable;
mod printer;
mod ranks;
mod say;
mod scored;
mod session_size;
mod share;
mod shell;
mod sink;
mod starter;
mod task_args;
mod text_table;
mod threads;

use std::ffi::OsString;
use std::io::Write;

use clap::{Parser, Subcommand};
use exit::ExitCode;
use minrnn_kernels::simd::Level;

pub use formats::{ONNX, exported_names};
pub use graph::{WrittenGraph, write_graph};

#[derive(Parser)]
#[command(
    name = "minrnn",
    version,
    about = "Efficient recurrent sequence models: minGRU and minLSTM, trained by scan",
    max_term_width = 110
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Train a model; without an argument, on selective copying in a few minutes
    Train(commands::train::Args),
    /// Measure a trained model on its test data
    Eval(commands::eval::Args),
    /// Classify or forecast the sequences of a table with a trained model
    Predict(commands::predict::Args),
    /// Answer every row or character of standard input as soon as it arrives
    Stream(commands::stream::Args),
    /// Score how surprising each row of a table or line of a text is, and mark anomalies
    Score(commands::score::Args),
    /// Let a trained policy act in the built-in environment, or record episodes there
    Rollout(commands::rollout::Args),
    /// Continue a prompt with a trained model
    Generate(commands::generate::Args),
    /// Continue texts over HTTP, through OpenAI's interface, and predict for tables or score their rows
    Serve(commands::serve::Args),
    /// Pack a trained model into one file, with weights as f32, bf16, int8 or int4
    Pack(commands::pack::Args),
    /// Make a checkpoint from another library's weights
    Import(commands::import::Args),
    /// Write a trained model in another library's format, or as ONNX
    Export(commands::export::Args),
    /// Check the cells against tensors computed elsewhere
    Verify(commands::verify::Args),
    /// Show what a checkpoint or a tensor file holds, or what a model would cost: parameters, state, FLOPs
    Inspect(commands::inspect::Args),
    /// List the built-in experiments
    Experiments(commands::experiments::Args),
    /// Plot the evaluations of several runs in one picture
    Plot(commands::plot::Args),
    /// Reproduce tables and figures of papers, with the published numbers beside ours
    Reproduce(commands::reproduce::Args),
    /// Measure speed
    Bench(commands::bench::Args),
    /// List the available devices: the CPU and GPUs
    Devices(commands::devices::Args),
}

/// Runs the command with `arguments`, of which the first is its name, and returns the exit code that the process should end with: 0 ok, 1 a check or a
/// run failed, 2 wrong input.
///
/// `program` is what starts the command again, a program and its first arguments: some commands measure each case in a process of its own. Messages
/// go to standard output and standard error, which are flushed. Long-running commands take over SIGINT, SIGTERM and SIGHUP, so a process can run
/// only one of them and should then end.
pub fn run(program: Vec<OsString>, arguments: impl IntoIterator<Item = OsString>) -> u8 {
    starter::set(program);
    let ended = match Cli::try_parse_from(arguments) {
        Ok(cli) => start(cli.command).unwrap_or_else(|error| failure::report(&error)),
        Err(told) => ranks::report_usage(&told),
    };
    // A program with Rust's own main function does this at its end; that nobody reads any more is no failure.
    let _ = std::io::stdout().flush();
    ended.number()
}

/// Refuses environment variables that ask for what there is not: silently computing otherwise would mislead.
fn expect_usable_environment() -> anyhow::Result<()> {
    threads::expect_few()?;
    let Err(unknown) = Level::from_env() else { return Ok(()) };
    let (known, found) = (unknown.expected.join(", "), unknown.found);
    Err(failure::WrongInput(format!("{} must be one of {known} on this machine, found '{found}'", Level::VARIABLE)).into())
}

fn start(command: Command) -> anyhow::Result<ExitCode> {
    // These check the environment, and explain what a device reports, once all processes know of each other.
    let work_together = matches!(command, Command::Train(_) | Command::Eval(_));
    if !work_together {
        let sentence = |size| format!("{size} processes were started, and each would do the same; start this without mpiexec");
        if !matches!(command, Command::Reproduce(_))
            && let Some(code) = ranks::refuse_several(sentence)?
        {
            return Ok(code);
        }
        expect_usable_environment()?;
    }
    let run = || match command {
        Command::Train(args) => commands::train::run(args),
        Command::Eval(args) => commands::eval::run(args),
        Command::Predict(args) => commands::predict::run(args),
        Command::Stream(args) => commands::stream::run(args),
        Command::Score(args) => commands::score::run(args),
        Command::Rollout(args) => commands::rollout::run(args),
        Command::Generate(args) => commands::generate::run(args),
        Command::Serve(args) => commands::serve::run(args),
        Command::Pack(args) => commands::pack::run(args),
        Command::Import(args) => commands::import::run(args),
        Command::Export(args) => commands::export::run(args),
        Command::Verify(args) => commands::verify::run(args),
        Command::Inspect(args) => commands::inspect::run(args),
        Command::Experiments(args) => commands::experiments::run(args),
        Command::Plot(args) => commands::plot::run(args),
        Command::Reproduce(args) => commands::reproduce::run(args),
        Command::Bench(args) => commands::bench::run(args),
        Command::Devices(args) => commands::devices::run(args),
    };
    if work_together { run() } else { device_failure::explained(run) }
}
