//! Files of tokenizers.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::vec::Vec;

use super::Tokenizer;
use crate::{Error, Result, write_atomic};

impl Tokenizer {
    /// Writes `tokenizer.json`, the output of [`to_json`](Self::to_json).
    ///
    /// # Errors
    /// [`Error::Io`] when it cannot be written; an older file is then untouched.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        write_atomic(path, self.to_json()?.as_bytes()).map_err(|error| match error {
            Error::Io { path, source, .. } => Error::Io { action: "write the tokenizer", path, source },
            other => other,
        })
    }

    /// Reads a `tokenizer.json` written by [`Tokenizer::save`], or a byte-level BPE file of the Hugging Face format.
    ///
    /// # Errors
    /// [`Error::Io`] when it cannot be read, [`Error::Malformed`] when it is neither.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        const ACTION: &str = "read the tokenizer";
        let path = path.as_ref();
        let file = File::open(path).map_err(|e| Error::io(ACTION, path, e))?;
        let mut json = Vec::new();
        file.take(Self::MAX_FILE_LEN + 1).read_to_end(&mut json).map_err(|e| Error::io(ACTION, path, e))?;
        if json.len() as u64 > Self::MAX_FILE_LEN {
            return Err(Error::malformed(
                path,
                std::format!("is larger than {} MiB, which no tokenizer is; give a tokenizer.json", Self::MAX_FILE_LEN >> 20),
            ));
        }
        Self::from_bytes(&json, path)
    }

    /// Parses the bytes of the `tokenizer.json` at `path`.
    ///
    /// # Errors
    /// [`Error::Malformed`] when they are neither.
    pub fn from_bytes(json: &[u8], path: impl AsRef<Path>) -> Result<Self> {
        Self::parse(json).map_err(|problem| Error::malformed(path.as_ref(), problem))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_missing_file_is_named() {
        let message = Tokenizer::load("no-such-tokenizer.json").unwrap_err().to_string();
        assert!(message.contains("read the tokenizer 'no-such-tokenizer.json'"), "{message}");
    }
}
