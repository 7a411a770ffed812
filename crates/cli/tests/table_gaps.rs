//! Tables with gaps: values that are missing, rows that are missing, and series of different paces.

mod common;

use std::collections::HashMap;
use std::fmt::Write;
use std::fs;

use common::{Finished, Scratch, minrnn, shown, train_table};
use serde_json::Value;

const FORECAST: [&str; 6] = ["--task", "forecast", "--group", "id", "--target", "x"];

fn train(scratch: &Scratch, table: &str, args: &[&str]) -> (Finished, String) {
    train_table(scratch, "table.csv", table, args, &[])
}

fn predict(scratch: &Scratch, run: &str, table: &str, more: &[&str]) -> Finished {
    let data = shown(&scratch.write("other.csv", table));
    Finished::of(minrnn(&["predict", run, "--data", &data]).args(more))
}

/// A day of 2024, from 0 on.
fn date(mut day: usize) -> String {
    let (lengths, mut month) = ([31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], 0);
    while day >= lengths[month] {
        day -= lengths[month];
        month += 1;
    }
    format!("2024-{:02}-{:02}", month + 1, day + 1)
}

/// The numbers after the first two cells of a line.
fn numbers(line: &str) -> Vec<f64> {
    line.split(',').skip(2).map(|cell| cell.parse().unwrap()).collect()
}

#[test]
fn values_that_are_missing_at_the_end_leave_forecasts_at_the_last_level() {
    let scratch = Scratch::new();
    let value = |level: f64, t: usize| level * (1.0 + 0.02 * (t % 7) as f64);
    let table = (0..120).fold("id,x\n".to_owned(), |table, t| table + &format!("low,{}\nhigh,{}\n", value(10.0, t), value(1000.0, t)));
    let with_gap = |name: &str, level: f64, gap: usize| {
        let cell = |t: usize| if t < 100 - gap { value(level, t).to_string() } else { String::new() };
        (0..100).fold(String::new(), |rows, t| rows + &format!("{name},{}\n", cell(t)))
    };
    for missing in ["forward-fill", "mask"] {
        let args = [&FORECAST[..], &["--missing", missing, "--horizon", "3", "--season", "7"]].concat();
        let (finished, run) = train(&scratch, &table, &args);
        finished.ok();
        let gaps = || (0..=20).chain([40, 62, 63]);
        let rows = |gap: usize| with_gap(&format!("low-{gap}"), 10.0, gap) + &with_gap(&format!("high-{gap}"), 1000.0, gap);
        let all = gaps().fold("id,x\n".to_owned(), |all, gap| all + &rows(gap));
        let predicted = predict(&scratch, &run, &all, &[]).ok();
        assert_eq!((predicted.stdout.lines().count(), predicted.stderr.as_str()), (1 + 3 * 2 * gaps().count(), ""));
        let mut at_once: HashMap<&str, Vec<f64>> = HashMap::new();
        for line in predicted.stdout.lines().skip(1) {
            let name = line.split(',').next().unwrap();
            let level = if name.starts_with("low") { 10.0 } else { 1000.0 };
            assert!((0.7..1.5).contains(&(numbers(line)[0] / level)), "{missing}: {line}");
            at_once.entry(name).or_default().extend(numbers(line));
        }
        // Row by row the result is the same.
        let streamed = Finished::of(minrnn(&["stream", &run]).stdin(fs::File::open(scratch.path("other.csv")).unwrap())).ok().stdout;
        let last: HashMap<&str, Vec<f64>> = streamed.lines().skip(1).map(|line| (line.split(',').nth(1).unwrap(), numbers(line))).collect();
        assert_eq!(last.len(), at_once.len());
        for (name, expected) in &at_once {
            let found = &last[name];
            let is_same = found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-3 * b.abs());
            assert!(is_same, "{missing}, {name}: {found:?} {expected:?}");
        }
        // It is reported where nothing is known any more.
        let told = |names: &[&str]| {
            let all = names.iter().fold("id,x\n".to_owned(), |all, name| all + &with_gap(name, 10.0, 64));
            predict(&scratch, &run, &(all + &with_gap("known", 10.0, 63)), &[]).ok().stderr
        };
        let rest = "no known value of 'x' in the last 64 rows: forecast at the level of the whole table\n";
        assert_eq!(told(&["a"]), format!("the sequence 'a' has {rest}"));
        assert_eq!(told(&["a", "b"]), format!("2 of 3 sequences, such as 'a', have {rest}"));
    }
}

/// A shop with offers at these times, the last four of which are to come: its history and the rows to come.
fn shop(times: &[usize]) -> (String, String) {
    let (mut history, mut future) = ("id,day,offer,x\n".to_owned(), "id,day,offer\n".to_owned());
    for (at, time) in times.iter().enumerate() {
        let offer = u8::from(at % 3 == 0);
        match at + 4 < times.len() {
            true => writeln!(history, "s,{time},{offer},{}", 10 + at % 7).unwrap(),
            false => writeln!(future, "s,{time},{offer}").unwrap(),
        }
    }
    (history, future)
}

