//! Bits per byte: the loss of a text in a unit that does not depend on the tokenizer.
//!
//! ```text
//! bits per byte = ℓ / ln 2 · T / B       ℓ the loss in nats per token, T the tokens of the text, B its bytes
//! ```
//!
//! (Gao et al. 2020, "The Pile", arXiv:2101.00027, section 3.1.) If windows are drawn from a text, T / B is that of the whole text.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::Result;
use crate::data::{TextPart, Tokenizer};

/// Number of tokens read and decoded at once, before checking whether a stop was requested.
const CHUNK: u64 = 1 << 16;

/// The length of a text in tokens and in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TextSize {
    n_tokens: u64,
    n_bytes: u64,
}

impl TextSize {
    /// The size of `part`, encoded by `tokenizer`; `None` if `stop` was raised before the end.
    ///
    /// # Errors
    /// When the tokens cannot be read, or one is outside the vocabulary.
    pub fn of_part(part: &TextPart, tokenizer: &Tokenizer, stop: &AtomicBool) -> Result<Option<Self>> {
        let (mut size, mut tokens) = (Self::default(), Vec::new());
        for offset in (0..part.len()).step_by(CHUNK as usize) {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            tokens.resize((part.len() - offset).min(CHUNK) as usize, 0);
            part.read(offset, &mut tokens)?;
            size.add(&tokens, tokenizer)?;
        }
        Ok(Some(size))
    }

    /// The size of the text encoded as `tokens` by `tokenizer`; `None` if `stop` was raised before the end.
    ///
    /// # Errors
    /// When one of them is outside the vocabulary.
    pub fn of_tokens(tokens: &[u32], tokenizer: &Tokenizer, stop: &AtomicBool) -> Result<Option<Self>> {
        let mut size = Self::default();
        for chunk in tokens.chunks(CHUNK as usize) {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            size.add(chunk, tokenizer)?;
        }
        Ok(Some(size))
    }

    fn add(&mut self, tokens: &[u32], tokenizer: &Tokenizer) -> Result<()> {
        let mut bytes = Vec::new();
        for &token in tokens {
            bytes.clear();
            tokenizer.append_bytes(token, &mut bytes)?;
            self.n_bytes += bytes.len() as u64;
        }
        self.n_tokens += tokens.len() as u64;
        Ok(())
    }

    /// A mean loss of `loss` nats per token of this text, in bits per byte; NaN for a text without a byte.
    pub fn bits_per_byte(self, loss: f64) -> f64 {
        loss / std::f64::consts::LN_2 * (self.n_tokens as f64 / self.n_bytes as f64)
    }
}

#[cfg(test)]
mod tests {
    use minrnn_model::TokenizerKind;

    use super::*;
    use crate::data::{encode_text, train_tokenizer};

    #[test]
    fn the_same_nats_in_all_are_the_same_bits_per_byte_whatever_the_tokens_are() {
        // More than a chunk, with characters of one, two and three bytes.
        let text = "the naïve 日 the end\n".repeat(4000);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text.txt");
        std::fs::write(&path, &text).unwrap();
        let (nats, never) = (12_345.0, AtomicBool::new(false));
        for kind in [TokenizerKind::Character, TokenizerKind::Byte, TokenizerKind::Bpe] {
            let tokenizer = train_tokenizer(kind, 280, &path).unwrap();
            let part = TextPart::whole(encode_text(&path, &tokenizer, folder.path().join("text.tokens")).unwrap());
            let size = TextSize::of_part(&part, &tokenizer, &never).unwrap().unwrap();
            assert_eq!(Some(size), TextSize::of_tokens(&tokenizer.encode(&text).unwrap(), &tokenizer, &never).unwrap());
            assert_eq!((size.n_tokens, size.n_bytes), (part.len(), text.len() as u64), "{kind:?}");
            let (found, expected) = (size.bits_per_byte(nats / part.len() as f64), nats / std::f64::consts::LN_2 / text.len() as f64);
            assert!((found - expected).abs() < 1e-12, "{kind:?}: {found}, expected {expected}");
        }
    }

    #[test]
    fn a_token_outside_the_vocabulary_is_named() {
        let refused = TextSize::of_tokens(&[0, 2], &Tokenizer::characters_of("ab"), &AtomicBool::new(false)).unwrap_err().to_string();
        assert!(refused.contains("token id 2 is outside the vocabulary"), "{refused}");
    }

    #[test]
    fn a_stop_ends_the_decoding_of_a_text() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text.txt");
        std::fs::write(&path, "abba\n").unwrap();
        let part = TextPart::whole(encode_text(&path, &Tokenizer::Byte, folder.path().join("text.tokens")).unwrap());
        let raised = AtomicBool::new(true);
        assert_eq!(TextSize::of_part(&part, &Tokenizer::Byte, &raised).unwrap(), None);
        assert_eq!(TextSize::of_tokens(&[1, 2], &Tokenizer::Byte, &raised).unwrap(), None);
    }
}
