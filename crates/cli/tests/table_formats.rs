//! Tables in every format and layout: what is read is the same, what is understood is said, and what is broken is a sentence.

mod common;

use std::fmt::Write;
use std::fs;
use std::process::Stdio;

use common::{Finished, Scratch, minrnn, predict, shown, train_table};
use serde_json::Value;

const CLASSIFY: [&str; 2] = ["--task", "classify"];
const FORECAST: [&str; 2] = ["--task", "forecast"];

/// A tiny training of the file `name` with this content.
fn train(scratch: &Scratch, name: &str, content: impl AsRef<[u8]>, args: &[&str]) -> (Finished, String) {
    train_table(scratch, name, content, args, &[])
}

/// What the last checkpoint of a run knows of its table.
fn task(run: &str) -> Value {
    let folder = std::path::Path::new(run).join("checkpoints");
    let last = fs::read_to_string(folder.join("last")).unwrap();
    serde_json::from_slice(&fs::read(folder.join(last.trim()).join("task.json")).unwrap()).unwrap()
}

fn weights(run: &str) -> Vec<u8> {
    let folder = std::path::Path::new(run).join("checkpoints");
    let last = fs::read_to_string(folder.join("last")).unwrap();
    fs::read(folder.join(last.trim()).join("model.safetensors")).unwrap()
}

