//! The bytes of a table, with a way back to those that were kept.

use std::io::{BufRead, BufReader, Chain, Cursor, Read, Result};

/// Maximum number of bytes at once.
const PIECE: usize = 1 << 13;

/// A source that passes its bytes in pieces.
pub struct Source<R> {
    reader: BufReader<Chain<Cursor<Vec<u8>>, R>>,
    /// Bytes that come before those of the reader, and the index of the next of them.
    again: Vec<u8>,
    at: usize,
    /// Bytes that were passed.
    kept: Vec<u8>,
}

impl<R: Read> Source<R> {
    /// What `rest` gives, after `beginning`.
    pub fn new(beginning: Vec<u8>, rest: R) -> Self {
        let reader = BufReader::with_capacity(PIECE, Cursor::new(beginning).chain(rest));
        Self { reader, again: Vec::new(), at: 0, kept: Vec::new() }
    }

    /// The next piece; empty at the end.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn piece(&mut self) -> Result<&[u8]> {
        if self.at < self.again.len() {
            let end = self.again.len().min(self.at + PIECE);
            return Ok(&self.again[self.at..end]);
        }
        self.reader.fill_buf()
    }

    /// Passes the first `n` bytes of the piece.
    pub fn pass(&mut self, n: usize) {
        if self.at < self.again.len() {
            self.at += n;
        } else {
            self.reader.consume(n);
        }
    }

    /// Passes them and keeps them.
    pub fn keep(&mut self, n: usize) {
        let piece = if self.at < self.again.len() { &self.again[self.at..] } else { self.reader.buffer() };
        self.kept.extend_from_slice(&piece[..n]);
        self.pass(n);
    }

    /// What is kept.
    pub fn kept(&self) -> &[u8] {
        &self.kept
    }

    /// Keeps nothing any more.
    pub fn forget(&mut self) {
        self.kept.clear();
    }

    /// Goes back to byte `at` of what is kept, which is kept no more.
    pub fn go_back(&mut self, at: usize) {
        let mut again = self.kept.split_off(at);
        again.extend_from_slice(&self.again[self.at..]);
        (self.again, self.at) = (again, 0);
        self.kept.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_comes_again_before_what_was_not_read() {
        let mut source = Source::new(b"abc".to_vec(), &b"defgh"[..]);
        assert_eq!(source.piece().unwrap(), b"abc");
        source.pass(1);
        source.keep(2);
        assert_eq!(source.piece().unwrap(), b"defgh");
        source.keep(2);
        assert_eq!(source.kept(), b"bcde");
        source.go_back(1);
        assert!(source.kept().is_empty());
        assert_eq!(source.piece().unwrap(), b"cde");
        // Again within what comes again.
        source.keep(2);
        source.go_back(1);
        let mut rest = Vec::new();
        loop {
            let piece = source.piece().unwrap();
            if piece.is_empty() {
                break;
            }
            rest.extend_from_slice(piece);
            let n = piece.len();
            source.pass(n);
        }
        assert_eq!(rest, b"defgh");
        source.forget();
        source.go_back(0);
        assert!(source.piece().unwrap().is_empty());
    }
}
