//! Tables as Arrow IPC: streams, and files (Feather, version 2), which are streams between two magic words with a list of their parts behind.
//!
//! Messages are read one after the other, so that a pipe will do and nothing is held but one batch of rows; a file that is no stream is read by that list
//! ([`by_list`]). What a message says of its size is believed only as far as bytes follow.

mod by_list;

use std::io::{Cursor, Read};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Float16Type, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch, RecordBatchReader, new_empty_array};
use arrow_buffer::{Buffer, i256};
use arrow_ipc::CompressionType;
use arrow_ipc::reader::StreamDecoder;
use arrow_schema::{ArrowError, DataType, SchemaRef, TimeUnit};

use self::by_list::Parts;
use super::super::cells::{Cell, Place};
use super::super::clock::DAY;
use super::super::columns::Positions;
use super::super::frame::Filling;
use super::super::quiet::guarded;
use super::{Format, Input, MOST_OF_ZSTD, Reader, failed};
use crate::{Error, Result};

/// What a file begins with.
const FILE: &[u8] = b"ARROW1\0\0";
/// What every message begins with.
const CONTINUATION: [u8; 4] = [0xff; 4];

/// LZ4 makes at most so many bytes of one.
const MOST_OF_LZ4: i64 = 256;

pub(super) const FORMAT: Format =
    Format { extensions: &["arrow", "feather", "arrows", "ipc"], magic: &[b"ARROW1", &CONTINUATION], begins: |_| false, open };

fn open(input: Input) -> Result<Box<dyn Reader>> {
    if !by_list::is_needed(&input.beginning) {
        return Ok(Box::new(Table::of(Batches::open(input.whole())?)));
    }
    Ok(match input.anywhere().map_err(failed)? {
        Ok(file) => Box::new(Table::of(Parts::open(file)?)),
        Err(bytes) => Box::new(Table::of(Parts::open(Cursor::new(bytes))?)),
    })
}

/// Reads a table in memory.
pub(in super::super) fn in_memory(batches: Box<dyn RecordBatchReader>) -> Box<dyn Reader> {
    Box::new(Table::of(batches))
}

/// What gives batches of rows one after the other.
trait Source {
    fn schema(&self) -> SchemaRef;

    /// The next batch; none at the end.
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
    header: Vec<String>,
    /// The first batch that has rows, where it has been looked at.
    first: Option<RecordBatch>,
}

impl<S: Source> Table<S> {
    fn of(source: S) -> Self {
        let header = header_of(&source.schema());
        Self { source, header, first: None }
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        self.first.take().map_or_else(|| self.source.next_batch(), |first| Ok(Some(first)))
    }

    fn fill(&mut self, positions: &Positions, filling: &mut Filling) -> Result<()> {
        let mut first_row = 0;
        while let Some(batch) = self.next_batch()? {
            first_row = fill_from(&batch, first_row, &self.header, positions, filling)?;
        }
        Ok(())
    }

    /// Which columns are times by their types, or hold texts that are dates as far as the first row tells.
    fn find_dates(&mut self) -> Result<Vec<bool>> {
        while let Some(batch) = self.next_batch()? {
            if batch.num_rows() > 0 {
                self.first = Some(batch);
                break;
            }
        }
        let is_text = |at: usize| self.first.as_ref().is_some_and(|batch| begins_with_date(&self.header[at], &**batch.column(at)));
        let is_typed = |of: &DataType| matches!(of, DataType::Date32 | DataType::Date64 | DataType::Timestamp(..));
        Ok(self.source.schema().fields().iter().enumerate().map(|(at, field)| is_typed(field.data_type()) || is_text(at)).collect())
    }
}

impl<S: Source> Reader for Table<S> {
    fn header(&self) -> &[String] {
        &self.header
    }

    fn dates(&mut self) -> Result<Vec<bool>> {
        guarded(|| self.find_dates())
    }

    fn read(mut self: Box<Self>, positions: &Positions, filling: &mut Filling) -> Result<()> {
        guarded(|| self.fill(positions, filling))
    }
}

/// Whether the first cell of the column `name` is a date; of what is no column of a table whoever wants it is told.
fn begins_with_date(name: &str, array: &dyn Array) -> bool {
    // The keys of a dictionary are unfolded for all rows that are there.
    cells(name, &*array.slice(0, 1)).is_ok_and(|cell| cell(0).is_date())
}

/// The length of the metadata of a message.
type Head = Option<usize>;

