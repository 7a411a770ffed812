//! `minrnn serve`: tables sent over HTTP.

#![cfg(unix)]

mod common;

use std::sync::Arc;

use common::server::{Server, model};
use common::{Finished, Random, Scratch, Training, minrnn, shown};
use parquet::data_type::DoubleType;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use serde_json::{Value, json};

/// A training on the table `rows` that has ended, and its packed model, both called `name`.
fn trained(scratch: &Scratch, name: &str, rows: &str, args: &[&str], settings: &[&str]) -> (Training, String) {
    let data = shown(&scratch.write(&format!("{name}.csv"), rows));
    let args = [&["--data", &data], args].concat().into_iter().map(str::to_owned).collect();
    let training = Training { args, ..scratch.task(name, settings) };
    training.run().ok();
    let packed = shown(&scratch.path(&format!("{name}.minrnn")));
    Finished::of(&mut minrnn(&["pack", &shown(&training.out), "-o", &packed])).ok();
    (training, packed)
}

/// Status, notes in the head, and body of an answer.
fn asked(server: &Server, path: &str, kind: &str, accept: &str, body: &[u8]) -> (u16, Vec<String>, String) {
    let request = server.agent.post(format!("{}{path}", server.base)).content_type(kind).header("Accept", accept);
    let mut response = request.send(body).unwrap();
    let notes = response.headers().get_all("Minrnn-Note").iter().map(|note| note.to_str().unwrap().to_owned()).collect();
    (response.status().as_u16(), notes, response.body_mut().read_to_string().unwrap())
}

#[test]
fn a_table_is_answered_as_predict_answers_it() {
    let scratch = Scratch::new();
    let mut rows = String::from("site,day,load\n");
    for site in ["north", "south, old"] {
        for day in 1..=28 {
            rows += &format!("\"{site}\",2024-02-{day:02},{}\n", f64::from(day % 7) + 0.5);
        }
    }
    let args = ["--task", "forecast", "--group", "site", "--target", "load", "--horizon", "3", "--season", "7"];
    let (_, packed) = trained(&scratch, "load", &rows, &args, &[]);
    let data = shown(&scratch.path("load.csv"));
    let server = Server::start(&[model(), &packed, "--max-request", "1"]);
    let ask = |path: &str, kind: &str, accept: &str, body: &[u8]| {
        let (status, _, text) = asked(&server, path, kind, accept, body);
        (status, text)
    };
    let expected = Finished::of(&mut minrnn(&["predict", &packed, "--data", &data])).ok().stdout;
    assert_eq!(expected.lines().count(), 7);
    assert_eq!(ask("/v1/predict?model=load", "text/csv", "*/*", rows.as_bytes()), (200, expected.clone()));
    let (status, json) = ask("/v1/predict", "text/csv", "application/json", rows.as_bytes());
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["notes"], json!([]));
    let predictions = json["predictions"].as_array().unwrap();
    let last = predictions.last().unwrap();
    assert_eq!(
        (status, predictions.len(), &last["site"], &last["day"], &last["step"]),
        (200, 6, &json!("south, old"), &json!("2024-03-02"), &json!(3))
    );
    assert!(expected.trim_end().ends_with(&last["load q0.9"].as_f64().unwrap().to_string()), "{last}");
    for (path, kind, body, status, sentence) in [
        ("/v1/predict", "text/csv", "site,day\nnorth,2024-01-01\n", 400, "the table: there is no column 'load'"),
        ("/v1/predict", "text/csv", "", 400, "the table: it is empty"),
        ("/v1/predict", "application/vnd.apache.parquet", "PAR1", 400, "the table"),
        ("/v1/predict?model=words", "text/csv", "a", 404, "there is no model 'words' of tables; there is load"),
        ("/v1/predict?name=load", "text/csv", "a", 400, "expected /v1/predict?model=NAME"),
        ("/v1/predict", "text/plain", "a", 415, "text/csv"),
    ] {
        let (found, told) = ask(path, kind, "*/*", body.as_bytes());
        assert!(found == status && told.contains(sentence), "{path} {body}: {found} {told}");
    }
    assert_eq!(ask("/v1/predict", "text/csv", "*/*", &vec![b'a'; 2 << 20]).0, 413);
    let listed: Value = serde_json::from_str(&server.get("/v1/models").1).unwrap();
    assert_eq!(listed["data"][1]["about"], "the next 3 values of 'load'");
    for (path, sentence) in
        [("/v1/models/nope", "there is no model 'nope'; there is words, load"), ("/v1/models/words/load", "there is nothing here")]
    {
        let (status, told) = server.get(path);
        assert!(status == 404 && told.contains(sentence), "{path}: {status} {told}");
    }
    // The tables that were accepted, and what became of them.
    let counted = ["tables_total", "tables_wrong_total", "tables_failed_total", "tables_waiting"].map(|name| server.metric(name));
    assert_eq!(counted, [5, 3, 0, 0]);
    // Without a model of text there is nothing to complete.
    let server = Server::start(&[&packed]);
    let (status, sentence) = server.refused("/v1/completions", &json!({ "prompt": "the " }));
    assert_eq!((status, sentence.as_str()), (404, "there is no model of text; none is served"));
}

