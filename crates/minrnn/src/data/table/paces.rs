//! What the times of series say about their steps: the usual season, and where rows are missing.

use minrnn_model::{Missing, TableTask};

use super::pace::Pace;
use super::series::Series;
use super::step::{MonthDay, Step};

/// What a row inserted for a missing time has, in a table to forecast.
pub(super) const NO_TARGET: &str = "an empty target";
/// The same in a table whose sequences are labelled.
const NO_VALUES: &str = "empty values";

/// The paces of series.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Paces {
    /// The pace and the number of rows of each series with times.
    all: Vec<(Pace, usize)>,
}

impl Paces {
    pub fn of(series: &[Series]) -> Self {
        Self { all: series.iter().filter_map(|series| Some((series.clock.pace(&series.times)?, series.len()))).collect() }
    }

    /// The usual season for most rows; in a tie the shorter one; 0 without times.
    pub fn season(&self) -> usize {
        let mut seasons: Vec<usize> = self.all.iter().map(|(pace, _)| pace.step.season()).collect();
        seasons.sort_unstable();
        seasons.dedup();
        seasons.into_iter().rev().max_by_key(|&season| self.rows_of(season)).unwrap_or(0)
    }

    fn rows_of(&self, season: usize) -> usize {
        self.all.iter().filter(|(pace, _)| pace.step.season() == season).map(|(_, rows)| rows).sum()
    }

    /// A sentence if the season is not the usual one of all series.
    pub fn mixture(&self) -> Option<String> {
        let season = self.season();
        let mut others: Vec<usize> = self.all.iter().map(|(pace, _)| pace.step.season()).filter(|&other| other != season).collect();
        let (n, n_own) = (self.all.len(), self.all.len() - others.len());
        others.sort_unstable();
        others.dedup();
        let all: usize = self.all.iter().map(|(_, rows)| rows).sum();
        let share = 100.0 * self.rows_of(season) as f64 / all.max(1) as f64;
        let others = others.iter().map(|other| if *other < 2 { "none".to_owned() } else { format!("{other} steps") });
        let others = others.reduce(|others, other| others + ", " + &other)?;
        let taken = if season < 2 { "no season".to_owned() } else { format!("a season of {season} steps") };
        Some(format!(
            "sequences of different paces: {taken} is taken for all, the usual one of {n_own} of {n} sequences with {share:.0} % of the rows, \
             and that of others is {others}; learn each pace from a table of its own, or choose the season"
        ))
    }

    /// Sentences about where steps are longer than usual or of no usual length, if anywhere, and what that means for a model with this
    /// season; an inserted row has `unknown`.
    pub fn gaps(&self, season: usize, missing: Missing, unknown: &str) -> Option<String> {
        let [even, uneven] = [true, false].map(|is_usual| self.all.iter().filter(move |(pace, _)| pace.is_usual == is_usual));
        let (longer, all) = even.clone().fold((0usize, 0usize), |(longer, all), (pace, rows)| (longer + pace.n_longer, all + rows - 1));
        let mut names = even.filter(|(pace, _)| pace.n_longer > 0).map(|(pace, _)| pace.step.name());
        let in_season = if season < 2 { String::new() } else { format!(", and a season of {season} steps is {season} rows") };
        let with_gaps = names.next().map(|name| {
            let usual = if names.all(|other| other == name) { format!("than the usual {name}") } else { "than usual".to_owned() };
            let are = if longer == 1 { "is" } else { "are" };
            let and = if missing.is_error() { ", with missing = mask," } else { "" };
            format!(
                "{longer} of {all} steps {are} longer {usual}: rows are read one after the other{in_season}; insert rows with {unknown}{and} where \
                 time should pass"
            )
        });
        let n_uneven = uneven.count();
        let without_pace = (n_uneven > 0)
            .then(|| format!("the steps{} have no usual length: rows are read one after the other{in_season}", self.share(n_uneven)));
        with_gaps.into_iter().chain(without_pace).reduce(|all, sentence| all + "\n" + &sentence)
    }

    /// Sentences about where forecasts continue otherwise than the dates before them, if anywhere.
    pub fn continuation(&self) -> Vec<String> {
        let of_week = [MonthDay::FirstWeekday, MonthDay::LastWeekday].map(|day| self.moved(day));
        [self.evened(), self.without_rule(), self.varying()].into_iter().chain(of_week).flatten().collect()
    }

    /// A sentence if they continue in equal steps although the dates, such as the 1st and 15th of every month, do not.
    fn evened(&self) -> Option<String> {
        // An hour by which a clock is put back does not count.
        let is_uneven = |pace: &Pace, rows: usize| pace.is_usual && pace.n_longer == 0 && pace.is_uneven(rows);
        let mut names =
            self.all.iter().filter(|(pace, rows)| is_of_dates(pace) && is_uneven(pace, *rows)).map(|(pace, _)| pace.step.name());
        let (n, name) = (names.clone().count(), names.next()?);
        let usual = if names.all(|other| other == name) { format!("the usual {name}") } else { "usual".to_owned() };
        Some(format!("many steps{} are not as long as {usual}: forecasts go on in equal steps of that length", self.share(n)))
    }

