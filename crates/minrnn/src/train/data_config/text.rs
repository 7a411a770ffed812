//! Predicting the next token of a text.

use serde::{Deserialize, Serialize};

use super::{Loss, Source, TaskSpec, has_key};
use crate::data::TokenizerKind;
use crate::train::check::require;

pub(super) const SPEC: TaskSpec = TaskSpec {
    source: Source::Text,
    reads: |data, key| ["train_fraction", "corpus"].contains(&key) || has_key(&data.text, key),
    keys: |data| {
        require((257..=1 << 20).contains(&data.text.bpe_vocab_size), || {
            format!("bpe_vocab_size must be between 257 (every byte and one merge) and 1048576, found {}", data.text.bpe_vocab_size)
        })
    },
    length: |_, train| Ok(("seq_len", train.seq_len)),
    steps: |_, train, _| [train.seq_len; 2],
    loss: |_| Loss::PerToken,
    by_accuracy: false,
    ..TaskSpec::MADE
};

/// How a text is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TextConfig {
    /// How text is tokenised. Default `char`.
    pub tokenizer: TokenizerKind,
    /// Size of the vocabulary learned with `tokenizer = bpe`. Default 1024.
    pub bpe_vocab_size: usize,
    /// How training windows are chosen. Default `random`.
    pub sampling: WindowSampling,
}

impl Default for TextConfig {
    fn default() -> Self {
        Self { tokenizer: TokenizerKind::Character, bpe_vocab_size: 1024, sampling: WindowSampling::Random }
    }
}

/// How training windows are chosen from a token file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WindowSampling {
    /// At random offsets; every window starts from the initial state.
    #[default]
    Random,
    /// One after another; the state is carried from window to window, also between the micro-steps of an update.
    Stream,
    /// As `stream`, but each micro-step has its own positions and carries its state to the next update: `accumulation` of them form one
    /// batch that is that many times larger, and can be distributed among processes.
    Lanes,
}
