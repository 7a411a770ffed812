//! What a model does.

use minrnn_model::{Forecaster, TableTask};

use crate::{Error, Model, Reads, Result};

/// What a model does, by its task and its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelKind {
    /// Predicts the class of a table's sequence.
    Classifier,
    /// Predicts a number for a table's sequence.
    Regressor,
    /// Predicts the next rows of a table.
    Forecaster,
    /// Continues texts.
    Text,
    /// Chooses actions.
    Policy,
    /// Reads tokens, without a known vocabulary.
    Tokens,
    /// Reads numbers, without a known table.
    Values,
}

/// The task of a model that was trained on a table.
///
/// # Errors
/// When there is none.
pub fn expect_table(table: Option<&TableTask>) -> Result<&TableTask> {
    table.ok_or(Error::Kind("the model was not trained on a table: it has no rows to read"))
}

/// Checks that `model` reads and predicts what `task` says, by their numbers of inputs and outputs.
///
/// # Errors
/// When the model reads tokens, or `task` is that of another model.
pub fn expect_task_of(model: &Model, task: &TableTask) -> Result<()> {
    match model.reads() {
        Reads::Values { width } => Ok(task.expect_fits(width, model.outputs())?),
        Reads::Tokens { .. } => Err(Error::Reads { expected: model.reads(), found: "rows of a table" }),
    }
}

/// The forecaster of a model whose forecasts say how surprising rows are.
///
/// # Errors
/// When the model does something else, or forecasts single numbers.
pub fn expect_surprise(task: &TableTask) -> Result<&Forecaster> {
    match task {
        TableTask::Forecast(forecaster) if forecaster.tells_surprise() => Ok(forecaster),
        TableTask::Forecast(_) => {
            Err(Error::Kind("the model forecasts a single number without a spread to judge surprise by; train it with several quantiles"))
        }
        TableTask::Classify(_) | TableTask::Regress(_) => Err(Error::Kind(
            "the model labels whole sequences and predicts no rows; a forecaster with quantiles says how surprising rows are",
        )),
    }
}

impl ModelKind {
    /// The kind of `model`, given its task on tables, if any; `reads_text` says whether it has a vocabulary.
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

    /// Its name, a lower-case word.
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
