//! Text to tokens and back.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use minrnn_model::Tokenizer;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use serde_json::json;

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

/// How probable tokens were, as completions tell it: written from what the model said, without a copy. Offsets count characters from the beginning of
/// the text that is told.
#[derive(Debug)]
pub(super) struct Told<'t> {
    pub tokenizer: &'t Tokenizer,
    /// A token of which nothing is known: the first of a prompt.
    pub first: Option<u32>,
    pub of_prompt: &'t [Logprob],
    pub generated: &'t [Logprob],
    /// Where the first token begins.
    pub offset: usize,
}

impl<'t> Told<'t> {
    fn tokens(&self) -> impl Iterator<Item = (u32, Option<&'t Logprob>)> {
        let known = self.of_prompt.iter().chain(self.generated);
        self.first.map(|token| (token, None)).into_iter().chain(known.map(|logprob| (logprob.token, Some(logprob))))
    }

    /// Where each token begins, and where the last one ends.
    fn offsets(&self) -> impl Iterator<Item = usize> {
        let behind = self.tokens().scan(self.offset, |offset, (token, _)| {
            *offset += characters(self.tokenizer, token);
            Some(*offset)
        });
        std::iter::once(self.offset).chain(behind)
    }

    /// The offset behind the last token.
    pub fn end(&self) -> usize {
        self.offsets().last().unwrap_or(self.offset)
    }

    fn top(&self, Logprob { top, .. }: &Logprob) -> BTreeMap<String, f64> {
        top.iter().map(|&(token, logprob)| (named(self.tokenizer, token), f64::from(logprob))).collect()
    }
}

impl Serialize for Told<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut told = serializer.serialize_struct("Told", 4)?;
        told.serialize_field("tokens", &Each(|| self.tokens().map(|(token, _)| named(self.tokenizer, token))))?;
        told.serialize_field("token_logprobs", &Each(|| self.tokens().map(|(_, known)| known.map(|known| f64::from(known.logprob)))))?;
        told.serialize_field("top_logprobs", &Each(|| self.tokens().map(|(_, known)| known.map(|known| self.top(known)))))?;
        told.serialize_field("text_offset", &Each(|| self.offsets().zip(self.tokens()).map(|(offset, _)| offset)))?;
        told.end()
    }
}

/// A list whose items are made as they are written.
struct Each<F>(F);

impl<F, I> Serialize for Each<F>
where
    F: Fn() -> I,
    I: Iterator,
    I::Item: Serialize,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
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
        let known = |token: u8, logprob: f32, top: Vec<(u32, f32)>| Logprob { token: token.into(), logprob, top };
        let of_prompt = [known(0xa9, -0.5, vec![(0xa9, -0.5), (u32::from(b'a'), -1.0)])];
        let generated = [known(b'x', -2.0, Vec::new())];
        let told = Told { tokenizer: &Tokenizer::Byte, first: Some(0xc3), of_prompt: &of_prompt, generated: &generated, offset: 3 };
        assert_eq!(told.end(), 5);
        let expected = json!({ "tokens": ["bytes:\\xc3", "bytes:\\xa9", "x"], "token_logprobs": [null, -0.5, -2.0],
            "top_logprobs": [null, { "bytes:\\xa9": -0.5, "a": -1.0 }, {}], "text_offset": [3, 4, 4] });
        assert_eq!(serde_json::to_value(&told).unwrap(), expected);
    }
}
