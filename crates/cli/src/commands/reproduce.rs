//! `minrnn reproduce`: tables and figures of papers, made again, with the published numbers beside ours.

mod list;
mod side_by_side;
mod terminal;

use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::builder::{PossibleValue, PossibleValuesParser, RangedU64ValueParser, TypedValueParser};
use minrnn::output::expect_outside_runs;
use minrnn::train::{MAX_THREADS, duration, readable};
use minrnn::words::counted;
use minrnn_bench::machine;
use minrnn_reproduce::{
    Cell, Folder, Line, Options, OwnText, Reproduction, Scale, Target, Wanted, all, find, markdown, names, plan, write_index,
};

use crate::device::DeviceArg;
use crate::exit::ExitCode;
use crate::failure::{FAILED, WrongInput};
use crate::memory::MemoryArg;
use crate::output::print;
use crate::say::say;
use crate::{interrupt, threads};
pub use list::list;
use terminal::Terminal;

const ALL: &str = "all";
/// Folder of the expressions of ListOps among the results.
const EXPRESSIONS: &str = "listops";

#[derive(clap::Args)]
pub struct Args {
    /// Tables and figures, or all (see --list)
    #[arg(value_name = "TABLE|FIGURE", required_unless_present = "list")]
    targets: Vec<String>,
    /// The size of the runs
    #[arg(long, default_value = "cpu", value_parser = scales())]
    scale: Scale,
    /// Runs of each kind, with seeds 1 to N [default: as each table or figure says]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = RangedU64ValueParser::<u64>::new().range(1..=1000))]
    seeds: Option<u64>,
    /// Make only this row (repeat for more rows); the page keeps what it has of the others
    #[arg(long = "row", value_name = "LABEL")]
    rows: Vec<String>,
    /// Make only this column (repeat for more columns)
    #[arg(long = "column", value_name = "LABEL")]
    columns: Vec<String>,
    /// Results folder; finished runs in it are not run again [default: runs/reproduce-SCALE]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The text for experiments that learn one [default: Tiny Shakespeare, downloaded once]
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Number of runs to train side by side, each with --threads threads (then 1 by default)
    #[arg(
        long, value_name = "N", allow_negative_numbers = true, default_value_t = 1,
        value_parser = RangedU64ValueParser::<usize>::new().range(1..=64)
    )]
    jobs: usize,
    /// Only continue runs that have begun, here or in unfinished/ of the results folder; start no new ones
    #[arg(long)]
    resume: bool,
    /// Only write the pages from the existing results; run nothing
    #[arg(long, conflicts_with_all = ["resume", "estimate", "retry_failed", "replace", "rows", "columns"])]
    pages: bool,
    /// List the tables and figures and how long each takes
    #[arg(long)]
    list: bool,
    /// Measure a few updates of every run, print how long all would take, and stop
    #[arg(long)]
    estimate: bool,
    /// Start --scale paper without asking
    #[arg(long)]
    yes: bool,
    /// Retry runs that diverged (NaN)
    #[arg(long)]
    retry_failed: bool,
    /// Redo runs whose settings differ, are missing or cannot be read, or whose best checkpoint is the untrained model; the old runs are deleted
    #[arg(long)]
    replace: bool,
    /// Keep the checkpoints of finished runs
    #[arg(long)]
    keep_models: bool,
    /// Number of threads [default: all cores; with several jobs, 1 each]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = RangedU64ValueParser::<usize>::new().range(1..=MAX_THREADS as u64))]
    threads: Option<usize>,
    #[command(flatten)]
    device: DeviceArg,
    #[command(flatten)]
    memory: MemoryArg,
}

