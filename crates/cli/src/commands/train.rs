//! `minrnn train`: from an experiment to a run directory with a trained model.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use minrnn::report::write_report;
use minrnn::train::{
    EXPERIMENT_FILE, Ending, Experiment, Group, Pointer, RunDir, Task, Trainer, find_checkpoint, find_data, readable, readable_folder,
    training_memory,
};
use minrnn_model::{CheckpointConfig, ModelConfig};

use crate::device::DeviceArg;
use crate::display::{self, Display, say};
use crate::failure::{NO_STDOUT, WrongInput};
use crate::memory::MemoryArg;
use crate::output::expect_outside_runs;
use crate::ranks::Together;
use crate::task_args::TaskArgs;
use crate::{corpus, input, interrupt, memory, ranks, threads};

const DEFAULT_EXPERIMENT: &str = "selective-copying";
const TEXT_EXPERIMENT: &str = "text";

#[derive(clap::Args)]
pub struct Args {
    /// A built-in experiment (see `minrnn experiments`) or a TOML file [default: selective-copying, text with --data, or that of --task]
    experiment: Option<String>,
    /// Text to train on, the folder of a task with files (listops, retrieval, image), or with --task a table, CSV, Parquet, JSON Lines or .ts:
    /// one row for each time step, in the order of time; with --task policy a file of recorded episodes
    #[arg(long, value_name = "FILE|FOLDER")]
    data: Option<PathBuf>,
    /// Run directory [default: runs/NAME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Continue the run in the run directory where it stopped. With --set it may go on longer, at another learning rate, or on other
    /// threads; model, data, seed and batches stay
    #[arg(long)]
    resume: bool,
    /// Start from the weights of this run or checkpoint, with its model, vocabulary and view of numbers; without an experiment or --task, its
    /// settings of data and training too
    #[arg(long, value_name = "RUN|CHECKPOINT", conflicts_with = "resume")]
    from: Option<PathBuf>,
    /// Set a configuration key, for example train.lr=0.001 or d_model=64
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    #[command(flatten)]
    table: TaskArgs,
    #[command(flatten)]
    device: DeviceArg,
    #[command(flatten)]
    memory: MemoryArg,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    ranks::together(|together| train_together(&args, together))
}

fn train_together(args: &Args, Together { group, threads, .. }: &Together) -> anyhow::Result<ExitCode> {
    let out = args.out.clone().unwrap_or_else(|| Path::new("runs").join(run_name(args)));
    let first = group.is_first().then(|| -> anyhow::Result<_> {
        expect_outside_runs(&out)?;
        let (mut experiment, run) = open(args, &out)?;
        if let Some(device) = args.device.given()? {
            experiment.train.device = device;
        }
        Ok((experiment, run))
    });
    let first = ranks::agree(group, first.transpose())?;
    let text = group.tell(|| first.as_ref().map_or(Ok(String::new()), |(experiment, _)| experiment.to_toml()))?;
    let (experiment, run) = match first {
        Some(first) => first,
        None => (Experiment::parse(&text, &[])?, RunDir::beside(&out)),
    };
    // Until here a signal ends the process at once.
    let stop = interrupt::stop_flag()?;
    let threads = if experiment.train.threads == 0 { *threads } else { experiment.train.threads };
    let group = group.clone();
    threads::with_pool(threads, move || train(experiment, run, group, &stop))?
}

/// The experiment and its run directory, new or resumed.
fn open(args: &Args, out: &Path) -> anyhow::Result<(Experiment, RunDir)> {
    if !args.resume {
        // The experiment first: what is wrong with it should not leave a directory behind.
        let experiment = new_experiment(args)?;
        args.device.given()?.unwrap_or(experiment.train.device).open()?;
        return Ok((experiment, RunDir::create(out)?));
    }
    let run = RunDir::open(out)?;
    let stored = run.file(EXPERIMENT_FILE);
    let has_checkpoint = run.checkpoint(Pointer::Last)?.is_some();
    if !stored.exists() {
        if has_checkpoint {
            let problem = "it is gone, and without it the run cannot go on; put it back, or start a new run with --out";
            return Err(minrnn::Error::malformed(stored, problem).into());
        }
        if args.experiment.is_none() && args.data.is_none() && args.table.experiment().is_none() {
            let problem = "there is no run to resume in it: its start was ended before it began; start it again with the command it was started \
                           with, without --resume";
            return Err(minrnn::Error::malformed(out, problem).into());
        }
        say(format_args!("'{}' has no checkpoint yet: starting anew", out.display()));
        return Ok((new_experiment(args)?, run));
    }
    if !has_checkpoint {
        say(format_args!("'{}' has no checkpoint yet: starting anew", out.display()));
    }
    let mut experiment = Experiment::load_file(&stored, &args.settings)?;
    expect_own(args, &experiment, out)?;
    take_memory_limit(&mut experiment, args);
    take_data(&mut experiment, args)?;
    Ok((experiment, run))
}

