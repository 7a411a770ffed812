//! From text to token ids and back: characters, bytes, or byte-level BPE.

mod arriving;
#[cfg(feature = "bpe")]
mod bpe;
mod characters;
#[cfg(feature = "std")]
mod files;
#[cfg(feature = "bpe")]
mod hugging_face;
mod stream;

use alloc::{format, string::String, string::ToString, vec::Vec};

use minrnn_kernels::choices;
use serde::{Deserialize, Serialize};

pub use arriving::TextInput;
#[cfg(feature = "bpe")]
pub use bpe::Bpe;
pub use characters::{Characters, Seen};
pub use stream::{TextStream, incomplete_tail};

use crate::{Error, Result};

/// Marks our own small JSON; a Hugging Face file has a `model` key instead.
const FORMAT: &str = "minrnn-tokenizer";

choices! {
    /// How text is cut into tokens; the config key `tokenizer`.
    TokenizerKind, "tokenizer" {
        /// One token per distinct character of the training text.
        #[default]
        Character = "char",
        /// One token per byte; takes any file, text or not.
        Byte = "byte",
        /// Byte pair encoding over bytes, learned from the training text.
        Bpe = "bpe",
    }
}

/// A vocabulary: encodes text to ids below [`Tokenizer::vocab_size`] and decodes ids to text.
#[derive(Debug, Clone)]
pub enum Tokenizer {
    /// The distinct characters of a text; the id is the rank by code point.
    Character(Characters),
    /// The 256 bytes; the id is the byte.
    Byte,
    /// Byte-level BPE.
    #[cfg(feature = "bpe")]
    Bpe(alloc::boxed::Box<Bpe>),
}

impl Tokenizer {
    /// The character vocabulary of `text`. An empty text has an empty vocabulary, which cannot be read from a file.
    pub fn characters_of(text: &str) -> Self {
        let mut seen = characters::Seen::default();
        seen.add(text);
        Self::Character(seen.into_characters())
    }

    /// The kind of vocabulary.
    pub fn kind(&self) -> TokenizerKind {
        match self {
            Self::Character(_) => TokenizerKind::Character,
            Self::Byte => TokenizerKind::Byte,
            #[cfg(feature = "bpe")]
            Self::Bpe(_) => TokenizerKind::Bpe,
        }
    }

    /// Number of symbols `V`; ids are `0..V`.
    pub fn vocab_size(&self) -> usize {
        match self {
            Self::Character(characters) => characters.len(),
            Self::Byte => 256,
            #[cfg(feature = "bpe")]
            Self::Bpe(bpe) => bpe.vocab_size(),
        }
    }

    /// Checks that this can be the vocabulary of a model that knows `known` tokens; the model may know more than the vocabulary has.
    ///
    /// # Errors
    /// [`Error::Tokenizer`] when the vocabulary has more.
    pub fn expect_known(&self, known: usize) -> Result<()> {
        let found = self.vocab_size();
        if found <= known {
            return Ok(());
        }
        Err(Error::Tokenizer(format!("has {found} tokens, but the model knows {known}; take the tokenizer of this model")))
    }