/// A file whose schema has been read.
struct Batches<R> {
    source: R,
    decoder: StreamDecoder,
    /// The message that comes next, if one does.
    next: Head,
    schema: SchemaRef,
}

impl<R: Read> Batches<R> {
    fn open(mut source: R) -> Result<Self> {
        guarded(|| {
            let mut start = [0; 8];
            source.read_exact(&mut start).map_err(|_| cut())?;
            if start == FILE {
                // Writers fill up with zeros to at most 64 bytes.
                for _ in 0..8 {
                    source.read_exact(&mut start).map_err(|_| cut())?;
                    if start != [0; 8] {
                        break;
                    }
                }
            }
            let mut batches =
                Self { source, decoder: StreamDecoder::new(), next: None, schema: SchemaRef::new(arrow_schema::Schema::empty()) };
            batches.next = batches.take_head(start)?;
            while batches.decoder.schema().is_none() && batches.next.is_some() {
                batches.advance()?;
            }
            batches.schema = batches.decoder.schema().ok_or_else(|| Error::Data("it has no schema".to_owned()))?;
            Ok(batches)
        })
    }

    /// Hands the first bytes of a message to the decoder.
    fn take_head(&mut self, start: [u8; 8]) -> Result<Head> {
        let [a, b, c, d, length @ ..] = start;
        if [a, b, c, d] != CONTINUATION {
            return Err(Error::Data("it is damaged, or was written by a program from before 2019; write it anew".to_owned()));
        }
        self.decoder.decode(&mut Buffer::from(&start[..])).map_err(unreadable)?;
        let length = i32::from_le_bytes(length);
        match usize::try_from(length) {
            Ok(0) => Ok(None),
            Ok(length) => Ok(Some(length)),
            Err(_) => Err(Error::Data(format!("it is damaged: a message has {length} bytes"))),
        }
    }

    /// `length` bytes, if so many follow.
    fn bytes(&mut self, length: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.source.by_ref().take(length as u64).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() == length { Ok(bytes) } else { Err(cut()) }
    }

    /// Reads the next message; the batch of rows that it is, if it is one.
    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        let Some(length) = self.next else { return Ok(None) };
        let metadata = self.bytes(length)?;
        let message = arrow_ipc::root_as_message(&metadata).map_err(|error| Error::Data(format!("it is damaged: {error}")))?;
        let body =
            usize::try_from(message.bodyLength()).map_err(|_| Error::Data("it is damaged: a message has less than no bytes".to_owned()))?;
        let body = self.bytes(body)?;
        expect_believable(&message, &body)?;
        let mut batch = None;
        for part in [metadata, body] {
            let mut part = Buffer::from_vec(part);
            batch = self.decoder.decode(&mut part).map_err(unreadable)?.or(batch);
        }
        // A message without a body is decoded once more follows.
        let mut start = Vec::new();
        self.source.by_ref().take(8).read_to_end(&mut start).map_err(failed)?;
        self.next = match start.try_into() {
            Ok(start) => self.take_head(start)?,
            Err(start) if Vec::is_empty(&start) => self.take_head([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0])?,
            Err(_) => return Err(cut()),
        };
        Ok(batch)
    }
}

