//! Tables as they come: what is odd about them is learned from as the docs say, or is a sentence.

mod common;

use std::fmt::Write;

use common::{Finished, Scratch, minrnn, shown, train_table};

fn train(scratch: &Scratch, table: &str, args: &[&str], settings: &[&str]) -> (Finished, String) {
    train_table(scratch, "table.csv", table, args, settings)
}

const CLASSIFY: [&str; 6] = ["--task", "classify", "--group", "id", "--target", "class"];
const FORECAST: [&str; 6] = ["--task", "forecast", "--group", "id", "--target", "x"];

/// Two classes of sequences of four steps with a column x, and one that never changes.
fn classes(n: usize) -> String {
    let mut table = "id,class,x,still\n".to_owned();
    for at in 0..n {
        for step in 0..4 {
            writeln!(table, "s{at},{},{},7", ["up", "down"][at % 2], if at % 2 == 0 { step } else { -step }).unwrap();
        }
    }
    table
}

#[test]
fn a_column_that_never_changes_does_no_harm() {
    let scratch = Scratch::new();
    let (finished, _) = train(&scratch, &classes(20), &CLASSIFY, &[]);
    assert!(finished.ok().stdout.starts_with("test accuracy "));
    let still = (0..40).fold("id,x\n".to_owned(), |table, at| table + &format!("s{},5\n", at % 2));
    for scaling in ["auto", "standard", "mean", "log", "log1p"] {
        let (finished, run) = train(&scratch, &still, &FORECAST, &[&format!("scaling={scaling}")]);
        let told = "test mean absolute scaled error of x is left out, as no sequence has known values a season apart that differ";
        let scored = finished.ok().stdout;
        assert!(scored.contains(told) && scored.matches("scaled error").count() == 1, "nothing is known to scale by: {scored}");
        let predicted = Finished::of(&mut minrnn(&["predict", &run, "--data", &shown(&scratch.path("table.csv"))])).ok().stdout;
        assert!(!predicted.contains("NaN") && !predicted.contains("inf") && predicted.lines().count() == 3, "{scaling}: {predicted}");
    }
}

#[test]
fn what_cannot_be_learned_from_is_refused_by_name() {
    let scratch = Scratch::new();
    let refused = |table: &str, args: &[&str], parts: &[&str]| train(&scratch, table, args, &[]).0.refused(parts);
    refused("id,class,x\na,up,1\na,up,2\nb,up,1\nb,up,2\n", &CLASSIFY, &["the column 'class' has one value, 'up'"]);
    refused("id,class,x\na,up,1\na,up,2\n", &CLASSIFY, &["the column 'class' has one value, 'up'"]);
    refused("id,x\na,1\n", &FORECAST, &["the sequence 'a' has 1 step"]);
    refused("id,x\na,1\na,inf\na,2\n", &FORECAST, &["line 3, column 'x': expected a finite number, found 'inf'"]);
    refused("id,x\na,1\na,\na,2\n", &FORECAST, &["line 3, column 'x': the cell is empty", "missing = mask"]);
    let gaps = (0..20).fold("id,x\n".to_owned(), |table, _| table + "a,\n");
    let masked = [&FORECAST[..], &["--missing", "mask"]].concat();
    refused(&gaps, &masked, &["the column 'x' has no number in the part that is trained on"]);
    refused(
        "shop,ds,x\na,2024-01-01,1\nb,2024-01-01,2\n",
        &["--task", "forecast", "--target", "x"],
        &["two rows of the time 2024-01-01", "with group"],
    );
    refused(
        "id,ds,x\na,2024-01-01,1\na,2024-01-01,2\na,2024-01-02,2\n",
        &FORECAST,
        &["the sequence 'a' has two rows of the time 2024-01-01"],
    );
    refused("id,ds,x\na,monday,1\na,tuesday,2\n", &FORECAST, &["the column 'ds' holds no times: found 'monday'"]);
    refused("id,x\na,1\na,2\n", &[&FORECAST[..], &["--time", "when"]].concat(), &["there is no column 'when'"]);
    refused("id,x\na,1\na,2\n", &[&FORECAST[..], &["--quantiles", "0.1,0.9"]].concat(), &["quantiles must increase", "include 0.5"]);
    refused("id,x\na,1\na,2\n", &[&FORECAST[..], &["--quantiles", "-1,0.5"]].concat(), &["quantiles must increase", "found [-1.0, 0.5]"]);
    let limited = [&FORECAST[..], &["--memory-limit", "-5"]].concat();
    let (limited, _) = train(&scratch, "id,x\na,1\na,2\n", &limited, &[]);
    let is_told = ["'--memory-limit <SIZE>'", "found '-5'"].iter().all(|part| limited.stderr.contains(part));
    assert!(limited.code == Some(2) && is_told, "{limited:?}");
    let of_classes = [&CLASSIFY[..], &["--class-weights", "-1,2"]].concat();
    refused("id,class,x\na,up,1\na,down,2\n", &of_classes, &["class_weights must be", "found '-1'"]);
    for levels in ["0.5,0.99999999", "0.5,0.50000001"] {
        let args = [&FORECAST[..], &["--quantiles", levels]].concat();
        refused("id,x\na,1\na,2\n", &args, &["quantiles must increase between 0 and 1, also rounded to 32 bits"]);
    }
    refused("id,x\na,1\na,2\n", &[&FORECAST[..], &["--test", "nowhere.csv"]].concat(), &["nowhere.csv"]);
    refused("id,x\na,1\na,2\n", &[&FORECAST[..], &["--set", "patience=3"]].concat(), &["keep = best"]);
}

