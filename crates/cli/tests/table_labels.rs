//! A number for every sequence, classes that weigh differently, and parts of the calendar, through the command line.

mod common;

use std::fmt::Write;

use common::{Finished, Scratch, minrnn, shown};

const SMALL: [&str; 10] =
    ["--set", "d_model=16", "--set", "warmup=5", "--set", "lr=0.01", "--set", "threads=1", "--set", "checkpoint_every=200"];

fn train(scratch: &Scratch, table: &str, args: &[&str]) -> (Finished, String) {
    let (data, run) = (shown(&scratch.write("data.csv", table)), shown(&scratch.path("run")));
    (Finished::of(minrnn(&["train", "--data", &data, "--out", &run]).args(SMALL).args(args)), run)
}

fn packed(scratch: &Scratch, run: &str) -> String {
    let file = shown(&scratch.path("model.minrnn"));
    Finished::of(&mut minrnn(&["pack", run, "--weights", "f32", "-o", &file])).ok();
    file
}

/// Engines whose pressure falls the faster, the sooner their life ends.
fn engines(n: usize) -> String {
    let mut table = String::from("engine,life,pressure\n");
    for engine in 0..n {
        let life = 50 + 7 * (engine * 13 % n);
        for t in 0..8 + engine % 4 {
            writeln!(table, "e{engine},{life},{}", 10.0 - 100.0 * t as f64 / life as f64).unwrap();
        }
    }
    table
}

const REGRESS: [&str; 8] = ["--task", "regress", "--group", "engine", "--target", "life", "--set", "max_iterations=200"];

#[test]
fn a_number_of_every_sequence_is_learned_predicted_packed_and_streamed() {
    let scratch = Scratch::new();
    let table = engines(60);
    let (finished, run) = train(&scratch, &table, &REGRESS);
    let report = finished.ok().stdout;
    assert!(report.contains("test mean absolute error of life") && report.contains("median of training"), "{report}");
    assert!(report.contains("the model is better") && report.contains("n = 12)"), "{report}");
    let page = std::fs::read_to_string(scratch.path("run").join("report.html")).unwrap();
    assert!(page.contains("Where it was most wrong") && page.contains(", predicted "), "{page}");

    let data = shown(&scratch.path("data.csv"));
    let predicted = Finished::of(&mut minrnn(&["predict", &run, "--data", &data])).ok().stdout;
    let mut lines = predicted.lines();
    assert_eq!(lines.next(), Some("engine,life"));
    let errors: Vec<f64> = lines
        .enumerate()
        .map(|(engine, line)| {
            let (name, life) = line.split_once(',').unwrap();
            assert_eq!(name, format!("e{engine}"));
            (life.parse::<f64>().unwrap() - (50 + 7 * (engine * 13 % 60)) as f64).abs()
        })
        .collect();
    assert_eq!(errors.len(), 60);
    let mean = errors.iter().sum::<f64>() / 60.0;
    assert!(mean < 50.0, "a constant is wrong by 105: {mean}\n{predicted}");

    // Another table is scored; the target need not be there to predict.
    let scored = Finished::of(&mut minrnn(&["eval", &run, "--data", &data])).ok().stdout;
    assert!(scored.contains("mean absolute error of life") && scored.contains("n = 60)"), "{scored}");
    let without: String = table.lines().map(|line| line.split(',').step_by(2).collect::<Vec<_>>().join(",") + "\n").collect();
    let without = shown(&scratch.write("without.csv", without));
    assert_eq!(Finished::of(&mut minrnn(&["predict", &run, "--data", &without])).ok().stdout, predicted);
    let file = packed(&scratch, &run);
    let of_packed = Finished::of(&mut minrnn(&["predict", &file, "--data", &without])).ok().stdout;
    let number = |text: &str, line: usize| text.lines().nth(line).unwrap().split(',').nth(1).unwrap().parse::<f64>().unwrap();
    (1..=60).for_each(|line| assert!((number(&of_packed, line) - number(&predicted, line)).abs() < 1e-2, "{line}"));
    let inspected = Finished::of(&mut minrnn(&["inspect", &file])).ok().stdout;
    assert!(inspected.contains("a number of each sequence"), "{inspected}");

    // After the last row of a sequence the stream says what predict says.
    let first: String = std::fs::read_to_string(&without).unwrap().lines().take(9).map(|line| line.to_owned() + "\n").collect();
    let first = shown(&scratch.write("first.csv", first));
    let streamed = Finished::of(minrnn(&["stream", &file]).stdin(std::fs::File::open(&first).unwrap())).ok().stdout;
    assert!(streamed.starts_with("line,engine,life\n2,e0,"), "{streamed}");
    let last: f64 = streamed.lines().last().unwrap().rsplit(',').next().unwrap().parse().unwrap();
    assert!((last - number(&of_packed, 1)).abs() < 1e-2, "{last}: {of_packed}");
    let json = Finished::of(minrnn(&["stream", &file, "--json"]).stdin(std::fs::File::open(&first).unwrap())).ok().stdout;
    let object: serde_json::Value = serde_json::from_str(json.lines().last().unwrap()).unwrap();
    assert!((object["predicted"]["life"].as_f64().unwrap() - last).abs() < 1e-9, "{json}");
    Finished::of(&mut minrnn(&["score", &file, "--data", &data])).refused(&["it labels whole sequences"]);
}

