//! `minrnn train`: from an experiment to a run directory with a trained model.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use minrnn::train::{Ending, EventsFile, Experiment, MetricsLog, RunDir, Task, Trainer, draw_curves, read_metrics};

use crate::display::{self, Display};
use crate::failure::WrongInput;
use crate::{corpus, interrupt, threads};

const DEFAULT_EXPERIMENT: &str = "selective-copying";
const TEXT_EXPERIMENT: &str = "text";

#[derive(clap::Args)]
pub struct Args {
    /// A built-in experiment (see `minrnn experiments`) or a TOML file [default: selective-copying, or text with --data]
    experiment: Option<String>,
    /// Text to train on
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Run directory [default: runs/NAME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Continue the run in the run directory where it stopped
    #[arg(long)]
    resume: bool,
    /// Set a configuration key, for example train.lr=0.001 or d_model=64
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let stop = interrupt::stop_flag()?;
    let out = args.out.clone().unwrap_or_else(|| Path::new("runs").join(run_name(&args)));
    let (experiment, run) = open(&args, &out)?;
    let threads = experiment.train.threads;
    threads::with_pool(threads, move || train(experiment, run, &stop))?
}

/// The experiment and its run directory, new or resumed.
fn open(args: &Args, out: &Path) -> anyhow::Result<(Experiment, RunDir)> {
    if args.resume {
        let run = RunDir::open(out)?;
        let stored = run.file(minrnn::train::EXPERIMENT_FILE);
        if stored.exists() {
            let mut experiment = Experiment::load_file(&stored, &args.settings)?;
            if args.data.is_some() {
                experiment.data.path.clone_from(&args.data);
            }
            if run.checkpoint(minrnn::train::Pointer::Last)?.is_none() {
                eprintln!("'{}' has no checkpoint yet: starting anew", out.display());
            }
            return Ok((experiment, run));
        }
        eprintln!("'{}' has no checkpoint yet: starting anew", out.display());
        return Ok((new_experiment(args)?, run));
    }
    // The experiment first: what is wrong with it should not leave a directory behind.
    let experiment = new_experiment(args)?;
    Ok((experiment, RunDir::create(out)?))
}

fn new_experiment(args: &Args) -> anyhow::Result<Experiment> {
    let name = args.experiment.as_deref().unwrap_or(if args.data.is_some() { TEXT_EXPERIMENT } else { DEFAULT_EXPERIMENT });
    let mut experiment = Experiment::load(name, &args.settings)?;
    experiment.validate()?;
    match experiment.data.task {
        Task::SelectiveCopying if args.data.is_some() => {
            return Err(WrongInput(format!("--data does not fit the experiment '{name}', which makes its own data; leave it out")).into());
        }
        Task::SelectiveCopying => {}
        Task::Text => {
            if args.data.is_some() {
                experiment.data.path.clone_from(&args.data);
            } else if let (None, Some(corpus)) = (&experiment.data.path, experiment.data.corpus) {
                experiment.data.path = Some(corpus::fetch(corpus)?);
            }
            match &experiment.data.path {
                None => return Err(WrongInput(format!("the experiment '{name}' needs a text; give one with --data FILE")).into()),
                Some(path) => experiment.data.path = Some(readable(path)?),
            }
        }
    }
    Ok(experiment)
}

/// The absolute path of a text file, so that a run can be resumed from elsewhere.
fn readable(path: &Path) -> anyhow::Result<PathBuf> {
    std::fs::File::open(path).and_then(|_| path.canonicalize()).map_err(|source| minrnn::Error::io("read the text", path, source).into())
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

fn train(experiment: Experiment, run: RunDir, stop: &std::sync::atomic::AtomicBool) -> anyhow::Result<ExitCode> {
    let mut trainer = Trainer::new(experiment, run)?;
    let out = trainer.run_dir().path().to_owned();
    let started_at = trainer.progress().iteration;
    let mut metrics = MetricsLog::open(out.join("metrics.jsonl"), Some(started_at))?;
    let mut events = EventsFile::create(&out, (started_at > 0).then_some(started_at + 1))?;
    let mut display = Display::new(&trainer);
    let outcome = trainer.run(stop, |event| {
        if let Some(record) = display::record_of(&event) {
            metrics.append(&record)?;
            events.record(&record)?;
        }
        display.show(&event);
        Ok(())
    });
    display.finish();
    let title = trainer.experiment().description.clone();
    draw_curves(&read_metrics(out.join("metrics.jsonl"))?, &title, &out)?;
    let ending = outcome?;
    if ending == Ending::Stopped {
        display::say_how_to_go_on(&trainer);
        return Ok(ExitCode::SUCCESS);
    }
    display::announce_ending(ending, &trainer);
    match trainer.final_report(stop)? {
        Some(report) => display::print_report(&report, &trainer),
        None => display::say_how_to_go_on(&trainer),
    }
    Ok(ExitCode::SUCCESS)
}