impl<R: Read> Source for Batches<R> {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        while self.next.is_some() {
            if let Some(batch) = self.advance()? {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }
}

/// Fills the columns at `positions` from a batch whose first row is `first_row` of the table; gives the row behind its last.
fn fill_from(batch: &RecordBatch, first_row: usize, header: &[String], positions: &Positions, filling: &mut Filling) -> Result<usize> {
    let n_rows = batch.num_rows();
    filling.expect_room(first_row.saturating_add(n_rows))?;
    let column = |at: usize| cells(&header[at], &**batch.column(at));
    let place = |row: usize| Place::Row(first_row + row);
    for (&at, numbers) in positions.numbers.iter().zip(&mut filling.numbers) {
        let cell = column(at)?;
        (0..n_rows).try_for_each(|row| numbers.push(cell(row), place(row)))?;
    }
    for (&at, texts) in positions.texts.iter().zip(&mut filling.texts) {
        let cell = column(at)?;
        (0..n_rows).try_for_each(|row| texts.push(cell(row), place(row)))?;
    }
    if let (Some(at), Some(times)) = (positions.time, &mut filling.times) {
        let cell = column(at)?;
        (0..n_rows).try_for_each(|row| times.push(cell(row), place(row)))?;
    }
    Ok(first_row + n_rows)
}

/// Names of columns as they are looked for.
fn header_of(schema: &arrow_schema::Schema) -> Vec<String> {
    schema.fields().iter().map(|field| field.name().trim().to_owned()).collect()
}

/// Refuses a message whose buffers claim to unfold to more than their codec can make of their bytes: so much would be allocated before it is found out.
fn expect_believable(message: &arrow_ipc::Message<'_>, body: &[u8]) -> Result<()> {
    let dictionary = message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data());
    let batch = message.header_as_record_batch().or(dictionary);
    let Some((batch, compression)) = batch.and_then(|batch| Some((batch, batch.compression()?))) else { return Ok(()) };
    let most = if compression.codec() == CompressionType::ZSTD { MOST_OF_ZSTD } else { MOST_OF_LZ4 };
    for buffer in batch.buffers().into_iter().flatten() {
        let bytes = usize::try_from(buffer.offset()).ok().zip(usize::try_from(buffer.length()).ok());
        let bytes = bytes.and_then(|(start, length)| body.get(start..start.checked_add(length)?)).ok_or_else(cut)?;
        // The length before the bytes is -1 where they are not compressed.
        let claimed = bytes.first_chunk().map_or(0, |claimed| i64::from_le_bytes(*claimed));
        if claimed > bytes.len() as i64 * most {
            return Err(Error::Data(format!("it is damaged: {} bytes claim to unfold to {claimed}", bytes.len())));
        }
    }
    Ok(())
}

/// What gives the cell of a row.
type Cells<'a> = Box<dyn Fn(usize) -> Cell<'a> + 'a>;

/// The cells of the column `name`.
fn cells<'a>(name: &str, array: &'a dyn Array) -> Result<Cells<'a>> {
    macro_rules! of {
        ($array:expr, $cell:expr) => {{
            let array = $array;
            Box::new(move |row| if array.is_null(row) { Cell::Missing } else { $cell(array.value(row)) })
        }};
    }
    let times = |of_millisecond: f64| move |time: i64| Cell::Time(time as f64 / of_millisecond);
    Ok(match array.data_type() {
        DataType::Null => Box::new(|_| Cell::Missing),
        DataType::Boolean => of!(array.as_boolean(), Cell::Bool),
        DataType::Int8 => whole::<Int8Type>(array),
        DataType::Int16 => whole::<Int16Type>(array),
        DataType::Int32 => whole::<Int32Type>(array),
        DataType::Int64 => whole::<Int64Type>(array),
        DataType::UInt8 => whole::<UInt8Type>(array),
        DataType::UInt16 => whole::<UInt16Type>(array),
        DataType::UInt32 => whole::<UInt32Type>(array),
        DataType::UInt64 => whole::<UInt64Type>(array),
        DataType::Float16 => of!(array.as_primitive::<Float16Type>(), |x| Cell::Real(f64::from(x))),
        DataType::Float32 => of!(array.as_primitive::<Float32Type>(), |x| Cell::Real(f64::from(x))),
        DataType::Float64 => of!(array.as_primitive::<Float64Type>(), Cell::Real),
        DataType::Decimal32(_, scale) => of!(array.as_primitive::<Decimal32Type>(), decimal(*scale)),
        DataType::Decimal64(_, scale) => of!(array.as_primitive::<Decimal64Type>(), decimal(*scale)),
        DataType::Decimal128(_, scale) => of!(array.as_primitive::<Decimal128Type>(), decimal(*scale)),
        DataType::Decimal256(_, scale) => of!(array.as_primitive::<Decimal256Type>(), |digits: i256| match digits.to_i128() {
            Some(digits) => Cell::decimal(digits, i32::from(*scale)),
            None => {
                let (low, high) = digits.to_parts();
                Cell::real_decimal(high as f64 * 2f64.powi(128) + low as f64, i32::from(*scale))
            }
        }),
        DataType::Utf8 => of!(array.as_string::<i32>(), Cell::Text),
        DataType::LargeUtf8 => of!(array.as_string::<i64>(), Cell::Text),
        DataType::Utf8View => of!(array.as_string_view(), Cell::Text),
        DataType::Date32 => of!(array.as_primitive::<Date32Type>(), |days| Cell::Time(f64::from(days) * DAY)),
        DataType::Date64 => of!(array.as_primitive::<Date64Type>(), times(1.0)),
        DataType::Timestamp(_, Some(zone)) if !is_utc(zone) => return Err(of_zone(name, zone)),
        DataType::Timestamp(TimeUnit::Second, _) => of!(array.as_primitive::<TimestampSecondType>(), times(1e-3)),
        DataType::Timestamp(TimeUnit::Millisecond, _) => of!(array.as_primitive::<TimestampMillisecondType>(), times(1.0)),
        DataType::Timestamp(TimeUnit::Microsecond, _) => of!(array.as_primitive::<TimestampMicrosecondType>(), times(1e3)),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => of!(array.as_primitive::<TimestampNanosecondType>(), Cell::Nanoseconds),
        DataType::Dictionary(_, values) if !matches!(**values, DataType::Dictionary(..)) => {
            let dictionary = array.as_any_dictionary();
            if dictionary.values().is_empty() {
                return Ok(Box::new(|_| Cell::Missing));
            }
            let (values, places) = (cells(name, dictionary.values().as_ref())?, dictionary.normalized_keys());
            Box::new(move |row| if array.is_null(row) { Cell::Missing } else { values(places[row]) })
        }
        other => {
            return Err(Error::Data(format!(
                "the column '{name}' holds {other}, expected numbers, texts or times; convert it, or choose other columns"
            )));
        }
    })
}

