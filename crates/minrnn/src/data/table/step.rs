//! The time between the steps of a series: its season, its name, and future times.

use chrono::{Datelike, Months, NaiveDate};

use super::clock::{Clock, DAY, date, milliseconds};

/// The time between the steps of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// A number.
    Number(f64),
    /// Milliseconds.
    Time(f64),
    /// A day, or more to skip weekdays without rows, such as weekends; for each weekday, from Monday on, whether it has rows.
    OpenDays([bool; 7]),
    /// Calendar months.
    Months {
        /// How many, above 0.
        months: u32,
        /// On which day of each.
        day: MonthDay,
    },
}

/// A day of calendar months.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MonthDay {
    /// The same day of each, 1 to 31, or the last day of shorter months; 31 is the last one of every month.
    Fixed(u32),
    /// The first day from Monday to Friday.
    FirstWeekday,
    /// The last day from Monday to Friday.
    LastWeekday,
    /// Another day in each month, by no rule: what follows keeps the day of the last row, or the last day of shorter months.
    Varying,
}

impl MonthDay {
    /// The day in the month of `date`.
    pub(super) fn within(self, date: NaiveDate) -> u32 {
        let last = last_day(date);
        // From Monday, 0, on.
        let weekday = |day: u32| (date.weekday().num_days_from_monday() + 35 + day - date.day()) % 7;
        match self {
            Self::Fixed(day) => day.min(last),
            Self::FirstWeekday => match weekday(1) {
                5 => 3,
                6 => 2,
                _ => 1,
            },
            Self::LastWeekday => last - weekday(last).saturating_sub(4),
            Self::Varying => date.day(),
        }
    }

    /// Its name, such as `last weekday`, if it is the first or the last weekday.
    pub(super) fn of_week(self) -> Option<&'static str> {
        match self {
            Self::FirstWeekday => Some("first weekday"),
            Self::LastWeekday => Some("last weekday"),
            Self::Fixed(_) | Self::Varying => None,
        }
    }
}

impl Step {
    /// Steps in the usual season at this pace: a year of months, quarters or weeks, a week of days or open days, a day of hours or less; 0
    /// if there is none.
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

    /// Its minimum length, in the unit of times.
    pub(super) fn shortest(self) -> f64 {
        match self {
            Self::Number(step) | Self::Time(step) => step,
            Self::OpenDays(_) => DAY,
            Self::Months { months, .. } => 28.0 * DAY * f64::from(months),
        }
    }

    /// Its name.
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

    /// The same step from `time` on, whose day of the month may differ.
    pub(super) fn starting_at(self, time: f64) -> Self {
        match (self, date(time)) {
            (Self::Months { months, day }, Some(date)) if date.day() != day.within(date.date()) => {
                Self::Months { months, day: MonthDay::Fixed(date.day()) }
            }
            (step, _) => step,
        }
    }
}

impl Clock {
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
                    Some(milliseconds(moved.with_day(day.within(moved.date()))?))
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

/// The last day of the month of `date`.
pub(super) fn last_day(date: NaiveDate) -> u32 {
    let next = date.with_day(1).and_then(|first| first.checked_add_months(Months::new(1)));
    // The last month of the calendar is a December.
    next.and_then(|next| next.pred_opt()).map_or(31, |last| last.day())
}

/// Days of `time` since the Monday before 1970, which began on a Thursday.
pub(super) fn day(time: f64) -> f64 {
    (time / DAY).floor() + 3.0
}

/// The day of the week of `time`, from Monday on.
pub(super) fn weekday(time: f64) -> usize {
    day(time).rem_euclid(7.0) as usize
}

/// How many weekdays have rows.
pub(super) fn n_open(open: &[bool; 7]) -> usize {
    open.iter().filter(|&&is_open| is_open).count()
}

/// The times after `cells`, and the season.
#[cfg(test)]
pub(super) fn next(cells: &[&str]) -> (Vec<String>, usize) {
    let (clock, times) = super::time_cells::times(cells);
    let step = clock.step(&times).unwrap();
    (clock.go_on(times[times.len() - 1], step, 2).into_iter().map(|time| clock.write(time)).collect(), step.season())
}

#[cfg(test)]
mod tests {
    use super::super::time_cells::times;
    use super::*;

    #[test]
    fn times_go_on_as_they_were_written() {
        let owned = |next: [&str; 2]| next.map(str::to_owned).to_vec();
        assert_eq!(next(&["2023-11-30", "2023-12-31", "2024-01-31"]), (owned(["2024-02-29", "2024-03-31"]), 12));
        assert_eq!(next(&["2022-12-28", "2023-01-28", "2023-02-28"]), (owned(["2023-03-28", "2023-04-28"]), 12));
        assert_eq!(next(&["2020-09-30", "2020-10-30", "2020-11-30"]), (owned(["2020-12-30", "2021-01-30"]), 12));
        // For a day that some months lack, their last day.
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
    fn the_first_and_the_last_weekday_of_a_month_are_no_weekend() {
        let date = |month: u32, day: u32| NaiveDate::from_ymd_opt(2024, month, day).unwrap();
        // 2024-06-01 is a Saturday, and 2024-09-01 a Sunday; 2024-08-31 is a Saturday, and 2024-06-30 a Sunday.
        let first = [1, 6, 9].map(|month| MonthDay::FirstWeekday.within(date(month, 17)));
        let last = [1, 2, 6, 8].map(|month| MonthDay::LastWeekday.within(date(month, 1)));
        assert_eq!((first, last), ([1, 3, 2], [31, 29, 28, 30]));
        for day in 1..=30 {
            let month = date(6, day);
            let found =
                [MonthDay::FirstWeekday, MonthDay::LastWeekday, MonthDay::Fixed(31), MonthDay::Varying].map(|rule| rule.within(month));
            assert_eq!(found, [3, 28, 30, day]);
        }
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
    }
}
