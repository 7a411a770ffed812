//! Tables in Parquet files. Codecs: none, Snappy, LZ4, gzip.

use parquet::basic::{LogicalType, Repetition, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;

use super::columns::Wanted;
use super::frame::{Frame, flaw};
use super::quiet::quietly;
use crate::{Error, Result};

/// Rows decoded at once.
const BLOCK: usize = 1 << 13;

/// The wanted columns of `file`.
///
/// # Errors
/// When the file is damaged, a column is missing or of a type that is not read, or a wanted cell is missing or no finite number.
pub(super) fn read(file: impl ChunkReader + 'static, wanted: &Wanted) -> Result<Frame> {
    // The decoder checks what it reads, but makes no promise never to panic on a damaged file.
    quietly(|| decode(file, wanted)).unwrap_or_else(|| Err(Error::Data("it is damaged; write it anew".to_owned())))
}

fn decode(file: impl ChunkReader + 'static, wanted: &Wanted) -> Result<Frame> {
    let reader = SerializedFileReader::new(file).map_err(unreadable)?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let header: Vec<String> = schema.columns().iter().map(|column| column.path().string()).collect();
    let positions = wanted.positions(&header)?;
    let mut frame = Frame::new(&header, &positions);
    for &at in positions.numbers.iter().chain(&positions.texts) {
        expect_flat(&schema.column(at))?;
    }
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(unreadable)?;
        let first_row = frame.n_rows();
        let mut n_rows = None;
        let mut expect_rows = |column: &str, found: usize| match *n_rows.get_or_insert(found) {
            expected if expected == found => Ok(()),
            expected => Err(Error::Data(format!("it is damaged: the column '{column}' has {found} rows where others have {expected}"))),
        };
        for (index, &at) in positions.numbers.iter().enumerate() {
            let descriptor = schema.column(at);
            let column = group.get_column_reader(at).map_err(unreadable)?;
            cells(column, &descriptor, first_row, wanted.may_miss, |cell| {
                let n = frame.numbers[index].len();
                if n.is_multiple_of(BLOCK) {
                    frame.expect_room(n + BLOCK)?;
                }
                frame.numbers[index].push(cell.number(&descriptor, n)?);
                Ok(())
            })?;
            expect_rows(&header[at], frame.numbers[index].len() - first_row)?;
        }
        for (index, &at) in positions.texts.iter().enumerate() {
            let descriptor = schema.column(at);
            let column = group.get_column_reader(at).map_err(unreadable)?;
            let (mut row, n_rows) = (first_row, frame.n_rows());
            cells(column, &descriptor, first_row, false, |cell| {
                row += 1;
                if row > n_rows {
                    return Err(Error::Data(format!("it is damaged: the column '{}' has more rows than others", header[at])));
                }
                frame.texts[index].push(&cell.text(&descriptor, row)?)
            })?;
            expect_rows(&header[at], frame.texts[index].rows().len() - first_row)?;
        }
    }
    frame.expect_rows()
}

fn expect_flat(column: &ColumnDescriptor) -> Result<()> {
    if column.max_rep_level() == 0 && column.self_type().get_basic_info().repetition() != Repetition::REPEATED {
        return Ok(());
    }
    Err(Error::Data(format!("the column '{}' holds lists, expected one value in each row", column.path().string())))
}

/// A value of a type that is read.
enum Cell<'a> {
    Missing,
    Whole(i128),
    Real(f64),
    Bool(bool),
    Bytes(&'a ByteArray),
}

impl Cell<'_> {
    fn number(&self, column: &ColumnDescriptor, row: usize) -> Result<f64> {
        let number = match *self {
            // Decimals are stored as whole numbers; where there is no scale it is negative.
            Self::Missing => return Ok(f64::NAN),
            Self::Whole(number) => number as f64 / 10f64.powi(column.type_scale().max(0)),
            Self::Real(number) => number,
            Self::Bool(flag) => f64::from(u8::from(flag)),
            Self::Bytes(_) => {
                let column = column.path().string();
                return Err(Error::Data(format!("the column '{column}' holds texts, expected numbers; choose which columns are read")));
            }
        };
        match flaw(number) {
            None => Ok(number),
            Some(expected) => {
                let column = column.path().string();
                Err(Error::Data(format!("row {}, column '{column}': expected {expected}, found '{number:?}'", row + 1)))
            }
        }
    }

    fn text(&self, column: &ColumnDescriptor, row: usize) -> Result<String> {
        Ok(match self {
            Self::Missing => unreachable!("a name is not missing"),
            Self::Whole(number) => number.to_string(),
            Self::Real(number) => number.to_string(),
            Self::Bool(flag) => flag.to_string(),
            Self::Bytes(bytes) => {
                let text = std::str::from_utf8(bytes.data())
                    .map_err(|_| Error::Data(format!("row {row}, column '{}': it is not UTF-8", column.path().string())))?;
                text.trim().to_owned()
            }
        })
    }
}

