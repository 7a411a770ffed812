//! The cells of a Parquet column, by the meaning of its numbers and bytes.

use arrow_array::types::{ArrowPrimitiveType, Float16Type};
use parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::schema::types::ColumnDescriptor;

use super::super::super::cells::Cell;
use super::super::super::clock::DAY;
use super::unreadable;
use crate::{Error, Result};

/// Rows decoded at once.
const BLOCK: usize = 1 << 13;

/// Refuses a column whose values are stored as numbers but are not numbers, texts or times.
pub(super) fn expect_plain(column: &ColumnDescriptor) -> Result<()> {
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

/// Refuses a column whose rows may hold several values.
pub(super) fn expect_flat(column: &ColumnDescriptor) -> Result<()> {
    if column.max_rep_level() == 0 && column.self_type().get_basic_info().repetition() != Repetition::REPEATED {
        return Ok(());
    }
    Err(Error::Data(format!("the column '{}' holds lists, expected one value in each row", column.path().string())))
}

/// The meaning of the integers of a column.
pub(super) enum Meaning {
    /// Signed integers.
    Signed,
    /// Unsigned integers.
    Unsigned,
    /// Decimals with this many digits after the point.
    Decimal(i32),
    /// Times since 1970, with this many units per millisecond.
    Times(f64),
    /// Nanoseconds since 1970.
    Nanoseconds,
    /// Days since 1970.
    Days,
}

impl Meaning {
    pub fn of(column: &ColumnDescriptor) -> Self {
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
            // The scale is negative if there is none.
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

/// A cell, or what is wrong with it.
pub(super) type Found<'a> = std::result::Result<Cell<'a>, &'static str>;

/// What is done with a cell.
type Take<'t> = dyn FnMut(Found) -> Result<()> + 't;

/// Passes every cell of a column of one row group to `take`.
pub(super) fn cells(reader: ColumnReader, column: &ColumnDescriptor, take: &mut Take) -> Result<()> {
    let meaning = Meaning::of(column);
    match reader {
        ColumnReader::BoolColumnReader(reader) => values(reader, column, |&flag| Ok(Cell::Bool(flag)), take),
        ColumnReader::Int32ColumnReader(reader) => values(reader, column, |&number| Ok(meaning.cell(number.into(), u32::MAX.into())), take),
        ColumnReader::Int64ColumnReader(reader) => values(reader, column, |&number| Ok(meaning.cell(number, u64::MAX)), take),
        ColumnReader::FloatColumnReader(reader) => values(reader, column, |&number| Ok(Cell::Real(number.into())), take),
        ColumnReader::DoubleColumnReader(reader) => values(reader, column, |&number| Ok(Cell::Real(number)), take),
        ColumnReader::ByteArrayColumnReader(reader) if is_decimal(column) => {
            values(reader, column, |bytes| decimal(bytes.data(), column.type_scale()), take)
        }
        ColumnReader::FixedLenByteArrayColumnReader(reader) if is_decimal(column) => {
            values(reader, column, |bytes| decimal(bytes.data(), column.type_scale()), take)
        }
        ColumnReader::FixedLenByteArrayColumnReader(reader) if matches!(column.logical_type_ref(), Some(LogicalType::Float16)) => {
            values(reader, column, |bytes| half(bytes.data()), take)
        }
        ColumnReader::ByteArrayColumnReader(reader) => {
            values(reader, column, |bytes| std::str::from_utf8(bytes.data()).map(Cell::Text).map_err(|_| "it is not UTF-8"), take)
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

fn half(bytes: &[u8]) -> Found<'static> {
    let bytes: [u8; 2] = bytes.try_into().map_err(|_| "its number has other than two bytes")?;
    Ok(Cell::Real(Half::from_le_bytes(bytes).into()))
}

/// Maximum number of bytes of a decimal, 76 digits: with a dictionary, a decimal of megabytes could occur in every row.
const MOST_OF_DECIMAL: usize = 32;

pub(super) fn is_decimal(column: &ColumnDescriptor) -> bool {
    matches!(column.logical_type_ref(), Some(LogicalType::Decimal(_))) || column.converted_type() == ConvertedType::DECIMAL
}

/// A decimal of `scale`, whose digits are an integer in two's complement, highest byte first.
fn decimal(bytes: &[u8], scale: i32) -> Found<'static> {
    if !(1..=MOST_OF_DECIMAL).contains(&bytes.len()) {
        return Err("its decimal has other than 1 to 32 bytes, the most that are read");
    }
    let scale = scale.max(0);
    let (first, rest) = bytes.split_at(bytes.len().min(size_of::<i128>()));
    // Sign extension.
    let sign = i128::from(first[0].cast_signed() >> 7);
    let digits = first.iter().fold(sign, |digits, &byte| digits << 8 | i128::from(byte));
    if rest.is_empty() {
        return Ok(Cell::decimal(digits, scale));
    }
    Ok(Cell::real_decimal(rest.iter().fold(digits as f64, |digits, &byte| digits * 256.0 + f64::from(byte)), scale))
}

/// Passes every value of a column to `take`, as a cell.
fn values<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    column: &ColumnDescriptor,
    cell: impl for<'a> Fn(&'a T::T) -> Found<'a>,
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
                take(value.map_or(Ok(Cell::Missing), &cell))
            })?;
        } else {
            let column = column.path().string();
            return Err(Error::Data(format!("it is damaged: the column '{column}' has {n_values} values for {n_rows} rows")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{DECIMALS, expect_decimals};
    use super::super::test_files::{fixture, of_whole, read, wanted};
    use super::*;
    use crate::data::table::{TimeColumn, Wanted};

    #[test]
    fn decimals_of_every_width_and_half_floats_are_numbers() {
        for (name, others) in [("decimals", ["half"].as_slice()), ("decimals_small", &[])] {
            let wanted = Wanted { may_miss: true, ..wanted(&[&DECIMALS, others].concat(), &["whole"]) };
            expect_decimals(&read(fixture(name), &wanted).unwrap(), name);
        }
        // As Hive writes them, with no more bytes than each needs.
        let number = |bytes: &[u8], scale| decimal(bytes, scale);
        assert_eq!(number(&[0xff], 0), Ok(Cell::Whole(-1)));
        assert_eq!(number(&[0x07, 0xcf], 2), Ok(Cell::Real(19.99)));
        assert_eq!(number(&[0xff, 0x38], 2), Ok(Cell::Real(-2.0)));
        assert_eq!(number(&[0; 32], 3), Ok(Cell::Real(0.0)));
        assert_eq!(number(&[[0xff; 20].as_slice(), &[0x38]].concat(), 2), Ok(Cell::Real(-2.0)));
        for bytes in [&[][..], &[0; 33], &[0; 1 << 20]] {
            assert_eq!(number(bytes, 2), Err("its decimal has other than 1 to 32 bytes, the most that are read"));
        }
    }

    #[test]
    fn timestamps_of_every_unit_and_dates_are_times() {
        for (column, last) in
            [("ds", "2024-01-02 23:00:00"), ("us", "2024-01-02 23:00:00"), ("ms", "2024-01-02 23:00:00"), ("day", "2024-01-02")]
        {
            let wanted = Wanted { time: TimeColumn::Named(column.to_owned()), ..wanted(&["x"], &[]) };
            let times = read(fixture("times"), &wanted).unwrap().times.unwrap();
            assert_eq!(times.clock.write(times.values[47]), last, "{column}");
            assert_eq!(times.values[24], 1_704_153_600_000.0, "{column}");
        }
        let sentence = read(fixture("times_zone"), &Wanted { time: TimeColumn::Found, ..wanted(&["x"], &[]) }).unwrap_err().to_string();
        assert!(sentence.starts_with("the column 'ds' holds times of the zone 'Europe/Berlin', expected UTC"), "{sentence}");
        assert_eq!(read(fixture("times_zone"), &wanted(&["x"], &[])).unwrap().numbers[0][47], 23.0);
        let old = Wanted { time: TimeColumn::Found, ..wanted(&["x"], &[]) };
        let sentence = read(fixture("times_96"), &old).unwrap_err().to_string();
        assert!(sentence.contains("the column 'ds' holds 96-bit times") && sentence.contains("64-bit timestamps"), "{sentence}");
        let as_number = read(fixture("times"), &wanted(&["ms"], &[])).unwrap_err().to_string();
        assert!(as_number.starts_with("row 1: the column 'ms' holds times such as '2024-01-01 00:00:00', expected numbers"), "{as_number}");
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
}
