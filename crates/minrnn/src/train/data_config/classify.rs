//! Predicting a class for every sequence of a table.

use super::{DataConfig, Source, TaskSpec};
use crate::data::IoKind;
use crate::data::table::Label;

pub(super) const SPEC: TaskSpec = TaskSpec {
    source: Source::Table,
    reads: |data, key| data.reads_of_tables(key),
    keys: DataConfig::expect_labelling,
    steps: |_, _, longest| [longest.unwrap_or(1); 2],
    scored: |_, _| 1,
    assumed_io: Some(|data| (data.table.values(), IoKind::Tokens { n: 2 })),
    open: Some(|data, train, run| data.open_labelling(Label::Class, train, run)),
    held: DataConfig::numbers_of_tables,
    ..TaskSpec::MADE
};
