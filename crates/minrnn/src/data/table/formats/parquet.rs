//! Tables in Parquet files. Codecs: none, Snappy, LZ4, gzip, Zstandard.

mod thrift;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arrow_array::types::{ArrowPrimitiveType, Float16Type};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, TimeUnit, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, Length, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;

use super::super::cells::{Cell, Place};
use super::super::clock::DAY;
use super::super::columns::Positions;
use super::super::frame::Filling;
use super::super::quiet::guarded;
use super::{Format, Input, MOST_OF_ZSTD, arrow, failed};
use crate::{Error, Result};

pub(super) const FORMAT: Format = Format { extensions: &["parquet", "pq"], magic: &[b"PAR1"], begins: |_| false, open };

/// Rows decoded at once.
const BLOCK: usize = 1 << 13;

fn open(input: Input) -> Result<Box<dyn super::Reader>> {
    Ok(match input.anywhere().map_err(failed)? {
        Ok(file) => Box::new(Table::open(file)?),
        Err(bytes) => Box::new(Table::open(bytes)?),
    })
}

/// A file whose metadata have been read.
struct Table<R: ChunkReader + 'static> {
    reader: SerializedFileReader<Checked<R>>,
    header: Vec<String>,
}

impl<R: ChunkReader + 'static> Table<R> {
    fn open(source: R) -> Result<Self> {
        guarded(|| {
            let most_unfolded = Arc::new(AtomicI64::new(thrift::MOST_UNFOLDED));
            let source = Checked { source, most_unfolded: Arc::clone(&most_unfolded) };
            source.expect_footer()?;
            let reader = SerializedFileReader::new(source).map_err(unreadable)?;
            let mut columns = reader.metadata().row_groups().iter().flat_map(|group| group.columns());
            if columns.any(|column| matches!(column.compression(), Compression::ZSTD(_))) {
                most_unfolded.store(MOST_OF_ZSTD, Ordering::Relaxed);
            }
            let columns = reader.metadata().file_metadata().schema_descr().columns().iter();
            let header = columns.map(|column| column.path().string()).collect();
            Ok(Self { reader, header })
        })
    }

    fn fill(&self, positions: &Positions, filling: &mut Filling) -> Result<()> {
        let schema = self.reader.metadata().file_metadata().schema_descr_ptr();
        for &at in positions.numbers.iter().chain(&positions.texts).chain(&positions.time) {
            expect_flat(&schema.column(at))?;
            expect_plain(&schema.column(at))?;
        }
        self.expect_readable(positions)?;
        let mut first_row = 0;
        for group in 0..self.reader.num_row_groups() {
            let group = self.reader.get_row_group(group).map_err(unreadable)?;
            let n_rows = usize::try_from(group.metadata().num_rows()).unwrap_or(usize::MAX);
            filling.expect_room(n_rows.saturating_add(first_row))?;
            let column = |at: usize, take: &mut dyn FnMut(Cell, Place) -> Result<()>| {
                let (descriptor, mut row) = (schema.column(at), first_row);
                let reader = group.get_column_reader(at).map_err(unreadable)?;
                cells(reader, &descriptor, &mut |cell: Option<Cell>| {
                    row += 1;
                    let cell = cell.ok_or_else(|| {
                        let column = descriptor.path().string();
                        Error::Data(format!("{}, column '{column}': it is not UTF-8", Place::Row(row - 1)))
                    })?;
                    if row - first_row > n_rows {
                        let column = descriptor.path().string();
                        return Err(Error::Data(format!("it is damaged: the column '{column}' has more rows than others")));
                    }
                    take(cell, Place::Row(row - 1))
                })?;
                match row - first_row {
                    found if found == n_rows => Ok(()),
                    found => Err(Error::Data(format!(
                        "it is damaged: the column '{}' has {found} rows where others have {n_rows}",
                        descriptor.path().string()
                    ))),
                }
            };
            for (&at, numbers) in positions.numbers.iter().zip(&mut filling.numbers) {
                column(at, &mut |cell, place| numbers.push(cell, place))?;
            }
            for (&at, texts) in positions.texts.iter().zip(&mut filling.texts) {
                column(at, &mut |cell, place| texts.push(cell, place))?;
            }
            if let (Some(at), Some(times)) = (positions.time, &mut filling.times) {
                column(at, &mut |cell, place| times.push(cell, place))?;
            }
            first_row += n_rows;
        }
        Ok(())
    }
}

