//! An experiment's `[data]` section: what the model learns from, and how batches are made of it.

use std::path::{Path, PathBuf};

use minrnn_kernels::choices;
use serde::{Deserialize, Serialize};

use super::check::require;
use super::evaluate::Evaluation;
use super::loss::Loss;
use super::train_config::TrainConfig;
use crate::data::table::{CalendarPart, memory_of};
use crate::data::{IoKind, ListOpsTask, Mqar, NearestNeighbour, RetrievalTask, SelectiveCopyingConfig, SequenceTask};
use crate::{Error, Needed, Result};

mod table;

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
            /// Its specification.
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
    /// A number for every sequence of a table.
    Regress = "regress" in regress,
    /// The next values of every sequence of a table.
    Forecast = "forecast" in forecast,
    /// The recorded action at every step of an episode, given the return still to be earned.
    Policy = "policy" in policy,
}

pub use forecast::ForecastConfig;
pub use formal_language::FormalLanguageConfig;
pub use image::ImageConfig;
pub use policy::PolicyConfig;
pub use table::TableConfig;
pub use text::{TextConfig, WindowSampling};

/// What a task reads and what it predicts, from its settings.
type Io = fn(&DataConfig) -> (IoKind, IoKind);

/// What training needs to know about a task before its data are read, and in order to read them.
pub(super) struct TaskSpec {
    /// The source of its data.
    pub source: Source,
    /// Whether it reads the key of that name, beyond the keys that all tasks read; every section is [filled](DataConfig::filled).
    pub reads: fn(&DataConfig, &str) -> bool,
    /// Checks the ranges of its keys, whatever the task of an experiment is.
    pub keys: fn(&DataConfig) -> Result<()>,
    /// Checks the task's settings as a whole.
    pub validate: fn(&DataConfig) -> Result<()>,
    /// The keys that determine its sequence length, in words, and the length; 0 if only the data determine it.
    pub length: fn(&DataConfig, &TrainConfig) -> Result<(&'static str, usize)>,
    /// Steps of a sequence in training and in evaluation; the longest is passed in if the data determine it.
    pub steps: fn(&DataConfig, &TrainConfig, Option<usize>) -> [usize; 2],
    /// Number of scored steps in a sequence of that many.
    pub scored: fn(&DataConfig, usize) -> usize,
    /// A model's inputs and outputs, if the settings alone determine them.
    pub io: Option<Io>,
    /// Assumed inputs and outputs, if only the data determine them and are not to be read.
    pub assumed_io: Option<Io>,
    /// What training minimises.
    pub loss: fn(&DataConfig) -> Loss,
    /// Whether it is scored by accuracy rather than loss: it predicts classes, and not a text's next token.
    pub by_accuracy: bool,
    /// Bytes of its data held in memory.
    pub held: fn(&DataConfig) -> u128,
    /// Opens the task for the run in that directory; `None` for plain text.
    pub open: Option<Open>,
}

/// Opens a task.
type Open = fn(&DataConfig, &TrainConfig, &Path) -> Result<Box<dyn SequenceTask>>;

impl TaskSpec {
    /// A task that generates its own data, predicts classes, and scores every step.
    const MADE: Self = Self {
        source: Source::Made,
        reads: |_, _| false,
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
        loss: |_| Loss::PerAnswer,
        by_accuracy: true,
        held: |_| 0,
        open: None,
    };
}

/// Where the data of a task come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// It generates them.
    Made,
    /// A text, `path` or `corpus`.
    Text,
    /// A table, `path`.
    Table,
    /// A file of recorded episodes, `path`.
    Trajectories,
    /// A folder of files, `path`.
    Folder,
}

impl Task {
    /// Whether its data are files in a folder named by `path`.
    pub fn reads_a_folder(self) -> bool {
        self.spec().source == Source::Folder
    }

    /// Whether its data are a file named by `path`, which is read whenever the task is opened.
    pub fn reads_a_file(self) -> bool {
        matches!(self.spec().source, Source::Table | Source::Trajectories)
    }

    /// Whether it is scored by accuracy rather than loss.
    pub fn is_scored_by_accuracy(self) -> bool {
        self.spec().by_accuracy
    }

