//! A number for every sequence, classes that weigh differently, and parts of the calendar, through the command line.

mod common;

use std::fmt::Write;
use std::fs;

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
    // The constant is that of training, however much the scored table differs, and what is not known about training is not said.
    assert!(scored.contains("beside median of training: "), "{scored}");
    let far = shown(&scratch.write("far.csv", "engine,life,pressure\nf,9050,9.5\nf,9050,9\n"));
    let of_far = Finished::of(&mut minrnn(&["eval", &run, "--data", &far])).ok().stdout;
    let baseline = of_far.split("beside median of training: ").nth(1).and_then(|rest| rest.split(';').next()).unwrap();
    assert!(baseline.parse::<f64>().unwrap() > 8000.0, "{of_far}");
    let without: String = table.lines().map(|line| line.split(',').step_by(2).collect::<Vec<_>>().join(",") + "\n").collect();
    let without = shown(&scratch.write("without.csv", without));
    assert_eq!(Finished::of(&mut minrnn(&["predict", &run, "--data", &without])).ok().stdout, predicted);
    let file = packed(&scratch, &run);
    let of_packed = Finished::of(&mut minrnn(&["predict", &file, "--data", &without])).ok().stdout;
    let number = |text: &str, line: usize| text.lines().nth(line).unwrap().split(',').nth(1).unwrap().parse::<f64>().unwrap();
    (1..=60).for_each(|line| assert!((number(&of_packed, line) - number(&predicted, line)).abs() < 1e-2, "{line}"));
    let inspected = Finished::of(&mut minrnn(&["inspect", &file])).ok().stdout;
    assert!(inspected.contains("a number for each sequence"), "{inspected}");

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
    Finished::of(&mut minrnn(&["score", &file, "--data", &data])).refused(&["the model labels whole sequences"]);
}

/// 40 machines whose state shows in their mode, under the names that `of` gives it.
fn modes(of: impl Fn(&str) -> String) -> String {
    let mut table = String::from("machine,state,mode,x\n");
    for machine in 0..40 {
        let (state, mode) = [("good", "idle"), ("worn", "run")][machine % 2];
        (0..5).for_each(|t| writeln!(table, "m{machine},{state},{},{}", of(mode), t % 3).unwrap());
    }
    table
}

#[test]
fn names_that_training_did_not_see_are_told_by_those_who_score() {
    let scratch = Scratch::new();
    let classify = ["--task", "classify", "--group", "machine", "--target", "state", "--columns", "mode,x"];
    let (finished, run) = train(&scratch, &modes(str::to_owned), &[&classify[..], &["--set", "max_iterations=20"]].concat());
    finished.ok();
    let file = packed(&scratch, &run);
    let loud = shown(&scratch.write("loud.csv", modes(str::to_uppercase)));
    let mixed = shown(&scratch.write("mixed.csv", modes(str::to_owned).replacen(",run,", ",walk,", 3)));
    let as_before = shown(&scratch.write("same.csv", modes(str::to_owned) + "m40,good,idle,1\nm40,good,idle,2\n"));
    for model in [&run, &file] {
        let told = |data: &str| Finished::of(&mut minrnn(&["eval", model, "--data", data])).ok().stderr;
        let known = "they are read as none of those that were: 'idle', 'run'\n";
        assert_eq!(told(&loud), format!("column 'mode': the names in 200 of 200 rows were not seen in training, such as 'IDLE'; {known}"));
        assert_eq!(told(&mixed), format!("column 'mode': the names in 3 of 200 rows were not seen in training, such as 'walk'; {known}"));
        assert_eq!(told(&as_before), "");
    }
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
    let comma = "class_weights = [\"worn, badly=5\"]";
    refused(&engines(20), &[&classify[..], &["50, odd=5"]].concat(), &["found '50'; where a class has a comma in its name", comma]);
    let two: String = engines(20).lines().map(|line| line.replace(",50,", ",short,") + "\n").collect();
    refused(
        &two,
        &[&classify[..], &["shrt=2"]].concat(),
        &["class_weights names the class 'shrt', which the data lack; did you mean 'short'?"],
    );
    refused("to be or not", &["--class-weights", "balanced"], &["--class-weights is for tables"]);
}

#[test]
fn a_rare_class_is_found_where_it_weighs_more() {
    let scratch = Scratch::new();
    // Nothing but their frequency distinguishes the classes.
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
    // A class with a comma in its name is given in a list.
    let two = table.replace(",worn,", ",\"worn, badly\",");
    train(&scratch, &two, &[&classify[..], &["--set", "max_iterations=2", "--set", "class_weights=[\"worn, badly=5\"]"]].concat()).0.ok();
    std::fs::remove_dir_all(scratch.path("run")).unwrap();
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

#[test]
fn a_run_of_before_that_kept_no_median_goes_on() {
    let scratch = Scratch::new();
    let (done, run) = train(&scratch, &engines(40), &[&REGRESS[..6], &["--set", "max_iterations=20", "--set", "refit=false"]].concat());
    done.ok();
    let last = scratch.path("run/checkpoints/iter-20");
    let task = fs::read_to_string(last.join("task.json")).unwrap();
    let of_before: String = task.lines().filter(|line| !line.contains("\"target_median\"")).map(|line| line.to_owned() + "\n").collect();
    assert_eq!(of_before.lines().count() + 1, task.lines().count());
    let resume = || Finished::of(&mut minrnn(&["train", "--resume", "--out", &run, "--set", "max_iterations=30"]));
    fs::remove_file(last.join("SHA256SUMS")).unwrap();
    fs::write(last.join("task.json"), of_before.replace("\"life\"", "\"death\"")).unwrap();
    resume().refused(&["task.json"]);
    fs::write(last.join("task.json"), of_before).unwrap();
    assert!(resume().ok().stdout.contains("model: "));
}
