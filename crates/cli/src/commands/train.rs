//! `minrnn train`: from an experiment to a run directory with a trained model.

use std::path::{Path, PathBuf};

use anyhow::Context;
use minrnn::Error;
use minrnn::output::expect_outside_runs;
use minrnn::train::{Asked, Experiment, Group, MAX_EXPERIMENT_BYTES, Pointer, Request, RunDir, Told, Trainer, find_data, training_memory};
use minrnn_model::read_text;

use crate::device::DeviceArg;
use crate::display::{self, Display};
use crate::exit::ExitCode;
use crate::failure::{self, FAILED, NO_STDOUT, WrongInput};
use crate::memory::MemoryArg;
use crate::ranks::Together;
use crate::say::say;
use crate::task_args::TaskArgs;
use crate::threads::{self, Threads};
use crate::{corpus, input, interrupt, memory, ranks, shell};

#[derive(clap::Args)]
pub struct Args {
    /// A built-in experiment (see `minrnn experiments`) or a TOML file [default: selective-copying; with --data text; with --task the task's own]
    experiment: Option<String>,
    /// Text to train on, or the folder with a task's files (listops, retrieval, image); with --task a table (CSV, Parquet, Arrow, JSON Lines or .ts)
    /// with one row for each time step, in order of time; with --task policy a file of recorded episodes
    #[arg(long, value_name = "FILE|FOLDER")]
    data: Option<PathBuf>,
    /// Run directory [default: runs/NAME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Continue the run in the run directory from where it stopped. With --set it may run longer, at another learning rate, or on another
    /// number of threads; model, data, seed and batches stay the same
    #[arg(long)]
    resume: bool,
    /// Start from the weights of this run or checkpoint, with its model, vocabulary and normalisation; without an experiment or --task, also
    /// with its data and training settings; the text or table is given by --data
    #[arg(long, value_name = "RUN|CHECKPOINT", conflicts_with = "resume")]
    from: Option<PathBuf>,
    /// Set a configuration key, for example train.lr=0.001 or d_model=64
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    #[command(flatten)]
    table: TaskArgs,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    device: DeviceArg,
    #[command(flatten)]
    memory: MemoryArg,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    ranks::together(|together| train_together(&args, together))
}

fn train_together(args: &Args, Together { group, threads, .. }: &Together) -> anyhow::Result<ExitCode> {
    let request = args.request();
    let out = args.out.clone().unwrap_or_else(|| Path::new("runs").join(request.run_name()));
    let first = group.is_first().then(|| -> anyhow::Result<_> {
        expect_outside_runs(&out)?;
        open(args, &request, &out)
    });
    let first = ranks::agree(group, first.transpose())?;
    let text = group.tell(|| first.as_ref().map_or(Ok(String::new()), |(experiment, _)| experiment.to_toml()))?;
    let (experiment, run) = match first {
        Some(first) => first,
        None => (Experiment::parse(&text, &[])?, RunDir::beside(&out)),
    };
    let threads = if experiment.train.threads == 0 { *threads } else { experiment.train.threads };
    let group = group.clone();
    threads::with_pool(threads, move || train(experiment, run, group, &request))?
}

/// The experiment and its run directory, new or resumed.
fn open(args: &Args, request: &Request, out: &Path) -> anyhow::Result<(Experiment, RunDir)> {
    args.table.expect_said_once(&args.settings)?;
    if !args.resume {
        // The experiment first: what is wrong with it should not leave a directory behind.
        let experiment = new_experiment(args, request)?;
        experiment.train.device.open()?;
        return Ok((experiment, RunDir::create(out)?));
    }
    let run = RunDir::open(out)?;
    let resumed = request.resumed(&run, |data| args.table.apply(data))?;
    if run.checkpoint(Pointer::Last)?.is_none() {
        say(format_args!("'{}' has no checkpoint yet: starting from the beginning", out.display()));
    }
    let experiment = resumed.map_or_else(|| new_experiment(args, request), |resumed| args.on_this_machine(resumed))?;
    Ok((experiment, run))
}