#[test]
fn what_is_no_number_or_no_weight_is_a_sentence() {
    let scratch = Scratch::new();
    let refused = |table: &str, args: &[&str], parts: &[&str]| train(&scratch, table, args).0.refused(parts);
    refused(&engines(20).replace(",57,", ",soon,"), &REGRESS, &["data.csv", "the column 'life' holds 'soon', expected a finite number"]);
    refused(&engines(20), &["--task", "regress", "--target", "life"], &["to regress sequences, name the column", "--group COLUMN"]);
    refused(&engines(20), &["--task", "regress", "--group", "engine"], &["to regress, name the column with the number", "--target COLUMN"]);
    refused(&engines(20), &[&REGRESS[..], &["--class-weights", "balanced"]].concat(), &["--class-weights is for --task classify"]);
    let classify = ["--task", "classify", "--group", "engine", "--target", "life", "--class-weights"];
    refused(&engines(20), &[&classify[..], &["50"]].concat(), &["such as worn=5; found '50'"]);
    let two: String = engines(20).lines().map(|line| line.replace(",50,", ",short,") + "\n").collect();
    refused(
        &two,
        &[&classify[..], &["shrt=2"]].concat(),
        &["class_weights names the class 'shrt', which the data lack; did you mean 'short'?"],
    );
    refused("to be or not", &["--class-weights", "balanced"], &["--class-weights is about tables"]);
}

#[test]
fn a_rare_class_is_found_where_it_weighs_more() {
    let scratch = Scratch::new();
    // Nothing tells the classes apart but how frequent they are.
    let mut table = String::from("machine,state,x\n");
    for machine in 0..200 {
        for t in 0..3 {
            writeln!(table, "m{machine},{},{}", if machine % 10 == 0 { "worn" } else { "good" }, t * 7 % 5).unwrap();
        }
    }
    let classify = ["--task", "classify", "--group", "machine", "--target", "state", "--set", "refit=false", "--set", "max_iterations=120"];
    let share_of_worn = |weights: &[&str]| {
        let (finished, run) = train(&scratch, &table, &[&classify[..], weights].concat());
        finished.ok();
        let data = shown(&scratch.path("data.csv"));
        let predicted = Finished::of(&mut minrnn(&["predict", &run, "--data", &data])).ok().stdout;
        std::fs::remove_dir_all(run).unwrap();
        assert!(predicted.starts_with("machine,state,probability of good,probability of worn\n"), "{predicted}");
        predicted.lines().skip(1).map(|line| line.rsplit(',').next().unwrap().parse::<f64>().unwrap()).sum::<f64>() / 200.0
    };
    let (equal, balanced) = (share_of_worn(&[]), share_of_worn(&["--class-weights", "balanced"]));
    assert!((0.03..0.2).contains(&equal) && (0.35..0.65).contains(&balanced), "{equal} {balanced}");
}

