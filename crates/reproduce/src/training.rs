//! One training of a cell: started, continued, or left alone if it is finished.

mod attempt;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use minrnn::RunProblem;
use minrnn::data::{shakespeare, text_sha256};
use minrnn::device::DeviceChoice;
use minrnn::memory::Size;
use minrnn::train::{EXPERIMENT_FILE, Experiment, Pointer, RunDir, Task, checkpoint, find_data};
use minrnn_model::{hex, sync_directory, write_atomic};
use serde::Deserialize;

use crate::folder::{self, Folder};
use crate::outcome::{Failure, Origin, Outcome};
use crate::unfinished::{Begun, Copy};
use crate::{Error, FolderProblem, Host, Result, Training};

const RESULT: &str = "result.json";
const FAILED: &str = "failed.json";
/// Why a run that another process is training is left alone.
const ELSEWHERE: &str = "another process is working on it";

/// Options of every training.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The text for experiments that learn one; `None` for the experiment's own.
    pub text: Option<OwnText>,
    /// The location of ListOps expressions, shared by all trainings.
    pub expressions: Option<PathBuf>,
    /// The device, if not the experiment's.
    pub device: Option<DeviceChoice>,
    /// Its memory limit.
    pub memory_limit: Option<Size>,
    /// Retry what failed.
    pub retry_failed: bool,
    /// Redo what has other settings, or none that can be read beside its result, or whose best checkpoint is the untrained model; the old
    /// run is deleted.
    pub replace: bool,
    /// Only continue what has been started.
    pub resume_only: bool,
    /// Keep the checkpoints of finished trainings.
    pub keep_models: bool,
}

impl Options {
    /// The digest of the text that `training` learns, if that is not the experiment's own.
    pub(crate) fn other_text(&self, training: &Training) -> Option<&str> {
        let text = self.text.as_ref().filter(|_| training.experiment.data.task == Task::Text)?;
        Some(text.sha256.as_str()).filter(|sha256| *sha256 != shakespeare::SHA256)
    }
}

/// A text given by its path.
#[derive(Debug, Clone)]
pub struct OwnText {
    path: PathBuf,
    sha256: String,
}

impl OwnText {
    /// The file `path`, which is read to identify it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open(path: PathBuf) -> Result<Self> {
        let sha256 = hex(&text_sha256(&path)?);
        Ok(Self { path, sha256 })
    }
}

/// The status of a training.
#[derive(Debug, Clone)]
pub enum Run {
    /// Finished, with its result.
    Done(Box<Outcome>),
    /// It diverged (NaN).
    Failed(String),
    /// Something is missing or does not fit; the next attempt may succeed.
    Refused(String),
    /// Finished, but not as requested now, for this reason: it must be redone.
    Outdated(Box<Outcome>, FolderProblem),
    /// Unfinished.
    Begun(Box<Begun>),
    /// Another process is working on it, and will finish it.
    Elsewhere,
    /// Not started, or only just.
    Open,
}

impl Run {
    /// Whether it is to be run or continued.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open | Self::Begun(_))
    }

    /// Why there is no result, if a reason is known.
    pub(crate) fn not_made(&self) -> Option<&str> {
        match self {
            Self::Failed(sentence) | Self::Refused(sentence) => Some(sentence),
            Self::Elsewhere => Some(ELSEWHERE),
            _ => None,
        }
    }

    /// Every machine and program involved so far.
    pub fn origins(&self) -> Vec<Origin> {
        match self {
            Self::Done(outcome) => outcome.origins().cloned().collect(),
            Self::Begun(begun) => begun.stretches.iter().map(|stretch| stretch.origin.clone()).collect(),
            _ => Vec::new(),
        }
    }
}

/// The seed of the test batches of trainings that set none, whatever their own seed is.
const EVAL_SEED: u64 = 0;

/// The experiment of `training`, as far as it determines what is scored.
pub fn scored(training: &Training, options: &Options) -> Experiment {
    experiment(training, 1, options)
}

/// The experiment of `training` with `seed`, as it is run.
fn experiment(training: &Training, seed: u64, options: &Options) -> Experiment {
    let mut experiment = training.experiment.clone();
    experiment.train.seed = seed;
    experiment.train.eval_seed.get_or_insert(EVAL_SEED);
    if let Some(device) = options.device {
        experiment.train.device = device;
    }
    experiment.train.memory_limit = options.memory_limit;
    if let (Task::Text, Some(text)) = (experiment.data.task, &options.text) {
        experiment.data.path = Some(text.path.clone());
    }
    if experiment.data.task == Task::ListOps {
        experiment.data.path = options.expressions.clone();
    }
    experiment
}

/// The same with its data located, downloaded if they are public, or given a folder to be generated in.
pub fn with_data(training: &Training, seed: u64, options: &Options, host: &mut dyn Host) -> Result<Experiment> {
    let mut experiment = experiment(training, seed, options);
    if let (Task::ListOps, Some(folder)) = (experiment.data.task, &experiment.data.path) {
        fs::create_dir_all(folder).map_err(|source| minrnn::Error::io("create the folder of expressions", folder, source))?;
    }
    find_data(&mut experiment, &format!("the experiment '{}'", training.base), |corpus| host.fetch(corpus))?;
    Ok(experiment)
}

