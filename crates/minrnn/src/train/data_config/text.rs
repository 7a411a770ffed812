//! The next token of a text.

use super::{Source, TaskSpec};
use crate::train::check::require;

pub(super) const SPEC: TaskSpec = TaskSpec {
    source: Source::Text,
    keys: |data| {
        require((257..=1 << 20).contains(&data.bpe_vocab_size), || {
            format!("bpe_vocab_size must be between 257 (every byte and one merge) and 1048576, found {}", data.bpe_vocab_size)
        })
    },
    length: |_, train| Ok(("seq_len", train.seq_len)),
    steps: |_, train, _| [train.seq_len; 2],
    ..TaskSpec::MADE
};
