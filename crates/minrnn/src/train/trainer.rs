//! The training loop: updates, with evaluations and checkpoints in between.

mod final_report;
mod refit;
mod saving;
mod update;
mod without_effect;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use burn::module::Module;
use burn::tensor::Device;

use super::alike::{expect_shareable, traits};
use super::average::Average;
use super::data::Data;
use super::evaluate::{Evaluation, compare};
use super::experiment::Experiment;
use super::group::Group;
use super::memory::training_memory_of;
use super::optimizer::Optimizer;
use super::progress::Progress;
use super::run_dir::{EXPERIMENT_FILE, Pointer, RunDir, read_pointer};
use super::schedule::Schedule;
use super::start::Start;
use crate::counted::counted;
use crate::data::{BatchSource, EvaluationSet};
use crate::memory::Estimate;
use crate::model::{AnyModel, SequenceModelState};
use crate::rng::Purpose;
use crate::{Error, Result, RunProblem};
pub use final_report::{FinalReport, final_batches};

/// What happened in one update.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Update {
    /// Number of updates, including this one.
    pub iteration: u64,
    /// Mean loss of the micro-steps.
    pub loss: f64,
    /// Learning rate.
    pub lr: f64,
    /// Norm of all gradients before clipping.
    pub grad_norm: f64,
    /// Tokens processed in this update, per second.
    pub tokens_per_s: f64,
}

/// An event of the training loop.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// An update was made.
    Updated(Update),
    /// The model was evaluated after `iteration` updates.
    Evaluated {
        /// Number of updates before it.
        iteration: u64,
        /// The scores on the evaluation batches.
        evaluation: Evaluation,
        /// Whether it is the best so far.
        is_best: bool,
    },
    /// A checkpoint is about to be written: records of earlier events belong to it, and should be made equally durable.
    Saving,
    /// A checkpoint was written.
    Saved(PathBuf),
}

/// Why the loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// All iterations are done.
    Finished,
    /// `patience` evaluations in a row brought no gain.
    EarlyStopped,
    /// An evaluation reached the accuracy `solved_at`.
    Solved,
    /// A stop was requested; the checkpoint written then continues exactly here.
    Stopped,
}

/// A model in training.
pub struct Trainer {
    experiment: Experiment,
    run: RunDir,
    data: Data,
    source: Box<dyn BatchSource>,
    validation: Box<dyn EvaluationSet>,
    model: AnyModel,
    optimizer: Optimizer,
    schedule: Schedule,
    /// States that the next update continues from: none, the one after the last micro-step, or one for each micro-step of this process.
    carried: Vec<SequenceModelState>,
    average: Option<Average>,
    progress: Progress,
    memory: Estimate,
    group: Group,
}

impl Trainer {
    /// Starts `experiment` in `run`, or continues it from the run's last checkpoint if there is one.
    ///
    /// # Errors
    /// When the experiment is not valid, its data cannot be used, more memory is needed than there is, the checkpoint is damaged, the run
    /// began with settings that must not change ([`Experiment::expect_continues`]), or its training settings were changed but no update is
    /// left to make with them; the run is then left as it was.
    pub fn new(experiment: Experiment, run: RunDir) -> Result<Self> {
        Self::among(experiment, run, Group::alone())
    }

