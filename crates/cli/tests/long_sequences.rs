//! Tables of long sequences, of which several rows are one step of the model.

mod common;

use std::fmt::Write;
use std::fs;
use std::path::Path;

use common::{Finished, Scratch, minrnn, shown, told, train_table};
use minrnn_model::CheckpointFiles;
use serde_json::Value;

const CLASSIFY: [&str; 6] = ["--task", "classify", "--group", "machine", "--target", "state"];

/// Machines of two kinds that vibrate differently, with `rows` rows each and a few more.
fn machines(n: usize, rows: usize) -> String {
    let mut table = String::from("machine,state,vibration,load\n");
    for machine in 0..n {
        let state = machine % 2;
        for t in 0..rows + machine % 5 {
            let x = (t as f64 * (0.1 + 0.2 * state as f64) + machine as f64).sin();
            writeln!(table, "m{machine},{},{x},{}", ["good", "worn"][state], (t * t + machine) % 7).unwrap();
        }
    }
    table
}

/// Rows that are a step of the model in a checkpoint or the newest one of a run.
fn rows_per_step(checkpoint: &Path) -> Option<u64> {
    let task: Value = serde_json::from_str(&fs::read_to_string(checkpoint.join("task.json")).unwrap()).unwrap();
    task["rows_per_step"]["n"].as_u64()
}

fn last(run: &str) -> std::path::PathBuf {
    let folder = Path::new(run).join("checkpoints");
    folder.join(fs::read_to_string(folder.join("last")).unwrap().trim())
}

#[test]
fn a_model_of_long_sequences_predicts_the_same_from_a_file_and_row_by_row() {
    let scratch = Scratch::new();
    let table = machines(12, 601);
    let (finished, run) = train_table(&scratch, "long.csv", &table, &CLASSIFY, &[]);
    let told_of_steps =
        "the sequences are long: 3 rows are read as one step, by their mean, deviation and change (rows_per_step = 1 reads every row)";
    assert!(finished.stdout.contains(told_of_steps) || finished.stderr.contains(told_of_steps), "{finished:?}");
    finished.ok();
    assert_eq!(rows_per_step(&last(&run)), Some(3));
    let recorded = || fs::read_to_string(Path::new(&run).join("experiment.toml")).unwrap();
    assert!(recorded().contains("rows_per_step = 3\n"), "{}", recorded());
    told(&["train", "--resume", "--out", &run, "--set", "rows_per_step=3"]).ok();
    told(&["train", "--resume", "--out", &run, "--set", "rows_per_step=4"])
        .refused(&["data.rows_per_step must stay 3, as the run began with it"]);
    let (data, file) = (shown(&scratch.path("long.csv")), shown(&scratch.path("model.minrnn")));
    told(&["pack", &run, "--weights", "f32", "-o", &file]).ok();
    for model in [&run, &file] {
        let inspected = told(&["inspect", model]).ok().stdout;
        assert!(
            inspected.contains("a step is") && inspected.contains("  3 rows, read by their mean, deviation and change\n"),
            "{inspected}"
        );
    }
    let predicted = |model: &str| -> Vec<(String, f64)> {
        let csv = told(&["predict", model, "--data", &data]).ok().stdout;
        assert!(csv.starts_with("machine,state,probability of good,probability of worn\n"), "{csv}");
        let row = |line: &str| {
            let cells: Vec<&str> = line.split(',').collect();
            (cells[0].to_owned(), cells[2].parse().unwrap())
        };
        csv.lines().skip(1).map(row).collect()
    };
    let (trained, packed) = (predicted(&run), predicted(&file));
    // They differ by far more than is compared.
    let spread = |of: &[(String, f64)]| of.iter().map(|(_, p)| *p).fold(0.0, f64::max) - of.iter().map(|(_, p)| *p).fold(1.0, f64::min);
    assert!(spread(&trained) > 0.01, "{trained:?}");
    let near = |a: &[(String, f64)], b: &[(String, f64)]| {
        assert_eq!((a.len(), b.len()), (12, 12));
        assert!(a.iter().zip(b).all(|(a, b)| a.0 == b.0 && (a.1 - b.1).abs() < 1e-4), "{a:?}\n{b:?}");
    };
    near(&trained, &packed);
    // Row by row, all machines in turns; the last answer for each is that for the whole sequence.
    let mut lines: Vec<(usize, &str)> = Vec::new();
    let mut read = std::collections::HashMap::new();
    for line in table.lines().skip(1) {
        let t = read.entry(line.split(',').next().unwrap()).or_insert(0);
        lines.push((*t, line));
        *t += 1;
    }
    lines.sort_by_key(|(t, _)| *t);
    let rows: String = lines.iter().map(|(_, line)| format!("{line}\n")).collect();
    let input = format!("machine,state,vibration,load\n{rows}");
    let answers = Finished::fed(minrnn(&["stream"]).arg(&file), input.as_bytes()).ok().stdout;
    let mut streamed: Vec<(String, f64)> = packed.iter().map(|(machine, _)| (machine.clone(), f64::NAN)).collect();
    for line in answers.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let at = streamed.iter().position(|(machine, _)| machine == cells[1]).unwrap();
        streamed[at].1 = cells[3].parse().unwrap();
    }
    assert_eq!(answers.lines().count(), 1 + lines.len());
    near(&packed, &streamed);
    // What the model has inside is told for each of its steps: 201 of 601 rows, 202 of 604.
    let hidden = shown(&scratch.path("hidden.csv"));
    told(&["predict", &file, "--data", &data, "--hidden", &hidden]).ok();
    let steps = |machine: &str| fs::read_to_string(&hidden).unwrap().lines().filter(|line| line.starts_with(machine)).count();
    assert_eq!([steps("m0,"), steps("m3,")], [201, 202]);
}

