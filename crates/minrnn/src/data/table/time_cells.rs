//! Columns of times being filled.

use std::collections::HashMap;

use super::cells::{Cell, OF_MILLISECOND, Place, shown};
use super::clock::{Clock, DAY, has_offset};
use super::values::{Values, ValuesWriter};
use crate::{Error, Result};

/// Maximum number of cells whose times are cached.
const KNOWN: usize = 1 << 14;
/// Decimal digits of a second, to the microsecond.
const MOST_DIGITS: usize = 6;

/// The error for a `cell` with another time zone's offset, if it has one: days there begin at another time.
pub(super) fn of_zone(place: Place, column: &str, cell: &str) -> Option<Error> {
    has_offset(cell).then(|| {
        Error::Data(format!(
            "{place}: the column '{column}' holds '{}', a time with an offset from UTC, expected UTC; convert all to UTC and leave the offset out (of \
             local times an hour is there twice each autumn), or keep the dates alone",
            shown(cell)
        ))
    })
}

/// The times of a table's rows: numbers as they are, dates as milliseconds since 1970.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Times {
    /// The name of their column.
    pub name: String,
    pub clock: Clock,
    /// The time of each row.
    pub values: Values<f64>,
    /// Whether any time was more precise than a microsecond, which is dropped.
    pub is_cut: bool,
}

/// A column of times being filled.
#[derive(Debug)]
pub(super) struct TimeColumnCells {
    name: String,
    /// The format of the times, and the first cell.
    first: Option<(Clock, String)>,
    values: ValuesWriter<f64>,
    /// A cache of the times of cells.
    known: HashMap<String, f64>,
    is_cut: bool,
    n_columns: usize,
}