    /// As [`new`](Self::new), as one process of `group`, all with the same `experiment`. The first owns the run directory and is the only
    /// one to write to it; the others read [`beside`](RunDir::beside) it. Each does its share of the micro-steps of every update, and all
    /// have the same weights.
    ///
    /// # Errors
    /// On every process, if [`new`](Self::new) fails on any of them, if the first one has neither created nor opened its run directory, if
    /// the processes would not compute the same, or if the micro-steps cannot be distributed among them.
    pub fn among(experiment: Experiment, run: RunDir, group: Group) -> Result<Self> {
        let last = group.tell(|| {
            if !run.is_locked() {
                return Err(Error::run(run.path(), RunProblem::NotOpened));
            }
            experiment.validate()?;
            // Checked before anything is trained: if these are damaged, nothing could be saved.
            Pointer::ALL.iter().try_for_each(|&pointer| read_pointer(run.path(), pointer).map(|_| ()))?;
            run.checkpoint(Pointer::Last)
        })?;
        let first = group.is_first().then(|| match last {
            Some(_) => Data::open(&experiment, run.path()),
            None => {
                run.announce(&experiment.to_toml()?)?;
                Data::make(&experiment, run.path())
            }
        });
        let made = group.agree(first.transpose())?;
        let data = made.map_or_else(|| Data::open(&experiment, run.path()), Ok);
        let trainer = data.and_then(|data| Self::with_data(experiment, run, group.clone(), data, last));
        let mut trainer = group.agree(trainer)?;
        if !group.is_alone() {
            let traits = traits(&trainer.experiment, &mut *trainer.source, &trainer.model);
            group.expect_alike(group.agree(traits)?)?;
        }
        let begun = match group.is_first() {
            true => trainer.expect_learned_so().and_then(|()| trainer.run.begin(&trainer.experiment.to_toml()?)),
            false => Ok(()),
        };
        group.agree(begun)?;
        Ok(trainer)
    }

    fn with_data(mut experiment: Experiment, run: RunDir, group: Group, data: Data, checkpoint: Option<PathBuf>) -> Result<Self> {
        data.shape(&mut experiment.model);
        data.record(&mut experiment.data);
        if let Some(extent) = data.extent() {
            experiment.train.fit_to(extent);
        }
        experiment.expect_room_for(data.longest())?;
        let memory = training_memory_of(&experiment, &experiment.model, data.longest())?;
        let longest_warning = || data.extent().and_then(|extent| experiment.train.longest_warning(extent));
        memory.expect_room(experiment.train.memory_limit).map_err(|error| match (error, longest_warning()) {
            (Error::Memory(sentence), Some(longest)) => Error::Memory(format!("{sentence}; {longest}")),
            (error, _) => error,
        })?;
        let device = experiment.train.device.open()?.autodiff();
        let model = first_model(&experiment, &data, run.path(), &device)?;
        let mut trainer = Self {
            source: data.training(&experiment)?,
            validation: data.fixed_batches(&experiment, experiment.train.eval_iterations, Purpose::ValidationData)?,
            model,
            optimizer: Optimizer::new(&experiment.train),
            schedule: Schedule::new(&experiment.train),
            carried: Vec::new(),
            average: None,
            progress: Progress::default(),
            experiment,
            run,
            data,
            memory,
            group,
        };
        expect_shareable(&trainer.group, &trainer.experiment, &*trainer.source)?;
        if let Some(checkpoint) = checkpoint {
            trainer.restore(&checkpoint)?;
            trainer.expect_not_past()?;
            trainer.go_back(&checkpoint)?;
            trainer.begin_round()?;
        }
        Ok(trainer)
    }

    /// The resolved experiment.
    pub fn experiment(&self) -> &Experiment {
        &self.experiment
    }

    /// The model.
    pub fn model(&self) -> &AnyModel {
        &self.model
    }

    /// The run's directory.
    pub fn run_dir(&self) -> &RunDir {
        &self.run
    }

    /// The data.
    pub fn data(&self) -> &Data {
        &self.data
    }

    /// The processes that train together.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// The memory that the training needs.
    pub fn memory(&self) -> &Estimate {
        &self.memory
    }

    /// Warnings before the training starts, in sentences: about a sequence that determines the batch size, and a learning rate that is
    /// never reached.
    pub fn warnings_at_start(&self) -> Vec<String> {
        let of_longest = self.data.extent().and_then(|extent| self.experiment.train.longest_warning(extent));
        of_longest.into_iter().chain(self.schedule.warmup_warning(self.experiment.train.max_iterations)).collect()
    }

