//! `minrnn reproduce`: tables and figures of papers, made again, with the published numbers beside ours.
//!
//! A target ([`catalog`]) is planned at a scale ([`plan`]), its trainings are run or gone on with ([`training`]), its measurements made
//! ([`measure`]), and what there is by then is gathered ([`grid`]) and written ([`mod@write`]) after every run.

mod catalog;
mod estimate;
mod folder;
mod grid;
mod lengths;
mod list;
mod measure;
mod metric;
mod outcome;
mod plan;
mod published;
mod statistics;
mod training;
mod write;

use std::collections::BTreeMap;
use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::builder::RangedU64ValueParser;
use minrnn::data::expect_lasting;

use catalog::{Scale, Target};
use estimate::Cost;
use folder::Folder;
use grid::{Filled, Grid};
use plan::{Cell, Job, Training, plan};
use training::{Options, Run};

pub use list::list;

use crate::device::DeviceArg;
use crate::display::{duration, say};
use crate::failure::{FAILED, WrongInput};
use crate::memory::MemoryArg;
use crate::output::{expect_outside_runs, print};
use crate::{interrupt, machine, threads};

const ALL: &str = "all";
/// Folder of the expressions of ListOps among the results.
const EXPRESSIONS: &str = "listops";

#[derive(clap::Args)]
pub struct Args {
    /// Tables and figures, or all (see --list)
    #[arg(value_name = "TABLE|FIGURE", required_unless_present = "list")]
    targets: Vec<String>,
    /// How much of them
    #[arg(long, value_enum, default_value_t = Scale::Cpu)]
    scale: Scale,
    /// Trainings of each kind, with seeds 1 to N [default: the target's own number]
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<u64>::new().range(1..=1000))]
    seeds: Option<u64>,
    /// Results folder; finished runs in it are not run again [default: runs/reproduce-SCALE]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The text of experiments that learn one [default: Tiny Shakespeare, downloaded once]
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Say what there is and how long it takes
    #[arg(long)]
    list: bool,
    /// Measure a few updates of every run, say how long all would take, and stop
    #[arg(long)]
    estimate: bool,
    /// Start --scale paper without asking
    #[arg(long)]
    yes: bool,
    /// Try again what diverged (NaN)
    #[arg(long)]
    retry_failed: bool,
    /// Keep the checkpoints of finished runs
    #[arg(long)]
    keep_models: bool,
    /// Threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=1024))]
    threads: Option<usize>,
    #[command(flatten)]
    device: DeviceArg,
    #[command(flatten)]
    memory: MemoryArg,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if args.list {
        print(list()?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let targets = find_targets(&args.targets)?;
    let stop = interrupt::stop_flag()?;
    let out = args.out.clone().unwrap_or_else(|| Path::new("runs").join(format!("reproduce-{}", args.scale.name())));
    expect_outside_runs(&out)?;
    let device = args.device.given()?;
    device.unwrap_or_default().open()?;
    let text = args.data.as_deref().map(absolute).transpose()?;
    let expressions = std::path::absolute(&out).ok().map(|out| out.join(EXPRESSIONS));
    let options = Options {
        text,
        expressions,
        device,
        memory_limit: args.memory.given(),
        retry_failed: args.retry_failed,
        keep_models: args.keep_models,
    };
    let folder = Folder::open(&out, args.scale)?;
    let job = Reproduction { folder, scale: args.scale, seeds: args.seeds, options, bench_flags: bench_flags(&args)? };
    threads::with_pool(args.threads.unwrap_or(0), move || job.run(&targets, &args, &stop))?
}

/// The targets of those names, each once.
fn find_targets(names: &[String]) -> anyhow::Result<Vec<Target>> {
    let mut targets: Vec<Target> = Vec::new();
    for name in names {
        let found = match name.as_str() {
            ALL => catalog::all()?,
            name => match catalog::find(name)? {
                Some(target) => vec![target],
                None => {
                    let suggestion = minrnn::train::suggestion(name, catalog::names());
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

fn absolute(path: &Path) -> minrnn::Result<PathBuf> {
    expect_lasting(path)?;
    std::fs::File::open(path).and_then(|_| path.canonicalize()).map_err(|source| minrnn::Error::io("read the text", path, source))
}

/// Flags that every measurement of speed gets.
fn bench_flags(args: &Args) -> minrnn::Result<Vec<String>> {
    let threads = args.threads.unwrap_or_else(machine::threads).to_string();
    Ok(["--device", &args.device.choice()?.to_string(), "--threads", &threads].map(str::to_owned).into())
}

/// The command at work.
struct Reproduction {
    folder: Folder,
    scale: Scale,
    seeds: Option<u64>,
    options: Options,
    bench_flags: Vec<String>,
}

impl Reproduction {
    fn run(&self, targets: &[Target], args: &Args, stop: &AtomicBool) -> anyhow::Result<ExitCode> {
        let plans: Vec<Vec<Cell>> = targets.iter().map(|target| plan(target, self.scale)).collect::<anyhow::Result<_>>()?;
        if args.estimate || self.scale == Scale::Paper {
            self.estimate(targets, &plans, stop)?;
            let go_on = !args.estimate && (args.yes || self.confirmed()?);
            if !go_on || stop.load(Ordering::Relaxed) {
                return Ok(ExitCode::SUCCESS);
            }
        }
        let mut problems = 0;
        for (target, cells) in targets.iter().zip(&plans) {
            let grid = self.carry_out(target, cells, stop)?;
            write::write(&grid, &self.folder, true)?;
            write::write_index(&self.folder, self.scale)?;
            problems += grid.problems().len();
            if stop.load(Ordering::Relaxed) {
                let (out, name) = (self.folder.path().display(), &target.name);
                say(format_args!("stopped in {name}; everything is saved in {out}"));
                say("go on with the same command");
                return Ok(ExitCode::SUCCESS);
            }
            print(write::markdown(&grid, &[]) + "\n")?;
            grid.problems().iter().for_each(say);
        }
        say(format_args!("results: {}", self.folder.path().join("README.md").display()));
        if problems > 0 {
            say("some runs could not be made; the results of the others are complete");
            return Ok(ExitCode::from(FAILED));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn seeds(&self, target: &Target) -> std::ops::RangeInclusive<u64> {
        1..=self.seeds.unwrap_or(target.effort(self.scale).seeds)
    }

    /// The command line that makes `target`.
    fn command(&self, target: &Target) -> String {
        let seeds = self.seeds.map_or_else(String::new, |seeds| format!(" --seeds {seeds}"));
        format!("minrnn reproduce {} --scale {}{seeds}", target.name, self.scale.name())
    }

    /// Does what is not done yet, and writes the tables after every run.
    fn carry_out<'a>(&self, target: &'a Target, cells: &[Cell], stop: &AtomicBool) -> anyhow::Result<Grid<'a>> {
        let mut grid = self.look_up(target, cells)?;
        let (_, all) = grid.progress();
        for cell in cells {
            let label = grid.label(cell.row, cell.column);
            let announce = |grid: &Grid, what: &str| {
                say(format_args!("\n[{} of {all}] {}: {label}{what}", grid.progress().0 + 1, target.name));
            };
            match &cell.job {
                Job::Train(training) => {
                    for seed in self.seeds(target) {
                        let at = seed as usize - 1;
                        // Another cell may have made this run meanwhile.
                        let run = training::look_up(&self.folder, training, seed, &self.options)?;
                        let is_open = matches!(run, Run::Open) && !stop.load(Ordering::Relaxed);
                        set(&mut grid, cell, at, run);
                        if is_open {
                            announce(&grid, &format!(", seed {seed}"));
                            let run = training::carry_out(&self.folder, training, seed, &self.options, stop)?;
                            if let Run::Failed(sentence) | Run::Refused(sentence) = &run {
                                say(format_args!("not done: {sentence}"));
                            }
                            set(&mut grid, cell, at, run);
                            write::write(&grid, &self.folder, false)?;
                        }
                    }
                }
                Job::Bench(bench) => {
                    let is_open = matches!(grid.cells[cell.row][cell.column], Filled::Timed(None));
                    if is_open && !stop.load(Ordering::Relaxed) {
                        announce(&grid, "");
                        grid.cells[cell.row][cell.column] = match measure::carry_out(&self.folder, bench, &self.bench_flags, stop) {
                            Ok(line) => Filled::Timed(line.map(Box::new)),
                            Err(error) if crate::failure::is_wrong_input(&error) => Filled::Untimed(crate::failure::sentence(&error)),
                            Err(error) => return Err(error),
                        };
                        write::write(&grid, &self.folder, false)?;
                    }
                }
                Job::CountParameters(_) | Job::Quote(_) => {}
            }
        }
        self.look_again(target, cells, &mut grid)?;
        Ok(grid)
    }

    /// Takes in what could not be run because another process was at it, and that process has finished since.
    fn look_again(&self, target: &Target, cells: &[Cell], grid: &mut Grid) -> anyhow::Result<()> {
        for cell in cells {
            let Job::Train(training) = &cell.job else { continue };
            for seed in self.seeds(target) {
                let run = training::look_up(&self.folder, training, seed, &self.options)?;
                if matches!(run, Run::Done(_)) {
                    set(grid, cell, seed as usize - 1, run);
                }
            }
        }
        Ok(())
    }

    /// What is known of a target before anything is done.
    fn look_up<'a>(&self, target: &'a Target, cells: &[Cell]) -> anyhow::Result<Grid<'a>> {
        let mut filled: Vec<Vec<Filled>> = target.rows.iter().map(|_| Vec::new()).collect();
        for cell in cells {
            filled[cell.row].push(match &cell.job {
                Job::Train(training) => {
                    let run = |seed| Ok((seed, training::look_up(&self.folder, training, seed, &self.options)?));
                    Filled::Trained(self.seeds(target).map(run).collect::<minrnn::Result<_>>()?)
                }
                Job::Bench(bench) => Filled::Timed(measure::look_up(&self.folder, bench)?.map(Box::new)),
                Job::CountParameters(experiment) => Filled::Counted(measure::count_parameters(experiment)?),
                Job::Quote(why) => Filled::Quoted(why.clone()),
            });
        }
        Ok(Grid { target, scale: self.scale, command: self.command(target), cells: filled })
    }

    /// Says how long the open runs of every target would take.
    fn estimate(&self, targets: &[Target], plans: &[Vec<Cell>], stop: &AtomicBool) -> anyhow::Result<()> {
        let device = self.options.device.unwrap_or_default();
        let place = format!("{device}, {} threads", rayon::current_num_threads());
        say(format_args!("measuring a few updates of every run on {place}"));
        let mut costs: BTreeMap<&str, f64> = BTreeMap::new();
        let mut total = 0.0;
        for (target, cells) in targets.iter().zip(plans) {
            let grid = self.look_up(target, cells)?;
            for cell in cells {
                let Job::Train(training) = &cell.job else { continue };
                let Filled::Trained(runs) = &grid.cells[cell.row][cell.column] else { continue };
                let open = runs.iter().filter(|(_, run)| matches!(run, Run::Open)).count();
                // A run that another target has asked for already costs nothing more.
                if open == 0 || costs.contains_key(training.id.as_str()) {
                    continue;
                }
                if stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                let label = format!("{}: {}", target.name, grid.label(cell.row, cell.column));
                let seconds = match self.cost(training)? {
                    Ok(seconds) => seconds,
                    Err(sentence) => {
                        print(format!("{label}: {sentence}\n"))?;
                        0.0
                    }
                };
                costs.insert(&training.id, seconds);
                if seconds > 0.0 {
                    total += seconds * open as f64;
                    let all = duration(seconds * open as f64);
                    print(format!("{label}: {} a run, {open} to make: {all}\n", duration(seconds)))?;
                }
            }
        }
        print(format!("all trainings on {place}: about {}\n", duration(total)))
    }

    /// Seconds of a run, or why it cannot be made.
    fn cost(&self, training: &Training) -> anyhow::Result<Result<f64, String>> {
        match Cost::measure(training, &self.options) {
            Ok(cost) => Ok(Ok(cost.of(&training.experiment))),
            Err(error) if crate::failure::is_wrong_input(&error) => Ok(Err(crate::failure::sentence(&error))),
            Err(error) => Err(error),
        }
    }

    /// Whether the person at the terminal wants to start.
    fn confirmed(&self) -> anyhow::Result<bool> {
        if !std::io::stdin().is_terminal() {
            let sentence = format!("--scale {} may take long; start it with --yes", self.scale.name());
            return Err(WrongInput(sentence).into());
        }
        say("start? [y/N]");
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer)?;
        Ok(answer.trim().eq_ignore_ascii_case("y") || answer.trim().eq_ignore_ascii_case("yes"))
    }
}

fn set(grid: &mut Grid, cell: &Cell, at: usize, run: Run) {
    if let Filled::Trained(runs) = &mut grid.cells[cell.row][cell.column] {
        runs[at].1 = run;
    }
}