#[test]
fn how_many_rows_are_a_step_is_set_and_kept() {
    let scratch = Scratch::new();
    let table = machines(8, 40);
    let of = |settings: &[&str]| {
        let (finished, run) = train_table(&scratch, "short.csv", &table, &CLASSIFY, settings);
        finished.ok();
        rows_per_step(&last(&run))
    };
    assert_eq!([of(&["rows_per_step=1"]), of(&[]), of(&["rows_per_step=7"])], [None, None, Some(7)]);
    let (run, data) = (shown(&scratch.path("run")), shown(&scratch.path("short.csv")));
    let next = shown(&scratch.path("next"));
    let from = |setting: &[&str]| {
        Finished::of(
            minrnn(&["train", "--from", &run, "--data", &data, "--out", &next]).args(setting.iter().flat_map(|set| ["--set", set])),
        )
    };
    let kept = "rows_per_step must stay 7, as in the model that train.from names, found 2; leave it out";
    from(&["rows_per_step=2"]).refused(&[kept]);
    from(&[]).ok();
    assert_eq!(rows_per_step(&last(&next)), Some(7));
    let refused = |task: &[&str], setting: &str, part: &str| {
        train_table(&scratch, "short.csv", &table, task, &[setting]).0.refused(&[part]);
    };
    refused(&CLASSIFY, "rows_per_step=65537", "rows_per_step must be at most 65536, or 0 to let their length decide, found 65537");
    let forecast = ["--task", "forecast", "--group", "machine", "--target", "load"];
    refused(&forecast, "rows_per_step=2", "rows_per_step is read by the tasks classify, regress alone");
}

