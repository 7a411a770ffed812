//! Training and predicting on tables: classes, forecasts, and what is refused.

mod common;

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use common::{Finished, Random, Scratch, Training, minrnn, predict, shown};
use serde_json::Value;

/// Noise from −1 to 1.
fn noise(random: &mut Random) -> f64 {
    random.below(2001) as f64 / 1000.0 - 1.0
}

/// Sequences of 6 to 14 steps: those of class `rising` go up by 2 at every step, the others down, with noise and far from 0.
fn slopes(n: usize, seed: u64) -> String {
    let mut random = Random(seed);
    let mut table = String::from("machine,state,pressure,humidity\n");
    for machine in 0..n {
        let (state, slope) = if machine % 2 == 0 { ("rising", 2.0) } else { ("falling, fast", -2.0) };
        for step in 0..6 + random.below(9) {
            let pressure = 500.0 + slope * step as f64 + noise(&mut random);
            writeln!(table, "m{machine},\"{state}\",{pressure},{}", 0.1 * noise(&mut random)).unwrap();
        }
    }
    table
}

/// A wave of 13 steps with noise.
fn sine(n: usize) -> String {
    let mut random = Random(5);
    let wave = |t: usize| 100.0 + 10.0 * (std::f64::consts::TAU * t as f64 / 13.0).sin();
    (0..n).fold(String::from("t,load\n"), |table, t| format!("{table}{t},{}\n", wave(t) + 0.3 * noise(&mut random)))
}

fn training(scratch: &Scratch, args: &[&str], settings: &[&str]) -> Training {
    Training { args: args.iter().map(ToString::to_string).collect(), ..scratch.task("run", settings) }
}

fn classifier(scratch: &Scratch) -> Training {
    let data = shown(&scratch.write("slopes.csv", slopes(120, 1)));
    let args = ["--task", "classify", "--data", &data, "--group", "machine", "--target", "state"];
    training(scratch, &args, &["max_iterations=150", "eval_every=50", "lr=0.01", "batch_size=16", "train_fraction=0.6"])
}

fn forecaster(scratch: &Scratch) -> Training {
    let data = shown(&scratch.write("sine.csv", sine(600)));
    let args = ["--task", "forecast", "--data", &data, "--target", "load", "--horizon", "4", "--season", "4"];
    training(scratch, &args, &["max_iterations=200", "eval_every=50", "lr=0.01", "seq_len=32", "batch_size=16"])
}

/// The number after `name` in a report.
fn number_after(report: &str, name: &str) -> f64 {
    let rest = &report[report.find(name).unwrap_or_else(|| panic!("{name} in {report}")) + name.len()..];
    rest.trim_start_matches([':', ' ']).split([' ', ',', ';', '\n']).next().unwrap().parse().unwrap()
}