    /// Counters of the run.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Trains until the last iteration, the end of patience, a solved task, or a raised `stop`, reporting events to `watch`. In every case
    /// the last checkpoint holds everything up to that point.
    ///
    /// # Errors
    /// When loss or gradients are not finite, data cannot be read, or a checkpoint cannot be written.
    pub fn run(&mut self, stop: &AtomicBool, mut watch: impl FnMut(Event) -> Result<()>) -> Result<Ending> {
        let group = self.group.clone();
        let mut unsaved = false;
        // The results of other processes' watchers, and whether those processes were asked to stop, arrive with the next update.
        let mut heard = Ok(());
        let mut stopped = group.agree_all(Ok(stop.load(Ordering::Relaxed)))?.contains(&true);
        loop {
            if group.is_alone() {
                std::mem::replace(&mut heard, Ok(()))?;
                stopped = stop.load(Ordering::Relaxed);
            }
            let iteration = self.progress.iteration;
            if self.evaluation_due() && !stopped {
                group.agree(std::mem::replace(&mut heard, Ok(())))?;
                // If stopped inside an evaluation, the iteration counts as not evaluated and is evaluated after the resume.
                if let Some(evaluation) = compare(&group, &self.model.valid(), &mut *self.validation, None, stop)? {
                    if !evaluation.loss.is_finite() {
                        let tensor = "the test loss".to_owned();
                        return group.alike(Err(Error::NonFinite { iteration, tensor, value: evaluation.loss }));
                    }
                    let score = self.experiment.data.task.score(&evaluation);
                    let (is_best, is_kept) = self.progress.evaluated(score, evaluation.loss);
                    heard = watch(Event::Evaluated { iteration, evaluation, is_best });
                    if is_kept {
                        heard = self.save_watched(is_best, heard, &mut watch)?;
                    }
                    unsaved = !is_kept;
                } else {
                    stopped = true;
                }
            }
            let ending = if stopped { Some(Ending::Stopped) } else { self.ending() };
            let save_due = ending.is_some() || iteration.is_multiple_of(self.experiment.train.checkpoint_every);
            if save_due && (unsaved || self.checkpoint(Pointer::Last)?.is_none()) {
                heard = self.save_watched(false, heard, &mut watch)?;
            }
            if let Some(ending) = ending {
                return group.agree(heard.map(|()| ending));
            }
            let before = std::mem::replace(&mut heard, Ok(()));
            let (update, asked_to_stop) = self.update_together(before, stop.load(Ordering::Relaxed))?;
            (unsaved, stopped) = (true, asked_to_stop);
            heard = watch(Event::Updated(update));
        }
    }

    /// Writes a checkpoint if `heard` is not an error; returns the result of `watch` then.
    fn save_watched(&self, is_best: bool, heard: Result<()>, watch: &mut impl FnMut(Event) -> Result<()>) -> Result<Result<()>> {
        self.group.agree(heard.and_then(|()| watch(Event::Saving)))?;
        Ok(watch(Event::Saved(self.save(is_best)?)))
    }

    /// The checkpoint that `pointer` names, as found by the first process.
    fn checkpoint(&self, pointer: Pointer) -> Result<Option<PathBuf>> {
        self.group.tell(|| self.run.checkpoint(pointer))
    }

    /// Number of updates at which the round ends.
    pub fn end_of_round(&self) -> u64 {
        self.progress.refit.map_or(self.experiment.train.max_iterations, |refit| refit.began_at + refit.updates)
    }

    /// Whether an evaluation is to be done next.
    fn evaluation_due(&self) -> bool {
        let Progress { iteration, evaluated_at, refit, .. } = self.progress;
        // The second round learns from all data, so nothing is held out that could be scored.
        let is_scored = refit.is_none() && self.validation.n_batches() > 0;
        let is_time = iteration >= self.end_of_round() || iteration.is_multiple_of(self.experiment.train.eval_every);
        is_scored && is_time && evaluated_at != Some(iteration)
    }