#[test]
fn series_of_different_paces_go_on_at_their_own() {
    let scratch = Scratch::new();
    let mut table = "id,ds,x\n".to_owned();
    for t in 0..24 {
        writeln!(table, "monthly,{}-{:02}-15,{}", 2020 + t / 12, t % 12 + 1, 10 + t % 12).unwrap();
        writeln!(table, "daily,2021-12-{:02},{}", t + 1, 20 + t % 7).unwrap();
    }
    let (finished, run) = train(&scratch, &table, &[&FORECAST[..], &["--horizon", "2"]].concat(), &[]);
    finished.ok();
    let predicted = Finished::of(&mut minrnn(&["predict", &run, "--data", &shown(&scratch.path("table.csv"))])).ok();
    let starts =
        ["id,ds,step,x,x q0.1,x q0.9", "monthly,2022-01-15,1,", "monthly,2022-02-15,2,", "daily,2021-12-25,1,", "daily,2021-12-26,2,"];
    assert_eq!(predicted.stdout.lines().count(), starts.len(), "{}", predicted.stdout);
    for (line, start) in predicted.stdout.lines().zip(starts) {
        assert!(line.starts_with(start), "{line}, expected {start}");
    }
    assert!(
        predicted.stderr.contains("1 of 2 sequences end before the newest (2021-12-24)")
            && predicted.stderr.contains("'monthly' from 2021-12-15 on")
    );
}

#[test]
fn files_may_have_their_columns_in_another_order_but_not_under_other_names() {
    let scratch = Scratch::new();
    let swapped = shown(&scratch.write("swapped.csv", "still,x,class,id\n7,0,up,a\n7,1,up,a\n7,0,down,b\n7,-1,down,b\n"));
    let (finished, run) = train(&scratch, &classes(20), &[&CLASSIFY[..], &["--test", &swapped]].concat(), &[]);
    assert!(finished.ok().stdout.contains("n = 2)"));
    Finished::of(&mut minrnn(&["eval", &run, "--data", &swapped])).ok();
    let renamed = shown(&scratch.write("renamed.csv", "still,xs,class,id\n7,0,up,a\n7,1,up,a\n"));
    Finished::of(&mut minrnn(&["eval", &run, "--data", &renamed])).refused(&["renamed.csv", "there is no column 'x'; did you mean 'xs'?"]);
    let other = shown(&scratch.write("other.csv", "still,x,class,id\n7,0,sideways,a\n7,1,sideways,a\n"));
    train(&scratch, &classes(20), &[&CLASSIFY[..], &["--test", &other]].concat(), &[])
        .0
        .refused(&["other.csv", "the class 'sideways' was not seen"]);
}