#[test]
fn separable_classes_are_learned_and_predicted() {
    let scratch = Scratch::new();
    let training = classifier(&scratch);
    let report = training.run().ok().stdout;
    assert_eq!(report.matches("test accuracy").count(), 1, "{report}");
    assert!(report.contains("n = 48)") && report.contains("scored: the earlier model"), "{report}");
    let accuracy = number_after(&report, "test accuracy");
    assert!(accuracy > 90.0, "{report}");
    assert!(report.contains("always '"), "{report}");
    let task: Value = serde_json::from_slice(&fs::read(training.checkpoint("best").join("task.json")).unwrap()).unwrap();
    assert_eq!(
        (&task["task"], &task["classes"][0], &task["columns"][0]),
        (&"classify".into(), &"falling, fast".into(), &"pressure".into())
    );

    // Machines it has not seen, in a table without the class.
    let unseen = slopes(40, 9).replace("\"rising\"", "?").replace("\"falling, fast\"", "?");
    let data = shown(&scratch.write("unseen.csv", unseen));
    let out = scratch.path("classes.csv");
    let run = shown(&training.out);
    let printed = predict(&[&run, "--data", &data]).ok();
    assert_eq!(printed.stderr, "");
    let finished = predict(&[&run, "--data", &data, "--out", &shown(&out)]).ok();
    assert_eq!((finished.stdout.as_str(), fs::read_to_string(&out).unwrap()), ("", printed.stdout.clone()));
    let mut lines = printed.stdout.lines();
    assert_eq!(lines.next().unwrap(), "machine,state,\"probability of falling, fast\",probability of rising");
    let mut right = 0;
    for (machine, line) in lines.enumerate() {
        let (name, rest) = line.split_once(',').unwrap();
        assert_eq!(name, format!("m{machine}"));
        let says_rising = rest.starts_with("rising,");
        let shares: Vec<f64> = rest.rsplit(',').take(2).map(|share| share.parse().unwrap()).collect();
        assert!((shares[0] + shares[1] - 1.0).abs() < 1e-5 && (shares[0] > shares[1]) == says_rising, "{line}");
        right += usize::from(says_rising == (machine % 2 == 0));
    }
    assert!(right > 36, "{right} of 40\n{}", printed.stdout);

    // The scores of the training are reproduced, and another table can be scored.
    let scored = Finished::of(minrnn(&["eval"]).arg(&training.out)).ok().stdout;
    assert_eq!(number_after(&scored, "\naccuracy"), accuracy, "{scored}\n{report}");
    let labelled = shown(&scratch.write("labelled.csv", slopes(40, 9)));
    let scored = Finished::of(minrnn(&["eval", &run, "--data", &labelled]).arg("--json")).ok().stdout;
    let measure: Value =
        scored.lines().map(|line| serde_json::from_str(line).unwrap()).find(|line: &Value| line["baseline"].is_number()).unwrap();
    assert_eq!((measure["value"].as_f64().unwrap() * 40.0).round() as usize, right, "{scored}");

    let strange = shown(&scratch.write("strange.csv", "machine,state,pressure,humidity\na,sideways,1,1\na,sideways,1,1\n"));
    Finished::of(&mut minrnn(&["eval", &run, "--data", &strange]))
        .refused(&["strange.csv", "the class 'sideways' was not seen in training"]);
    let single = shown(&scratch.write("single.csv", "machine,pressure,humidity\na,1,1\n"));
    let [header, of_single] =
        predict(&[&run, "--data", &single]).ok().stdout.lines().map(str::to_owned).collect::<Vec<_>>().try_into().unwrap();
    assert!(header.starts_with("machine,state,") && of_single.starts_with("a,"), "{of_single}");
    let without = shown(&scratch.write("without.csv", "machine,pressures,humidity\na,1,1\na,1,1\n"));
    predict(&[&run, "--data", &without]).refused(&["without.csv", "there is no column 'pressure'; did you mean 'pressures'?"]);
}

#[test]
fn a_wave_is_forecast_better_than_by_repeating() {
    let scratch = Scratch::new();
    let training = forecaster(&scratch);
    let report = training.run().ok().stdout;
    for measure in ["mean absolute error of load", "root mean squared error of load"] {
        let found = number_after(&report, measure);
        let baseline = number_after(&report[report.find(measure).unwrap()..], "seasonal naive, 4 steps");
        assert!(found < 0.5 * baseline, "{measure} in {report}");
    }
    let run = shown(&training.out);
    let printed = predict(&[&run, "--data", &shown(&scratch.path("sine.csv"))]).ok().stdout;
    let mut lines = printed.lines();
    assert_eq!(lines.next().unwrap(), "step,load,load q0.1,load q0.9");
    let single = shown(&scratch.write("single.csv", "load\n1.5\n"));
    assert_eq!(predict(&[&run, "--data", &single]).ok().stdout.lines().count(), printed.lines().count());
    for (at, line) in lines.enumerate() {
        let [step, load, low, high] = line.split(',').collect::<Vec<_>>().try_into().unwrap();
        let [below, value, above] = [low, load, high].map(|cell| cell.parse::<f64>().unwrap());
        assert!(below <= value && value <= above, "{line}");
        let truth = 100.0 + 10.0 * (std::f64::consts::TAU * (600 + at) as f64 / 13.0).sin();
        assert_eq!(step, (at + 1).to_string());
        assert!((load.parse::<f64>().unwrap() - truth).abs() < 4.0, "{truth} {printed}");
    }
    assert_eq!(printed.lines().count(), 5);
    let scored = Finished::of(minrnn(&["eval"]).arg(&training.out)).ok().stdout;
    let name = "mean absolute error of load";
    assert_eq!(number_after(&scored, name), number_after(&report, name), "{scored}\n{report}");
}

/// The numbers of a CSV file's cells, and its other cells.
fn cells(table: &str) -> (Vec<f64>, Vec<String>) {
    let mut found = (Vec::new(), Vec::new());
    for cell in table.lines().flat_map(|line| line.split(',')) {
        match cell.parse::<f64>() {
            Ok(number) => found.0.push(number),
            Err(_) => found.1.push(cell.to_owned()),
        }
    }
    found
}

