//! `/v1/responses`: a text that grows with every request, each of which names the answer that it continues.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use axum::response::sse::Event as Sent;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::asked::{Asked, sampling, stops, tokens_of};
use super::error::ApiError;
use super::fields::{Field, Fields, Object, TextOr};
use super::kept::Text;
use super::pieces::{Narrator, Piece, Pieces, streamed};
use super::tokens::tokens_within;
use super::unsupported::OF_RESPONSES;
use super::{App, answered, now};
use crate::job::Ended;

/// Tokens generated if the request does not say how many.
const MAX_TOKENS: usize = 256;

/// Most pairs of `metadata`, and most characters of a key and of a value, as in OpenAI's API.
const MAX_PAIRS: usize = 16;
const MAX_KEY: usize = 64;
const MAX_VALUE: usize = 512;

pub(super) async fn responses(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    let Wanted { model, before, tokens, asked, store, stream, metadata } = app.read(request, Wanted::of).await?;
    let served = app.model(Some(&model))?;
    let Asked { max_tokens, sampling, .. } = &asked;
    let answer = Answer {
        head: json!({ "id": app.next_id("resp_"), "object": "response", "created_at": now(), "model": model,
            "previous_response_id": before, "store": store, "metadata": metadata, "max_output_tokens": max_tokens,
            "temperature": sampling.temperature, "top_p": sampling.top_p, "seed": sampling.seed as i64, "error": null, "instructions": null,
            "parallel_tool_calls": false, "tool_choice": "none", "tools": [] }),
        message: app.next_id("msg_"),
        model,
        store,
        read: tokens.len(),
        tokens,
        cached: 0,
        text: String::new(),
        ended: None,
        sequence: 0,
        app: app.clone(),
    };
    let (events, choices) = asked.submit(&app, served)?;
    let pieces = Pieces::new(events, choices);
    if stream { Ok(streamed(pieces, answer)) } else { answer.whole(pieces).await }
}

/// What a request asks for.
struct Wanted {
    /// The name of the model.
    model: String,
    /// The answer to go on from.
    before: Option<String>,
    /// The text of that answer and the input.
    tokens: Vec<u32>,
    asked: Asked,
    store: bool,
    stream: bool,
    metadata: Metadata,
}

impl Wanted {
    fn of(app: &App, mut fields: Fields) -> Result<Self, ApiError> {
        let named = fields.take::<String>("model")?;
        let before = fields.take::<String>("previous_response_id")?;
        let input = fields.take::<Box<RawValue>>("input")?.map_or_else(|| Ok(String::new()), |input| text_of(&input))?;
        let most = app.settings.max_tokens;
        let max_tokens = fields.number("max_output_tokens", 1..=most)?.unwrap_or(MAX_TOKENS.min(most));
        let sampling = sampling(app, &mut fields)?;
        let stops = stops(&mut fields)?;
        let store = fields.take::<bool>("store")?.unwrap_or(true);
        let stream = fields.take::<bool>("stream")?.unwrap_or(false);
        let metadata = fields.take::<Metadata>("metadata")?.unwrap_or_default();
        fields.expect_unused(&OF_RESPONSES)?;
        fields.end()?;

        let (served, mut tokens) = match &before {
            None => (app.model(named.as_deref())?, Vec::new()),
            Some(id) => {
                let gone = || ApiError::field("previous_response_id", format!("there is no answer '{id}'; send the whole text as input"));
                let Text { model, tokens } = app.kept.get(id).ok_or_else(gone)?;
                if let Some(named) = named.filter(|named| *named != model) {
                    return Err(ApiError::field("model", format!("the answer '{id}' is of '{model}', found '{named}'")));
                }
                (app.model(Some(&model))?, tokens)
            }
        };
        if !input.is_empty() || tokens.is_empty() {
            tokens.extend(tokens_of(served, &input).map_err(|error| error.of("input"))?);
        }
        let prompts = vec![tokens.clone().into()];
        let asked = Asked { prompts, n: 1, max_tokens, sampling, stops, logprobs: None, of_prompt: false };
        Ok(Self { model: served.name.clone(), before, tokens, asked, store, stream, metadata })
    }
}