impl TimeColumnCells {
    /// The column `name`, one of `n_columns`.
    pub fn new(name: String, n_columns: usize) -> Self {
        Self { name, first: None, values: ValuesWriter::new(n_columns), known: HashMap::new(), is_cut: false, n_columns }
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Adds a cell.
    ///
    /// # Errors
    /// When it is not a time, or another kind of time than the first, or as [`ValuesWriter::push`].
    pub fn push(&mut self, cell: Cell, place: Place) -> Result<()> {
        let typed = match cell {
            Cell::Time(time) => Some(time),
            Cell::Nanoseconds(time) => {
                self.is_cut |= time % 1000 != 0;
                Some(time as f64 / OF_MILLISECOND)
            }
            _ => None,
        };
        if let Some(time) = typed {
            self.first.get_or_insert_with(|| (Clock::TYPED, Clock::TYPED.write(time)));
            return self.values.push(time);
        }
        let cell = cell.name();
        if let Some(&time) = self.known.get(&*cell) {
            return self.values.push(time);
        }
        let name = &self.name;
        if cell.is_empty() {
            return Err(Error::Data(format!("{place}, column '{name}': the cell is empty, expected a time")));
        }
        if self.first.is_none() {
            let Some(clock) = Clock::of(&cell) else {
                if let Some(error) = of_zone(place, name, &cell) {
                    return Err(error);
                }
                return Err(Error::Data(format!(
                    "the column '{name}' holds no times: found '{}', expected a number or a date such as 2024-01-31 or 2024-01-31 12:00; write dates so, \
                     name the column of times with time, or set time to nothing where the rows are in order",
                    shown(&cell)
                )));
            };
            self.first = Some((clock, cell.to_string()));
        }
        let Some((clock, first)) = &self.first else { unreachable!("it was put there") };
        let Some(time) = clock.read(&cell) else {
            if let Some(error) = of_zone(place, name, &cell) {
                return Err(error);
            }
            let cell = shown(&cell);
            return Err(Error::Data(format!(
                "{place}: the column '{name}' holds '{cell}', expected a time that is written like its first, '{first}'"
            )));
        };
        let is_cut = |digits: &str| digits.bytes().take_while(u8::is_ascii_digit).skip(MOST_DIGITS).any(|digit| digit != b'0');
        self.is_cut |= *clock != Clock::Number && cell.rsplit_once('.').is_some_and(|(_, digits)| is_cut(digits));
        if self.known.len() < KNOWN {
            self.known.insert(cell.to_string(), time);
        }
        self.values.push(time)
    }

    /// Returns the column.
    ///
    /// # Errors
    /// As [`ValuesWriter::finish`].
    pub fn finish(self) -> Result<Times> {
        let mut values = self.values.finish()?;
        let clock = match self.first {
            // Whole days are written as dates.
            Some((Clock::TYPED, _)) if values.iter().all(|time| time % DAY == 0.0) => Clock::DATE,
            Some((Clock::Number, _)) if let Some(clock) = Clock::in_digits(&values) => {
                let mut dates = ValuesWriter::new(self.n_columns);
                values.iter().try_for_each(|&number| dates.push(clock.of_number(number).unwrap_or(number)))?;
                values = dates.finish()?;
                clock
            }
            Some((clock, _)) => clock,
            None => Clock::Number,
        };
        Ok(Times { name: self.name, clock, values, is_cut: self.is_cut })
    }
}

/// The time column of these `cells`.
#[cfg(test)]
fn read(cells: &[&str]) -> Result<Times> {
    let mut column = TimeColumnCells::new("ds".to_owned(), 1);
    cells.iter().zip(2..).try_for_each(|(cell, line)| column.push(Cell::Any(cell), Place::Line(line)))?;
    column.finish()
}

/// The format of the times in `cells`, and the times.
#[cfg(test)]
pub(super) fn times(cells: &[&str]) -> (Clock, Vec<f64>) {
    let times = read(cells).unwrap();
    (times.clock, times.values.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanoseconds_that_are_cut_are_known_to_be() {
        let of = |times: [i64; 2]| {
            let mut column = TimeColumnCells::new("ds".to_owned(), 1);
            times.iter().try_for_each(|&time| column.push(Cell::Nanoseconds(time), Place::Row(0))).unwrap();
            let Times { values, is_cut, .. } = column.finish().unwrap();
            (values[0] < values[1], is_cut)
        };
        let first = 1_704_067_200_000_000_000;
        assert_eq!((of([first, first + 1000]), of([first, first + 1])), ((true, false), (false, true)));
    }

    #[test]
    fn what_is_no_time_is_a_sentence() {
        let refused = |cells: &[&str]| read(cells).unwrap_err().to_string();
        assert!(refused(&["morning"]).starts_with("the column 'ds' holds no times: found 'morning'"));
        for of_another_way in ["01/31/2024", "01 Jan 2024", "2000Q1"] {
            assert!(
                refused(&[of_another_way])
                    .contains("expected a number or a date such as 2024-01-31 or 2024-01-31 12:00; write dates so, name")
            );
        }
        assert!(refused(&["2024-02-30"]).contains("holds no times"));
        for of_two_digits in ["01-02-24", "12/01/20", "29.02.20", "24-01", "24-01-02 10:00"] {
            assert!(refused(&[of_two_digits]).contains("holds no times"), "{of_two_digits}");
        }
        assert_eq!(
            refused(&["2024-01-01", "2.1.2024"]),
            "line 3: the column 'ds' holds '2.1.2024', expected a time that is written like its first, '2024-01-01'"
        );
        assert!(refused(&["1", "inf"]).contains("holds 'inf'"));
    }

    #[test]
    fn times_in_utc_are_read_and_those_of_other_zones_are_to_be_converted() {
        let plain = times(&["2010-01-04 00:00:00", "2010-01-04 12:30:00"]).1;
        for [first, second] in [
            ["2010-01-04T00:00:00+00:00", "2010-01-04T12:30:00+00:00"],
            ["2010-01-04 00:00:00Z", "2010-01-04 12:30:00.000Z"],
            ["2010-01-04T00:00Z", "2010-01-04T12:30Z"],
            ["2010-01-04T00:00+00:00", "2010-01-04T12:30+00:00"],
            ["2010-01-04 00:00:00+0000", "2010-01-04 12:30:00+0000"],
            ["2010/01/04 00:00 +00:00", "2010/01/04 12:30 +00:00"],
            ["2010-01-04 00:00+00", "2010-01-04 12:30+00"],
            // However they write UTC.
            ["2010-01-04T00:00:00Z", "2010-01-04T12:30:00+00:00"],
            ["2010-01-04T00:00:00 +0000", "2010-01-04T12:30:00Z"],
        ] {
            let (clock, found) = times(&[first, second]);
            assert_eq!((&found, clock.write(found[0]).as_str()), (&plain, first));
        }
        let sentence = |line: u64, cell: &str| {
            format!(
                "line {line}: the column 'ds' holds '{cell}', a time with an offset from UTC, expected UTC; convert all to UTC and leave the offset out (of \
                 local times an hour is there twice each autumn), or keep the dates alone"
            )
        };
        let refused = |cells: &[&str]| read(cells).unwrap_err().to_string();
        for cell in ["2010-01-04T00:00:00+01:00", "2010-01-04 00:00:00.5-0530", "2010-01-04 00:00 +02"] {
            assert_eq!(refused(&[cell]), sentence(2, cell));
        }
        assert_eq!(refused(&["2010-01-04T00:00:00+00:00", "2010-06-04T00:00:00+01:00"]), sentence(3, "2010-06-04T00:00:00+01:00"));
        assert!(!["2010-01-04", "2010-01-04 10:00", "4-0530", "-10:00", "+", "é+01"].into_iter().any(has_offset));
        // A missing offset differs from UTC, in either order.
        for [first, second] in [["2010-01-04 00:00:00", "2010-01-05 00:00:00+00:00"], ["2010-01-04 00:00Z", "2010-01-04T12:30+0000"]] {
            let expected = format!("line 3: the column 'ds' holds '{second}', expected a time that is written like its first, '{first}'");
            assert_eq!(refused(&[first, second]), expected);
        }
        assert!(refused(&["2010-01-04Z"]).contains("holds no times"));
    }
}
