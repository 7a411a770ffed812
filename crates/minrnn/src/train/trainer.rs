//! The training loop: one update at a time, evaluations and checkpoints between them, and exact resume.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use burn::module::Module;
use burn::tensor::Device;
use minrnn_model::{
    CONFIG_FILE, Calibration, CheckpointConfig, CheckpointFiles, MAX_TASK_BYTES, WEIGHTS_FILE, write_atomic, write_safetensors,
};

use super::alike::{expect_shareable, traits, weights_trait};
use super::average::{Average, LAST_WEIGHTS_PREFIX};
use super::config::Experiment;
use super::differentiate::{MicroBatch, differentiate, differentiate_policy};
use super::evaluate::{Evaluation, compare};
use super::group::Group;
use super::head::with_outputs;
use super::memory::training_memory_of;
use super::optimizer::{GradientMap, Optimizer};
use super::pointer::{MAX_PROGRESS_BYTES, PROGRESS_FILE, Pointer, TRAINING_FILE, read_pointer};
use super::progress::{Progress, Refit};
use super::ranks::TreeSum;
use super::run_dir::RunDir;
use super::schedule::Schedule;
use super::start::Start;
use super::task::{Data, FINAL_BATCHES, full_pass};
use super::temperature::{temperature, with_temperature};
use super::train_config::{Keep, TrainConfig};
use crate::checkpoint::{
    SURPRISE_FILE, TASK_FILE, TOKENIZER_FILE, load_named, load_weights, named_values, save_weights, state_tensors, tokenizer_of,
};
use crate::data::table::{Comparison, Confusion, Example, Measure, Spreads};
use crate::data::{BatchSource, Carry, EvaluationSet};
use crate::memory::Estimate;
use crate::model::{AnyModel, SequenceModelState};
use crate::nn::{Mode, State};
use crate::ops::with_precision;
use crate::rng::{Purpose, substream};
use crate::{Error, Result, RunProblem};

const STATE_PREFIX: &str = "state.";

/// Name, shape and bits of a tensor of a carried state.
type Carried = (String, Vec<usize>, Vec<u32>);

/// What happened in one update.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Update {
    /// Updates made, this one included.
    pub iteration: u64,
    /// Mean loss of the micro-steps.
    pub loss: f64,
    /// Learning rate.
    pub lr: f64,
    /// Norm of all gradients before clipping.
    pub grad_norm: f64,
    /// Tokens fed in this update, per second.
    pub tokens_per_s: f64,
}

/// What the loop tells whoever watches it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// An update was made.
    Updated(Update),
    /// The model was evaluated after `iteration` updates.
    Evaluated {
        /// Updates made before it.
        iteration: u64,
        /// The measures on the evaluation batches.
        evaluation: Evaluation,
        /// Whether it is the best so far.
        is_best: bool,
    },
    /// A checkpoint is about to be written: what was told before belongs to it, and should be as safe as it will be.
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
    /// A stop was asked for; the checkpoint written then continues exactly here.
    Stopped,
}

/// The measures of a finished run.
#[derive(Debug, Clone, PartialEq)]
pub struct FinalReport {
    /// The checkpoint to use: the kept one that scored best on the report's batches, or the one that learned from all data in the end.
    pub checkpoint: PathBuf,
    /// The checkpoint that the measures belong to.
    pub scored: PathBuf,
    /// Updates made before that checkpoint.
    pub iteration: u64,
    /// The measures of fixed batches, [`FINAL_BATCHES`] after a training that was not short, or of the test part of finite data.
    pub fixed: Evaluation,
    /// Batches that each checkpoint was scored on, where the training was too short for all.
    pub shortened_to: Option<u64>,
    /// The same in the data's own units, beside those of a baseline.
    pub compared: Vec<Measure>,
    /// Which classes were taken for which, of a table with classes.
    pub confusion: Option<Confusion>,
    /// Single sequences, the worst first.
    pub examples: Vec<Example>,
    /// The measures of each kept checkpoint on the same batches, by iteration; of finite data only the one that validated best.
    pub kept: Vec<(u64, Evaluation)>,
    /// What the logits of the model to use were divided by, for probabilities that hold.
    pub temperature: Option<f64>,
    /// What the quantiles of the model to use were spread by, for intervals that hold.
    pub spreads: Option<Spreads>,
    /// The measures of one pass over all of the test text, windows starting anew; none where that has more batches than were trained on.
    pub full_pass: Option<Evaluation>,
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
    /// States that the next update goes on from: none, that after the last micro-step, or that of each of this process's.
    carried: Vec<SequenceModelState>,
    average: Option<Average>,
    progress: Progress,
    memory: Estimate,
    group: Group,
}