fn scales() -> impl TypedValueParser<Value = Scale> {
    let help = |scale: Scale| match scale {
        Scale::Smoke => "Everything end to end in minutes; the numbers mean nothing",
        Scale::Cpu => "Sizes that run on a CPU",
        Scale::Paper => "The full settings",
    };
    let value = |&scale: &Scale| PossibleValue::new(scale.name()).help(help(scale));
    PossibleValuesParser::new(Scale::ALL.iter().map(value)).try_map(|name| name.parse())
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if args.list {
        print(list()?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let targets = find_targets(&args.targets)?;
    expect_labels("row", &args.rows, targets.iter().flat_map(|target| &target.rows))?;
    expect_labels("column", &args.columns, targets.iter().flat_map(|target| &target.columns))?;
    let stop = interrupt::stop_flag()?;
    let out = args.out.clone().unwrap_or_else(|| Path::new("runs").join(format!("reproduce-{}", args.scale)));
    expect_outside_runs(&out)?;
    let device = args.device.given()?;
    device.unwrap_or_default().open()?;
    let options = Options {
        text: args.data.as_deref().map(readable).transpose()?.map(OwnText::open).transpose()?,
        expressions: std::path::absolute(&out).ok().map(|out| out.join(EXPRESSIONS)),
        device,
        memory_limit: args.memory.given(),
        retry_failed: args.retry_failed,
        replace: args.replace,
        resume_only: args.resume,
        keep_models: args.keep_models,
    };
    let folder = Folder::open(&out, args.scale)?;
    let wanted = Wanted { rows: args.rows.clone(), columns: args.columns.clone() };
    let (jobs, seeds) = (args.jobs, args.seeds);
    let job = Reproduction { folder, scale: args.scale, seeds, options, wanted, jobs, threads: args.threads.unwrap_or(1) };
    let threads = args.threads.unwrap_or_else(machine::threads).to_string();
    let bench_flags = ["--device", &args.device.choice()?.to_string(), "--threads", &threads].map(str::to_owned).into();
    let mut terminal = Terminal::new(args.scale, args.seeds, args.jobs, bench_flags);
    threads::with_pool(args.threads.unwrap_or(0), move || make(&job, &targets, &args, &mut terminal, &stop))?
}

/// The targets of those names, each once.
fn find_targets(names_given: &[String]) -> anyhow::Result<Vec<Target>> {
    let mut targets: Vec<Target> = Vec::new();
    for name in names_given {
        let found = match name.as_str() {
            ALL => all()?,
            name => match find(name)? {
                Some(target) => vec![target],
                None => {
                    let suggestion = minrnn::words::suggestion(name, names());
                    return Err(WrongInput(format!("there is no table or figure '{name}'{suggestion}")).into());
                }
            },
        };
        for target in found {
            if targets.iter().all(|known| known.name != target.name) {
                targets.push(target);
            }
        }
    }
    Ok(targets)
}

/// Refuses labels that no target has.
fn expect_labels<'a>(kind: &str, wanted: &[String], lines: impl Iterator<Item = &'a Line> + Clone) -> anyhow::Result<()> {
    let known = lines.map(|line| line.label.as_str());
    let Some(label) = wanted.iter().find(|label| !known.clone().any(|name| name == *label)) else { return Ok(()) };
    let named = known.filter(|name| !name.is_empty());
    let told = match named.clone().next() {
        Some(_) => minrnn::words::suggestion(label, named),
        None => format!(": what was requested has no {kind}s to choose from; leave --{kind} out"),
    };
    Err(WrongInput(format!("there is no {kind} '{label}'{told}")).into())
}

fn make(job: &Reproduction, targets: &[Target], args: &Args, terminal: &mut Terminal, stop: &AtomicBool) -> anyhow::Result<ExitCode> {
    let plans: Vec<Vec<Cell>> = targets.iter().map(|target| plan(target, job.scale)).collect::<minrnn_reproduce::Result<_>>()?;
    if args.estimate || job.scale == Scale::Paper {
        let is_measured = estimate(job, targets, &plans, terminal, stop)?;
        if is_measured && args.estimate {
            return Ok(ExitCode::SUCCESS);
        }
        let goes_on = !stop.load(Ordering::Relaxed) && (args.yes || confirmed(job.scale)?);
        if stop.load(Ordering::Relaxed) {
            say("stopped before any run was started");
            return Ok(ExitCode::from(FAILED));
        }
        if !goes_on {
            return Ok(ExitCode::SUCCESS);
        }
    }
    let work: Vec<(&Target, &[Cell])> = targets.iter().zip(plans.iter().map(Vec::as_slice)).collect();
    let grids = match args.pages {
        true => {
            let written = work.iter().map(|(target, cells)| job.write_pages(target, cells, terminal));
            let grids = written.collect::<minrnn_reproduce::Result<Vec<_>>>()?;
            write_index(&job.folder, job.scale)?;
            grids
        }
        false => job.carry_out(&work, terminal, stop)?,
    };
    if stop.load(Ordering::Relaxed) && !args.pages && grids.iter().any(|grid| job.is_unfinished(grid)) {
        say(format_args!("stopped; everything is saved in {}", job.folder.path().display()));
        say("continue with the same command");
        return Ok(ExitCode::from(FAILED));
    }
    let mut is_whole = true;
    for grid in &grids {
        print(markdown(grid, &[]) + "\n")?;
        // Only the page names problems of what was not asked for.
        let is_among = |row, column| !args.pages && job.wanted.holds(grid.target, row, column);
        let (problems, outdated) = (grid.problems(is_among), grid.outdated(is_among));
        problems.iter().for_each(say);
        outdated.iter().for_each(|sentence| say(format_args!("to be redone (--replace does it): {sentence}")));
        let elsewhere = grid.elsewhere(is_among);
        if !elsewhere.is_empty() {
            say(format_args!("other processes are working on: {}", elsewhere.join("; ")));
        }
        is_whole &= problems.is_empty() && outdated.is_empty();
    }
    say(format_args!("results: {}", job.folder.path().join("README.md").display()));
    if !is_whole {
        say("some runs could not be made; the results of the others are complete");
        return Ok(ExitCode::from(FAILED));
    }
    Ok(ExitCode::SUCCESS)
}

/// Says how long the open runs of every target would take; false when `stop` was raised before that was known.
fn estimate(
    job: &Reproduction,
    targets: &[Target],
    plans: &[Vec<Cell>],
    terminal: &mut Terminal,
    stop: &AtomicBool,
) -> anyhow::Result<bool> {
    let device = job.options.device.unwrap_or_default();
    let place = format!("{device}, {}", counted(rayon::current_num_threads(), "thread"));
    say(format_args!("measuring a few updates of every run on {place}"));
    let mut total = 0.0;
    for open in job.open_trainings(targets, plans, terminal)? {
        if stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        match job.seconds(open.training, terminal)? {
            Ok(seconds) => {
                let all = seconds * open.runs as f64;
                total += all;
                print(format!("{}: {} per run, {} to make: {}\n", open.label, duration(seconds), open.runs, duration(all)))?;
            }
            Err(sentence) => print(format!("{}: {sentence}\n", open.label))?,
        }
    }
    print(format!("all trainings on {place}: about {}\n", duration(total)))?;
    Ok(true)
}

/// Whether the person at the terminal wants to start.
fn confirmed(scale: Scale) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Err(WrongInput(format!("--scale {scale} may take a long time; start it with --yes")).into());
    }
    say("start? [y/N]");
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(answer.trim().eq_ignore_ascii_case("y") || answer.trim().eq_ignore_ascii_case("yes"))
}
