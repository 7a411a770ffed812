//! Rolling-origin backtests through the command.

mod common;

use std::fmt::Write;

use common::{Finished, Random, Scratch, Training, minrnn, shown};
use serde_json::Value;

/// Two waves of 12 steps with noise, of these lengths, with times.
fn waves(lengths: &[usize]) -> String {
    let mut random = Random(3);
    let mut table = "id,ds,x\n".to_owned();
    for (at, &length) in lengths.iter().enumerate() {
        for t in 0..length {
            let x = 20.0 + 5.0 * (std::f64::consts::TAU * t as f64 / 12.0 + at as f64).sin() + random.below(100) as f64 / 100.0;
            writeln!(table, "s{at},{},{x}", t + 1).unwrap();
        }
    }
    table
}

fn trained(scratch: &Scratch, table: &str, settings: &[&str]) -> String {
    let data = shown(&scratch.write("table.csv", table));
    let args = ["--task", "forecast", "--data", &data, "--group", "id", "--target", "x", "--horizon", "4", "--season", "12"];
    let settings = [&["max_iterations=60", "lr=0.01"][..], settings].concat();
    let training = Training { args: args.iter().map(ToString::to_string).collect(), ..scratch.task("run", &settings) };
    training.run().ok();
    shown(&training.out)
}

fn backtest(model: &str, data: &str, more: &[&str]) -> Finished {
    Finished::of(minrnn(&["eval", model, "--data", data]).args(more))
}

