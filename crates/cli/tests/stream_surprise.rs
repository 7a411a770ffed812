//! `minrnn stream --surprise`: rows are judged as they arrive.

mod common;

use common::{Finished, Scratch, Training, minrnn, shown};
use serde_json::Value;

fn stream(args: &[&str], input: &str) -> Finished {
    Finished::fed(minrnn(&["stream"]).args(args), input.as_bytes())
}

/// A packed model that was trained with these arguments and settings.
fn packed(scratch: &Scratch, args: &[&str], settings: &[&str]) -> String {
    let training = Training { args: args.iter().map(ToString::to_string).collect(), ..scratch.task("run", settings) };
    training.run().ok();
    let model = shown(&scratch.path("model.minrnn"));
    Finished::of(minrnn(&["pack", "--weights", "f32", "-o", &model]).arg(training.out)).ok();
    model
}

/// Loads of two meters, in interleaved rows, one of them with a fault.
fn meters(range: std::ops::Range<usize>, fault: usize) -> String {
    let load = |meter: usize, t: usize| {
        let noise = ((t * 7919 + meter * 31) % 13) as f64 / 13.0;
        10.0 + 3.0 * (t as f64 * std::f64::consts::TAU / 12.0 + meter as f64).sin()
            + noise
            + if meter == 1 && t == fault { 8.0 } else { 0.0 }
    };
    let row = |t: usize| format!("a,{},{}\nb,{},{}\n", t, load(0, t), t, load(1, t));
    range.fold("meter,t,load\n".to_owned(), |table, t| table + &row(t))
}

/// For each sequence, in the order of their rows, what `rows` say at `columns`.
fn by_meter(table: &str, columns: [&str; 2]) -> [Vec<[String; 2]>; 2] {
    let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let place = |name: &str| header.iter().position(|column| *column == name).unwrap();
    let (at, meter) = (columns.map(place), place("meter"));
    let mut each = [Vec::new(), Vec::new()];
    lines.for_each(|cells| each[usize::from(cells[meter] == "b")].push(at.map(|at| cells[at].to_owned())));
    each
}

#[test]
fn rows_are_as_surprising_as_they_arrive_as_the_whole_table_says() {
    let scratch = Scratch::new();
    let (usual, today) = (shown(&scratch.write("usual.csv", meters(0..300, usize::MAX))), meters(300..420, 370));
    let args =
        ["--task", "forecast", "--data", &usual, "--group", "meter", "--time", "t", "--target", "load", "--horizon", "2", "--season", "12"];
    let model = packed(&scratch, &args, &["max_iterations=60", "eval_every=30", "lr=0.01", "d_model=16"]);
    let path = shown(&scratch.write("today.csv", &today));
    let columns = ["surprise", "anomaly"];
    let score = |more: &[&str]| Finished::of(minrnn(&["score", &model, "--data", &path]).args(more)).ok();
    let scored = score(&[]);
    let expected = by_meter(&scored.stdout, columns);
    let found = stream(&[&model, "--surprise"], &today).ok();
    assert!(found.stdout.starts_with("line,meter,surprise,anomaly,load +1,load q0.1 +1,"), "{found:?}");
    assert_eq!(by_meter(&found.stdout, columns), expected);
    let told = |finished: &Finished| finished.stderr.lines().find(|line| line.contains("marking what is above")).map(str::to_owned);
    assert!(told(&scored).is_some() && told(&found) == told(&scored), "{found:?}");
    let marked: Vec<usize> = expected.iter().map(|rows| rows.iter().filter(|row| row[1] == "1").count()).collect();
    assert!(marked[0] < marked[1] && marked[1] < 20 && expected[1][70][1] == "1", "{marked:?}");
    assert!(expected[0][0] == [String::new(), String::new()]);

    // Cut in two, the second part goes on from the forecast of the first.
    let state = shown(&scratch.path("state"));
    let (header, rows) = today.split_once('\n').unwrap();
    let at = rows.match_indices('\n').nth(150).unwrap().0 + 1;
    let parts = [&rows[..at], &rows[at..]].map(|part| format!("{header}\n{part}"));
    let first = stream(&[&model, "--surprise", "--save-state", &state], &parts[0]).ok().stdout;
    let second = stream(&[&model, "--surprise", "--load-state", &state], &parts[1]).ok().stdout;
    let whole = first + second.split_once('\n').unwrap().1;
    assert_eq!(by_meter(&whole, columns), expected);
    // It has the forecast whether rows were judged or not.
    stream(&[&model, "--save-state", &state], &parts[0]).ok();
    assert_eq!(stream(&[&model, "--surprise", "--load-state", &state], &parts[1]).ok().stdout, second);

    let objects = stream(&[&model, "--surprise", "--json"], &today).ok().stdout;
    for (line, object) in found.stdout.lines().skip(1).zip(objects.lines()) {
        let (cells, object): (Vec<&str>, Value) = (line.split(',').collect(), serde_json::from_str(object).unwrap());
        let surprise = object["surprise"].as_f64().map_or(String::new(), |surprise| format!("{surprise:.6}"));
        let anomaly = object["anomaly"].as_bool().map_or("", |is_marked| if is_marked { "1" } else { "0" });
        assert_eq!([&surprise, anomaly], [cells[2], cells[3]], "{object}");
        assert_eq!(object["forecast"]["load"][0].as_f64().unwrap(), cells[4].parse::<f64>().unwrap());
    }
    assert!(objects.lines().next().unwrap().contains("\"surprise\":null,\"anomaly\":null"));

    let compared = ["--calibrate", &usual, "--threshold", "0.9"];
    let [scored, found] = [score(&compared), stream(&[&[model.as_str(), "--surprise"], &compared[..]].concat(), &today).ok()];
    assert!(told(&scored).is_some_and(|told| told.contains("0.9")) && told(&found) == told(&scored), "{found:?}");
    assert_eq!(by_meter(&found.stdout, columns), by_meter(&scored.stdout, columns));
    assert_ne!(by_meter(&found.stdout, columns), expected);
}

