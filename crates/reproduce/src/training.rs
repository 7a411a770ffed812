//! One training of a cell: begun, gone on with where it stopped, or left alone where it is over.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use minrnn::device::DeviceChoice;
use minrnn::memory::Size;
use minrnn::train::{EXPERIMENT_FILE, Ending, Experiment, METRICS_FILE, RunDir, Task, Trainer, find_data, read_metrics, training_memory};
use minrnn_model::{create_directories, sync_directory};

use crate::folder::{self, Folder};
use crate::lengths::by_length;
use crate::outcome::{Failure, Origin, Outcome};
use crate::{Error, FolderProblem, Host, Notice, Result, Training};

const RESULT: &str = "result.json";
const FAILED: &str = "failed.json";

/// What is asked of every training.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The text of experiments that learn one.
    pub text: Option<PathBuf>,
    /// Where the expressions of ListOps lie, for all trainings together.
    pub expressions: Option<PathBuf>,
    /// Where to compute, if not where the experiment says.
    pub device: Option<DeviceChoice>,
    /// What it may take of memory.
    pub memory_limit: Option<Size>,
    /// Try again what failed.
    pub retry_failed: bool,
    /// Keep the checkpoints of finished trainings.
    pub keep_models: bool,
}

/// Where a training stands.
#[derive(Debug, Clone)]
pub enum Run {
    /// Over, with what it came to.
    Done(Box<Outcome>),
    /// It diverged (NaN).
    Failed(String),
    /// Something is missing or does not fit; it may be there next time.
    Refused(String),
    /// Not begun, or not at its end.
    Open,
}

/// The experiment of `training` with `seed`, as it is run.
fn experiment(training: &Training, seed: u64, options: &Options) -> Experiment {
    let mut experiment = training.experiment.clone();
    experiment.train.seed = seed;
    if let Some(device) = options.device {
        experiment.train.device = device;
    }
    experiment.train.memory_limit = options.memory_limit;
    if let (Task::Text, Some(text)) = (experiment.data.task, &options.text) {
        experiment.data.path = Some(text.clone());
    }
    if experiment.data.task == Task::ListOps {
        experiment.data.path = options.expressions.clone();
    }
    experiment
}

/// The same with its data found, downloaded where they are public, or given a folder to be made in.
pub fn with_data(training: &Training, seed: u64, options: &Options, host: &mut dyn Host) -> Result<Experiment> {
    let mut experiment = experiment(training, seed, options);
    if let (Task::ListOps, Some(folder)) = (experiment.data.task, &experiment.data.path) {
        fs::create_dir_all(folder).map_err(|source| minrnn::Error::io("create the folder of expressions", folder, source))?;
    }
    find_data(&mut experiment, &training.base, |corpus| host.fetch(corpus))?;
    Ok(experiment)
}

/// What is known of a training without doing anything.
///
/// # Errors
/// When its files cannot be read.
pub fn look_up(folder: &Folder, training: &Training, seed: u64, options: &Options, host: &dyn Host) -> Result<Run> {
    let directory = folder.training(&training.id, seed);
    let outcome: Option<Outcome> = folder::read(&directory.join(RESULT))?;
    let failure: Option<Failure> = folder::read(&directory.join(FAILED))?;
    if outcome.is_none() && failure.is_none() {
        return Ok(Run::Open);
    }
    if let Some(misfit) = misfit(&directory, &experiment(training, seed, options))? {
        return Ok(Run::Refused(host.sentence(&misfit)));
    }
    Ok(match (outcome, failure) {
        (Some(outcome), _) => Run::Done(Box::new(outcome)),
        (None, Some(_)) if options.retry_failed => Run::Open,
        (None, Some(failure)) => Run::Failed(failure.sentence),
        (None, None) => Run::Open,
    })
}

/// Brings a training to its end, or to where `stop` is raised, which leaves it open.
///
/// # Errors
/// When the disk refuses or the machine fails; what is wrong with the training itself is in the answer.
pub fn carry_out(
    folder: &Folder,
    training: &Training,
    seed: u64,
    options: &Options,
    host: &mut dyn Host,
    stop: &AtomicBool,
) -> Result<Run> {
    let directory = folder.training(&training.id, seed);
    match try_out(&directory, training, seed, options, host, stop) {
        Err(Error::Library(failure @ minrnn::Error::NonFinite { .. })) => {
            let sentence = failure.to_string();
            let device = experiment(training, seed, options).train.device;
            let origin = Origin::here(device.to_string(), host.commit());
            folder::write(&directory.join(FAILED), &Failure { sentence: sentence.clone(), origin })?;
            Ok(Run::Failed(sentence))
        }
        Err(error) if error.is_wrong_input() => Ok(Run::Refused(host.sentence(&error))),
        outcome => outcome,
    }
}

