//! Learning the pieces of byte-level BPE.

use std::fs::File;
use std::path::Path;
use std::sync::Mutex;

use minrnn_model::Tokenizer;
use tokenizers::models::TrainerWrapper;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;

use super::super::text_blocks::{TextBlocks, expect_not_empty};
use crate::{Error, Result};

/// The trainer's pair counts are 32-bit and its time grows with the text; more text hardly changes the merges.
const MAX_TRAINING_BYTES: u64 = 256 << 20;
/// The longest run of letters, digits, blanks or other characters that merges are learned from, in bytes; a longer one is cut into such
/// pieces. The trainer's time for a word grows with the square of its length, and a text without blanks is one word.
const MAX_WORD: usize = 1 << 10;
const VOCAB_SIZES: std::ops::RangeInclusive<usize> = 256..=1 << 20;

/// Learns merges from the first 256 MiB of a text until there are `vocab_size` tokens, or no pair is left to merge.
pub(super) fn learn(vocab_size: usize, mut blocks: TextBlocks<File>, path: &Path) -> Result<Tokenizer> {
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
    // The trainer pulls blocks from its own threads and cannot report read errors, so they are kept here.
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
    let json = tokenizer.to_string(false).map_err(|e| Error::Data(format!("could not describe the BPE tokenizer: {e}")))?;
    Ok(Tokenizer::from_json(json.as_bytes())?)
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

#[cfg(test)]
mod tests {
    use minrnn_model::TokenizerKind;
    use serde_json::Value;

    use super::super::train_tokenizer;
    use super::*;

    const TEXT: &str = "It was the best of times, it was the worst of times;\n\n  it was the age of naïveté — 42 times.\n";

    fn trained(text: &str, vocab_size: usize) -> Result<Tokenizer> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("text");
        std::fs::write(&path, text).unwrap();
        train_tokenizer(TokenizerKind::Bpe, vocab_size, path)
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
        let json = |tokenizer: Tokenizer| tokenizer.to_json().unwrap();
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
        let message = train_tokenizer(TokenizerKind::Bpe, 300, path).unwrap_err().to_string();
        assert!(message.contains("byte 3"), "{message}");
    }

    #[test]
    fn two_tokens_of_one_id_are_refused() {
        let json = trained(TEXT, 260).unwrap().to_json().unwrap();
        let mut value: Value = serde_json::from_str(&json).unwrap();
        value["model"]["vocab"]["a"] = value["model"]["vocab"]["b"].clone();
        let refused = Tokenizer::from_json(value.to_string().as_bytes()).unwrap_err().to_string();
        assert!(refused.contains("gives 'a' and 'b' the same id"), "{refused}");
    }

    #[test]
    fn a_claimed_id_far_beyond_the_vocabulary_is_refused() {
        let json = trained(TEXT, 260).unwrap().to_json().unwrap();
        let mut value: Value = serde_json::from_str(&json).unwrap();
        value["model"]["vocab"]["zz"] = 4_000_000_000_u32.into();
        assert!(Tokenizer::from_json(value.to_string().as_bytes()).unwrap_err().to_string().contains("holes"));
    }

    #[test]
    fn padding_dropout_and_truncation_in_a_file_change_nothing() {
        let bpe = trained(&TEXT.repeat(9), 280).unwrap();
        let mut value: Value = serde_json::from_str(&bpe.to_json().unwrap()).unwrap();
        value["model"]["dropout"] = 0.9.into();
        value["truncation"] = serde_json::json!({"max_length": 2, "strategy": "LongestFirst", "stride": 0, "direction": "Right"});
        value["padding"] = serde_json::json!({"strategy": {"Fixed": 4_000_000_000_u32}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0, "pad_type_id": 0, "pad_token": "!"});
        assert_eq!(Tokenizer::from_json(value.to_string().as_bytes()).unwrap().encode(TEXT).unwrap(), bpe.encode(TEXT).unwrap());
    }
}