    /// A sentence if they continue in equal steps although none is usual.
    fn without_rule(&self) -> Option<String> {
        let mut names = self.all.iter().filter(|(pace, _)| is_of_dates(pace) && !pace.is_usual).map(|(pace, _)| pace.step.name());
        let (n, name) = (names.clone().count(), names.next()?);
        let length = if names.all(|other| other == name) { format!("length, {name}") } else { "length of each".to_owned() };
        Some(format!("the dates{} follow no usual rule: forecasts go on in equal steps of the middle {length}", self.share(n)))
    }

    /// A sentence if they continue on the day of the last row although that of the others is another one.
    fn varying(&self) -> Option<String> {
        let n = self.all.iter().filter(|(pace, _)| matches!(pace.step, Step::Months { day: MonthDay::Varying, .. })).count();
        (n > 0).then(|| {
            let of = self.share(n);
            format!("the day of the month varies{of}: forecasts go on with that of the last row, or with the last day of a shorter month")
        })
    }

    /// A sentence if dates that are mostly on `day`, the first or the last weekday of their month, are on others.
    fn moved(&self, day: MonthDay) -> Option<String> {
        let is_of = |pace: &Pace| matches!(pace.step, Step::Months { day: own, .. } if own == day);
        let of_day = self.all.iter().filter(|(pace, _)| is_of(pace));
        let (n, rows) = of_day.fold((0usize, 0usize), |(n, rows), (pace, more)| (n + pace.n_off, rows + more));
        let (name, are) = (day.of_week()?, if n == 1 { "is" } else { "are" });
        (n > 0).then(|| format!("{n} of {rows} dates {are} not on the {name} of the month: forecasts go on with that day"))
    }

    /// Of how many sequences something is told, if there are several.
    fn share(&self, n: usize) -> String {
        if self.all.len() == 1 { String::new() } else { format!(" of {n} of {} sequences", self.all.len()) }
    }
}

/// Whether the steps are parts of the calendar that no rule names.
fn is_of_dates(pace: &Pace) -> bool {
    matches!(pace.step, Step::Time(_))
}

