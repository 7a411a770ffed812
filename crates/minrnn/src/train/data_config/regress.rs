//! Predicting a number for every sequence of a table.

use super::{DataConfig, Loss, Source, TaskSpec};
use crate::data::IoKind;
use crate::data::table::Label;
use crate::train::check::require;

pub(super) const SPEC: TaskSpec = TaskSpec {
    source: Source::Table,
    reads: |data, key| key != "class_weights" && data.reads_of_tables(key),
    validate: |data| {
        require(data.table.class_weights.is_empty(), || "class_weights is for classes; leave it out to predict a number".to_owned())
    },
    steps: |_, _, longest| [longest.unwrap_or(1); 2],
    scored: |_, _| 1,
    loss: |_| Loss::SquaredError,
    by_accuracy: false,
    assumed_io: Some(|data| (data.table.values(), IoKind::Values { width: 1 })),
    open: Some(|data, train, run| data.open_labelling(Label::Number, train, run)),
    held: DataConfig::numbers_of_tables,
    ..TaskSpec::MADE
};