    /// `accuracy`, if the task is scored by it.
    pub fn scored_accuracy(self, accuracy: Option<f64>) -> Option<f64> {
        accuracy.filter(|_| self.is_scored_by_accuracy())
    }

    /// The quantity to minimise: the loss, or the share of wrong answers.
    pub fn score(self, evaluation: &Evaluation) -> f64 {
        self.scored_accuracy(evaluation.accuracy).map_or(evaluation.loss, |accuracy| 1.0 - accuracy)
    }

    /// Whether it reads a table.
    pub fn reads_table(self) -> bool {
        self.spec().source == Source::Table
    }
}

/// A public text, downloaded if no `path` is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Corpus {
    /// Shakespeare's plays in one file of 1 115 394 characters.
    TinyShakespeare,
}

/// The data of an experiment: what all or several tasks read, and the settings of each. In files all keys are in one section.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DataConfig {
    /// What the model learns. Default `text`.
    pub task: Task,
    /// The text, table or file of episodes, or the folder of a task with files, relative to the current directory. It wins over `corpus`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// The public text used when `path` is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corpus: Option<Corpus>,
    /// Share of the text, from its start, used for training; the rest is the test part. For tables it is the share of the sequences
    /// (`classify`, `regress`) or of every sequence from its start (`forecast`); the rest is for testing, and half of it for validation if
    /// `train.keep` is `best`; for forecasts that half is used for training if nothing is validated. Default 0.9.
    pub train_fraction: f64,
    /// Associative recall and nearest-neighbour search: size of a fixed training set; 0 makes a new example for every row. Default 0.
    pub train_examples: u64,
    /// Settings of texts.
    #[serde(flatten)]
    pub text: TextConfig,
    /// Settings of selective copying.
    #[serde(flatten)]
    pub copying: SelectiveCopyingConfig,
    /// Settings of formal languages.
    #[serde(flatten)]
    pub formal_language: FormalLanguageConfig,
    /// Settings of multi-query associative recall.
    #[serde(flatten)]
    pub mqar: Mqar,
    /// Settings of nearest-neighbour search.
    #[serde(flatten)]
    pub nearest_neighbour: NearestNeighbour,
    /// Settings of ListOps.
    #[serde(flatten)]
    pub listops: ListOpsTask,
    /// Settings of retrieval.
    #[serde(flatten)]
    pub retrieval: RetrievalTask,
    /// Settings of pictures.
    #[serde(flatten)]
    pub image: ImageConfig,
    /// Settings of tables.
    #[serde(flatten)]
    pub table: TableConfig,
    /// Settings of forecasts.
    #[serde(flatten)]
    pub forecast: ForecastConfig,
    /// Settings of policies.
    #[serde(flatten)]
    pub policy: PolicyConfig,
}

impl DataConfig {
    /// A configuration with a value for every optional key.
    pub(super) fn filled() -> Self {
        let class_weights = vec!["balanced".to_owned()];
        let table = TableConfig { validation: Some("file".into()), test: Some("file".into()), class_weights, ..Default::default() };
        let forecast =
            ForecastConfig { calendar: vec![CalendarPart::default()], known_ahead: vec!["price".to_owned()], ..Default::default() };
        Self { path: Some("file".into()), corpus: Some(Corpus::TinyShakespeare), table, forecast, ..Default::default() }
    }

    /// The tasks that read the key of that name; all tasks if it is a common key.
    pub fn readers(key: &str) -> Vec<Task> {
        let filled = Self::filled();
        let readers: Vec<Task> = Task::ALL.iter().copied().filter(|task| (task.spec().reads)(&filled, key)).collect();
        if readers.is_empty() { Task::ALL.to_vec() } else { readers }
    }
}

/// Whether `section`, when serialised, has the key of that name.
fn has_key(section: &impl Serialize, key: &str) -> bool {
    serde_json::to_value(section).is_ok_and(|keys| keys.get(key).is_some())
}