/// What a client notes beside an answer, which repeats it.
#[derive(Default, Serialize)]
struct Metadata(BTreeMap<String, String>);

impl Field for Metadata {
    const EXPECTED: &'static str = "an object of at most 16 texts of at most 512 characters each, under names of at most 64";
}

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Metadata;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(Metadata::EXPECTED)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Metadata, A::Error> {
                let mut pairs = BTreeMap::new();
                while let Some((key, value)) = map.next_entry::<String, String>()? {
                    if pairs.len() == MAX_PAIRS || key.chars().count() > MAX_KEY || value.chars().count() > MAX_VALUE {
                        return Err(A::Error::custom("it is beyond a limit"));
                    }
                    pairs.insert(key, value);
                }
                Ok(Metadata(pairs))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

/// A message of the field `input`; what else it has is not read.
#[derive(Deserialize)]
struct Message {
    role: String,
    content: TextOr<Object<Part>>,
}

/// A part of the text of a message.
#[derive(Deserialize)]
struct Part {
    #[serde(rename = "type")]
    kind: String,
    text: String,
}

/// The text of `input`: a string, or messages of a user whose texts are concatenated.
fn text_of(input: &RawValue) -> Result<String, ApiError> {
    let expected = || ApiError::field("input", "expected a text, or messages of a user with texts; the model knows no roles");
    let part = |Object(part): Object<Part>| if part.kind == "input_text" { Ok(part.text) } else { Err(expected()) };
    let message = |Object(message): Object<Message>| match message.content {
        _ if message.role != "user" => Err(expected()),
        TextOr::Text(text) => Ok(text),
        TextOr::List(parts) => parts.into_iter().map(part).collect::<Result<String, _>>(),
    };
    match serde_json::from_str::<TextOr<Object<Message>>>(input.get()).map_err(|_| expected())? {
        TextOr::Text(text) => Ok(text),
        TextOr::List(messages) => messages.into_iter().map(message).collect(),
    }
}

struct Answer {
    /// The fields of the answer that are the same in any state.
    head: Value,
    message: String,
    model: String,
    store: bool,
    /// Tokens of the prompt.
    read: usize,
    /// Those and the generated ones.
    tokens: Vec<u32>,
    cached: usize,
    text: String,
    ended: Option<Ended>,
    /// Number of the next event.
    sequence: usize,
    app: Arc<App>,
}

impl Answer {
    fn add(&mut self, piece: Piece) -> String {
        self.tokens.extend(&piece.tokens);
        if let Some((cached, _)) = piece.read {
            self.cached = cached;
        }
        self.ended = piece.ended.or(self.ended);
        self.text += &piece.text;
        piece.text
    }

    fn content(&self) -> Value {
        json!({ "type": "output_text", "text": self.text, "annotations": [], "logprobs": [] })
    }

    fn item(&self, status: &str, content: Option<Value>) -> Value {
        let content: Vec<Value> = content.into_iter().collect();
        json!({ "type": "message", "id": self.message, "role": "assistant", "status": status, "content": content })
    }

    /// The answer in its present state: under way without an item, or at its end with one.
    fn to_json(&self, status: &str, item: Option<Value>) -> Value {
        let (read, generated) = (self.read, self.tokens.len() - self.read);
        let mut answer = self.head.clone();
        answer["status"] = status.into();
        answer["output"] = item.iter().cloned().collect();
        answer["incomplete_details"] = if status == "incomplete" { json!({ "reason": "max_output_tokens" }) } else { Value::Null };
        answer["usage"] = match item {
            None => Value::Null,
            Some(_) => json!({ "input_tokens": read, "input_tokens_details": { "cached_tokens": self.cached }, "output_tokens": generated,
                "output_tokens_details": { "reasoning_tokens": 0 }, "total_tokens": read + generated }),
        };
        answer
    }

    /// The tokens of the whole text as the client knows it: the model may have gone further than what was sent, to the end of a stop string.
    fn sent_tokens(&self) -> Vec<u32> {
        let (read, generated) = self.tokens.split_at(self.read);
        let sent = match self.app.model(Some(&self.model)) {
            Ok(served) if self.ended == Some(Ended::Stop) => tokens_within(&served.tokenizer, generated, &self.text).ok(),
            _ => None,
        };
        // If the vocabulary has no tokens for the text up to the stop string, the text continues after all that was generated.
        sent.map_or_else(|| self.tokens.clone(), |sent| [read, &sent].concat())
    }

    fn finished(&self) -> Value {
        if self.store {
            let tokens = self.sent_tokens();
            let id = self.head["id"].as_str().unwrap_or_default().to_owned();
            self.app.kept.insert(id, Text { model: self.model.clone(), tokens });
        }
        let status = status_of(self.ended);
        self.to_json(status, Some(self.item(status, Some(self.content()))))
    }

    async fn whole(mut self, mut pieces: Pieces) -> Result<Response, ApiError> {
        loop {
            let news = pieces.next().await?;
            if news.is_empty() {
                return Ok(answered(&self.finished()));
            }
            news.into_iter().for_each(|piece| drop(self.add(piece)));
        }
    }

    fn event(&mut self, kind: &str, mut body: Value) -> Sent {
        body["type"] = kind.into();
        body["sequence_number"] = self.sequence.into();
        self.sequence += 1;
        Sent::default().event(kind).data(body.to_string())
    }

    /// Where in the answer the text of an event belongs.
    fn place(&self) -> Value {
        json!({ "item_id": self.message, "output_index": 0, "content_index": 0 })
    }
}

impl Narrator for Answer {
    fn begin(&mut self) -> Vec<Sent> {
        let (answer, item) = (self.to_json("in_progress", None), self.item("in_progress", None));
        let part = with(self.place(), "part", self.content());
        vec![
            self.event("response.created", json!({ "response": answer })),
            self.event("response.in_progress", json!({ "response": answer })),
            self.event("response.output_item.added", json!({ "output_index": 0, "item": item })),
            self.event("response.content_part.added", part),
        ]
    }

    fn tell(&mut self, piece: Piece) -> Vec<Sent> {
        let text = self.add(piece);
        if text.is_empty() {
            return Vec::new();
        }
        let delta = with(with(self.place(), "delta", text.into()), "logprobs", json!([]));
        vec![self.event("response.output_text.delta", delta)]
    }

    fn fail(&mut self, error: &ApiError) -> Vec<Sent> {
        let mut answer = self.to_json("failed", None);
        answer["error"] = json!({ "code": "server_error", "message": error.body()["error"]["message"] });
        vec![self.event("response.failed", json!({ "response": answer }))]
    }

    fn end(&mut self) -> Vec<Sent> {
        let status = status_of(self.ended);
        let text = with(with(self.place(), "text", self.text.clone().into()), "logprobs", json!([]));
        let part = with(self.place(), "part", self.content());
        let (item, answer) = (self.item(status, Some(self.content())), self.finished());
        vec![
            self.event("response.output_text.done", text),
            self.event("response.content_part.done", part),
            self.event("response.output_item.done", json!({ "output_index": 0, "item": item })),
            // Whatever the status: clients wait for this event, and models without an end token always stop at a length.
            self.event("response.completed", json!({ "response": answer })),
        ]
    }
}

/// The status of a response by why it ended: complete or not.
fn status_of(ended: Option<Ended>) -> &'static str {
    match ended {
        Some(Ended::Stop) => "completed",
        Some(Ended::Length) | None => "incomplete",
    }
}

fn with(mut object: Value, name: &str, value: Value) -> Value {
    object[name] = value;
    object
}