#[test]
fn rows_to_come_follow_the_history_or_are_refused() {
    let scratch = Scratch::new();
    let (history, future) = shop(&(0..204).collect::<Vec<usize>>());
    let args = [&FORECAST[..], &["--time", "day", "--horizon", "4", "--known-ahead", "offer"]].concat();
    let (finished, run) = train(&scratch, &history, &args);
    finished.ok();
    let with = |history: &str, future: &str| {
        let future = shown(&scratch.write("future.csv", future));
        predict(&scratch, &run, history, &["--future", &future])
    };
    let gap = history.replace("s,50,0,11\n", "");
    assert!(gap.len() < history.len());
    let late = shop(&(0..200).chain(201..205).collect::<Vec<usize>>()).1;
    for history in [&history, &gap] {
        let predicted = with(history, &future).ok();
        let starts = ["id,day,step,x,", "s,200,1,", "s,201,2,", "s,202,3,", "s,203,4,"];
        assert_eq!(predicted.stdout.lines().count(), starts.len(), "{predicted:?}");
        assert!(predicted.stdout.lines().zip(starts).all(|(line, start)| line.starts_with(start)), "{predicted:?}");
        with(history, &late).refused(&["have the time 201, expected 200", "must follow its last, 199, without a gap"]);
    }
    assert!(with(&gap, &future).ok().stderr.contains("1 of 198 steps is longer than the usual step of 1: "));
    // If no step is usual, the times are those of the rows to come.
    let (uneven, to_come) = shop(&(0..204).map(|at| at * at).collect::<Vec<usize>>());
    let predicted = with(&uneven, &to_come).ok();
    assert!(predicted.stderr.contains("the steps have no usual length"), "{predicted:?}");
    let times: Vec<&str> = predicted.stdout.lines().skip(1).map(|line| line.split(',').nth(1).unwrap()).collect();
    assert_eq!(times, ["40000", "40401", "40804", "41209"]);
}

#[test]
fn rows_that_are_missing_are_told_where_the_table_is_read() {
    let scratch = Scratch::new();
    let table = |cell: &dyn Fn(usize) -> Option<String>| {
        let rows = (0..60).filter_map(|day| Some(format!("a,{},{}\n", date(day), cell(day)?)));
        rows.fold("id,ds,x\n".to_owned(), |table, row| table + &row)
    };
    let is_there = |day: usize| day != 20 && day != 40;
    let with_gaps = table(&|day| is_there(day).then(|| (day % 5).to_string()));
    let told = "2 of 57 steps are longer than the usual day: rows are read one after the other, and a season of 7 steps is 7 rows; insert rows with an \
                empty target";
    let (finished, run) = train(&scratch, &with_gaps, &FORECAST);
    let trained = finished.ok();
    assert!(trained.stderr.contains(&format!("{told}, with missing = mask, where time should pass\n")), "{trained:?}");
    let predicted = predict(&scratch, &run, &with_gaps, &[]).ok();
    assert!(predicted.stderr.contains(told) && predicted.stdout.lines().nth(1).unwrap().starts_with("a,2024-03-01,1,"), "{predicted:?}");
    // If rows are there whose value is missing, there is nothing to report.
    let filled = table(&|day| Some(if is_there(day) { (day % 5).to_string() } else { String::new() }));
    let (finished, run) = train(&scratch, &filled, &[&FORECAST[..], &["--missing", "mask"]].concat());
    let trained = finished.ok();
    assert!(!trained.stderr.contains("longer than"), "{trained:?}");
    assert_eq!(predict(&scratch, &run, &filled, &[]).ok().stderr, "");
    assert!(predict(&scratch, &run, &with_gaps, &[]).ok().stderr.contains(&format!("{told} where time should pass\n")));
}

#[test]
fn rows_that_are_missing_are_told_of_sequences_with_labels() {
    let scratch = Scratch::new();
    let rows = (0..20).flat_map(|id| (0..12).map(move |day| (id, day))).filter(|&at| at != (0, 5));
    let row = |(id, day): (usize, usize)| format!("s{id},{},{},{}\n", ["up", "down"][id % 2], date(day), [day, 12 - day][id % 2]);
    let table = rows.fold("id,state,ds,x\n".to_owned(), |table, at| table + &row(at));
    let told = "1 of 219 steps is longer than the usual day: rows are read one after the other; insert rows with empty values, with missing = mask, \
                where time should pass\n";
    let (finished, run) = train(&scratch, &table, &["--task", "classify", "--group", "id", "--target", "state", "--time", "ds"]);
    let trained = finished.ok();
    assert!(trained.stderr.contains(told), "{trained:?}");
    assert_eq!(predict(&scratch, &run, &table, &[]).ok().stderr, told);
    let scored = Finished::of(&mut minrnn(&["eval", &run, "--data", &shown(&scratch.path("other.csv"))])).ok();
    assert!(scored.stderr.contains(told), "{scored:?}");
}

