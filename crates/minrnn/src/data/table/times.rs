//! When the rows of a series were: the column of times.

use chrono::{DateTime, Datelike, Days, Months, NaiveDate, NaiveDateTime};

/// How times are written, each with what stands behind the seconds; the first that fits the first cell is that of the column.
const PATTERNS: [(&str, &str); 11] = [
    ("%Y-%m-%d", ""),
    ("%Y/%m/%d", ""),
    ("%d.%m.%Y", ""),
    ("%Y-%m-%d %H:%M", ""),
    ("%Y-%m-%d %H:%M:%S%.f", ""),
    ("%Y-%m-%dT%H:%M", ""),
    ("%Y-%m-%dT%H:%M:%S%.f", ""),
    ("%Y-%m-%dT%H:%M:%S%.f", "Z"),
    ("%Y-%m-%d %H:%M:%S%.f", "+00:00"),
    ("%Y/%m/%d %H:%M", ""),
    ("%Y/%m/%d %H:%M:%S%.f", ""),
];

/// Milliseconds of a day.
const DAY: f64 = 86_400_000.0;

/// The date of `time`, milliseconds since 1970.
pub(super) fn date(time: f64) -> Option<NaiveDateTime> {
    DateTime::from_timestamp_millis(time as i64).map(|time| time.naive_utc())
}

/// How the times of a column are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// Numbers.
    Number,
    /// Months, such as 2024-01.
    Month,
    /// Dates, or dates with a time of the day: one of the patterns.
    Calendar(usize),
}

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
        let all = [Self::Number, Self::Month].into_iter().chain((0..PATTERNS.len()).map(Self::Calendar));
        all.into_iter().find(|clock| clock.read(cell).is_some())
    }

    /// Whether `cell` is a time, and no number.
    pub(super) fn is_date(cell: &str) -> bool {
        Self::of(cell.trim()).is_some_and(|clock| clock != Self::Number)
    }

    pub(super) fn read(self, cell: &str) -> Option<f64> {
        // A year of two digits may be the first, second or third of a date, and of any century.
        let at = |time: NaiveDateTime| (time.year() >= 1000).then(|| time.and_utc().timestamp_millis() as f64);
        let at_midnight = |date: NaiveDate| at(date.and_hms_opt(0, 0, 0)?);
        match self {
            Self::Number => cell.parse().ok().filter(|number: &f64| number.is_finite()),
            Self::Month => NaiveDate::parse_from_str(&format!("{cell}-01"), "%Y-%m-%d").ok().and_then(at_midnight),
            Self::Calendar(pattern) => {
                let (pattern, end) = PATTERNS[pattern];
                let cell = cell.strip_suffix(end)?;
                if pattern.contains("%H") {
                    return NaiveDateTime::parse_from_str(cell, pattern).ok().and_then(at);
                }
                NaiveDate::parse_from_str(cell, pattern).ok().and_then(at_midnight)
            }
        }
    }

    /// `time` as it would be written.
    pub fn write(self, time: f64) -> String {
        match (self, date(time)) {
            (Self::Month, Some(time)) => time.format("%Y-%m").to_string(),
            (Self::Calendar(pattern), Some(time)) => time.format(PATTERNS[pattern].0).to_string() + PATTERNS[pattern].1,
            _ => time.to_string(),
        }
    }

    /// The step between the times of a series, which rise; none of fewer than two.
    pub fn step(self, times: &[f64]) -> Option<Step> {
        if let Some(step) = self.months(times) {
            return Some(step);
        }
        let mut differences: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let middle = differences.len() / 2;
        if differences.is_empty() {
            return None;
        }
        let (_, &mut step, _) = differences.select_nth_unstable_by(middle, f64::total_cmp);
        Some(if self == Self::Number { Step::Number(step) } else { Step::Time(step) })
    }

    /// Whole months between all of `times`, where these lie on the same day of the month, or all on its last.
    fn months(self, times: &[f64]) -> Option<Step> {
        if self == Self::Number || times.len() < 2 {
            return None;
        }
        let is_last = |date: &NaiveDateTime| date.date().checked_add_days(Days::new(1)).is_some_and(|next| next.day() == 1);
        let month = |date: &NaiveDateTime| i64::from(date.year()) * 12 + i64::from(date.month0());
        let (first, second) = (date(times[0])?, date(times[1])?);
        let step = month(&second) - month(&first);
        let (mut same_day, mut all_last, mut before) = (true, is_last(&first), month(&first) - step);
        for &time in times {
            let date = date(time)?;
            (same_day, all_last) = (same_day && date.day() == first.day(), all_last && is_last(&date));
            if month(&date) != before + step || date.time() != first.time() || !(same_day || all_last) {
                return None;
            }
            before = month(&date);
        }
        let step = u32::try_from(step).ok().filter(|&step| step > 0)?;
        Some(if all_last { Step::MonthEnds(step) } else { Step::Months(step) })
    }

    /// The next `n` times after `last`.
    pub fn go_on(self, last: f64, step: Step, n: usize) -> Vec<f64> {
        let plain = |step: f64| (1..=n).map(|ahead| last + step * ahead as f64).collect();
        match step {
            Step::Number(step) | Step::Time(step) => plain(step),
            Step::Months(months) | Step::MonthEnds(months) => {
                let Some(last) = date(last) else {
                    return plain(30.0 * DAY);
                };
                let ahead = |ahead: usize| {
                    let moved = last.checked_add_months(Months::new(months.saturating_mul(ahead as u32)))?;
                    // The last day of one month is followed by that of another.
                    let end = moved.date().with_day(1)?.checked_add_months(Months::new(1))?.pred_opt()?;
                    Some(if matches!(step, Step::MonthEnds(_)) { end.and_time(moved.time()) } else { moved }.and_utc().timestamp_millis()
                        as f64)
                };
                (1..=n).map(|at| ahead(at).unwrap_or(f64::MAX)).collect()
            }
        }
    }
}

