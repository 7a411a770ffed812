//! How a task's files are read, and which part each of them is.

use std::path::{Path, PathBuf};

use minrnn_model::{Layout, Missing};

use super::columns::{TimeColumn, Wanted};
use super::layout::LayoutChoice;

/// Times, missing values and parts of a task's files.
#[derive(Debug, Clone, PartialEq)]
pub struct Division {
    /// The column with the time of a row.
    pub time: TimeColumn,
    /// The layout of the series.
    pub layout: LayoutChoice,
    /// How missing numbers are treated.
    pub missing: Missing,
    /// Share of the training file that is not held out: a share of its sequences, or of every sequence from its start.
    pub train_fraction: f64,
    /// Whether a held-out part chooses the best checkpoint.
    pub validates: bool,
    /// A table that chooses the best checkpoint.
    pub validation: Option<PathBuf>,
    /// A table for the report.
    pub test: Option<PathBuf>,
}

impl Division {
    /// The whole file `path` is scored, by a model whose time column is `time`.
    pub(super) fn unseen(path: &Path, time: Option<&str>, layout: Layout, missing: Missing) -> Self {
        let time = TimeColumn::of_setting(time.unwrap_or_default());
        Self { time, layout: layout.into(), missing, train_fraction: 1.0, validates: false, validation: None, test: Some(path.to_owned()) }
    }

    /// The layout of the series, as far as it was given or inferred.
    pub(super) fn layout(&self) -> Layout {
        match self.layout {
            LayoutChoice::Auto | LayoutChoice::Long => Layout::Long,
            LayoutChoice::WideSeries => Layout::WideSeries,
            LayoutChoice::WideColumns => Layout::WideColumns,
        }
    }

    /// `wanted` with the settings for times, missing values and layout.
    pub(super) fn wanted(&self, wanted: Wanted) -> Wanted {
        Wanted { time: self.time.clone(), may_miss: !self.missing.is_error(), layout: self.layout(), ..wanted }
    }
}