/// A Parquet file with one column `load` of numbers, which takes few bytes.
fn parquet(loads: &[f64]) -> Vec<u8> {
    let schema = Arc::new(parse_message_type("message table { required double load; }").unwrap());
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::default()).unwrap();
    let mut rows = writer.next_row_group().unwrap();
    let mut column = rows.next_column().unwrap().unwrap();
    column.typed::<DoubleType>().write_batch(loads, None, None).unwrap();
    column.close().unwrap();
    rows.close().unwrap();
    writer.close().unwrap();
    bytes
}

#[test]
fn a_small_file_of_more_cells_than_a_text_of_a_request_has_is_refused() {
    let scratch = Scratch::new();
    let load = |row: usize| (row % 7) as f64 + 0.5;
    let csv = (0..60).fold("load\n".to_owned(), |csv, row| csv + &format!("{}\n", load(row)));
    let args = ["--task", "forecast", "--target", "load", "--horizon", "3", "--season", "7"];
    let (_, packed) = trained(&scratch, "load", &csv, &args, &["max_iterations=4"]);
    let server = Server::start(&[&packed, "--max-request", "1"]);
    let ask = |path: &str, body: &[u8]| {
        let (status, _, text) = asked(&server, path, "application/vnd.apache.parquet", "*/*", body);
        (status, text)
    };
    // As text, a cell takes two bytes.
    let most = (1 << 20) / 2;
    let loads: Vec<f64> = (0..=most).map(load).collect();
    let (whole, longer) = (parquet(&loads[..most]), parquet(&loads));
    assert!(longer.len() < 1 << 18, "{}", longer.len());
    let (status, predicted) = ask("/v1/predict", &whole);
    assert!(status == 200 && predicted.lines().count() == 4, "{status} {predicted}");
    // Equal rows take next to nothing, however many they are.
    let equal = parquet(&vec![2.5; 4_000_000]);
    assert!(equal.len() < 1 << 16, "{}", equal.len());
    for path in ["/v1/predict", "/v1/score"] {
        let (status, told) = ask(path, &longer);
        let sentence =
            "the table: it has at least 524289 cells in the 1 column that is read, expected at most 524288; split it into smaller tables";
        assert!(status == 400 && told.contains(sentence), "{path}: {status} {told}");
        let (status, told) = ask(path, &equal);
        assert!(status == 400 && told.contains("it has at least 4000000 cells"), "{path}: {status} {told}");
    }
    // A file on this machine is read whole, however long.
    let longer = shown(&scratch.write("longer.parquet", longer));
    assert_eq!(Finished::of(&mut minrnn(&["predict", &packed, "--data", &longer])).ok().stdout.lines().count(), 4);
    // If there is no room for a table, that is the server's fault, and its path is nobody else's business.
    let nowhere = shown(&scratch.path("nowhere"));
    let server = Server::of(minrnn(&["serve", &packed, "--port", "0", "--threads", "1"]).env("TMPDIR", &nowhere));
    for path in ["/v1/predict", "/v1/score"] {
        let (status, _, told) = asked(&server, path, "text/csv", "*/*", b"load\n1\n");
        assert!(
            status == 500 && told.contains("the server could not keep the table") && !told.contains(&nowhere),
            "{path}: {status} {told}"
        );
    }
}

