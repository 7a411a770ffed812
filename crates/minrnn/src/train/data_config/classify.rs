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
    /// When several columns are named for the class, or one is named twice.
    pub fn classification(&self, train: &TrainConfig) -> Result<ClassificationConfig> {
        let TableConfig { columns, target, group, .. } = &self.table;
        let target = match &target[..] {
            [] => "",
            [target] => target,
            several => {
                let sentence = format!("to classify, name the column with the class, found {} columns", several.len());
                return Err(Error::needed(Needed::Target, sentence));
            }
        };
        require(target.is_empty() || target != group, || {
            format!("the column '{target}' names sequences and classes at once; name two columns")
        })?;
        self.table.expect_columns_once()?;
        require(!columns.iter().any(|column| column == target), || format!("columns names '{target}', the class that is to be found; leave it out"))?;
        let (columns, target, group) = (columns.clone(), target.to_owned(), group.clone());
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
