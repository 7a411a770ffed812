//! A Parquet file checked so that a decoder reads nothing that it must not trust.

use std::io::{self, Read};
use std::sync::Arc;

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use parquet::basic::{Compression, Type};
use parquet::data_type::{ByteArray, Int96};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length};

use super::super::super::limit::{Room, TableLimit};
use super::super::MOST_OF_ZSTD;
use super::thrift::{self, PageClaims, damaged};
use super::unreadable;
use crate::{Error, Result};

/// Bytes at the end of the file: the length of the preceding footer, and a magic word.
const TAIL: u64 = 8;

/// A source of bytes whose footer and pages are checked before a decoder gets them.
pub(super) struct Checked<R> {
    source: Arc<R>,
    /// The column chunk's codec and value size, if its pages are being read.
    pages: Option<Pages>,
    /// The room left for what its pages unfold to.
    room: Arc<Room>,
}

/// The pages of a column of one group of rows.
#[derive(Clone, Copy)]
struct Pages {
    codec: Compression,
    /// Bytes in memory of a dictionary value.
    value_bytes: usize,
}

impl<R: ChunkReader> Checked<R> {
    /// The whole file, for reading its footer.
    pub fn new(source: R, limit: Option<TableLimit>) -> Self {
        Self { source: Arc::new(source), pages: None, room: Arc::new(Room::for_parts(limit)) }
    }

    /// The same, for reading the pages of `chunk`.
    pub fn pages_of(&self, chunk: &ColumnChunkMetaData) -> Self {
        let value_bytes = match chunk.column_type() {
            Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY => size_of::<ByteArray>(),
            Type::INT96 => size_of::<Int96>(),
            Type::BOOLEAN | Type::INT32 | Type::INT64 | Type::FLOAT | Type::DOUBLE => size_of::<f64>(),
        };
        let pages = Some(Pages { codec: chunk.compression(), value_bytes });
        Self { source: Arc::clone(&self.source), pages, room: Arc::clone(&self.room) }
    }

    /// Refuses a page at `start` that would unfold to more than it claims or than there is room for.
    fn expect_page(&self, start: u64, Pages { codec, value_bytes }: Pages) -> Result<()> {
        let mut source = self.source.get_read(start).map_err(unreadable)?;
        let most = if matches!(codec, Compression::ZSTD(_)) { MOST_OF_ZSTD } else { thrift::MOST_UNFOLDED };
        let claims = thrift::expect_page_header(&mut source, most)?;
        self.expect_room(claims, value_bytes)?;
        match codec {
            Compression::GZIP(_) => expect_gzip(claims, source),
            Compression::LZ4 => expect_hadoop(claims, source),
            _ => Ok(()),
        }
    }

    /// Refuses a page that there is no room for, if room is limited.
    fn expect_room(&self, claims: PageClaims, value_bytes: usize) -> Result<()> {
        if claims.is_by_differences && self.room.limit().is_some() {
            let sentence = "byte strings in it are encoded by what they differ in (DELTA_BYTE_ARRAY or DELTA_LENGTH_BYTE_ARRAY), expected \
                            whole ones or a dictionary, of which it is known beforehand what they unfold to; write it with these";
            return Err(Error::Data(sentence.to_owned()));
        }
        // Allocated before the decoder looks for any.
        let of_values = claims.values.saturating_mul(value_bytes as u64);
        self.room.take(claims.unfolded.max(claims.folded).saturating_add(of_values))
    }

    /// Refuses a malformed footer. A file without a footer is reported by the decoder.
    pub fn expect_footer(&self) -> Result<()> {
        let Some(end) = self.len().checked_sub(TAIL) else { return Ok(()) };
        let tail = self.source.get_bytes(end, TAIL as usize).map_err(unreadable)?;
        let Some((length, b"PAR1")) = tail.split_first_chunk() else { return Ok(()) };
        let length = u32::from_le_bytes(*length);
        let Some(start) = end.checked_sub(length.into()) else { return Ok(()) };
        thrift::expect_footer(&self.source.get_bytes(start, length as usize).map_err(unreadable)?)
    }
}

/// Refuses a gzip page (`source` holds what follows its head) that unfolds to more than it claims, since its decoder unfolds it to the end.
fn expect_gzip(claims: PageClaims, mut source: impl Read) -> Result<()> {
    let [folded, claimed] = [claims.folded, claims.unfolded].map(|bytes| bytes.saturating_sub(claims.levels));
    let skipped = io::copy(&mut source.by_ref().take(claims.levels), &mut io::sink());
    let mut unfolded = MultiGzDecoder::new(source.take(folded)).take(claimed.saturating_add(1));
    // Unreadable or uncompressed data are reported by the decoder.
    match skipped.and_then(|_| io::copy(&mut unfolded, &mut io::sink())) {
        Ok(n_bytes) if n_bytes > claimed => {
            Err(damaged(&format!("a page of {folded} bytes is said to unfold to {claimed}, but unfolds to more")))
        }
        _ => Ok(()),
    }
}

