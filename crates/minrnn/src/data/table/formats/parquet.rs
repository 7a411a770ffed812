//! Tables in Parquet files. Codecs: none, Snappy, LZ4 (raw, or in Hadoop's frames), gzip, Zstandard.

mod cells;
mod checked;
#[cfg(test)]
mod test_files;
mod thrift;

use std::io;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use parquet::basic::Type;
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::file::properties::ReaderProperties;
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::ColumnDescriptor;

use self::cells::{Found, Meaning, cells, expect_flat, expect_plain, is_decimal};
use self::checked::Checked;
use super::super::cells::{Cell, Place};
use super::super::columns::Positions;
use super::super::frame::Filling;
use super::super::limit::{Room, TableLimit};
use super::super::quiet::guarded;
use super::{Format, Input, arrow, failed, of_system};
use crate::{Error, Result};

pub(super) const FORMAT: Format = Format { extensions: &["parquet", "pq"], magic: &[b"PAR1"], begins: |_| false, open };

fn open(input: Input) -> Result<Box<dyn super::Reader>> {
    let limit = input.limit;
    Ok(match input.anywhere().map_err(failed)? {
        Ok(file) => Box::new(Table::open(file, limit)?),
        Err(bytes) => Box::new(Table::open(bytes, limit)?),
    })
}

/// A file whose metadata have been read.
struct Table<R> {
    source: Checked<R>,
    metadata: ParquetMetaData,
    header: Vec<String>,
    texts: Room,
}