#[test]
fn a_run_from_before_there_were_steps_of_several_rows_goes_on_with_single_ones() {
    let scratch = Scratch::new();
    let settings = ["rows_per_step=1", "refit=false"];
    let (finished, run) = train_table(&scratch, "long.csv", machines(8, 600), &CLASSIFY, &settings);
    finished.ok();
    // As it would have been written then.
    let experiment = Path::new(&run).join("experiment.toml");
    let text = fs::read_to_string(&experiment).unwrap();
    assert!(text.contains("rows_per_step = 1\n"), "{text}");
    fs::write(&experiment, text.replace("rows_per_step = 1\n", "")).unwrap();
    for checkpoint in fs::read_dir(Path::new(&run).join("checkpoints")).unwrap().map(|entry| entry.unwrap().path()) {
        if checkpoint.is_dir() {
            let file = checkpoint.join("config.json");
            let mut config: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
            config["data"].as_object_mut().unwrap().remove("rows_per_step").unwrap();
            fs::write(&file, serde_json::to_string_pretty(&config).unwrap()).unwrap();
            CheckpointFiles::seal(&checkpoint).unwrap();
        }
    }
    told(&["eval", &run]).ok();
    let more = ["train", "--resume", "--out", &run, "--set"];
    told(&[&more[..], &["rows_per_step=4"]].concat()).refused(&["data.rows_per_step must stay 1, as the run began with it, found 4"]);
    told(&[&more[..], &["max_iterations=6"]].concat()).ok();
    assert!(last(&run).ends_with("iter-6"), "{:?}", last(&run));
    assert_eq!(rows_per_step(&last(&run)), None);
    // A checkpoint that is damaged does not stand in the way of others.
    fs::write(last(&run).join("config.json"), "{").unwrap();
    told(&["eval", &shown(&Path::new(&run).join("checkpoints/iter-4"))]).ok();
}

#[test]
fn a_model_to_start_from_gives_its_steps_to_another_task() {
    let scratch = Scratch::new();
    let short = shown(&scratch.write("short.csv", machines(6, 40)));
    let small = ["max_iterations=2", "d_model=8", "n_layers=1", "threads=1", "warmup=1"].into_iter().flat_map(|setting| ["--set", setting]);
    let small: Vec<&str> = small.collect();
    let train = |out: &str, args: &[&str]| {
        let out = shown(&scratch.path(out));
        told(&[&["train", "--out", &out][..], args, &small].concat()).ok();
        out
    };
    let columns = ["--group", "machine", "--columns", "vibration"];
    let classes = [&["--task", "classify", "--target", "state", "--data", &short][..], &columns].concat();
    let forecaster = train(
        "forecaster",
        &[
            &["--task", "forecast", "--target", "vibration", "--data", &short, "--set", "mixer=s4d", "--set", "scaling=standard"][..],
            &columns,
        ]
        .concat(),
    );
    let (every, fifth) = (train("every", &classes), train("fifth", &[&classes[..], &["--set", "rows_per_step=5"]].concat()));
    let other = [
        "train",
        "--task",
        "regress",
        "--target",
        "state",
        "--data",
        &short,
        "--from",
        &fifth,
        "--set",
        "rows_per_step=7",
        "--out",
        "none",
    ];
    told(&other).refused(&["rows_per_step must stay 5, as in the model that train.from names, found 7"]);
    // Long sequences, of which three rows would be a step otherwise.
    let long = shown(&scratch.write("long.csv", machines(6, 600).replace(",good,", ",1,").replace(",worn,", ",2,")));
    for (from, expected) in [(&forecaster, None), (&every, None), (&fifth, Some(5))] {
        let next = train("next", &[&["--task", "regress", "--target", "state", "--data", &long, "--from", from][..], &columns].concat());
        assert_eq!(rows_per_step(&last(&next)), expected, "{from}");
        fs::remove_dir_all(&next).unwrap();
    }
}

#[test]
fn a_column_that_stays_the_same_in_a_sequence_has_no_deviation() {
    let scratch = Scratch::new();
    let mut table = String::from("machine,state,vibration,age\n");
    for line in machines(8, 40).lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let age = 30.1 + cells[0][1..].parse::<f64>().unwrap() / 7.0;
        writeln!(table, "{},{},{},{age}", cells[0], cells[1], cells[2]).unwrap();
    }
    let (finished, run) = train_table(&scratch, "ages.csv", &table, &CLASSIFY, &["rows_per_step=7"]);
    finished.ok();
    let task: Value = serde_json::from_str(&fs::read_to_string(last(&run).join("task.json")).unwrap()).unwrap();
    let scale = &task["rows_per_step"]["normalization"];
    // Of two columns the mean, the deviation and the change.
    for at in [4, 5] {
        assert_eq!((scale["mean"][at].as_f64(), scale["deviation"][at].as_f64()), (Some(0.0), Some(1.0)), "{task}");
    }
}
