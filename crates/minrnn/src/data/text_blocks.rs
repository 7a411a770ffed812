//! A text file read in blocks of bounded size that never split a character, and for BPE never split where it would matter.

use std::io::Read;
use std::path::{Path, PathBuf};

use minrnn_model::incomplete_tail;

use super::foreign::foreign;
use crate::{Error, Result};

const BLOCK_LEN: usize = 256 << 10;

/// Where a text may be cut into blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// Between any two characters.
    Anywhere,
    /// Before a newline that is followed by something visible. The word pattern of byte-level BPE never joins a token
    /// across this place, nor looks beyond it, so blocks encode to the same tokens as the whole. A block without such a
    /// place is cut anywhere.
    Line,
}

/// What to suggest for a text that is not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Remedy {
    /// Another encoding of the text: the vocabulary is given.
    Convert,
    /// Also another vocabulary, as it is about to be learned.
    ConvertOrBytes,
}

/// The blocks of a text, in order.
pub(super) struct TextBlocks<R> {
    reader: R,
    path: PathBuf,
    cut: Cut,
    remedy: Remedy,
    block_len: usize,
    /// Bytes read but not yet handed out.
    rest: Vec<u8>,
    /// Byte position of `rest` in the file.
    position: u64,
    at_end: bool,
}

impl<R: Read> TextBlocks<R> {
    /// The blocks of what `reader` reads; `path` and `remedy` are for messages.
    pub(super) fn new(reader: R, path: &Path, cut: Cut, remedy: Remedy) -> Self {
        Self { reader, path: path.to_owned(), cut, remedy, block_len: BLOCK_LEN, rest: Vec::new(), position: 0, at_end: false }
    }

    /// Number of bytes handed out so far.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// The next block, `None` at the end.
    ///
    /// # Errors
    /// [`Error::Io`] when reading fails, [`Error::Data`] naming the byte where the file stops being UTF-8.
    pub(super) fn next_block(&mut self) -> Result<Option<String>> {
        let wanted = (self.block_len - self.rest.len().min(self.block_len)).max(4) as u64;
        if !self.at_end {
            let read = self.reader.by_ref().take(wanted).read_to_end(&mut self.rest);
            let n = read.map_err(|e| Error::io("read the text file", &self.path, e))?;
            self.at_end = (n as u64) < wanted;
        }
        // A character that was cut waits for its remaining bytes.
        let waiting = if self.at_end { 0 } else { incomplete_tail(&self.rest) };
        let valid = match std::str::from_utf8(&self.rest[..self.rest.len() - waiting]) {
            Ok(text) => text,
            Err(e) => {
                if self.position == 0
                    && let Some(what) = foreign(&self.rest)
                {
                    return Err(Error::Data(format!("'{}': {what}", self.path.display())));
                }
                let position = self.position + e.valid_up_to() as u64;
                return Err(not_utf8(&self.path, position, self.rest[e.valid_up_to()], self.remedy));
            }
        };
        let len = match self.cut {
            Cut::Line if !self.at_end => last_line_cut(valid).unwrap_or(valid.len()),
            _ => valid.len(),
        };
        let block = valid[..len].to_owned();
        self.rest.drain(..len);
        self.position += len as u64;
        Ok((!block.is_empty()).then_some(block))
    }
}

/// The last position, not at the start, that is followed by a newline and then something visible.
fn last_line_cut(text: &str) -> Option<usize> {
    let visible_after = |at: usize| text[at + 1..].chars().next().is_some_and(|c| !c.is_whitespace());
    text.rmatch_indices('\n').map(|(at, _)| at).find(|&at| visible_after(at)).filter(|&at| at > 0)
}

fn not_utf8(path: &Path, position: u64, byte: u8, remedy: Remedy) -> Error {
    let or_bytes = match remedy {
        Remedy::Convert => "",
        Remedy::ConvertOrBytes => ", or use tokenizer = \"byte\", which takes any file",
    };
    Error::Data(format!(
        "'{}' is not UTF-8 text: byte {position} (counted from 0) is {byte:#04x}, which neither is nor completes a character; convert the file \
         to UTF-8{or_bytes}",
        path.display()
    ))
}

/// Refuses an empty text; `len` is its number of bytes.
pub(super) fn expect_not_empty(path: &Path, len: u64) -> Result<()> {
    if len > 0 {
        return Ok(());
    }
    Err(Error::Data(format!("'{}' is empty; give a text file with something in it", path.display())))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn blocks(bytes: &[u8], cut: Cut, block_len: usize) -> Result<Vec<String>> {
        let mut blocks = TextBlocks::new(bytes, Path::new("t.txt"), cut, Remedy::Convert);
        blocks.block_len = block_len;
        let mut all = Vec::new();
        while let Some(block) = blocks.next_block()? {
            all.push(block);
        }
        assert_eq!(blocks.position(), bytes.len() as u64);
        Ok(all)
    }

    #[test]
    fn the_byte_where_utf8_ends_is_named_across_blocks() {
        let mut bytes = "日本".repeat(50).into_bytes();
        bytes.insert(120, 0xFF);
        let message = blocks(&bytes, Cut::Anywhere, 32).unwrap_err().to_string();
        assert!(message.contains("'t.txt'") && message.contains("byte 120 ") && message.contains("0xff"), "{message}");
        assert!(message.ends_with("convert the file to UTF-8"), "{message}");
        let message = blocks(&bytes[..119], Cut::Anywhere, 32).unwrap_err().to_string();
        assert!(message.contains("byte 117 "), "{message}");
    }

    #[test]
    fn line_cuts_fall_before_a_newline_followed_by_something_visible() {
        assert_eq!(blocks(b"one two\nthree\n\n  four\nfive", Cut::Line, 16).unwrap(), ["one two", "\nthree\n\n  four", "\nfive"]);
        assert_eq!(last_line_cut("\nabc"), None);
        assert_eq!(last_line_cut("a\n \n"), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn blocks_join_to_the_text(text in "(\\PC|\\s|[a-c]){0,300}", block_len in 4_usize..80, lines: bool) {
            let cut = if lines { Cut::Line } else { Cut::Anywhere };
            prop_assert_eq!(blocks(text.as_bytes(), cut, block_len).unwrap().concat(), text);
        }

        #[test]
        fn any_bytes_are_accepted_exactly_when_they_are_utf8(
            bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0x80_u8..0xC0, Just(b'a')], 0..40), block_len in 4_usize..12,
        ) {
            prop_assert_eq!(blocks(&bytes, Cut::Anywhere, block_len).is_ok(), std::str::from_utf8(&bytes).is_ok());
        }

        #[test]
        fn bpe_of_line_blocks_is_bpe_of_the_whole(words in prop::collection::vec("[a-c]{1,3}|'s|\n|\n\n| |  |\t|\r\n|[0-9]{1,3}|[.!]{1,2}", 0..120)) {
            let text = words.concat();
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("t");
            std::fs::write(&path, "ab abc\n\n  ca's 12!! \n \t\r\n".repeat(10)).unwrap();
            let tokenizer = super::super::train_tokenizer(super::super::TokenizerKind::Bpe, 290, &path).unwrap();
            let mut ids = Vec::new();
            for at in text.match_indices('\n').map(|(at, _)| at).filter_map(|at| last_line_cut(&text[..(at + 2).min(text.len())])) {
                ids.clear();
                ids.extend(tokenizer.encode(&text[..at]).unwrap());
                ids.extend(tokenizer.encode(&text[at..]).unwrap());
                prop_assert_eq!(&ids, &tokenizer.encode(&text).unwrap(), "cut at {}", at);
            }
        }
    }
}
