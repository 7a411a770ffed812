//! Tiny Shakespeare: where it is, how to know it, and its numbers. The text itself is not part of this crate.

use sha2::{Digest, Sha256};

use crate::{Error, Result};

/// Public address of the text, in the repository of karpathy/char-rnn.
pub const URL: &str = "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt";
/// SHA-256 of the text, in hexadecimal.
pub const SHA256: &str = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed";
/// Bytes of the text, which is ASCII, and so also characters.
pub const LEN: usize = 1_115_394;
/// All characters of the text in order of code point: the character vocabulary.
pub const CHARACTERS: &str = "\n !$&',-.3:;?ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Characters of the training part (the first nine tenths).
pub const TRAIN_LEN: usize = 1_003_854;
/// Characters of the test part.
pub const TEST_LEN: usize = 111_540;

/// Checks that `bytes` are Tiny Shakespeare.
///
/// # Errors
/// [`Error::Data`] with the expected and found length or checksum.
pub fn verify(bytes: &[u8]) -> Result<()> {
    const REMEDY: &str = "the download may be incomplete or a page of a proxy; fetch it again, or give a text of your own";
    if bytes.len() != LEN {
        return Err(Error::Data(format!("Tiny Shakespeare has {LEN} bytes, but {} were found; {REMEDY}", bytes.len())));
    }
    let found: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    if found == SHA256 {
        return Ok(());
    }
    Err(Error::Data(format!("Tiny Shakespeare has the SHA-256 {SHA256}, but {found} was found; {REMEDY}")))
}

#[cfg(test)]
mod tests {
    use super::super::Tokenizer;
    use super::*;

    #[test]
    fn the_numbers_fit_together() {
        assert_eq!(TRAIN_LEN + TEST_LEN, LEN);
        let vocabulary = Tokenizer::characters_of(CHARACTERS);
        assert_eq!(vocabulary.vocab_size(), 65);
        assert_eq!(vocabulary.encode("\n !$&',-.3:;?AZaz").unwrap(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 38, 39, 64]);
    }

    #[test]
    fn other_bytes_are_refused() {
        let message = verify(b"<html>").unwrap_err().to_string();
        assert!(message.contains("1115394 bytes") && message.contains("6 were found"), "{message}");
        let message = verify(&vec![b'a'; LEN]).unwrap_err().to_string();
        assert!(message.contains(SHA256), "{message}");
    }
}
