//! When the rows of a series were: the column of times.

use chrono::{DateTime, Datelike, Days, Months, NaiveDate, NaiveDateTime};

use super::frame::Texts;
use crate::{Error, Result};

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

/// The times of a table's rows: numbers as they are, and of dates the milliseconds since 1970.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Times {
    pub clock: Clock,
    /// Of each distinct cell.
    values: Vec<f64>,
}

impl Times {
    /// Reads the cells of the column `name`.
    ///
    /// # Errors
    /// When one is no time, or another kind of time than the first.
    pub fn parse(name: &str, cells: &Texts) -> Result<Self> {
        let distinct = cells.distinct();
        let Some(clock) = distinct.first().and_then(|first| Clock::of(first)) else {
            let found = distinct.first().map_or("", String::as_str);
            return Err(Error::Data(format!(
                "the column '{name}' holds no times: found '{found}', expected a number or a date such as 2024-01-31 or 2024-01-31 12:00; name the \
                 column of times with time, or set time to nothing where the rows are in order"
            )));
        };
        let read = |cell: &String| {
            clock.read(cell).ok_or_else(|| {
                let first = &distinct[0];
                Error::Data(format!("the column '{name}' holds '{cell}', expected a time that is written like its first, '{first}'"))
            })
        };
        Ok(Self { clock, values: distinct.iter().map(read).collect::<Result<_>>()? })
    }

    /// That of the distinct cell `id`.
    pub fn value(&self, id: u32) -> f64 {
        self.values[id as usize]
    }
}

impl Clock {
    /// How `cell` is written; none where it is no time.
    fn of(cell: &str) -> Option<Self> {
        let all = [Self::Number, Self::Month].into_iter().chain((0..PATTERNS.len()).map(Self::Calendar));
        all.into_iter().find(|clock| clock.read(cell).is_some())
    }

    fn read(self, cell: &str) -> Option<f64> {
        let at_midnight = |date: NaiveDate| Some(date.and_hms_opt(0, 0, 0)?.and_utc().timestamp_millis() as f64);
        match self {
            Self::Number => cell.parse().ok().filter(|number: &f64| number.is_finite()),
            Self::Month => NaiveDate::parse_from_str(&format!("{cell}-01"), "%Y-%m-%d").ok().and_then(at_midnight),
            Self::Calendar(pattern) => {
                let (pattern, end) = PATTERNS[pattern];
                let cell = cell.strip_suffix(end)?;
                if pattern.contains("%H") {
                    return NaiveDateTime::parse_from_str(cell, pattern).ok().map(|time| time.and_utc().timestamp_millis() as f64);
                }
                NaiveDate::parse_from_str(cell, pattern).ok().and_then(at_midnight)
            }
        }
    }

    /// `time` as it would be written.
    pub fn write(self, time: f64) -> String {
        let calendar = || DateTime::from_timestamp_millis(time as i64).map(|time| time.naive_utc());
        match (self, calendar()) {
            (Self::Month, Some(time)) => time.format("%Y-%m").to_string(),
            (Self::Calendar(pattern), Some(time)) => time.format(PATTERNS[pattern].0).to_string() + PATTERNS[pattern].1,
            _ => time.to_string(),
        }
    }

    /// The step between the times of a series, which rise; none of fewer than two.
    pub fn step(self, times: &[f64]) -> Option<Step> {
        let mut differences: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        if let Some(months) = self.months(times) {
            return Some(Step::Months(months));
        }
        differences.sort_unstable_by(f64::total_cmp);
        differences.get(differences.len() / 2).copied().map(|step| if self == Self::Number { Step::Number(step) } else { Step::Time(step) })
    }

    /// Whole months between all of `times`, where these lie on the same day of the month, or all on its last.
    fn months(self, times: &[f64]) -> Option<u32> {
        if self == Self::Number || times.len() < 2 {
            return None;
        }
        let dates: Vec<NaiveDateTime> =
            times.iter().map(|&time| DateTime::from_timestamp_millis(time as i64).map(|time| time.naive_utc())).collect::<Option<_>>()?;
        let is_last = |date: &NaiveDateTime| date.date().checked_add_days(Days::new(1)).is_some_and(|next| next.day() == 1);
        let same_day = dates.iter().all(|date| date.day() == dates[0].day()) || dates.iter().all(is_last);
        let same_time = dates.iter().all(|date| date.time() == dates[0].time());
        let month = |date: &NaiveDateTime| i64::from(date.year()) * 12 + i64::from(date.month0());
        let step = month(&dates[1]) - month(&dates[0]);
        let is_regular = dates.windows(2).all(|pair| month(&pair[1]) - month(&pair[0]) == step);
        u32::try_from(step).ok().filter(|&step| step > 0 && same_day && same_time && is_regular)
    }

    /// The next `n` times after `last`.
    pub fn go_on(self, last: f64, step: Step, n: usize) -> Vec<f64> {
        let plain = |step: f64| (1..=n).map(|ahead| last + step * ahead as f64).collect();
        match step {
            Step::Number(step) | Step::Time(step) => plain(step),
            Step::Months(months) => {
                let Some(last) = DateTime::from_timestamp_millis(last as i64).map(|time| time.naive_utc()) else {
                    return plain(30.0 * DAY);
                };
                let is_last = last.date().checked_add_days(Days::new(1)).is_some_and(|next| next.day() == 1);
                let ahead = |ahead: usize| {
                    let moved = last.checked_add_months(Months::new(months.saturating_mul(ahead as u32)))?;
                    // The last day of one month is followed by that of another.
                    let end = moved.date().with_day(1)?.checked_add_months(Months::new(1))?.pred_opt()?;
                    Some(if is_last { end.and_time(moved.time()) } else { moved }.and_utc().timestamp_millis() as f64)
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
    /// Calendar months.
    Months(u32),
}

impl Step {
    /// Steps of the season that is usual at this pace: of a year of months, quarters or weeks, of a week of days, of a day of hours or less; 0
    /// where none is.
    pub fn season(self) -> usize {
        match self {
            Self::Number(_) => 0,
            Self::Months(months) => {
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
    use super::*;

    fn texts(cells: &[&str]) -> Texts {
        let mut texts = Texts::default();
        cells.iter().for_each(|cell| texts.push(cell).unwrap());
        texts
    }

    fn times(cells: &[&str]) -> (Clock, Vec<f64>) {
        let times = Times::parse("ds", &texts(cells)).unwrap();
        (times.clock, (0..cells.len() as u32).map(|id| times.value(id)).collect())
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
        let refused = |cells: &[&str]| Times::parse("ds", &texts(cells)).unwrap_err().to_string();
        assert!(refused(&["morning"]).starts_with("the column 'ds' holds no times: found 'morning'"));
        assert!(refused(&["2024-02-30"]).contains("holds no times"));
        assert_eq!(
            refused(&["2024-01-01", "2.1.2024"]),
            "the column 'ds' holds '2.1.2024', expected a time that is written like its first, '2024-01-01'"
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