    /// Why the round ends here, if its evaluations or iterations end it.
    fn ending(&self) -> Option<Ending> {
        let (patience, is_first) = (self.experiment.train.patience, self.progress.refit.is_none());
        if is_first && self.is_solved() {
            Some(Ending::Solved)
        } else if self.progress.iteration >= self.end_of_round() {
            Some(Ending::Finished)
        } else if is_first && patience > 0 && self.progress.without_gain >= patience {
            Some(Ending::EarlyStopped)
        } else {
            None
        }
    }

    /// Refuses changed learning settings if no update is left to make with them: the run's experiment records what it was trained with.
    fn expect_learned_so(&self) -> Result<()> {
        let stored = self.run.file(EXPERIMENT_FILE);
        let Some(ending) = self.ending().filter(|_| stored.exists()) else { return Ok(()) };
        let is_relearned = self.experiment.train.refit && self.progress.refit.is_none() && self.data.all().is_some();
        // A gain in the evaluation due would restart patience.
        if is_relearned || ending == Ending::EarlyStopped && self.evaluation_due() {
            return Ok(());
        }
        let learned = Experiment::load_file(&stored, &[])?.train;
        let Some((key, found)) = self.experiment.train.learns_otherwise(&learned)? else { return Ok(()) };
        let made = counted(self.progress.iteration, "update");
        let (why, way) = match ending {
            Ending::Solved => (format!("the task is solved after {made}"), "raise solved_at, or set it to 0, to go on with it"),
            Ending::EarlyStopped => (format!("patience ended after {made}"), "raise patience to go on with it"),
            // It can continue from before the second round only if that checkpoint is kept.
            _ if self.progress.refit.is_some() && self.experiment.train.validates() => {
                (format!("the run has been retrained on all data and is over after {made}"), "start a new run in another directory")
            }
            _ => (format!("the run is over after {made}"), "raise max_iterations to go on with it"),
        };
        Err(Error::MustStay(format!("{why}, and {key} = {found} would change none of them; {way}, or leave {key} out")))
    }

    /// Refuses an end that the run has already passed.
    fn expect_not_past(&self) -> Result<()> {
        let made = self.progress.refit.map_or(self.progress.iteration, |refit| refit.began_at);
        let most = self.experiment.train.max_iterations;
        if made <= most {
            return Ok(());
        }
        let sentence = format!("max_iterations must be at least {made}, found {most}: that many updates are made already; leave it out");
        Err(Error::MustStay(sentence))
    }

    /// The kept checkpoints of the first round, by iteration; for finite data only the one kept in the end.
    fn kept(&self) -> Result<Vec<(u64, PathBuf)>> {
        if !self.experiment.train.validates() {
            let last = self.checkpoint(Pointer::Last)?;
            return Ok(last.map(|path| (self.progress.iteration, path)).into_iter().collect());
        }
        let mut kept = self.progress.kept();
        if matches!(self.data, Data::Task(_)) {
            // The validation part has chosen; choosing again here would mean learning from the test part.
            kept.truncate(1);
        }
        self.group.tell(|| Ok(self.run.kept_checkpoints(&kept)?.into_iter().collect()))
    }

    /// Whether an evaluation has reached `solved_at`, for tasks that are scored by accuracy.
    fn is_solved(&self) -> bool {
        let goal = self.experiment.train.solved_at;
        let best = self.progress.best.first().map(|best| 1.0 - best.score);
        // The accuracy was stored as one minus itself.
        goal > 0.0 && self.experiment.data.task.is_scored_by_accuracy() && best.is_some_and(|accuracy| accuracy >= goal - 1e-12)
    }

    fn read_model(&self, checkpoint: &Path) -> Result<AnyModel> {
        Ok(crate::checkpoint::load_any_model(checkpoint, &self.experiment.train.device.open()?)?.model)
    }
}

/// The model of `experiment` before its first update.
fn first_model(experiment: &Experiment, data: &Data, run: &Path, device: &Device) -> Result<AnyModel> {
    let model = AnyModel::new(&experiment.model, experiment.train.seed, device)?;
    match Start::of(&experiment.train, run)? {
        Some(start) => start.weights_into(model, &experiment.model, data.table_task().as_ref()),
        None => Ok(model),
    }
}
