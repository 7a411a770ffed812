//! Encodes a text file into a token file, in blocks: the text may be larger than memory.

use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::source::Source;
use super::text_blocks::{Cut, Remedy, TextBlocks, expect_not_empty};
use super::{TokenFile, TokenWriter, Tokenizer, TokenizerKind};
use crate::{Error, Result};

const READ_LEN: usize = 64 << 10;
const ACTION: &str = "read the text file";

/// Encodes the text file at `text` with `tokenizer` into a token file at `tokens`, and opens it.
///
/// The byte tokenizer accepts any file; the others need UTF-8.
///
/// # Errors
/// [`Error::Io`] when a file cannot be read or written; [`Error::Data`] when the text is empty, is not UTF-8 (with the byte's position), or
/// has a character outside the vocabulary (with its position). No token file is then left behind.
pub fn encode_text(text: impl AsRef<Path>, tokenizer: &Tokenizer, tokens: impl AsRef<Path>) -> Result<TokenFile> {
    let path = text.as_ref();
    let mut reader = Hashing { inner: open(path)?, sha256: Sha256::new() };
    let mut writer = TokenWriter::create(tokens, tokenizer.vocab_size())?;
    encode(&mut reader, path, tokenizer, &mut |ids| writer.push(ids))?;
    writer.finish(reader.sha256.finalize().into())
}

/// The tokens of the text file at `text`, of at most `most` bytes, as encoded by [`encode_text`].
///
/// # Errors
/// As [`encode_text`]; also when the file is longer.
pub fn encode_short_text(text: impl AsRef<Path>, tokenizer: &Tokenizer, most: u64) -> Result<Vec<u32>> {
    let path = text.as_ref();
    let too_long = || {
        let (shown, most) = (path.display(), most >> 20);
        Error::Data(format!("'{shown}' has more than {most} MiB, the most that is read in one pass; give a part of it"))
    };
    if path.metadata().is_ok_and(|found| found.is_file() && found.len() > most) {
        return Err(too_long());
    }
    let mut tokens = Vec::new();
    let n_bytes = encode(&mut open(path)?.take(most.saturating_add(1)), path, tokenizer, &mut |ids| {
        tokens.extend_from_slice(ids);
        Ok(())
    })?;
    if n_bytes > most { Err(too_long()) } else { Ok(tokens) }
}

/// Receives the tokens.
type Push<'p> = dyn FnMut(&[u32]) -> Result<()> + 'p;

/// Passes the tokens of everything in `reader` to `push`; returns the number of bytes read.
fn encode(reader: &mut impl Read, path: &Path, tokenizer: &Tokenizer, push: &mut Push) -> Result<u64> {
    let n_bytes = match tokenizer.kind() {
        TokenizerKind::Byte => encode_bytes(reader, path, push)?,
        TokenizerKind::Character => encode_blocks(reader, path, Cut::Anywhere, tokenizer, push)?,
        TokenizerKind::Bpe => encode_blocks(reader, path, Cut::Line, tokenizer, push)?,
    };
    expect_not_empty(path, n_bytes)?;
    Ok(n_bytes)
}

/// SHA-256 of the file at `path`, to tell whether a token file was made from it.
///
/// # Errors
/// [`Error::Io`] when it cannot be read.
pub fn text_sha256(path: impl AsRef<Path>) -> Result<[u8; 32]> {
    let path = path.as_ref();
    let mut reader = Hashing { inner: open(path)?, sha256: Sha256::new() };
    io::copy(&mut reader, &mut io::sink()).map_err(|e| Error::io(ACTION, path, e))?;
    Ok(reader.sha256.finalize().into())
}

fn open(path: &Path) -> Result<Source> {
    Source::open(path).map_err(|e| Error::io(ACTION, path, e))
}

fn encode_blocks(reader: impl Read, path: &Path, cut: Cut, tokenizer: &Tokenizer, push: &mut Push) -> Result<u64> {
    let mut blocks = TextBlocks::new(reader, path, cut, Remedy::Convert);
    let (mut ids, mut chars_before) = (Vec::new(), 0);
    while let Some(block) = blocks.next_block()? {
        ids.clear();
        tokenizer.encode_into(&block, chars_before, &mut ids).map_err(|e| match e.into() {
            Error::Data(problem) => Error::Data(format!("'{}': {problem}", path.display())),
            other => other,
        })?;
        push(&ids)?;
        chars_before += block.chars().count() as u64;
    }
    Ok(blocks.position())
}