/// Refuses an experiment that is named beside `--resume` and is not that of the run, which goes on with its own.
fn expect_own(args: &Args, own: &Experiment, out: &Path) -> anyhow::Result<()> {
    let Some(name) = &args.experiment else { return Ok(()) };
    let named = Experiment::load(name, &args.settings)?;
    // Settings of the run's start may be missing now; what every built-in experiment has is a description of its own.
    let same = match named.description.is_empty() {
        false => named.description == own.description && named.data.task == own.data.task,
        true => ModelConfig { vocab_size: own.model.vocab_size, ..named.model } == own.model && named.data.task == own.data.task,
    };
    if same {
        return Ok(());
    }
    let sentence = format!(
        "'{name}' is not the experiment of the run in '{}', which goes on with its own; leave '{name}' out, or start a new run with --out and \
         without --resume",
        out.display()
    );
    Err(WrongInput(sentence).into())
}

fn new_experiment(args: &Args) -> anyhow::Result<Experiment> {
    let default = args.table.experiment().unwrap_or(if args.data.is_some() { TEXT_EXPERIMENT } else { DEFAULT_EXPERIMENT });
    let name = args.experiment.as_deref().unwrap_or(default);
    let mut experiment = match &args.from {
        Some(from) => continued(from, args)?,
        None => Experiment::load(name, &args.settings)?,
    };
    take_memory_limit(&mut experiment, args);
    take_data(&mut experiment, args)?;
    // Before anything is fetched or written.
    training_memory(&experiment)?.expect_room(experiment.train.memory_limit)?;
    find_data(&mut experiment, name, corpus::fetch)?;
    Ok(experiment)
}

/// The experiment that starts from the model at `from`.
fn continued(from: &Path, args: &Args) -> anyhow::Result<Experiment> {
    let checkpoint = find_checkpoint(from)?.canonicalize().map_err(|source| minrnn::Error::io("read", from, source))?;
    let config = CheckpointConfig::read(&checkpoint).map_err(minrnn::Error::from)?;
    let named = args.experiment.as_deref().or(args.table.experiment());
    let mut experiment = match named {
        Some(name) => Experiment { model: config.model, ..Experiment::load(name, &[])? },
        None => {
            let mut own = Experiment::of_checkpoint(&config, &checkpoint)?;
            // What it learned from is not what this one does.
            (own.data.path, own.data.corpus, own.data.table.validation, own.data.table.test) = (None, None, None, None);
            own.description = format!("From {}", from.display());
            own
        }
    };
    experiment.train.from = Some(checkpoint);
    Ok(Experiment::parse(&experiment.to_toml()?, &args.settings)?)
}

fn take_memory_limit(experiment: &mut Experiment, args: &Args) {
    experiment.train.memory_limit = args.memory.given().or(experiment.train.memory_limit);
}

/// Puts the text or table of `--data`, and the columns of flags, in place of the experiment's own.
fn take_data(experiment: &mut Experiment, args: &Args) -> anyhow::Result<()> {
    args.table.apply(&mut experiment.data)?;
    if experiment.data.task.reads_a_folder() {
        let given = args.data.as_deref().or(experiment.data.path.as_deref());
        experiment.data.path = given.map(readable_folder).transpose()?;
        return Ok(());
    }
    let Some(path) = &args.data else { return Ok(()) };
    if experiment.data.task != Task::Text && !experiment.data.task.reads_a_file() {
        return Err(WrongInput("--data does not fit this experiment, which makes its own data; leave it out".to_owned()).into());
    }
    experiment.data.path = Some(readable(&input::path(path))?);
    Ok(())
}

fn run_name(args: &Args) -> String {
    let stem = |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = match (&args.experiment, &args.data) {
        (Some(experiment), _) => stem(Path::new(experiment)),
        (None, Some(data)) => stem(data),
        (None, None) => None,
    };
    name.unwrap_or_else(|| DEFAULT_EXPERIMENT.to_owned())
}

fn train(experiment: Experiment, run: RunDir, group: Group, stop: &AtomicBool) -> anyhow::Result<ExitCode> {
    let mut trainer = Trainer::among(experiment, run, group.clone())?;
    if group.is_first() {
        display::say(memory::line(trainer.memory(), trainer.experiment().train.memory_limit));
        if let Some(understood) = trainer.data().understood() {
            say(understood);
        }
    }
    // Of several processes one shows what all do.
    let mut display = group.is_first().then(|| Display::new(&trainer));
    loop {
        let outcome = trainer.run_and_record(stop, |event| {
            if let Some(display) = &mut display {
                display.show(event);
            }
        });
        if let Some(display) = &display {
            display.finish();
        }
        let ending = outcome?;
        if ending == Ending::Stopped {
            say_how_to_go_on(&trainer);
            return Ok(ExitCode::SUCCESS);
        }
        if !trainer.begin_refit()? {
            if group.is_first() {
                display::announce_ending(ending, &trainer);
            }
            break;
        }
        display = group.is_first().then(|| Display::of_refit(&trainer));
    }
    match trainer.final_report(stop)? {
        Some(report) => {
            let told = group.is_first().then(|| {
                write_report(&trainer, &report)?;
                display::print_report(&report, &trainer).context(NO_STDOUT)
            });
            ranks::agree(&group, told.transpose())?;
        }
        None => say_how_to_go_on(&trainer),
    }
    Ok(ExitCode::SUCCESS)
}

fn say_how_to_go_on(trainer: &Trainer) {
    if trainer.group().is_first() {
        display::say_how_to_go_on(trainer);
    }
}