/// The status of a training, without doing anything. One whose files are damaged is refused with the reason and does not affect others.
///
/// # Errors
/// When its files cannot be read.
pub fn look_up(folder: &Folder, training: &Training, seed: u64, options: &Options, host: &dyn Host) -> Result<Run> {
    match known(folder, training, seed, options, host) {
        Err(error) if error.is_wrong_input() => Ok(Run::Refused(host.sentence(&error))),
        run => run,
    }
}

fn known(folder: &Folder, training: &Training, seed: u64, options: &Options, host: &dyn Host) -> Result<Run> {
    let directory = folder.training(&training.id, seed);
    let outcome: Option<Outcome> = folder::read(&directory.join(RESULT))?;
    let failure: Option<Failure> = folder::read(&directory.join(FAILED))?;
    let experiment = experiment(training, seed, options);
    if outcome.is_none() && failure.is_none() {
        return begun(&Copy::at(folder.unfinished(&training.id, seed)), &directory, &experiment, options, host);
    }
    let problem = match (other_settings(&directory, &experiment)?.or(other_text(&directory, training, options)?), &outcome) {
        (Some(problem), _) => Some(problem),
        (None, Some(outcome)) if outcome.best_iteration == 0 => Some(FolderProblem::Untrained),
        _ => None,
    };
    Ok(match (outcome, failure, problem) {
        (_, _, Some(_)) if options.replace => Run::Open,
        (Some(outcome), _, Some(problem)) => Run::Outdated(Box::new(outcome), problem),
        (None, _, Some(problem)) => Run::Refused(host.sentence(&Error::folder(&directory, problem))),
        (Some(outcome), ..) => Run::Done(Box::new(outcome)),
        (None, Some(_), _) if options.retry_failed => Run::Open,
        (None, Some(failure), _) => Run::Failed(failure.sentence),
        (None, None, _) => Run::Open,
    })
}

/// The progress of a run that is not over, from its copy or, if there is none or it is to be replaced, from its own checkpoint.
fn begun(copy: &Copy, directory: &Path, experiment: &Experiment, options: &Options, host: &dyn Host) -> Result<Run> {
    if let Some(begun) = copy.read()? {
        match misfit(copy.path(), experiment)? {
            None => return Ok(Run::Begun(Box::new(begun))),
            // It is removed before the run is made.
            Some(_) if options.replace => {}
            Some(misfit) => return Ok(Run::Refused(host.sentence(&misfit))),
        }
    }
    match misfit(directory, experiment)? {
        Some(_) if options.replace => return Ok(Run::Open),
        Some(misfit) if checkpoint(directory, Pointer::Last)?.is_some() => return Ok(Run::Refused(host.sentence(&misfit))),
        _ => {}
    }
    // Tried twice, since another process may replace the checkpoint while it is read.
    let here = Begun::of_run(directory, experiment).or_else(|_| Begun::of_run(directory, experiment))?;
    Ok(here.map_or(Run::Open, |begun| Run::Begun(Box::new(begun))))
}

/// Removes the copy of a finished run that may be left if the process was killed at its end.
///
/// # Errors
/// When the file system fails.
pub fn tidy(folder: &Folder, training: &Training, seed: u64, run: &Run) -> Result<()> {
    match run {
        Run::Done(_) | Run::Failed(_) => Copy::at(folder.unfinished(&training.id, seed)).remove(),
        _ => Ok(()),
    }
}

/// Runs a training to its end, or until `stop` is raised, which leaves it open.
///
/// # Errors
/// When writing fails or the machine does; problems of the training itself are in the result.
pub fn carry_out(
    folder: &Folder,
    training: &Training,
    seed: u64,
    options: &Options,
    host: &mut dyn Host,
    stop: &AtomicBool,
) -> Result<Run> {
    let directory = folder.training(&training.id, seed);
    match attempt::carry_out(folder, training, seed, options, host, stop) {
        Err(Error::Library(failure @ minrnn::Error::NonFinite { .. })) => {
            let sentence = failure.to_string();
            let device = experiment(training, seed, options).train.device;
            let origin = Origin::here(device.to_string(), host.commit());
            let text_sha256 = options.other_text(training).map(str::to_owned);
            folder::write(&directory.join(FAILED), &Failure { sentence: sentence.clone(), origin, text_sha256 })?;
            Copy::at(folder.unfinished(&training.id, seed)).remove()?;
            Ok(Run::Failed(sentence))
        }
        Err(Error::Library(minrnn::Error::Run { problem: RunProblem::InUse, .. })) => Ok(Run::Elsewhere),
        Err(error) if error.is_wrong_input() => Ok(Run::Refused(host.sentence(&error))),
        outcome => outcome,
    }
}

