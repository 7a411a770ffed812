//! When the rows of a series were: the column of times.

use std::ops::RangeInclusive;

use chrono::{DateTime, Datelike, Months, NaiveDate, NaiveDateTime};

/// How times are written; the first that fits the first cell is that of the column.
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

/// What stands behind times of the day: nothing, or one of those that say UTC, which mean the same.
const ENDS: [&str; 8] = ["", "Z", " +00:00", " +0000", " +00", "+00:00", "+0000", "+00"];

/// Milliseconds of a day.
const DAY: f64 = 86_400_000.0;

/// Steps are alike that differ by at most this part.
const NEAR: f64 = 1e-3;

/// Steps among which the usual one is looked for at first.
const FIRST: usize = 4096;

const FROM_MONDAY_TO_FRIDAY: [bool; 7] = [true, true, true, true, true, false, false];
/// Days after which other days of the week that have no row are taken to be always closed.
const FEWEST_DAYS: f64 = 28.0;

/// The date of `time`, milliseconds since 1970, to the microsecond.
pub(super) fn date(time: f64) -> Option<NaiveDateTime> {
    let millisecond = time.floor();
    let rest = chrono::TimeDelta::microseconds(((time - millisecond) * 1e3).round() as i64);
    DateTime::from_timestamp_millis(millisecond as i64)?.naive_utc().checked_add_signed(rest)
}

/// Whether `cell` is a date with a time of the day and what that is off from UTC, such as +02:00; nothing is none.
pub(super) fn has_offset(cell: &str) -> bool {
    let Some(at) = cell.rfind(['+', '-']) else { return false };
    let (time, offset) = (cell[..at].trim_end(), &cell[at + 1..]);
    let has_colon = offset.len() == 5;
    let fits = |(at, byte): (usize, u8)| if has_colon && at == 2 { byte == b':' } else { byte.is_ascii_digit() };
    let is_some = offset.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
    is_some && [2, 4, 5].contains(&offset.len()) && offset.bytes().enumerate().all(fits) && time.contains(':') && Clock::is_date(time)
}

/// Milliseconds since 1970 of `time`, to the microsecond.
fn milliseconds(time: NaiveDateTime) -> f64 {
    let time = time.and_utc();
    time.timestamp_millis() as f64 + f64::from(time.timestamp_subsec_micros() % 1000) / 1e3
}

/// How the times of a column are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// Numbers.
    Number,
    /// Months, such as 2024-01.
    Month,
    /// Dates, or dates with a time of the day: one of the patterns with one of the ends, those with the first end before those with the second.
    Calendar(usize),
    /// Dates in digits, such as 20240131.
    DateDigits,
    /// Months in digits, such as 202401.
    MonthDigits,
}

/// Years of dates that are written in digits alone; other numbers are no dates.
const YEARS_IN_DIGITS: RangeInclusive<i32> = 1900..=2100;

impl Clock {
    /// How dates are written that a file does not hold as texts.
    pub(super) const DATE: Self = Self::Calendar(0);
    /// The same of times.
    pub(super) const TYPED: Self = Self::Calendar(4);

    /// Whether times of both count the same.
    pub(super) fn agrees(self, other: Self) -> bool {
        (self == Self::Number) == (other == Self::Number)
    }

    /// How `cell` is written; none where it is no time.
    pub(super) fn of(cell: &str) -> Option<Self> {
        let mut all = [Self::Number, Self::Month].into_iter().chain((0..PATTERNS.len() * ENDS.len()).map(Self::Calendar));
        all.find(|clock| cell.ends_with(clock.end()) && clock.read(cell).is_some())
    }

