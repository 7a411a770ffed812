//! Long Range Arena: whether one of two papers cites the other.

use super::{DataConfig, Source, TaskSpec, has_key};
use crate::data::{IoKind, Retrieval};

pub(super) const SPEC: TaskSpec = TaskSpec {
    source: Source::Folder,
    reads: |data, key| has_key(&data.retrieval, key),
    validate: |data| data.retrieval.validate(),
    length: |data, _| Ok(("2 · retrieval_max_length", data.retrieval.max_length.saturating_mul(2))),
    scored: |_, _| 1,
    assumed_io: Some(|_| (IoKind::Tokens { n: 256 }, IoKind::Tokens { n: 2 })),
    open: Some(|data, _, _| Ok(Box::new(Retrieval::open(&data.retrieval, data.folder(Retrieval::FILES)?)?))),
    held: DataConfig::numbers_of_text,
    ..TaskSpec::MADE
};
