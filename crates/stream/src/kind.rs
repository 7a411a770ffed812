//! What a model is for.

use minrnn_model::TableTask;

use crate::{Error, Model, Reads, Result};

/// What a model is for, by its task and what it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelKind {
    /// It says of which class a sequence of a table is.
    Classifier,
    /// It says a number of a sequence of a table.
    Regressor,
    /// It says the next rows of a table.
    Forecaster,
    /// It continues texts.
    Text,
    /// It acts.
    Policy,
    /// It reads tokens, of which no vocabulary is known.
    Tokens,
    /// It reads numbers, of which no table is known.
    Values,
}

/// The task of a model that was trained on a table.
///
/// # Errors
/// When it was not, and has none.
pub fn expect_table(table: Option<&TableTask>) -> Result<&TableTask> {
    table.ok_or(Error::Kind("the model was not trained on a table: it has no rows to read"))
}

impl ModelKind {
    /// That of `model` with its task on tables, where it has one; `reads_text` where a vocabulary came with it.
    pub fn of(model: &Model, table: Option<&TableTask>, reads_text: bool) -> Self {
        match (table, model.reads()) {
            (Some(TableTask::Classify(_)), _) => Self::Classifier,
            (Some(TableTask::Regress(_)), _) => Self::Regressor,
            (Some(TableTask::Forecast(_)), _) => Self::Forecaster,
            (None, _) if reads_text => Self::Text,
            (None, _) if model.is_policy() => Self::Policy,
            (None, Reads::Tokens { .. }) => Self::Tokens,
            (None, Reads::Values { .. }) => Self::Values,
        }
    }

    /// Its name, a word in small letters.
    pub fn name(self) -> &'static str {
        match self {
            Self::Classifier => "classifier",
            Self::Regressor => "regressor",
            Self::Forecaster => "forecaster",
            Self::Text => "text",
            Self::Policy => "policy",
            Self::Tokens => "tokens",
            Self::Values => "values",
        }
    }
}