fn try_out(directory: &Path, training: &Training, seed: u64, options: &Options, host: &mut dyn Host, stop: &AtomicBool) -> Result<Run> {
    let experiment = with_data(training, seed, options, host)?;
    if let Some(misfit) = misfit(directory, &experiment)? {
        return Err(misfit);
    }
    training_memory(&experiment)?.expect_room(experiment.train.memory_limit)?;
    // What failed begins anew.
    remove_failed(directory)?;
    // New or not is seen under the run's lock: another process may have begun it, or come to its end, since it was looked up.
    create_directories(directory).map_err(|source| minrnn::Error::io("create the run directory", directory, source))?;
    let run = RunDir::open(directory)?;
    if let Some(outcome) = folder::read(&directory.join(RESULT))? {
        // Another process came to the end of it before this one held it.
        return Ok(Run::Done(Box::new(outcome)));
    }
    let device = experiment.train.device.to_string();
    let mut trainer = Trainer::new(experiment, run)?;
    host.notice(Notice::Training(&trainer));
    let outcome = trainer.run_and_record(stop, |event| host.notice(Notice::Event(event)));
    host.notice(Notice::Paused);
    let ending = outcome?;
    if ending == Ending::Stopped {
        return Ok(Run::Open);
    }
    host.notice(Notice::Ended(ending, &trainer));
    let Some(report) = trainer.final_report(stop)? else { return Ok(Run::Open) };
    let log = read_metrics(directory.join(METRICS_FILE))?;
    let origin = Origin::here(device, host.commit());
    let Some(lengths) = by_length(trainer.experiment(), &report.checkpoint, stop)? else { return Ok(Run::Open) };
    let outcome = Outcome { lengths, ..Outcome::new(&trainer, ending, &report, &log, origin) };
    folder::write(&directory.join(RESULT), &outcome)?;
    drop(trainer);
    if !options.keep_models {
        shed(directory)?;
    }
    Ok(Run::Done(Box::new(outcome)))
}

/// Removes the run in `directory`, where it failed, under another name: a kill must not leave half of it to be gone on with.
fn remove_failed(directory: &Path) -> Result<()> {
    let io = |source| Error::from(minrnn::Error::io("remove the failed run", directory, source));
    let aside = directory.with_extension("failed.tmp");
    if directory.join(FAILED).exists() {
        fs::rename(directory, &aside).and_then(|()| sync_directory(directory.parent().unwrap_or(directory))).map_err(io)?;
    }
    if aside.exists() { fs::remove_dir_all(&aside).map_err(io) } else { Ok(()) }
}

/// Removes what a finished training needed to go on: checkpoints and tokens.
fn shed(directory: &Path) -> Result<()> {
    for name in ["checkpoints", "data"] {
        let path = directory.join(name);
        if path.is_dir() {
            fs::remove_dir_all(&path).map_err(|source| minrnn::Error::io("remove", &path, source))?;
        }
    }
    Ok(())
}

/// What is wrong where `directory` holds a run of other settings than `experiment`.
fn misfit(directory: &Path, experiment: &Experiment) -> Result<Option<Error>> {
    let path = directory.join(EXPERIMENT_FILE);
    if !path.exists() {
        return Ok(None);
    }
    let stored = essence(Experiment::load_file(&path, &[])?);
    let wanted = essence(experiment.clone());
    if stored == wanted {
        return Ok(None);
    }
    let (stored, wanted) = (stored.to_toml()?, wanted.to_toml()?);
    let difference = stored.lines().zip(wanted.lines()).find(|(stored, wanted)| stored != wanted);
    let (found, wanted) = difference.unwrap_or(("", ""));
    let problem = FolderProblem::OtherSettings { found: found.to_owned(), wanted: wanted.to_owned() };
    Ok(Some(Error::folder(directory, problem)))
}

/// The experiment without words, without what changes its numbers by rounding at most, and without what is known only once the data are.
fn essence(mut experiment: Experiment) -> Experiment {
    experiment.description.clear();
    experiment.expect = None;
    (experiment.model.vocab_size, experiment.model.input_width, experiment.model.n_outputs) = (0, 0, 0);
    experiment.data.path = None;
    experiment.train.threads = 0;
    experiment.train.memory_limit = None;
    experiment.train.device = DeviceChoice::default();
    experiment
}
