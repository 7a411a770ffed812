//! The pace of a series' times: its usual step, and what deviates from it.

use chrono::{Datelike, NaiveDateTime};

use super::clock::{Clock, DAY, date};
use super::step::{MonthDay, Step, day, last_day, n_open, weekday};

/// Steps that differ by at most this fraction count as equal.
const NEAR: f64 = 1e-3;

/// If more than one step in this many is not a multiple of the usual one, the times follow another rule.
const MOST_OFF: usize = 4;

/// Number of steps among which the usual one is looked for first.
const FIRST: usize = 4096;

const FROM_MONDAY_TO_FRIDAY: [bool; 7] = [true, true, true, true, true, false, false];
/// Number of days after which weekdays without a row are taken to be always closed.
const FEWEST_DAYS: f64 = 28.0;

/// Number of rows from which the first or the last weekdays of months are a rule.
const FEWEST_WEEKDAYS: usize = 3;
/// Number of rows, one in each month, from which their days may be any.
const FEWEST_MONTHS: usize = 6;

/// How the times of a series follow one another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pace {
    /// The usual step.
    pub step: Step,
    /// Number of longer steps.
    pub n_longer: usize,
    /// Whether most steps have this length.
    pub is_usual: bool,
    /// Number of steps that are not a multiple of it; for steps of months, number of times on another day than that of their step.
    pub n_off: usize,
}

impl Pace {
    /// Whether most steps have this length, and all others are whole multiples of it.
    fn is_even(self) -> bool {
        self.is_usual && self.n_off == 0
    }

    /// Whether `rows` times in so many steps follow another rule than equal steps.
    pub fn is_uneven(self, rows: usize) -> bool {
        MOST_OFF * self.n_off > rows
    }
}

/// A time that does not follow the previous ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Break {
    /// The time.
    pub found: f64,
    /// The time expected in its place.
    pub expected: f64,
    /// Whether any earlier time would have been accepted too.
    pub is_latest: bool,
}

/// Months of `date` since the year 0.
fn month(date: &NaiveDateTime) -> i64 {
    i64::from(date.year()) * 12 + i64::from(date.month0())
}

impl Clock {
    /// The usual step between the ascending times of a series; `None` for fewer than two.
    pub fn step(self, times: &[f64]) -> Option<Step> {
        self.pace(times).map(|pace| pace.step)
    }