fn fixture(name: &str) -> Vec<u8> {
    fs::read(format!("{}/../minrnn/tests/fixtures/tables/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Series of two classes as an archive has them: `dimensions` of them, of 6 to 8 steps.
fn archive(n: usize, dimensions: usize) -> String {
    let mut text =
        format!("# made up\n@problemName Made\n@timeStamps false\n@univariate {}\n@classLabel true good worn\n@data\n", dimensions == 1);
    for series in 0..n {
        let is_good = series % 2 == 0;
        let step = |dimension: usize, t: usize| format!("{}", (t * (dimension + 1)) as f64 * if is_good { 1.0 } else { -1.0 });
        let steps = |dimension: usize| (0..6 + series % 3).map(|t| step(dimension, t)).collect::<Vec<_>>().join(",");
        let dimensions: Vec<String> = (0..dimensions).map(steps).collect();
        writeln!(text, "{}:{}", dimensions.join(":"), if is_good { "good" } else { "worn" }).unwrap();
    }
    text
}

#[test]
fn the_same_table_is_learned_alike_from_every_format() {
    let scratch = Scratch::new();
    let (mut csv, mut json) = ("name,step,value,half,flag\n".to_owned(), String::new());
    for i in 0..300 {
        let name = ["series a", "series b"][i / 100 % 2];
        let (value, half, flag) = (0.25 * i as f64 - 10.0, i as f64 / 2.0, i % 3 == 0);
        writeln!(csv, "{name},{i},{value},{half},{}", u8::from(flag)).unwrap();
        writeln!(json, "{}", serde_json::json!({"flag": flag, "half": half, "value": value, "step": i, "name": name})).unwrap();
    }
    let args = [&FORECAST[..], &["--group", "name", "--target", "value", "--columns", "value,half,flag"]].concat();
    let of = |name: &str, content: &[u8]| {
        let (finished, run) = train(&scratch, name, content, &args);
        finished.ok();
        weights(&run)
    };
    let expected = of("table.csv", csv.as_bytes());
    for (name, content) in [
        ("table.ndjson", json.clone().into_bytes()),
        ("table", json.into_bytes()),
        ("table.feather", fixture("default.feather")),
        ("lz4", fixture("lz4.feather")),
        ("table.arrows", fixture("stream.arrows")),
        ("table.parquet", fixture("default.parquet")),
    ] {
        assert!(of(name, &content) == expected, "{name}");
    }
}

#[test]
fn an_archive_is_classified_without_a_word_about_its_columns() {
    let scratch = Scratch::new();
    let test = shown(&scratch.write("Made_TEST.ts", archive(12, 1)));
    let (finished, run) = train(&scratch, "Made_TRAIN.ts", archive(20, 1), &[&CLASSIFY[..], &["--test", &test]].concat());
    let finished = finished.ok();
    assert!(finished.stdout.contains("n = 12)"), "{finished:?}");
    assert!(finished.stderr.contains("read with group = series, target = class, as its columns are called\n"), "{finished:?}");
    let told = predict(&[&run, "--data", &test]).ok().stdout;
    assert!(told.starts_with("series,class,probability of good,probability of worn\n1,") && told.lines().count() == 13, "{told}");
    Finished::of(&mut minrnn(&["eval", &run, "--data", &test])).ok();
    // From a pipe, whose name says nothing about the format.
    let mut piped = minrnn(&["predict", &run, "--data", "-"]);
    let mut child = piped.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), archive(12, 1).as_bytes()).unwrap();
    assert_eq!(String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap(), told);

    let several = shown(&scratch.write("Several_TEST.ts", archive(12, 3)));
    let (finished, run) = train(&scratch, "Several_TRAIN.ts", archive(20, 3), &[&CLASSIFY[..], &["--test", &several]].concat());
    finished.ok();
    assert_eq!(task(&run)["columns"], serde_json::json!(["dim_0", "dim_1", "dim_2"]));
    predict(&[&run, "--data", &test]).refused(&["Made_TEST.ts", "there is no column 'dim_0'"]);
}

#[test]
fn forecasts_take_the_names_of_statsforecast_where_none_are_given() {
    let scratch = Scratch::new();
    let days = (0..40).fold("unique_id,ds,y\n".to_owned(), |table, t| {
        table
            + &format!(
                "a,2024-{:02}-{:02},{}\nb,2024-{:02}-{:02},{}\n",
                1 + t / 28,
                1 + t % 28,
                5 + t % 7,
                1 + t / 28,
                1 + t % 28,
                9 - t % 7
            )
    });
    let (finished, run) = train(&scratch, "days.csv", &days, &[&FORECAST[..], &["--horizon", "2"]].concat());
    assert!(finished.ok().stderr.contains("read with group = unique_id, target = y, time = ds, as its columns are called\n"));
    let told = predict(&[&run, "--data", &shown(&scratch.path("days.csv"))]).ok().stdout;
    assert!(told.starts_with("unique_id,ds,step,y,y q0.1,y q0.9\na,2024-02-13,1,"), "{told}");
    // Columns that are named win, without a message.
    let other = days.replace("unique_id", "id");
    let (finished, _) = train(&scratch, "other.csv", &other, &[&FORECAST[..], &["--group", "id", "--target", "y"]].concat());
    assert!(!finished.ok().stderr.contains("read with"));
    let (finished, _) = train(&scratch, "none.csv", days.replace(",y", ",sales"), &FORECAST);
    finished.refused(&["to forecast, name the columns that are to be predicted", "--target"]);
}

#[test]
fn a_run_that_began_without_times_goes_on_in_the_order_of_its_file() {
    let scratch = Scratch::new();
    // A table that is not in the order of its dates.
    let row = |t: usize| format!("2024-{:02}-{:02},{}\n", 1 + t * 7 % 60 / 28, 1 + t * 7 % 60 % 28, 5 + t % 7);
    let table = (0..60).fold("Tag,x\n".to_owned(), |table, t| table + &row(t));
    let args = [&FORECAST[..], &["--target", "x", "--horizon", "2", "--set", "time=\"\""]].concat();
    let (finished, run) = train(&scratch, "days.csv", &table, &args);
    finished.ok();
    assert_eq!(task(&run)["time"], Value::Null);
    let score = || Finished::of(&mut minrnn(&["eval", &run])).ok().stdout;
    let before = score();
    // As in earlier runs, which were to find the times and missed them, since not every format looked for dates among its texts.
    let settings = std::path::Path::new(&run).join("experiment.toml");
    let of_run = fs::read_to_string(&settings).unwrap();
    assert!(of_run.contains("time = \"\"\n"), "{of_run}");
    fs::write(&settings, of_run.replace("time = \"\"\n", "time = \"auto\"\n")).unwrap();
    for checkpoint in fs::read_dir(std::path::Path::new(&run).join("checkpoints")).unwrap().map(|entry| entry.unwrap().path()) {
        if checkpoint.is_dir() {
            let (config, digests) = (checkpoint.join("config.json"), checkpoint.join("SHA256SUMS"));
            let of_checkpoint = fs::read_to_string(&config).unwrap();
            assert!(of_checkpoint.contains("\"time\": \"\""), "{of_checkpoint}");
            fs::write(config, of_checkpoint.replace("\"time\": \"\"", "\"time\": \"auto\"")).unwrap();
            fs::remove_file(digests).unwrap();
        }
    }
    assert_eq!(score(), before);
    Finished::of(&mut minrnn(&["train", "--resume", "--out", &run])).ok();
    // A new run has the times.
    let (finished, run) = train(&scratch, "days.csv", &table, &[&FORECAST[..], &["--target", "x", "--horizon", "2"]].concat());
    finished.ok();
    assert_eq!(task(&run)["time"], "Tag");
}

#[test]
fn typed_times_go_on_as_dates() {
    let scratch = Scratch::new();
    for (name, time, next) in [
        ("times.parquet", "ds", "2024-01-03 00:00:00"),
        ("times.parquet", "us", "2024-01-03 00:00:00"),
        ("times.parquet", "ms", "2024-01-03 00:00:00"),
        ("times.feather", "ds", "2024-01-03 00:00:00"),
    ] {
        let args = [&FORECAST[..], &["--target", "x", "--time", time]].concat();
        let (finished, run) = train(&scratch, name, fixture(name), &args);
        finished.ok();
        assert_eq!(task(&run)["season"], 24);
        let told = predict(&[&run, "--data", &shown(&scratch.path(name))]).ok().stdout;
        assert_eq!(told.lines().nth(1).unwrap().split(',').next().unwrap(), next, "{told}");
    }
    let (finished, _) = train(&scratch, "old.parquet", fixture("times_96.parquet"), &[&FORECAST[..], &["--target", "x"]].concat());
    finished.refused(&["old.parquet", "the column 'ds' holds 96-bit times", "64-bit timestamps"]);
}

/// Two classes of series of `steps` steps, a row for each, the class first.
fn rows(n: usize, steps: usize, delimiter: &str) -> String {
    let row = |at: usize| {
        let sign = if at.is_multiple_of(2) { 1.0 } else { -1.0 };
        let cells = (0..steps).map(|t| format!("{:.3}", sign * t as f64 + 0.1 * at as f64 - 0.55));
        [format!("{}", 1 + at % 2)].into_iter().chain(cells).collect::<Vec<_>>().join(delimiter)
    };
    (0..n).map(|at| row(at) + "\n").collect()
}

#[test]
fn a_row_for_each_series_is_understood_where_its_columns_leave_no_doubt() {
    let scratch = Scratch::new();
    // As the UCR archive has them: no names, tabs, shorter ones filled up.
    let nameless = rows(20, 9, "\t").replace("\t7.450", "\tNaN").replace("\t8.450", "\tNaN");
    let test = shown(&scratch.write("test.tsv", &nameless));
    let (finished, run) = train(&scratch, "train.tsv", &nameless, &[&CLASSIFY[..], &["--test", &test]].concat());
    let finished = finished.ok();
    assert!(
        finished.stderr.contains("read as a row for each series, without names of columns: first its class, then 9 steps\n")
            && finished.stdout.contains("n = 20)"),
        "{finished:?}"
    );
    assert_eq!((&task(&run)["layout"], &task(&run)["columns"][0]), (&"wide-series".into(), &"value".into()));
    let told = predict(&[&run, "--data", &test]).ok().stdout;
    assert!(told.starts_with("series,class,") && told.lines().count() == 21, "{told}");
    Finished::of(&mut minrnn(&["eval", &run, "--data", &test])).ok();
    // The same model reads a long table.
    let long = shown(&scratch.write("long.csv", "series,value\na,1\na,2\nb,-1\nb,-2\n"));
    assert!(predict(&[&run, "--data", &long]).ok().stdout.lines().nth(1).unwrap().starts_with("a,"));

    let header: Vec<String> = ["state".to_owned()].into_iter().chain((1..=9).map(|t| format!("t{t}"))).collect();
    let named = format!("{}\n{}", header.join(","), rows(20, 9, ","));
    let (finished, _) = train(&scratch, "named.csv", &named, &[&CLASSIFY[..], &["--target", "state"]].concat());
    assert!(finished.ok().stderr.contains("counted from 1 on, with its class in 'state' and 9 steps ('t1' to 't9')\n"));
    // Columns that may be anything are not taken for steps.
    let others = named.replace("t1,t2,t3", "pressure,humidity,load");
    let (finished, _) = train(&scratch, "others.csv", &others, &[&CLASSIFY[..], &["--target", "state"]].concat());
    finished.refused(&["--group"]);
    let (finished, _) =
        train(&scratch, "others.csv", &others, &[&CLASSIFY[..], &["--target", "state", "--layout", "wide-series"]].concat());
    finished.refused(&["others.csv", "the column 'pressure' is not named like a step of the series, as 't4' is"]);
    // If no name shows which they are, the layout does.
    let letters = (1..=9).fold(named.clone(), |table, t| table.replacen(&format!("t{t}"), &"abcdefghi"[t - 1..t], 1));
    let (finished, _) =
        train(&scratch, "letters.csv", &letters, &[&CLASSIFY[..], &["--target", "state", "--layout", "wide-series"]].concat());
    finished.ok();
    let (finished, _) = train(&scratch, "named.csv", &named, &[&CLASSIFY[..], &["--target", "state", "--layout", "long"]].concat());
    finished.refused(&["--group"]);
    let (finished, _) = train(&scratch, "named.csv", &named, &[&CLASSIFY[..], &["--target", "stat", "--layout", "wide-series"]].concat());
    finished.refused(&["there is no column 'stat'; did you mean 'state'?"]);
    let mixed = named.replace("t1,t2,", "t2,t1,");
    let (finished, _) = train(&scratch, "mixed.csv", &mixed, &[&CLASSIFY[..], &["--target", "state", "--layout", "wide-series"]].concat());
    finished.refused(&["mixed.csv", "its columns of steps are not in the order of their names"]);
    let gap = named.replacen(",1.450,", ",,", 1);
    let (finished, _) = train(&scratch, "gap.csv", &gap, &[&CLASSIFY[..], &["--target", "state"]].concat());
    finished.refused(&["gap.csv", "line 2, column 't3': the cell is empty"]);
}

#[test]
fn wide_tables_are_forecast() {
    let scratch = Scratch::new();
    let month = |t: usize| format!("{}-{:02}", 2020 + t / 12, 1 + t % 12);
    let value = |series: usize, t: usize| 10 * series + 5 + t % 12;
    let header: Vec<String> = (0..36).map(month).collect();
    let mut table = format!("meter,{}\n", header.join(","));
    for series in 0..3 {
        // The last series begins later.
        let cell = |t: usize| if series == 2 && t < 6 { String::new() } else { value(series, t).to_string() };
        writeln!(table, "m{series},{}", (0..36).map(cell).collect::<Vec<_>>().join(",")).unwrap();
    }
    let (finished, run) = train(&scratch, "rows.csv", &table, &[&FORECAST[..], &["--horizon", "3"]].concat());
    assert!(finished.ok().stderr.contains("read as a row for each series, named by 'meter', with 36 steps ('2020-01' to '2022-12')\n"));
    assert_eq!(task(&run)["season"], 12);
    let in_rows = predict(&[&run, "--data", &shown(&scratch.path("rows.csv"))]).ok().stdout;
    assert!(in_rows.starts_with("meter,time,step,value,value q0.1,value q0.9\nm0,2023-01,1,"), "{in_rows}");

    let mut turned = "ds,m0,m1,m2\n".to_owned();
    for t in 0..36 {
        let cell = |series: usize| if series == 2 && t < 6 { String::new() } else { value(series, t).to_string() };
        writeln!(turned, "{},{}", month(t), (0..3).map(cell).collect::<Vec<_>>().join(",")).unwrap();
    }
    let (finished, _) = train(&scratch, "columns.csv", &turned, &FORECAST);
    finished.refused(&["; give --target COLUMN, or --layout wide-columns"]);
    let args = [&FORECAST[..], &["--horizon", "3", "--layout", "wide-columns"]].concat();
    let (finished, run) = train(&scratch, "columns.csv", &turned, &args);
    assert!(finished.ok().stderr.contains("read as a column for each series, with times in 'ds': 3 series ('m0' to 'm2')\n"));
    let in_columns = predict(&[&run, "--data", &shown(&scratch.path("columns.csv"))]).ok().stdout;
    assert_eq!(in_columns.replace("series,ds", "meter,time"), in_rows);
    let packed = shown(&scratch.path("wide.minrnn"));
    Finished::of(&mut minrnn(&["pack", &run, "--weights", "f32", "-o", &packed])).ok();
    assert_eq!(predict(&[&packed, "--data", &shown(&scratch.path("columns.csv"))]).ok().stdout.lines().count(), 10);
    for (cell, sentence) in [("?14", "expected a finite number, found '?14'"), ("?", "the cell is empty"), ("", "the cell is empty")] {
        let gap = turned.replacen(&format!("{},14,", month(9)), &format!("{},{cell},", month(9)), 1);
        let (finished, _) = train(&scratch, "gap.csv", &gap, &args);
        finished.refused(&["gap.csv", &format!("line 11, column 'm0': {sentence}")]);
    }
    let masked = turned.replacen(&format!("{},14,", month(9)), &format!("{},,", month(9)), 1);
    train(&scratch, "masked.csv", &masked, &[&args[..], &["--missing", "mask"]].concat()).0.ok();
    let (finished, _) = train(&scratch, "columns.csv", &turned, &[&args[..], &["--target", "m0"]].concat());
    finished.refused(&["target = m0 is for long tables"]);
    let (finished, _) = train(&scratch, "columns.csv", &turned, &[&CLASSIFY[..], &["--layout", "wide-columns"]].concat());
    finished.refused(&["wide-columns has no place for a class"]);
    let (finished, _) = train(&scratch, "columns.csv", turned.replace(",m2", ",m1"), &args);
    finished.refused(&["the column 'm1' is there twice"]);
}

/// A load that depends on the kind of the day.
fn kinds_of_days(n: usize) -> String {
    (0..n).fold("id,kind,load\n".to_owned(), |table, t| {
        let kind = ["work", "work", "feast"][t % 3];
        table
            + &format!(
                "a,{kind},{}\nb,{kind},{}\n",
                if kind == "work" { 10 + t % 2 } else { 3 },
                if kind == "work" { 20 } else { 5 + t % 2 }
            )
    })
}

#[test]
fn columns_of_names_are_inputs_of_their_own_everywhere() {
    let scratch = Scratch::new();
    let table = kinds_of_days(60);
    let args = [&FORECAST[..], &["--group", "id", "--target", "load", "--columns", "load,kind"]].concat();
    let (finished, run) = train(&scratch, "days.csv", &table, &args);
    finished.ok();
    assert_eq!(task(&run)["categories"], serde_json::json!([{"column": 1, "values": ["feast", "work"]}]));
    let data = shown(&scratch.path("days.csv"));
    let told = predict(&[&run, "--data", &data]).ok().stdout;
    Finished::of(&mut minrnn(&["eval", &run, "--data", &data])).ok();
    let packed = shown(&scratch.path("days.minrnn"));
    Finished::of(&mut minrnn(&["pack", &run, "--weights", "f32", "-o", &packed])).ok();
    let inspected = Finished::of(&mut minrnn(&["inspect", &packed])).ok().stdout;
    assert!(inspected.contains("names of kind") && inspected.contains("feast, work"), "{inspected}");
    let numbers = |text: &str| -> Vec<f64> {
        text.lines().skip(1).flat_map(|line| line.split(',').skip(2)).filter_map(|cell| cell.parse().ok()).collect()
    };
    let near = |a: &[f64], b: &[f64]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-3 * b.abs());
    assert!(near(&numbers(&predict(&[&packed, "--data", &data]).ok().stdout), &numbers(&told)));
    let streamed = Finished::of(minrnn(&["stream", &packed]).stdin(fs::File::open(&data).unwrap())).ok().stdout;
    let last = streamed.lines().rev().take(2).collect::<Vec<_>>();
    assert!(near(&numbers(&format!("\n{}\n{}", last[1], last[0])), &numbers(&told)), "{streamed}{told}");

    // A name that training never saw counts as none of the known ones, and the name of the last row decides what is predicted.
    let ending = |kind: &str| {
        let unseen = shown(&scratch.write("unseen.csv", format!("{table}a,{kind},10\nb,{kind},20\n")));
        predict(&[&run, "--data", &unseen]).ok().stdout
    };
    let [work, feast, strange, other] = ["work", "feast", "strange", "another"].map(ending);
    assert!(work != feast && strange != work && strange != feast && strange == other);
    // A name that is only in the test part was not seen either.
    let (finished, run) =
        train(&scratch, "late.csv", format!("{table}a,late,10\nb,late,20\n"), &[&args[..], &["--set", "refit=false"]].concat());
    finished.ok();
    assert_eq!(task(&run)["categories"][0]["values"], serde_json::json!(["feast", "work"]));

    let classes: String = (0..40).fold("id,class,place,x\n".to_owned(), |table, at| {
        table + &(0..4).map(|step| format!("s{at},{},{},{step}\n", ["up", "down"][at % 2], ["north", "south"][at % 2])).collect::<String>()
    });
    let args = [&CLASSIFY[..], &["--group", "id", "--target", "class", "--columns", "x,place"]].concat();
    let (finished, run) = train(&scratch, "classes.csv", &classes, &args);
    finished.ok();
    assert_eq!(task(&run)["categories"][0]["values"], serde_json::json!(["north", "south"]));
    let json = classes.lines().skip(1).fold(String::new(), |text, line| {
        let cells: Vec<&str> = line.split(',').collect();
        let x: f64 = cells[3].parse().unwrap();
        text + &serde_json::json!({"id": cells[0], "class": cells[1], "place": cells[2], "x": x}).to_string() + "\n"
    });
    let json = shown(&scratch.write("classes.json", json));
    let told = predict(&[&run, "--data", &shown(&scratch.path("classes.csv"))]).ok().stdout;
    assert_eq!(predict(&[&run, "--data", &json]).ok().stdout, told);

    let refused = |content: &str, parts: &[&str]| train(&scratch, "bad.csv", content, &args).0.refused(parts);
    refused(&classes.replacen("south", "7", 1), &["line 6, column 'place'", "expected a name such as 'north', found the number '7'"]);
    refused(&classes.replacen("down,south,2", "down,south,two", 1), &["line 8, column 'x': expected a finite number, found 'two'"]);
    let many = (0..70).fold("id,class,place,x\n".to_owned(), |table, at| table + &format!("s{at},up,p{at},1\n"));
    refused(&many, &["line 66: the column 'place' has more than 64 different names"]);
    let (finished, _) = train(&scratch, "bad.csv", &classes, &[&CLASSIFY[..], &["--group", "id", "--target", "class"]].concat());
    finished.refused(&["column 'place': expected a finite number, found 'north'"]);
}

