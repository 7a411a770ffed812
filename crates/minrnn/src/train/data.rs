//! From an experiment's `[data]` section to training and evaluation batches.

mod begun;
mod kept_digest;
mod unlearned_test;

use std::path::Path;

use minrnn_model::{ModelConfig, create_directories};

use self::begun::begun_task;
use self::kept_digest::{expect_unchanged, keep_digest};
use self::unlearned_test::expect_unlearned_test;
use super::data_config::{DataConfig, WindowSampling};
use super::experiment::Experiment;
use super::start::Start;
use crate::checkpoint::TOKENIZER_FILE;
use crate::data::table::{Comparison, Forecasting, Labelling, TableTask};
use crate::data::{
    BatchSource, EvaluationSet, Extent, FixedBatches, FullPass, IoKind, RandomWindows, SequenceTask, StatefulStream, TextData, TextPart,
    TokenFile, Tokenizer, encode_text, expect_lasting, text_sha256, train_tokenizer,
};
use crate::rng::Purpose;
use crate::{Error, Needed, Result, RunProblem};

/// The file of a run's tokens, in its directory.
pub(crate) const TOKENS_FILE: &str = "data/text.tokens";
/// Number of batches in the final report (nanoGPT's `eval_iters`); fewer after a short training ([`final_batches`](super::final_batches)).
pub const FINAL_BATCHES: u64 = 200;

/// The source of batches.
#[derive(Debug)]
pub enum Data {
    /// Tokenised text with its tokenizer.
    Text {
        /// Training and test parts.
        text: TextData,
        /// The vocabulary.
        tokenizer: Tokenizer,
    },
    /// Anything else.
    Task(Box<dyn SequenceTask>),
}

impl Data {
    /// The data of `experiment` for a new run in the directory `run`, where the tokenizer and tokens of a text are kept.
    ///
    /// # Errors
    /// When the text is missing, empty or not valid text, when a test table would be learned from, or the directory cannot be written.
    pub fn make(experiment: &Experiment, run: &Path) -> Result<Self> {
        let config = &experiment.data;
        config.path.as_deref().map_or(Ok(()), expect_lasting)?;
        expect_unlearned_test(experiment)?;
        Start::keep(&experiment.train, run)?;
        if let Some(task) = sequence_task(experiment, run)? {
            task.expect_to_begin()?;
            keep_digest(experiment, run)?;
            return Ok(Self::Task(task));
        }
        let path = config.path.as_ref().ok_or_else(|| Error::needed(Needed::File, "a text task needs a text"))?;
        let of_start = Start::of(&experiment.train, run)?.map(|start| start.tokenizer()).transpose()?.flatten();
        let tokenizer = match of_start {
            Some(tokenizer) if tokenizer.kind() != config.text.tokenizer => {
                let sentence = "the model that train.from names has another kind of tokenizer; set tokenizer to that";
                return Err(Error::Config(sentence.to_owned()));
            }
            Some(tokenizer) => tokenizer,
            None => train_tokenizer(config.text.tokenizer, config.text.bpe_vocab_size, path)?,
        };
        let tokens_path = run.join(TOKENS_FILE);
        create_folder(&tokens_path)?;
        let tokens = encode_text(path, &tokenizer, &tokens_path)?;
        tokenizer.save(run.join(TOKENIZER_FILE))?;
        Ok(Self::Text { text: TextData::new(tokens, config.train_fraction)?, tokenizer })
    }

    /// The data that [`make`](Self::make) left in the directory `run`. The text itself is no longer needed, but if it exists it must be
    /// unchanged. A table is still needed.
    ///
    /// # Errors
    /// When tokenizer or tokens are missing, damaged, or not those of `experiment`.
    pub fn open(experiment: &Experiment, run: &Path) -> Result<Self> {
        let config = &experiment.data;
        config.path.as_deref().filter(|path| path.exists()).map_or(Ok(()), expect_lasting)?;
        if let Some(task) = begun_task(experiment, run)? {
            expect_unchanged(experiment, run)?;
            return Ok(Self::Task(task));
        }
        let (tokenizer, tokens) = (Tokenizer::load(run.join(TOKENIZER_FILE))?, TokenFile::open(run.join(TOKENS_FILE))?);
        tokens.verify()?;
        if tokenizer.kind() != config.text.tokenizer {
            return Err(Error::MustStay("the run began with another tokenizer; leave that setting as it was".to_owned()));
        }
        if let Some(path) = &config.path
            && path.exists()
            && text_sha256(path)? != tokens.source_sha256()
        {
            return Err(Error::run(path, RunProblem::Changed("text")));
        }
        Ok(Self::Text { text: TextData::new(tokens, config.train_fraction)?, tokenizer })
    }

