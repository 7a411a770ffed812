//! Text to tokens and back.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use minrnn_model::{TextStream, Tokenizer};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use serde_json::json;

use super::error::ApiError;
use super::fields::Fields;
use super::{App, answered_json};
use crate::logprobs::Logprob;

/// The answer of `/tokenize`.
#[derive(Serialize)]
struct Tokens {
    count: usize,
    tokens: Vec<u32>,
}

/// `{"prompt": …}` → `{"tokens": […], "count": n}`.
pub(super) async fn tokenize(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    let encode = |app: &App, mut fields: Fields| -> Result<String, ApiError> {
        let model = fields.take::<String>("model")?;
        let prompt: String = fields.take("prompt")?.ok_or_else(|| ApiError::field("prompt", "expected a text"))?;
        fields.end()?;
        let tokens = app.model(model.as_deref())?.tokenizer.encode(&prompt);
        let tokens = tokens.map_err(|error| ApiError::field("prompt", error.to_string()))?;
        Ok(serde_json::to_string(&Tokens { count: tokens.len(), tokens }).expect("numbers"))
    };
    Ok(answered_json(app.read(request, encode).await?))
}

/// `{"tokens": […]}` → `{"prompt": …}`.
pub(super) async fn detokenize(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    let decode = |app: &App, mut fields: Fields| -> Result<String, ApiError> {
        let served = app.model(fields.take::<String>("model")?.as_deref())?;
        let tokens: Vec<u32> = fields.take("tokens")?.ok_or_else(|| ApiError::field("tokens", "expected a list of numbers"))?;
        fields.end()?;
        let prompt = served.tokenizer.decode(&tokens).map_err(|error| ApiError::field("tokens", error.to_string()))?;
        Ok(json!({ "prompt": prompt }).to_string())
    };
    Ok(answered_json(app.read(request, decode).await?))
}

/// The tokens of `text`, a prefix of what was `generated`: the generated tokens that end inside it, then the tokens of the rest.
pub(super) fn tokens_within(tokenizer: &Tokenizer, generated: &[u32], text: &str) -> minrnn_model::Result<Vec<u32>> {
    let (mut stream, mut len) = (TextStream::new(), 0);
    let (mut n_within, mut within) = (0, 0);
    for (i, &token) in generated.iter().enumerate() {
        len += stream.push(tokenizer, token)?.len();
        if len > text.len() {
            break;
        }
        // Not a token that ends inside a character, or that added no text.
        if len > within && stream.clone().finish().is_empty() {
            (n_within, within) = (i + 1, len);
        }
    }
    Ok([&generated[..n_within], &tokenizer.encode(&text[within..])?].concat())
}

/// How far the text that was sent has come.
#[derive(Debug, Clone, Default)]
pub(super) struct Place {
    /// Complete characters so far.
    characters: usize,
    stream: TextStream,
}

impl Place {
    /// The place after `text`.
    pub fn behind(text: &str) -> Self {
        Self { characters: text.chars().count(), stream: TextStream::new() }
    }

    /// Characters up to here; one that has begun counts, whether it is completed or not.
    fn offset(&self) -> usize {
        self.characters + self.stream.clone().finish().chars().count()
    }

    fn read(&mut self, tokenizer: &Tokenizer, token: u32) {
        // An unknown token has no text.
        self.characters += self.stream.push(tokenizer, token).map_or(0, |text| text.chars().count());
    }

    /// The place of a text that follows here and does not complete a character begun before it.
    fn of_next_text(&self) -> Self {
        Self { characters: self.offset(), stream: TextStream::new() }
    }
}

/// The `logprobs` of a completion, serialised from the model's results without a copy. Offsets count characters from the beginning of the text that is
/// sent.
#[derive(Debug)]
pub(super) struct Logprobs<'t> {
    pub tokenizer: &'t Tokenizer,
    /// A token without a probability: the first of a prompt.
    pub first: Option<u32>,
    pub of_prompt: &'t [Logprob],
    pub generated: &'t [Logprob],
    /// Where the first token begins.
    pub place: Place,
}

impl<'t> Logprobs<'t> {
    fn tokens(&self) -> impl Iterator<Item = (u32, Option<&'t Logprob>)> {
        let known = self.of_prompt.iter().chain(self.generated);
        self.first.map(|token| (token, None)).into_iter().chain(known.map(|logprob| (logprob.token, Some(logprob))))
    }

    /// The place of each token, and the one after the last.
    fn places(&self) -> impl Iterator<Item = Place> {
        let n_of_prompt = usize::from(self.first.is_some()) + self.of_prompt.len();
        let behind = self.tokens().enumerate().scan(self.place.clone(), move |place, (i, (token, _))| {
            place.read(self.tokenizer, token);
            if i + 1 == n_of_prompt {
                *place = place.of_next_text();
            }
            Some(place.clone())
        });
        std::iter::once(self.place.clone()).chain(behind)
    }

    /// The place after the last token.
    pub fn end(&self) -> Place {
        self.places().last().unwrap_or_default()
    }

    fn top(&self, Logprob { top, .. }: &Logprob) -> BTreeMap<String, f64> {
        top.iter().map(|&(token, logprob)| (named(self.tokenizer, token), f64::from(logprob))).collect()
    }
}