impl Default for DataConfig {
    fn default() -> Self {
        Self {
            task: Task::Text,
            path: None,
            corpus: None,
            train_fraction: 0.9,
            train_examples: 0,
            text: TextConfig::default(),
            copying: SelectiveCopyingConfig::default(),
            formal_language: FormalLanguageConfig::default(),
            mqar: Mqar::default(),
            nearest_neighbour: NearestNeighbour::default(),
            listops: ListOpsTask::default(),
            retrieval: RetrievalTask::default(),
            image: ImageConfig::default(),
            table: TableConfig::default(),
            forecast: ForecastConfig::default(),
            policy: PolicyConfig::default(),
        }
    }
}

impl DataConfig {
    /// Checks every key.
    ///
    /// # Errors
    /// With a sentence that names the first key out of range.
    pub fn validate(&self) -> Result<()> {
        require(self.train_fraction > 0.0 && self.train_fraction < 1.0, || {
            format!("train_fraction must be above 0 and below 1, found {}", self.train_fraction)
        })?;
        Task::ALL.iter().try_for_each(|task| (task.spec().keys)(self))?;
        (self.task.spec().validate)(self)
    }

    /// The paths of its tables, each with a one-word name.
    pub fn tables_mut(&mut self) -> [(&'static str, &mut Option<PathBuf>); 3] {
        [("data", &mut self.path), ("validation", &mut self.table.validation), ("test", &mut self.table.test)]
    }

    /// Bytes of the numbers in a text: a number has about as many characters as an f64 has bytes, and is held twice, as read and in its
    /// sequence.
    fn numbers_of_text(&self) -> u128 {
        2 * self.file_bytes()
    }

    /// Bytes of its tables that are held in memory.
    fn numbers_of_tables(&self) -> u128 {
        [&self.path, &self.table.validation, &self.table.test].into_iter().flatten().map(|path| memory_of(path)).sum()
    }

    /// Bytes of the file or folder of the data, 0 if it does not exist yet.
    fn file_bytes(&self) -> u128 {
        self.path.as_deref().map_or(0, bytes_of)
    }

    /// The table that is given.
    fn table_path(&self) -> Result<&Path> {
        self.path.as_deref().ok_or_else(|| Error::needed(Needed::File, "a table is needed"))
    }

    /// The given folder of a task that reads `files`.
    fn folder(&self, files: &str) -> Result<&Path> {
        let missing = || Error::needed(Needed::Folder, format!("this task reads files: give the folder of {files}"));
        expect_folder(self.path.as_ref().ok_or_else(missing)?)
    }
}

fn bytes_of(path: &Path) -> u128 {
    let of = |meta: std::io::Result<std::fs::Metadata>| meta.map_or(0, |meta| u128::from(meta.len()));
    match std::fs::read_dir(path) {
        Ok(entries) => entries.flatten().map(|entry| of(entry.metadata())).sum(),
        Err(_) => of(std::fs::metadata(path)),
    }
}

fn expect_folder(path: &Path) -> Result<&Path> {
    match path.metadata() {
        Ok(found) if found.is_dir() => Ok(path),
        Ok(_) => Err(Error::malformed(path, "expected the folder with the files of the task, found a file; give the folder it is in")),
        Err(source) => Err(Error::io("read the folder", path, source)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_scored_by_accuracy_where_they_predict_classes() {
        for &task in Task::ALL {
            let data = DataConfig { task, ..DataConfig::default() };
            let spec = task.spec();
            let predicts = match (spec.io.or(spec.assumed_io), spec.open) {
                (Some(io), _) => io(&data).1,
                (None, Some(open)) => open(&data, &TrainConfig::default(), Path::new(".")).unwrap().predicts(),
                (None, None) => {
                    // Next-token prediction is judged by its loss.
                    assert!(task == Task::Text && !task.is_scored_by_accuracy());
                    continue;
                }
            };
            assert_eq!(task.is_scored_by_accuracy(), matches!(predicts, IoKind::Tokens { .. }), "{task}");
        }
    }

    #[test]
    fn every_key_but_those_of_all_tasks_is_read_by_some_alone() {
        let filled = serde_json::to_value(DataConfig::filled()).unwrap();
        let of_all: Vec<&str> = filled.as_object().unwrap().keys().map(String::as_str).collect();
        let of_all: Vec<&str> = of_all.into_iter().filter(|key| DataConfig::readers(key).len() == Task::ALL.len()).collect();
        assert_eq!(of_all, ["path", "task"], "the others are named by no task's `reads`");
    }
}
