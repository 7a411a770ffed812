//! A Parquet file of which a decoder reads nothing that it must not believe.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use super::super::super::limit::Room;
use super::thrift::{self, PageClaims};
use super::unreadable;
use crate::{Error, Result};

/// What the file ends with: the length of the footer in front of it, and a magic word.
const TAIL: u64 = 8;

/// A source of bytes whose footer and pages are checked before a decoder gets them.
pub(super) struct Checked<R> {
    pub source: R,
    /// Bytes that a codec of the file can make of one.
    pub most_unfolded: Arc<AtomicI64>,
    /// For what its pages unfold to.
    pub room: Room,
}

impl<R: ChunkReader> Checked<R> {
    /// Refuses a page that there is no room for, where that is limited.
    fn expect_room(&self, claims: PageClaims) -> Result<()> {
        if claims.is_by_differences && self.room.limit().is_some() {
            let sentence = "byte strings in it are encoded by what they differ in (DELTA_BYTE_ARRAY or DELTA_LENGTH_BYTE_ARRAY), expected \
                            whole ones or a dictionary, of which it is known beforehand what they unfold to; write it with these";
            return Err(Error::Data(sentence.to_owned()));
        }
        self.room.take(claims.bytes)
    }

    /// Refuses a footer that is not what it should be. Of a file that has none the decoder tells.
    pub fn expect_footer(&self) -> Result<()> {
        let Some(end) = self.len().checked_sub(TAIL) else { return Ok(()) };
        let tail = self.source.get_bytes(end, TAIL as usize).map_err(unreadable)?;
        let Some((length, b"PAR1")) = tail.split_first_chunk() else { return Ok(()) };
        let length = u32::from_le_bytes(*length);
        let Some(start) = end.checked_sub(length.into()) else { return Ok(()) };
        thrift::expect_footer(&self.source.get_bytes(start, length as usize).map_err(unreadable)?)
    }
}

impl<R: ChunkReader> Length for Checked<R> {
    fn len(&self) -> u64 {
        self.source.len()
    }
}

impl<R: ChunkReader> ChunkReader for Checked<R> {
    type T = R::T;

    /// What begins at `start` is the head of a page, or what the file ends with.
    fn get_read(&self, start: u64) -> parquet::errors::Result<R::T> {
        if start.saturating_add(TAIL) != self.len() {
            let most_unfolded = self.most_unfolded.load(Ordering::Relaxed);
            thrift::expect_page_header(self.source.get_read(start)?, most_unfolded)
                .and_then(|claims| self.expect_room(claims))
                .map_err(|error| ParquetError::External(error.into()))?;
        }
        self.source.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        // A file makes room for them before it reads.
        if start.saturating_add(length as u64) > self.len() {
            return Err(ParquetError::EOF(format!("{length} bytes at {start} of {}", self.len())));
        }
        self.source.get_bytes(start, length)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};

    use parquet::basic::Compression;

    use super::super::test_files::{read, table, wanted};
    use super::thrift;

    /// The file with `footer` in place of its own.
    fn with_footer(footer: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"PAR1").unwrap();
        file.write_all(footer).unwrap();
        file.write_all(&u32::try_from(footer.len()).unwrap().to_le_bytes()).unwrap();
        file.write_all(b"PAR1").unwrap();
        file
    }

    /// What is said of a file whose footer is field 1, `version`, and `rest`.
    fn of_footer(rest: &[u8]) -> String {
        let footer = [&[0x15, 2], rest, &[0]].concat();
        read(with_footer(&footer), &wanted(&["x"], &[])).unwrap_err().to_string()
    }

    #[test]
    fn a_footer_costs_no_more_than_its_bytes() {
        // Field 11, which nobody knows: a list of 2^31 - 1 truth values, which take no bytes; a map from truth values to truth values.
        let many = [0xff, 0xff, 0xff, 0xff, 0x07];
        for lists in [[&[0xa9, 0xf1][..], &many].concat(), [&[0xab][..], &many, &[0x11]].concat(), [0xa9, 0xf2, 0xff, 0x7f].repeat(99)] {
            let sentence = of_footer(&lists);
            assert!(sentence.contains("truth values, more than 1048576 in all; write it anew"), "{sentence}");
        }
        // A list of lists, and a structure in a structure in a structure.
        assert!(of_footer(&[0xa9, 0xf9, 0xff, 0xff, 0x03]).contains("it ends within its description"));
        assert!(of_footer(&[0xac; 99]).contains("lies too deep in itself"));
        assert!(of_footer(&[0xae]).contains("of the unknown kind 14"));
        assert!(of_footer(&[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]).contains("more than 64 bits"));
        assert!(of_footer(&[0x05, 0xff, 0xff, 0x07]).contains("has no number"));
        // The schema is a list of structures, the rows are a whole number.
        assert!(of_footer(&[0x15, 2]).contains("field 2 of its description is of another kind"));
        assert!(of_footer(&[0x19, 0x15, 2]).contains("a list in its description is of another kind"));
    }

    #[test]
    fn a_page_costs_no_more_than_its_bytes() {
        let mut bytes = Vec::new();
        table(Compression::SNAPPY, false).read_to_end(&mut bytes).unwrap();
        let whole = thrift::expect_page_header(&bytes[4..], thrift::MOST_UNFOLDED);
        assert!(whole.is_ok(), "{whole:?}");
        // A dictionary of no bytes that unfolds to a gigabyte; one with a statistic of a terabyte.
        let bomb = [0x15, 4, 0x15, 0x80, 0x80, 0x80, 0x80, 0x08, 0x15, 0, 0x4c, 0x15, 2, 0x15, 0, 0, 0];
        let sentence = thrift::expect_page_header(&bomb[..], thrift::MOST_UNFOLDED).unwrap_err().to_string();
        assert_eq!(sentence, "it is damaged: a page of 0 bytes is said to unfold to 1073741824; write it anew");
        let long = [0x15, 0, 0x15, 2, 0x15, 2, 0x2c, 0x15, 2, 0x15, 0, 0x15, 0, 0x15, 0, 0x1c, 0x18, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20];
        assert!(
            thrift::expect_page_header(&long[..], thrift::MOST_UNFOLDED)
                .unwrap_err()
                .to_string()
                .contains("it ends within its description")
        );
        let many = [0x15, 4, 0x15, 8, 0x15, 8, 0x4c, 0x15, 0x80, 0x80, 0x80, 0x80, 0x08, 0x15, 0, 0, 0];
        let values = thrift::expect_page_header(&many[..], thrift::MOST_UNFOLDED).unwrap_err().to_string();
        assert_eq!(values, "it is damaged: a dictionary of 4 bytes is said to have 1073741824 values; write it anew");
        // −1, which the decoder takes for 2^32 − 1, and 2^33 + 1, which it takes for 1.
        let negative = [0x15, 4, 0x15, 8, 0x15, 8, 0x4c, 0x15, 1, 0x15, 0, 0, 0];
        assert!(
            thrift::expect_page_header(&negative[..], thrift::MOST_UNFOLDED).unwrap_err().to_string().contains("says -1 where it counts")
        );
        let wide = [0x15, 0x82, 0x80, 0x80, 0x80, 0x40, 0];
        assert!(
            thrift::expect_page_header(&wide[..], thrift::MOST_UNFOLDED).unwrap_err().to_string().contains("has no room for 8589934593")
        );
        // The decoder tells of it in the same words.
        bytes.splice(4..4 + bomb.len(), bomb);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let told = read(file, &wanted(&["x"], &["id"])).unwrap_err().to_string();
        assert_eq!(told, sentence);
    }
}
