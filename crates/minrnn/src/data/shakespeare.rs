//! Tiny Shakespeare: its location, its checksum, and its size. The text itself is not part of this crate.

use minrnn_model::hex;
use sha2::{Digest, Sha256};

use crate::{Error, Result};

/// Public address of the text, in the repository of karpathy/char-rnn.
pub const URL: &str = "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt";
/// SHA-256 of the text, in hexadecimal.
pub const SHA256: &str = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed";
/// Size of the text in bytes and, since it is ASCII, in characters.
pub const LEN: usize = 1_115_394;

/// Checks that `bytes` are Tiny Shakespeare.
///
/// # Errors
/// [`Error::Data`] with the expected and found length or checksum.
pub fn verify(bytes: &[u8]) -> Result<()> {
    const REMEDY: &str = "the download may be incomplete or a page of a proxy; fetch it again, or give a text of your own";
    if bytes.len() != LEN {
        return Err(Error::Data(format!("Tiny Shakespeare has {LEN} bytes, but {} were found; {REMEDY}", bytes.len())));
    }
    let found = hex(Sha256::digest(bytes).as_slice());
    if found == SHA256 {
        return Ok(());
    }
    Err(Error::Data(format!("Tiny Shakespeare has the SHA-256 {SHA256}, but {found} was found; {REMEDY}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_bytes_are_refused() {
        let message = verify(b"<html>").unwrap_err().to_string();
        assert!(message.contains("1115394 bytes") && message.contains("6 were found"), "{message}");
        let message = verify(&vec![b'a'; LEN]).unwrap_err().to_string();
        assert!(message.contains(SHA256), "{message}");
    }
}
