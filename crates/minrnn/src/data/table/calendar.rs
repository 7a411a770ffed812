//! Columns derived from a time column: a part of the calendar, as a name.
//!
//! Beside a time column `ds` there are columns `ds.month`, `ds.weekday`, …, unless the table has columns of these names. Each is a column
//! of names, and each name becomes an input of 0 or 1, so no order is assumed.

use std::collections::HashMap;

use chrono::{Datelike, NaiveDateTime, Timelike};
use minrnn_kernels::choices;

use super::clock::{Clock, date};
use super::columns::{Names, Numbers, Wanted};
use super::frame::Frame;
use super::values::ValuesWriter;
use crate::{Error, Result};

choices! {
    /// A part of the calendar.
    CalendarPart, "part of the calendar" {
        /// 1 to 12.
        #[default]
        Month = "month",
        /// 1 to 4.
        Quarter = "quarter",
        /// Day of the month, 1 to 31.
        Day = "day",
        /// 1, Monday, to 7.
        Weekday = "weekday",
        /// 0 to 23.
        Hour = "hour",
    }
}

impl CalendarPart {
    /// The smallest and largest value.
    fn bounds(self) -> (u32, u32) {
        match self {
            Self::Month => (1, 12),
            Self::Quarter => (1, 4),
            Self::Day => (1, 31),
            Self::Weekday => (1, 7),
            Self::Hour => (0, 23),
        }
    }

    fn of(self, date: &NaiveDateTime) -> u32 {
        match self {
            Self::Month => date.month(),
            Self::Quarter => date.month().div_ceil(3),
            Self::Day => date.day(),
            Self::Weekday => date.weekday().number_from_monday(),
            Self::Hour => date.hour(),
        }
    }

    /// The name of its column beside the column of times `time`.
    pub(super) fn column(self, time: &str) -> String {
        format!("{time}.{self}")
    }

    /// The part whose column beside `time` is called `column`.
    fn of_column(column: &str, time: &str) -> Option<Self> {
        let name = column.strip_prefix(time)?.strip_prefix('.')?;
        Self::ALL.iter().copied().find(|part| part.name() == name)
    }
}

/// A column of a part of the calendar.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CalendarColumn {
    name: String,
    part: CalendarPart,
    /// The names that are distinguished.
    names: Vec<String>,
    /// For each value of the part, from the smallest on, the index of its name.
    places: Vec<f64>,
}

/// Columns derived from times, each with its index among the wanted columns.
pub(super) type Told = Vec<(usize, CalendarColumn)>;

impl CalendarColumn {
    /// The column `name` beside `time`, if it is such a column; the names it distinguishes are those of `categories`, or all.
    pub fn of(name: &str, time: &str, categories: &[Names]) -> Option<Self> {
        let part = CalendarPart::of_column(name, time)?;
        let (least, most) = part.bounds();
        let known = categories.iter().find(|names| names.column == name).and_then(|names| names.values.clone());
        let names = known.unwrap_or_else(|| (least..=most).map(|part| part.to_string()).collect());
        let place = |part: u32| names.iter().position(|name| *name == part.to_string()).map_or(minrnn_model::UNSEEN, |at| at as f64);
        let places = (least..=most).map(place).collect();
        Some(Self { name: name.to_owned(), part, names, places })
    }

    /// The index of the name of `time`, interpreted according to `clock`.
    ///
    /// # Errors
    /// When it is not a date.
    pub fn read(&self, clock: Clock, time: f64) -> Result<f64> {
        let date = Some(time).filter(|_| clock != Clock::Number).and_then(date);
        let date = date.ok_or_else(|| {
            Error::Data(format!("the column '{}' is a part of the calendar, but the times are no dates: found {time}", self.name))
        })?;
        Ok(self.places[(self.part.of(&date) - self.part.bounds().0) as usize])
    }
}

/// `wanted` without the columns derived from the times of a table with this `header`, and those columns, each with its index; `None` if there
/// are none.
///
/// # Errors
/// When the column of times is missing.
pub(super) fn split(wanted: &Wanted, header: &[String]) -> Result<Option<(Wanted, Told)>> {
    let Numbers::Named(names) = &wanted.numbers else { return Ok(None) };
    if !names.iter().any(|name| name.contains('.') && !header.contains(name)) {
        return Ok(None);
    }
    let Some(time) = wanted.time_in(header)?.map(|at| &header[at]) else { return Ok(None) };
    let (mut own, mut told) = (Vec::new(), Vec::new());
    for (at, name) in names.iter().enumerate() {
        match CalendarColumn::of(name, time, &wanted.categories).filter(|_| !header.contains(name)) {
            Some(column) => told.push((at, column)),
            None => own.push(name.clone()),
        }
    }
    let wanted = Wanted { numbers: Numbers::Named(own), ..wanted.clone() };
    Ok((!told.is_empty()).then_some((wanted, told)))
}

/// `frame` with the columns `told` inserted at their indices.
///
/// # Errors
/// When its times are not dates, or there is no room for the numbers.
pub(super) fn insert(mut frame: Frame, told: Told) -> Result<Frame> {
    for (at, column) in told {
        let Some(times) = &frame.times else {
            return Err(Error::Data(format!("the column '{}' needs a column of times", column.name)));
        };
        // Rows of many series have the same times.
        let mut known: HashMap<u64, f64> = HashMap::new();
        let mut numbers = ValuesWriter::new(frame.names.len() + 1);
        for &time in times.values.iter() {
            let place = match known.get(&time.to_bits()) {
                Some(&place) => place,
                None => *known.entry(time.to_bits()).or_insert(column.read(times.clock, time)?),
            };
            numbers.push(place)?;
        }
        frame.names.insert(at, column.name);
        frame.numbers.insert(at, numbers.finish()?);
        frame.categories.insert(at, Some(column.names));
    }
    Ok(frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_the_one_of_the_calendar() {
        let of = |cell: &str| {
            let clock = Clock::of(cell).unwrap();
            let time = clock.read(cell).unwrap();
            let of_part = |part: &CalendarPart| {
                let column = CalendarColumn::of(&part.column("ds"), "ds", &[]).unwrap();
                column.names[column.read(clock, time).unwrap() as usize].clone()
            };
            CalendarPart::ALL.iter().map(of_part).collect::<Vec<_>>()
        };
        // Month, quarter, day, weekday, hour.
        assert_eq!(of("2024-02-29 23:59"), ["2", "1", "29", "4", "23"]);
        assert_eq!(of("2023-12-31"), ["12", "4", "31", "7", "0"]);
        assert_eq!(of("1969-07"), ["7", "3", "1", "2", "0"]);
        let month = CalendarColumn::of("ds.month", "ds", &[]).unwrap();
        assert!(month.read(Clock::Number, 3.0).unwrap_err().to_string().contains("the times are no dates: found 3"));
        assert!(month.read(Clock::Month, f64::MAX).is_err());
        assert!(CalendarColumn::of("ds.years", "ds", &[]).is_none() && CalendarColumn::of("time.month", "ds", &[]).is_none());
    }

    #[test]
    fn names_that_a_model_does_not_know_are_unseen() {
        let known = Names { column: "ds.month".to_owned(), values: Some(vec!["1".to_owned(), "12".to_owned()]) };
        let month = CalendarColumn::of("ds.month", "ds", &[known]).unwrap();
        let of = |cell: &str| month.read(Clock::Month, Clock::Month.read(cell).unwrap()).unwrap();
        assert_eq!([of("2024-01"), of("2024-12"), of("2024-02")], [0.0, 1.0, minrnn_model::UNSEEN]);
    }
}