#[test]
fn gaps_are_passed_over_in_training_prediction_and_streams() {
    let scratch = Scratch::new();
    let wave = |t: usize| if t % 5 == 3 { String::new() } else { format!("{}", 10 + t % 4) };
    let table = (0..60).fold("id,x\n".to_owned(), |table, t| table + &format!("a,{}\nb,{}\n", wave(t), wave(t + 2)));
    let args = [&FORECAST[..], &["--missing", "mask", "--horizon", "2", "--season", "4"]].concat();
    let (finished, run) = train(&scratch, &table, &args, &[]);
    assert!(!finished.ok().stdout.contains("NaN"));
    let data = shown(&scratch.path("table.csv"));
    let whole = Finished::of(&mut minrnn(&["predict", &run, "--data", &data])).ok().stdout;
    assert!(!whole.contains("NaN") && whole.lines().count() == 5, "{whole}");
    let streamed = Finished::of(minrnn(&["stream", &run]).stdin(std::fs::File::open(&data).unwrap())).ok().stdout;
    let numbers = |line: &str| line.split(',').skip(2).map(|cell| cell.parse::<f64>().unwrap()).collect::<Vec<_>>();
    let last: Vec<f64> = numbers(streamed.lines().last().unwrap());
    let of_b: Vec<f64> = whole.lines().filter(|line| line.starts_with("b,")).flat_map(numbers).collect();
    assert_eq!(last.len(), of_b.len());
    assert!(last.iter().zip(&of_b).all(|(a, b)| (a - b).abs() < 1e-3 * b.abs()), "{last:?} {of_b:?}");
}

#[test]
fn values_to_come_that_are_missing_are_not_learned_as_the_smallest_number() {
    let scratch = Scratch::new();
    let mut table = "id,x\n".to_owned();
    for (id, step) in (0..6).flat_map(|id| (0..120).map(move |step| (id, step))) {
        let cell = match (step * 7 + id * 3) % 11 {
            _ if step == 0 => "1".to_owned(),
            0..6 => String::new(),
            rest => format!("{}", 100 + rest),
        };
        writeln!(table, "s{id},{cell}").unwrap();
    }
    let args = [&FORECAST[..], &["--missing", "mask", "--horizon", "3"]].concat();
    for scaling in ["auto", "log", "log1p", "mean"] {
        let settings = ["max_iterations=150", "lr=0.01", "warmup=5", &format!("scaling={scaling}")];
        let (finished, run) = train(&scratch, &table, &args, &settings);
        finished.ok();
        let predicted = Finished::of(&mut minrnn(&["predict", &run, "--data", &shown(&scratch.path("table.csv"))])).ok().stdout;
        let medians = predicted.lines().skip(1).map(|line| line.split(',').nth(2).unwrap().parse::<f64>().unwrap());
        medians.for_each(|median| assert!((60.0..150.0).contains(&median), "{scaling}: {predicted}"));
    }
}

#[test]
fn a_column_has_one_role() {
    let scratch = Scratch::new();
    let refused = |args: &[&str], part: &str| train(&scratch, &classes(20), args, &[]).0.refused(&[part]);
    refused(&[&FORECAST[..], &["--time", "x"]].concat(), "the column 'x' tells the time and is the target at once");
    refused(&[&FORECAST[..], &["--time", "id"]].concat(), "the column 'id' names sequences and tells the time at once");
    refused(&["--task", "forecast", "--group", "x", "--target", "x"], "the column 'x' names sequences and is the target at once");
    refused(&[&CLASSIFY[..], &["--time", "class"]].concat(), "the column 'class' tells the time and is the target at once");
}

#[test]
fn a_column_of_a_wide_table_that_is_no_step_is_refused() {
    let scratch = Scratch::new();
    let table = (0..30).fold("id,class,t1,t2,t3,t4\n".to_owned(), |table, at| {
        table + &if at % 2 == 0 { format!("s{at},up,{at},1,2,3\n") } else { format!("s{at},down,{at},3,2,1\n") }
    });
    let args = ["--task", "classify", "--group", "id", "--target", "class", "--layout", "wide-series"];
    let (finished, run) = train(&scratch, &table, &args, &[]);
    finished.ok();
    let other = shown(&scratch.write("other.csv", table.replace(",t4", ",t4,weight").replace('\n', ",5\n").replacen(",5\n", "\n", 1)));
    let told = ["other.csv", "the column 'weight' is not named like a step of the series, as 't1' is; leave it out"];
    for command in ["predict", "eval"] {
        Finished::of(&mut minrnn(&[command, &run, "--data", &other])).refused(&told);
    }
}