/// Words in the names of runs that are being removed.
const REMOVED: [&str; 2] = ["failed", "replaced"];

fn aside(directory: &Path, word: &str) -> PathBuf {
    directory.with_extension(format!("{word}.tmp"))
}

/// Removes the run in `directory` after renaming it to a name with that word in it: a kill must not leave half a run to be continued.
fn remove(directory: &Path, word: &str) -> Result<()> {
    let aside = aside(directory, word);
    remove_aside(&aside)?;
    if directory.exists() {
        // No process may be using it; a record without a run cannot be in use.
        match RunDir::open(directory) {
            Ok(_) | Err(minrnn::Error::Run { problem: RunProblem::NotARun(_), .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let parent = directory.parent().unwrap_or(directory);
        let io = |source| minrnn::Error::io("remove the run", directory, source);
        fs::rename(directory, &aside).and_then(|()| sync_directory(parent)).map_err(io)?;
    }
    remove_aside(&aside)
}

fn remove_aside(aside: &Path) -> Result<()> {
    if !aside.exists() {
        return Ok(());
    }
    fs::remove_dir_all(aside).map_err(|source| minrnn::Error::io("remove the run", aside, source).into())
}

/// Removes what a finished training no longer needs, checkpoints and tokens, and leaves `settings` as its experiment.
fn shed(directory: &Path, settings: &str) -> Result<()> {
    write_atomic(directory.join(EXPERIMENT_FILE), settings.as_bytes())?;
    for name in ["checkpoints", "data"] {
        let path = directory.join(name);
        if path.is_dir() {
            fs::remove_dir_all(&path).map_err(|source| minrnn::Error::io("remove", &path, source))?;
        }
    }
    Ok(())
}

/// The problem if `directory` holds a run with other settings than those of `experiment`.
fn misfit(directory: &Path, experiment: &Experiment) -> Result<Option<Error>> {
    Ok(other_settings(directory, experiment)?.map(|problem| Error::folder(directory, problem)))
}

/// The problem if the run in `directory`, which is over, learned another text than `training` is to learn.
fn other_text(directory: &Path, training: &Training, options: &Options) -> Result<Option<FolderProblem>> {
    /// The part of `result.json` and `failed.json` that names it.
    #[derive(Deserialize)]
    struct Learned {
        text_sha256: Option<String>,
    }
    let Some(learned) = [RESULT, FAILED].iter().find_map(|name| folder::read::<Learned>(&directory.join(name)).transpose()).transpose()?
    else {
        return Ok(None);
    };
    let (learned, wanted) = (learned.text_sha256.as_deref(), options.other_text(training));
    let named =
        |sha256: Option<&str>| sha256.map_or_else(|| "Tiny Shakespeare".to_owned(), |sha256| format!("the text with SHA-256 {sha256}"));
    Ok((learned != wanted).then(|| FolderProblem::OtherSettings { found: named(learned), wanted: named(wanted) }))
}

/// The settings of the run in `directory` that differ from those of `experiment`, with their current values; or that they cannot be read, or are missing
/// beside a result.
fn other_settings(directory: &Path, experiment: &Experiment) -> Result<Option<FolderProblem>> {
    let path = directory.join(EXPERIMENT_FILE);
    if !folder::is_file(&path)? {
        return Ok(directory.join(RESULT).exists().then_some(FolderProblem::NoSettings));
    }
    let stored = match Experiment::load_file(&path, &[]) {
        Ok(stored) => essence(stored),
        // Without its path, since pages show it.
        Err(minrnn::Error::Malformed { problem, .. }) => return Ok(Some(FolderProblem::UnreadableSettings(problem))),
        Err(error) => return Err(error.into()),
    };
    let wanted = essence(experiment.clone());
    if stored == wanted {
        return Ok(None);
    }
    let (stored, wanted) = (settings(&stored)?, settings(&wanted)?);
    let of_stored = stored.difference(&wanted).cloned().collect::<Vec<_>>();
    let of_wanted = wanted.difference(&stored).cloned().collect::<Vec<_>>();
    Ok(Some(FolderProblem::OtherSettings { found: of_stored.join(", "), wanted: of_wanted.join(", ") }))
}

/// The lines of an experiment's file.
fn settings(experiment: &Experiment) -> Result<BTreeSet<String>> {
    Ok(experiment.to_toml()?.lines().filter(|line| line.contains('=')).map(str::to_owned).collect())
}

/// The experiment without its texts, without what changes its numbers only by rounding, and without what is known only once the data are there.
fn essence(mut experiment: Experiment) -> Experiment {
    experiment.description.clear();
    experiment.expect = None;
    (experiment.model.vocab_size, experiment.model.input_width, experiment.model.n_outputs) = (0, 0, 0);
    experiment.data.path = None;
    // With another seed the same quantity is estimated; the pages say where it differs.
    experiment.train.eval_seed = None;
    experiment.train.threads = 0;
    experiment.train.memory_limit = None;
    experiment.train.device = DeviceChoice::default();
    experiment
}
