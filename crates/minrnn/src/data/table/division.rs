//! How the files of a task are read, and which part each of them is.

use std::path::{Path, PathBuf};

use minrnn_model::Missing;

use super::columns::{TimeColumn, Wanted};

/// Times, gaps and parts of a task's files.
#[derive(Debug, Clone, PartialEq)]
pub struct Division {
    /// The column that tells when a row was.
    pub time: TimeColumn,
    /// What is done with numbers that are missing.
    pub missing: Missing,
    /// Share of the training file that is not held out: of its sequences, or of every sequence from its start.
    pub train_fraction: f64,
    /// Whether a part that is held out chooses the best checkpoint.
    pub validates: bool,
    /// A table that chooses the best checkpoint.
    pub validation: Option<PathBuf>,
    /// A table that is reported.
    pub test: Option<PathBuf>,
}

impl Division {
    /// All of the file `path` is scored, by a model that knows its times by the column `time`.
    pub(super) fn unseen(path: &Path, time: Option<&str>, missing: Missing) -> Self {
        let time = TimeColumn::of_setting(time.unwrap_or_default());
        Self { time, missing, train_fraction: 1.0, validates: false, validation: None, test: Some(path.to_owned()) }
    }

    /// The columns of `wanted` with times and gaps.
    pub(super) fn wanted(&self, wanted: Wanted) -> Wanted {
        Wanted { time: self.time.clone(), may_miss: !self.missing.is_error(), ..wanted }
    }
}