impl Trainer {
    /// Starts `experiment` in `run`, or continues it from the run's last checkpoint when there is one.
    ///
    /// # Errors
    /// When the experiment is not valid, its data cannot be used, more memory is needed than there is, the checkpoint is damaged, or the run
    /// began with settings that must not change ([`Experiment::expect_continues`]); the run is left as it was then.
    pub fn new(experiment: Experiment, run: RunDir) -> Result<Self> {
        Self::among(experiment, run, Group::alone())
    }

    /// The same as one process of `group`, of which all have the same `experiment`. The first has the run directory and alone writes to it, the
    /// others read [`beside`](RunDir::beside) it. Each takes its share of the micro-steps of every update, and all have the same weights.
    ///
    /// # Errors
    /// On every process, as [`new`](Self::new) on any of them, when the processes would not compute the same, or when the micro-steps cannot be
    /// shared out among them.
    pub fn among(experiment: Experiment, run: RunDir, group: Group) -> Result<Self> {
        let last = group.tell(|| {
            experiment.validate()?;
            // Seen before anything is trained: with these damaged nothing could be saved.
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
        let begun = if group.is_first() { trainer.run.begin(&trainer.experiment.to_toml()?) } else { Ok(()) };
        group.agree(begun)?;
        Ok(trainer)
    }

    fn with_data(mut experiment: Experiment, run: RunDir, group: Group, data: Data, checkpoint: Option<PathBuf>) -> Result<Self> {
        data.shape(&mut experiment.model);
        if let Some(extent) = data.extent() {
            experiment.train.fit_to(extent);
        }
        experiment.expect_room_for(data.longest())?;
        let memory = training_memory_of(&experiment, &experiment.model, data.longest())?;
        memory.expect_room(experiment.train.memory_limit)?;
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

    /// Counters of the run.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Trains until the end, the end of patience, a solved task, or a raised `stop`, and tells `watch` what happens. Whatever the ending, the last
    /// checkpoint holds everything up to it.
    ///
    /// # Errors
    /// When loss or gradients are not finite, data cannot be read, or a checkpoint cannot be written.
    pub fn run(&mut self, stop: &AtomicBool, mut watch: impl FnMut(Event) -> Result<()>) -> Result<Ending> {
        let train = self.experiment.train.clone();
        let group = self.group.clone();
        let mut unsaved = false;
        // What the watchers of other processes answered, and whether these were asked to stop, is heard with the next update.
        let mut heard = Ok(());
        let mut stopped = group.agree_all(Ok(stop.load(Ordering::Relaxed)))?.contains(&true);
        loop {
            if group.is_alone() {
                std::mem::replace(&mut heard, Ok(()))?;
                stopped = stop.load(Ordering::Relaxed);
            }
            let iteration = self.progress.iteration;
            let refit = self.progress.refit;
            let finished = iteration >= self.end_of_round();
            // All data are learned from in the second round, and nothing is held out that could be scored.
            let is_scored = refit.is_none() && self.validation.n_batches() > 0;
            let evaluation_due = is_scored && (finished || iteration.is_multiple_of(train.eval_every));
            if evaluation_due && self.progress.evaluated_at != Some(iteration) && !stopped {
                group.agree(std::mem::replace(&mut heard, Ok(())))?;
                // Stopped inside an evaluation, the iteration counts as not evaluated and is evaluated after the resume.
                if let Some(evaluation) = compare(&group, &self.model.valid(), &mut *self.validation, None, stop)? {
                    if !evaluation.loss.is_finite() {
                        let tensor = "the test loss".to_owned();
                        return group.alike(Err(Error::NonFinite { iteration, tensor, value: evaluation.loss }));
                    }
                    let score = self.data.score(&evaluation);
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
            let ending = if stopped {
                Some(Ending::Stopped)
            } else if refit.is_none() && self.is_solved() {
                Some(Ending::Solved)
            } else if finished {
                Some(Ending::Finished)
            } else if refit.is_none() && train.patience > 0 && self.progress.without_gain >= train.patience {
                Some(Ending::EarlyStopped)
            } else {
                None
            };
            let save_due = ending.is_some() || iteration.is_multiple_of(train.checkpoint_every);
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

    /// Writes a checkpoint where all that was `heard` is well; gives what `watch` answers then.
    fn save_watched(&self, is_best: bool, heard: Result<()>, watch: &mut impl FnMut(Event) -> Result<()>) -> Result<Result<()>> {
        self.group.agree(heard.and_then(|()| watch(Event::Saving)))?;
        Ok(watch(Event::Saved(self.save(is_best)?)))
    }

    /// The checkpoint that `pointer` names, as the first process finds it.
    fn checkpoint(&self, pointer: Pointer) -> Result<Option<PathBuf>> {
        self.group.tell(|| self.run.checkpoint(pointer))
    }

    /// Updates after which the round ends.
    pub fn end_of_round(&self) -> u64 {
        self.progress.refit.map_or(self.experiment.train.max_iterations, |refit| refit.began_at + refit.updates)
    }

    /// After a finished round: begins to learn anew from all data where the experiment asks for it and that was not done, as long as it took to the
    /// weights that are kept. False where nothing is left to be trained, `None` when `stop` was raised.
    ///
    /// # Errors
    /// When a pointer to the checkpoint that is kept cannot be written, or data cannot be read.
    pub fn begin_refit(&mut self, stop: &AtomicBool) -> Result<Option<bool>> {
        if !self.experiment.train.refit || self.progress.refit.is_some() || self.data.all().is_none() {
            return Ok(Some(false));
        }
        let Some((updates, kept)) = self.kept()?.into_iter().next() else { return Ok(Some(false)) };
        self.group.tell(|| {
            self.run.make_best(&kept)?;
            if self.data.has_test_file() { Ok(()) } else { self.run.make_scored(&kept) }
        })?;
        self.progress.temperature = self.group.agree(self.temperature(&kept))?;
        let Some(spreads) = self.spreads(&kept, stop)? else { return Ok(None) };
        self.progress.spreads = spreads;
        self.progress.best.retain(|best| best.iteration == updates);
        self.progress.refit = Some(Refit { began_at: self.progress.iteration, updates });
        let begun = self.begin_anew();
        self.group.agree(begun)?;
        Ok(Some(true))
    }

    fn begin_anew(&mut self) -> Result<()> {
        let device = self.experiment.train.device.open()?.autodiff();
        self.model = first_model(&self.experiment, &self.data, self.run.path(), &device)?;
        self.optimizer = Optimizer::new(&self.experiment.train);
        self.carried.clear();
        (self.average, self.progress.averaged) = (None, 0);
        self.begin_round()
    }

    /// How sure the model of the checkpoint at `kept` may be of its classes, by what will be learned from next and was not yet.
    fn temperature(&self, kept: &Path) -> Result<Option<f64>> {
        if !self.data.is_scored_by_accuracy() {
            return Ok(None);
        }
        let mut set = self.data.fixed_batches(&self.experiment, FINAL_BATCHES, self.held_out())?;
        temperature(&self.read_model(kept)?, &mut *set)
    }

    /// How wide the intervals of the model of the checkpoint at `kept` should be, by what will be learned from next and was not yet; `None` when `stop`
    /// was raised.
    fn spreads(&self, kept: &Path, stop: &AtomicBool) -> Result<Option<Option<Spreads>>> {
        let Some(mut comparison) = self.data.comparison(self.held_out()) else { return Ok(Some(None)) };
        if !comparison.find_spreads() {
            return Ok(Some(None));
        }
        let set = self.data.fixed_batches(&self.experiment, FINAL_BATCHES, self.held_out());
        let (mut set, model) = self.group.agree(set.and_then(|set| Ok((set, self.read_model(kept)?))))?;
        let compared = compare(&self.group, &model, &mut *set, Some(&mut *comparison), stop)?;
        Ok(compared.map(|_| comparison.spreads()))
    }

    /// The part that a second round learns from and the first does not.
    fn held_out(&self) -> Purpose {
        if self.data.has_test_file() { Purpose::ValidationData } else { Purpose::TestData }
    }

    /// Refuses to go on to an end that the run is past.
    fn expect_not_past(&self) -> Result<()> {
        let made = self.progress.refit.map_or(self.progress.iteration, |refit| refit.began_at);
        let most = self.experiment.train.max_iterations;
        if made <= most {
            return Ok(());
        }
        let sentence = format!("max_iterations must be at least {made}, found {most}: so many updates are made; leave it out");
        Err(Error::MustStay(sentence))
    }

    /// Goes back to the end of the first round, where that is to be longer than it was for the second, which is that of `checkpoint`.
    fn go_back(&mut self, checkpoint: &Path) -> Result<()> {
        let Some(Refit { began_at, .. }) = self.progress.refit else { return Ok(()) };
        let config = CheckpointFiles::open(checkpoint)?.config()?;
        let of_before = config.sections.get("train").and_then(|train| train.get("max_iterations")?.as_u64());
        if of_before.is_none_or(|of_before| self.experiment.train.max_iterations <= of_before) {
            return Ok(());
        }
        match self.run.checkpoint(Pointer::Scored)? {
            Some(scored) if !self.experiment.train.validates() => self.restore(&scored),
            // Of a round that had a best checkpoint, this is not always the last; the end is gone.
            _ => Err(Error::MustStay(format!(
                "max_iterations must stay {began_at}: the run has learned anew from all data since, and only its best checkpoint of before is kept; \
                 start a new run in another directory"
            ))),
        }
    }

    /// What a round learns from, and how fast.
    fn begin_round(&mut self) -> Result<()> {
        if let Some(Refit { updates, .. }) = self.progress.refit {
            let all = self.data.all().ok_or_else(|| {
                Error::malformed(self.run.path(), "its last checkpoint learned from all data, which the experiment has no more")
            })?;
            self.source = all.training(&self.experiment)?;
            self.schedule = Schedule::of_round(&self.experiment.train, updates);
        }
        Ok(())
    }

    /// The checkpoints of the first round that are kept, by iteration; of finite data the one that is kept in the end.
    fn kept(&self) -> Result<Vec<(u64, PathBuf)>> {
        if !self.experiment.train.validates() {
            let last = self.checkpoint(Pointer::Last)?;
            return Ok(last.map(|path| (self.progress.iteration, path)).into_iter().collect());
        }
        let mut kept = self.progress.kept();
        if matches!(self.data, Data::Task(_)) {
            // The validation part chose; to choose again here would be to learn from the test part.
            kept.truncate(1);
        }
        self.group.tell(|| Ok(self.run.kept_checkpoints(&kept)?.into_iter().collect()))
    }

    /// Whether an evaluation has reached `solved_at`, for tasks that are scored by accuracy.
    fn is_solved(&self) -> bool {
        let goal = self.experiment.train.solved_at;
        let best = self.progress.best.first().map(|best| 1.0 - best.score);
        // An accuracy went through one minus itself.
        goal > 0.0 && self.data.is_scored_by_accuracy() && best.is_some_and(|accuracy| accuracy >= goal - 1e-12)
    }

    /// One update: `accumulation` micro-steps, their mean gradient clipped, one step of the optimiser.
    ///
    /// # Errors
    /// When the loss or a gradient is not finite (parameters and moments are as before then) or data cannot be read.
    pub fn update(&mut self) -> Result<Update> {
        Ok(self.update_together(Ok(()), false)?.0)
    }

    /// An update of all processes, where nothing went wrong on any of them `before`; also says whether one of them is to `stop`.
    fn update_together(&mut self, before: Result<()>, stop: bool) -> Result<(Update, bool)> {
        let started = Instant::now();
        let (iteration, of_round) = (self.progress.iteration, self.progress.of_round());
        let micro_steps = self.experiment.train.accumulation as u64;
        let (told, found) = match before.and_then(|()| self.differentiate_share(iteration, of_round)) {
            Ok((losses, gradients, carried)) => (Ok((losses, gradients.len(), stop)), Some((gradients, carried))),
            Err(error) => (Err(error), None),
        };
        let told = self.group.agree_all(told)?;
        let (mut gradients, carried) = found.expect("no process has an error");
        if told.iter().any(|(_, len, _)| *len != told[0].1) {
            let problem = "the processes have found gradients of different parameters; start the same program everywhere";
            return self.group.alike(Err(Error::Config(problem.to_owned())));
        }
        let loss_sum: f64 = told.iter().flat_map(|(losses, ..)| losses).map(|&bits| f64::from_bits(bits)).sum();
        if !self.group.is_alone() {
            gradients = gradients.through(|values| self.group.sum(values));
        }
        let lr = self.schedule.lr(of_round);
        let scale = 1.0 / micro_steps as f64;
        let (model, grad_norm) = self.group.alike(self.optimizer.update(self.model.clone(), gradients, scale, lr, of_round))?;
        self.model = model;
        self.carried = carried;
        let tokens = micro_steps * self.source.tokens_per_batch() as u64;
        let seconds = started.elapsed().as_secs_f64();
        self.progress.iteration += 1;
        self.progress.tokens += tokens;
        self.progress.seconds += seconds;
        self.average();
        let tokens_per_s = tokens as f64 / seconds;
        let update = Update { iteration: iteration + 1, loss: loss_sum * scale, lr, grad_norm, tokens_per_s };
        Ok((update, told.iter().any(|(.., stop)| *stop)))
    }

    /// Of this process's micro-steps the losses as bits, the sum of their gradients, and the states that are carried on.
    fn differentiate_share(&mut self, iteration: u64, of_round: u64) -> Result<(Vec<u64>, GradientMap, Vec<SequenceModelState>)> {
        let device = self.model.device();
        let (mut losses, mut sum) = (Vec::new(), TreeSum::new());
        let (carry, mut carried) = (self.source.carry(), Vec::new());
        for (at, micro) in self.group.share(self.experiment.train.accumulation as u64).enumerate() {
            let state = match carry {
                Carry::Nowhere => None,
                Carry::ToNextBatch => carried.pop().or_else(|| self.carried.first().cloned()),
                Carry::ToNextUpdate => self.carried.get(at).cloned(),
            };
            let batch = self.source.batch(of_round, micro)?;
            let batch = MicroBatch::new(&batch, &device)?;
            let mode = Mode::Train { dropout_key: dropout_key(self.experiment.train.seed, of_round, micro) };
            let train = &self.experiment.train;
            let found = with_precision(train.precision, || match &self.model {
                AnyModel::Sequence(model) => {
                    let found = differentiate(model, batch, state, mode, train.checkpoint_blocks);
                    (found.loss, found.gradients, Some(found.state))
                }
                AnyModel::Policy(policy) => {
                    let (loss, gradients) = differentiate_policy(policy, batch, mode, train.checkpoint_blocks);
                    (loss, gradients, None)
                }
            });
            let (loss, gradients, state) = found;
            carried.extend(state.filter(|_| carry != Carry::Nowhere));
            if !loss.is_finite() {
                return Err(Error::NonFinite { iteration, tensor: "the loss".to_owned(), value: loss });
            }
            losses.push(loss.to_bits());
            sum.push(gradients, GradientMap::plus);
        }
        Ok((losses, sum.total(GradientMap::plus).unwrap_or_default(), carried))
    }

    /// Takes the weights into their average, where that is kept and the round is near its end.
    fn average(&mut self) {
        let updates = self.progress.refit.map_or(self.experiment.train.max_iterations, |refit| refit.updates);
        if self.experiment.train.keep != Keep::Average || self.progress.of_round() <= Average::begins_after(updates) {
            return (self.average, self.progress.averaged) = (None, 0);
        }
        self.progress.averaged += 1;
        self.average.get_or_insert_default().add(&self.model, self.progress.averaged);
    }

    /// Scores with fixed test batches ([`final_batches`] of them) the kept checkpoints of a text, or the one that the validation batches of a task chose; makes the
    /// best of them the run's best, and scores that one with one pass over the test text. How surprising held-out rows were is kept with it. `None` when
    /// `stop` was raised.
    ///
    /// # Errors
    /// When a checkpoint cannot be read, or the run cannot be written.
    pub fn final_report(&self, stop: &AtomicBool) -> Result<Option<FinalReport>> {
        let mut best: Option<(PathBuf, u64, Evaluation)> = None;
        let (mut kept, mut compared, mut confusion, mut examples, mut surprises) = (Vec::new(), Vec::new(), None, Vec::new(), [None, None]);
        let refitted = self.progress.refit.map(|_| self.checkpoint(Pointer::Last)).transpose()?.flatten();
        let candidates = match (&refitted, self.checkpoint(Pointer::Scored)?) {
            (Some(_), Some(scored)) => vec![(self.progress.refit.map_or(0, |refit| refit.updates), scored)],
            (Some(refitted), None) => vec![(self.progress.iteration, refitted.clone())],
            (None, _) => self.kept()?,
        };
        let train = &self.experiment.train;
        let n_batches = final_batches(train, self.progress.iteration, candidates.len() as u64);
        for (iteration, path) in candidates {
            let set = self.data.fixed_batches(&self.experiment, n_batches, Purpose::TestData);
            let (mut set, model) = self.group.agree(set.and_then(|set| Ok((set, self.read_model(&path)?))))?;
            let mut comparison = self.data.comparison(Purpose::TestData);
            // The model to use is another than the one that is scored.
            if let (Some(comparison), Some(spreads)) = (&mut comparison, &self.progress.spreads)
                && refitted.as_ref().is_some_and(|refitted| *refitted != path)
            {
                comparison.spread_by(spreads);
            }
            let Some(evaluation) = compare(&self.group, &model, &mut *set, comparison.as_deref_mut(), stop)? else { return Ok(None) };
            kept.push((iteration, evaluation));
            if best.as_ref().is_none_or(|(_, _, best)| self.data.score(&evaluation) < self.data.score(best)) {
                best = Some((path, iteration, evaluation));
                compared = comparison.as_ref().map_or_else(Vec::new, |comparison| comparison.measures());
                examples = comparison.as_ref().map_or_else(Vec::new, |comparison| comparison.examples());
                let calibration = |surprises: &[f64]| (!surprises.is_empty()).then(|| Calibration::of(surprises.iter().copied()));
                let of = |found: fn(&dyn Comparison) -> &[f64]| comparison.as_deref().and_then(|comparison| calibration(found(comparison)));
                surprises = [of(|comparison| comparison.surprises()), of(|comparison| comparison.surprises_when_spread())];
                confusion = comparison.and_then(|comparison| comparison.confusion().cloned());
            }
        }
        let Some((scored, iteration, fixed)) = best else {
            let problem = "the run has no checkpoint to report on; train it first";
            return self.group.alike(Err(Error::malformed(self.run.path(), problem)));
        };
        let checkpoint = refitted.unwrap_or_else(|| scored.clone());
        self.group.tell(|| {
            self.run.make_best(&checkpoint)?;
            let [of_scored, when_spread] = &surprises;
            for (path, surprise) in [(&scored, of_scored), (&checkpoint, if when_spread.is_some() { when_spread } else { of_scored })] {
                if let Some(surprise) = surprise {
                    CheckpointFiles::add(path, SURPRISE_FILE, surprise.to_json().as_bytes())?;
                }
            }
            Ok(())
        })?;
        let full_pass = match &self.data {
            Data::Text { text, .. } => {
                let set = full_pass(text.test().clone(), &self.experiment, false);
                let (mut set, model) = self.group.agree(set.and_then(|set| Ok((set, self.read_model(&checkpoint)?))))?;
                if set.n_batches() > trained_on(train, self.progress.iteration).max(train.eval_iterations) {
                    None
                } else {
                    let Some(evaluation) = compare(&self.group, &model, &mut *set, None, stop)? else { return Ok(None) };
                    Some(evaluation)
                }
            }
            Data::Task(_) => None,
        };
        let shortened_to = Some(n_batches).filter(|&n| n < FINAL_BATCHES && !self.data.has_parts());
        Ok(Some(FinalReport {
            checkpoint,
            scored,
            iteration,
            fixed,
            shortened_to,
            compared,
            confusion,
            examples,
            kept,
            temperature: self.progress.temperature,
            spreads: self.progress.spreads.clone(),
            full_pass,
        }))
    }

    /// What a score of finite data is not to be taken for, where the model began with the weights of another.
    pub fn told_of_start(&self) -> Option<String> {
        let from = self.experiment.train.from.as_ref().filter(|_| self.data.has_parts())?;
        Some(format!(
            "the weights of '{}' may have learned from what is scored here: where they did, the score flatters the model",
            from.display()
        ))
    }

    fn read_model(&self, checkpoint: &Path) -> Result<AnyModel> {
        Ok(crate::checkpoint::load_any_model(checkpoint, &self.experiment.train.device.open()?)?.model)
    }

    /// Writes a checkpoint of everything; the run then continues exactly from here.
    ///
    /// # Errors
    /// When it cannot be written, or processes have come to other weights than the first; earlier checkpoints are untouched then.
    pub fn save(&self, is_best: bool) -> Result<PathBuf> {
        if !self.group.is_alone() {
            self.group.expect_alike(vec![weights_trait(&self.model)])?;
        }
        let carried = self.all_carried()?;
        self.group
            .tell(|| self.run.save(self.progress.iteration, is_best, &self.progress.kept(), |directory| self.write(directory, carried)))
    }

    /// The tensors of the states that all processes carry.
    fn all_carried(&self) -> Result<Vec<Carried>> {
        let first = self.group.share(self.experiment.train.accumulation as u64).start;
        let mut own = Vec::new();
        for (state, micro) in self.carried.iter().zip(first..) {
            for (name, data) in state.tensors() {
                let shape = data.shape().to_vec();
                let values = data.try_to_vec::<f32>().map_err(|error| Error::Shape(format!("state '{name}': {error:?}")))?;
                // As bits: JSON has no place for what is not finite.
                own.push((self.state_prefix(micro) + &name, shape, values.into_iter().map(f32::to_bits).collect()));
            }
        }
        Ok(self.group.agree_all(Ok(own))?.into_iter().flatten().collect())
    }

    /// What the names of the state's tensors begin with that micro-step `micro` goes on from.
    fn state_prefix(&self, micro: u64) -> String {
        match self.source.carry() {
            Carry::ToNextUpdate => format!("{STATE_PREFIX}{micro}."),
            Carry::Nowhere | Carry::ToNextBatch => STATE_PREFIX.to_owned(),
        }
    }

    fn write(&self, directory: &Path, carried: Vec<Carried>) -> Result<()> {
        let mut config = CheckpointConfig::new(self.experiment.model.clone());
        let to_json = |error: serde_json::Error| Error::malformed(directory.join(CONFIG_FILE), error.to_string());
        config.sections.insert("description".to_owned(), self.experiment.description.clone().into());
        config.sections.insert("data".to_owned(), serde_json::to_value(&self.experiment.data).map_err(to_json)?);
        config.sections.insert("train".to_owned(), serde_json::to_value(&self.experiment.train).map_err(to_json)?);
        config.write(directory)?;
        let live = self.average.as_ref().map(|_| Average::of_model(&self.model));
        let saved = save_weights(&self.model_to_use(), directory.join(WEIGHTS_FILE));
        // Copies of a model share their running statistics, which are those of the average now.
        drop(live.map(|live| live.of(self.model.clone())));
        saved?;
        if let Some(tokenizer) = self.data.tokenizer() {
            tokenizer.save(directory.join(TOKENIZER_FILE))?;
        }
        if let Some(text) = self.task_text(directory)? {
            write_atomic(directory.join(TASK_FILE), text.as_bytes())?;
        }
        let mut tensors: Vec<(String, Vec<usize>, Cow<'_, [f32]>)> = Vec::new();
        for (name, values) in self.optimizer.moments() {
            tensors.push((name, vec![values.len()], Cow::Owned(values)));
        }
        for (name, shape, bits) in carried {
            tensors.push((name, shape, Cow::Owned(bits.into_iter().map(f32::from_bits).collect())));
        }
        if self.average.is_some() {
            let last = named_values(&self.model).into_iter();
            tensors.extend(last.map(|(name, shape, values)| (format!("{LAST_WEIGHTS_PREFIX}{name}"), shape, Cow::Owned(values))));
        }
        write_safetensors(directory.join(TRAINING_FILE), tensors, None)?;
        let mut progress = serde_json::to_vec_pretty(&self.progress).map_err(to_json)?;
        progress.push(b'\n');
        Ok(write_atomic(directory.join(PROGRESS_FILE), &progress)?)
    }

    /// The model with what is done to it before anyone else takes it.
    fn model_to_use(&self) -> AnyModel {
        let model = self.average.as_ref().map_or_else(|| self.model.clone(), |average| average.of(self.model.clone()));
        // Nothing is learned behind the end of the second round, so that nothing goes on from there.
        let Progress { temperature, spreads, refit, iteration, .. } = &self.progress;
        if refit.is_none() || *iteration < self.end_of_round() {
            return model;
        }
        let model = temperature.iter().fold(model, |model, temperature| with_temperature(model, *temperature));
        spreads.iter().fold(model, |model, spreads| with_outputs(model, |outputs| spreads.apply(outputs)))
    }

    fn restore(&mut self, directory: &Path) -> Result<()> {
        let files = CheckpointFiles::open(directory)?;
        let config = files.config()?;
        if config.model != self.experiment.model {
            let problem = "its model is not the one of the experiment; resume with the settings the run began with";
            return Err(Error::malformed(directory.join(CONFIG_FILE), problem));
        }
        self.experiment.expect_continues(&config)?;
        self.expect_same_data(&files)?;
        self.progress = serde_json::from_str(&files.text(PROGRESS_FILE, MAX_PROGRESS_BYTES)?)
            .map_err(|error| Error::malformed(files.path(PROGRESS_FILE), format!("expected the counters of a run: {error}")))?;
        self.progress.forget_untrained();
        let n_outputs = self.experiment.model.n_outputs;
        if self.progress.spreads.as_ref().is_some_and(|spreads| !spreads.fits(n_outputs)) {
            let problem = format!("its spreads are not those of {n_outputs} outputs; go on from another checkpoint");
            return Err(Error::malformed(files.path(PROGRESS_FILE), problem));
        }
        // The vocabulary in use is the run's own; that of the checkpoint should be as good for whoever takes the model from it.
        tokenizer_of(&files)?;
        let mut weights = files.weights(WEIGHTS_FILE)?;
        self.model = load_weights(self.model.clone(), &mut weights)?;
        weights.expect_empty()?;
        let path = files.path(TRAINING_FILE);
        let mut training = files.weights(TRAINING_FILE)?;
        self.average = None;
        if self.progress.averaged > 0 {
            self.average = Some(Average::of_model(&self.model));
            self.model = load_named(self.model.clone(), &mut training, LAST_WEIGHTS_PREFIX)?;
        }
        self.optimizer.restore(&self.model, self.progress.of_round(), |name, len| Ok(training.take(name, &[len])?))?;
        let (accumulation, carry) = (self.experiment.train.accumulation as u64, self.source.carry());
        let own = self.group.share(accumulation);
        // All that go through micro-steps are one.
        let n_states = if carry == Carry::ToNextUpdate { accumulation } else { 1 };
        let batch_size = self.experiment.train.batch_size;
        let misfit = |error| Error::malformed(&path, format!("{error}; resume with the batch_size the run began with"));
        self.carried.clear();
        for micro in 0..n_states {
            let state = state_tensors(&mut training, &self.state_prefix(micro))?;
            if !state.is_empty() {
                if n_states == 1 || own.contains(&micro) {
                    self.carried.push(self.model.sequence()?.init_state(batch_size).detach().load(&state).map_err(misfit)?);
                }
            } else if carry != Carry::Nowhere && self.progress.of_round() > 0 {
                let problem = "expected the state that is carried from window to window, found none; resume from another checkpoint";
                return Err(Error::malformed(&path, problem));
            }
        }
        training.expect_empty()?;
        Ok(())
    }

    /// What the checkpoint in `directory` says of the task's data.
    fn task_text(&self, directory: &Path) -> Result<Option<String>> {
        let Some(description) = self.data.description() else { return Ok(None) };
        let text = serde_json::to_string_pretty(&description);
        Ok(Some(text.map_err(|error| Error::malformed(directory.join(TASK_FILE), error.to_string()))? + "\n"))
    }

    /// Whether the task's data are those that the checkpoint's run was trained on.
    fn expect_same_data(&self, files: &CheckpointFiles) -> Result<()> {
        let path = files.path(TASK_FILE);
        let own = self.task_text(path.parent().unwrap_or(&path))?;
        // One that is missing where it should be there is told by its name.
        let found = if own.is_some() { Some(files.bytes(TASK_FILE, MAX_TASK_BYTES)?) } else { files.find(TASK_FILE, MAX_TASK_BYTES)? };
        if own.map(String::into_bytes) == found {
            return Ok(());
        }
        Err(Error::run(path, RunProblem::OtherData))
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

/// Batches that were fed in `iterations` updates.
fn trained_on(train: &TrainConfig, iterations: u64) -> u64 {
    iterations.saturating_mul(train.accumulation as u64)
}

/// Fixed batches that the final report scores each of `checkpoints` on after `iterations` updates: [`FINAL_BATCHES`], or after a short
/// training as many for all of them together as it was trained on, but no fewer than an evaluation has.
pub fn final_batches(train: &TrainConfig, iterations: u64, checkpoints: u64) -> u64 {
    let all = FINAL_BATCHES.max(train.eval_iterations);
    (trained_on(train, iterations) / checkpoints.max(1)).clamp(train.eval_iterations, all)
}

fn dropout_key(seed: u64, iteration: u64, micro: u64) -> u64 {
    use rand::Rng;
    substream(seed, Purpose::Dropout, iteration, micro).next_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_training_is_not_scored_on_more_batches_than_it_was_trained_on() {
        let train = TrainConfig { eval_iterations: 20, ..TrainConfig::default() };
        assert_eq!([5000, 600, 300, 30].map(|iterations| final_batches(&train, iterations, 3)), [200, 200, 100, 20]);
        assert_eq!([200, 150, 6].map(|iterations| final_batches(&train, iterations, 1)), [200, 150, 20]);
        let accumulated = TrainConfig { accumulation: 4, ..train.clone() };
        assert_eq!(final_batches(&accumulated, 30, 1), 120);
        assert_eq!(final_batches(&TrainConfig { eval_iterations: 400, ..train }, 1, 3), 400);
    }
}