/// Refuses an LZ4 page (`source` holds what follows its head) without Hadoop's frames around its blocks, which some writers left out before 2021: the
/// unfolded size of other frames is not known beforehand.
fn expect_hadoop(claims: PageClaims, mut source: impl Read) -> Result<()> {
    let [folded, claimed] = [claims.folded, claims.unfolded].map(|bytes| bytes.saturating_sub(claims.levels));
    let mut frame = [0; 8];
    let skipped = io::copy(&mut source.by_ref().take(claims.levels), &mut io::sink());
    // As in a gzip page.
    if !claims.is_compressed || claimed == 0 || skipped.and_then(|_| source.take(folded).read_exact(&mut frame)).is_err() {
        return Ok(());
    }
    let [unfolded_of_frame, folded_of_frame] =
        [&frame[..4], &frame[4..]].map(|bytes| bytes.iter().fold(0, |n, &byte| n << 8 | u64::from(byte)));
    if unfolded_of_frame <= claimed && folded_of_frame <= folded {
        return Ok(());
    }
    let sentence = "its pages are compressed with LZ4 of another kind than Hadoop's; write it with LZ4_RAW, Snappy, gzip or Zstandard";
    Err(Error::Data(sentence.to_owned()))
}

impl<R: ChunkReader> Length for Checked<R> {
    fn len(&self) -> u64 {
        self.source.len()
    }
}

impl<R: ChunkReader> ChunkReader for Checked<R> {
    type T = R::T;

    /// At `start` there is the head of a page, or the end of the file.
    fn get_read(&self, start: u64) -> parquet::errors::Result<R::T> {
        // Beyond some position the system itself would report an error.
        if start >= self.len() {
            return Err(ParquetError::EOF(format!("a page at {start} of {}", self.len())));
        }
        if let Some(pages) = self.pages {
            self.expect_page(start, pages).map_err(|error| ParquetError::External(error.into()))?;
        }
        self.source.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        // The decoder allocates these bytes before it reads them.
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

    /// The error message for a file whose footer is field 1, `version`, and `rest`.
    fn of_footer(rest: &[u8]) -> String {
        let footer = [&[0x15, 2], rest, &[0]].concat();
        read(with_footer(&footer), &wanted(&["x"], &[])).unwrap_err().to_string()
    }

    #[test]
    fn a_footer_costs_no_more_than_its_bytes() {
        // The unknown field 11: a list of 2^31 - 1 booleans, which take no bytes; a map from booleans to booleans.
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
        // The schema is a list of structures; the number of rows is an integer.
        assert!(of_footer(&[0x15, 2]).contains("field 2 of its description is of another kind"));
        assert!(of_footer(&[0x19, 0x15, 2]).contains("a list in its description is of another kind"));
    }

    /// A column or, with children, a group of columns in a footer's schema, whose name has `name` bytes.
    fn element(name: usize, children: Option<u32>) -> Vec<u8> {
        let (mut name_length, mut count) = (Vec::new(), Vec::new());
        number(&mut name_length, name as u64);
        let kind = match children {
            // Field 5 is the number of children, field 1 the type (a 64-bit integer); field 3 says that it is required.
            Some(children) => {
                count.push(0x15);
                number(&mut count, u64::from(children) << 1);
                vec![0x35, 0]
            }
            None => vec![0x15, 4, 0x25, 0],
        };
        [kind, vec![0x18], name_length, vec![b'n'; name], count, vec![0]].concat()
    }

    fn number(bytes: &mut Vec<u8>, mut number: u64) {
        while number >= 0x80 {
            bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
    }

    /// The error message for a file without rows whose schema consists of `elements`.
    fn of_schema(elements: &[Vec<u8>]) -> String {
        let mut list = vec![0x19, 0xfc];
        number(&mut list, elements.len() as u64);
        of_footer(&[list, elements.concat(), vec![0x16, 0, 0x19, 0x0c]].concat())
    }

    #[test]
    fn a_schema_that_costs_more_than_its_bytes_is_refused_before_it_is_decoded() {
        let (group, column) = (|children| element(1, Some(children)), element(1, None));
        let nested = |depth| of_schema(&[vec![group(1); depth], vec![column.clone()]].concat());
        assert_eq!(nested(64), format!("there is no column 'x'; expected one of '{}n'", "n.".repeat(63)));
        for depth in [65, 200_000] {
            assert_eq!(nested(depth), "its columns lie in more than 64 groups; write it with columns that lie less deep");
        }
        // Groups side by side lie no deeper.
        let wide = of_schema(&[vec![group(500)], vec![[group(1), column.clone()]; 500].concat()].concat());
        assert!(wide.starts_with("there is no column 'x'; expected one of 'n.n'"), "{wide}");
        assert_eq!(
            of_schema(&[group(i32::MAX as u32), column.clone()]),
            "it is damaged: a group of columns is said to have 2147483646 more than there are; write it anew"
        );
        let long =
            |columns: u32| of_schema(&[vec![group(1), element(1 << 20, Some(columns))], vec![element(0, None); columns as usize]].concat());
        assert_eq!(
            long(64),
            "the names of its columns, each with those of the groups around it, have 67108928 bytes, more than 67108864; write it with shorter names"
        );
        assert!(long(2).starts_with("there is no column 'x'"));
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
        // The decoder reports it in the same words.
        bytes.splice(4..4 + bomb.len(), bomb);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let told = read(file, &wanted(&["x"], &["id"])).unwrap_err().to_string();
        assert_eq!(told, sentence);
    }
}
