//! What a generator remembers of each text beside the model's state.

use minrnn_stream::{Sampler, Sampling, StopStrings};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::data::{TextStream, Tokenizer};

/// The repetition penalty acts on this many of the latest tokens, those of the prompt included.
pub const RECENT_TOKENS: usize = 64;

/// Everything but the model's state.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SavedText {
    pub sampling: Sampling,
    pub rows: Vec<Row>,
}

/// Of one row.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    /// The latest token; the model has read everything before it.
    pub unread: u32,
    /// At most [`RECENT_TOKENS`] of the latest tokens, `unread` the last of them.
    pub recent: Vec<u32>,
    pub sampler: Sampler,
    pub stream: TextStream,
    pub stops: StopStrings,
    pub stopped: bool,
}

impl Row {
    /// Chooses the next token; gives the text it completes and whether a stop string was met.
    pub fn choose(&mut self, tokenizer: &Tokenizer, logits: &mut [f32]) -> Result<(String, bool)> {
        let token = self.sampler.sample(logits, &self.recent)?;
        self.unread = token;
        if self.recent.len() == RECENT_TOKENS {
            self.recent.remove(0);
        }
        self.recent.push(token);
        let (shown, stopped) = self.stops.push(&self.stream.push(tokenizer, token)?);
        self.stopped = stopped;
        if stopped {
            // A character begun after the stop string goes with the rest of that token.
            self.stream = TextStream::new();
        }
        Ok((shown, stopped))
    }
}

pub(super) fn latest(tokens: &[u32]) -> Vec<u32> {
    tokens[tokens.len().saturating_sub(RECENT_TOKENS)..].to_vec()
}