#[test]
fn nothing_to_score_is_a_sentence_and_no_error_of_0() {
    let scratch = Scratch::new();
    let table = (0..60).fold("id,x\n".to_owned(), |table, at| table + &format!("a,{}\nb,{}\n", at % 4, at % 3));
    let args = [&FORECAST[..], &["--missing", "mask", "--horizon", "2"]].concat();
    let (finished, run) = train(&scratch, &table, &args, &[]);
    finished.ok();
    let file = shown(&scratch.path("model.minrnn"));
    Finished::of(&mut minrnn(&["pack", &run, "-o", &file])).ok();
    let gaps = shown(&scratch.write("gaps.csv", "id,x\na,1\na,\na,\na,\n"));
    for model in [&run, &file] {
        let told = ["gaps.csv", "nothing can be scored in its test part: 'x' has no value behind another one there"];
        Finished::of(&mut minrnn(&["eval", model, "--data", &gaps])).refused(&told);
    }
    let one = shown(&scratch.write("one.csv", "id,x\na,1\na,\na,3\na,\n"));
    assert!(Finished::of(&mut minrnn(&["eval", &run, "--data", &one])).ok().stdout.contains("mean absolute error of x"));
}

#[test]
fn numbers_to_tell_may_be_written_in_several_ways() {
    let scratch = Scratch::new();
    let table = (0..30).fold("id,x,y\n".to_owned(), |table, at| table + &format!("s{at},{at},{at}\ns{at},1,{at}.0\n"));
    let args = ["--task", "regress", "--group", "id", "--target", "y"];
    train(&scratch, &table, &args, &[]).0.ok();
    train(&scratch, &table.replace("s7,1,7.0", "s7,1,7.5"), &args, &[])
        .0
        .refused(&["the sequence 's7' has the number '7' and, in row 16 of the data, '7.5'"]);
}

#[test]
fn files_that_are_no_tables_are_called_by_what_they_are() {
    let scratch = Scratch::new();
    let cases: [(&str, &[u8], &str); 4] = [
        ("table.csv.gz", b"\x1f\x8b\x08\x00\x00\x00\x00\x00", "it is compressed with gzip; decompress it"),
        ("table.xlsx", b"PK\x03\x04\x14\x00\x06\x00\xd5\xff", "it is a workbook or another zip file; save what is to be read as CSV"),
        ("table.csv", b"\xff\xfei\x00d\x00", "it is UTF-16; save it as UTF-8"),
        ("table.csv.zst", b"\x28\xb5\x2f\xfd\x04\x00", "it is compressed with Zstandard; decompress it"),
    ];
    let out = shown(&scratch.path("run"));
    for (name, bytes, told) in cases {
        let data = shown(&scratch.write(name, bytes));
        Finished::of(minrnn(&["train", "--data", &data, "--out", &out]).args(CLASSIFY)).refused(&[name, told]);
        Finished::of(&mut minrnn(&["train", "text", "--data", &data, "--out", &out])).refused(&[name, told]);
    }
}

#[test]
fn numbers_with_commas_are_told_how_they_are_written() {
    let scratch = Scratch::new();
    let table = "id;class;x\n1;up;0,5\n1;up;0,75\n2;down;1,5\n2;down;1\n";
    train(&scratch, table, &CLASSIFY, &[]).0.refused(&[
        "line 2, column 'x': expected a finite number, found '0,5'; write a point before decimals, and nothing between thousands",
    ]);
}

