//! Formats of times.

use std::ops::RangeInclusive;

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime};

/// Formats of times; the first one that fits the first cell is that of the column.
const PATTERNS: [&str; 9] = [
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%d.%m.%Y",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y-%m-%dT%H:%M",
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y/%m/%d %H:%M",
    "%Y/%m/%d %H:%M:%S%.f",
];

/// What follows a time of day: nothing, or one of the ways to write UTC, which mean the same.
const ENDS: [&str; 8] = ["", "Z", " +00:00", " +0000", " +00", "+00:00", "+0000", "+00"];

/// Milliseconds in a day.
pub(super) const DAY: f64 = 86_400_000.0;

/// The date of `time`, in milliseconds since 1970, to the microsecond.
pub(super) fn date(time: f64) -> Option<NaiveDateTime> {
    let millisecond = time.floor();
    let rest = chrono::TimeDelta::microseconds(((time - millisecond) * 1e3).round() as i64);
    DateTime::from_timestamp_millis(millisecond as i64)?.naive_utc().checked_add_signed(rest)
}

/// Whether `cell` is a date with a time of day and an offset from UTC, such as +02:00; an empty suffix does not count.
pub(super) fn has_offset(cell: &str) -> bool {
    let Some(at) = cell.rfind(['+', '-']) else { return false };
    let (time, offset) = (cell[..at].trim_end(), &cell[at + 1..]);
    let has_colon = offset.len() == 5;
    let fits = |(at, byte): (usize, u8)| if has_colon && at == 2 { byte == b':' } else { byte.is_ascii_digit() };
    let is_some = offset.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
    is_some && [2, 4, 5].contains(&offset.len()) && offset.bytes().enumerate().all(fits) && time.contains(':') && Clock::is_date(time)
}

/// Milliseconds since 1970 of `time`, to the microsecond.
pub(super) fn milliseconds(time: NaiveDateTime) -> f64 {
    let time = time.and_utc();
    time.timestamp_millis() as f64 + f64::from(time.timestamp_subsec_micros() % 1000) / 1e3
}

/// The format of a column of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// Numbers.
    Number,
    /// Months, such as 2024-01.
    Month,
    /// Dates, with or without a time of day: one of the patterns combined with one of the endings; the patterns with the first ending come
    /// first.
    Calendar(usize),
    /// Dates as digits, such as 20240131.
    DateDigits,
    /// Months as digits, such as 202401.
    MonthDigits,
}

/// Years of dates written in digits alone; other numbers are not dates.
const YEARS_IN_DIGITS: RangeInclusive<i32> = 1900..=2100;

impl Clock {
    /// The format of dates that a file does not hold as text.
    pub(super) const DATE: Self = Self::Calendar(0);
    /// The same for times.
    pub(super) const TYPED: Self = Self::Calendar(4);

    /// Whether times in both formats use the same unit.
    pub(super) fn agrees(self, other: Self) -> bool {
        (self == Self::Number) == (other == Self::Number)
    }

    /// The format of `cell`; `None` if it is not a time.
    pub(super) fn of(cell: &str) -> Option<Self> {
        let mut all = [Self::Number, Self::Month].into_iter().chain((0..PATTERNS.len() * ENDS.len()).map(Self::Calendar));
        all.find(|clock| cell.ends_with(clock.end()) && clock.read(cell).is_some())
    }