    /// The usual step between the ascending times of a series, and how usual it is; `None` for fewer than two.
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
            // Floats such as 0.1, 0.2, … are not exactly evenly spaced.
            let is_near = |difference: f64, step: f64, usual: f64| (difference - step).abs() <= NEAR * usual;
            // A month of 31 days after one of 28, or the extra hour when a clock is put back, is not a gap.
            let n_longer = differences().filter(|difference| *difference > 1.5 * step).count();
            let n_usual = differences().filter(|&difference| is_near(difference, step, step)).count();
            let is_usual = 2 * n_usual >= times.len();
            let n_off = differences().filter(|&difference| !is_near(difference, (difference / step).round() * step, step)).count();
            let step = if self == Self::Number { Step::Number(step) } else { Step::Time(step) };
            Some(Pace { step, n_longer, is_usual, n_off })
        };
        // If most steps have one length, it is the median.
        let pace = pace(FIRST).filter(|pace| pace.is_usual).or_else(|| pace(times.len()))?;
        if pace.is_even() {
            return Some(pace);
        }
        let is_without_rule = !pace.is_usual || pace.is_uneven(times.len());
        let months = self.weekdays_of_months(times).or_else(|| self.days_of_months(times).filter(|_| is_without_rule));
        Some(months.unwrap_or(pace))
    }

    /// Checks that the ascending times `next` follow the ascending `times`: at their pace, if the steps of `times` are equal except for
    /// gaps of whole steps (for open days, allowing holidays but no longer gap than any in `times`; for the first or last weekdays of months,
    /// allowing any day of the month), otherwise with no step more than twice as long as the longest. Returns the first that does not follow,
    /// if any.
    pub fn break_in(self, times: &[f64], next: &[f64]) -> Option<Break> {
        let (pace, &last) = (self.pace(times)?, times.last()?);
        let Pace { step, n_longer, .. } = pace;
        let open = match step {
            // An open day without a row may be a holiday.
            Step::OpenDays(open) if n_longer > 0 => Some(open),
            _ => None,
        };
        // A holiday moves the first or last weekday within its month.
        let within_month = matches!(step, Step::Months { day, .. } if day.of_week().is_some());
        if within_month || pace.is_even() && open.is_none() {
            let near = NEAR * step.shortest();
            let expected = self.go_on(last, step, next.len());
            let mut places = next.iter().copied().zip(expected).map(|(found, expected)| Break { found, expected, is_latest: false });
            let month = |time: f64| date(time).map(|date| month(&date));
            return places.find(|place| match within_month {
                true => month(place.found) != month(place.expected),
                false => (place.found - place.expected).abs() > near,
            });
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

    /// A pace in whole months: `times` are on the same day of the month (or on the last day of shorter months), most steps have the same number of
    /// months, and all others are multiples of it.
    fn months(self, times: &[f64]) -> Option<Pace> {
        let (months, n_longer) = self.usual_months(times)?;
        let dates = || times.iter().filter_map(|&time| date(time)).map(|date| date.date());
        let all_last = dates().all(|date| date.day() == last_day(date));
        // The 28th of several Februaries may stand for any later day of other months.
        let day = if all_last { 31 } else { dates().map(|date| date.day()).max()? };
        let day = MonthDay::Fixed(day);
        dates().all(|date| date.day() == day.within(date)).then_some(Pace {
            step: Step::Months { months, day },
            n_longer,
            is_usual: true,
            n_off: 0,
        })
    }

    /// A pace in whole months, as [`months`](Self::months), of times that are nearly all on the last weekday of their month, or on the first; the others
    /// are on other weekdays, as holidays require.
    fn weekdays_of_months(self, times: &[f64]) -> Option<Pace> {
        let (months, n_longer) = self.usual_months(times)?;
        if times.len() < FEWEST_WEEKDAYS || times.iter().any(|&time| weekday(time) > 4) {
            return None;
        }
        let pace = |day: MonthDay| {
            let is_off = |date: &NaiveDateTime| date.day() != day.within(date.date());
            let n_off = times.iter().filter_map(|&time| date(time)).filter(is_off).count();
            Pace { step: Step::Months { months, day }, n_longer, is_usual: true, n_off }
        };
        [MonthDay::LastWeekday, MonthDay::FirstWeekday].map(pace).into_iter().find(|pace| !pace.is_uneven(times.len()))
    }

    /// A pace in whole months, as [`months`](Self::months), of times on any day of their month, if there are several and no month is left out.
    fn days_of_months(self, times: &[f64]) -> Option<Pace> {
        let (months, n_longer) = self.usual_months(times)?;
        let step = Step::Months { months, day: MonthDay::Varying };
        let is_whole = times.len() >= FEWEST_MONTHS && n_longer == 0;
        is_whole.then_some(Pace { step, n_longer, is_usual: true, n_off: times.len() })
    }

    /// The number of months from a time to the next, and how many steps are longer: `times` are at the same time of day, no two of them in one
    /// month, most steps have this number of months, and all others are multiples of it.
    fn usual_months(self, times: &[f64]) -> Option<(u32, usize)> {
        if self == Self::Number || times.len() < 2 {
            return None;
        }
        let first = date(times[0])?;
        let (mut before, mut steps) = (None, Vec::new());
        for &time in times {
            let date = date(time)?;
            if let Some(before) = before.replace(month(&date)) {
                steps.push(u32::try_from(month(&date) - before).ok().filter(|&months| months > 0 && date.time() == first.time())?);
            }
        }
        let middle = steps.len() / 2;
        let (_, &mut months, _) = steps.select_nth_unstable(middle);
        let n_longer = steps.iter().filter(|&&step| step != months).count();
        let is_usual = 2 * n_longer < steps.len() && steps.iter().all(|step| step % months == 0);
        is_usual.then_some((months, n_longer))
    }

    /// A pace of days that skips some weekdays: for weeks, `times` have most dates of two to six weekdays or, over fewer weeks with at least one
    /// weekend, most dates from Monday to Friday; all at the same time of day.
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
        // Holidays are rare.
        let is_most = times.len() as f64 > 0.75 * days * n_open as f64 / 7.0;
        if !(2..7).contains(&n_open) || !is_long || !is_most {
            return None;
        }
        let to_next: [f64; 7] = std::array::from_fn(|of| (1..=7).find(|days| open[(of + days) % 7]).unwrap_or(7) as f64 * DAY);
        let n_longer = times.windows(2).filter(|pair| pair[1] - pair[0] > to_next[weekday(pair[0])]).count();
        Some(Pace { step: Step::OpenDays(open), n_longer, is_usual: true, n_off: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::super::step::next;
    use super::super::time_cells::times;
    use super::*;

    #[test]
    fn weekends_are_passed_over_where_no_time_lies_on_one() {
        let owned = |next: [&str; 2]| next.map(str::to_owned).to_vec();
        assert_eq!(next(&["2024-01-04", "2024-01-05", "2024-01-08"]), (owned(["2024-01-09", "2024-01-10"]), 5));
        // With a holiday, the first of May, and up to a Thursday.
        let may = ["2024-04-29", "2024-04-30", "2024-05-02", "2024-05-03", "2024-05-06", "2024-05-07", "2024-05-08", "2024-05-09"];
        assert_eq!(next(&may), (owned(["2024-05-10", "2024-05-13"]), 5));
        // Within a week; three days of each week; and every day.
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
        // From Monday to Saturday, up to a Saturday; the same within fewer weeks, and with a holiday; and from Tuesday to Saturday.
        assert_eq!(pace(&days(34, |day| day % 7 != 6)), of("2024-02-05", 6, 0));
        assert_eq!(pace(&days(13, |day| day % 7 != 6)), of("2024-01-14", 7, 1));
        assert_eq!(pace(&days(34, |day| day % 7 != 6 && day != 10)), of("2024-02-05", 6, 1));
        assert_eq!(pace(&days(41, |day| (1..6).contains(&(day % 7)))), of("2024-02-13", 5, 0));
        // From Monday to Thursday; on Mondays, Wednesdays and Fridays; on weekends; and on Mondays alone, a step of a week.
        assert_eq!(pace(&days(32, |day| day % 7 < 4)), of("2024-02-05", 4, 0));
        assert_eq!(pace(&days(33, |day| [0, 2, 4].contains(&(day % 7)))), of("2024-02-05", 3, 0));
        assert_eq!(pace(&days(42, |day| day % 7 > 4)), of("2024-02-17", 2, 0));
        assert_eq!(pace(&days(42, |day| day % 7 == 0)), of("2024-02-12", 52, 0));
        // Days with some missing, on any weekday.
        assert_eq!(pace(&days(60, |day| day % 10 != 3)), of("2024-03-01", 7, 6));
        assert_eq!(pace(&days(60, |day| day != 30)), of("2024-03-01", 7, 1));
    }

    #[test]
    fn months_go_on_as_months_behind_a_gap() {
        let cells = ["2024-01-31", "2024-02-29", "2024-03-31", "2024-06-30", "2024-07-31"];
        let (clock, all) = times(&cells);
        assert_eq!((next(&cells).0[0].as_str(), next(&cells).1, clock.pace(&all).unwrap().n_longer), ("2024-08-31", 12, 1));
        // Not the same for most steps, and not a multiple.
        assert_eq!(next(&["2024-01-15", "2024-02-15", "2024-07-15"]).1, 0);
        assert_eq!(next(&["2024-01-15", "2024-04-15", "2024-07-15", "2024-08-15"]).1, 0);
    }

    #[test]
    fn the_first_and_the_last_weekdays_of_months_go_on_as_such() {
        let owned = |next: [&str; 2]| next.map(str::to_owned).to_vec();
        let pace = |cells: &[&str]| {
            let (clock, times) = times(cells);
            let Pace { n_longer, n_off, .. } = clock.pace(&times).unwrap();
            let (next, season) = next(cells);
            (next, season, n_longer, n_off)
        };
        let ends = ["2024-01-31", "2024-02-29", "2024-03-29", "2024-04-30", "2024-05-31"];
        assert_eq!(pace(&ends), (owned(["2024-06-28", "2024-07-31"]), 12, 0, 0));
        assert_eq!(pace(&[&ends[..2], &ends[3..], &["2024-06-28"]].concat()), (owned(["2024-07-31", "2024-08-30"]), 12, 1, 0));
        // The last row before a holiday.
        let holiday = ["2023-11-30", "2023-12-29", "2024-01-31", "2024-02-29", "2024-03-28"];
        assert_eq!(pace(&holiday), (owned(["2024-04-30", "2024-05-31"]), 12, 0, 1));
        let firsts = ["2024-01-02", "2024-02-01", "2024-03-01", "2024-04-01", "2024-05-01", "2024-06-03"];
        assert_eq!(pace(&firsts), (owned(["2024-07-01", "2024-08-01"]), 12, 0, 1));
        // Of quarters and of years, and at a time of day.
        let quarters = ["2024-03-29", "2024-06-28", "2024-09-30", "2024-12-31"];
        assert_eq!(pace(&quarters), (owned(["2025-03-31", "2025-06-30"]), 4, 0, 0));
        let years = ["2019-12-31", "2020-12-31", "2021-12-31", "2022-12-30"];
        assert_eq!(pace(&years), (owned(["2023-12-29", "2024-12-31"]), 0, 0, 0));
        let closes = ["2024-03-29 17:30", "2024-04-30 17:30", "2024-05-31 17:30"];
        assert_eq!(pace(&closes), (owned(["2024-06-28 17:30", "2024-07-31 17:30"]), 12, 0, 0));
        // A Saturday, which no rule of weekdays has.
        assert_eq!(pace(&[&ends[..4], &["2024-06-01"]].concat()).1, 0);
    }

    #[test]
    fn rows_on_any_day_of_every_month_are_months_and_fewer_are_not() {
        let cells = ["2024-01-14", "2024-02-15", "2024-03-13", "2024-04-16", "2024-05-14", "2024-06-30", "2024-07-31"];
        assert_eq!(next(&cells), (["2024-08-31", "2024-09-30"].map(str::to_owned).to_vec(), 12));
        assert_eq!((next(&cells[..6]).1, next(&cells[..5]).1), (12, 0));
        let gap = [&cells[..3], &cells[4..], &["2024-08-03"]].concat();
        assert_eq!(next(&gap).1, 0);
        // Equal steps that pass through every month are as they were.
        let equal = days(187, |day| day % 31 == 0);
        assert_eq!((equal.len(), Clock::DATE.step(&of_days(&equal))), (7, Some(Step::Time(31.0 * DAY))));
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
        // Open days up to a Thursday: without an earlier holiday, and with one.
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
        // Local midnights, which are at another hour of UTC in summer.
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
        // A holiday may move the last weekday of a month, and no month is left out.
        let ends = ["2023-11-30", "2023-12-29", "2024-01-31", "2024-02-29"];
        assert_eq!(found(&ends, &["2024-03-28", "2024-04-30"]), None);
        assert_eq!(found(&ends, &["2024-03-29", "2024-05-31"]), owned(["2024-05-31", "2024-04-30"]));
        assert_eq!(found(&["2024-01-04", "2024-01-05", "2024-01-08"], &["2024-01-09"]), None);
        assert_eq!(found(&["2024-01-01", "2024-01-02"], &["2024-01-05"]), owned(["2024-01-05", "2024-01-03"]));
        // Uneven: twice the longest gap.
        assert_eq!(found(&["1", "2", "5"], &["11", "12"]), None);
        assert_eq!(found(&["1", "2", "5"], &["6", "13"]), owned(["13", "12"]));
        assert_eq!(found(&["0.1", "0.2", "0.3"], &["0.4", "0.5"]), None);
        assert_eq!(found(&["7"], &["100"]), None);
    }
}