#[test]
fn a_season_that_the_times_tell_is_left_out_where_no_sequence_is_longer() {
    let scratch = Scratch::new();
    let weeks = (0..48).fold("id,ds,x\n".to_owned(), |table, week| table + &format!("a,{},{}\n", date(7 * week), 1 + week % 5));
    let (finished, run) = train(&scratch, &weeks, &FORECAST);
    let trained = finished.ok();
    let told = "the season that is usual at the pace of the times, 52 steps, is not taken: the longest sequence has";
    assert!(trained.stderr.contains(told) && trained.stdout.contains("beside last value:"), "{trained:?}");
    assert_eq!(season(&run), Some(0));
    let Finished { stderr, .. } = train(&scratch, &weeks, &[&FORECAST[..], &["--season", "5"]].concat()).0.ok();
    assert!(!stderr.contains("is not taken"), "{stderr}");
}

/// Steps of the season of a run's last checkpoint.
fn season(run: &str) -> Option<u64> {
    let task: Value = serde_json::from_slice(&fs::read(format!("{run}/checkpoints/iter-4/task.json")).unwrap()).unwrap();
    task["season"].as_u64()
}

#[test]
fn the_season_is_that_of_most_rows_and_a_mixture_is_told() {
    let scratch = Scratch::new();
    let mut table = "id,ds,x\n".to_owned();
    for at in 0..3 {
        (0..60).for_each(|day| writeln!(table, "daily{at},{},{}", date(day), day % 7).unwrap());
        (0..20).for_each(|week| writeln!(table, "weekly{at},{},{}", date(7 * week), week % 5).unwrap());
    }
    let (finished, run) = train(&scratch, &table, &FORECAST);
    let trained = finished.ok();
    let told =
        "a season of 7 steps is taken for all, the usual one of 3 of 6 sequences with 75 % of the rows, and that of others is 52 steps";
    assert!(season(&run) == Some(7) && trained.stderr.contains(told), "{trained:?}");
    let (finished, run) = train(&scratch, &table, &[&FORECAST[..], &["--season", "4"]].concat());
    let trained = finished.ok();
    assert!(season(&run) == Some(4) && !trained.stderr.contains("different paces"), "{trained:?}");
}

#[test]
fn a_column_of_steps_ahead_has_a_name_of_its_own() {
    let scratch = Scratch::new();
    let table = (0..40).fold("id,step,x\n".to_owned(), |table, at| table + &format!("a,{at},{}\n", at % 5));
    for (target, time, header) in [
        ("step", "", "id,step_ahead,step,step q0.1,step q0.9"),
        ("x", "step", "id,step,step_ahead,x,x q0.1,x q0.9"),
        ("x", "", "id,step,x,x q0.1,x q0.9"),
    ] {
        let (finished, run) = train(&scratch, &table, &["--task", "forecast", "--group", "id", "--target", target, "--time", time]);
        finished.ok();
        assert_eq!(predict(&scratch, &run, &table, &[]).ok().stdout.lines().next(), Some(header));
    }
}

#[test]
fn what_is_forecast_without_its_own_values_is_told() {
    let scratch = Scratch::new();
    let table = (0..40).fold("id,x,y\n".to_owned(), |table, at| table + &format!("a,{},{}\n", at % 5, at % 3));
    let told = "'x' is not among the columns that are read";
    for (columns, is_told) in [("y", true), ("x,y", false)] {
        let trained = train(&scratch, &table, &[&FORECAST[..], &["--columns", columns]].concat()).0.ok();
        assert_eq!(trained.stderr.contains(told), is_told, "{trained:?}");
    }
}

#[test]
fn columns_that_hold_no_numbers_can_be_left_out_in_training_alone() {
    let scratch = Scratch::new();
    let rows = (0..40).fold(String::new(), |rows, at| rows + &format!("s{},{},{at},fine\n", at / 2, ["up", "down"][at / 2 % 2]));
    let classify = ["--task", "classify", "--group", "id", "--target", "class"];
    train(&scratch, &format!("id,class,x,note\n{rows}"), &classify).0.refused(&[
        "line 2, column 'note': expected a finite number, found 'fine'; name the columns to read in columns",
        "at most 64 different ones: columns = x,note",
    ]);
    let (finished, run) =
        train(&scratch, &rows.replace(",fine", "").lines().fold("id,class,x\n".to_owned(), |t, row| t + row + "\n"), &classify);
    finished.ok();
    let refused = predict(&scratch, &run, "id,x\na,1\na,one\n", &[]);
    refused.refused(&["line 3, column 'x': expected a finite number, found 'one'"]);
    assert!(!refused.stderr.contains("read in columns"), "{refused:?}");
}