#[test]
fn parts_of_the_calendar_are_read_from_the_times_in_training_prediction_and_streams() {
    let scratch = Scratch::new();
    let mut table = String::from("ds,sold\n");
    for t in 0..240 {
        let (month, day) = (1 + t % 168 / 14, 1 + 2 * (t % 14));
        writeln!(table, "{}-{month:02}-{day:02},{}", 2024 + t / 168, t % 7).unwrap();
    }
    let forecast =
        ["--task", "forecast", "--target", "sold", "--set", "max_iterations=10", "--set", "seq_len=16", "--set", "scaling=standard"];
    let (finished, run) = train(&scratch, &table, &[&forecast[..], &["--calendar", "weekday,month"]].concat());
    finished.ok();
    let task: serde_json::Value = std::fs::read_dir(scratch.path("run").join("checkpoints"))
        .unwrap()
        .find_map(|entry| std::fs::read(entry.unwrap().path().join("task.json")).ok())
        .map(|json| serde_json::from_slice(&json).unwrap())
        .unwrap();
    assert_eq!(task["columns"], serde_json::json!(["sold", "ds.weekday", "ds.month"]));
    assert_eq!(task["categories"][0]["values"].as_array().unwrap().len(), 7, "{task}");
    let data = shown(&scratch.path("data.csv"));
    let predicted = Finished::of(&mut minrnn(&["predict", &run, "--data", &data])).ok().stdout;
    let file = packed(&scratch, &run);
    let streamed = Finished::of(minrnn(&["stream", &file]).stdin(std::fs::File::open(&data).unwrap())).ok().stdout;
    let last = |text: &str, skip: usize| -> Vec<f64> {
        text.lines().last().unwrap().split(',').skip(skip).map(|number| number.parse().unwrap()).collect()
    };
    let (of_table, of_stream) = (last(&predicted, 2), last(&streamed, 1));
    assert!(of_table.len() == 3 && of_table.iter().zip(&of_stream).all(|(a, b)| (a - b).abs() < 1e-3), "{predicted}\n{streamed}");
    // Other months change what is predicted, though the numbers are the same.
    let begin: String = std::iter::once("ds,sold\n".to_owned())
        .chain((0..240).map(|t| format!("{}-{:02}-01,{}\n", 1980 + t / 12, 1 + t % 12, t % 7)))
        .collect();
    let moved = shown(&scratch.write("moved.csv", begin));
    let other = Finished::of(&mut minrnn(&["predict", &run, "--data", &moved])).stdout;
    assert_ne!(last(&other, 2), of_table);

    std::fs::remove_dir_all(run).unwrap();
    let (finished, run) = train(&scratch, &table.replace("ds,", "when,"), &[&forecast[..], &["--calendar", "month"]].concat());
    let told = finished.ok().stderr;
    assert!(told.contains("read with time = when, which holds dates"), "{told}");
    std::fs::remove_dir_all(run).unwrap();
    let numbered = (0..60).fold("ds,sold\n".to_owned(), |text, t| text + &format!("{t},{}\n", t % 7));
    let (finished, _) = train(&scratch, &numbered.replace("ds,", "place,"), &[&forecast[..], &["--calendar", "month"]].concat());
    finished.refused(&["calendar = month is read from a column of times, and there is none"]);
    let (finished, _) = train(&scratch, &numbered, &[&forecast[..], &["--calendar", "month"]].concat());
    finished.refused(&["data.csv", "the column 'ds.month' is a part of the calendar, but the times are no dates"]);
    let (finished, _) = train(&scratch, &table, &[&forecast[..], &["--calendar", "year"]].concat());
    assert!(
        finished.code == Some(2) && finished.stderr.contains("unknown part of the calendar 'year'; expected one of month, "),
        "{finished:?}"
    );
}
