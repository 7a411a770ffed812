//! What a trained model is scored on: the data of its run, or a text or table of yours.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use minrnn::checkpoint::{LoadedModel, load_any_model, load_table_task};
use minrnn::data::table::{Comparison, TableTask, read_series};
use minrnn::data::{EvaluationSet, FixedBatches, RandomWindows, SequenceTask, TextPart, Tokenizer, expect_lasting};
use minrnn::model::AnyModel;
use minrnn::predict::predict;
use minrnn::rng::Purpose;
use minrnn::train::{
    Data, Evaluation, Experiment, TextSize, Windows, evaluation_memory, find_checkpoint, find_scored, full_pass, has_learned_all, run_of,
};

use super::{Args, expect_finite, tokens};
use crate::failure::WrongInput;
use crate::say::say;
use crate::{input, interrupt};

/// What is scored, by its printed name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scored {
    /// Batches drawn at random, the same every time.
    FixedBatches,
    /// All of a text in windows that start anew.
    FullPass,
    /// All of a text, the state carried from window to window.
    FullPassCarried,
    /// The part of finite data that is kept for the test.
    TestPart,
    /// A table that does not belong to a run.
    WholeTable,
}

impl Scored {
    /// The name, also in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::FixedBatches => "fixed batches",
            Self::FullPass => "full pass",
            Self::FullPassCarried => "full pass, state carried",
            Self::TestPart => "test part",
            Self::WholeTable => "all of the table",
        }
    }
}

/// A trained model, and what it was trained on.
pub struct Loaded {
    pub checkpoint: PathBuf,
    pub experiment: Experiment,
    pub model: AnyModel,
    tokenizer: Option<Tokenizer>,
    table_task: Option<TableTask>,
}

/// What is scored.
pub struct Sets {
    pub sets: Vec<(Scored, Box<dyn EvaluationSet>)>,
    /// The size of a text.
    pub size: Option<TextSize>,
    pub comparison: Option<Box<dyn Comparison>>,
    /// Notes on the table, printed before it is scored.
    pub told: Vec<String>,
}

impl Loaded {
    /// The model that `args` ask for.
    pub fn new(args: &Args) -> anyhow::Result<Self> {
        // A model that has learned from the run's own test part is not scored on it.
        let checkpoint = if args.data.is_some() { find_checkpoint(&args.run)? } else { find_scored(&args.run)? };
        let LoadedModel { config, model, tokenizer } = load_any_model(&checkpoint, &args.device.open()?)?;
        let experiment = Experiment::of_checkpoint(&config, &checkpoint)?;
        let table_task = load_table_task(&checkpoint, &config.model)?;
        table_task.as_ref().map_or(Ok(()), |_| args.expect_no_batches())?;
        let loaded = Self { checkpoint, experiment, model, tokenizer, table_task };
        loaded.expect_room(args, None)?;
        Ok(loaded)
    }

    fn expect_room(&self, args: &Args, longest: Option<usize>) -> anyhow::Result<()> {
        if args.device.is_cpu()? {
            evaluation_memory(&self.experiment, longest)?.expect_room(args.memory.given())?;
        }
        Ok(())
    }

    /// What is to be scored, with the tokens of a text in `folder`; `None` when `stop` was raised.
    pub fn sets(&self, args: &Args, folder: &Path, stop: &AtomicBool) -> anyhow::Result<Option<Sets>> {
        let of_task = |scored, data: &Data, told| -> anyhow::Result<Option<Sets>> {
            self.expect_room(args, data.longest())?;
            let set = data.fixed_batches(&self.experiment, args.batches(), Purpose::TestData)?;
            Ok(Some(Sets { sets: vec![(scored, set)], size: None, comparison: data.comparison(Purpose::TestData), told }))
        };
        let without_measures = |sets| Sets { sets, size: None, comparison: None, told: Vec::new() };
        let of_text = |part, tokenizer| text_sets(part, tokenizer, &self.experiment, args.batches(), stop);
        let data = args.data.as_deref().map(input::path);
        match (data, self.tokenizer.clone()) {
            (Some(path), _) if let Some(task) = self.table_task.clone() => {
                let read = move || Data::unseen_table(&path, &task);
                let Some(data) = interrupt::unless_stopped(stop, read).transpose()? else { return Ok(None) };
                let told = if let Data::Task(task) = &data { notes_on(&**task) } else { Vec::new() };
                of_task(Scored::WholeTable, &data, told)
            }
            (Some(path), Some(tokenizer)) => {
                let (shown, tokens) = (format!("'{}'", path.display()), folder.to_owned());
                let read = move || Data::test_text(&path, tokenizer, &tokens);
                let Some((part, tokenizer)) = interrupt::unless_stopped(stop, read).transpose()? else { return Ok(None) };
                tokens::expect_two(part.len()).and_then(|()| of_text(part, &tokenizer)).context(shown)
            }
            (Some(path), None) if self.experiment.data.task.reads_a_folder() => {
                let mut experiment = self.experiment.clone();
                experiment.data.path = Some(path);
                let data = Data::open(&experiment, folder)?;
                self.expect_room(args, data.longest())?;
                let set = data.fixed_batches(&experiment, args.batches(), Purpose::TestData)?;
                Ok(Some(without_measures(vec![(Scored::FixedBatches, set)])))
            }
            (Some(_), None) => {
                let sentence = "--data does not fit this model, which was trained on a task and reads no text; leave it out";
                Err(WrongInput(sentence.to_owned()).into())
            }
            (None, _) => match Data::open(&self.experiment, &run_of(&self.checkpoint)?)? {
                Data::Text { text, tokenizer } => of_text(text.test().clone(), &tokenizer),
                data @ Data::Task(_) => of_task(if data.has_parts() { Scored::TestPart } else { Scored::FixedBatches }, &data, Vec::new()),
            },
        }
    }