    /// The text file `path`, encoded by an existing model's tokenizer, as one test part, with its tokens in `folder`.
    ///
    /// # Errors
    /// When the text is missing, empty or outside the vocabulary.
    pub fn test_text(path: &Path, tokenizer: Tokenizer, folder: &Path) -> Result<(TextPart, Tokenizer)> {
        let tokens = encode_text(path, &tokenizer, folder.join("text.tokens"))?;
        Ok((TextPart::whole(tokens), tokenizer))
    }

    /// The table `path`, all of it for scoring, for a model whose task is `task`.
    ///
    /// # Errors
    /// When the table cannot be read or has classes unknown to the model.
    pub fn unseen_table(path: &Path, task: &TableTask) -> Result<Self> {
        Ok(Self::Task(match task {
            TableTask::Classify(_) | TableTask::Regress(_) => Box::new(Labelling::unseen(path, task)?),
            TableTask::Forecast(forecaster) => Box::new(Forecasting::unseen(path, forecaster)?),
        }))
    }

    /// Sets the inputs and outputs of `model` to fit the data.
    pub fn shape(&self, model: &mut ModelConfig) {
        let (reads, predicts) = match self {
            Self::Text { tokenizer, .. } => {
                let tokens = IoKind::Tokens { n: tokenizer.vocab_size() };
                (tokens, tokens)
            }
            Self::Task(task) => (task.reads(), task.predicts()),
        };
        shape(model, reads, predicts);
    }

    /// Sets what the data decided: how many rows of a sequence to label are a step.
    pub fn record(&self, config: &mut DataConfig) {
        if let Some(task @ (TableTask::Classify(_) | TableTask::Regress(_))) = self.table_task() {
            config.table.rows_per_step = task.rows_per_step();
        }
    }

    /// Length of a task's longest sequence in steps.
    pub fn longest(&self) -> Option<usize> {
        match self {
            Self::Text { .. } => None,
            Self::Task(task) => Some(task.longest()),
        }
    }

    /// The amount of training data, if it determines how long to train.
    pub fn extent(&self) -> Option<Extent> {
        match self {
            Self::Text { .. } => None,
            Self::Task(task) => task.extent(),
        }
    }

    /// The vocabulary of text.
    pub fn tokenizer(&self) -> Option<&Tokenizer> {
        match self {
            Self::Text { tokenizer, .. } => Some(tokenizer),
            Self::Task(_) => None,
        }
    }

    /// A description of a task's data for users of the model.
    pub fn description(&self) -> Option<serde_json::Value> {
        match self {
            Self::Text { .. } => None,
            Self::Task(task) => task.description(),
        }
    }

    /// The task on tables, if it is one.
    pub fn table_task(&self) -> Option<TableTask> {
        match self {
            Self::Text { .. } => None,
            Self::Task(task) => task.table_task(),
        }
    }

    /// Whether one part of finite data chooses the checkpoint, and another is scored once.
    pub fn has_parts(&self) -> bool {
        matches!(self, Self::Task(task) if task.has_parts())
    }

    /// Measures in the data's own units, if the task has any.
    pub fn comparison(&self, purpose: Purpose) -> Option<Box<dyn Comparison>> {
        match self {
            Self::Text { .. } => None,
            Self::Task(task) => task.comparison(purpose),
        }
    }

    /// The accuracy of guessing, if accuracies are compared on a scale where it is 0.
    pub fn chance(&self) -> Option<f64> {
        match self {
            Self::Text { .. } => None,
            Self::Task(task) => task.chance(),
        }
    }

    /// The same data, with everything outside a test file used for training; `None` if it already is, or if that is impossible.
    pub fn all(&self) -> Option<Self> {
        match self {
            Self::Text { .. } => None,
            Self::Task(task) => task.all().map(Self::Task),
        }
    }

    /// Whether the test part is a file of its own.
    pub fn has_test_file(&self) -> bool {
        matches!(self, Self::Task(task) if task.has_test_file())
    }

    /// What was inferred from a task's data, as a sentence.
    pub fn understood(&self) -> Option<&str> {
        match self {
            Self::Text { .. } => None,
            Self::Task(task) => task.understood(),
        }
    }

