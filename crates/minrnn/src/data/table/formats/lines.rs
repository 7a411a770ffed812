//! Lines of a text, one after the other.

use std::io::{BufRead, BufReader, Read};

use super::failed;
use crate::{Error, Result};

/// The longest line: a file without line ends must not be read into memory whole.
pub const MAX_LINE: usize = 1 << 26;

/// Lines that are not blank, read through one buffer that grows to the longest line and no further.
pub struct Lines<R> {
    source: BufReader<R>,
    bytes: Vec<u8>,
    /// Of the current line, from 1.
    number: u64,
}

impl<R: Read> Lines<R> {
    pub fn new(source: R) -> Self {
        Self { source: BufReader::with_capacity(1 << 16, source), bytes: Vec::new(), number: 0 }
    }

    /// Moves to the next line that is not blank; false at the end.
    ///
    /// # Errors
    /// When the source cannot be read, or a line is too long.
    pub fn advance(&mut self) -> Result<bool> {
        loop {
            self.bytes.clear();
            self.number += 1;
            let limit = MAX_LINE as u64 + 1;
            if self.source.by_ref().take(limit).read_until(b'\n', &mut self.bytes).map_err(failed)? == 0 {
                return Ok(false);
            }
            if self.bytes.len() > MAX_LINE {
                let (line, limit) = (self.number, MAX_LINE);
                return Err(Error::Data(format!("line {line} has more than {limit} bytes; is it a text?")));
            }
            if !self.bytes.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }

    /// The number of the current line, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The current line without blanks around it.
    ///
    /// # Errors
    /// When it is not UTF-8.
    pub fn text(&self) -> Result<&str> {
        std::str::from_utf8(self.bytes.trim_ascii())
            .map_err(|_| Error::Data(format!("line {}: it is not UTF-8; save the file as UTF-8", self.number)))
    }
}