/// What makes a cell of the digits of a decimal.
fn decimal<T: Into<i128>>(scale: i8) -> impl Fn(T) -> Cell<'static> {
    move |digits| Cell::decimal(digits.into(), scale.into())
}

fn is_utc(zone: &str) -> bool {
    ["UTC", "Etc/UTC", "GMT", "Z", "+00:00"].contains(&zone)
}

/// A day of another zone begins at another time.
fn of_zone(name: &str, zone: &str) -> Error {
    Error::Data(format!(
        "the column '{name}' holds times of the zone '{zone}', expected UTC or times without a zone; convert them to UTC (of local times an hour is there \
         twice each autumn), or keep the dates alone"
    ))
}

/// Refuses columns whose types in a schema as other formats hold it are none that are read here; one that cannot be read tells of none.
pub(super) fn expect_readable<'a>(schema: &[u8], mut columns: impl Iterator<Item = &'a str>) -> Result<()> {
    let Ok(schema) = arrow_ipc::convert::try_schema_from_ipc_buffer(schema) else { return Ok(()) };
    columns.try_for_each(|name| {
        let Ok(field) = schema.field_with_name(name) else { return Ok(()) };
        let of_values = match field.data_type() {
            DataType::Dictionary(_, values) => &**values,
            other => other,
        };
        cells(name, &*new_empty_array(of_values)).map(drop)
    })
}

fn whole<'a, T: ArrowPrimitiveType<Native: Into<i128>>>(array: &'a dyn Array) -> Cells<'a> {
    let array = array.as_primitive::<T>();
    Box::new(move |row| if array.is_null(row) { Cell::Missing } else { Cell::Whole(array.value(row).into()) })
}

fn cut() -> Error {
    Error::Data("it ends within a message; is the file cut short?".to_owned())
}

