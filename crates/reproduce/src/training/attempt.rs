//! An attempt at a run: prepared, trained, concluded.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use minrnn::train::{Ending, Event, Experiment, METRICS_FILE, Record, RunDir, Trainer, read_metrics, training_memory};
use minrnn_model::create_directories;

use super::{FAILED, Options, REMOVED, RESULT, Run, aside, misfit, other_text, remove, remove_aside, shed, with_data};
use crate::folder::{self, Folder};
use crate::lengths::{by_length, longer};
use crate::outcome::{Origin, Outcome};
use crate::unfinished::{Copy, Follower, without_paths};
use crate::{Error, Host, Notice, Result, Training};

/// A run with its directory and its copy.
struct Attempt<'a> {
    training: &'a Training,
    options: &'a Options,
    directory: PathBuf,
    copy: Copy,
}

/// What preparing a run finds.
enum Prepared {
    /// A directory to train in, which this process holds.
    Ready(RunDir),
    /// The result of another process that finished the run before this one held it.
    Over(Box<Outcome>),
}

/// Makes a run, or continues it, until it is over or `stop` is raised.
pub(super) fn carry_out(
    folder: &Folder,
    training: &Training,
    seed: u64,
    options: &Options,
    host: &mut dyn Host,
    stop: &AtomicBool,
) -> Result<Run> {
    let directory = folder.training(&training.id, seed);
    let attempt = Attempt { training, options, directory, copy: Copy::at(folder.unfinished(&training.id, seed)) };
    let experiment = with_data(training, seed, options, host)?;
    let run = match attempt.prepare(&experiment)? {
        Prepared::Ready(run) => run,
        Prepared::Over(outcome) => return Ok(Run::Done(outcome)),
    };
    let before = attempt.copy.bring_back(&run)?;
    let origin = Origin::here(experiment.train.device.to_string(), host.commit());
    let mut trainer = Trainer::new(experiment, run)?;
    let mut follower = Follower::new(&attempt.copy, &attempt.directory, trainer.experiment(), trainer.progress(), before, origin.clone())?;
    match train(&mut trainer, &mut follower, host, stop)? {
        Ending::Stopped => attempt.left_open(follower),
        ending => {
            host.notice(Notice::Ended(ending, &trainer));
            attempt.conclude(trainer, follower, ending, origin, stop)
        }
    }
}

/// Trains to the end, informing `host` and `follower`.
fn train(trainer: &mut Trainer, follower: &mut Follower, host: &mut dyn Host, stop: &AtomicBool) -> Result<Ending> {
    if let [.., before, now] = follower.stretches()
        && !before.is_like(now)
    {
        host.notice(Notice::OtherMachine { iteration: now.from, before: &before.origin.machine, now: &now.origin.machine });
    }
    host.notice(Notice::Training(trainer));
    let mut uncopied = None;
    let ending = trainer.run_and_record(stop, |event| {
        match *event {
            Event::Evaluated { iteration, evaluation, .. } => follower.evaluated(&Record::Eval {
                iteration,
                train_loss: None,
                test_loss: evaluation.loss,
                test_accuracy: evaluation.accuracy,
            }),
            // The run itself is safe without its copy.
            Event::Saved(_) if uncopied.is_none() => uncopied = follower.saved().err(),
            _ => {}
        }
        host.notice(Notice::Event(event));
    });
    host.notice(Notice::Paused);
    if let Some(error) = &uncopied {
        let sentence = format!("no copy of the unfinished run could be kept for other machines: {}", host.sentence(error));
        host.notice(Notice::NotDone(&sentence));
    }
    Ok(ending?)
}

impl Attempt<'_> {
    /// Removes what is to be redone, and opens the directory.
    fn prepare(&self, experiment: &Experiment) -> Result<Prepared> {
        let Self { training, options, directory, copy } = self;
        let other_text = other_text(directory, training, options)?.map(|problem| Error::folder(directory, problem));
        let (other, other_copy) = (misfit(directory, experiment)?, misfit(copy.path(), experiment)?);
        // A copy does not say what text it learned, so it goes with the run that does.
        let goes = other.is_some() || other_text.is_some();
        let copy_goes = other_copy.is_some() || other_text.is_some();
        if let Some(misfit) = other.or(other_text).or(other_copy)
            && !options.replace
        {
            return Err(misfit);
        }
        if copy_goes {
            copy.remove()?;
        }
        if goes {
            remove(directory, "replaced")?;
        }
        training_memory(experiment)?.expect_room(experiment.train.memory_limit)?;
        // A failed run starts again, and so does an untrained one that is to be replaced.
        let outcome: Option<Outcome> = folder::read(&directory.join(RESULT))?;
        if directory.join(FAILED).exists() || options.replace && outcome.is_some_and(|outcome| outcome.best_iteration == 0) {
            copy.remove()?;
            remove(directory, "failed")?;
        }
        // What an interrupted removal left behind.
        for word in REMOVED {
            remove_aside(&aside(directory, word))?;
        }
        // Whether the run is new is checked under its lock: another process may have started or finished it since it was looked up.
        create_directories(directory).map_err(|source| minrnn::Error::io("create the run directory", directory, source))?;
        let run = RunDir::open(directory)?;
        let Some(outcome) = folder::read(&directory.join(RESULT))? else { return Ok(Prepared::Ready(run)) };
        copy.remove()?;
        Ok(Prepared::Over(Box::new(outcome)))
    }

    /// Copies a stopped run, so that it can be continued from there, and returns its progress.
    fn left_open(&self, mut follower: Follower) -> Result<Run> {
        follower.copy_run()?;
        Ok(self.copy.read()?.map_or(Run::Open, |begun| Run::Begun(Box::new(begun))))
    }

    /// Scores the trained model, and keeps the result in place of what continuing needed; the run stays open if `stop` is raised meanwhile.
    fn conclude(&self, trainer: Trainer, mut follower: Follower, ending: Ending, origin: Origin, stop: &AtomicBool) -> Result<Run> {
        let Self { training, options, directory, copy } = self;
        let Some(report) = trainer.final_report(stop)? else { return self.left_open(follower) };
        let log = read_metrics(directory.join(METRICS_FILE))?;
        let experiment = trainer.experiment();
        let Some(lengths) = by_length(experiment, &report.checkpoint, stop)? else { return self.left_open(follower) };
        let is_solved = ending == Ending::Solved;
        let Some(longer) = longer(experiment, &report.checkpoint, if is_solved { &training.longer } else { &[] }, stop)? else {
            return self.left_open(follower);
        };
        let stretches = match follower.all_stretches(trainer.progress().iteration) {
            [_] => Vec::new(),
            several => several.to_vec(),
        };
        let text_sha256 = options.other_text(training).map(str::to_owned);
        let outcome = Outcome { lengths, longer, stretches, text_sha256, ..Outcome::new(&trainer, ending, &report, &log, origin) };
        let settings = without_paths(experiment)?;
        folder::write(&directory.join(RESULT), &outcome)?;
        // It holds the run's lock.
        drop(trainer);
        copy.remove()?;
        if !options.keep_models {
            shed(directory, &settings)?;
        }
        Ok(Run::Done(Box::new(outcome)))
    }
}
