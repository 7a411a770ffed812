//! The `[data]` section of an experiment: what is learned from, and how batches are cut from it.

use std::path::{Path, PathBuf};

use minrnn_kernels::choices;
use serde::{Deserialize, Serialize};

use super::check::require;
use super::train_config::TrainConfig;
use crate::data::{Encoding, IoKind, Language, PixelInput, Protocol, SequenceTask, TextUnit, TokenizerKind};
use crate::{Error, Needed, Result};

/// The list of tasks, each with the file that says what it is.
macro_rules! tasks {
    ($($(#[$meta:meta])* $variant:ident = $name:literal in $file:ident,)+) => {
        $(mod $file;)+

        choices! {
            /// What the model learns.
            Task, "task" {
                $($(#[$meta])* $variant = $name,)+
            }
        }

        impl Task {
            /// What it is.
            pub(super) fn spec(self) -> &'static TaskSpec {
                match self {
                    $(Self::$variant => &$file::SPEC,)+
                }
            }
        }
    };
}

tasks! {
    /// The next token of a text.
    #[default]
    Text = "text" in text,
    /// Recalling scattered tokens in order.
    SelectiveCopying = "selective-copying" in selective_copying,
    /// A formal language, scored on longer strings than are trained on.
    FormalLanguage = "formal-language" in formal_language,
    /// Multi-query associative recall: the values of keys, asked for one by one.
    Mqar = "mqar" in mqar,
    /// The value of the vector nearest to the first one so far.
    NearestNeighbour = "nearest-neighbour" in nearest_neighbour,
    /// Long Range Arena: the value of a nested expression.
    ListOps = "listops" in listops,
    /// Long Range Arena: whether one of two papers cites the other.
    Retrieval = "retrieval" in retrieval,
    /// Long Range Arena: what a picture shows, read pixel by pixel.
    Image = "image" in image,
    /// A class for every sequence of a table.
    Classify = "classify" in classify,
    /// The next values of every sequence of a table.
    Forecast = "forecast" in forecast,
}

/// What a task reads and what it predicts, from its settings.
type Io = fn(&DataConfig) -> (IoKind, IoKind);

/// What training needs to know of a task, before its data are read and to read them.
pub(super) struct TaskSpec {
    /// Where its data come from.
    pub source: Source,
    /// Checks the ranges of its keys, whatever the task of an experiment is.
    pub keys: fn(&DataConfig) -> Result<()>,
    /// Checks its settings as a whole.
    pub validate: fn(&DataConfig) -> Result<()>,
    /// The keys that tell how long its sequences are, in words, and how long; 0 where only the data tell.
    pub length: fn(&DataConfig, &TrainConfig) -> Result<(&'static str, usize)>,
    /// Steps of a sequence in training and in evaluation; the longest is given where the data tell it.
    pub steps: fn(&DataConfig, &TrainConfig, Option<usize>) -> [usize; 2],
    /// Steps of a sequence of that many whose prediction is scored.
    pub scored: fn(&DataConfig, usize) -> usize,
    /// What a model reads and predicts, where the settings alone tell.
    pub io: Option<Io>,
    /// The same as far as it can be assumed, where only the data tell and are not to be read.
    pub assumed_io: Option<Io>,
    /// The task of the run in that directory; none for plain text.
    pub open: Option<Open>,
}

/// Opens a task.
type Open = fn(&DataConfig, &TrainConfig, &Path) -> Result<Box<dyn SequenceTask>>;

impl TaskSpec {
    /// A task that makes its own data and scores every step.
    const MADE: Self = Self {
        source: Source::Made,
        keys: |_| Ok(()),
        validate: |_| Ok(()),
        length: |_, _| Ok(("seq_len", 0)),
        steps: |data, train, longest| {
            let told = || (data.task.spec().length)(data, train).map_or(0, |(_, length)| length);
            [longest.unwrap_or_else(told); 2]
        },
        scored: |_, seq_len| seq_len,
        io: None,
        assumed_io: None,
        open: None,
    };
}

/// Where the data of a task come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// It makes them.
    Made,
    /// A text, `path` or `corpus`.
    Text,
    /// A table, `path`.
    Table,
    /// A folder of files, `path`.
    Folder,
}

impl Task {
    /// Whether its data are files in a folder, which `path` names.
    pub fn reads_a_folder(self) -> bool {
        self.spec().source == Source::Folder
    }

    /// Whether it reads a table.
    pub fn reads_table(self) -> bool {
        self.spec().source == Source::Table
    }
}

/// How training windows are taken from a token file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WindowSampling {
    /// At random offsets; every window starts from the initial state.
    #[default]
    Random,
    /// One after the other; the state is carried from window to window.
    Stream,
}

/// A public text that is downloaded when no `path` is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Corpus {
    /// Shakespeare's plays in one file of 1 115 394 characters.
    TinyShakespeare,
}

/// The data of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DataConfig {
    /// What the model learns. Default `text`.
    pub task: Task,
    /// How text becomes tokens. Default `char`.
    pub tokenizer: TokenizerKind,
    /// Size of the vocabulary that `tokenizer = bpe` learns. Default 1024.
    pub bpe_vocab_size: usize,
    /// The text or table, or the folder of a task with files, relative to the current directory. It wins over `corpus`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// The public text used when `path` is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corpus: Option<Corpus>,
    /// Share of the text, from its start, that is trained on; the rest is the test part. Of tables it is the share of the sequences
    /// (`classify`) or of every sequence from its start (`forecast`); the rest is halved to validate and to test with. Default 0.9.
    pub train_fraction: f64,
    /// How training windows are taken. Default `random`.
    pub sampling: WindowSampling,
    /// Selective copying: number of tokens before the answer slots. Default 4096.
    pub copy_length: usize,
    /// Selective copying: number of tokens to recall. Default 16.
    pub copy_tokens: usize,
    /// Selective copying: which ids mean noise and answer slot. Default `a`.
    pub copy_encoding: Encoding,
    /// Formal languages: what is asked of a string. Default `parity`.
    pub language: Language,
    /// Formal languages: alphabets, and where the answer is read. Default `authors`.
    pub protocol: Protocol,
    /// Formal languages: least length trained on. Default 1.
    pub min_length: usize,
    /// Formal languages: greatest length trained on. Default 40.
    pub max_length: usize,
    /// Formal languages: least length scored. Default 40.
    pub eval_min_length: usize,
    /// Formal languages: greatest length scored. Default 256.
    pub eval_max_length: usize,
    /// Multi-query associative recall: number of token ids. Default 8192.
    pub mqar_vocab_size: usize,
    /// Multi-query associative recall: steps of a sequence. Default 64.
    pub mqar_length: usize,
    /// Multi-query associative recall: pairs of a key and a value. Default 4.
    pub mqar_pairs: usize,
    /// Multi-query associative recall: exponent a of the places of queries, drawn with chances i^(a − 1); 1 is uniform. Default 0.01.
    pub mqar_power: f64,
    /// Multi-query associative recall: whether steps that ask nothing hold random tokens or token 0. Default true.
    pub mqar_random_non_queries: bool,
    /// Nearest-neighbour search: greatest number of vectors in a row. Default 64.
    pub neighbour_length: usize,
    /// Associative recall and nearest-neighbour search: examples of a fixed training set; 0 makes a new one for every row. Default 0.
    pub train_examples: u64,
    /// ListOps: expressions are longer than this; 0 stands for a quarter of `listops_max_length`. Default 0.
    pub listops_min_length: usize,
    /// ListOps: expressions are shorter than this. Default 2000.
    pub listops_max_length: usize,
    /// ListOps: greatest depth of a node. Default 10.
    pub listops_max_depth: usize,
    /// ListOps: most arguments of an operator. Default 10.
    pub listops_max_arguments: usize,
    /// ListOps: expressions to train on. Default 96000.
    pub listops_train: usize,
    /// ListOps: expressions to validate on, and as many to test on. Default 2000.
    pub listops_eval: usize,
    /// ListOps: what the expressions are drawn from, apart from `seed`, so that runs share them. Default 0.
    pub listops_seed: u64,
    /// Retrieval: what a token is. Default `char`.
    pub retrieval_unit: TextUnit,
    /// Retrieval: most tokens of each document. Default 4000.
    pub retrieval_max_length: usize,
    /// Image: how a pixel is read. Default `value`.
    pub pixels: PixelInput,
    /// Tables: columns of numbers to read. Default none: all but group and class, or those that are forecast.
    pub columns: Vec<String>,
    /// Tables: the column with the class, or the columns that are forecast.
    pub target: Vec<String>,
    /// Tables: the column that names the sequence of a row. Default none: the table is one sequence.
    pub group: String,
    /// Forecasts: how many steps ahead are predicted. Default 1.
    pub horizon: usize,
    /// Forecasts: steps of a season of the naive forecast that the model is compared with. Default 0: the last value.
    pub season: usize,
}