#[test]
fn a_table_that_asks_for_a_longer_answer_than_a_table_may_be_is_refused() {
    let scratch = Scratch::new();
    let rows = |sites: usize, days: usize| -> String {
        let site = |at: usize| (0..days).map(|day| format!("{at},{}\n", day % 7)).collect::<String>();
        "site,load\n".to_owned() + &(0..sites).map(site).collect::<String>()
    };
    let args = ["--task", "forecast", "--group", "site", "--target", "load", "--horizon", "9", "--season", "7"];
    let (_, packed) = trained(&scratch, "load", &rows(3, 100), &args, &["max_iterations=4"]);
    let server = Server::start(&[&packed, "--max-request", "1"]);
    let ask = |accept: &str, table: &str| {
        let (status, _, text) = asked(&server, "/v1/predict", "text/csv", accept, table.as_bytes());
        (status, text)
    };
    // A row of a few bytes asks for 9 rows of site, step, load and two quantiles: 524288 cells are enough for 11650 sequences.
    let many = rows(11_651, 1);
    let sentence = "the answer for 11651 sequences would have 524295 cells, 9 rows of 5 columns for each, expected at most 524288; send fewer \
                    sequences at once";
    for accept in ["text/csv", "application/json"] {
        let (status, told) = ask(accept, &many);
        assert!(status == 400 && told.contains(sentence), "{accept}: {status} {told}");
    }
    // A name is in every row.
    let (status, told) = ask("*/*", &format!("site,load\n{},1\n", "x".repeat(1_000_000)));
    let sentence = "the answer for 1 sequence would repeat 9000000 bytes of names, those of each in 9 rows, expected at most 8454144";
    assert!(status == 400 && told.contains(sentence), "{status} {told}");
    // Fewer are answered, and a file on this machine may ask for any number.
    let whole = |sites: usize| {
        let file = shown(&scratch.write("many.csv", rows(sites, 1)));
        Finished::of(&mut minrnn(&["predict", &packed, "--data", &file])).ok().stdout
    };
    assert_eq!(ask("*/*", &rows(1000, 1)), (200, whole(1000)));
    let (status, json) = ask("application/json", &rows(1000, 1));
    let predictions = serde_json::from_str::<Value>(&json).unwrap()["predictions"].take();
    assert_eq!((status, predictions.as_array().unwrap().len(), &predictions[8999]["site"]), (200, 9000, &json!("999")));
    assert_eq!(whole(11_651).lines().count(), 11_651 * 9 + 1);
}

#[test]
fn what_predict_says_of_a_table_comes_with_the_answer() {
    let scratch = Scratch::new();
    let row = |site: &str, day: u32, kind: &str, load: &str| format!("{site},2024-03-{day:02},{kind},{load}\n");
    let usual = |site: &'static str, days: std::ops::RangeInclusive<u32>| -> String {
        days.map(|day| row(site, day, ["old", "new"][day as usize % 2], &(day % 7).to_string())).collect()
    };
    let header = "site,day,kind,load\n".to_owned();
    let rows = header.clone() + &usual("north", 1..=31) + &usual("south", 1..=31);
    let args = ["--task", "forecast", "--group", "site", "--target", "load", "--columns", "load,kind", "--horizon", "2"];
    let args = [&args[..], &["--missing", "mask", "--season", "7"]].concat();
    let (_, packed) = trained(&scratch, "load", &rows, &args, &["max_iterations=4"]);
    // A series without some days, one that ends early, one with a name that training never saw, and one whose values are all unknown.
    let odd = usual("north", 1..=9) + &usual("north", 12..=31) + &usual("south", 1..=20);
    let odd = odd + &(1..=31).map(|day| row("east", day, "strange", "1") + &row("west", day, "old", "")).collect::<String>();
    let odd = header + &odd;
    let told = Finished::of(&mut minrnn(&["predict", &packed, "--data", &shown(&scratch.write("odd.csv", &odd))])).ok();
    let expected: Vec<&str> = told.stderr.lines().collect();
    for part in ["not seen in training, such as 'strange'", "longer than the usual", "end before the newest", "of the whole table"] {
        assert!(told.stderr.contains(part), "{part}: {}", told.stderr);
    }
    let server = Server::start(&[&packed]);
    let ask = |accept: &str| {
        let (_, notes, text) = asked(&server, "/v1/predict", "text/csv", accept, odd.as_bytes());
        (notes, text)
    };
    let (notes, csv) = ask("*/*");
    assert_eq!((csv, notes), (told.stdout.clone(), expected.iter().map(|&note| note.to_owned()).collect::<Vec<_>>()));
    let (notes, json) = ask("application/json");
    assert_eq!((serde_json::from_str::<Value>(&json).unwrap()["notes"].clone(), notes.len()), (json!(expected), 0));
}

