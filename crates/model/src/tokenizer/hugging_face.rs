//! Vocabularies in the format of Hugging Face's `tokenizers`, which has no kind of its own for characters or bytes.
//!
//! Characters are words of one character each, in a text split before every character. Bytes are a byte-level BPE without merges.

use alloc::{format, string::String};

use serde_json::{Map, Value, json};

use super::bpe::byte_alphabet;
use super::{Characters, Tokenizer};
use crate::Result;

/// What a text is cut into: any character, including line breaks, in every dialect of regular expressions.
const ANY_CHARACTER: &str = r"[\s\S]";

impl Tokenizer {
    /// A `tokenizer.json` for Hugging Face's `tokenizers`, with the same ids.
    ///
    /// # Errors
    /// When a vocabulary of pieces cannot be described.
    pub fn to_hugging_face(&self) -> Result<String> {
        let value = match self {
            Self::Bpe(bpe) => return bpe.to_json(),
            Self::Character(characters) => {
                let vocab: Map<String, Value> = format!("{characters}").chars().zip(0..).map(|(c, id)| (c.into(), json!(id))).collect();
                // A character that is not among them is refused, as no word stands for it.
                let model = json!({"type": "WordLevel", "vocab": vocab, "unk_token": "<unk>"});
                let cut = json!({"type": "Split", "pattern": {"Regex": ANY_CHARACTER}, "behavior": "Isolated", "invert": false});
                file(&model, &cut, &json!({"type": "Fuse"}))
            }
            Self::Byte => {
                let vocab: Map<String, Value> = byte_alphabet().into_iter().map(|(c, byte)| (c.into(), json!(byte))).collect();
                let model = json!({"type": "BPE", "vocab": vocab, "merges": []});
                let bytes = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false});
                file(&model, &bytes, &bytes)
            }
        };
        Ok(format!("{value:#}\n"))
    }
}

fn file(model: &Value, pre_tokenizer: &Value, decoder: &Value) -> Value {
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": pre_tokenizer, "post_processor": null, "decoder": decoder, "model": model,
    })
}

/// The characters of a file that [`Tokenizer::to_hugging_face`] wrote; `None` if its model is not a list of words.
pub(super) fn characters(file: &Value) -> Result<Option<Characters>, String> {
    if file["model"]["type"] != "WordLevel" {
        return Ok(None);
    }
    let of_words = || "is a list of words, and only those of one character each are supported, in the order of their code points";
    let vocab = file["model"]["vocab"].as_object().ok_or_else(of_words)?;
    let cuts = file["pre_tokenizer"]["pattern"]["Regex"] == ANY_CHARACTER;
    let id_of = |(word, id): (&String, &Value)| Some((id.as_u64()?, word.clone())).filter(|_| cuts && word.chars().count() == 1);
    let mut words = vocab.iter().map(id_of).collect::<Option<alloc::vec::Vec<_>>>().ok_or_else(of_words)?;
    words.sort_unstable();
    if words.iter().zip(0..).any(|((id, _), place)| *id != place) {
        return Err(of_words().into());
    }
    let sorted: String = words.into_iter().map(|(_, word)| word).collect();
    Characters::from_sorted(&sorted).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_come_back_and_the_crate_gives_their_ids() {
        let text = "zebra é\n日 \u{1F600}\r";
        let ours = Tokenizer::characters_of(text);
        let json = ours.to_hugging_face().unwrap();
        let again = Tokenizer::from_json(json.as_bytes()).unwrap();
        assert_eq!(again.to_json().unwrap(), ours.to_json().unwrap());
        let theirs: tokenizers::Tokenizer = json.parse().unwrap();
        let ids = theirs.encode(text, false).unwrap().get_ids().to_vec();
        assert_eq!(ids, ours.encode(text).unwrap());
        assert_eq!(theirs.decode(&ids, false).unwrap(), text);
        assert!(theirs.encode("x", false).is_err(), "a character that is not among them");
    }

    #[test]
    fn bytes_have_their_ids_in_the_crate() {
        let text = "any é\n日\u{1F600} text";
        let json = Tokenizer::Byte.to_hugging_face().unwrap();
        let theirs: tokenizers::Tokenizer = json.parse().unwrap();
        let ids = theirs.encode(text, false).unwrap().get_ids().to_vec();
        assert_eq!(ids, Tokenizer::Byte.encode(text).unwrap());
        assert_eq!(theirs.decode(&ids, false).unwrap(), text);
        let again = Tokenizer::from_json(json.as_bytes()).unwrap();
        assert_eq!((again.vocab_size(), again.encode(text).unwrap()), (256, ids));
    }

    #[test]
    fn lists_of_words_and_damaged_ones_are_refused() {
        let json = |vocab: &str, cut: &str| {
            let pre = format!(r#"{{"type": "Split", "pattern": {{"Regex": "{cut}"}}, "behavior": "Isolated", "invert": false}}"#);
            format!(r#"{{"version": "1.0", "pre_tokenizer": {pre}, "model": {{"type": "WordLevel", "unk_token": "?", "vocab": {vocab}}}}}"#)
        };
        let read =
            |json: String| Tokenizer::from_json(json.as_bytes()).map(drop).map_err(|error| alloc::string::ToString::to_string(&error));
        let cut = r"[\\s\\S]";
        read(json(r#"{"a": 0, "b": 1}"#, cut)).unwrap();
        for vocab in [r#"{"ab": 0, "b": 1}"#, r#"{"a": 0, "b": 2}"#, r#"{"a": 0, "b": -1}"#, "[]", r#"{"": 0}"#] {
            assert!(read(json(vocab, cut)).unwrap_err().contains("one character each"), "{vocab}");
        }
        assert!(read(json(r#"{"b": 0, "a": 1}"#, cut)).unwrap_err().contains("out of order"));
        assert!(read(json(r#"{"a": 0}"#, "other")).unwrap_err().contains("one character each"));
        assert!(read(json("{}", cut)).unwrap_err().contains("no character"));
    }
}
