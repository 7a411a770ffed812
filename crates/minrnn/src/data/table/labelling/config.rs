//! What is labelled from what, and what a model keeps about it.

use std::path::Path;

use minrnn_model::{Category, Classifier, Normalization, Regressor, RowsPerStep, TableTask};

use super::super::categories;
use super::super::label::Label;
use super::super::layout::VALUE;
use super::super::roles::{Roles, Understood};
use super::super::{Division, Frame, Names, TableSource, TimeColumn, Wanted};
use super::class_weights::ClassWeights;
use crate::{Error, Result};

/// What is labelled from what.
#[derive(Debug, Clone, PartialEq)]
pub struct LabellingConfig {
    /// The kind of label.
    pub label: Label,
    /// Columns that are read; empty: all except the group and the label.
    pub columns: Vec<String>,
    /// The column with the label, the same in all rows of a sequence; empty: the one called class, or target for numbers.
    pub target: String,
    /// The column that names the sequence of a row; empty: the one called series.
    pub group: String,
    /// Weights of classes in training.
    pub class_weights: ClassWeights,
    /// How the files are read, and which part each of them is.
    pub division: Division,
    /// A model whose means and deviations are kept; `None`: those of the training part.
    pub like: Option<TableTask>,
    /// Rows of a sequence that the model reads as one step; 0: as many as its length suggests. With `like`, as it does.
    pub rows_per_step: usize,
    /// Seed of the split into parts.
    pub seed: u64,
}

impl LabellingConfig {
    /// What a trained model reads from the table `path`, all of which is to be scored.
    ///
    /// # Errors
    /// When the model labels no sequences.
    pub(super) fn trained(path: &Path, task: &TableTask) -> Result<Self> {
        let label = match task {
            TableTask::Classify(_) => Label::Class,
            TableTask::Regress(_) => Label::Number,
            TableTask::Forecast(_) => return Err(Error::Config("the model forecasts and gives sequences no labels".to_owned())),
        };
        Ok(Self {
            label,
            columns: task.columns().to_vec(),
            target: task.targets()[0].clone(),
            group: task.group().unwrap_or_default().to_owned(),
            class_weights: ClassWeights::Equal,
            division: Division::unseen(path, task.time(), task.layout(), task.missing()),
            like: None,
            rows_per_step: task.rows_per_step(),
            seed: 0,
        })
    }

    /// The columns of `table` that the model of `task` reads, and its labels.
    pub(super) fn read_like(&self, task: &TableTask, table: TableSource<'_>) -> Result<Frame> {
        let known = Names::known(task.columns(), task.categories());
        table.open()?.read(&Wanted { categories: known, ..self.wanted() })
    }

    /// The same, with columns that were not named inferred from `header`.
    pub(super) fn understood(self, header: &[String]) -> Result<(Self, Understood)> {
        let named = |name: String| Some(name).filter(|name| !name.is_empty());
        let Division { time, layout, .. } = self.division.clone();
        let (group, target) = (named(self.group), named(self.target).into_iter().collect());
        let asked = Roles { columns: self.columns.clone(), known_ahead: Vec::new(), group, target, time, layout };
        let (roles, understood) = asked.to_label(header, self.label)?;
        let Roles { group, target, time, layout, .. } = roles;
        let division = Division { time, layout, ..self.division };
        let config = Self { group: group.unwrap_or_default(), target: target.concat(), division, ..self };
        Ok((config, understood))
    }

    fn time(&self) -> Option<String> {
        match &self.division.time {
            TimeColumn::Named(name) => Some(name.clone()),
            _ => None,
        }
    }

    /// What a trained model needs to be used on other tables.
    pub(super) fn classifier(
        &self,
        columns: Vec<String>,
        classes: Vec<String>,
        normalization: Normalization,
        (categories, rows_per_step): (Vec<Category>, Option<RowsPerStep>),
    ) -> Classifier {
        let (group, target, time) = (self.group.clone(), self.target.clone(), self.time());
        let (layout, missing) = (self.division.layout(), self.division.missing);
        Classifier { columns, group, target, time, classes, normalization, missing, layout, categories, rows_per_step }
    }

    /// The same for a model that predicts a number.
    pub(super) fn regressor(
        &self,
        columns: Vec<String>,
        (target_normalization, target_median): (Normalization, Option<f64>),
        normalization: Normalization,
        (categories, rows_per_step): (Vec<Category>, Option<RowsPerStep>),
    ) -> Regressor {
        let (group, target, time) = (self.group.clone(), self.target.clone(), self.time());
        let (layout, missing) = (self.division.layout(), self.division.missing);
        Regressor {
            columns,
            group,
            target,
            time,
            target_normalization,
            target_median,
            normalization,
            missing,
            layout,
            categories,
            rows_per_step,
        }
    }

    pub(super) fn texts(&self) -> Vec<String> {
        vec![self.group.clone(), self.target.clone()]
    }

    /// `wanted` with the settings for times, missing values, layout and labels.
    pub(super) fn read_so(&self, wanted: Wanted) -> Wanted {
        let number = (self.label == Label::Number).then(|| self.target.clone());
        self.division.wanted(Wanted { number, ..wanted })
    }

    pub(super) fn wanted(&self) -> Wanted {
        self.read_so(match self.columns.is_empty() {
            // A wide table has one column of numbers.
            true if !self.division.layout().is_long() => Wanted::named(&[VALUE.to_owned()], self.texts()),
            true => Wanted { texts: self.texts(), ..Wanted::default() },
            false => Wanted { categories: categories::open(&self.columns, &[]), ..Wanted::named(&self.columns, self.texts()) },
        })
    }
}
