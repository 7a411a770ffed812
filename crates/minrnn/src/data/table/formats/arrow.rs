//! Tables as Arrow IPC: streams, and files (Feather, version 2), which are streams between two magic words, followed by a list of their
//! parts.
//!
//! Messages are read one after the other, so that a pipe will do and only one batch of rows is held; a file that is not a stream is read by that list
//! ([`by_list`]). The size claimed by a message is believed only as far as bytes follow.

mod by_list;
mod cells;
mod decoded;
mod stream;
#[cfg(test)]
mod test_files;

use std::io::Cursor;

use arrow_array::{Array, RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, SchemaRef};

use self::by_list::Parts;
pub(super) use self::cells::expect_readable;
use self::cells::{Cells, cells};
use self::stream::Batches;
use super::super::cells::Place;
use super::super::columns::Positions;
use super::super::frame::Filling;
use super::super::limit::{Room, TableLimit};
use super::super::quiet::guarded;
use super::{Format, Input, Reader, failed, of_system};
use crate::{Error, Result};

/// The first bytes of a file.
const FILE: &[u8] = b"ARROW1\0\0";
/// The first bytes of every message.
const CONTINUATION: [u8; 4] = [0xff; 4];

pub(super) const FORMAT: Format =
    Format { extensions: &["arrow", "feather", "arrows", "ipc"], magic: &[b"ARROW1", &CONTINUATION], begins: |_| false, open };

fn open(input: Input) -> Result<Box<dyn Reader>> {
    let limit = input.limit;
    if !by_list::is_needed(&input.beginning) {
        return Ok(Box::new(Table::of(Batches::open(input.whole(), limit)?)));
    }
    Ok(match input.anywhere().map_err(failed)? {
        Ok(file) => Box::new(Table::of(Parts::open(file, limit)?)),
        Err(bytes) => Box::new(Table::of(Parts::open(Cursor::new(bytes), limit)?)),
    })
}

/// Reads a table in memory.
pub(in super::super) fn in_memory(batches: Box<dyn RecordBatchReader>) -> Box<dyn Reader> {
    Box::new(Table::of(batches))
}

/// A source of batches of rows, one after the other.
trait Source {
    fn schema(&self) -> SchemaRef;

    /// The limit on how much of it is read.
    fn limit(&self) -> Option<TableLimit> {
        None
    }

    /// The next batch; `None` at the end.
    ///
    /// # Errors
    /// When it cannot be read.
    fn next_batch(&mut self) -> Result<Option<RecordBatch>>;
}

impl Source for Box<dyn RecordBatchReader> {
    fn schema(&self) -> SchemaRef {
        (**self).schema()
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        self.next().transpose().map_err(unreadable)
    }
}

/// A table whose schema has been read.
struct Table<S> {
    source: S,
    schema: SchemaRef,
    header: Vec<String>,
    /// The first batch that has rows, if it has been looked at.
    first: Option<RecordBatch>,
    texts: Room,
}

impl<S: Source> Table<S> {
    fn of(source: S) -> Self {
        let (schema, texts) = (source.schema(), Room::for_texts(source.limit()));
        Self { source, header: header_of(&schema), schema, first: None, texts }
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        self.first.take().map_or_else(|| self.source.next_batch(), |first| Ok(Some(first)))
    }

    fn fill(&mut self, positions: &Positions, filling: &mut Filling) -> Result<()> {
        let mut first_row = 0;
        while let Some(batch) = self.next_batch()? {
            first_row = self.fill_from(&batch, first_row, positions, filling)?;
        }
        Ok(())
    }

    /// Fills the columns at `positions` from a batch whose first row is `first_row` of the table; returns the index of the row after its
    /// last.
    fn fill_from(&self, batch: &RecordBatch, first_row: usize, positions: &Positions, filling: &mut Filling) -> Result<usize> {
        let n_rows = batch.num_rows();
        filling.expect_room(first_row.saturating_add(n_rows))?;
        let column = |at: usize| {
            let cell = self.cells(at, &**batch.column(at))?;
            Ok::<_, Error>(move |row: usize| {
                let cell = cell(row).ok_or_else(|| self.no_text(at, first_row + row))?;
                self.texts.take(cell.text_len() as u64).map(|()| cell)
            })
        };
        let place = |row: usize| Place::Row(first_row + row);
        for (&at, numbers) in positions.numbers.iter().zip(&mut filling.numbers) {
            let cell = column(at)?;
            (0..n_rows).try_for_each(|row| numbers.push(cell(row)?, place(row)))?;
        }
        for (&at, texts) in positions.texts.iter().zip(&mut filling.texts) {
            let cell = column(at)?;
            (0..n_rows).try_for_each(|row| texts.push(cell(row)?, place(row)))?;
        }
        if let (Some(at), Some(times)) = (positions.time, &mut filling.times) {
            let cell = column(at)?;
            (0..n_rows).try_for_each(|row| times.push(cell(row)?, place(row)))?;
        }
        Ok(first_row + n_rows)
    }