#[test]
fn a_table_and_its_rows_to_come_are_answered_as_predict_answers_them() {
    let scratch = Scratch::new();
    let rows = |days: std::ops::Range<u32>, sold: bool| {
        let row = |day| format!("\"shop, old\",{day},{}{}\n", day % 3, if sold { format!(",{}", 10 + day % 3 * 5) } else { String::new() });
        format!("shop,day,offer{}\n", if sold { ",sold" } else { "" }) + &days.map(row).collect::<String>()
    };
    let (history, future) = (rows(0..40, true), rows(40..43, false));
    let args = ["--task", "forecast", "--group", "shop", "--time", "day", "--target", "sold", "--horizon", "3", "--known-ahead", "offer"];
    let (_, packed) = trained(&scratch, "shop", &history, &args, &[]);
    let (data, to_come) = (shown(&scratch.path("shop.csv")), shown(&scratch.write("future.csv", &future)));
    let expected = Finished::of(&mut minrnn(&["predict", &packed, "--data", &data, "--future", &to_come])).ok().stdout;
    assert_eq!(expected.lines().count(), 4);
    let server = Server::start(&[&packed]);
    let mut response = server.post("/v1/predict", &json!({ "data": history, "future": future }));
    assert_eq!((response.status().as_u16(), response.body_mut().read_to_string().unwrap()), (200, expected));
    let short: String = future.lines().take(3).map(|line| line.to_owned() + "\n").collect();
    for (body, sentence) in [
        (json!({ "data": history }), "known 3 steps ahead, so the rows to come are needed; send both tables as texts in JSON"),
        (json!({ "data": history, "future": short }), "the rows to come: the sequence 'shop, old' has 2 rows to come, expected at least 3"),
        (json!({ "data": "shop,day\n", "future": future }), "the table: "),
        (json!({ "data": history, "futures": future }), "futures: there is no such field; expected one of data, future"),
        (json!({ "data": history, "futures": future }), "(read as a table of one row, the table: there is no column"),
    ] {
        let (status, told) = server.refused("/v1/predict", &body);
        assert!(status == 400 && told.contains(sentence), "{status} {told}");
    }
}

/// Arguments to train a forecaster of [`loads`].
const LOADS: [&str; 12] = ["--task", "forecast", "--group", "site", "--time", "day", "--target", "load", "--horizon", "3", "--season", "7"];

/// Noisy loads of two sites on these days, in seasons of 7; those of `odd` are far out.
fn loads(days: impl Iterator<Item = usize> + Clone, odd: Option<usize>) -> String {
    let (mut random, mut rows) = (Random(days.clone().count() as u64), "site,day,load\n".to_owned());
    for site in ["north", "\"south, old\""] {
        for day in days.clone() {
            let load = (day % 7) as f64 + random.below(1000) as f64 / 1000.0 + if Some(day) == odd { 30.0 } else { 0.0 };
            rows += &format!("{site},{day},{load}\n");
        }
    }
    rows
}

/// What `minrnn score` writes, and what it says before the number of marks.
fn scored(args: &[&str]) -> (String, Vec<String>) {
    let Finished { stdout, stderr, .. } = Finished::of(minrnn(&["score"]).args(args)).ok();
    let mut told: Vec<String> = stderr.lines().map(str::to_owned).collect();
    assert!(told.pop().is_some_and(|last| last.contains(" marked")), "{stderr}");
    (stdout, told)
}