    /// What stands behind the times of the first cell.
    fn end(self) -> &'static str {
        if let Self::Calendar(place) = self { ENDS[place / PATTERNS.len()] } else { "" }
    }

    /// The same where it must be a date.
    pub(super) fn of_date(cell: &str) -> Option<Self> {
        [Self::DateDigits, Self::MonthDigits].into_iter().find(|clock| clock.read(cell).is_some()).or_else(|| Self::of(cell))
    }

    /// How `numbers` are written if all of them are dates.
    pub(super) fn in_digits(numbers: &[f64]) -> Option<Self> {
        let mut all = [Self::DateDigits, Self::MonthDigits].into_iter();
        all.find(|clock| !numbers.is_empty() && numbers.iter().all(|&number| clock.of_number(number).is_some()))
    }

    /// The time that is written as `number`.
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

    /// Whether `cell` is a time, and no number.
    pub(super) fn is_date(cell: &str) -> bool {
        Self::of(cell.trim()).is_some_and(|clock| clock != Self::Number)
    }

    pub(super) fn read(self, cell: &str) -> Option<f64> {
        // A year of two digits may be the first, second or third of a date, and of any century.
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
                    // A day has no zone.
                    false if is_utc => None,
                    false => NaiveDate::parse_from_str(cell, pattern).ok().and_then(at_midnight),
                }
            }
            Self::DateDigits | Self::MonthDigits => self.of_number(cell.parse().ok()?),
        }
    }

    /// `time` as it would be written.
    pub fn write(self, time: f64) -> String {
        match (self, date(time)) {
            (Self::Month, Some(time)) => time.format("%Y-%m").to_string(),
            (Self::Calendar(place), Some(time)) => time.format(PATTERNS[place % PATTERNS.len()]).to_string() + self.end(),
            (Self::DateDigits, Some(time)) => time.format("%Y%m%d").to_string(),
            (Self::MonthDigits, Some(time)) => time.format("%Y%m").to_string(),
            _ => time.to_string(),
        }
    }

    /// The usual step between the times of a series, which rise; none of fewer than two.
    pub fn step(self, times: &[f64]) -> Option<Step> {
        self.pace(times).map(|pace| pace.step)
    }

    /// The usual step between the times of a series, which rise, and how usual it is; none of fewer than two.
    pub(super) fn pace(self, times: &[f64]) -> Option<Pace> {
        if let Some(pace) = self.months(times).or_else(|| self.open_days(times)) {
            return Some(pace);
        }
        let differences = || times.windows(2).map(|pair| pair[1] - pair[0]);
        let pace = |first: usize| {
            let mut first: Vec<f64> = differences().take(first).collect();
            let middle = first.len() / 2;
            if first.is_empty() {
                return None;
            }
            let (_, &mut step, _) = first.select_nth_unstable_by(middle, f64::total_cmp);
            // Numbers such as 0.1, 0.2, … are not quite even.
            let is_near = |difference: f64, step: f64, usual: f64| (difference - step).abs() <= NEAR * usual;
            // A month of 31 days after one of 28, or an hour more of a clock that is put back, is no gap.
            let n_longer = differences().filter(|difference| *difference > 1.5 * step).count();
            let n_usual = differences().filter(|&difference| is_near(difference, step, step)).count();
            let is_usual = 2 * n_usual >= times.len();
            let is_even = is_usual && differences().all(|difference| is_near(difference, (difference / step).round() * step, step));
            let step = if self == Self::Number { Step::Number(step) } else { Step::Time(step) };
            Some(Pace { step, n_longer, is_usual, is_even })
        };
        // What is as long as most is in the middle of all.
        pace(FIRST).filter(|pace| pace.is_usual).or_else(|| pace(times.len()))
    }

    /// Whether `next` are times that follow `times`, both of which rise: at their pace where the steps of `times` are alike but for gaps of whole
    /// steps, of days with holidays on open days and without a longer gap than any in `times`, and else without one that is twice as long. What does not, if something does.
    pub fn break_in(self, times: &[f64], next: &[f64]) -> Option<Break> {
        let (Pace { step, n_longer, is_even, .. }, &last) = (self.pace(times)?, times.last()?);
        let open = match step {
            // What is no row among open days may be a holiday.
            Step::OpenDays(open) if n_longer > 0 => Some(open),
            _ => None,
        };
        if is_even && open.is_none() {
            let near = NEAR * step.shortest();
            let expected = self.go_on(last, step, next.len());
            let mut places = next.iter().copied().zip(expected).map(|(found, expected)| Break { found, expected, is_latest: false });
            return places.find(|place| (place.found - place.expected).abs() > near);
        }
        let longest = times.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
        let longest = if open.is_some() { longest } else { 2.0 * longest };
        let before = std::iter::once(last).chain(next.iter().copied());
        before.zip(next).find_map(|(before, &found)| {
            if open.is_some_and(|open| !open[weekday(found)] || (found - before) % DAY != 0.0) {
                return Some(Break { found, expected: self.go_on(before, step, 1)[0], is_latest: false });
            }
            let expected = before + longest;
            (found > expected).then_some(Break { found, expected, is_latest: true })
        })
    }

    /// Whole months between all of `times`, most of them as many, and of the others none that is no multiple, where these lie on the same day of the
    /// month, or on the last of those that do not have it.
    fn months(self, times: &[f64]) -> Option<Pace> {
        if self == Self::Number || times.len() < 2 {
            return None;
        }
        let month = |date: &NaiveDateTime| i64::from(date.year()) * 12 + i64::from(date.month0());
        let first = date(times[0])?;
        let (mut day, mut all_last, mut before, mut steps) = (1, true, None, Vec::new());
        for &time in times {
            let date = date(time)?;
            if let Some(before) = before.replace(month(&date)) {
                steps.push(u32::try_from(month(&date) - before).ok().filter(|&months| months > 0 && date.time() == first.time())?);
            }
            (day, all_last) = (day.max(date.day()), all_last && date.day() == last_day(date.date()));
        }
        let middle = steps.len() / 2;
        let (_, &mut months, _) = steps.select_nth_unstable(middle);
        let n_longer = steps.iter().filter(|&&step| step != months).count();
        if 2 * n_longer >= steps.len() || steps.iter().any(|step| step % months != 0) {
            return None;
        }
        // The 28th of some Februaries may be any later day of the others.
        let day = if all_last { 31 } else { day };
        let is_there = |&time: &f64| date(time).is_some_and(|date| date.day() == day.min(last_day(date.date())));
        times.iter().all(is_there).then_some(Pace { step: Step::Months { months, day }, n_longer, is_usual: true, is_even: true })
    }

    /// A day that passes over some days of the week: where `times` are for weeks of most of two to six days of it, or, of fewer weeks, over a weekend or
    /// more of most days from Monday to Friday; all at the same time of the day.
    fn open_days(self, times: &[f64]) -> Option<Pace> {
        let (&first, &last) = (times.first()?, times.last()?);
        if self == Self::Number || times.windows(2).any(|pair| (pair[1] - pair[0]) % DAY != 0.0) {
            return None;
        }
        let mut found = [false; 7];
        times.iter().for_each(|&time| found[weekday(time)] = true);
        let week = |time: f64| day(time).div_euclid(7.0);
        let days = (last - first) / DAY + 1.0;
        let (open, is_long) = match found {
            [.., false, false] if days < FEWEST_DAYS => (FROM_MONDAY_TO_FRIDAY, week(first) < week(last)),
            _ => (found, days >= FEWEST_DAYS),
        };
        let n_open = n_open(&open);
        // Holidays are few.
        let is_most = times.len() as f64 > 0.75 * days * n_open as f64 / 7.0;
        if !(2..7).contains(&n_open) || !is_long || !is_most {
            return None;
        }
        let to_next: [f64; 7] = std::array::from_fn(|of| (1..=7).find(|days| open[(of + days) % 7]).unwrap_or(7) as f64 * DAY);
        let n_longer = times.windows(2).filter(|pair| pair[1] - pair[0] > to_next[weekday(pair[0])]).count();
        Some(Pace { step: Step::OpenDays(open), n_longer, is_usual: true, is_even: true })
    }

    /// The next `n` times after `last`.
    pub fn go_on(self, last: f64, step: Step, n: usize) -> Vec<f64> {
        let plain = |step: f64| (1..=n).map(|ahead| last + step * ahead as f64).collect();
        match step {
            Step::Number(step) | Step::Time(step) => plain(step),
            Step::Months { months, day } => {
                let Some(last) = date(last) else {
                    return plain(30.0 * DAY);
                };
                let ahead = |ahead: usize| {
                    let moved = last.checked_add_months(Months::new(months.saturating_mul(ahead as u32)))?;
                    Some(milliseconds(moved.with_day(day.min(last_day(moved.date())))?))
                };
                (1..=n).map(|at| ahead(at).unwrap_or(f64::MAX)).collect()
            }
            Step::OpenDays(open) => {
                let days = (1..).map(|days| last + days as f64 * DAY);
                days.filter(|&time| date(time).is_none() || open[weekday(time)]).take(n).collect()
            }
        }
    }
}

