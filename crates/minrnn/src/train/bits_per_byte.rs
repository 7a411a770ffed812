//! Bits per byte: the loss of a text in a unit that is the same however the text is cut into tokens.
//!
//! ```text
//! bits per byte = ℓ / ln 2 · T / B       ℓ the loss in nats per token, T the tokens of the text, B its bytes
//! ```
//!
//! (Gao et al. 2020, "The Pile", arXiv:2101.00027, section 3.1.) Where windows are drawn from a text, T / B is that of all of it.

use crate::Result;
use crate::data::{TextPart, Tokenizer};

/// Tokens read from a file at once.
const CHUNK: u64 = 1 << 16;

/// How long a text is, in tokens and in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TextSize {
    n_tokens: u64,
    n_bytes: u64,
}

impl TextSize {
    /// Of `part`, which `tokenizer` cut.
    ///
    /// # Errors
    /// When the tokens cannot be read, or one is outside the vocabulary.
    pub fn of_part(part: &TextPart, tokenizer: &Tokenizer) -> Result<Self> {
        let (mut size, mut tokens) = (Self::default(), Vec::new());
        for offset in (0..part.len()).step_by(CHUNK as usize) {
            tokens.resize((part.len() - offset).min(CHUNK) as usize, 0);
            part.read(offset, &mut tokens)?;
            size.add(&tokens, tokenizer)?;
        }
        Ok(size)
    }

    /// Of the text that `tokenizer` cut into `tokens`.
    ///
    /// # Errors
    /// When one of them is outside the vocabulary.
    pub fn of_tokens(tokens: &[u32], tokenizer: &Tokenizer) -> Result<Self> {
        let mut size = Self::default();
        size.add(tokens, tokenizer)?;
        Ok(size)
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

    /// What a mean loss of `loss` nats per token of this text is in bits per byte; NaN for a text without a byte.
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
        // More than a chunk of bytes, with characters of one, two and three of them.
        let text = "the naïve 日 the end\n".repeat(4000);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text.txt");
        std::fs::write(&path, &text).unwrap();
        let nats = 12_345.0;
        for kind in [TokenizerKind::Character, TokenizerKind::Byte, TokenizerKind::Bpe] {
            let tokenizer = train_tokenizer(kind, 280, &path).unwrap();
            let part = TextPart::whole(encode_text(&path, &tokenizer, folder.path().join("text.tokens")).unwrap());
            let size = TextSize::of_part(&part, &tokenizer).unwrap();
            assert_eq!(size, TextSize::of_tokens(&tokenizer.encode(&text).unwrap(), &tokenizer).unwrap());
            assert_eq!((size.n_tokens, size.n_bytes), (part.len(), text.len() as u64), "{kind:?}");
            let (found, expected) = (size.bits_per_byte(nats / part.len() as f64), nats / std::f64::consts::LN_2 / text.len() as f64);
            assert!((found - expected).abs() < 1e-12, "{kind:?}: {found}, expected {expected}");
        }
    }

    #[test]
    fn a_token_outside_the_vocabulary_is_named() {
        let refused = TextSize::of_tokens(&[0, 2], &Tokenizer::characters_of("ab")).unwrap_err().to_string();
        assert!(refused.contains("token id 2 is outside the vocabulary"), "{refused}");
    }
}