#[test]
fn rows_are_scored_as_score_scores_them() {
    let scratch = Scratch::new();
    let (_, packed) = trained(&scratch, "load", &loads(0..200, None), &LOADS, &[]);
    let table = loads(200..260, Some(230));
    let data = shown(&scratch.write("today.csv", &table));
    let server = Server::start(&[&packed]);
    let ask = |path: &str, kind: &str, accept: &str, body: &str| asked(&server, path, kind, accept, body.as_bytes());
    let (expected, told) = scored(&[&packed, "--data", &data]);
    for mark in [",1", ",0", ",,"] {
        assert!(expected.lines().any(|line| line.ends_with(mark)), "{mark}: {expected}");
    }
    assert_eq!(ask("/v1/score", "text/csv", "*/*", &table), (200, told.clone(), expected.clone()));
    let (half, told_half) = scored(&[&packed, "--data", &data, "--threshold", "0.5"]);
    assert_ne!(half, expected);
    assert_eq!(ask("/v1/score?model=load&threshold=0.5", "text/csv", "text/csv", &table), (200, told_half, half));

    let (status, notes, json) = ask("/v1/score", "text/csv", "application/json", &table);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((status, notes.len(), &json["notes"]), (200, 0, &json!(told)));
    let threshold = json["threshold"].as_f64().unwrap();
    assert!(told[0].starts_with(&format!("marking what is above {threshold:.3} nats")), "{told:?}");
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 120);
    assert_eq!(expected.lines().count(), 121);
    for (line, row) in expected.lines().skip(1).zip(rows) {
        let cells: Vec<&str> = line.rsplitn(6, ',').collect();
        let number = |cell: &str| if cell.is_empty() { Value::Null } else { json!(cell.parse::<f64>().unwrap()) };
        let mark = [("1", json!(true)), ("0", json!(false)), ("", Value::Null)].into_iter().find(|(cell, _)| *cell == cells[0]).unwrap().1;
        // It has more digits than the cell.
        assert_eq!(row["surprise"].as_f64().map_or(String::new(), |surprise| format!("{surprise:.6}")), cells[1], "{row}");
        let expected = json!({ "site": cells[5].trim_matches('"'), "day": cells[4], "load": number(cells[3]), "load forecast": number(cells[2]),
            "surprise": row["surprise"], "anomaly": mark });
        assert_eq!(row, &expected);
    }

    // A table to compare with, in which ten days are missing.
    let usual = loads((0..60).chain(70..130), None);
    let file = shown(&scratch.write("usual.csv", &usual));
    let (calibrated, told_calibrated) = scored(&[&packed, "--data", &data, "--calibrate", &file]);
    let mut notes: Vec<String> = told_calibrated.iter().map(|line| line.replace(&format!("{file}: "), "calibrate: ")).collect();
    assert!(notes[0].starts_with("calibrate: ") && notes[0].contains("longer than the usual"), "{notes:?}");
    assert_ne!(notes.last(), told.last());
    // The threshold comes first.
    notes.rotate_right(1);
    let both = json!({ "data": table, "calibrate": usual }).to_string();
    assert_eq!(ask("/v1/score", "application/json", "*/*", &both), (200, notes, calibrated));
    assert_eq!(["tables_total", "tables_wrong_total", "tables_failed_total"].map(|name| server.metric(name)), [4, 0, 0]);
}

#[test]
fn a_column_of_scoring_whose_name_is_taken_is_told_beside_the_rows() {
    let scratch = Scratch::new();
    let rows = (0..80).fold("step\n".to_owned(), |rows, t| rows + &format!("{}\n", t % 5));
    let (_, packed) = trained(&scratch, "steps", &rows, &["--task", "forecast", "--target", "step"], &["max_iterations=4"]);
    let (expected, told) = scored(&[&packed, "--data", &shown(&scratch.path("steps.csv"))]);
    assert!(expected.starts_with("step_scored,step,step forecast,surprise,anomaly\n1,0,,,\n2,1,"), "{expected}");
    assert!(told.last().unwrap().contains("the table has a column 'step'"), "{told:?}");
    let server = Server::start(&[&packed]);
    assert_eq!(asked(&server, "/v1/score", "text/csv", "*/*", rows.as_bytes()), (200, told.clone(), expected));
    let (_, _, json) = asked(&server, "/v1/score", "text/csv", "application/json", rows.as_bytes());
    let json: Value = serde_json::from_str(&json).unwrap();
    let first = json!({ "step_scored": 1, "step": 0.0, "step forecast": null, "surprise": null, "anomaly": null });
    assert_eq!((&json["rows"][0], &json["notes"]), (&first, &json!(told)));
}

