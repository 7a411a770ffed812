//! What is kept of a text being continued, beside the model's state.

use alloc::{format, string::String, vec::Vec};

use minrnn_model::{TextStream, Tokenizer};
use serde::{Deserialize, Serialize};

use crate::{Error, Result, Sampler, StopStrings};

/// Number of latest tokens, including the prompt's, that the repetition penalty applies to.
pub const RECENT_TOKENS: usize = 64;

/// A text continued token by token: chooses tokens from logits, decodes them as characters are completed, and ends the text before its
/// first stop string. Running the model is up to the caller.
///
/// Deserialising rejects states that could not have arisen.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "Saved")]
pub struct Continuation {
    /// The latest token.
    unread: u32,
    /// At most [`RECENT_TOKENS`] of the latest tokens, `unread` the last of them.
    recent: Vec<u32>,
    sampler: Sampler,
    stream: TextStream,
    stops: StopStrings,
    stopped: bool,
}

/// What is read, before it is checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    unread: u32,
    recent: Vec<u32>,
    sampler: Sampler,
    stream: TextStream,
    stops: StopStrings,
    stopped: bool,
}

impl TryFrom<Saved> for Continuation {
    type Error = Error;

    fn try_from(Saved { unread, recent, sampler, stream, stops, stopped }: Saved) -> Result<Self> {
        let last = recent.last().copied().unwrap_or_default();
        if unread != last {
            return Err(Error::Sampling(format!(
                "the latest token is {unread}, expected {last}, the last of the recent ones; begin the text anew"
            )));
        }
        // Tokens beyond the limit are of no use, but states that hold them have never been refused.
        Ok(Self { unread, recent: latest(&recent), sampler, stream, stops, stopped })
    }
}

impl Continuation {
    /// Continues a text whose tokens so far are `tokens`.
    pub fn new(tokens: &[u32], sampler: Sampler, stops: StopStrings) -> Self {
        let unread = tokens.last().copied().unwrap_or_default();
        Self { unread, recent: latest(tokens), sampler, stream: TextStream::new(), stops, stopped: false }
    }

    /// The latest token, 0 if there is none yet.
    pub fn unread(&self) -> u32 {
        self.unread
    }

    /// Whether a stop string was met.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Chooses tokens with `sampler` from now on.
    pub fn set_sampler(&mut self, sampler: Sampler) {
        self.sampler = sampler;
    }

    /// Looks for `stops` from now on; returns the text held back by the previous ones.
    pub fn replace_stops(&mut self, stops: StopStrings) -> String {
        core::mem::replace(&mut self.stops, stops).take_held()
    }

    /// Appends tokens from outside, also to a text that had stopped, which then continues. Text that was [held back](Continuation::finish)
    /// remains so.
    pub fn extend(&mut self, tokens: &[u32]) {
        self.recent.extend(latest(tokens));
        self.recent = latest(&self.recent);
        self.unread = tokens.last().copied().unwrap_or(self.unread);
        self.stopped = false;
    }

    /// Chooses the next token from the logits `[V]` after the latest one.
    ///
    /// # Errors
    /// As [`Sampler::sample`].
    pub fn choose(&mut self, logits: &mut [f32]) -> Result<u32> {
        let token = self.sampler.sample(logits, &self.recent)?;
        self.unread = token;
        if self.recent.len() == RECENT_TOKENS {
            self.recent.remove(0);
        }
        self.recent.push(token);
        Ok(token)
    }

    /// Returns the text that a chosen token completes and whether a stop string was met; the text ends before it.
    ///
    /// # Errors
    /// When `tokenizer` does not know the token.
    pub fn show(&mut self, tokenizer: &Tokenizer, token: u32) -> Result<(String, bool)> {
        let (shown, stopped) = self.stops.push(&self.stream.push(tokenizer, token)?);
        self.stopped = stopped;
        if stopped {
            // A character begun after the stop string goes with the rest of that token.
            self.stream = TextStream::new();
        }
        Ok((shown, stopped))
    }

