//! Byte-level byte pair encoding, learned and applied by the `tokenizers` crate and stored in its json.
//!
//! Only the byte-level kind is accepted (GPT-2 and its successors): every token is then a string of bytes, any text can
//! be encoded, and decoding is joining bytes.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::sync::Mutex;

use serde_json::Value;
use tokenizers::decoders::DecoderWrapper;
use tokenizers::models::TrainerWrapper;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;

use super::super::text_blocks::{TextBlocks, expect_not_empty};
use crate::{Error, Result};

/// Pair counts of the trainer are 32-bit and its time grows with the text; more text hardly changes the merges.
const MAX_TRAINING_BYTES: u64 = 256 << 20;
/// The longest run of letters, digits, blanks or other characters that merges are learned from, in bytes; a longer one is cut into such
/// pieces. The trainer's time for a word grows with the square of its length, and a text without blanks is one word.
const MAX_WORD: usize = 1 << 10;
const VOCAB_SIZES: std::ops::RangeInclusive<usize> = 256..=1 << 20;

/// A byte-level BPE vocabulary with its merges.
#[derive(Debug, Clone)]
pub struct Bpe {
    tokenizer: tokenizers::Tokenizer,
    /// The bytes of every id; empty for ids without a token.
    bytes: Vec<Box<[u8]>>,
}

impl Bpe {
    /// Learns merges from the first 256 MiB of a text until there are `vocab_size` tokens, or no pair is left to merge.
    pub(super) fn train(vocab_size: usize, mut blocks: TextBlocks<File>, path: &Path) -> Result<Self> {
        if !VOCAB_SIZES.contains(&vocab_size) {
            return Err(Error::Config(format!(
                "a BPE vocabulary can have from {} (one token per byte) to {} tokens, found {vocab_size}",
                VOCAB_SIZES.start(),
                VOCAB_SIZES.end()
            )));
        }
        let mut tokenizer = tokenizers::Tokenizer::new(BPE::default());
        tokenizer.with_pre_tokenizer(Some(ByteLevel::new(false, true, true)));
        tokenizer.with_decoder(Some(ByteLevel::new(false, true, true)));
        let mut trainer: TrainerWrapper = BpeTrainer::builder()
            .show_progress(false)
            .vocab_size(vocab_size)
            .min_frequency(2)
            .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
            .build()
            .into();
        // The trainer pulls blocks from its own threads and knows no errors of reading, so they are kept here.
        let failure = Mutex::new(None);
        let bytes_read = Mutex::new(0);
        let texts = std::iter::from_fn(|| {
            if blocks.position() >= MAX_TRAINING_BYTES {
                return None;
            }
            let block = blocks.next_block();
            *lock(&bytes_read) = blocks.position();
            block.unwrap_or_else(|e| {
                *lock(&failure) = Some(e);
                None
            })
        });
        tokenizer
            .train(&mut trainer, texts.flat_map(cut_long_words))
            .map_err(|e| Error::Data(format!("could not learn a vocabulary from '{}': {e}", path.display())))?;
        if let Some(error) = lock(&failure).take() {
            return Err(error);
        }
        expect_not_empty(path, *lock(&bytes_read))?;
        Self::new(tokenizer).map_err(|problem| Error::malformed(path, problem))
    }

    /// From the json of a Hugging Face `tokenizer.json`.
    pub(super) fn from_value(mut value: Value) -> Result<Self, String> {
        let model = &mut value["model"];
        if model.get("type").and_then(Value::as_str).is_some_and(|kind| kind != "BPE") || !model.is_object() {
            return Err(format!("has a model of type {}, but only BPE is supported; convert it or train another one", model["type"]));
        }
        for key in ["continuing_subword_prefix", "end_of_word_suffix"] {
            if model.get(key).and_then(Value::as_str).is_some_and(|s| !s.is_empty()) {
                return Err(format!("sets {key}, which byte-level BPE has not; only byte-level BPE (the GPT-2 kind) is supported"));
            }
        }
        // Encoding must be the same every time and give the tokens of the text alone, all of them.
        model["dropout"] = Value::Null;
        for key in ["truncation", "padding", "post_processor"] {
            value[key] = Value::Null;
        }
        let tokenizer = value
            .to_string()
            .parse()
            .map_err(|e| format!("is not a usable BPE tokenizer ({e}); restore it from another checkpoint of the run"))?;
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
            .map_err(|e| Error::Data(format!("the BPE tokenizer could not encode the text: {e}")))?;
        ids.extend_from_slice(encoding.get_ids());
        Ok(())
    }

