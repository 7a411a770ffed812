//! A prompt to be continued, and what comes back of it.

use std::time::Instant;

use minrnn_stream::Continuation;
use tokio::sync::mpsc::UnboundedSender;

use crate::logprobs::Logprob;

/// One prompt and its continuations.
#[derive(Debug)]
pub(crate) struct Job {
    /// At least one token.
    pub prompt: Vec<u32>,
    /// One for each continuation.
    pub texts: Vec<Continuation>,
    /// The number of the first continuation in its request; the others count on.
    pub first_choice: usize,
    /// Tokens generated for each.
    pub max_tokens: usize,
    /// Bytes that the session of each will take at most.
    pub session_bytes: u64,
    /// How many of the likeliest tokens are told beside each one, if any are.
    pub logprobs: Option<usize>,
    /// Whether they are told of the prompt's tokens too.
    pub of_prompt: bool,
    pub events: UnboundedSender<Event>,
    pub arrived: Instant,
}

/// What is said of a job. The channel ends before all continuations have, where the model's thread did.
#[derive(Debug, PartialEq)]
pub(crate) enum Event {
    /// The prompt has been read; its first token has no probability.
    Read { choice: usize, cached: usize, logprobs: Vec<Logprob> },
    /// A token was generated.
    Token(Generated),
    /// It cannot go on.
    Failed { sentence: String },
}

/// One token of one continuation.
#[derive(Debug, PartialEq)]
pub(crate) struct Generated {
    pub choice: usize,
    /// None where none was asked for and the text only ends.
    pub token: Option<u32>,
    /// The text it completed.
    pub text: String,
    pub logprob: Option<Logprob>,
    pub ended: Option<Ended>,
}

/// Why a text ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Ended {
    /// A stop string came.
    Stop,
    /// It has as many tokens as were asked for.
    Length,
}