fn unreadable(error: ArrowError) -> Error {
    let problem = error.to_string();
    let codec = if problem.contains("compress") { "; write it with LZ4 or Zstandard, or without compression" } else { "" };
    Error::Data(format!("it cannot be read as Arrow: {problem}{codec}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{
        BooleanArray, Date32Array, Decimal32Array, Decimal64Array, DictionaryArray, Float32Array, Int64Array, ListArray, StringArray,
        TimestampMicrosecondArray, UInt8Array,
    };
    use arrow_ipc::writer::{FileWriter, StreamWriter};
    use proptest::prelude::*;

    use super::*;
    use crate::data::table::{Frame, Numbers, TimeColumn, Wanted, read_table};

    fn batch(first: i64) -> RecordBatch {
        let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1)]), None, Some(vec![])]);
        let columns: [(&str, Arc<dyn Array>); 8] = [
            ("id", Arc::new(DictionaryArray::<Int32Type>::from_iter([Some("a"), Some("b"), Some("a")]))),
            ("name", Arc::new(StringArray::from(vec![Some("x"), None, Some("z")]))),
            ("n", Arc::new(Int64Array::from(vec![first, first + 1, -7]))),
            ("small", Arc::new(UInt8Array::from(vec![1, 2, 255]))),
            ("real", Arc::new(Float32Array::from(vec![Some(0.5), None, Some(-1.0)]))),
            ("flag", Arc::new(BooleanArray::from(vec![true, false, true]))),
            ("ds", Arc::new(TimestampMicrosecondArray::from(vec![0, 3_600_000_000, 7_200_000_000]).with_timezone("UTC"))),
            ("list", Arc::new(list)),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    /// Two batches, as a stream and as a file.
    fn both() -> [Vec<u8>; 2] {
        let schema = batch(0).schema();
        let (mut stream, mut file) =
            (StreamWriter::try_new(Vec::new(), &schema).unwrap(), FileWriter::try_new(Vec::new(), &schema).unwrap());
        for first in [1, 4] {
            stream.write(&batch(first)).unwrap();
            file.write(&batch(first)).unwrap();
        }
        [stream.into_inner().unwrap(), file.into_inner().unwrap()]
    }

    fn wanted(numbers: &[&str], texts: &[&str]) -> Wanted {
        let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        Wanted { numbers: Numbers::Named(owned(numbers)), texts: owned(texts), may_miss: true, ..Wanted::default() }
    }

    fn read(bytes: &[u8], wanted: &Wanted) -> Result<Frame> {
        if by_list::is_needed(bytes) {
            return super::super::frame(Box::new(Table::of(Parts::open(Cursor::new(bytes))?)), wanted);
        }
        super::super::frame(Box::new(Table::of(Batches::open(bytes)?)), wanted)
    }

    fn refusal(bytes: &[u8], numbers: &[&str], texts: &[&str]) -> String {
        read(bytes, &wanted(numbers, texts)).unwrap_err().to_string()
    }

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
    fn decimals_of_every_width_are_numbers() {
        let wanted = wanted(&[&super::super::DECIMALS, ["half"].as_slice()].concat(), &["whole"]);
        super::super::expect_decimals(&read(&fixture("decimals.feather"), &wanted).unwrap(), "decimals");
        let decimals = Decimal64Array::from(vec![1999, -5]).with_precision_and_scale(9, 2).unwrap();
        let shorter = Decimal32Array::from(vec![7, -5]).with_precision_and_scale(4, -2).unwrap();
        let columns: [(&str, Arc<dyn Array>); 2] = [("price", Arc::new(decimals)), ("hundreds", Arc::new(shorter))];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        let frame = read(&writer.into_inner().unwrap(), &self::wanted(&["price", "hundreds"], &[])).unwrap();
        assert_eq!(frame.numbers, [[19.99, -0.05], [700.0, -500.0]]);
    }

    #[test]
    fn times_of_a_zone_are_refused_where_they_are_read() {
        let zoned = |zone: &str| {
            let times = TimestampMicrosecondArray::from(vec![0, 3_600_000_000]).with_timezone(zone);
            let columns: [(&str, Arc<dyn Array>); 2] = [("ds", Arc::new(times)), ("n", Arc::new(Int64Array::from(vec![1, 2])))];
            let batch = RecordBatch::try_from_iter(columns).unwrap();
            let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
            writer.write(&batch).unwrap();
            read(&writer.into_inner().unwrap(), &Wanted { time: TimeColumn::Found, ..wanted(&["n"], &[]) })
        };
        assert_eq!(zoned("UTC").unwrap().times, zoned("+00:00").unwrap().times);
        let sentence = zoned("Europe/Berlin").unwrap_err().to_string();
        assert!(sentence.starts_with("the column 'ds' holds times of the zone 'Europe/Berlin', expected UTC"), "{sentence}");
    }

    #[test]
    fn a_date_is_written_as_one() {
        let days = RecordBatch::try_from_iter([("ds", Arc::new(Date32Array::from(vec![19_723, 19_724])) as Arc<dyn Array>)]).unwrap();
        let mut writer = StreamWriter::try_new(Vec::new(), &days.schema()).unwrap();
        writer.write(&days).unwrap();
        let bytes = writer.into_inner().unwrap();
        let mut filling =
            Filling::new(&["ds".to_owned()], &Positions { numbers: vec![], texts: vec![], time: Some(0) }, &Wanted::default());
        Box::new(Table::of(Batches::open(&bytes[..]).unwrap()))
            .read(&Positions { numbers: vec![], texts: vec![], time: Some(0) }, &mut filling)
            .unwrap();
        let times = filling.times.unwrap().finish().unwrap();
        assert_eq!(times.values.iter().map(|&time| times.clock.write(time)).collect::<Vec<_>>(), ["2024-01-01", "2024-01-02"]);
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
        // A batch without rows tells nothing.
        let batches = [batch.slice(0, 0), batch.slice(0, 1), batch.slice(1, 1)];
        let schema = batch.schema();
        let (mut stream, mut file) =
            (StreamWriter::try_new(Vec::new(), &schema).unwrap(), FileWriter::try_new(Vec::new(), &schema).unwrap());
        for batch in &batches {
            stream.write(batch).unwrap();
            file.write(batch).unwrap();
        }
        let (stream, file) = (stream.into_inner().unwrap(), file.into_inner().unwrap());
        let in_memory = || arrow_array::RecordBatchIterator::new(batches.clone().map(Ok), SchemaRef::clone(&schema));
        let readers: [Box<dyn Reader>; 4] = [
            Box::new(Table::of(Batches::open(Cursor::new(stream)).unwrap())),
            Box::new(Table::of(Batches::open(Cursor::new(file.clone())).unwrap())),
            Box::new(Table::of(Parts::open(Cursor::new(file)).unwrap())),
            super::in_memory(Box::new(in_memory())),
        ];
        for mut reader in readers {
            assert_eq!(reader.dates().unwrap(), [true, true, true, false, false, false]);
            // The rows that were looked at are read nevertheless.
            let frame = super::super::frame(reader, &wanted(&["digits"], &["day"])).map(|frame| frame.n_rows());
            assert!(frame.unwrap_err().to_string().starts_with("row 1: the column 'digits' holds texts"));
        }
        let mut times = super::in_memory(Box::new(in_memory()));
        times.dates().unwrap();
        let wanted = Wanted { time: TimeColumn::Named("day".to_owned()), numbers: Numbers::Named(Vec::new()), ..wanted(&[], &["name"]) };
        assert_eq!(super::super::frame(times, &wanted).unwrap().times.unwrap().values.len(), 2);
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

    /// A file of `tools/table_fixtures.py`.
    fn fixture(name: &str) -> Vec<u8> {
        std::fs::read(format!("{}/tests/fixtures/tables/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
    }

    #[test]
    fn files_of_another_writer_are_read() {
        for name in ["default.feather", "lz4.feather", "stream.arrows", "zstd.feather", "polars.arrow", "polars_lz4.arrow"] {
            assert_eq!(by_list::is_needed(&fixture(name)), name.starts_with("polars"), "{name}");
            let frame = read(&fixture(name), &wanted(&["step", "value", "half", "flag"], &["name"])).unwrap();
            super::super::expect_fixture(&frame, name);
        }
    }

    #[test]
    fn a_list_of_parts_that_lie_nowhere_is_a_sentence() {
        let whole = fixture("polars.arrow");
        let read = |bytes: &[u8]| read(bytes, &wanted(&["step"], &["name"])).map(|frame| frame.n_rows()).map_err(|error| error.to_string());
        assert_eq!(read(&whole), Ok(300));
        for cut in [64, 500, whole.len() - 1] {
            let sentence = read(&whole[..cut]).unwrap_err();
            assert!(sentence.contains("cut short"), "{cut}: {sentence}");
        }
        // The list says where each batch lies and how long it is.
        let batch = whole.windows(4).position(|bytes| *bytes == CONTINUATION).unwrap() as u64;
        let place = whole.windows(8).rposition(|bytes| *bytes == batch.to_le_bytes()).unwrap();
        for (at, value) in [(0, u64::MAX), (0, 1 << 40), (16, u64::MAX), (16, 1 << 40)] {
            let mut damaged = whole.clone();
            damaged[place + at..][..8].copy_from_slice(&value.to_le_bytes());
            let sentence = read(&damaged).unwrap_err();
            assert!(sentence.contains("cut short") || sentence.contains("it is damaged"), "{at}, {value}: {sentence}");
        }
    }

    #[test]
    fn what_claims_to_unfold_to_more_than_it_can_is_not_believed() {
        // The length of a buffer before it is unfolded stands before the first frame, which begins so.
        for (name, start) in [("lz4.feather", [0x04, 0x22, 0x4d, 0x18]), ("zstd.feather", [0x28, 0xb5, 0x2f, 0xfd])] {
            let mut bytes = fixture(name);
            let frame = bytes.windows(4).position(|bytes| bytes == start).unwrap();
            bytes[frame - 8..frame].copy_from_slice(&(1i64 << 40).to_le_bytes());
            let sentence = refusal(&bytes, &["step"], &[]);
            assert!(sentence.contains("claim to unfold to 1099511627776"), "{name}: {sentence}");
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
