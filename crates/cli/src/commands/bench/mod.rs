//! `minrnn bench`: how fast the parts and the whole are, and how much memory they take.
//!
//! | bench | one iteration |
//! |---|---|
//! | `scan` | the bare recurrence h = a h + b, forward, and forward and backward; the machine's copy bandwidth beside it |
//! | `layer` | in-projection, recurrence, loss = Σ w ⊙ h, backward to x, h0 and all weights; Mamba up to its output projection |
//! | `lm` | one training step of the Shakespeare model |
//! | `decode` | tokens one by one from a carried state, each the most likely one |
//! | `prefill` | one pass over a prompt, to the state and the last position's logits |
//!
//! Every case runs in a process of its own, so that its peak memory is its own.

mod case;
mod decode;
mod language_model;
mod layer;
mod lm;
mod mixer;
mod prefill;
mod report;
mod scan;
mod timing;

use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, anyhow};
use burn::tensor::Device;
use clap::Subcommand;

use case::{Case, CaseArgs, Defaults, RunArgs};
pub use report::Line;
use report::Report;

use crate::failure::{WRONG_INPUT, WrongInput};

/// `minrnn bench`
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// The bare recurrence h = a h + b beside the machine's copy bandwidth
    Scan(scan::Args),
    /// One recurrent layer: in-projection, recurrence, loss, backward
    Layer(layer::Args),
    /// One training step of the Shakespeare language model
    Lm(CaseArgs),
    /// The language model one token after the other
    Decode(CaseArgs),
    /// The language model on a whole prompt
    Prefill(CaseArgs),
}

/// What a bench measured, before it becomes a line.
pub struct Measured {
    times: timing::Times,
    /// Operations of matrix products in one iteration.
    flop: Option<f64>,
    parameters: Option<usize>,
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.bench {
        Bench::Scan(args) => scan::run(&args)?,
        Bench::Layer(args) => layer::run(&args)?,
        Bench::Lm(args) => measure("lm", args.cases(lm::DEFAULTS), &args.run, lm::DEFAULTS, lm::measure)?,
        Bench::Decode(args) => measure("decode", args.cases(decode::DEFAULTS), &args.run, decode::DEFAULTS, decode::measure)?,
        Bench::Prefill(args) => measure("prefill", args.cases(prefill::DEFAULTS), &args.run, prefill::DEFAULTS, prefill::measure)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures every case and prints its line.
fn measure(
    bench: &'static str,
    cases: Vec<Case>,
    run: &RunArgs,
    defaults: Defaults,
    one: impl Fn(&Case, timing::Plan, &Device) -> anyhow::Result<Measured> + Sync,
) -> anyhow::Result<()> {
    if bench != "lm" && cases.iter().any(|case| case.checkpoint_blocks) {
        return Err(WrongInput(format!("--checkpoint-blocks changes a training step, found bench {bench}; use it with bench lm")).into());
    }
    let mut report = Report::new(bench, run.json);
    match cases.as_slice() {
        [case] => {
            let device = run.device.open()?;
            let measured = run.on_threads(|| one(case, run.plan(defaults.iterations), &device))??;
            report.line(&Line::new(bench, case, run.threads(), &measured).on(&device))?;
        }
        cases => {
            for case in cases {
                in_own_process(bench, &case.flags(), run, &mut report)?;
            }
        }
    }
    Ok(())
}

/// Measures one case in a process of its own and prints the lines it found.
fn in_own_process(bench: &str, case: &[String], run: &RunArgs, report: &mut Report) -> anyhow::Result<()> {
    let flags: Vec<String> = case.iter().cloned().chain(run.flags()?).collect();
    lines_of_own_process(bench, &flags)?.iter().try_for_each(|line| report.line(line))
}

/// Runs this program for one case, given as flags of `bench`; the lines it found.
pub fn lines_of_own_process(bench: &str, flags: &[String]) -> anyhow::Result<Vec<Line>> {
    let program = std::env::current_exe().context("cannot find this program, which every case starts anew")?;
    let mut command = Command::new(program);
    command.args(["bench", bench]).args(flags).arg("--json").stderr(Stdio::inherit());
    let done = command.output().context("cannot start a process for one case")?;
    if !done.status.success() {
        let sentence = format!("bench {bench} {}: ended with {}", flags.join(" "), done.status);
        // The process has said on stderr what was wrong; a wrong input there is one here.
        return match done.status.code() {
            Some(code) if code == i32::from(WRONG_INPUT) => Err(WrongInput(sentence).into()),
            _ => Err(anyhow!(sentence)),
        };
    }
    let read = |text| serde_json::from_str(text).with_context(|| format!("bench {bench} {}: unreadable result", flags.join(" ")));
    String::from_utf8_lossy(&done.stdout).lines().map(read).collect()
}