fn new_experiment(args: &Args, request: &Request) -> anyhow::Result<Experiment> {
    // The device first: what is in a GPU's memory does not count towards the machine's.
    let asked = request.experiment(|data| args.table.apply(data)).map_err(|error| args.with_data_hint(error))?;
    let mut experiment = args.on_this_machine(asked)?;
    // Before anything is fetched or written.
    training_memory(&experiment)?.expect_room(experiment.train.memory_limit)?;
    find_data(&mut experiment, &request.subject(), corpus::fetch)?;
    Ok(experiment)
}

impl Args {
    /// `experiment` on the device and the threads that were given, if any were.
    fn on_this_machine(&self, mut experiment: Experiment) -> anyhow::Result<Experiment> {
        experiment.train.device = self.device.given()?.unwrap_or(experiment.train.device);
        experiment.train.threads = self.threads.given()?.unwrap_or(experiment.train.threads);
        Ok(experiment)
    }

    /// `error` with advice if the file given as the experiment is probably the data to learn from.
    fn with_data_hint(&self, error: anyhow::Error) -> anyhow::Error {
        let unread = match error.downcast_ref() {
            Some(Error::Malformed { path, .. }) => Some(path.clone()),
            _ => None,
        };
        let file = unread.filter(|path| self.data.is_none() && self.experiment.as_deref().map(Path::new) == Some(path.as_path()));
        let Some(file) = file.filter(|file| file.extension().is_none_or(|end| end != "toml") && !has_sections(file)) else { return error };
        let sentence = failure::sentence(&error);
        WrongInput(format!("{sentence}; a text or a table is given with --data {}", shell::quoted(file))).into()
    }

    fn request(&self) -> Request {
        Request {
            experiment: self.experiment.clone().map(Asked::Named),
            default_experiment: self.table.experiment(),
            data: self.data.as_deref().map(input::path),
            from: self.from.clone(),
            validates: self.table.validates(),
            settings: self.settings.clone(),
            memory_limit: self.memory.given(),
        }
    }
}

/// Whether a section of an experiment begins somewhere in the file.
fn has_sections(file: &Path) -> bool {
    let is_section = |line: &str| ["[model]", "[data]", "[train]", "[expect]"].contains(&line.trim());
    read_text(file, MAX_EXPERIMENT_BYTES).is_ok_and(|text| text.lines().any(is_section))
}

fn train(experiment: Experiment, run: RunDir, group: Group, request: &Request) -> anyhow::Result<ExitCode> {
    let mut trainer = Trainer::among(experiment, run, group.clone())?;
    // Before this, while data are read and a vocabulary is learned, a signal ends the process at once.
    let stop = interrupt::stop_flag()?;
    if group.is_first() {
        say(memory::line(trainer.memory(), trainer.experiment().train.memory_limit));
        if let Some(understood) = trainer.data().understood() {
            say(understood);
        }
        trainer.warnings_at_start().iter().for_each(say);
        for (key, why) in trainer.without_effect().into_iter().filter(|(key, _)| request.sets(key)) {
            say(format_args!("{key} has no effect on this training: {why}"));
        }
    }
    // Of several processes, only one shows the progress of all.
    let mut display = group.is_first().then(|| Display::new(&trainer));
    let report = trainer.run_to_the_end(&stop, |told| {
        let Some(display) = &mut display else { return };
        match told {
            Told::Event(event) => display.show(event),
            Told::RoundOver => display.finish(),
            Told::Refit(trainer) => *display = Display::of_refit(trainer),
            Told::Ended(ending, trainer) => display::announce_ending(ending, trainer),
        }
    })?;
    let Some(report) = report else {
        if group.is_first() {
            display::say_how_to_go_on(&trainer);
        }
        // On every process: there is no finished model for a next command.
        return Ok(ExitCode::from(FAILED));
    };
    let told = group.is_first().then(|| display::print_report(&report, &trainer).context(NO_STDOUT));
    ranks::agree(&group, told.transpose())?;
    Ok(ExitCode::SUCCESS)
}