/// Hands every cell of a column of one row group to `take`.
fn cells(
    reader: ColumnReader,
    column: &ColumnDescriptor,
    first_row: usize,
    may_miss: bool,
    mut take: impl FnMut(Cell) -> Result<()>,
) -> Result<()> {
    let unsigned = match column.logical_type_ref() {
        Some(LogicalType::Integer(whole)) => !whole.is_signed,
        _ => false,
    };
    let whole = |number: i64, mask: i128| Cell::Whole(if unsigned { i128::from(number) & mask } else { i128::from(number) });
    let first = (first_row, may_miss);
    match reader {
        ColumnReader::BoolColumnReader(reader) => {
            values(reader, column, first, |flag| take(flag.map_or(Cell::Missing, |&flag| Cell::Bool(flag))))
        }
        ColumnReader::Int32ColumnReader(reader) => values(reader, column, first, |number| {
            take(number.map_or(Cell::Missing, |&number| whole(i64::from(number), i128::from(u32::MAX))))
        }),
        ColumnReader::Int64ColumnReader(reader) => {
            values(reader, column, first, |number| take(number.map_or(Cell::Missing, |&number| whole(number, i128::from(u64::MAX)))))
        }
        ColumnReader::FloatColumnReader(reader) => {
            values(reader, column, first, |number| take(number.map_or(Cell::Missing, |&number| Cell::Real(f64::from(number)))))
        }
        ColumnReader::DoubleColumnReader(reader) => {
            values(reader, column, first, |number| take(number.map_or(Cell::Missing, |&number| Cell::Real(number))))
        }
        ColumnReader::ByteArrayColumnReader(reader) => {
            values(reader, column, first, |bytes| take(bytes.map_or(Cell::Missing, Cell::Bytes)))
        }
        ColumnReader::Int96ColumnReader(_) | ColumnReader::FixedLenByteArrayColumnReader(_) => {
            let kind = if column.physical_type() == Type::INT96 { "96-bit times" } else { "byte strings of a fixed length" };
            Err(Error::Data(format!(
                "the column '{}' holds {kind}, expected numbers or texts; convert it, or choose other columns",
                column.path().string()
            )))
        }
    }
}

/// Hands every value of a column to `take`, and nothing for one that is missing, where it may.
fn values<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    column: &ColumnDescriptor,
    (first_row, may_miss): (usize, bool),
    mut take: impl FnMut(Option<&T::T>) -> Result<()>,
) -> Result<()> {
    let (mut block, mut levels, mut row) = (Vec::new(), Vec::new(), first_row);
    loop {
        block.clear();
        levels.clear();
        let (n_rows, n_values, _) = reader.read_records(BLOCK, Some(&mut levels), None, &mut block).map_err(unreadable)?;
        if n_rows == 0 {
            return Ok(());
        }
        if n_values == n_rows {
            block.iter().try_for_each(|value| take(Some(value)))?;
        } else if may_miss && levels.len() == n_rows {
            let mut values = block.iter();
            levels.iter().try_for_each(|&level| take(if level < column.max_def_level() { None } else { values.next() }))?;
        } else {
            let missing = levels.iter().position(|&level| level < column.max_def_level()).unwrap_or(0);
            return Err(Error::Data(format!(
                "row {}, column '{}': the cell is empty; fill it, leave the row or the column out, or train with missing = mask",
                row + missing + 1,
                column.path().string()
            )));
        }
        row += n_rows;
    }
}

fn unreadable(error: ParquetError) -> Error {
    let problem = error.to_string();
    let codec = if problem.contains("codec") || problem.contains("Disabled feature") {
        "; write it with Snappy, LZ4 or gzip, or without compression"
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
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;
    use proptest::prelude::*;

    use super::*;
    use crate::data::table::TimeColumn;
    use crate::data::table::{Numbers, read_table};

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
        Wanted { numbers: Numbers::Named(owned(numbers)), texts: owned(texts), time: TimeColumn::None, may_miss: false }
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

    /// A file of `tools/parquet_tables.py`.
    fn arrow(name: &str) -> File {
        File::open(format!("{}/tests/fixtures/tables/{name}.parquet", env!("CARGO_MANIFEST_DIR"))).unwrap()
    }

    #[test]
    fn files_of_another_writer_are_read() {
        let wanted = wanted(&["step", "value", "half", "flag"], &["name"]);
        for name in ["default", "gzip_pages_2", "plain_lz4", "delta"] {
            let frame = read(arrow(name), &wanted).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(frame.n_rows(), 300, "{name}");
            for i in 0..300 {
                let row = i as f64;
                let expected = [row, 0.25 * row - 10.0, 0.5 * row, f64::from(u8::from(i % 3 == 0))];
                assert!(frame.numbers.iter().map(|column| column[i]).eq(expected), "{name}, row {i}");
                assert_eq!(frame.texts[0].rows()[i], u32::from(i / 100 == 1), "{name}, row {i}");
            }
            assert_eq!(frame.texts[0].distinct(), ["series a", "series b"]);
        }
        let sentence = read(arrow("zstd"), &wanted).unwrap_err().to_string();
        assert!(sentence.contains("write it with Snappy, LZ4 or gzip"), "{sentence}");
    }

    #[test]
    fn every_flaw_is_a_sentence() {
        assert_eq!(refusal(&["y"], &[]), "there is no column 'y'; expected one of id, x, n, flag, price, size, time, list");
        assert_eq!(refusal(&["id"], &[]), "the column 'id' holds texts, expected numbers; choose which columns are read");
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