#[test]
fn a_test_on_the_file_that_is_learned_from_is_told() {
    let scratch = Scratch::new();
    let table = classes(20);
    let own = shown(&scratch.path("table.csv"));
    let told = "the test file is the training file";
    assert!(train(&scratch, &table, &[&CLASSIFY[..], &["--test", &own]].concat(), &[]).0.ok().stderr.contains(told));
    let validated = train(&scratch, &table, &[&CLASSIFY[..], &["--validation", &own]].concat(), &[]).0.ok();
    assert!(validated.stderr.contains("the validation file is the training file"), "{validated:?}");
    let copy = shown(&scratch.write("copy.csv", &table));
    let tested = train(&scratch, &table, &[&CLASSIFY[..], &["--test", &copy]].concat(), &[]).0.ok();
    assert!(tested.stderr.contains("the test file is the same as the training file; its score says nothing"), "{tested:?}");
    let other = shown(&scratch.write("other.csv", classes(10)));
    let args = [&CLASSIFY[..], &["--test", &other, "--validation", &copy]].concat();
    let tested = train(&scratch, &table, &args, &[]).0.ok();
    assert!(tested.stderr.contains("the validation file is the same as the training file") && !tested.stderr.contains("the test file is"));
    assert!(tested.stderr.contains("retraining on all data except the test file"), "{tested:?}");
}

#[test]
fn a_test_file_that_is_the_validation_file_is_not_scored_as_one_that_was_never_learned_from() {
    let scratch = Scratch::new();
    let [held, copy] = ["held.csv", "copy.csv"].map(|name| shown(&scratch.write(name, classes(8))));
    for (test, name, found) in
        [(&held, "held.csv", "it is the validation table too"), (&copy, "copy.csv", "it has the content of the validation table")]
    {
        let args = [&CLASSIFY[..], &["--validation", &held, "--test", test]].concat();
        let (refused, run) = train(&scratch, &classes(20), &args, &[]);
        refused.refused(&[name, found, "refit = false"]);
        assert!(!std::path::Path::new(&run).exists());
        let chosen = train(&scratch, &classes(20), &args, &["refit=false"]).0.ok();
        assert!(chosen.stderr.contains("the validation file; it chooses the checkpoint, so its score flatters the model"), "{chosen:?}");
    }
    // What the retrained model has learned from is told of, and of the one that was scored nothing is.
    let (finished, run) = train(&scratch, &classes(20), &[&CLASSIFY[..], &["--validation", &held]].concat(), &[]);
    finished.ok();
    let told = |model: &str, name: &str| Finished::of(&mut minrnn(&["eval", model, "--data", &shown(&scratch.path(name))])).ok().stderr;
    let why = "a file that the model has learned from: it says nothing of how well others are predicted";
    for name in ["held.csv", "table.csv"] {
        assert!(told(&run, name).contains(&format!("this is {why}")), "{name}");
    }
    assert!(told(&run, "copy.csv").contains(&format!("this is the same as {why}")));
    assert!(!told(&format!("{run}/checkpoints/iter-4"), "held.csv").contains("has learned from"));
}

#[test]
fn a_changed_test_file_is_the_one_that_is_named() {
    let scratch = Scratch::new();
    let test = shown(&scratch.write("test.csv", classes(8)));
    let (finished, run) = train(&scratch, &classes(20), &[&CLASSIFY[..], &["--test", &test]].concat(), &[]);
    finished.ok();
    scratch.write("test.csv", classes(10));
    let evaluated = Finished::of(&mut minrnn(&["eval", &run]));
    evaluated.refused(&["test.csv': the test table has changed since this run began"]);
    assert!(!evaluated.stderr.contains("table.csv"), "{evaluated:?}");
}

#[test]
fn settings_that_change_nothing_are_told_of_if_they_are_given() {
    let scratch = Scratch::new();
    // All of these trainings are given the first three.
    let told = |args: &[&str], settings: &[&str]| {
        let told = train(&scratch, &classes(20), args, settings).0.ok().stderr;
        let has_none = |key: &&str| told.contains(&format!("{key} has no effect on this training: "));
        ["seq_len", "eval_every", "eval_iterations", "eval_seed"].into_iter().filter(has_none).collect::<Vec<_>>()
    };
    assert_eq!(told(&CLASSIFY, &[]), ["seq_len", "eval_every", "eval_iterations"]);
    assert_eq!(told(&CLASSIFY, &["keep=best", "train.eval_seed=3"]), ["seq_len", "eval_iterations", "eval_seed"]);
    assert_eq!(told(&FORECAST, &[]), ["eval_every", "eval_iterations"]);
    let text = scratch.training("text", &["max_iterations=1", "tokenizer=byte"]).run().ok().stderr;
    assert!(!text.contains("no effect") && text.contains("\nA byte model of your own text file"), "{text}");
}

