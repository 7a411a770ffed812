//! `/v1/completions`: prompts and their continuations.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use axum::response::sse::Event as Sent;
use minrnn_model::Tokenizer;
use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::asked::{Asked, sampling, stops, tokens_of};
use super::error::ApiError;
use super::fields::{Fields, StreamOptions, TextOr};
use super::pieces::{Narrator, Piece, Pieces, streamed};
use super::tokens::{Logprobs, Place};
use super::unsupported::OF_COMPLETIONS;
use super::{AT_ONCE, App, Served, answered_json, now};
use crate::job::Ended;

/// Tokens generated if the request does not say how many, as in OpenAI's API.
const MAX_TOKENS: usize = 16;
/// Most of the likeliest tokens that are reported.
const MAX_LOGPROBS: usize = 20;
/// Most bytes of prompts that an answer repeats.
const MAX_ECHO: usize = 16 << 20;

/// A prompt as a text or as tokens.
struct Prompt {
    tokens: Arc<[u32]>,
    text: Arc<str>,
}

pub(super) async fn completions(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    let Wanted { model, prompts, asked, echo, stream, usage_wanted } = app.read(request, Wanted::of).await?;
    let served = app.model(model.as_deref())?;
    let (n, has_logprobs, seed) = (asked.n, asked.logprobs.is_some(), asked.sampling.seed as i64);
    let (events, choices) = asked.submit(&app, served)?;
    let id = app.next_id("cmpl-");
    let texts = (0..choices).map(|choice| Text::new(&prompts[choice / n], echo, has_logprobs)).collect();
    let tokenizer = served.tokenizer.clone();
    let prompt_tokens = prompts.iter().map(|prompt| prompt.tokens.len()).sum();
    let answer = Answer {
        id,
        model: served.name.clone(),
        created: now(),
        seed,
        tokenizer,
        texts,
        n,
        usage: Usage { prompt_tokens, ..Usage::default() },
        usage_wanted,
    };
    let pieces = Pieces::new(events, choices);
    if stream { Ok(streamed(pieces, answer)) } else { answer.whole(pieces, &app).await }
}

/// What a request asks for.
struct Wanted {
    model: Option<String>,
    prompts: Vec<Prompt>,
    asked: Asked,
    /// Whether the answer repeats the prompts.
    echo: bool,
    stream: bool,
    /// Whether a stream ends with the numbers of its tokens.
    usage_wanted: bool,
}

impl Wanted {
    fn of(app: &App, mut fields: Fields) -> Result<Self, ApiError> {
        let model = fields.take::<String>("model")?;
        let served = app.model(model.as_deref())?;
        let settings = &app.settings;
        let prompt = fields.take::<Box<RawValue>>("prompt")?;
        let n = fields.number("n", 1..=settings.sessions)?.unwrap_or(1);
        let most = settings.max_tokens;
        let max_tokens = fields.number("max_tokens", 0..=most)?.unwrap_or(MAX_TOKENS.min(most));
        let sampling = sampling(app, &mut fields)?;
        let stops = stops(&mut fields)?;
        let logprobs = fields.number("logprobs", 0..=MAX_LOGPROBS)?;
        let echo = fields.take::<bool>("echo")?.unwrap_or(false);
        let stream = fields.take::<bool>("stream")?.unwrap_or(false);
        let options = fields.take::<StreamOptions>("stream_options")?.unwrap_or_default();
        if fields.number("best_of", 1..=settings.sessions)?.is_some_and(|best_of| best_of != n) {
            return Err(ApiError::field("best_of", "must be n: all texts are given back"));
        }
        fields.expect_unused(&OF_COMPLETIONS)?;
        fields.end()?;

        let prompts = prompts(served, prompt.as_deref().map_or("\"\"", RawValue::get), settings.queue)?;
        let repeated = prompts.iter().map(|prompt| prompt.text.len()).sum::<usize>().saturating_mul(n);
        if echo && repeated > MAX_ECHO {
            let sentence = format!("the answer would repeat {repeated} bytes, expected at most {MAX_ECHO}; leave it out, or lower n");
            return Err(ApiError::field("echo", sentence));
        }
        let of_prompt = echo && logprobs.is_some();
        let tokens = prompts.iter().map(|prompt| prompt.tokens.clone()).collect();
        let asked = Asked { prompts: tokens, n, max_tokens, sampling, stops, logprobs, of_prompt };
        Ok(Self { model, prompts, asked, echo, stream, usage_wanted: options.include_usage.unwrap_or(false) })
    }
}

