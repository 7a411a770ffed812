//! A class for every sequence of a table.

use super::{DataConfig, Source, TaskSpec};
use crate::data::IoKind;
use crate::data::table::{Classification, ClassificationConfig, twice};
use crate::train::check::require;
use crate::{Error, Needed, Result};

pub(super) const SPEC: TaskSpec = TaskSpec {
    source: Source::Table,
    steps: |_, _, longest| [longest.unwrap_or(1); 2],
    scored: |_, _| 1,
    assumed_io: Some(|data| (data.values(), IoKind::Tokens { n: 2 })),
    open: Some(|data, train, _| Ok(Box::new(Classification::open(data.table()?, data.classification(train.seed)?)?))),
    ..TaskSpec::MADE
};

impl DataConfig {
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

    /// The values of a step, as many as columns are named.
    pub(super) fn values(&self) -> IoKind {
        IoKind::Values { width: self.columns.len().max(1) }
    }

    pub(super) fn expect_columns_once(&self) -> Result<()> {
        for (key, names) in [("target", &self.target), ("columns", &self.columns)] {
            let twice = twice(names);
            require(twice.is_none(), || format!("{key} names the column '{}' twice", twice.map_or("", String::as_str)))?;
        }
        Ok(())
    }
}