/// The time from one step of a series to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// A number.
    Number(f64),
    /// Milliseconds.
    Time(f64),
    /// Calendar months, on the same day of each.
    Months(u32),
    /// Calendar months, on the last day of each.
    MonthEnds(u32),
}

impl Step {
    /// Steps of the season that is usual at this pace: of a year of months, quarters or weeks, of a week of days, of a day of hours or less; 0
    /// where none is.
    pub fn season(self) -> usize {
        match self {
            Self::Number(_) => 0,
            Self::Months(months) | Self::MonthEnds(months) => {
                if (1..12).contains(&months) && 12 % months == 0 {
                    12 / months as usize
                } else {
                    0
                }
            }
            Self::Time(step) if step == 7.0 * DAY => 52,
            Self::Time(step) if step == DAY => 7,
            Self::Time(step) => {
                let of_day = DAY / step;
                if of_day.fract() == 0.0 && (2.0..=1440.0).contains(&of_day) { of_day as usize } else { 0 }
            }
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
        assert_eq!(next(&["2024-01", "2024-04"]), (owned(["2024-07", "2024-10"]), 4));
        assert_eq!(next(&["31.12.2023", "01.01.2024"]), (owned(["02.01.2024", "03.01.2024"]), 7));
        assert_eq!(next(&["2024-02-28 22:00", "2024-02-28 23:00"]), (owned(["2024-02-29 00:00", "2024-02-29 01:00"]), 24));
        assert_eq!(next(&["2024-01-01T00:00:00Z", "2024-01-01T00:15:00Z"]), (owned(["2024-01-01T00:30:00Z", "2024-01-01T00:45:00Z"]), 96));
        assert_eq!(next(&["2024-01-01", "2024-01-08", "2024-01-15"]), (owned(["2024-01-22", "2024-01-29"]), 52));
        assert_eq!(next(&["2020-01-01", "2021-01-01", "2022-01-01"]), (owned(["2023-01-01", "2024-01-01"]), 0));
        assert_eq!(next(&["1", "2", "4", "5"]), (owned(["6", "7"]), 0));
        assert_eq!(next(&["0.5", "0.75"]).0, ["1", "1.25"]);
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
    fn a_time_at_the_end_of_the_calendar_does_not_panic() {
        let (clock, times) = times(&["9999-11-30", "9999-12-31"]);
        let step = clock.step(&times).unwrap();
        assert_eq!(clock.go_on(times[1], step, 1 << 14).len(), 1 << 14);
        assert_eq!(Clock::Number.step(&[1.0]), None);
        assert!(!Clock::Calendar(0).write(f64::MAX).is_empty());
    }
}
