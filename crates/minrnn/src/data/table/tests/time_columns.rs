//! Which column holds the times, and what times decide.

use super::*;
use crate::data::SequenceTask;
use crate::data::table::clock::DAY;

/// Dates one week apart.
fn weeks(n: usize) -> Vec<String> {
    (0..n).map(|week| Clock::DATE.write(week as f64 * 7.0 * DAY)).collect()
}

#[test]
fn a_season_that_the_times_tell_is_taken_where_a_sequence_is_longer_and_else_it_is_told() {
    let open = |n: usize, season: usize| {
        let rows: String = weeks(n).iter().enumerate().map(|(at, week)| format!("{week},{}\n", at % 5)).collect();
        let division = Division { time: TimeColumn::Found, validates: false, ..division(0.5) };
        let config = ForecastingConfig { season, division, ..forecasting(&["x"], 1) };
        let task = Forecasting::open(write_table(&format!("ds,x\n{rows}")).path(), &config).unwrap();
        let Some(TableTask::Forecast(found)) = task.table_task() else { panic!("expected a forecaster") };
        (found.season, task)
    };
    // Of 71 weeks 53 are learned from, of 70 one fewer, which is a season and nothing more.
    let (season, task) = open(71, 0);
    assert_eq!((season, task.understood()), (52, None));
    let (season, task) = open(70, 0);
    let told = "the season that is usual at the pace of the times, 52 steps, is not taken: the longest sequence has 52 steps to learn from, expected \
                more than a season; forecasts are compared with the last value; give longer sequences, or choose a shorter season";
    assert_eq!((season, task.understood()), (0, Some(told)));
    task.expect_to_begin().unwrap();
    // A season that is asked for is taken.
    let (season, task) = open(70, 52);
    assert_eq!((season, task.understood()), (52, None));
    task.expect_to_begin().unwrap_err();
    assert_eq!(open(70, 13).0, 13);
}

#[test]
fn a_column_that_alone_holds_dates_is_that_of_times() {
    let rows = |dates: &[String]| dates.iter().enumerate().map(|(i, date)| format!("{date},{}\n", i % 3)).collect::<String>();
    let weeks = &weeks(90);
    let open = |text: &str, layout| {
        let target: &[&str] = if layout == LayoutChoice::WideColumns { &[] } else { &["x"] };
        let division = Division { time: TimeColumn::Found, layout, validates: false, ..division(0.7) };
        let config = ForecastingConfig { division, ..forecasting(target, 1) };
        let file = write_table(text);
        let task = Forecasting::open(file.path(), &config).unwrap();
        let Some(TableTask::Forecast(found)) = task.description().map(|value| TableTask::from_json(value, 1, 1).unwrap()) else { panic!() };
        (found.time, found.season, task.understood().map(str::to_owned))
    };
    let (time, season, told) = open(&format!("week,x\n{}", rows(weeks)), LayoutChoice::Auto);
    assert_eq!((time.as_deref(), season, told.as_deref()), (Some("week"), 52, Some("read with time = week, which holds dates")));
    let (time, _, told) = open(&format!("week,x\n{}", rows(weeks)), LayoutChoice::WideColumns);
    assert_eq!((time.as_deref(), told.unwrap().contains("with times in 'week'")), (Some("week"), true));
    // A column with a time's name comes first; of two that hold dates neither is taken; numbers are not dates.
    let other = |row: &str| row.replace(',', ",2001-01-01,");
    let (time, _, told) = open(&format!("ds,born,x\n{}", other(&rows(weeks))), LayoutChoice::Auto);
    assert_eq!((time.as_deref(), told), (Some("ds"), None));
    let (time, _, told) = open(&format!("week,born,x\n{}", other(&rows(weeks))), LayoutChoice::Auto);
    let in_order = |which: &str| Some(format!("no column of times was found{which}: rows are taken in the order of the file"));
    assert_eq!((time, told), (None, in_order(" (2 columns hold dates: week, born; choose one with time)")));
    let (time, _, told) = open(&format!("week,x\n{}", rows(&owned(&["1", "2", "3", "4", "5", "6", "7", "8"]))), LayoutChoice::Auto);
    assert_eq!((time, told), (None, in_order("")));
}

#[test]
fn a_forecast_whose_rows_are_taken_as_they_come_says_so_where_no_time_was_named_or_refused() {
    let rows: String = (0..12).map(|i| format!("{},2001-01-{:02},{}\n", ["a", "b"][i % 2], i + 1, i % 5)).collect();
    let file = write_table(&format!("id,day,x\n{rows}"));
    let first_told = |time: TimeColumn| {
        let division = Division { time, validates: false, ..division(0.5) };
        let config = ForecastingConfig { group: Some("id".to_owned()), division, ..forecasting(&["x"], 1) };
        let task = Forecasting::open(file.path(), &config).unwrap();
        task.understood().and_then(|told| told.lines().next()).unwrap_or_default().to_owned()
    };
    assert_eq!(first_told(TimeColumn::Found), "read with time = day, which holds dates");
    for time in [TimeColumn::None, TimeColumn::Named("day".to_owned())] {
        assert!(!first_told(time).contains("no column of times"));
    }
    let plain = write_table("id,x\na,1\na,2\na,3\na,1\na,2\na,4\n");
    let config = ForecastingConfig {
        group: Some("id".to_owned()),
        division: Division { time: TimeColumn::Found, validates: false, ..division(0.5) },
        ..forecasting(&["x"], 1)
    };
    let task = Forecasting::open(plain.path(), &config).unwrap();
    assert_eq!(task.understood(), Some("no column of times was found: rows are taken in the order of the file"));
}

