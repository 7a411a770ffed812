//! From the `[data]` section of an experiment to batches: what is trained on and what is scored.

use std::path::{Path, PathBuf};

use minrnn_stream::{ModelConfig, create_directories, read_text, write_atomic};

use super::config::Experiment;
use super::data_config::{CopyEncoding, DataConfig, Task, TokenizerKind, WindowSampling};
use super::evaluate::Evaluation;
use crate::checkpoint::TOKENIZER_FILE;
use crate::data::table::{Classification, Comparison, Forecasting, TableTask};
use crate::data::{
    self, BatchSource, Copying, Encoding, EvaluationSet, FixedBatches, FullPass, Image, ListOps, RandomWindows, Retrieval, SequenceTask,
    Signal, StatefulStream, TextData, TextPart, TokenFile, Tokenizer, encode_text, expect_lasting, text_sha256,
};
use crate::rng::Purpose;
use crate::{Error, Result};

/// The folder of a run's data, in its directory.
pub(super) const DATA_FOLDER: &str = "data";
/// Tokens of a run's text, in its directory.
pub(super) const TOKENS_FILE: &str = "data/text.tokens";
/// SHA-256 of a run's table, in its directory.
pub(super) const TABLE_FILE: &str = "data/table.sha256";
/// Batches of the final report (nanoGPT's `eval_iters`).
pub const FINAL_BATCHES: u64 = 200;

/// Where batches come from.
#[derive(Debug)]
pub enum Data {
    /// Text cut into tokens, with its tokenizer.
    Text {
        /// Training and test part.
        text: TextData,
        /// The vocabulary.
        tokenizer: Tokenizer,
    },
    /// Anything else.
    Task(Box<dyn SequenceTask>),
}

impl Data {
    /// The data of `experiment` for a new run in the directory `run`, where tokenizer and tokens of a text are kept.
    ///
    /// # Errors
    /// When the text is missing, empty or not text, or the directory cannot be written.
    pub fn make(experiment: &Experiment, run: &Path) -> Result<Self> {
        let config = &experiment.data;
        config.path.as_deref().map_or(Ok(()), expect_lasting)?;
        if let Some(task) = sequence_task(experiment, run)? {
            if let Some(digest) = table_digest(experiment)? {
                create_folder(&run.join(TABLE_FILE))?;
                write_atomic(run.join(TABLE_FILE), digest.as_bytes())?;
            }
            return Ok(Self::Task(task));
        }
        let no_text = || Error::Config("a text task needs a text: give one with --data FILE".to_owned());
        let path = config.path.as_ref().ok_or_else(no_text)?;
        let tokenizer = Tokenizer::train(tokenizer_kind(config.tokenizer), config.bpe_vocab_size, path)?;
        let tokens_path = run.join(TOKENS_FILE);
        create_folder(&tokens_path)?;
        let tokens = encode_text(path, &tokenizer, &tokens_path)?;
        tokenizer.save(run.join(TOKENIZER_FILE))?;
        Ok(Self::Text { text: TextData::new(tokens, config.train_fraction)?, tokenizer })
    }

    /// The data that [`make`](Self::make) left in the directory `run`. The text itself is no longer needed; where it is still there, it
    /// must be the same. A table is needed.
    ///
    /// # Errors
    /// When tokenizer or tokens are missing or damaged, or not those that `experiment` asks for.
    pub fn open(experiment: &Experiment, run: &Path) -> Result<Self> {
        let config = &experiment.data;
        config.path.as_deref().filter(|path| path.exists()).map_or(Ok(()), expect_lasting)?;
        if let Some(task) = sequence_task(experiment, run)? {
            let path = run.join(TABLE_FILE);
            if let Some(digest) = table_digest(experiment)?
                && read_text(&path, 1 << 10)? != digest
            {
                let problem = "the table has changed since this run began; train the new table in another directory with --out";
                return Err(Error::malformed(config.path.as_ref().unwrap_or(&path), problem));
            }
            return Ok(Self::Task(task));
        }
        let (tokenizer, tokens) = (Tokenizer::load(run.join(TOKENIZER_FILE))?, TokenFile::open(run.join(TOKENS_FILE))?);
        tokens.verify()?;
        if tokenizer.kind() != tokenizer_kind(config.tokenizer) {
            let problem = "the run began with another tokenizer; leave that setting as it was, or train in another directory with --out";
            return Err(Error::Config(problem.to_owned()));
        }
        if let Some(path) = &config.path
            && path.exists()
            && text_sha256(path)? != tokens.source_sha256()
        {
            let problem = "the text has changed since this run began; train the new text in another directory with --out";
            return Err(Error::malformed(path, problem));
        }
        Ok(Self::Text { text: TextData::new(tokens, config.train_fraction)?, tokenizer })
    }

    /// The text file `path` cut by the tokenizer of an existing model, all of it test part, with the tokens in `folder`.
    ///
    /// # Errors
    /// When the text is missing, empty or outside the vocabulary.
    pub fn test_text(path: &Path, tokenizer: Tokenizer, folder: &Path) -> Result<(TextPart, Tokenizer)> {
        let tokens = encode_text(path, &tokenizer, folder.join("text.tokens"))?;
        Ok((TextPart::whole(tokens), tokenizer))
    }