fn encode_bytes(reader: &mut impl Read, path: &Path, push: &mut Push) -> Result<u64> {
    let (mut bytes, mut n_bytes) = (Vec::with_capacity(READ_LEN), 0);
    loop {
        bytes.clear();
        let n = reader.by_ref().take(READ_LEN as u64).read_to_end(&mut bytes).map_err(|e| Error::io(ACTION, path, e))?;
        if n == 0 {
            return Ok(n_bytes);
        }
        push(&bytes.iter().map(|&b| b.into()).collect::<Vec<u32>>())?;
        n_bytes += n as u64;
    }
}

/// Hashes everything that is read through it.
struct Hashing<R> {
    inner: R,
    sha256: Sha256,
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(out)?;
        self.sha256.update(&out[..n]);
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::super::train_tokenizer;
    use std::path::PathBuf;

    use super::*;

    fn text_file(dir: &Path, bytes: &[u8]) -> PathBuf {
        let path = dir.join("text.txt");
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn all(file: &TokenFile) -> Vec<u32> {
        let mut ids = vec![0; file.len() as usize];
        file.read(0, &mut ids).unwrap();
        ids
    }

    #[test]
    fn every_kind_streams_to_the_tokens_of_the_whole_text() {
        // Longer than two blocks, with characters of 1 to 4 bytes and lines of different lengths.
        let text: String = (0..40_000_u32)
            .map(|i| ["the ", "naïve\n", "日本 ", "🦀\n\n", "x\n "][(i.wrapping_mul(2_654_435_761) >> 20) as usize % 5])
            .collect();
        let dir = tempfile::tempdir().unwrap();
        let path = text_file(dir.path(), text.as_bytes());
        for kind in [TokenizerKind::Character, TokenizerKind::Byte, TokenizerKind::Bpe] {
            let tokenizer = train_tokenizer(kind, 280, &path).unwrap();
            let file = encode_text(&path, &tokenizer, dir.path().join("t.tokens")).unwrap();
            assert!(all(&file) == tokenizer.encode(&text).unwrap(), "{kind:?}");
            assert_eq!(file.source_sha256(), text_sha256(&path).unwrap());
            assert_eq!(file.vocab_size(), tokenizer.vocab_size());
        }
    }

    #[test]
    fn bad_texts_give_sentences_and_leave_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let tokens = dir.path().join("t.tokens");
        let characters = Tokenizer::characters_of("abc");
        let cases: [(&[u8], &Tokenizer, &str); 4] = [
            (b"", &characters, "is empty"),
            (b"", &Tokenizer::Byte, "is empty"),
            (b"ab\xFFc", &characters, "byte 2 "),
            (b"abxc", &characters, "character 3 of the text is 'x'"),
        ];
        for (bytes, tokenizer, expected) in cases {
            let path = text_file(dir.path(), bytes);
            let message = encode_text(&path, tokenizer, &tokens).unwrap_err().to_string();
            assert!(message.contains(expected) && message.contains("text.txt"), "{message}");
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        }
        let missing = dir.path().join("missing.txt");
        assert!(encode_text(&missing, &characters, &tokens).unwrap_err().to_string().contains("missing.txt"));
        assert!(encode_text(dir.path(), &characters, &tokens).unwrap_err().is_wrong_input());
        assert!(train_tokenizer(TokenizerKind::Character, 0, text_file(dir.path(), b"")).unwrap_err().to_string().contains("is empty"));
    }

    #[test]
    fn the_byte_tokenizer_takes_files_that_are_not_text() {
        let dir = tempfile::tempdir().unwrap();
        let path = text_file(dir.path(), &[0, 255, 128, 10]);
        let file = encode_text(&path, &Tokenizer::Byte, dir.path().join("t.tokens")).unwrap();
        assert_eq!(all(&file), [0, 255, 128, 10]);
    }
}