#[test]
fn with_nothing_to_compare_with_no_row_is_marked_and_what_to_send_is_told() {
    let scratch = Scratch::new();
    let rows = loads(0..60, None);
    let (training, _) = trained(&scratch, "load", &rows, &LOADS, &["max_iterations=4"]);
    let server = Server::start(&[&format!("old={}", shown(&training.without_threshold()))]);
    let (status, _, json) = asked(&server, "/v1/score?model=old", "text/csv", "application/json", rows.as_bytes());
    let json: Value = serde_json::from_str(&json).unwrap();
    let note = "the model does not say how surprising held-out rows were, so none is marked by its surprise; give rows with nothing unusual as \
                \"calibrate\" beside \"data\" in JSON";
    assert_eq!((status, &json["threshold"], &json["notes"]), (200, &Value::Null, &json!([note])));
    let rows = json["rows"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["anomaly"].is_null()) && rows.iter().any(|row| row["surprise"].is_f64()), "{json}");
}

#[test]
fn what_cannot_be_scored_is_refused_with_a_sentence() {
    let scratch = Scratch::new();
    let rows: &str = &loads(0..60, None);
    let (_, load) = trained(&scratch, "load", rows, &LOADS, &["max_iterations=4"]);
    let (_, plain) = trained(&scratch, "plain", rows, &LOADS, &["max_iterations=4", "quantiles=[]"]);
    let machine = |at: usize| (0..8).map(|t| format!("m{at},{},{}\n", ["up", "down"][at % 2], t * [1, -1][at % 2])).collect::<String>();
    let machines: &str = &("machine,state,x\n".to_owned() + &(0..40).map(machine).collect::<String>());
    let classify = ["--task", "classify", "--group", "machine", "--target", "state"];
    let (_, classifier) = trained(&scratch, "machines", machines, &classify, &["max_iterations=4"]);
    let server = Server::start(&[&load, &plain, &classifier, model(), "--max-request", "1"]);
    let share = "threshold: expected a share of rows above 0 and below 1, such as 0.999, found";
    let usage = "expected /v1/score?model=NAME&threshold=SHARE: ";
    for (path, kind, body, status, sentence) in [
        ("/v1/score?threshold=1.5", "text/csv", rows, 400, format!("{share} 1.5")),
        ("/v1/score?threshold=nan", "text/csv", rows, 400, format!("{share} NaN")),
        ("/v1/score?threshold=often", "text/csv", rows, 400, usage.to_owned()),
        ("/v1/score?share=0.9", "text/csv", rows, 400, usage.to_owned()),
        ("/v1/score?model=machines", "text/csv", machines, 400, "the model labels whole sequences and predicts no rows".to_owned()),
        ("/v1/score?model=plain", "text/csv", rows, 400, "the model forecasts a single number".to_owned()),
        ("/v1/score?model=nope", "text/csv", rows, 404, "there is no model 'nope' of tables; there is load, plain, machines\"".to_owned()),
        ("/v1/score?model=words", "text/csv", "a", 404, "load, plain, machines; texts are scored by /v1/completions".to_owned()),
        ("/v1/score", "text/csv", "site,day\nnorth,1\n", 400, "the table: there is no column 'load'".to_owned()),
        ("/v1/score", "text/csv", "", 400, "the table: it is empty".to_owned()),
        ("/v1/score", "text/plain", "a", 415, "text/csv".to_owned()),
    ] {
        let (found, _, told) = asked(&server, path, kind, "*/*", body.as_bytes());
        assert!(found == status && told.contains(&sentence), "{path}: {found} {told}, expected {status} {sentence}");
    }
    assert_eq!(asked(&server, "/v1/score", "text/csv", "*/*", &vec![b'a'; 2 << 20]).0, 413);
    for (other, sentence) in [
        (json!({ "calibrate": "site,day\nnorth,1\n" }), "calibrate: there is no column 'load'"),
        (json!({ "calibrate": "" }), "calibrate: it is empty"),
        (json!({ "calibrate": loads(0..5, None) }), "none of the rows to compare with has a surprise; give longer sequences"),
        (json!({ "calibrate": 3 }), "calibrate: expected a text, found 3 (read as a table of one row, the table: "),
        (json!({ "future": rows }), "future: there is no such field; expected one of data, calibrate (read as a table of one row"),
    ] {
        let mut body = other;
        body["data"] = json!(rows);
        let (status, told) = server.refused("/v1/score", &body);
        assert!(status == 400 && told.starts_with(sentence), "{status} {told}, expected {sentence}");
    }
    // Those that one model took, all of which were wrong.
    assert_eq!(["tables_total", "tables_wrong_total", "tables_failed_total"].map(|name| server.metric(name)), [7, 7, 0]);
}