impl Step {
    /// The same from `time` on, whose day of the month may be another.
    pub(super) fn starting_at(self, time: f64) -> Self {
        match (self, date(time)) {
            (Self::Months { months, day }, Some(date)) if date.day() != day.min(last_day(date.date())) => {
                Self::Months { months, day: date.day() }
            }
            (step, _) => step,
        }
    }
}

/// The last day of the month of `date`.
fn last_day(date: NaiveDate) -> u32 {
    let next = date.with_day(1).and_then(|first| first.checked_add_months(Months::new(1)));
    // The calendar ends with a December.
    next.and_then(|next| next.pred_opt()).map_or(31, |last| last.day())
}

/// Days of `time` since the Monday before 1970, which began on a Thursday.
fn day(time: f64) -> f64 {
    (time / DAY).floor() + 3.0
}

/// The day of the week of `time`, from Monday on.
fn weekday(time: f64) -> usize {
    day(time).rem_euclid(7.0) as usize
}

fn n_open(open: &[bool; 7]) -> usize {
    open.iter().filter(|&&is_open| is_open).count()
}

/// How the times of a series follow each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pace {
    /// The usual step.
    pub step: Step,
    /// Steps that are longer.
    pub n_longer: usize,
    /// Whether most steps are as long.
    pub is_usual: bool,
    /// Whether all are that long, or whole numbers of such steps.
    pub is_even: bool,
}

