//! The formats of tables, each a file that gives a header and then fills the wanted columns.

mod arrow;
mod csv;
mod lines;
mod ndjson;
mod parquet;
mod ts;

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;

use ::bytes::Bytes;

pub(super) use self::arrow::in_memory;
pub(super) use self::csv::Records;
use super::columns::{Positions, Wanted};
use super::frame::{Filling, Frame};
use super::limit::TableLimit;
use crate::data::foreign::foreign;
use crate::data::source::Source;
use crate::{Error, Result};

/// The list of formats; a file that none of them recognises is read as the last.
const FORMATS: [&Format; 5] = [&parquet::FORMAT, &arrow::FORMAT, &ndjson::FORMAT, &ts::FORMAT, &csv::FORMAT];

/// This many bytes of a file are looked at to recognise its format.
const BEGINNING: u64 = 1 << 16;

/// Zstandard expands a byte to at most this many: four bytes make a block of 128 KiB.
const MOST_OF_ZSTD: i64 = 1 << 15;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A format of tables.
pub(super) struct Format {
    /// The endings of its file names.
    extensions: &'static [&'static str],
    /// The first bytes of its files, which no file of another format has.
    magic: &'static [&'static [u8]],
    /// Whether a text, without blanks before it, begins like one of its files.
    begins: fn(&str) -> bool,
    /// Opens a file and reads the names of its columns.
    open: fn(Input) -> Result<Box<dyn Reader>>,
}

/// A table whose columns are known and whose rows are still to be read.
pub(super) trait Reader {
    /// Names of the columns.
    fn header(&self) -> &[String];

    /// The number of rows, if the file states it before they are read.
    fn n_rows(&self) -> Option<u64> {
        None
    }

    /// The limit on how much of it is read, if there is one and a file may claim more cells than it has bytes for.
    fn limit(&self) -> Option<TableLimit> {
        None
    }

    /// Which columns hold dates, according to the file's types or its first row, which is still read afterwards.
    ///
    /// # Errors
    /// When that row cannot be read.
    fn dates(&mut self) -> Result<Vec<bool>>;

    /// Treats what was read as column names as the first row, with `names` as the names, if the format allows files without names.
    fn take_header_as_row(&mut self, _names: Vec<String>) {}

    /// Fills the columns at `positions` of the header.
    ///
    /// # Errors
    /// When the file is damaged, or a wanted cell holds something other than what is wanted.
    fn read(self: Box<Self>, positions: &Positions, filling: &mut Filling) -> Result<()>;
}

/// A file of which the beginning has been read.
pub(super) struct Input {
    beginning: Vec<u8>,
    source: Source,
    limit: Option<TableLimit>,
}

/// All bytes of a file in turn.
type Whole = io::Chain<Cursor<Vec<u8>>, Source>;

impl Input {
    /// The whole file, from its first byte on, without a byte order mark.
    fn whole(self) -> Whole {
        let start = if self.beginning.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        let mut beginning = Cursor::new(self.beginning);
        beginning.set_position(start as u64);
        beginning.chain(self.source)
    }

    /// The whole table, for repeated reading at any position: a file, or the bytes of a pipe.
    fn anywhere(self) -> io::Result<Result<File, Bytes>> {
        match self.source.into_file() {
            Ok(file) => Ok(Ok(file)),
            Err(mut pipe) => {
                let mut bytes = self.beginning;
                pipe.read_to_end(&mut bytes)?;
                Ok(Err(Bytes::from(bytes)))
            }
        }
    }
}

/// Opens the table `path`, whose format is recognised by its first bytes or the end of its name. It is read once, so it may be a pipe; no more
/// is read than `limit` allows.
///
/// # Errors
/// When it cannot be read, is known not to be a table, or the names of its columns cannot be found.
pub(super) fn open(path: &Path, limit: Option<TableLimit>) -> Result<Box<dyn Reader>> {
    let mut source = Source::open(path).map_err(failed)?;
    let mut beginning = Vec::new();
    source.by_ref().take(BEGINNING).read_to_end(&mut beginning).map_err(failed)?;
    if let Some(what) = foreign(&beginning) {
        return Err(Error::Data(what.to_owned()));
    }
    let reader = (format_of(path, &beginning).open)(Input { beginning, source, limit })?;
    if reader.header().is_empty() {
        return Err(Error::Data("it has no columns".to_owned()));
    }
    Ok(reader)
}

