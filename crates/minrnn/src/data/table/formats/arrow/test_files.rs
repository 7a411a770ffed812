//! Files for the tests of this format: written here, or by another writer.

use std::io::Cursor;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    Array, BooleanArray, DictionaryArray, Float32Array, Int64Array, ListArray, RecordBatch, StringArray, TimestampMicrosecondArray,
    UInt8Array,
};
use arrow_ipc::writer::{FileWriter, StreamWriter};

use super::by_list::{self, Parts};
use super::stream::Batches;
use super::{Reader, Table};
use crate::Result;
use crate::data::table::{Frame, Numbers, Wanted};

/// Three rows, of which the first has the number `first`.
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

/// `batches`, of which there is at least one, as a stream.
pub fn stream(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

/// The same as a file.
pub fn file(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = FileWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

/// Two batches, as a stream and as a file.
pub fn both() -> [Vec<u8>; 2] {
    let batches = [batch(1), batch(4)];
    [stream(&batches), file(&batches)]
}

/// A file of `tools/table_fixtures.py`.
pub fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/tests/fixtures/tables/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Only these columns.
pub fn wanted(numbers: &[&str], texts: &[&str]) -> Wanted {
    let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    Wanted { numbers: Numbers::Named(owned(numbers)), texts: owned(texts), may_miss: true, ..Wanted::default() }
}

/// What is `wanted` of the file or stream `bytes`.
pub fn read(bytes: &[u8], wanted: &Wanted) -> Result<Frame> {
    let reader: Box<dyn Reader + '_> = match by_list::is_needed(bytes) {
        true => Box::new(Table::of(Parts::open(Cursor::new(bytes), None)?)),
        false => Box::new(Table::of(Batches::open(bytes, None)?)),
    };
    super::super::frame(reader, wanted)
}

/// The error message instead.
pub fn refusal(bytes: &[u8], numbers: &[&str], texts: &[&str]) -> String {
    read(bytes, &wanted(numbers, texts)).unwrap_err().to_string()
}