    /// Training batches.
    ///
    /// # Errors
    /// When a window does not fit the text.
    pub fn training(&self, experiment: &Experiment) -> Result<Box<dyn BatchSource>> {
        let train = &experiment.train;
        Ok(match self {
            Self::Task(task) => task.training(train.batch_size, train.seed)?,
            Self::Text { text, .. } => match experiment.data.text.sampling {
                WindowSampling::Random => {
                    let windows = RandomWindows::new(text.train().clone(), train.batch_size, train.seq_len, train.seed, Purpose::TrainData);
                    Box::new(windows.map_err(|error| naming_the_text(experiment, error))?)
                }
                sampling @ (WindowSampling::Stream | WindowSampling::Lanes) => {
                    let (part, accumulation) = (text.train().clone(), train.accumulation as u64);
                    let new = if sampling == WindowSampling::Stream { StatefulStream::new } else { StatefulStream::side_by_side };
                    let stream = new(part, train.batch_size, train.seq_len, accumulation, train.seed);
                    Box::new(stream.map_err(|error| naming_the_text(experiment, error))?)
                }
            },
        })
    }

    /// `n_batches` fixed batches that choose the best checkpoint (`Purpose::ValidationData`) or make the final report
    /// (`Purpose::TestData`).
    ///
    /// # Errors
    /// When a window does not fit the text.
    pub fn fixed_batches(&self, experiment: &Experiment, n_batches: u64, purpose: Purpose) -> Result<Box<dyn EvaluationSet>> {
        let train = &experiment.train;
        Ok(match self {
            Self::Task(task) => task.evaluation(train.batch_size, train.scoring_seed(), purpose, n_batches)?,
            Self::Text { text, .. } => {
                let windows = RandomWindows::new(text.test().clone(), train.batch_size, train.seq_len, train.scoring_seed(), purpose);
                Box::new(FixedBatches::new(windows.map_err(|error| naming_the_text(experiment, error))?, n_batches))
            }
        })
    }

    /// Every token of the test text once, in such windows.
    ///
    /// # Errors
    /// When the test part is shorter than one prediction. `Ok(None)` for tasks other than text.
    pub fn full_pass(&self, experiment: &Experiment, windows: Windows) -> Result<Option<Box<dyn EvaluationSet>>> {
        let Self::Text { text, .. } = self else { return Ok(None) };
        full_pass(text.test().clone(), experiment, windows).map(Some)
    }
}

/// Sets the inputs and outputs of `model`.
pub(super) fn shape(model: &mut ModelConfig, reads: IoKind, predicts: IoKind) {
    (model.vocab_size, model.input_width) = match reads {
        IoKind::Tokens { n } => (n, 0),
        IoKind::Values { width } => (0, width),
    };
    model.n_outputs = match predicts {
        tokens @ IoKind::Tokens { .. } if tokens == reads => 0,
        IoKind::Tokens { n } | IoKind::Values { width: n } => n,
    };
}

/// What a model reads and what it predicts.
type Signals = (IoKind, IoKind);

/// What a model of the task reads and predicts, and the steps of the longest sequence if known; `None` for text. Nothing is written, and
/// data are read only if they determine the result.
pub(super) fn signals(experiment: &Experiment) -> Result<Option<(Signals, Option<usize>)>> {
    let data = &experiment.data;
    if let Some(io) = data.task.spec().io {
        return Ok(Some((io(data), None)));
    }
    Ok(sequence_task(experiment, Path::new("."))?.map(|task| ((task.reads(), task.predicts()), Some(task.longest()))))
}

/// The task that is not plain text, of the run in the directory `run`.
pub(super) fn sequence_task(experiment: &Experiment, run: &Path) -> Result<Option<Box<dyn SequenceTask>>> {
    let (data, train) = (&experiment.data, &experiment.train);
    data.task.spec().open.map(|open| open(data, train, run)).transpose()
}

/// Makes the folder of a `file` of the run's data.
pub(super) fn create_folder(file: &Path) -> Result<()> {
    let folder = file.parent().expect("the data lie in a folder");
    create_directories(folder).map_err(|source| Error::io("create the data directory", folder, source))
}

/// The state from which each window of a pass over a text starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Windows {
    /// The initial state.
    Anew,
    /// The state after the previous window.
    Carried,
}

/// Every token of `part` once, in such windows.
///
/// # Errors
/// When the part is shorter than one prediction.
pub fn full_pass(part: TextPart, experiment: &Experiment, windows: Windows) -> Result<Box<dyn EvaluationSet>> {
    let train = &experiment.train;
    Ok(match windows {
        Windows::Anew => Box::new(FullPass::new(part, train.batch_size, train.seq_len)?),
        Windows::Carried => Box::new(FullPass::carried(part, train.seq_len)?),
    })
}

/// An error about a part of the text, with the name of the file added.
fn naming_the_text(experiment: &Experiment, error: Error) -> Error {
    match &experiment.data.path {
        Some(path) => error.in_file(path),
        None => error,
    }
}
