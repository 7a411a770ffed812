//! Learning vocabularies from a text; the vocabularies themselves and their encoding are in [`minrnn_model`].

mod pieces;

use std::fs::File;
use std::path::Path;

pub use minrnn_model::{Bpe, Characters, Seen, TextInput, TextStream, Tokenizer, TokenizerKind};

use super::text_blocks::{Cut, Remedy, TextBlocks, expect_not_empty};
use crate::{Error, Result};

/// Learns the vocabulary of the text file at `path`, read in blocks. `vocab_size` is used by [`TokenizerKind::Bpe`] only.
///
/// # Errors
/// When the file cannot be read, is empty, or (except for bytes) is not UTF-8; for BPE also when `vocab_size` is
/// below 256.
pub fn train_tokenizer(kind: TokenizerKind, vocab_size: usize, path: impl AsRef<Path>) -> Result<Tokenizer> {
    let path = path.as_ref();
    let blocks = |cut| match File::open(path) {
        Ok(file) => Ok(TextBlocks::new(file, path, cut, Remedy::ConvertOrBytes)),
        Err(error) => Err(Error::io("read the text file", path, error)),
    };
    match kind {
        TokenizerKind::Byte => Ok(Tokenizer::Byte),
        TokenizerKind::Character => {
            let mut seen = Seen::default();
            let mut blocks = blocks(Cut::Anywhere)?;
            while let Some(block) = blocks.next_block()? {
                seen.add(&block);
            }
            expect_not_empty(path, blocks.position())?;
            Ok(Tokenizer::Character(seen.into_characters()))
        }
        TokenizerKind::Bpe => pieces::learn(vocab_size, blocks(Cut::Line)?, path),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn saved_and_loaded(tokenizer: &Tokenizer) -> Tokenizer {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokenizer.json");
        tokenizer.save(&path).unwrap();
        Tokenizer::load(&path).unwrap()
    }

    fn small_bpe() -> Tokenizer {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("text");
        std::fs::write(&path, "the cat sat on the mat; the cat ran.\n\nNaïve café, naïve cat.\n".repeat(20)).unwrap();
        train_tokenizer(TokenizerKind::Bpe, 300, &path).unwrap()
    }

    #[test]
    fn every_kind_survives_saving_and_loading() {
        let text = "the café\n";
        for tokenizer in [Tokenizer::characters_of(text), Tokenizer::Byte, small_bpe()] {
            let loaded = saved_and_loaded(&tokenizer);
            assert_eq!(loaded.kind(), tokenizer.kind());
            assert_eq!(loaded.vocab_size(), tokenizer.vocab_size());
            assert_eq!(loaded.encode(text).unwrap(), tokenizer.encode(text).unwrap());
        }
    }

    #[test]
    fn pieces_outside_the_vocabulary_are_named() {
        let tokenizer = small_bpe();
        let size = tokenizer.vocab_size();
        let message = tokenizer.decode(&[0, size as u32]).unwrap_err().to_string();
        assert!(message.contains(&format!("token id {size} ")), "{message}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn decoding_undoes_encoding_in_pieces(text in "(\\PC|\\s){0,200}") {
            let tokenizer = small_bpe();
            let ids = tokenizer.encode(&text).unwrap();
            prop_assert!(ids.iter().all(|&id| (id as usize) < tokenizer.vocab_size()));
            prop_assert_eq!(tokenizer.decode(&ids).unwrap(), text);
        }

        #[test]
        fn a_damaged_file_never_panics(at in any::<prop::sample::Index>(), byte: u8, truncate: bool, bpe: bool) {
            let tokenizer = if bpe { small_bpe() } else { Tokenizer::characters_of("hello, world") };
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("tokenizer.json");
            tokenizer.save(&path).unwrap();
            let mut json = std::fs::read(&path).unwrap();
            let at = at.index(json.len());
            if truncate { json.truncate(at) } else { json[at] = byte }
            std::fs::write(&path, json).unwrap();
            if let Ok(loaded) = Tokenizer::load(&path) {
                let _ = loaded.encode("hello");
            }
        }
    }
}
