//! Byte-level byte pair encoding, applied by the `tokenizers` crate and stored in its JSON.
//!
//! Only the byte-level kind is accepted (GPT-2 and its successors): every token is then a string of bytes, any text can
//! be encoded, and decoding is joining bytes.

use alloc::{boxed::Box, format, string::String, vec, vec::Vec};
use std::collections::HashMap;

use serde_json::Value;
use tokenizers::decoders::DecoderWrapper;

use crate::{Error, Result};

/// A byte-level BPE vocabulary with its merges.
#[derive(Debug, Clone)]
pub struct Bpe {
    tokenizer: tokenizers::Tokenizer,
    /// The bytes of every id; empty for ids without a token.
    bytes: Vec<Box<[u8]>>,
}

impl Bpe {
    /// From the JSON of a Hugging Face `tokenizer.json`.
    pub(super) fn from_value(mut value: Value) -> Result<Self, String> {
        let model = &mut value["model"];
        if model.get("type").and_then(Value::as_str).is_some_and(|kind| kind != "BPE") || !model.is_object() {
            return Err(format!("has a model of type {}, but only BPE is supported; convert it or train another one", model["type"]));
        }
        for key in ["continuing_subword_prefix", "end_of_word_suffix"] {
            if model.get(key).and_then(Value::as_str).is_some_and(|s| !s.is_empty()) {
                return Err(format!("sets {key}, which byte-level BPE does not have; only byte-level BPE (the GPT-2 kind) is supported"));
            }
        }
        // Encoding must be the same every time and give the tokens of the text alone, all of them.
        model["dropout"] = Value::Null;
        for key in ["truncation", "padding", "post_processor"] {
            value[key] = Value::Null;
        }
        let tokenizer = value.to_string().parse().map_err(|e| {
            format!("is not a usable BPE tokenizer ({e}); take this model's own tokenizer.json, as its other checkpoints have it")
        })?;
        Self::new(tokenizer)
    }

    fn new(tokenizer: tokenizers::Tokenizer) -> Result<Self, String> {
        const ONLY: &str = "only byte-level BPE (the GPT-2 kind) is supported";
        if !matches!(tokenizer.get_decoder(), Some(DecoderWrapper::ByteLevel(_))) {
            return Err(format!("is a BPE tokenizer whose decoder is not ByteLevel; {ONLY}"));
        }
        let byte_of = byte_alphabet();
        let plain = tokenizer.get_vocab(false);
        if let Some(missing) = byte_of.keys().find(|c| !plain.contains_key(c.encode_utf8(&mut [0; 4]) as &str)) {
            return Err(format!("is a BPE tokenizer without a token for byte {:#04x}; {ONLY}", byte_of[missing]));
        }
        let vocab = tokenizer.get_vocab(true);
        let vocab_size = vocab.values().max().map_or(0, |&id| id as usize + 1);
        if vocab_size > 2 * vocab.len() {
            return Err(format!("numbers its {} tokens up to {}; ids must be nearly without holes", vocab.len(), vocab_size - 1));
        }
        if let Some([first, second]) = of_one_id(&vocab) {
            return Err(format!("gives '{first}' and '{second}' the same id {}; every token needs an id of its own", vocab[first]));
        }
        let mut bytes = vec![Box::default(); vocab_size];
        for (token, &id) in &vocab {
            let spelled: Option<Vec<u8>> =
                plain.contains_key(token).then(|| token.chars().map(|c| byte_of.get(&c).copied()).collect()).flatten();
            bytes[id as usize] = spelled.unwrap_or_else(|| token.as_bytes().to_vec()).into_boxed_slice();
        }
        Ok(Self { tokenizer, bytes })
    }

    pub(super) fn vocab_size(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes `id` stands for.
    pub(super) fn bytes_of(&self, id: u32) -> Option<&[u8]> {
        self.bytes.get(id as usize).map(|bytes| &**bytes)
    }

    pub(super) fn encode_into(&self, text: &str, ids: &mut Vec<u32>) -> Result<()> {
        let encoding = self
            .tokenizer
            .encode_fast(text, false)
            .map_err(|e| Error::Text(format!("the BPE tokenizer could not encode the text: {e}")))?;
        ids.extend_from_slice(encoding.get_ids());
        Ok(())
    }

    pub(super) fn to_json(&self) -> Result<String> {
        self.tokenizer.to_string(false).map_err(|e| Error::Tokenizer(format!("could not be described: {e}")))
    }
}

/// The printable stand-in that byte-level BPE writes for each byte: itself when it is a visible Latin-1 character, and
/// otherwise the next unused code point from U+0100 on.
pub(super) fn byte_alphabet() -> HashMap<char, u8> {
    let visible = |b: u8| matches!(b, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let hidden = (0..=255).filter(|&b| !visible(b)).zip('\u{100}'..).map(|(b, c)| (c, b));
    (0..=255).filter(|&b| visible(b)).map(|b| (char::from(b), b)).chain(hidden).collect()
}

/// Two tokens with the same id, if there are any: a decoder could return either.
fn of_one_id(vocab: &HashMap<String, u32>) -> Option<[&str; 2]> {
    let mut tokens: Vec<(u32, &str)> = vocab.iter().map(|(token, &id)| (id, token.as_str())).collect();
    tokens.sort_unstable();
    tokens.windows(2).find(|pair| pair[0].0 == pair[1].0).map(|pair| [pair[0].1, pair[1].1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alphabet_is_that_of_the_crate() {
        let ours: std::collections::HashSet<char> = byte_alphabet().into_keys().collect();
        assert_eq!(ours.len(), 256);
        assert_eq!(ours, tokenizers::pre_tokenizers::byte_level::ByteLevel::alphabet().into_iter().collect());
        assert_eq!(byte_alphabet()[&'Ġ'], b' ');
    }

    #[test]
    fn a_foreign_tokenizer_that_is_not_byte_level_is_refused() {
        let vocab = r#"{"a":0,"b":1,"ab":2}"#;
        let json = |rest: &str| format!(r#"{{"version":"1.0","model":{{"type":"BPE","vocab":{vocab},"merges":["a b"]{rest}}}}}"#);
        let refusal = |json: &str| Bpe::from_value(serde_json::from_str(json).unwrap()).unwrap_err();
        assert!(refusal(&json("")).contains("not ByteLevel"));
        assert!(refusal(&json(r#","continuing_subword_prefix":"quite long""#)).contains("continuing_subword_prefix"));
        let byte_level =
            json("").replace(r#""version":"1.0","#, r#""decoder":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true},"#);
        assert!(refusal(&byte_level).contains("without a token for byte"));
    }
}