    /// The cells of column `at`.
    fn cells<'a>(&'a self, at: usize, array: &'a dyn Array) -> Result<Cells<'a>> {
        cells(&self.header[at], self.schema.field(at).data_type(), array)
    }

    fn no_text(&self, at: usize, row: usize) -> Error {
        Error::Data(format!("{}, column '{}': it is not UTF-8", Place::Row(row), self.header[at]))
    }

    /// Whether the first cell of column `at` is a date; a column of an unsupported type is reported only when it is wanted.
    fn begins_with_date(&self, at: usize, batch: &RecordBatch) -> Result<bool> {
        // The keys of a dictionary would be unfolded for all rows of the batch.
        let first = batch.column(at).slice(0, 1);
        let Ok(cell) = self.cells(at, &*first) else { return Ok(false) };
        let cell = cell(0).ok_or_else(|| self.no_text(at, 0))?;
        // The same long text may occur in each of many columns.
        self.texts.take(cell.text_len() as u64)?;
        Ok(cell.is_date())
    }

    /// Which columns are times by their types, or hold texts of which the first is a date.
    fn find_dates(&mut self) -> Result<Vec<bool>> {
        while let Some(batch) = self.next_batch()? {
            if batch.num_rows() > 0 {
                self.first = Some(batch);
                break;
            }
        }
        let is_text = |at: usize| self.first.as_ref().map_or(Ok(false), |batch| self.begins_with_date(at, batch));
        let is_typed = |of: &DataType| matches!(of, DataType::Date32 | DataType::Date64 | DataType::Timestamp(..));
        let fields = self.schema.fields().iter().enumerate();
        fields.map(|(at, field)| if is_typed(field.data_type()) { Ok(true) } else { is_text(at) }).collect()
    }
}

impl<S: Source> Reader for Table<S> {
    fn header(&self) -> &[String] {
        &self.header
    }

    fn limit(&self) -> Option<TableLimit> {
        self.source.limit()
    }

    fn dates(&mut self) -> Result<Vec<bool>> {
        guarded(|| self.find_dates())
    }

    fn read(mut self: Box<Self>, positions: &Positions, filling: &mut Filling) -> Result<()> {
        guarded(|| self.fill(positions, filling))
    }
}

/// Names of columns, trimmed for lookup.
fn header_of(schema: &arrow_schema::Schema) -> Vec<String> {
    schema.fields().iter().map(|field| field.name().trim().to_owned()).collect()
}

/// The message whose metadata are `bytes`.
fn message_of(bytes: &[u8]) -> Result<arrow_ipc::Message<'_>> {
    arrow_ipc::root_as_message(bytes).map_err(|error| damaged(&error.to_string()))
}

fn damaged(problem: &str) -> Error {
    Error::Data(format!("it is damaged: {problem}"))
}

fn no_schema() -> Error {
    Error::Data("it has no schema".to_owned())
}

fn cut() -> Error {
    Error::Data("it ends within a message; is the file cut short?".to_owned())
}