/// A time that does not follow those before it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Break {
    /// The time.
    pub found: f64,
    /// What was expected in its place.
    pub expected: f64,
    /// Whether anything before that would have done too.
    pub is_latest: bool,
}

/// The time from one step of a series to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// A number.
    Number(f64),
    /// Milliseconds.
    Time(f64),
    /// A day, and more over the days of the week without a row, such as weekends: whether each has one, from Monday on.
    OpenDays([bool; 7]),
    /// Calendar months, on the same day of each, or on the last of one that does not have it.
    Months {
        /// How many, above 0.
        months: u32,
        /// The day, 1 to 31; 31 is the last one of every month.
        day: u32,
    },
}

impl Step {
    /// Steps of the season that is usual at this pace: of a year of months, quarters or weeks, of a week of days or open days, of a day of hours or
    /// less; 0 where none is.
    pub fn season(self) -> usize {
        match self {
            Self::Number(_) => 0,
            Self::Months { months, .. } => {
                if (1..12).contains(&months) && 12 % months == 0 {
                    12 / months as usize
                } else {
                    0
                }
            }
            Self::OpenDays(open) => n_open(&open),
            Self::Time(step) if step == 7.0 * DAY => 52,
            Self::Time(step) if step == DAY => 7,
            Self::Time(step) => {
                let of_day = DAY / step;
                if of_day.fract() == 0.0 && (2.0..=1440.0).contains(&of_day) { of_day as usize } else { 0 }
            }
        }
    }

    /// The least that it is long, as times count.
    fn shortest(self) -> f64 {
        match self {
            Self::Number(step) | Self::Time(step) => step,
            Self::OpenDays(_) => DAY,
            Self::Months { months, .. } => 28.0 * DAY * f64::from(months),
        }
    }