#[test]
fn a_packed_model_predicts_and_scores_as_its_run_and_says_what_it_reads() {
    let scratch = Scratch::new();
    let short = |training: Training, name: &str| Training { out: scratch.path(name), ..training }.with(&["max_iterations=20"]);
    let unseen = shown(&scratch.write("unseen.csv", slopes(40, 9)));
    let cases = [
        (short(classifier(&scratch), "classes"), unseen, ["machine", "one of falling, fast, rising"]),
        (short(forecaster(&scratch), "waves"), shown(&scratch.path("sine.csv")), ["load, 4 steps ahead", "4 steps"]),
    ];
    for (training, data, told) in cases {
        training.run().ok();
        let run = shown(&training.out);
        let packed = |weights: &str| {
            let file = shown(&scratch.path(&format!("{weights}.minrnn")));
            let told = Finished::of(&mut minrnn(&["pack", &run, "--weights", weights, "-o", &file])).ok().stdout;
            assert!(told.contains("next: minrnn predict") && told.contains("one more session: "), "{told}");
            file
        };
        let exact = packed("f32");
        let expected = cells(&predict(&[&run, "--data", &data]).ok().stdout);
        let measures = |model: &str| {
            let scored = Finished::of(minrnn(&["eval", model, "--data", &data]).arg("--json")).ok().stdout;
            let lines: Vec<Value> = scored.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            let numbers = |key: &str| lines.iter().filter_map(|line| line[key].as_f64()).collect::<Vec<_>>();
            [numbers("loss"), numbers("accuracy"), numbers("value"), numbers("baseline"), numbers("predictions")].concat()
        };
        let [of_run, of_file] = [&run, &exact].map(|model| measures(model));
        assert_eq!(of_run.len(), of_file.len());
        for (a, b) in of_run.iter().zip(&of_file) {
            assert!((a - b).abs() <= 1e-5 * a.abs().max(1.0), "{of_run:?} {of_file:?}");
        }
        for (file, tolerance) in [(exact.clone(), 1e-5), (packed("bf16"), 0.05), (packed("int8"), 0.05)] {
            let found = cells(&predict(&[&file, "--data", &data]).ok().stdout);
            assert_eq!((found.0.len(), &found.1), (expected.0.len(), &expected.1), "{file}");
            for (a, b) in found.0.iter().zip(&expected.0) {
                assert!((a - b).abs() <= tolerance * b.abs().max(1.0), "{file}: {a}, expected {b}");
            }
            for model in [&file, &run] {
                let inspected = Finished::of(&mut minrnn(&["inspect", model])).ok().stdout;
                assert!(told.iter().all(|told| inspected.contains(told)), "{inspected}");
            }
        }
        let without = shown(&scratch.write("without.csv", "machine,pressures\na,1\na,1\n"));
        predict(&[&exact, "--data", &without]).refused(&["without.csv", "there is no column"]);
        Finished::of(&mut minrnn(&["eval", &exact])).refused(&["--data FILE"]);
        Finished::of(&mut minrnn(&["eval", &exact, "--data", &data, "--against", &exact])).refused(&["--against"]);
        Finished::of(&mut minrnn(&["generate", &exact])).refused(&["trained on a task"]);
        predict(&[&exact, "--data", &data, "--device", "cuda"]).refused(&["cuda"]);
    }
    let text = scratch.training("text", &["max_iterations=2"]);
    text.run().ok();
    let file = shown(&scratch.path("text.minrnn"));
    Finished::of(&mut minrnn(&["pack", &shown(&text.out), "-o", &file])).ok();
    predict(&[&file, "--data", &shown(&scratch.path("sine.csv"))]).refused(&["--task classify, regress or forecast"]);
}

#[test]
fn an_interrupted_run_goes_on_with_the_same_table_only() {
    let scratch = Scratch::new();
    let whole = forecaster(&scratch).with(&["max_iterations=30", "eval_every=10"]);
    whole.run().ok();
    let halves = Training { out: scratch.path("halves"), ..whole.clone() };
    halves.with(&["max_iterations=20"]).run().ok();
    halves.resume().ok();
    whole.outcome().assert_equals(&halves.outcome());
    scratch.write("sine.csv", sine(601));
    halves.with(&["max_iterations=40"]).resume().refused(&["sine.csv", "the table has changed since this run began"]);
    fs::remove_file(scratch.path("sine.csv")).unwrap();
    Finished::of(&mut minrnn(&["eval", &shown(&halves.out)])).refused(&["sine.csv", "could not read"]);
}

#[test]
fn a_damaged_parquet_file_is_told_of_in_one_sentence() {
    let scratch = Scratch::new();
    let intact = concat!(env!("CARGO_MANIFEST_DIR"), "/../minrnn/tests/fixtures/tables/delta.parquet");
    let mut bytes = fs::read(intact).unwrap();
    // A page whose header claims a wrong layout of its values, at which the decoder panics.
    (bytes[24], bytes[61]) = (8, 13);
    let data = shown(&scratch.write("damaged.parquet", bytes));
    let args = ["--task", "forecast", "--data", &data, "--target", "value", "--columns", "step,value,half,flag", "--group", "name"];
    training(&scratch, &args, &[]).run().refused(&["damaged.parquet", "it is damaged"]);
}