fn unreadable(error: ArrowError) -> Error {
    let error = match error {
        ArrowError::IoError(what, source) => match of_system(source) {
            Ok(failed) => return failed,
            Err(source) => ArrowError::IoError(what, source),
        },
        error => error,
    };
    let problem = error.to_string();
    let codec = if problem.contains("compress") { "; write it with LZ4 or Zstandard, or without compression" } else { "" };
    Error::Data(format!("it cannot be read as Arrow: {problem}{codec}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int32Type;
    use arrow_array::{Date32Array, DictionaryArray, StringArray, StringViewArray};
    use proptest::prelude::*;

    use super::super::{expect_fixture, frame};
    use super::test_files::{both, file, fixture, read, refusal, stream, wanted};
    use super::*;
    use crate::data::table::{Numbers, TimeColumn, Wanted, read_table};

    #[test]
    fn streams_and_files_are_read_alike() {
        for bytes in both() {
            let wanted = Wanted { time: TimeColumn::Found, ..wanted(&["n", "small", "real", "flag"], &["id"]) };
            let frame = read(&bytes, &wanted).unwrap();
            assert_eq!(frame.numbers[0], [1.0, 2.0, -7.0, 4.0, 5.0, -7.0]);
            assert_eq!((frame.numbers[1][2], frame.numbers[2][0], frame.numbers[2][4].is_nan()), (255.0, 0.5, true));
            assert_eq!(frame.numbers[3], [1.0, 0.0, 1.0, 1.0, 0.0, 1.0]);
            assert_eq!(
                (frame.texts[0].distinct(), frame.texts[0].rows()),
                (&["a".to_owned(), "b".to_owned()][..], &[0, 1, 0, 0, 1, 0][..])
            );
            assert_eq!(frame.times.unwrap().values[..3], [0.0, 3_600_000.0, 7_200_000.0]);
        }
    }

    #[test]
    fn texts_that_are_dates_are_found_by_the_first_row_as_types_are() {
        let columns: [(&str, Arc<dyn Array>); 6] = [
            ("day", Arc::new(StringArray::from(vec!["2024-01-31", "2024-02-29"]))),
            ("month", Arc::new(DictionaryArray::<Int32Type>::from_iter([Some("2024-01"), Some("2024-02")]))),
            ("typed", Arc::new(Date32Array::from(vec![None, Some(19_724)]))),
            ("empty", Arc::new(StringArray::from(vec![None, Some("2024-02-29")]))),
            ("name", Arc::new(StringArray::from(vec!["a", "2024-02-29"]))),
            ("digits", Arc::new(StringArray::from(vec!["20240131", "20240229"]))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        // A batch without rows says nothing about dates.
        let batches = [batch.slice(0, 0), batch.slice(0, 1), batch.slice(1, 1)];
        let schema = batch.schema();
        let (stream, file) = (stream(&batches), file(&batches));
        let in_memory = || arrow_array::RecordBatchIterator::new(batches.clone().map(Ok), SchemaRef::clone(&schema));
        let readers: [Box<dyn Reader>; 4] = [
            Box::new(Table::of(Batches::open(Cursor::new(stream), None).unwrap())),
            Box::new(Table::of(Batches::open(Cursor::new(file.clone()), None).unwrap())),
            Box::new(Table::of(Parts::open(Cursor::new(file), None).unwrap())),
            super::in_memory(Box::new(in_memory())),
        ];
        for mut reader in readers {
            assert_eq!(reader.dates().unwrap(), [true, true, true, false, false, false]);
            // The rows that were looked at are read nevertheless.
            let frame = frame(reader, &wanted(&["digits"], &["day"])).map(|frame| frame.n_rows());
            assert!(frame.unwrap_err().to_string().starts_with("row 1: the column 'digits' holds texts"));
        }
        let mut times = super::in_memory(Box::new(in_memory()));
        times.dates().unwrap();
        let wanted = Wanted { time: TimeColumn::Named("day".to_owned()), numbers: Numbers::Named(Vec::new()), ..wanted(&[], &["name"]) };
        assert_eq!(frame(times, &wanted).unwrap().times.unwrap().values.len(), 2);
        let unread = RecordBatch::new_empty(schema);
        let unread = arrow_array::RecordBatchIterator::new([Ok(unread.clone())], unread.schema());
        assert_eq!(super::in_memory(Box::new(unread)).dates().unwrap(), [false, false, true, false, false, false]);
    }

    #[test]
    fn every_flaw_is_a_sentence() {
        let [stream, file] = both();
        assert!(refusal(&stream, &["list"], &[]).contains("the column 'list' holds List"));
        assert!(refusal(&stream, &["name"], &[]).starts_with("row 1: the column 'name' holds texts such as 'x', expected numbers"));
        assert!(
            refusal(&stream, &["ds"], &[])
                .starts_with("row 1: the column 'ds' holds times such as '1970-01-01 00:00:00', expected numbers")
        );
        assert_eq!(refusal(&stream, &["n"], &["name"]), "row 2, column 'name': the cell is empty, expected a name");
        assert_eq!(
            refusal(&file, &["m"], &[]),
            "there is no column 'm'; expected one of 'id', 'name', 'n', 'small', 'real', 'flag', 'ds', 'list'"
        );
        for cut in [1, 7, 9, 100, stream.len() / 2, stream.len() - 20] {
            let sentence = refusal(&stream[..cut], &["n"], &[]);
            assert!(sentence.contains("cut short"), "{cut}: {sentence}");
        }
        // A message that claims to have 2 GiB.
        let huge = [&stream[..4], &i32::MAX.to_le_bytes(), &stream[8..]].concat();
        assert!(refusal(&huge, &["n"], &[]).contains("cut short"));
        assert!(refusal(b"ARROW1 and nothing more", &["n"], &[]).contains("it is damaged"));
        let path = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(path.path(), &file).unwrap();
        assert_eq!(read_table(path.path(), &wanted(&["n"], &[])).unwrap().n_rows(), 6);
    }

    /// The number of rows of a stream or a file, or the refusal, with the limit for a text of `bytes`.
    fn limited(table: &[u8], bytes: usize, wanted: &Wanted) -> std::result::Result<usize, String> {
        let limit = Some(TableLimit::of_text(bytes));
        let read = |reader: Result<Box<dyn Reader>>| {
            let frame = reader.and_then(|reader| frame(reader, wanted));
            frame.map(|frame| frame.n_rows()).map_err(|error| error.to_string())
        };
        let table = Cursor::new(table.to_vec());
        let listed = Parts::open(table.clone(), limit).map(|parts| Box::new(Table::of(parts)) as Box<dyn Reader>);
        let in_turn = read(Batches::open(table, limit).map(|batches| Box::new(Table::of(batches)) as Box<dyn Reader>));
        // A stream has no list.
        if listed.is_ok() {
            assert_eq!(read(listed), in_turn);
        }
        in_turn
    }

    #[test]
    fn more_than_a_limit_is_refused() {
        let wanted = wanted(&["n", "real"], &["id"]);
        for bytes in both() {
            assert_eq!(limited(&bytes, 36, &wanted), Ok(6));
            assert_eq!(
                limited(&bytes, 35, &wanted).unwrap_err(),
                "it has at least 18 cells in the 3 columns that are read, expected at most 17; split it into smaller tables"
            );
        }
    }

    #[test]
    fn a_name_that_a_file_has_once_counts_in_every_row() {
        let name = "n".repeat(1000);
        let names: DictionaryArray<Int32Type> = std::iter::repeat_n(Some(name.as_str()), 1000).collect();
        let columns: [(&str, Arc<dyn Array>); 2] = [("id", Arc::new(names)), ("day", Arc::new(Date32Array::from(vec![7; 1000])))];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let time = TimeColumn::Named("day".to_owned());
        let wanted = Wanted { time, numbers: Numbers::Named(Vec::new()), ..wanted(&[], &["id"]) };
        for bytes in [stream(std::slice::from_ref(&batch)), file(&[batch])] {
            let told = limited(&bytes, 4000, &wanted).unwrap_err();
            assert!(told.starts_with("the texts in its cells have more than 97536 bytes"), "{told}");
            assert_eq!(limited(&bytes, 1 << 20, &wanted), Ok(1000));
        }
    }

    #[test]
    fn parts_that_unfold_to_more_than_a_limit_are_not_unfolded() {
        let wanted = wanted(&["n"], &[]);
        let columns: [(&str, Arc<dyn Array>); 1] = [("n", Arc::new(arrow_array::Int64Array::from(vec![7; 20_000])))];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        for codec in [arrow_ipc::CompressionType::ZSTD, arrow_ipc::CompressionType::LZ4_FRAME] {
            let options = arrow_ipc::writer::IpcWriteOptions::default().try_with_compression(Some(codec)).unwrap();
            let mut writer = arrow_ipc::writer::FileWriter::try_new_with_options(Vec::new(), &batch.schema(), options).unwrap();
            writer.write(&batch).unwrap();
            let bytes = writer.into_inner().unwrap();
            assert!(bytes.len() < 4000, "{}", bytes.len());
            assert_eq!(limited(&bytes, 40_000, &wanted), Ok(20_000));
            // It is refused before its rows are counted.
            let told = limited(&bytes, 1000, &wanted).unwrap_err();
            assert!(told.starts_with("unfolded it has more than 73536 bytes"), "{told}");
        }
    }

    /// A batch of a column `name` of 1000 views of the same text of 20 000 times z, and a column `n` of numbers.
    fn of_views() -> RecordBatch {
        let text = arrow_buffer::Buffer::from(vec![b'z'; 20_000]);
        // The length, and the first four bytes.
        let view = 20_000u128 | u128::from(u32::from_le_bytes(*b"zzzz")) << 32;
        let views = StringViewArray::new(vec![view; 1000].into(), vec![text], None);
        let columns: [(&str, Arc<dyn Array>); 2] =
            [("name", Arc::new(views)), ("n", Arc::new(arrow_array::Int64Array::from(vec![7; 1000])))];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    #[test]
    fn a_text_that_many_views_name_counts_in_every_row_and_is_looked_at_where_it_is_read_alone() {
        let batch = of_views();
        for mut bytes in [stream(std::slice::from_ref(&batch)), file(&[batch])] {
            let told = limited(&bytes, 1 << 20, &wanted(&["n"], &["name"])).unwrap_err();
            assert!(told.starts_with("the texts in its cells have more than"), "{told}");
            assert_eq!(limited(&bytes, 1 << 20, &wanted(&["n"], &[])), Ok(1000));
            assert_eq!(read(&bytes, &wanted(&["n"], &["name"])).unwrap().texts[0].distinct(), ["z".repeat(20_000)]);
            for at in 0..bytes.len() - 4 {
                if bytes[at..].starts_with(b"zzzz") {
                    bytes[at..at + 4].fill(0xff);
                }
            }
            assert_eq!(limited(&bytes, 1 << 20, &wanted(&["n"], &[])), Ok(1000));
            assert_eq!(limited(&bytes, 1 << 20, &wanted(&["n"], &["name"])).unwrap_err(), "row 1, column 'name': it is not UTF-8");
            assert_eq!(refusal(&bytes, &["n"], &["name"]), "row 1, column 'name': it is not UTF-8");
        }
    }

    #[test]
    fn a_dictionary_counts_in_every_batch_and_column_that_uses_it() {
        let names: Vec<String> = (0..500).map(|at| format!("{at:0>100}")).collect();
        let of_names: DictionaryArray<Int32Type> = names.iter().map(|name| Some(name.as_str())).collect();
        let columns: [(&str, Arc<dyn Array>); 2] =
            [("id", Arc::new(of_names)), ("n", Arc::new(arrow_array::Int64Array::from(vec![7; 500])))];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        // The same dictionary, and one row that uses it.
        let batches: Vec<RecordBatch> = (0..500).map(|at| batch.slice(at, 1)).collect();
        let in_turn = |n: usize| limited(&stream(&batches[..n]), 1 << 15, &wanted(&["n"], &["id"]));
        assert_eq!(in_turn(3), Ok(3));
        let told = in_turn(500).unwrap_err();
        assert!(told.starts_with("unfolded it has more than"), "{told}");
    }

    /// Bytes after which reads fail.
    struct Failing<'a>(&'a [u8]);

    impl std::io::Read for Failing<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            match self.0.read(out) {
                Ok(0) if !out.is_empty() => Err(std::io::Error::from_raw_os_error(5)),
                read => read,
            }
        }
    }

    #[test]
    fn a_disk_that_fails_is_no_wrong_input() {
        let [stream, _] = both();
        for readable in [0, 5, 40, stream.len() / 3, stream.len() / 2] {
            let read = Batches::open(Failing(&stream[..readable]), None)
                .and_then(|batches| frame(Box::new(Table::of(batches)), &wanted(&["n"], &["id"])));
            let error = read.unwrap_err();
            assert!(matches!(error, Error::Io { .. }) && !error.is_wrong_input(), "{readable}: {error}");
        }
    }

    #[test]
    fn files_of_another_writer_are_read() {
        for name in ["default.feather", "lz4.feather", "stream.arrows", "zstd.feather", "polars.arrow", "polars_lz4.arrow"] {
            assert_eq!(by_list::is_needed(&fixture(name)), name.starts_with("polars"), "{name}");
            let frame = read(&fixture(name), &wanted(&["step", "value", "half", "flag"], &["name"])).unwrap();
            expect_fixture(&frame, name);
        }
    }

    proptest! {
        #[test]
        fn no_damage_panics(which in 0usize..4, changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8), cut in any::<prop::sample::Index>()) {
            let mut bytes = match which {
                0 | 1 => both()[which].clone(),
                _ => fixture(["polars.arrow", "polars_lz4.arrow"][which - 2]),
            };
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            let _ = read(&bytes, &wanted(&["step", "value"], &["name"]));
            let _ = read(&bytes, &wanted(&["n", "real"], &["id"]));
            bytes.truncate(cut.index(bytes.len()));
            let _ = read(&bytes, &wanted(&["n", "flag"], &["name"]));
        }
    }
}