impl<R: ChunkReader + 'static> Table<R> {
    /// Whether column `at` is one of times by its type, or one of texts whose first is a date.
    fn holds_dates(&self, at: usize) -> bool {
        let column = self.reader.metadata().file_metadata().schema_descr().column(at);
        match Meaning::of(&column) {
            Meaning::Times(_) | Meaning::Nanoseconds | Meaning::Days => true,
            Meaning::Signed if column.physical_type() == Type::BYTE_ARRAY => self.begins_with_date(at, &column),
            Meaning::Signed | Meaning::Unsigned | Meaning::Decimal(_) => false,
        }
    }

    /// Whether the first cell of column `at`, of byte strings, is a date; of what cannot be read whoever wants it is told.
    fn begins_with_date(&self, at: usize, column: &ColumnDescriptor) -> bool {
        let of_texts = Positions { numbers: Vec::new(), texts: vec![at], time: None };
        let is_date = |text: &ByteArray| std::str::from_utf8(text.data()).is_ok_and(|text| Cell::Text(text).is_date());
        let is_readable = || expect_flat(column).is_ok() && !is_decimal(column);
        is_readable()
            && guarded(|| self.first_bytes(at)).is_ok_and(|first| first.as_ref().is_some_and(is_date))
            && self.expect_readable(&of_texts).is_ok()
    }

    /// What stands in the first row of column `at`, of byte strings, if something does.
    fn first_bytes(&self, at: usize) -> Result<Option<ByteArray>> {
        let Some(group) = self.reader.metadata().row_groups().iter().position(|group| group.num_rows() > 0) else { return Ok(None) };
        let group = self.reader.get_row_group(group).map_err(unreadable)?;
        let ColumnReader::ByteArrayColumnReader(mut reader) = group.get_column_reader(at).map_err(unreadable)? else { return Ok(None) };
        let (mut first, mut levels) = (Vec::new(), Vec::new());
        reader.read_records(1, Some(&mut levels), None, &mut first).map_err(unreadable)?;
        Ok(first.pop())
    }

    /// Of which zone times were, and what else numbers and byte strings are meant to be, stands in a schema of Arrow's where Arrow wrote the file.
    fn expect_readable(&self, positions: &Positions) -> Result<()> {
        let Some(pairs) = self.reader.metadata().file_metadata().key_value_metadata() else { return Ok(()) };
        let schema = pairs.iter().find(|pair| pair.key == "ARROW:schema").and_then(|pair| pair.value.as_ref());
        let Some(schema) = schema.and_then(|schema| BASE64_STANDARD.decode(schema).ok()) else { return Ok(()) };
        let places = positions.numbers.iter().chain(&positions.texts).chain(&positions.time);
        arrow::expect_readable(&schema, places.map(|&at| self.header[at].as_str()))
    }
}

impl<R: ChunkReader + 'static> super::Reader for Table<R> {
    fn header(&self) -> &[String] {
        &self.header
    }

    fn n_rows(&self) -> Option<u64> {
        u64::try_from(self.reader.metadata().file_metadata().num_rows()).ok()
    }

    fn dates(&mut self) -> Result<Vec<bool>> {
        Ok((0..self.header.len()).map(|at| self.holds_dates(at)).collect())
    }

    fn read(self: Box<Self>, positions: &Positions, filling: &mut Filling) -> Result<()> {
        guarded(|| self.fill(positions, filling))
    }
}

/// What the file ends with: the length of the footer in front of it, and a magic word.
const TAIL: u64 = 8;

/// A file of which a decoder reads nothing that it must not believe.
struct Checked<R> {
    source: R,
    /// Bytes that a codec of the file can make of one.
    most_unfolded: Arc<AtomicI64>,
}