    /// Warns if the model has learned from `data`, as far as the run of its checkpoint tells: from its training file, or once it was retrained on all data
    /// from its validation file.
    pub fn tell_what_is_learned(&self, data: &Path) {
        let (data, of_run) = (input::path(data), &self.experiment.data);
        let validation = of_run.table.validation.as_deref().filter(|_| has_learned_all(&self.checkpoint).unwrap_or(false));
        let is_same = || Data::is_learned(&self.experiment, &self.checkpoint, &data).unwrap_or(false);
        let file = if validation.is_some() { "a file" } else { "the file" };
        let how = if [of_run.path.as_deref(), validation].into_iter().any(|own| input::same_file(Some(&data), own)) {
            "this is"
        } else if data.is_file() && is_same() {
            "this is the same as"
        } else {
            return;
        };
        say(format_args!("{how} {file} that the model has learned from: it says nothing of how well others are predicted"));
    }

    /// Refuses a score of `scored` that is not finite, naming the first sequence of a table that is at fault.
    pub fn expect_finite(&self, args: &Args, scored: Scored, evaluation: &Evaluation, stop: &AtomicBool) -> anyhow::Result<()> {
        if !evaluation.loss.is_finite()
            && let (Some(task), Some(path)) = (&self.table_task, args.data.as_deref().or(self.experiment.data.path.as_deref()))
            && expect_lasting(path).is_ok()
        {
            predict(self.model.sequence()?, task, &read_series(task, path)?, stop)?;
        }
        Ok(expect_finite(scored.name(), evaluation)?)
    }
}

/// Random windows, one pass with windows that start anew, and one that carries the state; only the last if the text is shorter than a window.
/// `None` when `stop` was raised.
fn text_sets(
    part: TextPart,
    tokenizer: &Tokenizer,
    experiment: &Experiment,
    batches: u64,
    stop: &AtomicBool,
) -> anyhow::Result<Option<Sets>> {
    let (train, found) = (&experiment.train, part.len());
    let size = TextSize::of_part(&part, tokenizer, stop)?;
    if size.is_none() {
        return Ok(None);
    }
    let carried = (Scored::FullPassCarried, full_pass(part.clone(), experiment, Windows::Carried)?);
    if found <= train.seq_len as u64 {
        let (carries, needed) = ("only the pass that carries the state is scored", train.seq_len + 1);
        let told = format!("the text has {found} tokens, fewer than the {needed} of a window (seq_len = {}): {carries}", train.seq_len);
        return Ok(Some(Sets { sets: vec![carried], size, comparison: None, told: vec![told] }));
    }
    let windows = RandomWindows::new(part.clone(), train.batch_size, train.seq_len, train.scoring_seed(), Purpose::TestData)?;
    let fixed = (Scored::FixedBatches, Box::new(FixedBatches::new(windows, batches)) as Box<dyn EvaluationSet>);
    let sets = vec![fixed, (Scored::FullPass, full_pass(part, experiment, Windows::Anew)?), carried];
    Ok(Some(Sets { sets, size, comparison: None, told: Vec::new() }))
}

/// Notes on a table that was not trained on.
pub fn notes_on(table: &dyn SequenceTask) -> Vec<String> {
    let understood = table.understood().map(str::to_owned);
    understood.into_iter().chain(table.unseen_names().iter().map(ToString::to_string)).collect()
}