    /// What it is called.
    pub(super) fn name(self) -> String {
        const UNITS: [(f64, &str); 5] =
            [(7.0 * DAY, "week"), (DAY, "day"), (3_600_000.0, "hour"), (60_000.0, "minute"), (1000.0, "second")];
        match self {
            Self::Number(step) => format!("step of {step}"),
            Self::Time(step) => match UNITS.iter().find(|(unit, _)| step % unit == 0.0) {
                Some((unit, name)) if step == *unit => (*name).to_owned(),
                Some((unit, name)) => format!("{} {name}s", step / unit),
                None => format!("{step} ms"),
            },
            Self::OpenDays(_) => "day".to_owned(),
            Self::Months { months: 1, .. } => "month".to_owned(),
            Self::Months { months: 3, .. } => "quarter".to_owned(),
            Self::Months { months: 12, .. } => "year".to_owned(),
            Self::Months { months, .. } => format!("{months} months"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::cells::{Cell, Place, TimeColumnCells, Times};
    use super::*;
    use crate::Result;

    fn read(cells: &[&str]) -> Result<Times> {
        let mut column = TimeColumnCells::new("ds".to_owned(), 1);
        cells.iter().zip(2..).try_for_each(|(cell, line)| column.push(Cell::Any(cell), Place::Line(line)))?;
        column.finish()
    }

    fn times(cells: &[&str]) -> (Clock, Vec<f64>) {
        let times = read(cells).unwrap();
        (times.clock, times.values.to_vec())
    }

    /// What follows `cells`, and the season.
    fn next(cells: &[&str]) -> (Vec<String>, usize) {
        let (clock, times) = times(cells);
        let step = clock.step(&times).unwrap();
        (clock.go_on(times[times.len() - 1], step, 2).into_iter().map(|time| clock.write(time)).collect(), step.season())
    }

    #[test]
    fn times_go_on_as_they_were_written() {
        let owned = |next: [&str; 2]| next.map(str::to_owned).to_vec();
        assert_eq!(next(&["2023-11-30", "2023-12-31", "2024-01-31"]), (owned(["2024-02-29", "2024-03-31"]), 12));
        assert_eq!(next(&["2022-12-28", "2023-01-28", "2023-02-28"]), (owned(["2023-03-28", "2023-04-28"]), 12));
        assert_eq!(next(&["2020-09-30", "2020-10-30", "2020-11-30"]), (owned(["2020-12-30", "2021-01-30"]), 12));
        // Of a day that some months do not have, the last.
        assert_eq!(next(&["2023-11-30", "2023-12-30", "2024-01-30"]), (owned(["2024-02-29", "2024-03-30"]), 12));
        assert_eq!(next(&["2023-12-30", "2024-01-30", "2024-02-29"]), (owned(["2024-03-30", "2024-04-30"]), 12));
        assert_eq!(next(&["2022-12-29", "2023-01-29", "2023-02-28"]), (owned(["2023-03-29", "2023-04-29"]), 12));
        assert_eq!(next(&["2023-02-28", "2023-05-28", "2023-08-28"]), (owned(["2023-11-28", "2024-02-28"]), 4));
        assert_eq!(next(&["2022-02-28", "2023-02-28"]), (owned(["2024-02-29", "2025-02-28"]), 0));
        assert_eq!(next(&["2024-01-30", "2024-02-29", "2024-03-29"]).1, 0);
        assert_eq!(next(&["2024-01", "2024-04"]), (owned(["2024-07", "2024-10"]), 4));
        assert_eq!(next(&["31.12.2023", "01.01.2024"]), (owned(["02.01.2024", "03.01.2024"]), 7));
        assert_eq!(next(&["2024-02-28 22:00", "2024-02-28 23:00"]), (owned(["2024-02-29 00:00", "2024-02-29 01:00"]), 24));
        assert_eq!(next(&["2024-01-01T00:00:00Z", "2024-01-01T00:15:00Z"]), (owned(["2024-01-01T00:30:00Z", "2024-01-01T00:45:00Z"]), 96));
        assert_eq!(next(&["2024-01-01", "2024-01-08", "2024-01-15"]), (owned(["2024-01-22", "2024-01-29"]), 52));
        assert_eq!(next(&["2020-01-01", "2021-01-01", "2022-01-01"]), (owned(["2023-01-01", "2024-01-01"]), 0));
        assert_eq!(next(&["20240130", "20240131"]), (owned(["20240201", "20240202"]), 7));
        assert_eq!(next(&["20231130", "20231231"]), (owned(["20240131", "20240229"]), 12));
        assert_eq!(next(&["201110", "201111", "201112"]), (owned(["201201", "201202"]), 12));
        assert_eq!(next(&["1", "2", "4", "5"]), (owned(["6", "7"]), 0));
        assert_eq!(next(&["0.5", "0.75"]).0, ["1", "1.25"]);
        assert_eq!(next(&["2024-01-01 10:00:00.000250", "2024-01-01 10:00:00.000500"]).0[0], "2024-01-01 10:00:00.000750");
    }

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
        // As many as lie in a file.
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
    fn weekends_are_passed_over_where_no_time_lies_on_one() {
        let owned = |next: [&str; 2]| next.map(str::to_owned).to_vec();
        assert_eq!(next(&["2024-01-04", "2024-01-05", "2024-01-08"]), (owned(["2024-01-09", "2024-01-10"]), 5));
        // With a holiday, the first of May, and up to a Thursday.
        let may = ["2024-04-29", "2024-04-30", "2024-05-02", "2024-05-03", "2024-05-06", "2024-05-07", "2024-05-08", "2024-05-09"];
        assert_eq!(next(&may), (owned(["2024-05-10", "2024-05-13"]), 5));
        // Within a week, three days of each, and every day.
        assert_eq!(next(&["2024-01-01", "2024-01-02", "2024-01-04", "2024-01-05"]).1, 7);
        assert_eq!(next(&["2024-01-04", "2024-01-05"]), (owned(["2024-01-06", "2024-01-07"]), 7));
        assert_eq!(next(&["2024-01-01", "2024-01-03", "2024-01-05", "2024-01-08", "2024-01-10"]).1, 0);
        assert_eq!(next(&["2024-01-04", "2024-01-05", "2024-01-06", "2024-01-07", "2024-01-08"]).1, 7);
        assert_eq!(next(&["2024-01-05 16:00", "2024-01-08 09:00", "2024-01-09 16:00"]).1, 0);
    }

    /// The dates of the days from 2024-01-01, a Monday, on of which `is_there` is true.
    fn days(n: i64, is_there: impl Fn(i64) -> bool) -> Vec<String> {
        let date = |day: i64| Clock::DATE.write(1_704_067_200_000.0 + day as f64 * DAY);
        (0..n).filter(|&day| is_there(day)).map(date).collect()
    }

    fn of_days(dates: &[String]) -> Vec<f64> {
        dates.iter().map(|date| Clock::DATE.read(date).unwrap()).collect()
    }

    #[test]
    fn days_of_the_week_that_are_always_closed_are_passed_over() {
        let pace = |dates: &[String]| {
            let times = of_days(dates);
            let pace = Clock::DATE.pace(&times).unwrap();
            (Clock::DATE.write(Clock::DATE.go_on(times[times.len() - 1], pace.step, 1)[0]), pace.step.season(), pace.n_longer)
        };
        let of = |next: &str, season: usize, n_longer: usize| (next.to_owned(), season, n_longer);
        // From Monday to Saturday, up to a Saturday; the same in a week alone, and with a holiday; and from Tuesday to Saturday.
        assert_eq!(pace(&days(34, |day| day % 7 != 6)), of("2024-02-05", 6, 0));
        assert_eq!(pace(&days(13, |day| day % 7 != 6)), of("2024-01-14", 7, 1));
        assert_eq!(pace(&days(34, |day| day % 7 != 6 && day != 10)), of("2024-02-05", 6, 1));
        assert_eq!(pace(&days(41, |day| (1..6).contains(&(day % 7)))), of("2024-02-13", 5, 0));
        // From Monday to Thursday; on Mondays, Wednesdays and Fridays; on weekends; and on Mondays alone, which is a week.
        assert_eq!(pace(&days(32, |day| day % 7 < 4)), of("2024-02-05", 4, 0));
        assert_eq!(pace(&days(33, |day| [0, 2, 4].contains(&(day % 7)))), of("2024-02-05", 3, 0));
        assert_eq!(pace(&days(42, |day| day % 7 > 4)), of("2024-02-17", 2, 0));
        assert_eq!(pace(&days(42, |day| day % 7 == 0)), of("2024-02-12", 52, 0));
        // Days that lack some, of any weekday.
        assert_eq!(pace(&days(60, |day| day % 10 != 3)), of("2024-03-01", 7, 6));
        assert_eq!(pace(&days(60, |day| day != 30)), of("2024-03-01", 7, 1));
    }

    #[test]
    fn months_go_on_as_months_behind_a_gap() {
        let cells = ["2024-01-31", "2024-02-29", "2024-03-31", "2024-06-30", "2024-07-31"];
        let (clock, all) = times(&cells);
        assert_eq!((next(&cells).0[0].as_str(), next(&cells).1, clock.pace(&all).unwrap().n_longer), ("2024-08-31", 12, 1));
        // Not of most, and no multiple.
        assert_eq!(next(&["2024-01-15", "2024-02-15", "2024-07-15"]).1, 0);
        assert_eq!(next(&["2024-01-15", "2024-04-15", "2024-07-15", "2024-08-15"]).1, 0);
    }

    #[test]
    fn steps_have_names() {
        let name = |cells: &[&str]| {
            let (clock, times) = times(cells);
            clock.step(&times).unwrap().name()
        };
        assert_eq!(name(&["2024-01", "2024-02"]), "month");
        assert_eq!(name(&["2024-01", "2024-04"]), "quarter");
        assert_eq!(name(&["2024-01", "2024-03"]), "2 months");
        assert_eq!(name(&["2024-01-01", "2024-01-08"]), "week");
        assert_eq!(name(&["2024-01-01", "2024-01-03"]), "2 days");
        assert_eq!(name(&["2024-01-01 10:00", "2024-01-01 11:00"]), "hour");
        assert_eq!(name(&["2024-01-01 10:00", "2024-01-01 10:15"]), "15 minutes");
        assert_eq!(name(&["2024-01-01 10:00:00.250", "2024-01-01 10:00:00.500"]), "250 ms");
        assert_eq!(name(&["1", "3"]), "step of 2");
    }

    #[test]
    fn rows_to_come_follow_one_step_behind_whatever_gaps_there_were_before() {
        let found = |before: &[String], after: &[&str]| {
            let after: Vec<f64> = after.iter().map(|date| Clock::DATE.read(date).unwrap()).collect();
            Clock::DATE.break_in(&of_days(before), &after).map(|place| (Clock::DATE.write(place.expected), place.is_latest))
        };
        let expected = |date: &str, is_latest| Some((date.to_owned(), is_latest));
        for gap in [None, Some(30), Some(200)] {
            let daily = days(260, |day| Some(day) != gap);
            assert_eq!(found(&daily, &["2024-09-17", "2024-09-18"]), None, "{gap:?}");
            assert_eq!(found(&daily, &["2024-09-18", "2024-09-19"]), expected("2024-09-17", false), "{gap:?}");
            assert_eq!(found(&daily, &["2024-09-17", "2024-09-19"]), expected("2024-09-18", false), "{gap:?}");
        }
        // Of open days, up to a Thursday: without a holiday before, and with one.
        for holiday in [None, Some(100)] {
            let open = days(256, |day| day % 7 < 5 && Some(day) != holiday);
            assert_eq!(found(&open, &["2024-09-13", "2024-09-16"]), None, "{holiday:?}");
            assert_eq!(found(&open, &["2024-09-13", "2024-09-14"]), expected("2024-09-16", false), "{holiday:?}");
        }
        let open = days(256, |day| day % 7 < 5 && day != 100);
        assert_eq!(found(&open, &["2024-09-13", "2024-09-17"]), expected("2024-09-16", true));
        assert_eq!(found(&open, &["2024-09-16", "2024-09-17"]), expected("2024-09-15", true));
        // Not at noon of the same day.
        let open = of_days(&open);
        let noon = open[open.len() - 1] + DAY / 2.0;
        assert!(Clock::DATE.break_in(&open, &[noon]).is_some_and(|place| place.expected == noon + DAY / 2.0));
    }

    #[test]
    fn steps_that_are_nearly_alike_have_no_gaps_and_bind_nobody() {
        let lengths = [31.0, 28.0, 31.0, 30.0, 31.0, 30.0, 31.0, 31.0, 30.0, 31.0, 30.0, 31.0];
        let month = |at: usize| (0..at).map(|month| lengths[month % 12]).sum::<f64>();
        let year = |at: usize| (1e4 * (2000.0 + at as f64 / 12.0)).round() / 1e4;
        // Local midnights, at another hour of the world's clock in summer.
        let midnight = |at: usize| at as f64 * DAY - if (90..300).contains(&(at % 365)) { 3_600_000.0 } else { 0.0 };
        let cases: [(Clock, &dyn Fn(usize) -> f64); 3] = [(Clock::Number, &month), (Clock::Number, &year), (Clock::DATE, &midnight)];
        for (clock, at) in cases {
            let times: Vec<f64> = (0..365).map(at).collect();
            let next: Vec<f64> = (365..365 + 120).map(at).collect();
            assert_eq!((clock.pace(&times).unwrap().n_longer, clock.break_in(&times, &next)), (0, None), "{}", at(7));
            assert!(clock.break_in(&times, &[at(365 + 3)]).is_some());
        }
    }

    #[test]
    fn a_break_is_what_does_not_follow() {
        let found = |before: &[&str], after: &[&str]| {
            let ((clock, before), (_, after)) = (times(before), times(after));
            clock.break_in(&before, &after).map(|place| [place.found, place.expected].map(|time| clock.write(time)))
        };
        let owned = |pair: [&str; 2]| Some(pair.map(str::to_owned));
        assert_eq!(found(&["2024-01-31", "2024-02-29"], &["2024-03-31", "2024-04-30"]), None);
        assert_eq!(found(&["2024-01-31", "2024-02-29"], &["2024-03-31", "2024-05-31"]), owned(["2024-05-31", "2024-04-30"]));
        assert_eq!(found(&["2024-05-30", "2024-06-30"], &["2024-07-30", "2024-08-30"]), None);
        assert_eq!(found(&["2024-05-30", "2024-06-30"], &["2024-07-31"]), owned(["2024-07-31", "2024-07-30"]));
        assert_eq!(found(&["2024-01-04", "2024-01-05", "2024-01-08"], &["2024-01-09"]), None);
        assert_eq!(found(&["2024-01-01", "2024-01-02"], &["2024-01-05"]), owned(["2024-01-05", "2024-01-03"]));
        // Not even: twice the longest gap.
        assert_eq!(found(&["1", "2", "5"], &["11", "12"]), None);
        assert_eq!(found(&["1", "2", "5"], &["6", "13"]), owned(["13", "12"]));
        assert_eq!(found(&["0.1", "0.2", "0.3"], &["0.4", "0.5"]), None);
        assert_eq!(found(&["7"], &["100"]), None);
    }

    #[test]
    fn what_is_no_time_is_a_sentence() {
        let refused = |cells: &[&str]| read(cells).unwrap_err().to_string();
        assert!(refused(&["morning"]).starts_with("the column 'ds' holds no times: found 'morning'"));
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
            // However they say it.
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
        // No offset is none, where UTC was not expected either.
        for [first, second] in [["2010-01-04 00:00:00", "2010-01-05 00:00:00+00:00"], ["2010-01-04 00:00Z", "2010-01-04T12:30+0000"]] {
            let expected = format!("line 3: the column 'ds' holds '{second}', expected a time that is written like its first, '{first}'");
            assert_eq!(refused(&[first, second]), expected);
        }
        assert!(refused(&["2010-01-04Z"]).contains("holds no times"));
    }

    #[test]
    fn years_behind_9999_have_a_sign_and_are_read_so() {
        let (next, _) = next(&["9999-12-30", "9999-12-31"]);
        assert_eq!(next, ["+10000-01-01", "+10000-01-02"]);
        assert_eq!(times(&[&next[0], &next[1]]).1[1], times(&["9999-12-31"]).1[0] + 2.0 * DAY);
    }

    #[test]
    fn a_time_at_the_end_of_the_calendar_does_not_panic() {
        let (clock, times) = times(&["9999-11-30", "9999-12-31"]);
        let step = clock.step(&times).unwrap();
        assert_eq!(clock.go_on(times[1], step, 1 << 14).len(), 1 << 14);
        assert_eq!(Clock::Number.step(&[1.0]), None);
        assert!(!Clock::Calendar(0).write(f64::MAX).is_empty());
    }
}