    pub(super) fn to_json(&self) -> Result<String> {
        self.tokenizer.to_string(false).map_err(|e| Error::Data(format!("could not describe the BPE tokenizer: {e}")))
    }
}

/// The printable stand-in that byte-level BPE writes for each byte: itself when it is a visible Latin-1 character, and
/// otherwise the next unused code point from U+0100 on.
fn byte_alphabet() -> HashMap<char, u8> {
    let visible = |b: u8| matches!(b, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let hidden = (0..=255).filter(|&b| !visible(b)).zip('\u{100}'..).map(|(b, c)| (c, b));
    (0..=255).filter(|&b| visible(b)).map(|b| (char::from(b), b)).chain(hidden).collect()
}

/// `text`, cut only inside runs of one kind of character that are longer than [`MAX_WORD`].
fn cut_long_words(text: String) -> Vec<String> {
    let kind = |c: char| (c.is_whitespace(), c.is_alphabetic(), c.is_numeric());
    let (mut pieces, mut start) = (Vec::new(), 0);
    let (mut run, mut kind_of_run) = (0, None);
    for (at, c) in text.char_indices() {
        if kind_of_run != Some(kind(c)) {
            (run, kind_of_run) = (at, Some(kind(c)));
        } else if at - run >= MAX_WORD {
            pieces.push(text[start..at].to_owned());
            (start, run) = (at, at);
        }
    }
    if start == 0 {
        return vec![text];
    }
    pieces.push(text[start..].to_owned());
    pieces
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Two tokens with the same id, if there are any: which of them a decoder would spell is chance.
fn of_one_id(vocab: &HashMap<String, u32>) -> Option<[&str; 2]> {
    let mut tokens: Vec<(u32, &str)> = vocab.iter().map(|(token, &id)| (id, token.as_str())).collect();
    tokens.sort_unstable();
    tokens.windows(2).find(|pair| pair[0].0 == pair[1].0).map(|pair| [pair[0].1, pair[1].1])
}

#[cfg(test)]
mod tests {
    use super::super::{Tokenizer, TokenizerKind};
    use super::*;

    const TEXT: &str = "It was the best of times, it was the worst of times;\n\n  it was the age of naïveté — 42 times.\n";

    fn trained(text: &str, vocab_size: usize) -> Result<Tokenizer> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("text");
        std::fs::write(&path, text).unwrap();
        Tokenizer::train(TokenizerKind::Bpe, vocab_size, path)
    }

    #[test]
    fn the_alphabet_is_that_of_the_crate() {
        let ours: std::collections::HashSet<char> = byte_alphabet().into_keys().collect();
        assert_eq!(ours.len(), 256);
        assert_eq!(ours, ByteLevel::alphabet().into_iter().collect());
        assert_eq!(byte_alphabet()[&'Ġ'], b' ');
    }

    #[test]
    fn training_reaches_the_size_asked_for_and_shortens_the_text() {
        let text = TEXT.repeat(30);
        let tokenizer = trained(&text, 290).unwrap();
        assert_eq!(tokenizer.vocab_size(), 290);
        let ids = tokenizer.encode(&text).unwrap();
        assert!(ids.len() < text.len() * 2 / 3, "{} of {}", ids.len(), text.len());
        assert_eq!(tokenizer.decode(&ids).unwrap(), text);
    }

    #[test]
    fn words_beyond_any_language_are_cut_and_others_are_not() {
        let ordinary =
            format!("{TEXT}{} {}1{}1{}", "é".repeat(MAX_WORD / 2), "a".repeat(MAX_WORD), "b".repeat(MAX_WORD), " ".repeat(MAX_WORD));
        assert_eq!(cut_long_words(ordinary.clone()), [ordinary.as_str()]);
        for (long, kinds) in [("日", 1), ("a", 1), (" ", 1), ("\u{301}", 1), ("a1", 2)] {
            let text = format!("{TEXT}{}", long.repeat(5 * MAX_WORD / long.len()));
            let pieces = cut_long_words(text.clone());
            assert_eq!(pieces.concat(), text);
            assert_eq!(pieces.len() > 1, kinds == 1, "{long:?}");
            assert!(pieces.iter().all(|piece| kinds == 2 || piece.len() <= TEXT.len() + MAX_WORD + long.len()), "{long:?}");
        }
        let dna: String = (0..40_000_u32).map(|i| ['A', 'C', 'G', 'T'][i.wrapping_mul(2_654_435_761) as usize >> 30]).collect();
        let tokenizer = trained(&dna, 300).unwrap();
        assert_eq!(tokenizer.vocab_size(), 300);
        assert_eq!(tokenizer.decode(&tokenizer.encode(&dna).unwrap()).unwrap(), dna);
    }

    #[test]
    fn training_twice_gives_the_same_file() {
        let text: String = (0..3000_u32).map(|i| format!("{} ", i.wrapping_mul(2_654_435_761) % 997)).collect();
        let json = |tokenizer: Tokenizer| match tokenizer {
            Tokenizer::Bpe(bpe) => bpe.to_json().unwrap(),
            other => panic!("{other:?}"),
        };
        let first = json(trained(&text, 500).unwrap());
        for _ in 0..3 {
            assert!(json(trained(&text, 500).unwrap()) == first);
        }
    }

    #[test]
    fn an_impossible_size_an_empty_text_and_bytes_that_are_not_text_are_refused() {
        assert!(trained(TEXT, 255).unwrap_err().to_string().contains("256"));
        assert!(trained("", 300).unwrap_err().to_string().contains("empty"));
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("text");
        std::fs::write(&path, b"abc\xff").unwrap();
        let message = Tokenizer::train(TokenizerKind::Bpe, 300, path).unwrap_err().to_string();
        assert!(message.contains("byte 3"), "{message}");
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

    #[test]
    fn two_tokens_of_one_id_are_refused() {
        let json = match trained(TEXT, 260).unwrap() {
            Tokenizer::Bpe(bpe) => bpe.to_json().unwrap(),
            other => panic!("{other:?}"),
        };
        let mut value: Value = serde_json::from_str(&json).unwrap();
        value["model"]["vocab"]["a"] = value["model"]["vocab"]["b"].clone();
        let refused = Bpe::from_value(value).unwrap_err();
        assert!(refused.starts_with("gives 'a' and 'b' the same id"), "{refused}");
    }

    #[test]
    fn a_claimed_id_far_beyond_the_vocabulary_is_refused() {
        let json = match trained(TEXT, 260).unwrap() {
            Tokenizer::Bpe(bpe) => bpe.to_json().unwrap(),
            other => panic!("{other:?}"),
        };
        let mut value: Value = serde_json::from_str(&json).unwrap();
        value["model"]["vocab"]["zz"] = 4_000_000_000_u32.into();
        assert!(Bpe::from_value(value).unwrap_err().contains("holes"));
    }

    #[test]
    fn padding_dropout_and_truncation_in_a_file_change_nothing() {
        let bpe = trained(&TEXT.repeat(9), 280).unwrap();
        let Tokenizer::Bpe(inner) = &bpe else { panic!("{bpe:?}") };
        let mut value: Value = serde_json::from_str(&inner.to_json().unwrap()).unwrap();
        value["model"]["dropout"] = 0.9.into();
        value["truncation"] = serde_json::json!({"max_length": 2, "strategy": "LongestFirst", "stride": 0, "direction": "Right"});
        value["padding"] = serde_json::json!({"strategy": {"Fixed": 4_000_000_000_u32}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0, "pad_type_id": 0, "pad_token": "!"});
        let mut ids = Vec::new();
        Bpe::from_value(value).unwrap().encode_into(TEXT, &mut ids).unwrap();
        assert_eq!(ids, bpe.encode(TEXT).unwrap());
    }
}
