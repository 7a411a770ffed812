//! Writing a token file piece by piece.

use std::path::{Path, PathBuf};

use super::super::atomic::AtomicFile;
use super::TokenFile;
use super::header::{HEADER_LEN, Header};
use crate::{Error, Result};

const CHUNK_LEN: usize = 8192;

/// Writes a token file piece by piece; it appears under its name only if [`TokenWriter::finish`] succeeds.
pub struct TokenWriter {
    file: AtomicFile,
    path: PathBuf,
    header: Header,
    crc: crc32fast::Hasher,
    buffer: Vec<u8>,
}

impl TokenWriter {
    /// Starts a token file at `path` for ids below `vocab_size`.
    ///
    /// # Errors
    /// [`Error::Data`] when `vocab_size` is 0 or does not fit 32-bit ids, [`Error::Io`] when the file cannot be written.
    pub fn create(path: impl AsRef<Path>, vocab_size: usize) -> Result<Self> {
        let path = path.as_ref();
        let bytes_per_token = match vocab_size as u64 {
            1..=0x100 => 1,
            0x101..=0x1_0000 => 2,
            0x1_0001..=0x1_0000_0000 => 4,
            _ => return Err(Error::Data(format!("a token file holds 1 to 2^32 different tokens, found a vocabulary of {vocab_size}"))),
        };
        let header = Header { bytes_per_token, vocab_size: vocab_size as u64, count: 0, source_sha256: [0; 32], payload_crc: 0 };
        let mut file = AtomicFile::create(path, "write the token file")?;
        file.write(&[0; HEADER_LEN])?;
        Ok(Self { file, path: path.to_owned(), header, crc: crc32fast::Hasher::new(), buffer: Vec::new() })
    }

    /// Appends `tokens`.
    ///
    /// # Errors
    /// [`Error::Data`] when an id is not in the vocabulary, [`Error::Io`] when writing fails.
    pub fn push(&mut self, tokens: &[u32]) -> Result<()> {
        if let Some(i) = tokens.iter().position(|&id| u64::from(id) >= self.header.vocab_size) {
            return Err(Error::Data(format!(
                "token {} is {}, but the vocabulary has {} symbols",
                self.header.count + i as u64,
                tokens[i],
                self.header.vocab_size
            )));
        }
        for chunk in tokens.chunks(CHUNK_LEN) {
            self.buffer.clear();
            match self.header.bytes_per_token {
                1 => self.buffer.extend(chunk.iter().map(|&id| id as u8)),
                2 => self.buffer.extend(chunk.iter().flat_map(|&id| (id as u16).to_le_bytes())),
                _ => self.buffer.extend(chunk.iter().flat_map(|&id| id.to_le_bytes())),
            }
            self.crc.update(&self.buffer);
            self.file.write(&self.buffer)?;
        }
        self.header.count += tokens.len() as u64;
        Ok(())
    }

    /// Completes the file and opens it. `source_sha256` identifies the text the tokens came from; zeros if there is none.
    ///
    /// # Errors
    /// [`Error::Io`] when writing fails; nothing is then left behind.
    pub fn finish(mut self, source_sha256: [u8; 32]) -> Result<TokenFile> {
        self.header.source_sha256 = source_sha256;
        self.header.payload_crc = self.crc.finalize();
        self.file.rewrite_start(&self.header.to_bytes())?;
        self.file.commit()?;
        TokenFile::open(self.path)
    }
}
