//! Settings shared by the tasks on tables.

use std::path::{Path, PathBuf};

use minrnn_model::{MAX_ROWS_PER_STEP, RowsPerStep};
use serde::{Deserialize, Serialize};

use super::{DataConfig, has_key};
use crate::data::table::{ClassWeights, Division, Label, Labelling, LabellingConfig, LayoutChoice, Missing, TableTask, TimeColumn, twice};
use crate::data::{IoKind, SequenceTask};
use crate::train::check::require;
use crate::train::start::Start;
use crate::train::train_config::TrainConfig;
use crate::{Error, Needed, Result};

/// The columns of a table.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TableConfig {
    /// Columns to read: numbers, or names, each of which becomes an input of 0 or 1. Default none: all except group and class, or the
    /// forecast columns.
    pub columns: Vec<String>,
    /// The column with the class or the number of a sequence, or the columns to forecast. Default none: for a class the one called class,
    /// for a number target, for a forecast y or value.
    pub target: Vec<String>,
    /// The column that names the sequence of a row. Default none: the table is one sequence; for forecasts without a named target, the
    /// column unique_id or series; for classification the column series.
    pub group: String,
    /// The column with the time of a row, by which the rows of a sequence are sorted and forecasts continue; `auto` takes one called ds,
    /// date, time, timestamp or datetime, and for forecasts also a column with another name if it is the only one that holds dates. Default
    /// none: rows are in order of time.
    pub time: String,
    /// The layout of the series in a table: `long` has a row for each step, `wide-series` a row for each series with a column for each
    /// step, `wide-columns` a row for each time with a column for each series; `auto` is `wide-series` if nothing names the series and the
    /// other columns are numbered or dated steps, otherwise `long`. Default `auto`.
    pub layout: LayoutChoice,
    /// How a missing number (an empty cell, NaN, NA, N/A, null, none or ?) is treated: `error` refuses it, `forward-fill` reads the last
    /// known one, and `mask` does so too and tells the model. Missing future values are not learned from. Default `error`.
    pub missing: Missing,
    /// Classify: weights of the classes in training: `balanced`, so that all classes count equally, or classes with weights, such as
    /// `worn=5`. Default none: all sequences count equally.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub class_weights: Vec<String>,
    /// Classify and regress: rows of a sequence that the model reads as one step, by mean, standard deviation and change of each column.
    /// Default 0: one, or for sequences of more than 512 rows on average as few as leave at most 256 steps.
    pub rows_per_step: usize,
    /// A table for choosing the best checkpoint, not trained on before that. Default none: a part is held out if `train.keep` is `best`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<PathBuf>,
    /// A table for the report, never trained on. Default none: a part is held out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<PathBuf>,
}

/// The task on tables of the model that `train` starts from, in the run in the directory `run`.
pub(super) fn table_task_of_start(train: &TrainConfig, run: &Path) -> Result<Option<TableTask>> {
    Start::of(train, run)?.map_or(Ok(None), |start| start.table_task())
}

impl TableConfig {
    /// The values of a step, as many as there are named columns, or as are read of several rows.
    pub(super) fn values(&self) -> IoKind {
        let of_column = if self.rows_per_step > 1 { RowsPerStep::INPUTS } else { 1 };
        IoKind::Values { width: self.columns.len().max(1).saturating_mul(of_column) }
    }

    /// How the files of a training with settings `train` are read and divided.
    pub(super) fn division(&self, train_fraction: f64, train: &TrainConfig) -> Division {
        let (time, layout, missing) = (TimeColumn::of_setting(&self.time), self.layout, self.missing);
        let (validation, test) = (self.validation.clone(), self.test.clone());
        Division { time, layout, missing, train_fraction, validates: train.validates(), validation, test }
    }

