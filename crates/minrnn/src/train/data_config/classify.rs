//! A class for every sequence of a table.

use super::table::table_task_of_start;
use super::{DataConfig, Source, TableConfig, TaskSpec};
use crate::data::IoKind;
use crate::data::table::{Classification, ClassificationConfig, TableTask};
use crate::train::check::require;
use crate::train::train_config::TrainConfig;
use crate::{Error, Needed, Result};

pub(super) const SPEC: TaskSpec = TaskSpec {
    source: Source::Table,
    steps: |_, _, longest| [longest.unwrap_or(1); 2],
    scored: |_, _| 1,
    assumed_io: Some(|data| (data.table.values(), IoKind::Tokens { n: 2 })),
    open: Some(|data, train, run| {
        let like = match table_task_of_start(train, run)? {
            Some(TableTask::Classify(like)) => Some(like),
            _ => None,
        };
        let config = ClassificationConfig { like, ..data.classification(train)? };
        Ok(Box::new(Classification::open(data.table_path()?, config)?))
    }),
    held: DataConfig::numbers_of_text,
    ..TaskSpec::MADE
};

impl DataConfig {
    /// What is classified in a table by a training of `train`.
    ///
    /// # Errors
    /// When the columns of sequences and classes are not named, or one is named twice.
    pub fn classification(&self, train: &TrainConfig) -> Result<ClassificationConfig> {
        let TableConfig { columns, target, group, .. } = &self.table;
        let [target] = &target[..] else {
            let found = target.len();
            let sentence = format!("to classify, name the column with the class, found {found} columns");
            return Err(Error::needed(Needed::Target, sentence));
        };
        if group.is_empty() {
            let sentence = "to classify sequences, name the column that tells which of them a row belongs to";
            return Err(Error::needed(Needed::Group, sentence));
        }
        require(target != group, || format!("the column '{target}' names sequences and classes at once; name two columns"))?;
        self.table.expect_columns_once()?;
        require(!columns.contains(target), || format!("columns names '{target}', the class that is to be found; leave it out"))?;
        let (columns, target, group) = (columns.clone(), target.clone(), group.clone());
        Ok(ClassificationConfig {
            columns,
            target,
            group,
            division: self.table.division(self.train_fraction, train),
            like: None,
            seed: train.seed,
        })
    }
}