impl<R: ChunkReader + 'static> Table<R> {
    fn open(source: R, limit: Option<TableLimit>) -> Result<Self> {
        guarded(|| {
            let source = Checked::new(source, limit);
            source.expect_footer()?;
            let metadata = ParquetMetaDataReader::new().parse_and_finish(&source).map_err(unreadable)?;
            let columns = metadata.file_metadata().schema_descr().columns().iter();
            let header = columns.map(|column| column.path().string()).collect();
            Ok(Self { source, metadata, header, texts: Room::for_texts(limit) })
        })
    }

    fn fill(&self, positions: &Positions, filling: &mut Filling) -> Result<()> {
        let schema = self.metadata.file_metadata().schema_descr_ptr();
        for &at in positions.numbers.iter().chain(&positions.texts).chain(&positions.time) {
            expect_flat(&schema.column(at))?;
            expect_plain(&schema.column(at))?;
        }
        self.expect_readable(positions)?;
        let mut first_row = 0;
        for group in self.metadata.row_groups() {
            let n_rows = n_rows(group);
            filling.expect_room(n_rows.saturating_add(first_row))?;
            let column = |at: usize, take: &mut dyn FnMut(Cell, Place) -> Result<()>| {
                let (descriptor, mut row) = (schema.column(at), first_row);
                cells(self.column(group, at)?, &descriptor, &mut |cell: Found| {
                    row += 1;
                    let cell = cell.map_err(|flaw| {
                        let column = descriptor.path().string();
                        Error::Data(format!("{}, column '{column}': {flaw}", Place::Row(row - 1)))
                    })?;
                    if row - first_row > n_rows {
                        let column = descriptor.path().string();
                        return Err(Error::Data(format!("it is damaged: the column '{column}' has more rows than others")));
                    }
                    self.texts.take(cell.text_len() as u64)?;
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
    /// Reads column `at` of `group`.
    fn column(&self, group: &RowGroupMetaData, at: usize) -> Result<ColumnReader> {
        let chunk = group.column(at);
        // The LZ4 frames of older writers can unfold to any size.
        let properties = ReaderProperties::builder().set_backward_compatible_lz4(false).build();
        let source = Arc::new(self.source.pages_of(chunk));
        let pages =
            SerializedPageReader::new_with_properties(source, chunk, n_rows(group), None, Arc::new(properties)).map_err(unreadable)?;
        Ok(get_column_reader(self.metadata.file_metadata().schema_descr().column(at), Box::new(pages)))
    }

    /// Whether column `at` holds times by its type, or texts of which the first is a date.
    fn holds_dates(&self, at: usize) -> bool {
        let column = self.metadata.file_metadata().schema_descr().column(at);
        match Meaning::of(&column) {
            Meaning::Times(_) | Meaning::Nanoseconds | Meaning::Days => true,
            Meaning::Signed if column.physical_type() == Type::BYTE_ARRAY => self.begins_with_date(at, &column),
            Meaning::Signed | Meaning::Unsigned | Meaning::Decimal(_) => false,
        }
    }

    /// Whether the first cell of column `at`, of byte strings, is a date; an unreadable column is reported only when it is wanted.
    fn begins_with_date(&self, at: usize, column: &ColumnDescriptor) -> bool {
        let of_texts = Positions { numbers: Vec::new(), texts: vec![at], time: None };
        let is_date = |text: &ByteArray| std::str::from_utf8(text.data()).is_ok_and(|text| Cell::Text(text).is_date());
        let is_readable = || expect_flat(column).is_ok() && !is_decimal(column);
        is_readable()
            && guarded(|| self.first_bytes(at)).is_ok_and(|first| first.as_ref().is_some_and(is_date))
            && self.expect_readable(&of_texts).is_ok()
    }

    /// The first value of column `at`, of byte strings, unless it is missing.
    fn first_bytes(&self, at: usize) -> Result<Option<ByteArray>> {
        let Some(group) = self.metadata.row_groups().iter().find(|group| group.num_rows() > 0) else { return Ok(None) };
        let ColumnReader::ByteArrayColumnReader(mut reader) = self.column(group, at)? else { return Ok(None) };
        let (mut first, mut levels) = (Vec::new(), Vec::new());
        reader.read_records(1, Some(&mut levels), None, &mut first).map_err(unreadable)?;
        Ok(first.pop())
    }

    /// Refuses unsupported columns; in a file written by Arrow, an Arrow schema gives the zone of times and the other meanings of numbers and byte
    /// strings.
    fn expect_readable(&self, positions: &Positions) -> Result<()> {
        let Some(pairs) = self.metadata.file_metadata().key_value_metadata() else { return Ok(()) };
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
        u64::try_from(self.metadata.file_metadata().num_rows()).ok()
    }

    fn limit(&self) -> Option<TableLimit> {
        self.texts.limit()
    }

    fn dates(&mut self) -> Result<Vec<bool>> {
        Ok((0..self.header.len()).map(|at| self.holds_dates(at)).collect())
    }

    fn read(self: Box<Self>, positions: &Positions, filling: &mut Filling) -> Result<()> {
        guarded(|| self.fill(positions, filling))
    }
}

/// The number of rows that a group claims to have.
fn n_rows(group: &RowGroupMetaData) -> usize {
    usize::try_from(group.num_rows()).unwrap_or(usize::MAX)
}

fn unreadable(error: ParquetError) -> Error {
    let error = match error {
        ParquetError::External(error) => match error.downcast::<Error>() {
            Ok(ours) => return *ours,
            Err(error) => match error.downcast::<io::Error>().map(|source| of_system(*source)) {
                Ok(Ok(failed)) => return failed,
                Ok(Err(source)) => ParquetError::External(source.into()),
                Err(error) => ParquetError::External(error),
            },
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
    use std::io::{Read, Seek, Write};

    use flate2::write::GzEncoder;
    use parquet::basic::{Compression, Encoding};
    use parquet::column::writer::ColumnWriter;
    use parquet::file::properties::{WriterProperties, WriterVersion};
    use proptest::prelude::*;

    use super::super::{Reader as _, expect_fixture};
    use super::test_files::{doubles, fixture, of_arrow, of_texts, of_whole, read, table, wanted, write};
    use super::*;
    use crate::data::table::{Numbers, TimeColumn, Wanted, read_table};

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

    #[test]
    fn files_of_another_writer_are_read() {
        let wanted = wanted(&["step", "value", "half", "flag"], &["name"]);
        for name in ["default", "gzip_pages_2", "plain_lz4", "delta", "zstd"] {
            let frame = read(fixture(name), &wanted).unwrap_or_else(|error| panic!("{name}: {error}"));
            expect_fixture(&frame, name);
            assert_eq!(frame.texts[0].distinct(), ["series a", "series b"]);
        }
        let sentence = read(fixture("brotli"), &wanted).unwrap_err().to_string();
        assert!(sentence.contains("write it with Snappy, LZ4, gzip or Zstandard"), "{sentence}");
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
        // If the writer says no more, byte strings may be texts.
        assert_eq!(read(of_whole("binary n", [1, 7]), &name).unwrap().texts[0].distinct(), ["1", "7"]);
    }

    #[test]
    fn texts_that_are_dates_are_found_by_the_first_row_as_types_are() {
        let dates = |schema: &str, rows: [&str; 2]| Table::open(of_texts(schema, rows), None).unwrap().dates().unwrap();
        let days = ["2024-01-31", "2024-02-29"];
        let all = "required int32 n; required int32 day (DATE); optional binary a (UTF8); required binary b (UTF8); required binary c;";
        assert_eq!(dates(all, days), [false, true, true, true, true]);
        assert_eq!(dates("repeated binary list (UTF8); required binary n (DECIMAL(18, 0));", days), [false, false]);
        let text = "optional binary a (UTF8);";
        for (first, is_date) in [("2024-01", true), ("2024-01-31 12:00", true), ("20240131", false), ("a", false), ("", false)] {
            assert_eq!(dates(text, [first, "2024-02-29"]), [is_date], "{first}");
        }
        // What was looked at is still read.
        let mut table = Table::open(of_texts(text, days), None).unwrap();
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

    /// The number of rows read of `file`, or the refusal, with the limit for a text of `bytes`.
    fn limited(file: std::fs::File, bytes: usize, wanted: &Wanted) -> std::result::Result<usize, String> {
        let table = Table::open(file, Some(TableLimit::of_text(bytes))).unwrap();
        super::super::frame(Box::new(table), wanted).map(|frame| frame.n_rows()).map_err(|error| error.to_string())
    }

    #[test]
    fn more_rows_than_a_limit_are_refused_by_what_the_footer_says() {
        let wanted = wanted(&["x"], &["id"]);
        let of = |bytes| limited(table(Compression::UNCOMPRESSED, false), bytes, &wanted);
        assert_eq!(of(16), Ok(4));
        // The first group of rows is within it.
        assert_eq!(
            of(15).unwrap_err(),
            "it has at least 8 cells in the 2 columns that are read, expected at most 7; split it into smaller tables"
        );
    }

    #[test]
    fn a_name_that_a_file_has_once_counts_in_every_row() {
        let name = "n".repeat(1000);
        let file = || {
            write("required binary id (UTF8); required double x;", WriterProperties::default(), 1, |_, column| match column {
                ColumnWriter::ByteArrayColumnWriter(column) => {
                    column.write_batch(&vec![ByteArray::from(name.as_str()); 1000], None, None).unwrap();
                }
                ColumnWriter::DoubleColumnWriter(column) => _ = column.write_batch(&[1.0; 1000], None, None).unwrap(),
                _ => unreachable!("it has one of texts and one of numbers"),
            })
        };
        let wanted = wanted(&["x"], &["id"]);
        let told = limited(file(), 4000, &wanted).unwrap_err();
        assert!(told.starts_with("the texts in its cells have more than 97536 bytes"), "{told}");
        assert_eq!(limited(file(), 1 << 20, &wanted), Ok(1000));
    }

    #[test]
    fn pages_that_unfold_to_more_than_a_limit_are_not_unfolded() {
        let file = || {
            let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).set_dictionary_enabled(false).build();
            write("required double x;", properties, 1, |_, column| match column {
                ColumnWriter::DoubleColumnWriter(column) => _ = column.write_batch(&vec![1.0; 20_000], None, None).unwrap(),
                _ => unreachable!("it is one of numbers"),
            })
        };
        assert_eq!(limited(file(), 40_000, &wanted(&["x"], &[])), Ok(20_000));
        let table = Table::open(file(), Some(TableLimit::of_text(1000))).unwrap();
        let column = table.metadata.file_metadata().schema_descr().column(0);
        let reader = table.column(table.metadata.row_group(0), 0).unwrap();
        let told = cells(reader, &column, &mut |_: Found| Ok(())).unwrap_err().to_string();
        assert!(told.starts_with("unfolded it has more than 73536 bytes"), "{told}");
    }

    #[test]
    fn what_shares_beginnings_is_read_without_a_limit_alone() {
        let told = limited(fixture("delta"), 1 << 20, &wanted(&["step"], &["name"])).unwrap_err();
        assert!(told.starts_with("byte strings in it are encoded by what they differ in (DELTA_BYTE_ARRAY"), "{told}");
        assert_eq!(limited(fixture("delta"), 1 << 20, &wanted(&["step", "value"], &[])), Ok(300));
        assert_eq!(limited(fixture("default"), 1 << 20, &wanted(&["step"], &["name"])), Ok(300));
    }

    #[test]
    fn byte_strings_by_differences_are_known_in_pages_of_both_versions() {
        for (version, encoding) in [
            (WriterVersion::PARQUET_1_0, Encoding::DELTA_LENGTH_BYTE_ARRAY),
            (WriterVersion::PARQUET_1_0, Encoding::DELTA_BYTE_ARRAY),
            (WriterVersion::PARQUET_2_0, Encoding::DELTA_LENGTH_BYTE_ARRAY),
            (WriterVersion::PARQUET_2_0, Encoding::DELTA_BYTE_ARRAY),
        ] {
            let file = || {
                let properties =
                    WriterProperties::builder().set_writer_version(version).set_dictionary_enabled(false).set_encoding(encoding);
                write("required binary id (UTF8);", properties.build(), 1, |_, column| match column {
                    ColumnWriter::ByteArrayColumnWriter(column) => {
                        column.write_batch(&["a1", "a2"].map(ByteArray::from), None, None).unwrap();
                    }
                    _ => unreachable!("it is one of texts"),
                })
            };
            let read = |limit| {
                let table = Table::open(file(), limit).unwrap();
                let column = table.metadata.file_metadata().schema_descr().column(0);
                let mut texts = Vec::new();
                let reader = table.column(table.metadata.row_group(0), 0).unwrap();
                let read = cells(reader, &column, &mut |cell: Found| {
                    texts.push(cell.unwrap().name().into_owned());
                    Ok(())
                });
                read.map(|()| texts).map_err(|error| error.to_string())
            };
            assert_eq!(read(None).unwrap(), ["a1", "a2"], "{version:?}, {encoding}");
            let told = read(Some(TableLimit::of_text(1 << 20))).unwrap_err();
            assert!(told.starts_with("byte strings in it are encoded by what they differ in"), "{version:?}, {encoding}: {told}");
        }
    }

    #[test]
    fn a_page_of_gzip_that_unfolds_to_more_than_it_says_is_not_unfolded() {
        let gzip = |bytes: &[u8]| {
            let mut encoder = GzEncoder::new(Vec::new(), Default::default());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        };
        let bytes: Vec<u8> = std::iter::repeat_n(2.5f64.to_le_bytes(), 1000).flatten().collect();
        let (whole, longer) = (gzip(&bytes), gzip(&[0; 1 << 20]));
        // A gzip page may have several members, here with a second that unfolds to too much.
        let second = [&whole[..], &longer].concat();
        let (wanted, n_longer, n_second) = (wanted(&["x"], &[]), longer.len(), second.len());
        assert_eq!(limited(doubles(2, 1000, &whole), 1 << 20, &wanted), Ok(1000));
        for (page, n_bytes) in [(longer, n_longer), (second, n_second)] {
            let told = format!("it is damaged: a page of {n_bytes} bytes is said to unfold to 8000, but unfolds to more; write it anew");
            assert_eq!(limited(doubles(2, 1000, &page), 1 << 20, &wanted).unwrap_err(), told);
            assert_eq!(read(doubles(2, 1000, &page), &wanted).unwrap_err().to_string(), told);
        }
    }

    #[test]
    fn lz4_is_read_in_frames_of_hadoop_alone() {
        let frames_of_hadoop = table(Compression::LZ4, false);
        assert_eq!(read(frames_of_hadoop, &wanted(&["x"], &["id"])).unwrap().n_rows(), 4);
        // A native LZ4 frame, which does not state its size, with one uncompressed block.
        let block: Vec<u8> = std::iter::repeat_n(2.5f64.to_le_bytes(), 100).flatten().collect();
        let frame = [&[0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82][..], &(800u32 | 1 << 31).to_le_bytes(), &block, &[0; 4]].concat();
        let told = read(doubles(5, 100, &frame), &wanted(&["x"], &[])).unwrap_err().to_string();
        assert!(told.starts_with("its pages are compressed with LZ4 of another kind than Hadoop's; write it with LZ4_RAW"), "{told}");
    }

    #[test]
    fn a_dictionary_takes_the_room_of_its_values_in_memory() {
        let names: Vec<ByteArray> = (0..8000).map(|at: u32| ByteArray::from(at.to_string().into_bytes())).collect();
        let file = || {
            write("required binary id (UTF8); required double x;", WriterProperties::default(), 1, |_, column| match column {
                ColumnWriter::ByteArrayColumnWriter(column) => _ = column.write_batch(&names, None, None).unwrap(),
                ColumnWriter::DoubleColumnWriter(column) => _ = column.write_batch(&vec![1.0; names.len()], None, None).unwrap(),
                _ => unreachable!("it has one of texts and one of numbers"),
            })
        };
        // The names are some 64 kB in the file and 256 kB more in memory.
        let wanted = wanted(&["x"], &["id"]);
        let told = limited(file(), 32_000, &wanted).unwrap_err();
        assert!(told.starts_with("unfolded it has more than 321536 bytes"), "{told}");
        assert_eq!(limited(file(), 64_000, &wanted), Ok(8000));
    }

    #[test]
    fn a_page_that_lies_nowhere_is_damage_and_no_fault_of_the_disk() {
        let mut bytes = Vec::new();
        doubles(0, 100, &[0; 800]).read_to_end(&mut bytes).unwrap();
        let page = 4u64;
        for start in [bytes.len() as u64, 1 << 50, i64::MAX as u64] {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&bytes).unwrap();
            let table = Table::open(file, None).unwrap();
            let source = table.source.pages_of(table.metadata.row_group(0).column(0));
            assert!(source.get_read(page).is_ok());
            let error = source.get_read(start).map(drop).map_err(unreadable).unwrap_err();
            assert!(matches!(&error, Error::Data(told) if told.contains(&format!("a page at {start} of"))), "{error}");
        }
    }

    /// A file that can be read only from a position on.
    struct Failing(bytes::Bytes, u64);

    impl parquet::file::reader::Length for Failing {
        fn len(&self) -> u64 {
            self.0.len() as u64
        }
    }

    impl ChunkReader for Failing {
        type T = io::Cursor<bytes::Bytes>;

        fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
            self.get_bytes(start, self.0.len() - start as usize).map(io::Cursor::new)
        }

        fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<bytes::Bytes> {
            if start < self.1 {
                return Err(io::Error::from_raw_os_error(5).into());
            }
            Ok(self.0.slice(start as usize..start as usize + length))
        }
    }

    #[test]
    fn a_disk_that_fails_is_no_wrong_input() {
        let mut bytes = Vec::new();
        table(Compression::SNAPPY, false).read_to_end(&mut bytes).unwrap();
        let bytes = bytes::Bytes::from(bytes);
        // Only its pages fail to read, and all of it.
        for readable_from in [8, bytes.len() as u64] {
            let read = Table::open(Failing(bytes.clone(), readable_from), None)
                .and_then(|table| super::super::frame(Box::new(table), &wanted(&["x"], &["id"])));
            let error = read.unwrap_err();
            assert!(matches!(error, Error::Io { .. }) && !error.is_wrong_input(), "{readable_from}: {error}");
        }
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