    /// Checks that no column is named twice, and that none has two roles.
    pub(super) fn expect_columns_once(&self) -> Result<()> {
        let Self { target, group, time, .. } = self;
        let roles = [(group, "names sequences", target.contains(group)), (time, "tells the time", target.contains(time))];
        for (name, role, is_target) in roles {
            require(name.is_empty() || !is_target, || format!("the column '{name}' {role} and is the target at once; name two columns"))?;
        }
        require(time.is_empty() || time != group, || {
            format!("the column '{time}' names sequences and tells the time at once; name two columns")
        })?;
        for (key, names) in [("target", &self.target), ("columns", &self.columns)] {
            let twice = twice(names);
            require(twice.is_none(), || format!("{key} names the column '{}' twice", twice.map_or("", String::as_str)))?;
        }
        Ok(())
    }
}

/// Keys of the tasks that label sequences, which forecasts do not read.
const OF_LABELS: [&str; 2] = ["class_weights", "rows_per_step"];

impl DataConfig {
    /// Whether forecasts read the key `key` of tables.
    pub(super) fn reads_to_forecast(&self, key: &str) -> bool {
        !OF_LABELS.contains(&key) && self.reads_of_tables(key)
    }

    /// Checks the keys of labelling.
    pub(super) fn expect_labelling(&self) -> Result<()> {
        ClassWeights::of_setting(&self.table.class_weights)?;
        let found = self.table.rows_per_step;
        require(found <= MAX_ROWS_PER_STEP, || {
            format!("rows_per_step must be at most {MAX_ROWS_PER_STEP}, or 0 to let their length decide, found {found}")
        })
    }

    /// Whether tasks on tables read the key `key`.
    pub(super) fn reads_of_tables(&self, key: &str) -> bool {
        key == "train_fraction" || has_key(&self.table, key)
    }

    /// The labelling task on a table for a training with settings `train`.
    ///
    /// # Errors
    /// When several columns are named for the label, or one is named twice.
    pub fn labelling(&self, label: Label, train: &TrainConfig) -> Result<LabellingConfig> {
        let TableConfig { columns, target, group, .. } = &self.table;
        let (verb, noun) = (label.verb(), label.noun());
        let target = match &target[..] {
            [] => "",
            [target] => target,
            several => {
                let sentence = format!("to {verb}, name the column with the {noun}, found {} columns", several.len());
                return Err(Error::needed(Needed::Target, sentence));
            }
        };
        require(target.is_empty() || target != group, || {
            format!("the column '{target}' names sequences and holds the {noun} at once; name two columns")
        })?;
        self.table.expect_columns_once()?;
        require(!columns.iter().any(|column| column == target), || {
            format!("columns names '{target}', the {noun} to predict; leave it out")
        })?;
        let (columns, target, group) = (columns.clone(), target.to_owned(), group.clone());
        Ok(LabellingConfig {
            label,
            columns,
            target,
            group,
            class_weights: ClassWeights::of_setting(&self.table.class_weights)?,
            division: self.table.division(self.train_fraction, train),
            like: None,
            rows_per_step: self.table.rows_per_step,
            seed: train.seed,
        })
    }

    /// The task of labelling a table for a training with settings `train` in the directory `run`.
    pub(super) fn open_labelling(&self, label: Label, train: &TrainConfig, run: &Path) -> Result<Box<dyn SequenceTask>> {
        let start = table_task_of_start(train, run)?;
        let mut config = self.labelling(label, train)?;
        if let Some(start) = &start {
            // Its weights are for such steps.
            let (own, found) = (start.rows_per_step(), config.rows_per_step);
            require([0, own].contains(&found), || {
                format!("rows_per_step must stay {own}, as in the model that train.from names, found {found}; leave it out")
            })?;
            config.rows_per_step = own;
        }
        let like = start.filter(|task| match task {
            TableTask::Classify(_) => label == Label::Class,
            TableTask::Regress(_) => label == Label::Number,
            TableTask::Forecast(_) => false,
        });
        Ok(Box::new(Labelling::open(self.table_path()?, LabellingConfig { like, ..config })?))
    }
}