/// The prompts of the field `json`, at most `most`, which are counted before any is read.
fn prompts(served: &Served, json: &str, most: usize) -> Result<Vec<Prompt>, ApiError> {
    let expected =
        |_: serde_json::Error| ApiError::field("prompt", "expected a text, a list of texts, a list of tokens, or a list of such lists");
    let are_several = json.strip_prefix('[').is_some_and(|list| list.trim_start().starts_with(['"', '[']));
    if !are_several {
        return Ok(vec![Prompt::of(served, serde_json::from_str(json).map_err(expected)?)?]);
    }
    // A list of what is ignored takes no memory.
    let found = serde_json::from_str::<Vec<IgnoredAny>>(json).map_err(expected)?.len();
    if found > most {
        let sentence = format!("expected at most {most} prompts, found {found}; send them in several requests");
        return Err(ApiError::field("prompt", sentence));
    }
    let given: Vec<Given> = serde_json::from_str(json).map_err(expected)?;
    given.into_iter().map(|given| Prompt::of(served, given)).collect()
}

/// A prompt as it is sent: a text, or its tokens.
type Given = TextOr<u32>;

impl Prompt {
    fn of(served: &Served, given: Given) -> Result<Self, ApiError> {
        match given {
            TextOr::Text(text) => {
                let tokens = tokens_of(served, &text).map_err(|error| error.of("prompt"))?;
                Ok(Self { tokens: tokens.into(), text: text.into() })
            }
            TextOr::List(mut tokens) => {
                let text = served.tokenizer.decode(&tokens).map_err(|error| ApiError::field("prompt", error.to_string()))?;
                if tokens.is_empty() {
                    tokens.push(served.tokenizer.start_token());
                }
                Ok(Self { tokens: tokens.into(), text: text.into() })
            }
        }
    }
}

/// What a choice has left to send before the generated text.
struct Text {
    /// The prompt and its first token, if the prompt is to be repeated.
    echo: Option<(Arc<str>, Option<u32>)>,
    has_logprobs: bool,
    /// How far the text has come.
    place: Place,
}

impl Text {
    fn new(prompt: &Prompt, echo: bool, has_logprobs: bool) -> Self {
        // Offsets count from the beginning of the prompt even without an echo.
        let place = if echo { Place::default() } else { Place::behind(&prompt.text) };
        // The token that stands for an empty prompt is not reported.
        let first = prompt.tokens.first().copied().filter(|_| !prompt.text.is_empty());
        Self { echo: echo.then(|| (prompt.text.clone(), first)), has_logprobs, place }
    }

    /// The text of a piece and its probabilities.
    fn tell<'p>(&mut self, tokenizer: &'p Tokenizer, piece: &'p Piece) -> (String, Option<Logprobs<'p>>) {
        let mut logprobs = Logprobs { tokenizer, first: None, of_prompt: &[], generated: &piece.logprobs, place: self.place.clone() };
        let mut text = String::new();
        if let Some((_, of_prompt)) = &piece.read
            && let Some((prompt, first)) = self.echo.take()
        {
            text += &prompt;
            (logprobs.first, logprobs.of_prompt) = (first, of_prompt);
        }
        text += &piece.text;
        if !self.has_logprobs {
            return (text, None);
        }
        self.place = logprobs.end();
        (text, Some(logprobs))
    }
}

/// What is sent of a text, all of it or a part.
#[derive(Serialize)]
struct Choice<'p> {
    index: usize,
    text: String,
    logprobs: Option<Logprobs<'p>>,
    finish_reason: Option<Ended>,
}

/// An answer, or one event of it.
#[derive(Serialize)]
struct Completion<'p> {
    id: &'p str,
    object: &'static str,
    created: u64,
    model: &'p str,
    choices: &'p [Choice<'p>],
    seed: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Value>,
}