#[test]
fn what_is_wrong_with_a_table_is_a_sentence() {
    let scratch = Scratch::new();
    let good: PathBuf = scratch.write("good.csv", slopes(20, 2));
    let check = |content: &[u8], args: &[&str], parts: &[&str]| {
        let data = shown(&scratch.write("bad.csv", content));
        let args: Vec<&str> = ["--data", &data].into_iter().chain(args.iter().copied()).collect();
        let training = training(&scratch, &args, &[]);
        training.run().refused(parts);
        assert!(!training.out.join("checkpoints").exists());
    };
    let classify: [&str; 6] = ["--task", "classify", "--group", "machine", "--target", "state"];
    let forecast: [&str; 4] = ["--task", "forecast", "--target", "x"];
    check(b"", &forecast, &["bad.csv", "it is empty"]);
    check(b"x,y\n", &forecast, &["no rows below its header"]);
    check(b"x\n1\n2\nNaN\n", &forecast, &["line 4, column 'x': expected a finite number, found 'NaN'"]);
    check(b"x\n1\n1e308\n", &forecast, &["line 3, column 'x': expected a number of at most 3.4e38 in size, found '1e308'"]);
    check(b"x,y\n1,2\n,2\n", &forecast, &["line 3, column 'x': the cell is empty"]);
    check(b"x,y\n1,2\n1,2,3\n", &forecast, &["line 3 has 3 cells, expected 2"]);
    check(b"x,y\n1,2\n\xff,2\n", &forecast, &["line 3, cell 1: it is not UTF-8"]);
    check(b"xs,y\n1,2\n1,2\n", &forecast, &["there is no column 'x'; did you mean 'xs'?"]);
    check(b"x\n1\n2\n", &forecast, &["no sequence is long enough to forecast 1 steps"]);
    check(b"x\n1\n", &forecast, &["it has 1 row"]);
    check(b"machine,state,x,y,x\na,u,1,2,3\n", &classify, &["the column 'x' is there twice"]);
    check(b"PAR1 and nothing more", &forecast, &["it cannot be read as Parquet"]);
    check(b"x\n1\n2\n", &["--task", "forecast"], &["--target"]);
    check(b"x\n1\n2\n", &["--task", "classify", "--target", "x"], &["--group"]);
    check(b"x\n1\n2\n", &["--target", "x"], &["--task"]);
    check(b"x\n1\n2\n", &["--task", "forecast", "--target", "x", "--horizon", "0"], &["horizon must be between 1 and"]);
    for flag in ["--horizon", "--season"] {
        let args = ["--task", "forecast", "--target", "x", flag, "18446744073709551615"];
        check(b"x\n1\n2\n", &args, &[&flag[2..], "must be", "found 18446744073709551615"]);
    }
    check(b"x\n1\n2\n", &["--task", "forecast", "--target", "x", "--columns", "x,x"], &["columns names the column 'x' twice"]);
    check(b"m,x\n1,2\n", &["--task", "classify", "--group", "m", "--target", "m"], &["names sequences and holds the class at once"]);
    check(b"machine,state,x\na,u,1\na,v,2\n", &classify, &["the sequence 'a' has the class 'u' and, in row 2 of the data, 'v'"]);
    check(b"machine,state,x\na,u,1\nb,v,2\n", &classify, &["0 of its 2 sequences are held out", "at least two of each"]);
    check(b"machine,state,x\na,u,one\n", &classify, &["line 2, column 'x': expected a finite number, found 'one'"]);
    check(b"machine,state\na,u\n", &classify, &["no column left to read numbers from"]);
    // In the test part, far from everything that is trained on.
    let far: String = (0..60).map(|t| if t == 58 { "1e30\n".to_owned() } else { format!("{}\n", t % 7) }).collect();
    check(format!("x\n\n{far}").as_bytes(), &forecast, &["line 61, column 'x': 1e30 lies ", " deviations from the mean"]);
    let missing = ["--data", "nowhere.csv"].into_iter().chain(forecast).collect::<Vec<_>>();
    training(&scratch, &missing, &[]).run().refused(&["could not read", "nowhere.csv"]);
    let text = scratch.training("text", &["max_iterations=2"]);
    text.run().ok();
    predict(&[&shown(&text.out), "--data", &shown(&good)]).refused(&["--task classify, regress or forecast"]);
}