#[test]
fn logarithms_are_read_of_series_of_any_size_and_of_no_negative_number() {
    let scratch = Scratch::new();
    let wave = |size: f64| (0..40).fold("id,x\n".to_owned(), |table, t| table + &format!("a,{}\n", size * (3.0 + f64::from(t % 4))));
    let (finished, run) = train(&scratch, &wave(10.0), &FORECAST, &["scaling=auto"]);
    finished.ok();
    let predict = |table: String| Finished::of(&mut minrnn(&["predict", &run, "--data", &shown(&scratch.write("other.csv", table))]));
    let number = |predicted: &Finished| -> f64 { predicted.stdout.lines().nth(1).unwrap().split(',').nth(2).unwrap().parse().unwrap() };
    let own = number(&predict(wave(10.0)).ok());
    // Also below everything that was learned from.
    for size in [1e-3, 1.0, 1e4] {
        let other = number(&predict(wave(10.0 * size)).ok());
        assert!((other / own / size - 1.0).abs() < 1e-3, "{size}: {other} beside {own}");
    }
    predict(wave(10.0) + "a,0\n").ok();
    predict(wave(10.0) + "a,-2\n")
        .refused(&["line 42, column 'x': found -2.0, of which the model, which reads logarithms, has none", "scaling = mean"]);
    Finished::of(&mut minrnn(&["eval", &run, "--data", &shown(&scratch.path("other.csv"))])).refused(&["line 42, column 'x': found -2.0"]);
    // If numbers sink below 0 after the training part, no logarithms are taken.
    let sinking = (0..52).fold("id,x\n".to_owned(), |table, t| table + &format!("a,{}\n", 50 - t));
    let (finished, run) = train(&scratch, &sinking, &FORECAST, &["scaling=auto"]);
    finished.ok();
    let task = std::fs::read_to_string(format!("{run}/checkpoints/iter-4/task.json")).unwrap();
    assert!(task.contains("identity"), "{task}");
    train(&scratch, &sinking, &FORECAST, &["scaling=log"]).0.refused(&["column 'x': found -1.0", "reads logarithms"]);
}

#[test]
fn flags_are_numbers_in_a_file_without_types_as_in_those_with() {
    let scratch = Scratch::new();
    let words = classes(20).replace(",7\n", ",True\n").replacen("True", "false", 3);
    let (finished, run) = train(&scratch, &words, &CLASSIFY, &[]);
    let in_words = finished.ok().stdout;
    let task = std::fs::read_to_string(format!("{run}/checkpoints/iter-4/task.json")).unwrap();
    assert!(task.contains("\"still\"") && !task.contains("categories"), "{task}");
    assert!(in_words.starts_with("test accuracy "));
}

#[test]
fn a_flag_of_another_task_is_refused() {
    let scratch = Scratch::new();
    for flag in [["--horizon", "5"], ["--season", "4"], ["--quantiles", "0.1,0.5"], ["--known-ahead", "x"], ["--calendar", "month"]] {
        let args = [&CLASSIFY[..], &flag].concat();
        train(&scratch, &classes(20), &args, &[]).0.refused(&[flag[0], "is for --task forecast"]);
    }
    let args = [&FORECAST[..], &["--class-weights", "balanced"]].concat();
    train(&scratch, &classes(20), &args, &[]).0.refused(&["--class-weights is for --task classify"]);
}

#[test]
fn of_classes_nothing_is_said_to_be_forecast() {
    let scratch = Scratch::new();
    let timed = classes(20).lines().enumerate().fold(String::new(), |table, (row, line)| {
        table + line + &if row == 0 { ",day\n".to_owned() } else { format!(",{}\n", row + row % 5) }
    });
    let (finished, run) = train(&scratch, &timed, &[&CLASSIFY[..], &["--time", "day"]].concat(), &[]);
    finished.ok();
    let predicted = Finished::of(&mut minrnn(&["predict", &run, "--data", &shown(&scratch.path("table.csv"))])).ok();
    assert!(!predicted.stderr.contains("forecast"), "{predicted:?}");
}