#[derive(Default)]
struct Usage {
    prompt_tokens: usize,
    completion_tokens: usize,
    cached_tokens: usize,
}

impl Usage {
    fn to_json(&self) -> Value {
        let Self { prompt_tokens, completion_tokens, cached_tokens } = self;
        json!({ "prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens, "total_tokens": prompt_tokens + completion_tokens,
            "prompt_tokens_details": { "cached_tokens": cached_tokens } })
    }
}

struct Answer {
    id: String,
    model: String,
    created: u64,
    seed: i64,
    tokenizer: Arc<Tokenizer>,
    texts: Vec<Text>,
    n: usize,
    usage: Usage,
    usage_wanted: bool,
}

impl Answer {
    fn count(&mut self, piece: &Piece) {
        self.usage.completion_tokens += piece.tokens.len();
        // Each prompt is read once, whatever the number of its continuations.
        if let Some((cached, _)) = piece.read.as_ref().filter(|_| piece.choice.is_multiple_of(self.n)) {
            self.usage.cached_tokens += cached;
        }
    }

    fn choice<'p>(&mut self, tokenizer: &'p Tokenizer, piece: &'p Piece) -> Choice<'p> {
        self.count(piece);
        let (text, logprobs) = self.texts[piece.choice].tell(tokenizer, piece);
        Choice { index: piece.choice, text, logprobs, finish_reason: piece.ended }
    }

    fn to_json(&self, choices: &[Choice<'_>], usage: Option<Value>) -> String {
        let Self { id, model, created, seed, .. } = self;
        let completion = Completion { id, object: "text_completion", created: *created, model, choices, seed: *seed, usage };
        serde_json::to_string(&completion).expect("numbers and texts, whose names are texts")
    }

    /// The answer once all of it is known.
    fn complete(&mut self, pieces: &[Piece]) -> String {
        let tokenizer = self.tokenizer.clone();
        let choices: Vec<Choice<'_>> = pieces.iter().map(|piece| self.choice(&tokenizer, piece)).collect();
        self.to_json(&choices, Some(self.usage.to_json()))
    }

    async fn whole(mut self, mut pieces: Pieces, app: &Arc<App>) -> Result<Response, ApiError> {
        let mut whole: Vec<Piece> = (0..self.texts.len()).map(|choice| Piece { choice, ..Piece::default() }).collect();
        loop {
            let news = pieces.next().await?;
            if news.is_empty() {
                break;
            }
            for Piece { choice, text, tokens, logprobs, read, ended } in news {
                let all = &mut whole[choice];
                all.text += &text;
                all.tokens.extend(tokens);
                all.logprobs.extend(logprobs);
                all.read = read.or(all.read.take());
                all.ended = ended;
            }
        }
        let weight: usize = whole.iter().map(|piece| self.weight(piece)).sum();
        let json = if weight > AT_ONCE { app.aside(move |_| Ok(self.complete(&whole))).await? } else { self.complete(&whole) };
        Ok(answered_json(json))
    }
}

impl Narrator for Answer {
    fn tell(&mut self, piece: Piece) -> Vec<Sent> {
        let tokenizer = self.tokenizer.clone();
        let choice = self.choice(&tokenizer, &piece);
        if choice.text.is_empty() && choice.logprobs.is_none() && choice.finish_reason.is_none() {
            return Vec::new();
        }
        // If it is wanted at the end, earlier events have it as null.
        let usage = self.usage_wanted.then_some(Value::Null);
        vec![Sent::default().data(self.to_json(&[choice], usage))]
    }

    fn weight(&self, piece: &Piece) -> usize {
        piece.weight() + self.texts[piece.choice].echo.as_ref().map_or(0, |(prompt, _)| prompt.len())
    }

    fn fail(&mut self, error: &ApiError) -> Vec<Sent> {
        vec![Sent::default().data(error.body().to_string())]
    }

    fn end(&mut self) -> Vec<Sent> {
        let usage = self.usage_wanted.then(|| self.to_json(&[], Some(self.usage.to_json())));
        usage.into_iter().chain(["[DONE]".to_owned()]).map(|data| Sent::default().data(data)).collect()
    }
}
