//! Text to tokens and back.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use minrnn_model::Tokenizer;
use serde_json::{Map, Value, json};

use super::error::ApiError;
use super::{App, answered};
use crate::logprobs::Logprob;

/// `{"prompt": …}` → `{"tokens": […], "count": n}`.
pub(super) async fn tokenize(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    let mut fields = app.fields(request).await?;
    let model = fields.take::<String>("model")?;
    let prompt: String = fields.take("prompt")?.ok_or_else(|| ApiError::field("prompt", "expected a text"))?;
    fields.end()?;
    let encode = move |app: &App| {
        let tokens = app.model(model.as_deref())?.tokenizer.encode(&prompt);
        tokens.map_err(|error| ApiError::field("prompt", error.to_string()))
    };
    let tokens = app.aside(encode).await?;
    Ok(answered(&json!({ "tokens": tokens, "count": tokens.len() })))
}

/// `{"tokens": […]}` → `{"prompt": …}`.
pub(super) async fn detokenize(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    let mut fields = app.fields(request).await?;
    let served = app.model(fields.take::<String>("model")?.as_deref())?;
    let tokens: Vec<u32> = fields.take("tokens")?.ok_or_else(|| ApiError::field("tokens", "expected a list of numbers"))?;
    fields.end()?;
    let prompt = served.tokenizer.decode(&tokens).map_err(|error| ApiError::field("tokens", error.to_string()))?;
    Ok(answered(&json!({ "prompt": prompt })))
}

/// How probable tokens were, as completions tell it. Offsets count characters from the beginning of the text that is told.
#[derive(Debug)]
pub(super) struct Told<'t> {
    tokenizer: &'t Tokenizer,
    tokens: Vec<String>,
    token_logprobs: Vec<Option<f32>>,
    top_logprobs: Vec<Option<Map<String, Value>>>,
    text_offset: Vec<usize>,
    offset: usize,
}

impl<'t> Told<'t> {
    pub fn new(tokenizer: &'t Tokenizer, offset: usize) -> Self {
        Self { tokenizer, tokens: Vec::new(), token_logprobs: Vec::new(), top_logprobs: Vec::new(), text_offset: Vec::new(), offset }
    }

    /// A token of which nothing is known, such as the first of a prompt.
    pub fn first(&mut self, token: u32) {
        self.push(token);
        self.token_logprobs.push(None);
        self.top_logprobs.push(None);
    }

    pub fn add(&mut self, Logprob { token, logprob, top }: &Logprob) {
        self.push(*token);
        self.token_logprobs.push(Some(*logprob));
        let named = top.iter().map(|&(token, logprob)| (named(self.tokenizer, token), json!(logprob)));
        self.top_logprobs.push(Some(named.collect()));
    }

    fn push(&mut self, token: u32) {
        self.tokens.push(named(self.tokenizer, token));
        self.text_offset.push(self.offset);
        self.offset += characters(self.tokenizer, token);
    }

    /// The offset behind the last token, and all of it.
    pub fn end(self) -> (usize, Value) {
        let Self { tokens, token_logprobs, top_logprobs, text_offset, offset, .. } = self;
        let told = json!({ "tokens": tokens, "token_logprobs": token_logprobs, "top_logprobs": top_logprobs, "text_offset": text_offset });
        (offset, told)
    }
}

fn bytes_of(tokenizer: &Tokenizer, token: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    // One that is not known has none.
    let _ = tokenizer.append_bytes(token, &mut bytes);
    bytes
}

/// The text of a token; of one that ends inside a character, its bytes.
fn named(tokenizer: &Tokenizer, token: u32) -> String {
    String::from_utf8(bytes_of(tokenizer, token))
        .unwrap_or_else(|error| error.as_bytes().iter().fold("bytes:".to_owned(), |told, byte| told + &format!("\\x{byte:02x}")))
}

/// Characters that begin in a token.
fn characters(tokenizer: &Tokenizer, token: u32) -> usize {
    bytes_of(tokenizer, token).iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_named_by_their_text_or_their_bytes_and_offsets_count_characters() {
        let mut told = Told::new(&Tokenizer::Byte, 3);
        told.first(0xc3);
        told.add(&Logprob { token: 0xa9, logprob: -0.5, top: vec![(0xa9, -0.5), (u32::from(b'a'), -1.0)] });
        told.add(&Logprob { token: u32::from(b'x'), logprob: -2.0, top: Vec::new() });
        let (offset, told) = told.end();
        assert_eq!(offset, 5);
        let expected = json!({ "tokens": ["bytes:\\xc3", "bytes:\\xa9", "x"], "token_logprobs": [null, -0.5, -2.0],
            "top_logprobs": [null, { "bytes:\\xa9": -0.5, "a": -1.0 }, {}], "text_offset": [3, 4, 4] });
        assert_eq!(told, expected);
    }
}
