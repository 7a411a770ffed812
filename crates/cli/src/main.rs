//! The `minrnn` command: train, evaluate, generate, verify and measure recurrent sequence models.
//!
//! Exit codes: 0 ok, 1 a check or a run failed, 2 wrong input.

mod allocator;
mod commands;
mod corpus;
mod deployed;
mod device;
mod device_failure;
mod display;
mod failure;
mod interrupt;
mod machine;
mod memory;
mod output;
mod printer;
mod table_args;
mod threads;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

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
    /// Train a model; without an argument: selective copying, a few CPU minutes
    Train(commands::train::Args),
    /// Measure a trained model on its test data
    Eval(commands::eval::Args),
    /// Classify or forecast the sequences of a table with a trained model
    Predict(commands::predict::Args),
    /// Continue a prompt with a trained model
    Generate(commands::generate::Args),
    /// Put a trained model into one file, its weights as f32, bf16, int8 or int4
    Pack(commands::pack::Args),
    /// Make a checkpoint of weights under the names of another library
    Import(commands::import::Args),
    /// Write a trained model's weights under the names of another library
    Export(commands::export::Args),
    /// Compare our cells with tensors computed elsewhere
    Verify(commands::verify::Args),
    /// Show what a checkpoint or a tensor file holds, or what a model would cost: parameters, state, FLOPs
    Inspect(commands::inspect::Args),
    /// List the built-in experiments
    Experiments(commands::experiments::Args),
    /// Draw the evaluations of several runs in one picture
    Plot(commands::plot::Args),
    /// Make tables and figures of papers again, with the published numbers beside ours
    Reproduce(commands::reproduce::Args),
    /// Measure speed
    Bench(commands::bench::Args),
    /// List where it can compute: the processor, and graphics processors
    Devices(commands::devices::Args),
}

fn main() -> ExitCode {
    allocator::retain_memory();
    let command = Cli::parse().command;
    let outcome = device_failure::explained(|| match command {
        Command::Train(args) => commands::train::run(args),
        Command::Eval(args) => commands::eval::run(args),
        Command::Predict(args) => commands::predict::run(args),
        Command::Generate(args) => commands::generate::run(args),
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
    });
    match outcome {
        Ok(code) => code,
        Err(error) => failure::report(&error),
    }
}