    /// Ends the text: returns what was held back.
    pub fn finish(&mut self) -> String {
        if self.stopped {
            return String::new();
        }
        let (shown, stopped) = self.stops.push(&core::mem::take(&mut self.stream).finish());
        self.stopped = stopped;
        shown + &self.stops.take_held()
    }

    /// Checks that a deserialised continuation fits `tokenizer`.
    ///
    /// # Errors
    /// When `tokenizer` does not know its latest token.
    pub fn check(&self, tokenizer: &Tokenizer) -> Result<()> {
        Ok(tokenizer.append_bytes(self.unread, &mut Vec::new())?)
    }
}

fn latest(tokens: &[u32]) -> Vec<u32> {
    tokens[tokens.len().saturating_sub(RECENT_TOKENS)..].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sampling;

    fn of(tokens: &[u32], stops: &[&str]) -> Continuation {
        Continuation::new(
            tokens,
            Sampler::new(Sampling { repetition_penalty: 10.0, ..Sampling::greedy() }).unwrap(),
            StopStrings::new(stops).unwrap(),
        )
    }

    fn wanting(token: u8) -> Vec<f32> {
        let mut logits = vec![0.0; 256];
        logits[usize::from(token)] = 1.0;
        logits
    }

    #[test]
    fn the_penalty_sees_the_latest_tokens_and_no_earlier_ones() {
        let mut text = of(&[7], &[]);
        assert_ne!(text.clone().choose(&mut [[0.5; 7].as_slice(), &[1.0]].concat()).unwrap(), 7);
        text.extend(&[1; RECENT_TOKENS]);
        assert_eq!(text.choose(&mut [[0.5; 7].as_slice(), &[1.0]].concat()).unwrap(), 7);
        assert_eq!(text.unread(), 7);
    }

    /// A continuation of the token 7, read back from its JSON after `change`.
    fn read(change: impl FnOnce(&mut serde_json::Value)) -> serde_json::Result<Continuation> {
        let mut json = serde_json::to_value(of(&[7], &[])).unwrap();
        change(&mut json);
        serde_json::from_value(json)
    }

    #[test]
    fn one_that_is_read_keeps_no_more_tokens_than_one_that_was_made() {
        let mut text = read(|json| json["recent"] = [&[3; 100][..], &[7]].concat().into()).unwrap();
        assert_eq!(text.recent, [&[3; RECENT_TOKENS - 1][..], &[7]].concat());
        text.choose(&mut [0.5; 8]).unwrap();
        assert_eq!(text.recent.len(), RECENT_TOKENS);
        assert!(read(|_| {}).unwrap().check(&Tokenizer::Byte).is_ok());
    }

    #[test]
    fn one_whose_latest_token_is_not_the_last_is_not_read() {
        let refused = read(|json| json["unread"] = 8.into()).unwrap_err().to_string();
        assert_eq!(refused, "the latest token is 8, expected 7, the last of the recent ones; begin the text anew");
        assert!(read(|json| json["recent"] = [0; 0].as_slice().into()).unwrap_err().to_string().contains("expected 0"));
        assert!(read(|json| json["more"] = 1.into()).unwrap_err().to_string().contains("unknown field"));
    }

    #[test]
    fn a_text_ends_before_its_stop_string_and_goes_on_with_more_of_it() {
        let mut text = of(&[], &["ab"]);
        let mut shown = String::new();
        for wanted in *b"xab" {
            let token = text.choose(&mut wanting(wanted)).unwrap();
            shown += &text.show(&Tokenizer::Byte, token).unwrap().0;
        }
        assert_eq!((shown.as_str(), text.is_stopped(), text.finish().as_str()), ("x", true, ""));
        text.extend(b"y".map(u32::from).as_slice());
        assert!(!text.is_stopped());
        let token = text.choose(&mut wanting(b'a')).unwrap();
        assert_eq!(text.show(&Tokenizer::Byte, token).unwrap(), (String::new(), false));
        assert_eq!(text.finish(), "a");
    }
}