#[test]
fn what_cannot_be_judged_is_refused_before_a_row_is_read() {
    let of_repository = |name: &str| concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/").to_owned() + name;
    let [sensors, shakespeare] = ["sensors.minrnn", "shakespeare.minrnn"].map(of_repository);
    stream(&[&sensors, "--surprise"], "").refused(&["sensors.minrnn': the model labels whole sequences and predicts no rows"]);
    let alone = stream(&[&sensors, "--threshold", "0.9"], "");
    assert!(alone.code == Some(2) && alone.stderr.contains("--surprise"), "{alone:?}");
    stream(&[&shakespeare, "--surprise"], "").refused(&["the model reads text and gives the log-probability of every token"]);
    let scratch = Scratch::new();
    let data = shown(&scratch.write("wave.csv", meters(0..100, usize::MAX)));
    let args = ["--task", "forecast", "--data", &data, "--group", "meter", "--time", "t", "--target", "load", "--horizon", "2"];
    let model = packed(&scratch, &args, &["max_iterations=2"]);
    let few = shown(&scratch.write("few.csv", meters(0..2, usize::MAX)));
    for (more, words) in [
        (["--threshold", "1"], "--threshold: expected a share of rows above 0 and below 1"),
        (["--calibrate", "-"], "'-': the rows and --calibrate would both be read from it"),
        (["--calibrate", "/dev/stdin"], "the rows and --calibrate would both be read from it"),
        (["--calibrate", "none.csv"], "'none.csv'"),
        (["--calibrate", &few], "none of the rows to compare with has a surprise; give longer sequences"),
    ] {
        stream(&[&[model.as_str(), "--surprise"], &more[..]].concat(), "").refused(&[words]);
    }
    let scratch = Scratch::new();
    let model = packed(&scratch, &args, &["max_iterations=2", "quantiles=[]"]);
    stream(&[&model, "--surprise"], "").refused(&["the model forecasts a single number without a spread to judge surprise by"]);
    // A column of ours whose name is taken by that of the sequences.
    let data = shown(&scratch.write("named.csv", meters(0..60, usize::MAX).replace("meter,", "surprise,")));
    let scratch = Scratch::new();
    let args = ["--task", "forecast", "--data", &data, "--group", "surprise", "--time", "t", "--target", "load", "--horizon", "2"];
    let model = packed(&scratch, &args, &["max_iterations=2"]);
    let renamed = stream(&[&model, "--surprise"], "surprise,t,load\na,1,2\n").ok();
    assert!(renamed.stdout.starts_with("line,surprise,surprise_scored,anomaly,load +1,"), "{renamed:?}");
    assert!(renamed.stderr.contains("what is written under this name is called 'surprise_scored'"), "{renamed:?}");
}