/// Where steps of a table's sequences are longer than usual, or have no usual length, and what that means for the model of `task`, one
/// sentence per line; `None` if all are even, or there is no time column.
pub fn gaps(series: &[Series], task: &TableTask) -> Option<String> {
    let (season, unknown) = match task {
        TableTask::Forecast(forecaster) => (forecaster.season, NO_TARGET),
        TableTask::Classify(_) | TableTask::Regress(_) => (0, NO_VALUES),
    };
    Paces::of(series).gaps(season, task.missing(), unknown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::table::clock::DAY;
    use crate::data::table::{Clock, Values};

    /// A series at these times, in the format `clock`.
    fn series(clock: Clock, times: &[f64]) -> Series {
        let (values, to_come) = (vec![1.0; times.len()].into(), Values::default());
        Series { name: "a".to_owned(), values, width: 1, times: times.to_vec().into(), clock, to_come, usual_step: None }
    }

    /// `n` steps of `step` days, without those in `gaps`.
    fn days(n: usize, step: f64, gaps: &[usize]) -> Series {
        let times: Vec<f64> = (0..n).filter(|at| !gaps.contains(at)).map(|at| at as f64 * step * DAY).collect();
        series(Clock::DATE, &times)
    }

    #[test]
    fn the_season_is_that_of_most_rows() {
        let of = |n_daily: usize, n_weekly: usize| {
            let mut all = vec![days(365, 1.0, &[]); n_daily];
            all.resize(n_daily + n_weekly, days(110, 7.0, &[]));
            let paces = Paces::of(&all);
            (paces.season(), paces.mixture())
        };
        let (season, told) = of(30, 30);
        assert_eq!(season, 7);
        assert_eq!(
            told.unwrap(),
            "sequences of different paces: a season of 7 steps is taken for all, the usual one of 30 of 60 sequences with 77 % of the rows, and \
             that of others is 52 steps; learn each pace from a table of its own, or choose the season"
        );
        assert_eq!((of(1, 8).0, of(3, 0), of(0, 2), of(0, 0)), (52, (7, None), (52, None), (0, None)));
        // In a tie of rows the shorter season, where no season counts as one.
        assert_eq!(Paces::of(&[days(100, 7.0, &[]), days(100, 1.0, &[])]).season(), 7);
        let none = Paces::of(&[days(100, 2.0, &[]), days(10, 1.0, &[])]);
        assert!(none.season() == 0 && none.mixture().unwrap().contains("no season is taken for all"));
    }

    #[test]
    fn gaps_are_counted_and_named() {
        let of = |all: &[Series], season, missing| Paces::of(all).gaps(season, missing, NO_TARGET);
        assert_eq!(of(&[days(60, 1.0, &[]), days(20, 7.0, &[])], 7, Missing::Error), None);
        assert_eq!(
            of(&[days(60, 1.0, &[5, 30, 31]), days(40, 1.0, &[])], 7, Missing::Error).unwrap(),
            "2 of 95 steps are longer than the usual day: rows are read one after the other, and a season of 7 steps is 7 rows; insert rows with an \
             empty target, with missing = mask, where time should pass"
        );
        let told = of(&[days(60, 1.0, &[5]), days(40, 7.0, &[])], 0, Missing::Mask).unwrap();
        assert_eq!(
            told,
            "1 of 97 steps is longer than the usual day: rows are read one after the other; insert rows with an empty target where time should pass"
        );
        assert!(
            of(&[days(60, 1.0, &[5]), days(40, 7.0, &[5])], 0, Missing::Mask).unwrap().contains("2 of 96 steps are longer than usual:")
        );
        let labelled = Paces::of(&[days(60, 1.0, &[5])]).gaps(0, Missing::Error, NO_VALUES).unwrap();
        assert!(labelled.ends_with("; insert rows with empty values, with missing = mask, where time should pass"), "{labelled}");
        let uneven = series(Clock::Number, &[1.0, 2.0, 5.0, 11.0, 30.0]);
        assert_eq!(of(&[uneven], 0, Missing::Mask).unwrap(), "the steps have no usual length: rows are read one after the other");
        assert_eq!(of(&[series(Clock::Number, &[])], 0, Missing::Error), None);
    }

    #[test]
    fn dates_that_follow_another_rule_are_forecast_in_equal_steps_which_is_told() {
        let halves: Vec<f64> = (0..24)
            .map(|at| format!("2024-{:02}-{:02}", 1 + at / 2, [1, 15][at % 2]))
            .map(|date| Clock::DATE.read(&date).unwrap())
            .collect();
        let halves = series(Clock::DATE, &halves);
        let told = |all: &[Series]| Paces::of(all).continuation();
        assert_eq!(
            told(std::slice::from_ref(&halves)),
            ["many steps are not as long as the usual 2 weeks: forecasts go on in equal steps of that length"]
        );
        let among = told(&[halves, days(60, 1.0, &[])]).concat();
        assert!(among.starts_with("many steps of 1 of 2 sequences are not as long as the usual 2 weeks:"), "{among}");
        // Gaps are reported as such, and a day that is an hour longer is still a day.
        let put_back: Vec<f64> = (0..60).map(|at| at as f64 * DAY + if at > 30 { 3_600_000.0 } else { 0.0 }).collect();
        for even in [
            days(60, 1.0, &[5, 30]),
            days(40, 14.0, &[]),
            series(Clock::DATE, &put_back),
            series(Clock::Number, &[1.0, 2.0, 3.5, 4.5, 6.0]),
        ] {
            assert_eq!(told(&[even]), Vec::<String>::new());
        }
    }

    #[test]
    fn dates_without_a_rule_or_beside_one_are_told_with_what_forecasts_go_on_with() {
        let dated = |dates: &[&str]| {
            let times: Vec<f64> = dates.iter().map(|date| Clock::DATE.read(date).unwrap()).collect();
            series(Clock::DATE, &times)
        };
        let told = |all: &[Series]| Paces::of(all).continuation();
        let visits = dated(&["2024-01-03", "2024-01-09", "2024-02-20", "2024-02-29", "2024-05-17"]);
        let without = "follow no usual rule: forecasts go on in equal steps of the middle length, 6 weeks";
        assert_eq!(told(std::slice::from_ref(&visits)), [format!("the dates {without}")]);
        assert_eq!(told(&[visits, days(60, 1.0, &[])]), [format!("the dates of 1 of 2 sequences {without}")]);
        let free = dated(&["2024-01-14", "2024-02-15", "2024-03-13", "2024-04-16", "2024-05-14", "2024-06-30"]);
        assert_eq!(
            told(&[free]),
            ["the day of the month varies: forecasts go on with that of the last row, or with the last day of a shorter month"]
        );
        // The last Friday of March 2024 was a holiday.
        let ends = ["2024-01-31", "2024-02-29", "2024-03-28", "2024-04-30", "2024-05-31", "2024-06-28"];
        assert_eq!(told(&[dated(&ends)]), ["1 of 6 dates is not on the last weekday of the month: forecasts go on with that day"]);
        let whole = [&ends[..2], &["2024-03-29"], &ends[3..]].concat();
        assert_eq!(told(&[dated(&whole)]), Vec::<String>::new());
        assert_eq!(Paces::of(&[dated(&whole)]).season(), 12);
        let gap = [&ends[..2], &ends[3..]].concat();
        let gaps = Paces::of(&[dated(&gap)]).gaps(12, Missing::Mask, NO_TARGET).unwrap();
        assert!(gaps.starts_with("1 of 4 steps is longer than the usual month: "), "{gaps}");
    }
}