fn objects(finished: &Finished) -> Vec<Value> {
    finished.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn forecasts_from_the_last_origins_are_scored_together_and_by_origin() {
    let scratch = Scratch::new();
    let run = trained(&scratch, &waves(&[100, 100]), &[]);
    // A longer table than was trained on: what came since.
    let longer = shown(&scratch.write("longer.csv", waves(&[124, 124])));
    let other = shown(&scratch.write("other.csv", waves(&[90, 124, 7, 5])));
    let finished = backtest(&run, &other, &["--backtest", "3", "--json"]).ok();
    assert!(
        finished.stderr.contains("2 of 4 sequences are too short for 3 forecasts: 's3' has 5 steps, which is enough for 0"),
        "{finished:?}"
    );
    let lines = objects(&finished);
    assert_eq!((&lines[0]["forecasts"], &lines[0]["sequences"], &lines[0]["horizon"]), (&7.into(), &3.into(), &4.into()));
    let mae = |lines: &[Value]| -> Vec<f64> {
        let is_mae = |line: &&Value| line["measure"] == "mean absolute error of x";
        lines.iter().filter(is_mae).map(|line| line["value"].as_f64().unwrap()).collect()
    };
    // All together, then three origins.
    assert_eq!(mae(&lines).len(), 4);
    let oldest = lines.iter().find(|line| line["steps_to_end"] == 12).unwrap();
    assert_eq!((&oldest["sequences"], &oldest["from"]), (&2.into(), &"78".into()));
    assert!(
        lines.iter().filter(|line| !line["steps_to_end"].is_null()).any(|line| line["baseline"].is_number() && line["verdict"].is_string())
    );

    // What one origin forecasts is what `predict` says of the rows before it.
    let cut: String = waves(&[100, 100]).lines().filter(|line| !line.starts_with("s1,")).map(|line| format!("{line}\n")).collect();
    let (whole, last) = (scratch.write("whole.csv", &cut), cut.trim_end().rsplit_once("\ns0,97,").unwrap());
    let known = shown(&scratch.write("known.csv", format!("{}\n", last.0)));
    let packed = shown(&scratch.path("model.minrnn"));
    Finished::of(&mut minrnn(&["pack", &run, "--weights", "f32", "-o", &packed])).ok();
    let predicted = Finished::of(&mut minrnn(&["predict", &packed, "--data", &known])).ok().stdout;
    let forecast: Vec<f64> = predicted.lines().skip(1).map(|line| line.split(',').nth(3).unwrap().parse().unwrap()).collect();
    let truth: Vec<f64> = cut.lines().rev().take(4).map(|line| line.rsplit(',').next().unwrap().parse().unwrap()).collect();
    let error = forecast.iter().zip(truth.iter().rev()).map(|(a, b)| (a - b).abs()).sum::<f64>() / 4.0;
    let of_packed = backtest(&packed, &shown(&whole), &["--backtest", "1", "--json"]).ok();
    assert!((mae(&objects(&of_packed))[0] - error).abs() < 1e-5, "{error} {of_packed:?}");
    assert!(of_packed.stderr.contains("a packed model does not say what it has learned from"), "{of_packed:?}");

    let table = backtest(&run, &longer, &["--backtest", "3", "--stride", "2"]).ok().stdout;
    assert!(table.contains("6 forecasts of 4 steps, the last of 2 sequences, 2 steps apart"), "{table}");
    let rows: Vec<&str> = table.lines().skip_while(|line| !line.starts_with("x by origin")).collect();
    assert_eq!(rows[1].split_whitespace().collect::<Vec<_>>(), ["from", "n", "MAE", "naive", "sMAPE", "naive", "MASE", "naive", "covers"]);
    let from: Vec<&str> = rows[2..].iter().map(|row| row.split_whitespace().next().unwrap()).collect();
    assert_eq!(from, ["116", "118", "120"]);
}

#[test]
fn origins_in_what_was_learned_from_are_told_of() {
    let scratch = Scratch::new();
    let table = waves(&[100, 100]);
    let run = trained(&scratch, &table, &[]);
    let data = shown(&scratch.path("table.csv"));
    // Of 100 steps 90 are learned from before the test part is scored: after them there are 2 origins, each with 4 steps to forecast.
    let within = backtest(&run, &data, &["--backtest", "2"]).ok();
    assert!(within.stderr.contains("scoring the earlier one") && !within.stderr.contains("flatter"), "{within:?}");
    let beyond = backtest(&run, &data, &["--backtest", "5"]).ok();
    assert!(
        beyond.stderr.contains("6 of 10 forecasts are of values that the model has learned from: these numbers flatter it"),
        "{beyond:?}"
    );
    // The model that learned from all of it, by its name.
    let best = std::fs::read_to_string(format!("{run}/checkpoints/best")).unwrap();
    let all = backtest(&format!("{run}/checkpoints/{}", best.trim()), &data, &["--backtest", "2"]).ok();
    assert!(all.stderr.contains("4 of 4 forecasts are of values that the model has learned from"), "{all:?}");
    // The same rows in a table that has grown: only what came since is new to the model.
    let grown = table.lines().map(str::to_owned).chain((0..8).flat_map(|t| (0..2).map(move |at| format!("s{at},{},20", 101 + t))));
    let grown = shown(&scratch.write("grown.csv", grown.collect::<Vec<_>>().join("\n") + "\n"));
    assert_eq!(backtest(&run, &grown, &["--backtest", "2"]).ok().stderr, "");
    std::fs::remove_file(scratch.path("table.csv")).unwrap();
    let gone = backtest(&run, &grown, &["--backtest", "2"]).ok();
    assert!(gone.stderr.contains("the table that the model has learned from is gone, or has changed"), "{gone:?}");
}

#[test]
fn what_cannot_be_backtested_is_a_sentence() {
    let scratch = Scratch::new();
    let run = trained(&scratch, &waves(&[60]), &["max_iterations=2"]);
    let short = shown(&scratch.write("short.csv", waves(&[5, 4])));
    backtest(&run, &short, &["--backtest", "2"]).refused(&["short.csv", "the longest has 5 steps, expected at least 6"]);
    backtest(&run, &shown(&scratch.path("none.csv")), &["--backtest", "2"]).refused(&["none.csv"]);
    let table = shown(&scratch.write("long.csv", waves(&[60])));
    backtest(&run, &table, &["--backtest", "1", "--memory-limit", "20MiB"]).refused(&["needs about", "the memory limit is 20.0 MiB"]);
    for more in [&["--backtest", "0"][..], &["--stride", "2"], &["--backtest", "1", "--against", "x"]] {
        assert_eq!(backtest(&run, &short, more).code, Some(2), "{more:?}");
    }
    assert_eq!(Finished::of(&mut minrnn(&["eval", &run, "--backtest", "2"])).code, Some(2));
    let text = scratch.training("text", &["max_iterations=2"]);
    text.run().ok();
    backtest(&shown(&text.out), &short, &["--backtest", "2"]).refused(&["it does not forecast", "--task forecast"]);
}