fn format_of(path: &Path, beginning: &[u8]) -> &'static Format {
    let text = beginning.strip_prefix(BYTE_ORDER_MARK).unwrap_or(beginning);
    // The text may end within a character.
    let text = text.utf8_chunks().next().map_or("", |chunk| chunk.valid()).trim_start();
    let extension = extension(path);
    let find = |is: &dyn Fn(&Format) -> bool| FORMATS.into_iter().find(|format| is(format));
    find(&|format| format.magic.iter().any(|magic| beginning.starts_with(magic)))
        .or_else(|| find(&|format| format.extensions.iter().any(|known| known.eq_ignore_ascii_case(extension))))
        .or_else(|| find(&|format| (format.begins)(text)))
        .unwrap_or(&csv::FORMAT)
}

/// Whether the file name has an extension used only for tables, unlike those of JSON Lines and `.ts`, which may be logs or programs.
pub(crate) fn is_named_as_table(path: &Path) -> bool {
    let formats = [&parquet::FORMAT, &arrow::FORMAT, &csv::FORMAT];
    formats.iter().flat_map(|format| format.extensions).any(|known| extension(path).eq_ignore_ascii_case(known))
}

/// The extension of a file name.
fn extension(path: &Path) -> &str {
    path.extension().and_then(|extension| extension.to_str()).unwrap_or_default()
}

/// The wanted columns of the table that `reader` reads.
///
/// # Errors
/// As [`read`](Reader::read), and when a column is missing or occurs twice.
pub(super) fn frame(reader: Box<impl Reader + ?Sized>, wanted: &Wanted) -> Result<Frame> {
    let positions = wanted.positions(reader.header())?;
    let mut filling = Filling::new(reader.header(), &positions, wanted, reader.limit());
    reader.read(&positions, &mut filling)?;
    filling.finish()
}

/// Checks what `tools/table_fixtures.py` writes: 300 rows of `step`, `value`, `half`, `flag` and `name`.
#[cfg(test)]
fn expect_fixture(frame: &Frame, name: &str) {
    assert_eq!(frame.n_rows(), 300, "{name}");
    for i in 0..300 {
        let row = i as f64;
        let expected = [row, 0.25 * row - 10.0, 0.5 * row, f64::from(u8::from(i % 3 == 0))];
        assert!(frame.numbers.iter().map(|column| column[i]).eq(expected), "{name}, row {i}");
        assert_eq!(frame.texts[0].rows()[i], u32::from(i / 100 == 1), "{name}, row {i}");
    }
}

/// The columns of decimals that `tools/table_fixtures.py` writes.
#[cfg(test)]
const DECIMALS: [&str; 4] = ["price", "small", "whole", "large"];

/// Checks what `tools/table_fixtures.py` writes: 6 rows of [`DECIMALS`], and of `half` where that is there.
#[cfg(test)]
fn expect_decimals(frame: &Frame, name: &str) {
    assert_eq!(frame.n_rows(), 6, "{name}");
    for i in 0..6 {
        let row = i as f64;
        let exact = [(row - 3.0) / 100.0, (row - 3.0) / 1000.0, row - 3.0];
        assert_eq!(frame.numbers[..3].iter().map(|column| column[i]).collect::<Vec<_>>(), exact, "{name}, row {i}");
        let (large, expected) = (frame.numbers[3][i], (row - 3.0) * 1e37);
        assert!(if i == 5 { large.is_nan() } else { (large - expected).abs() <= 1e-12 * expected.abs() }, "{name}, row {i}: {large}");
        assert!(frame.numbers.get(4).is_none_or(|half| half[i] == row / 4.0), "{name}, row {i}");
    }
    assert_eq!(frame.texts[0].distinct(), ["-3", "-2", "-1", "0", "1", "2"], "{name}");
}

/// The error for a table that could not be read; the caller adds its path.
fn failed(source: io::Error) -> Error {
    Error::io("read the table", "", source)
}

/// The error for `source`, returned by a decoder that reads by itself, if the system failed to read; anything else is a fault of the file.
fn of_system(source: io::Error) -> std::result::Result<Error, io::Error> {
    if source.raw_os_error().is_some() { Ok(failed(source)) } else { Err(source) }
}

/// The error for `source`, the failure of an exact read: `ended` if there are too few bytes, otherwise a failed read.
fn of_read(source: io::Error, ended: impl FnOnce() -> Error) -> Error {
    if source.kind() == io::ErrorKind::UnexpectedEof { ended() } else { failed(source) }
}