impl Default for DataConfig {
    fn default() -> Self {
        Self {
            task: Task::Text,
            tokenizer: TokenizerKind::Character,
            bpe_vocab_size: 1024,
            path: None,
            corpus: None,
            train_fraction: 0.9,
            sampling: WindowSampling::Random,
            copy_length: 4096,
            copy_tokens: 16,
            copy_encoding: Encoding::A,
            language: Language::Parity,
            protocol: Protocol::Authors,
            min_length: 1,
            max_length: 40,
            eval_min_length: 40,
            eval_max_length: 256,
            mqar_vocab_size: 8192,
            mqar_length: 64,
            mqar_pairs: 4,
            mqar_power: 0.01,
            mqar_random_non_queries: true,
            neighbour_length: 64,
            train_examples: 0,
            listops_min_length: 0,
            listops_max_length: 2000,
            listops_max_depth: 10,
            listops_max_arguments: 10,
            listops_train: 96_000,
            listops_eval: 2000,
            listops_seed: 0,
            retrieval_unit: TextUnit::Char,
            retrieval_max_length: 4000,
            pixels: PixelInput::Value,
            columns: Vec::new(),
            target: Vec::new(),
            group: String::new(),
            horizon: 1,
            season: 0,
        }
    }
}

impl DataConfig {
    /// Checks every key.
    ///
    /// # Errors
    /// A sentence that names the first key out of range.
    pub fn validate(&self) -> Result<()> {
        require(self.train_fraction > 0.0 && self.train_fraction < 1.0, || {
            format!("train_fraction must be above 0 and below 1, found {}", self.train_fraction)
        })?;
        Task::ALL.iter().try_for_each(|task| (task.spec().keys)(self))?;
        (self.task.spec().validate)(self)
    }

    /// The table that is given.
    fn table(&self) -> Result<&Path> {
        self.path.as_deref().ok_or_else(|| Error::needed(Needed::File, "a table is needed"))
    }

    /// The folder that is given, of a task that reads `files`.
    fn folder(&self, files: &str) -> Result<&Path> {
        let missing = || Error::needed(Needed::Folder, format!("this task reads files: give the folder of {files}"));
        expect_folder(self.path.as_ref().ok_or_else(missing)?)
    }
}

fn expect_folder(path: &Path) -> Result<&Path> {
    match path.metadata() {
        Ok(found) if found.is_dir() => Ok(path),
        Ok(_) => Err(Error::malformed(path, "expected the folder with the files of the task, found a file; give the folder it is in")),
        Err(source) => Err(Error::io("read the folder", path, source)),
    }
}
