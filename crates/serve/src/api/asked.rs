//! What a request asks a model for, from its fields to jobs.

use std::sync::Arc;
use std::time::Instant;

use minrnn_stream::{Continuation, Sampler, Sampling, StopStrings};

use super::error::ApiError;
use super::fields::{Fields, TextOr};
use super::unsupported::OF_TEXTS;
use super::{App, Served};
use crate::job::{Events, Job, channel};

type Result<T> = std::result::Result<T, ApiError>;

/// Most stop strings; all of them are looked for after every token.
const MAX_STOPS: usize = 64;
/// Most bytes of a stop string.
const MAX_STOP_BYTES: usize = 1024;
/// Most token probabilities in an answer, over all its texts.
const MAX_PROBABILITIES: u128 = 1 << 20;

/// The prompts of a request and how they are continued.
pub(crate) struct Asked {
    /// Each at least one token; no more of them than may wait.
    pub prompts: Vec<Arc<[u32]>>,
    /// Continuations of each prompt.
    pub n: usize,
    pub max_tokens: usize,
    pub sampling: Sampling,
    pub stops: Vec<String>,
    /// How many of the likeliest tokens are reported.
    pub logprobs: Option<usize>,
    /// Whether probabilities are reported for the prompts' tokens too.
    pub of_prompt: bool,
}

/// A setting of the sampler that is a number.
type Setting = fn(&mut Sampling) -> &mut f64;

/// These settings by the names of their fields.
const SETTINGS: [(&str, Setting); 4] = [
    ("temperature", |sampling| &mut sampling.temperature),
    ("top_p", |sampling| &mut sampling.top_p),
    ("min_p", |sampling| &mut sampling.min_p),
    ("repetition_penalty", |sampling| &mut sampling.repetition_penalty),
];

/// The settings of the sampler; a request without a seed gets one of its own.
pub(super) fn sampling(app: &App, fields: &mut Fields) -> Result<Sampling> {
    let mut sampling = Sampling::default();
    for (name, setting) in SETTINGS {
        let Some(value) = fields.take(name)? else { continue };
        *setting(&mut sampling) = value;
        // Earlier settings have been checked, so an error belongs to this field.
        sampling.validate().map_err(|error| ApiError::wrong(error.to_string()).param(name))?;
    }
    sampling.top_k = fields.take("top_k")?.unwrap_or(sampling.top_k);
    // Clients may send negative seeds.
    sampling.seed = fields.take::<i64>("seed")?.map_or_else(|| app.next_seed(), |seed| seed as u64);
    fields.expect_unused(&OF_TEXTS)?;
    Ok(sampling)
}

/// The field `stop`.
pub(super) fn stops(fields: &mut Fields) -> Result<Vec<String>> {
    let stops = match fields.take::<TextOr<String>>("stop")? {
        None => Vec::new(),
        Some(TextOr::Text(stop)) => vec![stop],
        Some(TextOr::List(stops)) => stops,
    };
    if stops.len() > MAX_STOPS || stops.iter().any(|stop| stop.len() > MAX_STOP_BYTES) {
        return Err(ApiError::field("stop", format!("expected at most {MAX_STOPS} strings of at most {MAX_STOP_BYTES} bytes")));
    }
    Ok(stops)
}

/// The tokens of a text, of which there is at least one.
pub(super) fn tokens_of(served: &Served, text: &str) -> Result<Vec<u32>> {
    let tokens = served.tokenizer.encode(text).map_err(|error| ApiError::wrong(error.to_string()))?;
    Ok(if tokens.is_empty() { vec![served.tokenizer.start_token()] } else { tokens })
}

impl Asked {
    /// Hands the prompts to the model; returns the events to come and the number of texts.
    pub fn submit(self, app: &App, served: &Served) -> Result<(Events, usize)> {
        self.expect_tellable()?;
        let Self { prompts, n, max_tokens, sampling, stops, logprobs, of_prompt } = self;
        // Checked before anything is built for each prompt and text.
        served.engine.expect_room(prompts.len())?;
        let stops = StopStrings::new(&stops).map_err(|error| ApiError::field("stop", error.to_string()))?;
        let session_bytes = |prompt: &[u32]| {
            let bytes = served.model.session_bytes(prompt.len().saturating_add(max_tokens));
            let most = app.settings.session_bytes;
            if bytes.saturating_mul(n as u128) > u128::from(most) {
                let sentence = format!("{} tokens and {max_tokens} more take {bytes} bytes for each of {n} texts", prompt.len());
                return Err(ApiError::wrong(format!("{sentence}, expected at most {most} for all; shorten the prompt, or ask for less")));
            }
            Ok(bytes as u64)
        };
        let choices = prompts.len() * n;
        let (client, events) = channel(choices);
        let texts = |prompt: &[u32]| -> minrnn_stream::Result<Vec<Continuation>> {
            // The continuations of a prompt do not depend on its place in the request.
            (0..n).map(|i| Ok(Continuation::new(prompt, Sampler::of_row(&sampling, i)?, stops.clone()))).collect()
        };
        let jobs = prompts.into_iter().enumerate().map(|(i, prompt)| {
            let texts = texts(&prompt).map_err(|error| ApiError::wrong(error.to_string()))?;
            let client = client.clone();
            let session_bytes = session_bytes(&prompt)?;
            let first_choice = i * n;
            Ok(Job { prompt, texts, first_choice, max_tokens, session_bytes, logprobs, of_prompt, client, arrived: Instant::now() })
        });
        let jobs = jobs.collect::<Result<Vec<_>>>()?;
        served.engine.submit(jobs)?;
        Ok((events, choices))
    }

    /// Refuses requests for more probabilities than an answer may hold.
    fn expect_tellable(&self) -> Result<()> {
        let Some(top) = self.logprobs else { return Ok(()) };
        let of_text = |prompt: &Arc<[u32]>| (if self.of_prompt { prompt.len() } else { 0 }) as u128 + self.max_tokens as u128;
        let tokens = self.prompts.iter().map(of_text).sum::<u128>() * self.n as u128;
        let probabilities = tokens * (1 + top as u128);
        if probabilities <= MAX_PROBABILITIES {
            return Ok(());
        }
        let sentence = format!("{tokens} tokens of all texts with {} probabilities each are {probabilities}", 1 + top);
        Err(ApiError::field(
            "logprobs",
            format!("{sentence}, expected at most {MAX_PROBABILITIES}; ask for fewer, or for less text at once"),
        ))
    }
}