    /// The table `path`, all of it to be scored, for a model whose task is `task`.
    ///
    /// # Errors
    /// When the table cannot be read or has classes that the model does not know.
    pub fn unseen_table(path: &Path, task: &TableTask) -> Result<Self> {
        Ok(Self::Task(match task {
            TableTask::Classify(classifier) => Box::new(Classification::unseen(path, classifier)?),
            TableTask::Forecast(forecaster) => Box::new(Forecasting::unseen(path, forecaster)?),
        }))
    }

    /// Gives `model` the inputs and outputs that fit.
    pub fn shape(&self, model: &mut ModelConfig) {
        let (reads, predicts) = match self {
            Self::Text { tokenizer, .. } => {
                let tokens = Signal::Tokens { n: tokenizer.vocab_size() };
                (tokens, tokens)
            }
            Self::Task(task) => (task.reads(), task.predicts()),
        };
        shape(model, reads, predicts);
    }

    /// Steps of the longest sequence of a task.
    pub fn longest(&self) -> Option<usize> {
        match self {
            Self::Text { .. } => None,
            Self::Task(task) => Some(task.longest()),
        }
    }

    /// The vocabulary of text.
    pub fn tokenizer(&self) -> Option<&Tokenizer> {
        match self {
            Self::Text { tokenizer, .. } => Some(tokenizer),
            Self::Task(_) => None,
        }
    }

    /// What users of the model need to know of a task's data.
    pub fn description(&self) -> Option<serde_json::Value> {
        match self {
            Self::Text { .. } => None,
            Self::Task(task) => task.description(),
        }
    }

    /// True where a part of finite data chooses the checkpoint, and another is scored once.
    pub fn has_parts(&self) -> bool {
        matches!(self, Self::Task(task) if task.has_parts())
    }

    /// Measures in the data's own units, where a task has some.
    pub fn comparison(&self, purpose: Purpose) -> Option<Box<dyn Comparison>> {
        match self {
            Self::Text { .. } => None,
            Self::Task(task) => task.comparison(purpose),
        }
    }

    /// True where the task is scored by accuracy, false where by loss.
    pub fn is_scored_by_accuracy(&self) -> bool {
        matches!(self, Self::Task(task) if matches!(task.predicts(), Signal::Tokens { .. }))
    }

    /// What is to be small: the loss, or the share of wrong answers.
    pub fn score(&self, evaluation: &Evaluation) -> f64 {
        match evaluation.accuracy {
            Some(accuracy) if self.is_scored_by_accuracy() => 1.0 - accuracy,
            _ => evaluation.loss,
        }
    }