    /// What follows the time in the first cell.
    fn end(self) -> &'static str {
        if let Self::Calendar(place) = self { ENDS[place / PATTERNS.len()] } else { "" }
    }

    /// The same for a cell that must be a date.
    pub(super) fn of_date(cell: &str) -> Option<Self> {
        [Self::DateDigits, Self::MonthDigits].into_iter().find(|clock| clock.read(cell).is_some()).or_else(|| Self::of(cell))
    }

    /// The format of `numbers`, if all of them are dates.
    pub(super) fn in_digits(numbers: &[f64]) -> Option<Self> {
        let mut all = [Self::DateDigits, Self::MonthDigits].into_iter();
        all.find(|clock| !numbers.is_empty() && numbers.iter().all(|&number| clock.of_number(number).is_some()))
    }

    /// The time that is written as `number` in this format.
    pub(super) fn of_number(self, number: f64) -> Option<f64> {
        let digits = Some(number).filter(|number| number.fract() == 0.0 && (0.0..1e8).contains(number))? as u32;
        let (digits, day) = match self {
            Self::DateDigits => (digits / 100, digits % 100),
            Self::MonthDigits => (digits, 1),
            _ => return None,
        };
        let year = i32::try_from(digits / 100).ok().filter(|year| YEARS_IN_DIGITS.contains(year))?;
        Some(milliseconds(NaiveDate::from_ymd_opt(year, digits % 100, day)?.and_hms_opt(0, 0, 0)?))
    }

    /// Whether `cell` is a time rather than a number.
    pub(super) fn is_date(cell: &str) -> bool {
        Self::of(cell.trim()).is_some_and(|clock| clock != Self::Number)
    }

    pub(super) fn read(self, cell: &str) -> Option<f64> {
        // A two-digit number may be the year, month or day of a date, and a two-digit year may be of any century.
        let at = |time: NaiveDateTime| (time.year() >= 1000).then(|| milliseconds(time));
        let at_midnight = |date: NaiveDate| at(date.and_hms_opt(0, 0, 0)?);
        match self {
            Self::Number => cell.parse().ok().filter(|number: &f64| number.is_finite()),
            Self::Month => NaiveDate::parse_from_str(&format!("{cell}-01"), "%Y-%m-%d").ok().and_then(at_midnight),
            Self::Calendar(place) => {
                let (pattern, is_utc) = (PATTERNS[place % PATTERNS.len()], !self.end().is_empty());
                let cell = if is_utc { ENDS[1..].iter().find_map(|&end| cell.strip_suffix(end))? } else { cell };
                match pattern.contains("%H") {
                    true => NaiveDateTime::parse_from_str(cell, pattern).ok().and_then(at),
                    // A date without a time has no zone.
                    false if is_utc => None,
                    false => NaiveDate::parse_from_str(cell, pattern).ok().and_then(at_midnight),
                }
            }
            Self::DateDigits | Self::MonthDigits => self.of_number(cell.parse().ok()?),
        }
    }

    /// `time` in this format.
    pub fn write(self, time: f64) -> String {
        match (self, date(time)) {
            (Self::Month, Some(time)) => time.format("%Y-%m").to_string(),
            (Self::Calendar(place), Some(time)) => time.format(PATTERNS[place % PATTERNS.len()]).to_string() + self.end(),
            (Self::DateDigits, Some(time)) => time.format("%Y%m%d").to_string(),
            (Self::MonthDigits, Some(time)) => time.format("%Y%m").to_string(),
            _ => time.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::time_cells::times;
    use super::*;

    #[test]
    fn digits_are_dates_where_all_of_them_are() {
        let clock = |cells: &[&str]| times(cells).0;
        assert_eq!(clock(&["20240131", "20240132"]), Clock::Number);
        assert_eq!(clock(&["18991231", "19000101"]), Clock::Number);
        assert_eq!(clock(&["202012", "202013"]), Clock::Number);
        assert_eq!(clock(&["20240131.5"]), Clock::Number);
        assert_eq!(clock(&["20240131.0", "20240201.0"]), Clock::DateDigits);
        assert_eq!(times(&["20240131"]).1, times(&["2024-01-31"]).1);
        assert_eq!(times(&["202401"]).1, times(&["2024-01"]).1);
        // As many as there are in a file.
        let days: Vec<String> = (101..=131).map(|day| format!("2024{day:04}")).collect();
        let days: Vec<&str> = days.iter().map(String::as_str).collect();
        let (clock, all) = times(&days);
        assert!(clock == Clock::DateDigits && all.windows(2).all(|pair| pair[1] - pair[0] == DAY) && all.len() == 31);
        assert_eq!(
            ["20240131", "202401", "2024-01-31", "7"].map(Clock::of_date),
            [Some(Clock::DateDigits), Some(Clock::MonthDigits), Some(Clock::DATE), Some(Clock::Number)]
        );
    }

    #[test]
    fn what_the_calendar_does_not_have_is_written_all_the_same() {
        assert!(!Clock::Calendar(0).write(f64::MAX).is_empty());
    }
}
