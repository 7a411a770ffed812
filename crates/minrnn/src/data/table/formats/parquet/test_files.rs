//! Files for the tests of this format: written here, or by another writer.

use std::fs::File;
use std::io::{Seek, Write};
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use parquet::basic::Compression;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::Table;
use crate::Result;
use crate::data::table::{Frame, Numbers, Wanted};

/// What is `wanted` of `file`.
pub fn read(file: File, wanted: &Wanted) -> Result<Frame> {
    super::super::frame(Box::new(Table::open(file, None)?), wanted)
}

/// Only these columns.
pub fn wanted(numbers: &[&str], texts: &[&str]) -> Wanted {
    let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    Wanted { numbers: Numbers::Named(owned(numbers)), texts: owned(texts), ..Wanted::default() }
}

/// A file of `tools/table_fixtures.py`.
pub fn fixture(name: &str) -> File {
    File::open(format!("{}/tests/fixtures/tables/{name}.parquet", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// A file of the columns `schema` in `n_groups` groups of rows; `fill` writes a column of the group with the given number.
pub fn write(schema: &str, properties: WriterProperties, n_groups: i32, mut fill: impl FnMut(i32, &mut ColumnWriter<'_>)) -> File {
    let mut file = tempfile::tempfile().unwrap();
    let schema = Arc::new(parse_message_type(&format!("message table {{ {schema} }}")).unwrap());
    let mut writer = SerializedFileWriter::new(&mut file, schema, Arc::new(properties)).unwrap();
    for at in 0..n_groups {
        let mut group = writer.next_row_group().unwrap();
        while let Some(mut column) = group.next_column().unwrap() {
            fill(at, column.untyped());
            column.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
    file.rewind().unwrap();
    file
}

/// Four rows in two groups; `null` leaves one name out.
pub fn table(compression: Compression, null: bool) -> File {
    let schema = "optional binary id (UTF8); required double x; required int32 n; required boolean flag; required int64 price (DECIMAL(18, 2)); \
                  required int32 size (INTEGER(32, false)); required int96 time; repeated float list;";
    let properties = WriterProperties::builder().set_compression(compression).build();
    write(schema, properties, 2, |group, column| match column {
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
    })
}

/// A file of one column x of `n` doubles, in one page that claims their size but holds `page`, with the codec of that number.
pub fn doubles(codec: u8, n: i64, page: &[u8]) -> File {
    // A field whose number is `step` more than the previous one's: a 32-bit or a 64-bit integer.
    let small = |step: u8, number: i64| [&[step << 4 | 5][..], &zigzag(number)].concat();
    let large = |step: u8, number: i64| [&[step << 4 | 6][..], &zigzag(number)].concat();
    let (length, end) = (page.len() as i64, vec![0]);
    let data = [small(1, n), small(1, 0), small(1, 3), small(1, 3), end.clone()].concat();
    let head = [small(1, 0), small(1, 8 * n), small(1, length), vec![0x2c], data, end.clone()].concat();
    let in_file = length + head.len() as i64;
    let root = [vec![0x48, 1, b'm'], small(1, 1), end.clone()].concat();
    let column = [small(1, 5), small(2, 0), vec![0x18, 1, b'x'], end.clone()].concat();
    let encodings_and_path = vec![0x19, 0x15, 0, 0x19, 0x18, 1, b'x'];
    let chunk = [
        small(1, 5),
        encodings_and_path,
        small(1, codec.into()),
        large(1, n),
        large(1, in_file),
        large(1, in_file),
        large(2, 4),
        end.clone(),
    ];
    let chunk = [large(2, 4), vec![0x1c], chunk.concat(), end.clone()].concat();
    let group = [vec![0x19, 0x1c], chunk, large(1, in_file), large(1, n), end.clone()].concat();
    let footer = [small(1, 1), vec![0x19, 0x2c], root, column, large(1, n), vec![0x19, 0x1c], group, end].concat();
    let length = u32::try_from(footer.len()).unwrap().to_le_bytes();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&[&b"PAR1"[..], &head, page, &footer, &length, b"PAR1"].concat()).unwrap();
    file.rewind().unwrap();
    file
}

/// An integer in Thrift's compact protocol.
fn zigzag(number: i64) -> Vec<u8> {
    let mut rest = (number << 1 ^ number >> 63).cast_unsigned();
    let mut bytes = Vec::new();
    while rest >= 0x80 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
    bytes
}

/// A file of one column of integers, with its type as written by older writers.
pub fn of_whole(column: &str, numbers: [i64; 2]) -> File {
    of_arrow(column, numbers, None)
}

/// The same for a column that Arrow wrote as type `meaning`; texts of the numbers if it is binary.
pub fn of_arrow(column: &str, numbers: [i64; 2], meaning: Option<arrow_schema::DataType>) -> File {
    let in_arrow = meaning.map(|meaning| {
        let schema = arrow_schema::Schema::new(vec![arrow_schema::Field::new("n", meaning, false)]);
        let bytes = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &schema).unwrap().into_inner().unwrap();
        vec![KeyValue::new("ARROW:schema".to_owned(), BASE64_STANDARD.encode(bytes))]
    });
    let properties = WriterProperties::builder().set_key_value_metadata(in_arrow).build();
    write(&format!("required {column};"), properties, 1, |_, column| match column {
        ColumnWriter::Int32ColumnWriter(column) => _ = column.write_batch(&numbers.map(|number| number as i32), None, None).unwrap(),
        ColumnWriter::Int64ColumnWriter(column) => _ = column.write_batch(&numbers, None, None).unwrap(),
        ColumnWriter::ByteArrayColumnWriter(column) => {
            let texts = numbers.map(|number| ByteArray::from(number.to_string().into_bytes()));
            _ = column.write_batch(&texts, None, None).unwrap();
        }
        _ => unreachable!("it is one of whole numbers or bytes"),
    })
}

/// A file of these columns, of texts except for those of 32 bits; an empty text leaves its row out.
pub fn of_texts(schema: &str, rows: [&str; 2]) -> File {
    write(schema, WriterProperties::default(), 1, |_, column| match column {
        ColumnWriter::ByteArrayColumnWriter(column) => {
            let texts: Vec<ByteArray> = rows.iter().filter(|text| !text.is_empty()).map(|&text| ByteArray::from(text)).collect();
            let levels = rows.map(|text| i16::from(!text.is_empty()));
            column.write_batch(&texts, Some(&levels), Some(&[0, 0])).unwrap();
        }
        ColumnWriter::Int32ColumnWriter(column) => _ = column.write_batch(&[1, 2], None, None).unwrap(),
        _ => unreachable!("it is one of texts or of whole numbers"),
    })
}