#[test]
fn broken_files_of_every_format_are_a_sentence() {
    let scratch = Scratch::new();
    let json = "{\"id\":\"a\",\"x\":1}\n{\"id\":\"a\",\"x\":2}\n";
    let forecast = [&FORECAST[..], &["--group", "id", "--target", "x"]].concat();
    let archive = archive(20, 2);
    let arrow = fixture("default.feather");
    let of_arrow = [&FORECAST[..], &["--group", "name", "--target", "value"]].concat();
    let check = |name: &str, content: &[u8], args: &[&str], parts: &[&str]| {
        let (finished, run) = train(&scratch, name, content, args);
        finished.refused(&[&[name][..], parts].concat());
        assert!(!std::path::Path::new(&run).join("checkpoints").exists());
    };
    check("a.ndjson", b"", &forecast, &["it is empty"]);
    check("a.ndjson", &json.as_bytes()[..json.len() - 4], &forecast, &["line 2 is not an object of JSON", "is the file cut short?"]);
    check("a.ndjson", b"[{\"id\":\"a\",\"x\":1}]", &forecast, &["line 1 begins a list", "one object on each line"]);
    check("a.ndjson", json.replace("\"x\":2", "\"x\":2,\"x\":3").as_bytes(), &forecast, &["line 2", "the key 'x' twice"]);
    check("a.ndjson", json.replace("\"x\":2", "\"xx\":2").as_bytes(), &forecast, &["line 2", "the key 'xx'", "did you mean 'x'?"]);
    check("a.ndjson", json.replace("\"x\":2", "\"x\":[2]").as_bytes(), &forecast, &["line 2: the column 'x' holds lists"]);
    check("a.ndjson", json.replace("\"x\":2", "\"x\":{\"y\":2}").as_bytes(), &forecast, &["line 2: the column 'x' holds objects"]);
    check("a.ndjson", json.replace("\"x\":2", "\"x\":\"2\"").as_bytes(), &forecast, &["line 2: the column 'x' holds texts such as '2'"]);
    check("a.ndjson", json.replace("\"x\":2", "\"x\":1e999").as_bytes(), &forecast, &["line 2", "number out of range"]);
    check("a.ts", b"@problemName x\n", &CLASSIFY, &["it has no line @data"]);
    check("a.ts", archive.replace("@data\n", "").as_bytes(), &CLASSIFY, &["line 6: expected @data or another tag"]);
    check(
        "a.ts",
        archive.replacen(":worn", ":bad", 1).as_bytes(),
        &CLASSIFY,
        &["line 8: the class 'bad' is not among those of @classLabel"],
    );
    check("a.ts", archive.replacen(":0,2,4,6,8,10:good", ":good", 1).as_bytes(), &CLASSIFY, &["line 8 has 2 dimensions, expected 1"]);
    check("a.ts", archive.replacen(":-0,", ":1:-0,", 1).as_bytes(), &CLASSIFY, &["line 8 has 3 dimensions, expected 2"]);
    check("a.ts", archive.replacen(":-0,", ":", 1).as_bytes(), &CLASSIFY, &["line 8, dimension 2: it has 6 steps, expected 7"]);
    check(
        "a.ts",
        archive.replacen("@data", "@dimensions 99999999999\n@data", 1).as_bytes(),
        &CLASSIFY,
        &["expected 99999999999 as its head says"],
    );
    check(
        "a.ts",
        archive.replacen("@data", "@equalLength true\n@seriesLength 4000000000\n@data", 1).as_bytes(),
        &CLASSIFY,
        &["has 6 steps, expected 4000000000"],
    );
    check("a.ts", &archive.as_bytes()[..archive.len() - 12], &CLASSIFY, &["line 26"]);
    check("a.arrow", b"ARROW1\0\0", &of_arrow, &["is the file cut short?"]);
    check("a.arrow", &arrow[..arrow.len() / 2], &of_arrow, &["is the file cut short?"]);
    check("a.arrow", &[&arrow[..8], &[0xff; 4], &i32::MAX.to_le_bytes()].concat(), &of_arrow, &["is the file cut short?"]);
    check("a.arrow", json.as_bytes(), &forecast, &["it is damaged"]);
    check("a.parquet", json.as_bytes(), &forecast, &["it cannot be read as Parquet"]);
    check("a.feather", &arrow, &[&FORECAST[..], &["--target", "values"]].concat(), &["there is no column 'values'; did you mean 'value'?"]);
    // The columns of a test file may have another order, but not other names.
    let test = shown(&scratch.write("test.ndjson", "{\"x\":3,\"id\":\"a\"}\n{\"x\":4,\"id\":\"a\"}\n"));
    let long = (0..40).fold(String::new(), |text, t| text + &format!("{{\"id\":\"a\",\"x\":{}}}\n", t % 5));
    let args = [&forecast[..], &["--test", &test]].concat();
    train(&scratch, "a.ndjson", &long, &args).0.ok();
    scratch.write("test.ndjson", "{\"xs\":3,\"id\":\"a\"}\n{\"xs\":4,\"id\":\"a\"}\n");
    let (finished, _) = train(&scratch, "a.ndjson", &long, &args);
    finished.refused(&["test.ndjson", "there is no column 'x'; did you mean 'xs'?"]);
}
