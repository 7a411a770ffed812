//! How series are laid out in a table.

use serde::{Deserialize, Serialize};

/// How series are laid out in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// A row for each step of a series.
    #[default]
    Long,
    /// A row for each series, with a column for each step, and columns with its name and its class.
    WideSeries,
    /// A row for each time, with a column for each series.
    WideColumns,
}

impl Layout {
    /// Whether each row is a step.
    pub fn is_long(&self) -> bool {
        *self == Self::Long
    }
}