    /// The accuracy of guessing, where there is a scale on which that is 0.
    pub fn chance(&self) -> Option<f64> {
        match self {
            Self::Text { .. } => None,
            Self::Task(task) => task.chance(),
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
            Self::Text { text, .. } => match experiment.data.sampling {
                WindowSampling::Random => {
                    let windows = RandomWindows::new(text.train().clone(), train.batch_size, train.seq_len, train.seed, Purpose::TrainData);
                    Box::new(windows.map_err(|error| naming_the_text(experiment, error))?)
                }
                WindowSampling::Stream => {
                    let (part, accumulation) = (text.train().clone(), train.accumulation as u64);
                    let stream = StatefulStream::new(part, train.batch_size, train.seq_len, accumulation, train.seed);
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
            Self::Task(task) => task.evaluation(train.batch_size, train.seed, purpose, n_batches)?,
            Self::Text { text, .. } => {
                let windows = RandomWindows::new(text.test().clone(), train.batch_size, train.seq_len, train.seed, purpose);
                Box::new(FixedBatches::new(windows.map_err(|error| naming_the_text(experiment, error))?, n_batches))
            }
        })
    }

    /// Every token of the test text once, in windows that start anew or carry the state.
    ///
    /// # Errors
    /// When the test part is shorter than one prediction. `Ok(None)` for tasks without text.
    pub fn full_pass(&self, experiment: &Experiment, carried: bool) -> Result<Option<Box<dyn EvaluationSet>>> {
        let Self::Text { text, .. } = self else { return Ok(None) };
        full_pass(text.test().clone(), experiment, carried).map(Some)
    }
}

/// Gives `model` the inputs and outputs that fit.
pub(super) fn shape(model: &mut ModelConfig, reads: Signal, predicts: Signal) {
    (model.vocab_size, model.input_width) = match reads {
        Signal::Tokens { n } => (n, 0),
        Signal::Values { width } => (0, width),
    };
    model.n_outputs = match predicts {
        tokens @ Signal::Tokens { .. } if tokens == reads => 0,
        Signal::Tokens { n } | Signal::Values { width: n } => n,
    };
}

/// What a model reads and what it predicts.
type Signals = (Signal, Signal);

/// What a model of the task reads and predicts, and the steps of the longest sequence as far as they are known; none where that is text.
/// Nothing is written, and data are read only where they decide it.
pub(super) fn signals(experiment: &Experiment) -> Result<Option<(Signals, Option<usize>)>> {
    let config = &experiment.data;
    Ok(match config.task {
        Task::ListOps => Some((ListOps::SIGNALS, None)),
        Task::Image => Some((Image::signals(config.pixels), None)),
        _ => sequence_task(experiment, Path::new("."))?.map(|task| ((task.reads(), task.predicts()), Some(task.longest()))),
    })
}

/// The task that is not plain text, of the run in the directory `run`.
fn sequence_task(experiment: &Experiment, run: &Path) -> Result<Option<Box<dyn SequenceTask>>> {
    let config = &experiment.data;
    let table = || config.path.as_deref().ok_or_else(|| Error::Config("a table is needed: give one with --data FILE".to_owned()));
    Ok(match config.task {
        Task::Text => None,
        Task::SelectiveCopying => Some(Box::new(Copying {
            length: config.copy_length,
            n_tokens: config.copy_tokens,
            encoding: match config.copy_encoding {
                CopyEncoding::A => Encoding::A,
                CopyEncoding::B => Encoding::B,
            },
            ..Copying::default()
        })),
        Task::FormalLanguage => Some(Box::new(config.formal()?)),
        Task::Mqar => Some(Box::new(config.mqar())),
        Task::NearestNeighbour => Some(Box::new(config.nearest_neighbour())),
        Task::ListOps => Some(Box::new(ListOps::open(&config.listops(), listops_folder(config, run)?)?)),
        Task::Retrieval => Some(Box::new(Retrieval::open(&config.retrieval(), given_folder(config)?)?)),
        Task::Image => Some(Box::new(Image::open(config.pixels, given_folder(config)?)?)),
        Task::Classify => Some(Box::new(Classification::open(table()?, config.classification(experiment.train.seed)?)?)),
        Task::Forecast => Some(Box::new(Forecasting::open(table()?, config.forecasting(experiment.train.seq_len)?)?)),
    })
}

/// Where expressions are read from or written to: the folder that is given, or else one of the run.
fn listops_folder(config: &DataConfig, run: &Path) -> Result<PathBuf> {
    if let Some(folder) = &config.path {
        return expect_folder(folder).map(Path::to_owned);
    }
    let folder = run.join(DATA_FOLDER);
    create_directories(&folder).map_err(|source| Error::io("create the data directory", &folder, source))?;
    Ok(folder)
}

fn given_folder(config: &DataConfig) -> Result<&Path> {
    let files = match config.task {
        Task::Image => "CIFAR-10's binary version (data_batch_1.bin to data_batch_5.bin and test_batch.bin)",
        _ => "new_aan_pairs.train.tsv, new_aan_pairs.eval.tsv and new_aan_pairs.test.tsv",
    };
    let missing = || Error::Config(format!("this task reads files: give the folder of {files} with --data FOLDER"));
    expect_folder(config.path.as_ref().ok_or_else(missing)?)
}

fn expect_folder(path: &Path) -> Result<&Path> {
    match path.metadata() {
        Ok(found) if found.is_dir() => Ok(path),
        Ok(_) => Err(Error::malformed(path, "expected the folder with the files of the task, found a file; give the folder it is in")),
        Err(source) => Err(Error::io("read the folder", path, source)),
    }
}

/// The digest of the experiment's table, as it is kept.
fn table_digest(experiment: &Experiment) -> Result<Option<String>> {
    let Some(path) = experiment.data.path.as_ref().filter(|_| experiment.data.task.reads_table()) else { return Ok(None) };
    let hex: String = text_sha256(path)?.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Some(hex + "\n"))
}

fn create_folder(file: &Path) -> Result<()> {
    let folder = file.parent().expect("the data lie in a folder");
    create_directories(folder).map_err(|source| Error::io("create the data directory", folder, source))
}

/// Every token of `part` once, in windows that start anew or carry the state.
///
/// # Errors
/// When the part is shorter than one prediction.
pub fn full_pass(part: TextPart, experiment: &Experiment, carried: bool) -> Result<Box<dyn EvaluationSet>> {
    let train = &experiment.train;
    Ok(match carried {
        true => Box::new(FullPass::carried(part, train.seq_len)?),
        false => Box::new(FullPass::new(part, train.batch_size, train.seq_len)?),
    })
}

/// What is wrong with a part of the text, with the name of the file.
fn naming_the_text(experiment: &Experiment, error: Error) -> Error {
    match (&experiment.data.path, error) {
        (Some(path), Error::Data(problem)) => Error::Data(format!("'{}': {problem}", path.display())),
        (_, error) => error,
    }
}

pub(super) fn tokenizer_kind(kind: TokenizerKind) -> data::TokenizerKind {
    match kind {
        TokenizerKind::Char => data::TokenizerKind::Character,
        TokenizerKind::Byte => data::TokenizerKind::Byte,
        TokenizerKind::Bpe => data::TokenizerKind::Bpe,
    }
}