impl<R: ChunkReader> Checked<R> {
    /// Refuses a footer that is not what it should be. Of a file that has none the decoder tells.
    fn expect_footer(&self) -> Result<()> {
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

/// Refuses a column whose values are no numbers, texts or times, though they are kept as numbers.
fn expect_plain(column: &ColumnDescriptor) -> Result<()> {
    let is_of_day = match (column.logical_type_ref(), column.converted_type()) {
        (Some(logical), _) => matches!(logical, LogicalType::Time(_)),
        (None, converted) => matches!(converted, ConvertedType::TIME_MILLIS | ConvertedType::TIME_MICROS),
    };
    if !is_of_day {
        return Ok(());
    }
    let kind = "times of the day, expected numbers, texts or dates with a time; convert it, or choose other columns";
    Err(Error::Data(format!("the column '{}' holds {kind}", column.path().string())))
}

fn expect_flat(column: &ColumnDescriptor) -> Result<()> {
    if column.max_rep_level() == 0 && column.self_type().get_basic_info().repetition() != Repetition::REPEATED {
        return Ok(());
    }
    Err(Error::Data(format!("the column '{}' holds lists, expected one value in each row", column.path().string())))
}

/// How whole numbers of a column are meant.
enum Meaning {
    /// As they are.
    Signed,
    /// Without a sign.
    Unsigned,
    /// Decimals with so many digits behind the point.
    Decimal(i32),
    /// Times, of which so many are a millisecond.
    Times(f64),
    /// Nanoseconds since 1970.
    Nanoseconds,
    /// Days since 1970.
    Days,
}

impl Meaning {
    fn of(column: &ColumnDescriptor) -> Self {
        match (column.logical_type_ref(), column.converted_type()) {
            (Some(LogicalType::Timestamp(time)), _) => match time.unit {
                TimeUnit::MILLIS => Self::Times(1.0),
                TimeUnit::MICROS => Self::Times(1e3),
                TimeUnit::NANOS => Self::Nanoseconds,
            },
            (None, ConvertedType::TIMESTAMP_MILLIS) => Self::Times(1.0),
            (None, ConvertedType::TIMESTAMP_MICROS) => Self::Times(1e3),
            (Some(LogicalType::Date), _) | (None, ConvertedType::DATE) => Self::Days,
            (Some(LogicalType::Integer(whole)), _) if !whole.is_signed => Self::Unsigned,
            (None, ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 | ConvertedType::UINT_64) => Self::Unsigned,
            // Where there is no scale it is negative.
            _ if column.type_scale() > 0 => Self::Decimal(column.type_scale()),
            _ => Self::Signed,
        }
    }

    fn cell(&self, number: i64, mask: u64) -> Cell<'static> {
        match self {
            Self::Signed => Cell::Whole(number.into()),
            Self::Unsigned => Cell::Whole((number as u64 & mask).into()),
            Self::Decimal(scale) => Cell::decimal(number.into(), *scale),
            Self::Times(of_millisecond) => Cell::Time(number as f64 / of_millisecond),
            Self::Nanoseconds => Cell::Nanoseconds(number),
            Self::Days => Cell::Time(number as f64 * DAY),
        }
    }
}

/// What is done with a cell; nothing stands for one that is no text.
type Take<'t> = dyn FnMut(Option<Cell>) -> Result<()> + 't;

/// Hands every cell of a column of one row group to `take`.
fn cells(reader: ColumnReader, column: &ColumnDescriptor, take: &mut Take) -> Result<()> {
    let meaning = Meaning::of(column);
    match reader {
        ColumnReader::BoolColumnReader(reader) => values(reader, column, |&flag| Some(Cell::Bool(flag)), take),
        ColumnReader::Int32ColumnReader(reader) => {
            values(reader, column, |&number| Some(meaning.cell(number.into(), u32::MAX.into())), take)
        }
        ColumnReader::Int64ColumnReader(reader) => values(reader, column, |&number| Some(meaning.cell(number, u64::MAX)), take),
        ColumnReader::FloatColumnReader(reader) => values(reader, column, |&number| Some(Cell::Real(number.into())), take),
        ColumnReader::DoubleColumnReader(reader) => values(reader, column, |&number| Some(Cell::Real(number)), take),
        ColumnReader::ByteArrayColumnReader(reader) if is_decimal(column) => {
            values(reader, column, |bytes| decimal(bytes.data(), column.type_scale()), take)
        }
        ColumnReader::FixedLenByteArrayColumnReader(reader) if is_decimal(column) => {
            values(reader, column, |bytes| decimal(bytes.data(), column.type_scale()), take)
        }
        ColumnReader::FixedLenByteArrayColumnReader(reader) if matches!(column.logical_type_ref(), Some(LogicalType::Float16)) => {
            values(reader, column, |bytes| Some(Cell::Real(Half::from_le_bytes(bytes.data().try_into().ok()?).into())), take)
        }
        ColumnReader::ByteArrayColumnReader(reader) => {
            values(reader, column, |bytes| std::str::from_utf8(bytes.data()).ok().map(Cell::Text), take)
        }
        ColumnReader::Int96ColumnReader(_) | ColumnReader::FixedLenByteArrayColumnReader(_) => {
            let kind = match column.physical_type() {
                Type::INT96 => "96-bit times, expected numbers, texts or 64-bit timestamps; write it anew with these",
                _ => "byte strings of a fixed length, expected numbers or texts; convert it, or choose other columns",
            };
            Err(Error::Data(format!("the column '{}' holds {kind}", column.path().string())))
        }
    }
}

/// A 16-bit float.
type Half = <Float16Type as ArrowPrimitiveType>::Native;

fn is_decimal(column: &ColumnDescriptor) -> bool {
    matches!(column.logical_type_ref(), Some(LogicalType::Decimal(_))) || column.converted_type() == ConvertedType::DECIMAL
}

/// A decimal of `scale`, whose digits are a whole number in two's complement, its highest byte first.
fn decimal(bytes: &[u8], scale: i32) -> Option<Cell<'static>> {
    let scale = scale.max(0);
    let (first, rest) = bytes.split_at(bytes.len().min(size_of::<i128>()));
    // The sign fills what is in front.
    let sign = i128::from(first.first()?.cast_signed() >> 7);
    let digits = first.iter().fold(sign, |digits, &byte| digits << 8 | i128::from(byte));
    if rest.is_empty() {
        return Some(Cell::decimal(digits, scale));
    }
    Some(Cell::real_decimal(rest.iter().fold(digits as f64, |digits, &byte| digits * 256.0 + f64::from(byte)), scale))
}

