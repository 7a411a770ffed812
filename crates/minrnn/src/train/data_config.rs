//! The `[data]` section of an experiment: what is learned from, and how batches are cut from it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::check::require;
use crate::data::table::{ClassificationConfig, ForecastingConfig, twice};
use crate::data::{Encoding, TokenizerKind};
use crate::data::{
    FormalTask, Generalization, Language, ListOpsTask, Mqar, NearestNeighbour, PixelInput, Protocol, RetrievalTask, TextUnit,
};
use crate::{Error, Needed, Result};

/// Most steps ahead; all of them are outputs of the model.
const MAX_HORIZON: usize = 1 << 14;
/// Most steps of a season; no table that is read has more.
const MAX_SEASON: usize = 1 << 28;

/// What the model learns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// The next token of a text.
    #[default]
    Text,
    /// Recalling scattered tokens in order.
    SelectiveCopying,
    /// A formal language, scored on longer strings than are trained on.
    FormalLanguage,
    /// Multi-query associative recall: the values of keys, asked for one by one.
    Mqar,
    /// The value of the vector nearest to the first one so far.
    NearestNeighbour,
    /// Long Range Arena: the value of a nested expression.
    #[serde(rename = "listops")]
    ListOps,
    /// Long Range Arena: whether one of two papers cites the other.
    Retrieval,
    /// Long Range Arena: what a picture shows, read pixel by pixel.
    Image,
    /// A class for every sequence of a table.
    Classify,
    /// The next values of every sequence of a table.
    Forecast,
}

impl Task {
    /// Whether its data are files in a folder, which `path` names.
    pub fn reads_a_folder(self) -> bool {
        matches!(self, Self::ListOps | Self::Retrieval | Self::Image)
    }

    /// Whether it reads a table.
    pub fn reads_table(self) -> bool {
        matches!(self, Self::Classify | Self::Forecast)
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
        require((257..=1 << 20).contains(&self.bpe_vocab_size), || {
            format!("bpe_vocab_size must be between 257 (every byte and one merge) and 1048576, found {}", self.bpe_vocab_size)
        })?;
        require((1..=1 << 24).contains(&self.copy_length), || {
            format!("copy_length must be between 1 and 16777216, found {}", self.copy_length)
        })?;
        require((1..=self.copy_length).contains(&self.copy_tokens), || {
            format!("copy_tokens must be between 1 and copy_length = {}, found {}", self.copy_length, self.copy_tokens)
        })?;
        require((1..=MAX_HORIZON).contains(&self.horizon), || {
            format!("horizon must be between 1 and {MAX_HORIZON} steps ahead, found {}", self.horizon)
        })?;
        require(self.season <= MAX_SEASON, || {
            format!("season must be at most {MAX_SEASON} steps, with 0 for the last value, found {}", self.season)
        })?;
        match self.task {
            Task::FormalLanguage => self.formal().map(|_| ()),
            Task::ListOps => self.listops().validate(),
            Task::Retrieval => self.retrieval().validate(),
            Task::Mqar => self.mqar().validate(),
            Task::NearestNeighbour => self.nearest_neighbour().validate(),
            Task::Text | Task::SelectiveCopying | Task::Image | Task::Classify | Task::Forecast => Ok(()),
        }
    }

    /// The expressions that are asked for.
    pub fn listops(&self) -> ListOpsTask {
        ListOpsTask {
            min_length: if self.listops_min_length == 0 { self.listops_max_length / 4 } else { self.listops_min_length },
            max_length: self.listops_max_length,
            max_depth: self.listops_max_depth,
            max_arguments: self.listops_max_arguments,
            n_train: self.listops_train,
            n_eval: self.listops_eval,
            seed: self.listops_seed,
        }
    }

    /// How documents are read.
    pub fn retrieval(&self) -> RetrievalTask {
        RetrievalTask { unit: self.retrieval_unit, max_length: self.retrieval_max_length }
    }

    /// What is classified in a table.
    ///
    /// # Errors
    /// When the columns of sequences and classes are not named, or one is named twice.
    pub fn classification(&self, seed: u64) -> Result<ClassificationConfig> {
        let [target] = &self.target[..] else {
            let found = self.target.len();
            let sentence = format!("to classify, name the column with the class, found {found} columns");
            return Err(Error::needed(Needed::Target, sentence));
        };
        if self.group.is_empty() {
            let sentence = "to classify sequences, name the column that tells which of them a row belongs to";
            return Err(Error::needed(Needed::Group, sentence));
        }
        require(*target != self.group, || format!("the column '{target}' names sequences and classes at once; name two columns"))?;
        self.expect_columns_once()?;
        require(!self.columns.contains(target), || format!("columns names '{target}', the class that is to be found; leave it out"))?;
        let (columns, target, group) = (self.columns.clone(), target.clone(), self.group.clone());
        Ok(ClassificationConfig { columns, target, group, train_fraction: self.train_fraction, seed })
    }

    /// What is forecast in a table, learned in windows of `seq_len` steps.
    ///
    /// # Errors
    /// When no column is named to be forecast, or one twice.
    pub fn forecasting(&self, seq_len: usize) -> Result<ForecastingConfig> {
        if self.target.is_empty() {
            return Err(Error::needed(Needed::Target, "to forecast, name the columns that are to be predicted"));
        }
        self.expect_columns_once()?;
        Ok(ForecastingConfig {
            columns: self.columns.clone(),
            target: self.target.clone(),
            group: Some(self.group.clone()).filter(|group| !group.is_empty()),
            horizon: self.horizon,
            season: self.season,
            train_fraction: self.train_fraction,
            seq_len,
        })
    }

    fn expect_columns_once(&self) -> Result<()> {
        for (key, names) in [("target", &self.target), ("columns", &self.columns)] {
            let twice = twice(names);
            require(twice.is_none(), || format!("{key} names the column '{}' twice", twice.map_or("", String::as_str)))?;
        }
        Ok(())
    }

    /// The formal language that is asked for.
    ///
    /// # Errors
    /// When the protocol has no such language or the lengths are out of range.
    pub fn formal(&self) -> Result<Generalization> {
        let Self { language, protocol, min_length, max_length, .. } = *self;
        Generalization::new(FormalTask { language, protocol, min_length, max_length }, self.eval_min_length, self.eval_max_length)
    }

    /// The associative recall that is asked for.
    pub fn mqar(&self) -> Mqar {
        Mqar {
            vocab_size: self.mqar_vocab_size,
            length: self.mqar_length,
            n_pairs: self.mqar_pairs,
            power: self.mqar_power,
            random_non_queries: self.mqar_random_non_queries,
            n_examples: self.train_examples,
        }
    }

    /// The nearest-neighbour search that is asked for.
    pub fn nearest_neighbour(&self) -> NearestNeighbour {
        NearestNeighbour { max_length: self.neighbour_length, n_examples: self.train_examples }
    }
}