impl Serialize for Logprobs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Logprobs", 4)?;
        object.serialize_field("tokens", &Each(|| self.tokens().map(|(token, _)| named(self.tokenizer, token))))?;
        object.serialize_field("token_logprobs", &Each(|| self.tokens().map(|(_, known)| known.map(|known| f64::from(known.logprob)))))?;
        object.serialize_field("top_logprobs", &Each(|| self.tokens().map(|(_, known)| known.map(|known| self.top(known)))))?;
        object.serialize_field("text_offset", &Each(|| self.places().zip(self.tokens()).map(|(place, _)| place.offset())))?;
        object.end()
    }
}

/// A list whose items are made as they are serialised.
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
    // An unknown token has none.
    let _ = tokenizer.append_bytes(token, &mut bytes);
    bytes
}

/// The text of a token, or its bytes if it is not whole characters.
fn named(tokenizer: &Tokenizer, token: u32) -> String {
    String::from_utf8(bytes_of(tokenizer, token))
        .unwrap_or_else(|error| error.as_bytes().iter().fold("bytes:".to_owned(), |name, byte| name + &format!("\\x{byte:02x}")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn known(token: u8, logprob: f32, top: Vec<(u32, f32)>) -> Logprob {
        Logprob { token: token.into(), logprob, top }
    }

    fn offsets_of(place: Place, of_prompt: &[Logprob], generated: &[Logprob]) -> (Value, Place) {
        let logprobs = Logprobs { tokenizer: &Tokenizer::Byte, first: None, of_prompt, generated, place };
        (serde_json::to_value(&logprobs).unwrap()["text_offset"].clone(), logprobs.end())
    }

    proptest! {
        #[test]
        fn offsets_count_the_characters_that_are_told_whatever_bytes_come_and_however_they_are_cut(
            bytes in prop::collection::vec(prop::sample::select(vec![b'x', 0xc3, 0xa9, 0xe6, 0x97, 0xff, 0xf0, 0x9f]), 0..20),
            cut in 0..20usize,
        ) {
            let all: Vec<Logprob> = bytes.iter().map(|&byte| known(byte, -1.0, Vec::new())).collect();
            let (first, rest) = all.split_at(cut.min(all.len()));
            let (before, place) = offsets_of(Place::behind("é日"), &[], first);
            let (behind, end) = offsets_of(place, &[], rest);
            let characters = |bytes: &[u8]| String::from_utf8_lossy(bytes).chars().count();
            prop_assert_eq!(end.offset(), 2 + characters(&bytes));
            let offsets: Vec<usize> = (0..bytes.len()).map(|n| 2 + characters(&bytes[..n])).collect();
            prop_assert_eq!(json!([before.as_array().unwrap().clone(), behind.as_array().unwrap().clone()].concat()), json!(offsets));
            // After a prompt another text begins.
            let (_, end) = offsets_of(Place::default(), first, rest);
            let cut = cut.min(bytes.len());
            prop_assert_eq!(end.offset(), characters(&bytes[..cut]) + characters(&bytes[cut..]));
        }

        #[test]
        fn what_is_kept_of_a_text_is_the_text_that_was_told(text in "[aé日]{0,12}", at in 0..12usize, more in "[aé日]{0,3}") {
            let sent: String = text.chars().take(at).collect();
            let generated: Vec<u32> = (text + &more).bytes().map(u32::from).collect();
            let kept = tokens_within(&Tokenizer::Byte, &generated, &sent).unwrap();
            prop_assert_eq!(kept, sent.bytes().map(u32::from).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_piece_that_a_text_ends_inside_is_kept_in_part() {
        let visible = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
        let mut hidden = '\u{100}'..;
        let mut sign = |byte: u8| if visible(byte) { char::from(byte) } else { hidden.next().unwrap() };
        let mut vocab: serde_json::Map<String, Value> = (0..=255).map(|byte| (sign(byte).to_string(), byte.into())).collect();
        vocab.extend([("ab".to_owned(), 256.into()), ("abab".to_owned(), 257.into())]);
        let bytes = json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true });
        let model = json!({ "type": "BPE", "vocab": vocab, "merges": ["a b", "ab ab"] });
        let json = json!({ "version": "1.0", "pre_tokenizer": bytes, "decoder": bytes, "model": model }).to_string();
        let tokenizer = Tokenizer::from_json(json.as_bytes()).unwrap();
        let generated = [257, 256, u32::from(b'x')];
        for (text, expected) in [
            ("abababx", &[257, 256, u32::from(b'x')][..]),
            ("ababab", &[257, 256]),
            ("ababa", &[257, u32::from(b'a')]),
            ("aba", &[256, u32::from(b'a')]),
            ("", &[]),
        ] {
            assert_eq!(tokens_within(&tokenizer, &generated, text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn tokens_are_named_by_their_text_or_their_bytes_and_offsets_count_characters() {
        let of_prompt = [known(0xa9, -0.5, vec![(0xa9, -0.5), (u32::from(b'a'), -1.0)])];
        let generated = [known(b'x', -2.0, Vec::new())];
        let logprobs = Logprobs {
            tokenizer: &Tokenizer::Byte,
            first: Some(0xc3),
            of_prompt: &of_prompt,
            generated: &generated,
            place: Place::behind("日本語"),
        };
        assert_eq!(logprobs.end().offset(), 5);
        let expected = json!({ "tokens": ["bytes:\\xc3", "bytes:\\xa9", "x"], "token_logprobs": [null, -0.5, -2.0],
            "top_logprobs": [null, { "bytes:\\xa9": -0.5, "a": -1.0 }, {}], "text_offset": [3, 4, 4] });
        assert_eq!(serde_json::to_value(&logprobs).unwrap(), expected);
    }
}