    /// The ids of `text`.
    ///
    /// # Errors
    /// [`Error::Text`] naming the character and its position when it is not in a character vocabulary.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        let mut ids = Vec::with_capacity(text.len());
        self.encode_into(text, 0, &mut ids)?;
        Ok(ids)
    }

    /// Appends the ids of `text`, which is preceded by `chars_before` characters of a longer text.
    ///
    /// # Errors
    /// As [`encode`](Self::encode); `ids` may then contain some of them.
    pub fn encode_into(&self, text: &str, chars_before: u64, ids: &mut Vec<u32>) -> Result<()> {
        match self {
            Self::Character(characters) => characters.encode_into(text, chars_before, ids),
            Self::Byte => {
                ids.extend(text.bytes().map(u32::from));
                Ok(())
            }
            #[cfg(feature = "bpe")]
            Self::Bpe(bpe) => bpe.encode_into(text, ids),
        }
    }

    /// Appends the ids of a text given as bytes, which is preceded by `chars_before` characters of a longer text. A byte vocabulary accepts
    /// any bytes.
    ///
    /// # Errors
    /// As [`encode_into`](Self::encode_into); also when they are not UTF-8.
    pub fn encode_bytes_into(&self, bytes: &[u8], chars_before: u64, ids: &mut Vec<u32>) -> Result<()> {
        if let Self::Byte = self {
            ids.extend(bytes.iter().map(|&byte| u32::from(byte)));
            return Ok(());
        }
        match core::str::from_utf8(bytes) {
            Ok(text) => self.encode_into(text, chars_before, ids),
            Err(flaw) => Err(Error::Text(format!(
                "byte {} of the text is {:#04x}, where it is not UTF-8; save the text as UTF-8",
                flaw.valid_up_to(),
                bytes[flaw.valid_up_to()]
            ))),
        }
    }

    /// The token that stands for an empty prompt: a line break if that is a single token, otherwise token 0.
    pub fn start_token(&self) -> u32 {
        match self.encode("\n").as_deref() {
            Ok(&[line_break]) => line_break,
            _ => 0,
        }
    }

    /// The text of `ids`. Bytes that are not valid UTF-8 (ids cut inside a character, or generated by a model) become `U+FFFD`.
    ///
    /// # Errors
    /// [`Error::Text`] when an id is not below the vocabulary size.
    pub fn decode(&self, ids: &[u32]) -> Result<String> {
        let mut bytes = Vec::with_capacity(ids.len());
        for &id in ids {
            self.append_bytes(id, &mut bytes)?;
        }
        Ok(String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
    }

    /// Appends the bytes that token `id` stands for.
    ///
    /// # Errors
    /// [`Error::Text`] when `id` is not below the vocabulary size.
    pub fn append_bytes(&self, id: u32, bytes: &mut Vec<u8>) -> Result<()> {
        let known = match self {
            Self::Character(characters) => characters.get(id).map(|c| bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes())),
            Self::Byte => u8::try_from(id).ok().map(|b| bytes.push(b)),
            #[cfg(feature = "bpe")]
            Self::Bpe(bpe) => bpe.bytes_of(id).map(|token| bytes.extend_from_slice(token)),
        };
        known.ok_or_else(|| {
            Error::Text(format!(
                "token id {id} is outside the vocabulary of {} symbols; is this the tokenizer of that model?",
                self.vocab_size()
            ))
        })
    }

    /// Maximum size of a `tokenizer.json` in bytes.
    pub const MAX_FILE_LEN: u64 = 128 << 20;

    /// The content of `tokenizer.json`: our own small JSON for characters and bytes, the Hugging Face format for BPE.
    ///
    /// # Errors
    /// [`Error::Tokenizer`] when it cannot be serialised.
    pub fn to_json(&self) -> Result<String> {
        let own = |kind, characters| {
            let file = OwnFile { format: FORMAT.into(), version: 1, kind, characters };
            serde_json::to_string_pretty(&file).map_err(|e| Error::Tokenizer(format!("could not be described: {e}")))
        };
        match self {
            Self::Character(characters) => own(OwnKind::Character, Some(characters.to_string())),
            Self::Byte => own(OwnKind::Byte, None),
            #[cfg(feature = "bpe")]
            Self::Bpe(bpe) => bpe.to_json(),
        }
    }

    /// Parses a `tokenizer.json` from [`to_json`](Self::to_json), or one in the Hugging Face format: a byte-level BPE, or the characters
    /// written by `to_hugging_face`.
    ///
    /// # Errors
    /// [`Error::Tokenizer`] when it is neither.
    pub fn from_json(json: &[u8]) -> Result<Self> {
        Self::parse(json).map_err(Error::Tokenizer)
    }

    #[cfg(feature = "bpe")]
    fn of_pieces(value: serde_json::Value) -> Result<Self, String> {
        match hugging_face::characters(&value)? {
            Some(characters) => Ok(Self::Character(characters)),
            None => Ok(Self::Bpe(alloc::boxed::Box::new(Bpe::from_value(value)?))),
        }
    }

    #[cfg(not(feature = "bpe"))]
    fn of_pieces(_: serde_json::Value) -> Result<Self, String> {
        Err("is one of pieces (BPE), which this build does not read; build minrnn-stream or minrnn-model with the feature bpe, or take a model \
             of characters or bytes"
            .into())
    }

    fn parse(json: &[u8]) -> Result<Self, String> {
        let value: serde_json::Value = serde_json::from_slice(json)
            .map_err(|e| format!("is not valid json ({e}); take this model's own tokenizer.json, as its other checkpoints have it"))?;
        if value.get("model").is_some() {
            return Self::of_pieces(value);
        }
        let file: OwnFile = serde_json::from_value(value).map_err(|e| {
            format!("is neither a minrnn tokenizer nor one in the Hugging Face format ({e}); take this model's own tokenizer.json, as its other checkpoints have it")
        })?;
        if file.format != FORMAT || file.version != 1 {
            return Err(format!(
                "has format '{}' version {}, but this program reads '{FORMAT}' version 1; use the program that wrote it",
                file.format, file.version
            ));
        }
        match (file.kind, file.characters) {
            (OwnKind::Byte, None) => Ok(Self::Byte),
            (OwnKind::Byte, Some(_)) => {
                Err("lists characters for a byte tokenizer; take this model's own tokenizer.json, as its other checkpoints have it".into())
            }
            (OwnKind::Character, None) => Err(
                "is a character tokenizer without its characters; take this model's own tokenizer.json, as its other checkpoints have it"
                    .into(),
            ),
            (OwnKind::Character, Some(characters)) => Ok(Self::Character(Characters::from_sorted(&characters)?)),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnFile {
    format: String,
    version: u32,
    kind: OwnKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    characters: Option<String>,
}

/// The kinds as our JSON has named them from the beginning. Not those of [`TokenizerKind`]: a configuration says `char`, and BPE has another format.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum OwnKind {
    Character,
    Byte,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written_and_read(tokenizer: &Tokenizer) -> Tokenizer {
        Tokenizer::from_json(tokenizer.to_json().unwrap().as_bytes()).unwrap()
    }

    #[test]
    fn characters_and_bytes_survive_being_written() {
        let text = "the café\n";
        for tokenizer in [Tokenizer::characters_of(text), Tokenizer::Byte] {
            let loaded = written_and_read(&tokenizer);
            assert_eq!(loaded.kind(), tokenizer.kind());
            assert_eq!(loaded.vocab_size(), tokenizer.vocab_size());
            assert_eq!(loaded.encode(text).unwrap(), tokenizer.encode(text).unwrap());
        }
    }

    #[test]
    fn ids_outside_the_vocabulary_are_named() {
        for tokenizer in [Tokenizer::characters_of("ab"), Tokenizer::Byte] {
            let size = tokenizer.vocab_size();
            let message = tokenizer.decode(&[0, size as u32]).unwrap_err().to_string();
            assert!(message.contains(&format!("token id {size} ")), "{message}");
        }
    }

    #[test]
    fn files_that_are_not_tokenizers_are_refused() {
        let cases = [
            ("", "not valid json"),
            ("[]", "neither a minrnn tokenizer nor"),
            ("{\"format\":\"minrnn-tokenizer\",\"version\":2,\"kind\":\"byte\"}", "version 2"),
            ("{\"format\":\"minrnn-tokenizer\",\"version\":1,\"kind\":\"word\"}", "unknown variant"),
            ("{\"format\":\"minrnn-tokenizer\",\"version\":1,\"kind\":\"character\"}", "without its characters"),
            ("{\"format\":\"minrnn-tokenizer\",\"version\":1,\"kind\":\"character\",\"characters\":\"ba\"}", "order"),
            ("{\"format\":\"minrnn-tokenizer\",\"version\":1,\"kind\":\"character\",\"characters\":\"\"}", "no character"),
            ("{\"model\":{\"type\":\"BPE\"}}", "BPE"),
            ("{\"model\":{\"type\":\"WordPiece\"}}", "BPE"),
        ];
        for (json, expected) in cases {
            let message = Tokenizer::from_json(json.as_bytes()).unwrap_err().to_string();
            assert!(message.contains(expected), "{json}: {message}");
        }
    }

    #[cfg(not(feature = "bpe"))]
    #[test]
    fn a_vocabulary_that_this_build_does_not_read_tells_which_crate_would() {
        let refused = Tokenizer::from_json(br#"{"model": {"type": "BPE"}}"#).unwrap_err().to_string();
        assert!(refused.contains("build minrnn-stream or minrnn-model with the feature bpe, or take a model of characters"), "{refused}");
    }

    #[test]
    fn a_model_may_know_more_tokens_than_its_vocabulary_has_and_no_fewer() {
        let tokenizer = Tokenizer::characters_of("abc");
        tokenizer.expect_known(3).unwrap();
        tokenizer.expect_known(4).unwrap();
        let refused = tokenizer.expect_known(2).unwrap_err().to_string();
        assert_eq!(refused, "the tokenizer has 3 tokens, but the model knows 2; take the tokenizer of this model");
    }

    proptest! {
        #[test]
        fn decoding_undoes_encoding(text in "(\\PC|\\s){0,200}") {
            for tokenizer in [Tokenizer::characters_of(&text), Tokenizer::Byte] {
                let ids = tokenizer.encode(&text).unwrap();
                prop_assert!(ids.iter().all(|&id| (id as usize) < tokenizer.vocab_size()));
                prop_assert_eq!(tokenizer.decode(&ids).unwrap(), text.clone());
            }
        }

        #[test]
        fn a_damaged_description_never_panics(at in any::<prop::sample::Index>(), byte: u8, truncate: bool) {
            let mut json = Tokenizer::characters_of("hello, world").to_json().unwrap().into_bytes();
            let at = at.index(json.len());
            if truncate { json.truncate(at) } else { json[at] = byte }
            if let Ok(read) = Tokenizer::from_json(&json) {
                let _ = read.encode("hello");
            }
        }
    }
}