/// Hands every value of a column to `take`, as the cell that it is.
fn values<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    column: &ColumnDescriptor,
    cell: impl for<'a> Fn(&'a T::T) -> Option<Cell<'a>>,
    take: &mut Take,
) -> Result<()> {
    let (mut block, mut levels) = (Vec::new(), Vec::new());
    loop {
        block.clear();
        levels.clear();
        let (n_rows, n_values, _) = reader.read_records(BLOCK, Some(&mut levels), None, &mut block).map_err(unreadable)?;
        if n_rows == 0 {
            return Ok(());
        }
        if n_values == n_rows {
            block.iter().try_for_each(|value| take(cell(value)))?;
        } else if levels.len() == n_rows {
            let mut values = block.iter();
            let is_there = |level: i16| level >= column.max_def_level();
            levels.iter().try_for_each(|&level| {
                let value = if is_there(level) { values.next() } else { None };
                take(value.map_or(Some(Cell::Missing), &cell))
            })?;
        } else {
            let column = column.path().string();
            return Err(Error::Data(format!("it is damaged: the column '{column}' has {n_values} values for {n_rows} rows")));
        }
    }
}

fn unreadable(error: ParquetError) -> Error {
    let error = match error {
        ParquetError::External(ours) => match ours.downcast() {
            Ok(ours) => return *ours,
            Err(theirs) => ParquetError::External(theirs),
        },
        error => error,
    };
    let problem = error.to_string();
    let codec = if problem.contains("codec") || problem.contains("Disabled feature") {
        "; write it with Snappy, LZ4, gzip or Zstandard, or without compression"
    } else {
        ""
    };
    Error::Data(format!("it cannot be read as Parquet: {problem}{codec}"))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Seek, Write};
    use std::sync::Arc;

    use parquet::basic::Compression;
    use parquet::column::writer::ColumnWriter;
    use parquet::file::metadata::KeyValue;
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;
    use proptest::prelude::*;

    use super::super::Reader as _;
    use super::*;
    use crate::data::table::{Frame, Numbers, TimeColumn, Wanted, read_table};

    fn read(file: File, wanted: &Wanted) -> Result<Frame> {
        super::super::frame(Box::new(Table::open(file)?), wanted)
    }

    const SCHEMA: &str = "message table {
        optional binary id (UTF8); required double x; required int32 n; required boolean flag; required int64 price (DECIMAL(18, 2));
        required int32 size (INTEGER(32, false)); required int96 time; repeated float list;
    }";

    /// Four rows in two groups; `null` leaves one name out.
    fn table(compression: Compression, null: bool) -> File {
        let mut file = tempfile::tempfile().unwrap();
        let properties = WriterProperties::builder().set_compression(compression).build();
        let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
        let mut writer = SerializedFileWriter::new(&mut file, schema, Arc::new(properties)).unwrap();
        for group in 0..2 {
            let mut group_writer = writer.next_row_group().unwrap();
            while let Some(mut column) = group_writer.next_column().unwrap() {
                match column.untyped() {
                    ColumnWriter::ByteArrayColumnWriter(column) => {
                        let names: Vec<ByteArray> = ["a", "b"].iter().map(|name| ByteArray::from(*name)).collect();
                        let levels: &[i16] = if null && group == 1 { &[1, 0] } else { &[1, 1] };
                        column.write_batch(&names, Some(levels), None).unwrap();
                    }
                    ColumnWriter::DoubleColumnWriter(column) => _ = column.write_batch(&[1.5, -2.0], None, None).unwrap(),
                    ColumnWriter::Int32ColumnWriter(column) => _ = column.write_batch(&[-1, 7 + group], None, None).unwrap(),
                    ColumnWriter::BoolColumnWriter(column) => _ = column.write_batch(&[true, false], None, None).unwrap(),
                    ColumnWriter::Int64ColumnWriter(column) => _ = column.write_batch(&[1999, -5], None, None).unwrap(),
                    ColumnWriter::Int96ColumnWriter(column) => _ = column.write_batch(&[Default::default(); 2], None, None).unwrap(),
                    ColumnWriter::FloatColumnWriter(column) => {
                        column.write_batch(&[0.0, 1.0, 2.0], Some(&[1, 1, 1]), Some(&[0, 1, 0])).unwrap();
                    }
                    ColumnWriter::FixedLenByteArrayColumnWriter(_) => unreachable!("the schema has none"),
                }
                column.close().unwrap();
            }
            group_writer.close().unwrap();
        }
        writer.close().unwrap();
        file.rewind().unwrap();
        file
    }

    fn wanted(numbers: &[&str], texts: &[&str]) -> Wanted {
        let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        Wanted { numbers: Numbers::Named(owned(numbers)), texts: owned(texts), ..Wanted::default() }
    }

    fn refusal(numbers: &[&str], texts: &[&str]) -> String {
        read(table(Compression::UNCOMPRESSED, true), &wanted(numbers, texts)).unwrap_err().to_string()
    }

    #[test]
    fn every_readable_type_and_codec_is_read() {
        let gzip = Compression::GZIP(Default::default());
        for compression in [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::LZ4_RAW, gzip] {
            let wanted = wanted(&["x", "n", "flag", "price", "size"], &["id", "n"]);
            let frame = read(table(compression, false), &wanted).unwrap();
            let unsigned = f64::from(u32::MAX);
            let expected: [[f64; 4]; 5] = [
                [1.5, -2.0, 1.5, -2.0],
                [-1.0, 7.0, -1.0, 8.0],
                [1.0, 0.0, 1.0, 0.0],
                [19.99, -0.05, 19.99, -0.05],
                [unsigned, 7.0, unsigned, 8.0],
            ];
            assert_eq!(frame.numbers, expected);
            assert_eq!(frame.texts[0].rows(), [0, 1, 0, 1]);
            assert_eq!(frame.texts[1].distinct(), ["-1", "7", "8"]);
        }
    }

    /// A file of `tools/table_fixtures.py`.
    fn arrow(name: &str) -> File {
        File::open(format!("{}/tests/fixtures/tables/{name}.parquet", env!("CARGO_MANIFEST_DIR"))).unwrap()
    }

    #[test]
    fn files_of_another_writer_are_read() {
        let wanted = wanted(&["step", "value", "half", "flag"], &["name"]);
        for name in ["default", "gzip_pages_2", "plain_lz4", "delta", "zstd"] {
            let frame = read(arrow(name), &wanted).unwrap_or_else(|error| panic!("{name}: {error}"));
            super::super::expect_fixture(&frame, name);
            assert_eq!(frame.texts[0].distinct(), ["series a", "series b"]);
        }
        let sentence = read(arrow("brotli"), &wanted).unwrap_err().to_string();
        assert!(sentence.contains("write it with Snappy, LZ4, gzip or Zstandard"), "{sentence}");
    }

    #[test]
    fn decimals_of_every_width_and_half_floats_are_numbers() {
        for (name, others) in [("decimals", ["half"].as_slice()), ("decimals_small", &[])] {
            let wanted = Wanted { may_miss: true, ..wanted(&[&super::super::DECIMALS, others].concat(), &["whole"]) };
            super::super::expect_decimals(&read(arrow(name), &wanted).unwrap(), name);
        }
        // As Hive writes them, with no more bytes than each needs.
        let number = |bytes: &[u8], scale| decimal(bytes, scale);
        assert_eq!(number(&[0xff], 0), Some(Cell::Whole(-1)));
        assert_eq!(number(&[0x07, 0xcf], 2), Some(Cell::Real(19.99)));
        assert_eq!(number(&[0xff, 0x38], 2), Some(Cell::Real(-2.0)));
        assert_eq!(number(&[0; 40], 3), Some(Cell::Real(0.0)));
        assert_eq!(number(&[[0xff; 20].as_slice(), &[0x38]].concat(), 2), Some(Cell::Real(-2.0)));
        assert_eq!(number(&[], 2), None);
    }

    #[test]
    fn timestamps_of_every_unit_and_dates_are_times() {
        for (column, last) in
            [("ds", "2024-01-02 23:00:00"), ("us", "2024-01-02 23:00:00"), ("ms", "2024-01-02 23:00:00"), ("day", "2024-01-02")]
        {
            let wanted = Wanted { time: TimeColumn::Named(column.to_owned()), ..wanted(&["x"], &[]) };
            let times = read(arrow("times"), &wanted).unwrap().times.unwrap();
            assert_eq!(times.clock.write(times.values[47]), last, "{column}");
            assert_eq!(times.values[24], 1_704_153_600_000.0, "{column}");
        }
        let sentence = read(arrow("times_zone"), &Wanted { time: TimeColumn::Found, ..wanted(&["x"], &[]) }).unwrap_err().to_string();
        assert!(sentence.starts_with("the column 'ds' holds times of the zone 'Europe/Berlin', expected UTC"), "{sentence}");
        assert_eq!(read(arrow("times_zone"), &wanted(&["x"], &[])).unwrap().numbers[0][47], 23.0);
        let old = Wanted { time: TimeColumn::Found, ..wanted(&["x"], &[]) };
        let sentence = read(arrow("times_96"), &old).unwrap_err().to_string();
        assert!(sentence.contains("the column 'ds' holds 96-bit times") && sentence.contains("64-bit timestamps"), "{sentence}");
        let as_number = read(arrow("times"), &wanted(&["ms"], &[])).unwrap_err().to_string();
        assert!(as_number.starts_with("row 1: the column 'ms' holds times such as '2024-01-01 00:00:00', expected numbers"), "{as_number}");
    }

    /// A file of one column of whole numbers, its type as older writers have it.
    fn of_whole(column: &str, numbers: [i64; 2]) -> File {
        of_arrow(column, numbers, None)
    }

    /// The same of a column that Arrow wrote as one of `meaning`; texts of the numbers where it is binary.
    fn of_arrow(column: &str, numbers: [i64; 2], meaning: Option<arrow_schema::DataType>) -> File {
        let mut file = tempfile::tempfile().unwrap();
        let schema = Arc::new(parse_message_type(&format!("message table {{ required {column}; }}")).unwrap());
        let in_arrow = meaning.map(|meaning| {
            let schema = arrow_schema::Schema::new(vec![arrow_schema::Field::new("n", meaning, false)]);
            let bytes = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &schema).unwrap().into_inner().unwrap();
            vec![KeyValue::new("ARROW:schema".to_owned(), BASE64_STANDARD.encode(bytes))]
        });
        let properties = WriterProperties::builder().set_key_value_metadata(in_arrow).build();
        let mut writer = SerializedFileWriter::new(&mut file, schema, Arc::new(properties)).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        match column.untyped() {
            ColumnWriter::Int32ColumnWriter(column) => _ = column.write_batch(&numbers.map(|number| number as i32), None, None).unwrap(),
            ColumnWriter::Int64ColumnWriter(column) => _ = column.write_batch(&numbers, None, None).unwrap(),
            ColumnWriter::ByteArrayColumnWriter(column) => {
                let texts = numbers.map(|number| ByteArray::from(number.to_string().into_bytes()));
                _ = column.write_batch(&texts, None, None).unwrap();
            }
            _ => unreachable!("it is one of whole numbers or bytes"),
        }
        column.close().unwrap();
        group.close().unwrap();
        writer.close().unwrap();
        file.rewind().unwrap();
        file
    }

    #[test]
    fn whole_numbers_without_a_sign_are_none_where_older_writers_say_so() {
        for (column, largest) in
            [("int32 n (UINT_32)", f64::from(u32::MAX)), ("int64 n (UINT_64)", u64::MAX as f64), ("int32 n (UINT_8)", 255.0)]
        {
            let number = if largest == 255.0 { 255 } else { -1 };
            assert_eq!(read(of_whole(column, [number, 7]), &wanted(&["n"], &[])).unwrap().numbers, [[largest, 7.0]], "{column}");
        }
        assert_eq!(read(of_whole("int32 n (INT_32)", [-1, 7]), &wanted(&["n"], &[])).unwrap().numbers, [[-1.0, 7.0]]);
    }

    #[test]
    fn times_of_the_day_are_no_numbers() {
        for column in ["int32 n (TIME(MILLIS, true))", "int64 n (TIME(NANOS, false))", "int64 n (TIME_MICROS)"] {
            let sentence = read(of_whole(column, [1, 7]), &wanted(&["n"], &[])).unwrap_err().to_string();
            assert!(sentence.starts_with("the column 'n' holds times of the day, expected numbers"), "{sentence}");
        }
    }

    #[test]
    fn what_arrow_wrote_is_read_as_its_types_are() {
        use arrow_schema::DataType::{Binary, Dictionary, Duration, Int32, Int64, LargeBinary, Utf8};
        let sentence =
            |column, meaning, wanted: &Wanted| read(of_arrow(column, [1, 7], Some(meaning)), wanted).map_err(|error| error.to_string());
        let number = wanted(&["n"], &[]);
        let told = sentence("int64 n", Duration(arrow_schema::TimeUnit::Nanosecond), &number).unwrap_err();
        assert!(
            told.starts_with("the column 'n' holds Duration(") && told.contains("expected numbers, texts or times; convert it"),
            "{told}"
        );
        assert_eq!(sentence("int64 n", Int64, &number).unwrap().numbers, [[1.0, 7.0]]);
        let name = Wanted { numbers: Numbers::Named(Vec::new()), time: TimeColumn::Named("n".to_owned()), ..wanted(&[], &["n"]) };
        let dictionary = || Dictionary(Box::new(Int32), Box::new(Utf8));
        for (of, is_text) in [(Binary, false), (LargeBinary, false), (Utf8, true), (dictionary(), true)] {
            let found = sentence("binary n", of.clone(), &name);
            assert!(found.is_ok() == is_text && found.err().is_none_or(|told| told.contains("expected numbers, texts or times")), "{of}");
        }
        // Of writers that say no more, byte strings may be texts.
        assert_eq!(read(of_whole("binary n", [1, 7]), &name).unwrap().texts[0].distinct(), ["1", "7"]);
    }

    /// A file of these columns, of texts but for those of 32 bits; an empty text leaves its row out.
    fn of_texts(schema: &str, rows: [&str; 2]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        let schema = Arc::new(parse_message_type(&format!("message table {{ {schema} }}")).unwrap());
        let mut writer = SerializedFileWriter::new(&mut file, schema, Arc::default()).unwrap();
        let mut group = writer.next_row_group().unwrap();
        while let Some(mut column) = group.next_column().unwrap() {
            match column.untyped() {
                ColumnWriter::ByteArrayColumnWriter(column) => {
                    let texts: Vec<ByteArray> = rows.iter().filter(|text| !text.is_empty()).map(|&text| ByteArray::from(text)).collect();
                    let levels = rows.map(|text| i16::from(!text.is_empty()));
                    column.write_batch(&texts, Some(&levels), Some(&[0, 0])).unwrap();
                }
                ColumnWriter::Int32ColumnWriter(column) => _ = column.write_batch(&[1, 2], None, None).unwrap(),
                _ => unreachable!("it is one of texts or of whole numbers"),
            }
            column.close().unwrap();
        }
        group.close().unwrap();
        writer.close().unwrap();
        file.rewind().unwrap();
        file
    }

    #[test]
    fn texts_that_are_dates_are_found_by_the_first_row_as_types_are() {
        let dates = |schema: &str, rows: [&str; 2]| Table::open(of_texts(schema, rows)).unwrap().dates().unwrap();
        let days = ["2024-01-31", "2024-02-29"];
        let all = "required int32 n; required int32 day (DATE); optional binary a (UTF8); required binary b (UTF8); required binary c;";
        assert_eq!(dates(all, days), [false, true, true, true, true]);
        assert_eq!(dates("repeated binary list (UTF8); required binary n (DECIMAL(18, 0));", days), [false, false]);
        let text = "optional binary a (UTF8);";
        for (first, is_date) in [("2024-01", true), ("2024-01-31 12:00", true), ("20240131", false), ("a", false), ("", false)] {
            assert_eq!(dates(text, [first, "2024-02-29"]), [is_date], "{first}");
        }
        // What was looked at is read nevertheless.
        let mut table = Table::open(of_texts(text, days)).unwrap();
        table.dates().unwrap();
        let wanted = Wanted { numbers: Numbers::Named(Vec::new()), time: TimeColumn::Named("a".to_owned()), ..Wanted::default() };
        assert_eq!(super::super::frame(Box::new(table), &wanted).unwrap().times.unwrap().values.len(), 2);
    }

    #[test]
    fn every_flaw_is_a_sentence() {
        assert_eq!(refusal(&["y"], &[]), "there is no column 'y'; expected one of 'id', 'x', 'n', 'flag', 'price', 'size', 'time', 'list'");
        assert_eq!(refusal(&["id"], &[]), "row 1: the column 'id' holds texts such as 'a', expected numbers");
        assert!(refusal(&["time"], &[]).contains("the column 'time' holds 96-bit times"));
        assert!(refusal(&["list"], &[]).contains("holds lists"));
        assert!(refusal(&["x"], &["id"]).starts_with("row 4, column 'id': the cell is empty"));
    }

    #[test]
    fn a_file_is_recognised_by_its_first_bytes() {
        let path = tempfile::NamedTempFile::new().unwrap();
        let mut bytes = Vec::new();
        table(Compression::SNAPPY, false).read_to_end(&mut bytes).unwrap();
        std::fs::write(path.path(), &bytes).unwrap();
        assert_eq!(read_table(path.path(), &wanted(&["x"], &[])).unwrap().n_rows(), 4);
        std::fs::write(path.path(), &bytes[..bytes.len() / 2]).unwrap();
        let sentence = read_table(path.path(), &wanted(&["x"], &[])).unwrap_err().to_string();
        assert!(sentence.contains("it cannot be read as Parquet") && sentence.contains(path.path().to_str().unwrap()), "{sentence}");
    }

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

    proptest! {
        #[test]
        fn no_damage_panics(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
            let mut bytes = Vec::new();
            table(Compression::SNAPPY, false).read_to_end(&mut bytes).unwrap();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&bytes).unwrap();
            file.rewind().unwrap();
            let _ = read(file, &wanted(&["x", "n"], &["id"]));
        }
    }
}