#[test]
fn two_rows_of_a_time_are_told_with_how_far_times_are_told_apart_where_they_may_differ() {
    let config = ForecastingConfig { division: Division { time: TimeColumn::Found, ..division(0.5) }, ..forecasting(&["x"], 1) };
    let refused = |[before, time]: [&str; 2]| {
        let file = write_table(&format!("ds,x\n{before},1\n{time},2\n"));
        Forecasting::open(file.path(), &config).unwrap_err().to_string()
    };
    let plain = "expected one; if it has several sequences, name what tells them apart with group";
    let cut = "group; times are told apart to the microsecond: write finer ones as whole numbers, counted from the first row on";
    let large = "group; numbers are told apart up to 2^53: count larger ones from the first row on";
    for (times, end) in [
        (["2024-01-01", "2024-01-01"], plain),
        (["7", "7.0"], plain),
        (["2024-01-01 10:00:00.5", "2024-01-01 10:00:00.500"], plain),
        (["2024-01-01 10:00:00.0000001", "2024-01-01 10:00:00.0000002"], cut),
        (["9007199254740992", "9007199254740993"], large),
    ] {
        let sentence = refused(times);
        assert!(sentence.contains("has two rows of the time") && sentence.ends_with(end), "{sentence}");
    }
}

#[test]
fn times_put_rows_in_order_and_go_on() {
    let file = write_table("ds,id,x\n2024-03,a,3\n2024-01,a,1\n2024-02,a,2\n2024-04,a,4\n2024-05,a,5\n2024-01,b,9\n2024-02,b,8\n");
    let config = ForecastingConfig {
        group: Some("id".to_owned()),
        division: Division { time: TimeColumn::Found, ..division(0.5) },
        ..forecasting(&["x"], 1)
    };
    let task = Forecasting::open(file.path(), &config).unwrap();
    let Some(TableTask::Forecast(forecaster)) = task.description().map(|value| TableTask::from_json(value, 1, 1).unwrap()) else {
        panic!()
    };
    assert_eq!(forecaster.time.as_deref(), Some("ds"));
    let task = TableTask::Forecast(forecaster);
    // A single step continues like the others, on its own day.
    let alone = read_series(&task, write_table("ds,id,x\n2024-01-01,a,3\n2024-02-01,a,1\n2024-04-15,new,7\n").path()).unwrap();
    assert_eq!((alone[1].len(), alone[1].next_times(2).unwrap()), (1, owned(&["2024-05-15", "2024-06-15"])));
    // Like most rows, not like the first sequence.
    let mixed = "ds,id,x\n2024-01-01,a,3\n2024-02-01,a,1\n2024-04-15,new,7\n2024-03-01,b,1\n2024-03-02,b,1\n2024-03-03,b,1\n";
    let alone = read_series(&task, write_table(mixed).path()).unwrap();
    assert_eq!(alone[1].next_times(2).unwrap(), owned(&["2024-04-16", "2024-04-17"]));
    let alone = read_series(&task, write_table("ds,id,x\n2024-04,new,7\n").path()).unwrap();
    assert_eq!((alone[0].len(), alone[0].next_times(2)), (1, None));
    let series = read_series(&task, file.path()).unwrap();
    assert_eq!(
        (&series[0].values, series[0].next_times(2).unwrap()),
        (&vec![1.0, 2.0, 3.0, 4.0, 5.0].into(), owned(&["2024-06", "2024-07"]))
    );
    let refused = |text: &str| Forecasting::open(write_table(text).path(), &config).unwrap_err().to_string();
    assert!(refused("ds,id,x\n2024-01,a,3\n2024-01,a,1\n2024-02,a,2\n").contains("the sequence 'a' has two rows of the time 2024-01"));
    assert!(refused("ds,id,x\n2024-01,a,3\nlater,a,1\n").contains("the column 'ds' holds 'later'"));
    // The test file continues the training file, or is refused.
    let open = |text: &str| {
        let test = write_table(text);
        Forecasting::open(
            file.path(),
            &ForecastingConfig {
                division: Division { test: Some(test.path().to_owned()), validates: false, ..config.division.clone() },
                ..config.clone()
            },
        )
        .map(drop)
    };
    open("id,x,ds\na,7,2024-07\na,6,2024-06\n").unwrap();
    assert!(open("id,x,ds\na,6,2024-05\n").unwrap_err().to_string().contains("two rows of the time 2024-05"));
    assert!(open("id,x,ds\na,6,2023-05\n").unwrap_err().to_string().contains("goes on with 2023-05 after 2024-05"));
    // Only one file has times, in a column that was not named.
    let lacking = open("id,x\na,6\na,7\n").unwrap_err().to_string();
    assert!(lacking.contains("it has no column of times, and the training file has one; give both one of the same name"), "{lacking}");
    let plain = write_table("id,x\na,3\na,1\na,2\n");
    let dated = write_table("id,x,ds\na,6,2024-06\n");
    let with_times = Division { test: Some(dated.path().to_owned()), validates: false, ..config.division.clone() };
    let lacking = Forecasting::open(plain.path(), &ForecastingConfig { division: with_times, ..config.clone() }).unwrap_err().to_string();
    assert!(lacking.contains("it has a column of times, and the training file has none; give both one of the same name"), "{lacking}");
    // A column asked for as input is not a time column.
    let read = ForecastingConfig {
        columns: owned(&["x", "time"]),
        division: Division { time: TimeColumn::Found, ..division(0.5) },
        ..forecasting(&["x"], 1)
    };
    let numbers = write_table("time,x\n1,1\n0,2\n1,3\n0,4\n1,5\n0,6\n");
    assert_eq!(Forecasting::open(numbers.path(), &read).unwrap().reads(), crate::data::IoKind::Values { width: 2 });
}
