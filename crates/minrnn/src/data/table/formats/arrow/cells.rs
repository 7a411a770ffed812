//! The cells of an Arrow column, by its type.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Float16Type, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, new_empty_array};
use arrow_buffer::i256;
use arrow_schema::{DataType, TimeUnit};

use super::super::super::cells::Cell;
use super::super::super::clock::DAY;
use crate::{Error, Result};

/// Returns the cell of a row; `None` for bytes that are not UTF-8.
pub(super) type Cells<'a> = Box<dyn Fn(usize) -> Option<Cell<'a>> + 'a>;

/// The cells of the column `name` of type `kind`, which may have been [decoded](super::decoded) as another type.
pub(super) fn cells<'a>(name: &str, kind: &'a DataType, array: &'a dyn Array) -> Result<Cells<'a>> {
    macro_rules! of {
        ($array:expr, $cell:expr) => {{
            let array = $array;
            Box::new(move |row| Some(if array.is_null(row) { Cell::Missing } else { $cell(array.value(row)) }))
        }};
    }
    let times = |of_millisecond: f64| move |time: i64| Cell::Time(time as f64 / of_millisecond);
    Ok(match kind {
        DataType::Null => Box::new(|_| Some(Cell::Missing)),
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
        DataType::Utf8View => match array.as_binary_view_opt() {
            Some(array) => Box::new(move |row| match array.is_null(row) {
                true => Some(Cell::Missing),
                false => std::str::from_utf8(array.value(row)).ok().map(Cell::Text),
            }),
            None => of!(array.as_string_view(), Cell::Text),
        },
        DataType::Date32 => of!(array.as_primitive::<Date32Type>(), |days| Cell::Time(f64::from(days) * DAY)),
        DataType::Date64 => of!(array.as_primitive::<Date64Type>(), times(1.0)),
        DataType::Timestamp(_, Some(zone)) if !is_utc(zone) => return Err(of_zone(name, zone)),
        DataType::Timestamp(TimeUnit::Second, _) => of!(array.as_primitive::<TimestampSecondType>(), times(1e-3)),
        DataType::Timestamp(TimeUnit::Millisecond, _) => of!(array.as_primitive::<TimestampMillisecondType>(), times(1.0)),
        DataType::Timestamp(TimeUnit::Microsecond, _) => of!(array.as_primitive::<TimestampMicrosecondType>(), times(1e3)),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => of!(array.as_primitive::<TimestampNanosecondType>(), Cell::Nanoseconds),
        DataType::Dictionary(_, kind) if !matches!(**kind, DataType::Dictionary(..)) => {
            let dictionary = array.as_any_dictionary();
            if dictionary.values().is_empty() {
                return Ok(Box::new(|_| Some(Cell::Missing)));
            }
            let (values, places) = (cells(name, kind, dictionary.values().as_ref())?, dictionary.normalized_keys());
            Box::new(move |row| if array.is_null(row) { Some(Cell::Missing) } else { values(places[row]) })
        }
        other => {
            return Err(Error::Data(format!(
                "the column '{name}' holds {other}, expected numbers, texts or times; convert it, or choose other columns"
            )));
        }
    })
}

/// Converts the digits of a decimal to a cell.
fn decimal<T: Into<i128>>(scale: i8) -> impl Fn(T) -> Cell<'static> {
    move |digits| Cell::decimal(digits.into(), scale.into())
}

fn is_utc(zone: &str) -> bool {
    ["UTC", "Etc/UTC", "GMT", "Z", "+00:00"].contains(&zone)
}

/// The error for times of another zone, where days begin at other times.
fn of_zone(name: &str, zone: &str) -> Error {
    Error::Data(format!(
        "the column '{name}' holds times of the zone '{zone}', expected UTC or times without a zone; convert them to UTC (of local times an hour is there \
         twice each autumn), or keep the dates alone"
    ))
}

/// Refuses columns whose types in an Arrow `schema` stored in another format cannot be read here; an unreadable schema refuses none.
pub(in super::super) fn expect_readable<'a>(schema: &[u8], mut columns: impl Iterator<Item = &'a str>) -> Result<()> {
    let Ok(schema) = arrow_ipc::convert::try_schema_from_ipc_buffer(schema) else { return Ok(()) };
    columns.try_for_each(|name| {
        let Ok(field) = schema.field_with_name(name) else { return Ok(()) };
        let of_values = match field.data_type() {
            DataType::Dictionary(_, values) => &**values,
            other => other,
        };
        cells(name, of_values, &*new_empty_array(of_values)).map(drop)
    })
}

fn whole<'a, T: ArrowPrimitiveType<Native: Into<i128>>>(array: &'a dyn Array) -> Cells<'a> {
    let array = array.as_primitive::<T>();
    Box::new(move |row| Some(if array.is_null(row) { Cell::Missing } else { Cell::Whole(array.value(row).into()) }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Date32Array, Decimal32Array, Decimal64Array, Int64Array, RecordBatch, TimestampMicrosecondArray};

    use super::super::super::{DECIMALS, expect_decimals};
    use super::super::test_files::{fixture, read, stream, wanted};
    use super::*;
    use crate::data::table::{Numbers, TimeColumn, Wanted};

    /// A stream of one batch of these columns.
    fn of_columns<const N: usize>(columns: [(&str, Arc<dyn Array>); N]) -> Vec<u8> {
        stream(&[RecordBatch::try_from_iter(columns).unwrap()])
    }

    #[test]
    fn decimals_of_every_width_are_numbers() {
        let of_every_width = wanted(&[&DECIMALS, ["half"].as_slice()].concat(), &["whole"]);
        expect_decimals(&read(&fixture("decimals.feather"), &of_every_width).unwrap(), "decimals");
        let decimals = Decimal64Array::from(vec![1999, -5]).with_precision_and_scale(9, 2).unwrap();
        let shorter = Decimal32Array::from(vec![7, -5]).with_precision_and_scale(4, -2).unwrap();
        let bytes = of_columns([("price", Arc::new(decimals)), ("hundreds", Arc::new(shorter))]);
        let frame = read(&bytes, &wanted(&["price", "hundreds"], &[])).unwrap();
        assert_eq!(frame.numbers, [[19.99, -0.05], [700.0, -500.0]]);
    }

    #[test]
    fn times_of_a_zone_are_refused_where_they_are_read() {
        let zoned = |zone: &str| {
            let times = TimestampMicrosecondArray::from(vec![0, 3_600_000_000]).with_timezone(zone);
            let bytes = of_columns([("ds", Arc::new(times)), ("n", Arc::new(Int64Array::from(vec![1, 2])))]);
            read(&bytes, &Wanted { time: TimeColumn::Found, ..wanted(&["n"], &[]) })
        };
        assert_eq!(zoned("UTC").unwrap().times, zoned("+00:00").unwrap().times);
        let sentence = zoned("Europe/Berlin").unwrap_err().to_string();
        assert!(sentence.starts_with("the column 'ds' holds times of the zone 'Europe/Berlin', expected UTC"), "{sentence}");
    }

    #[test]
    fn a_date_is_written_as_one() {
        let bytes = of_columns([("ds", Arc::new(Date32Array::from(vec![19_723, 19_724])))]);
        let time = Wanted { numbers: Numbers::Named(Vec::new()), time: TimeColumn::Named("ds".to_owned()), ..Wanted::default() };
        let times = read(&bytes, &time).unwrap().times.unwrap();
        assert_eq!(times.values.iter().map(|&time| times.clock.write(time)).collect::<Vec<_>>(), ["2024-01-01", "2024-01-02"]);
    }
}
