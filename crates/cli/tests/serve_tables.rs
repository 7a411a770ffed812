//! `minrnn serve`: tables sent over HTTP.

#![cfg(unix)]

mod common;

use std::sync::Arc;

use common::server::{Server, model};
use common::{Finished, Scratch, Training, minrnn, shown};
use parquet::data_type::DoubleType;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use serde_json::{Value, json};

#[test]
fn a_table_is_answered_as_predict_answers_it() {
    let scratch = Scratch::new();
    let mut rows = String::from("site,day,load\n");
    for site in ["north", "south, old"] {
        for day in 1..=28 {
            rows += &format!("\"{site}\",2024-02-{day:02},{}\n", f64::from(day % 7) + 0.5);
        }
    }
    let data = shown(&scratch.write("load.csv", &rows));
    let args = ["--task", "forecast", "--data", &data, "--group", "site", "--target", "load", "--horizon", "3", "--season", "7"];
    let forecaster = Training { args: args.map(str::to_owned).to_vec(), ..scratch.task("load", &[]) };
    forecaster.run().ok();
    let run = shown(&forecaster.out);
    let packed = shown(&scratch.path("load.minrnn"));
    Finished::of(&mut minrnn(&["pack", &run, "-o", &packed])).ok();
    let server = Server::start(&[model(), &packed, "--max-request", "1"]);
    let ask = |path: &str, kind: &str, accept: &str, body: &[u8]| {
        let request = server.agent.post(format!("{}{path}", server.base)).content_type(kind).header("Accept", accept);
        let mut response = request.send(body).unwrap();
        (response.status().as_u16(), response.body_mut().read_to_string().unwrap())
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
    let data = shown(&scratch.write("load.csv", csv));
    let args = ["--task", "forecast", "--data", &data, "--target", "load", "--horizon", "3", "--season", "7"];
    let forecaster = Training { args: args.map(str::to_owned).to_vec(), ..scratch.task("load", &["max_iterations=4"]) };
    forecaster.run().ok();
    let packed = shown(&scratch.path("load.minrnn"));
    Finished::of(&mut minrnn(&["pack", &shown(&forecaster.out), "-o", &packed])).ok();
    let server = Server::start(&[&packed, "--max-request", "1"]);
    let ask = |body: &[u8]| {
        let request = server.agent.post(format!("{}/v1/predict", server.base)).content_type("application/vnd.apache.parquet");
        let mut response = request.send(body).unwrap();
        (response.status().as_u16(), response.body_mut().read_to_string().unwrap())
    };
    // As text, a cell takes two bytes.
    let most = (1 << 20) / 2;
    let loads: Vec<f64> = (0..=most).map(load).collect();
    let (whole, longer) = (parquet(&loads[..most]), parquet(&loads));
    assert!(longer.len() < 1 << 18, "{}", longer.len());
    let (status, predicted) = ask(&whole);
    assert!(status == 200 && predicted.lines().count() == 4, "{status} {predicted}");
    let (status, told) = ask(&longer);
    let sentence =
        "the table: it has at least 524289 cells in the 1 column that is read, expected at most 524288; split it into smaller tables";
    assert!(status == 400 && told.contains(sentence), "{status} {told}");
    // Equal rows take next to nothing, however many they are.
    let equal = parquet(&vec![2.5; 4_000_000]);
    assert!(equal.len() < 1 << 16, "{}", equal.len());
    let (status, told) = ask(&equal);
    assert!(status == 400 && told.contains("it has at least 4000000 cells"), "{status} {told}");
    // A file on this machine is read whole, however long.
    let longer = shown(&scratch.write("longer.parquet", longer));
    assert_eq!(Finished::of(&mut minrnn(&["predict", &packed, "--data", &longer])).ok().stdout.lines().count(), 4);
    // If there is no room for a table, that is the server's fault, and its path is nobody else's business.
    let nowhere = shown(&scratch.path("nowhere"));
    let server = Server::of(minrnn(&["serve", &packed, "--port", "0", "--threads", "1"]).env("TMPDIR", &nowhere));
    let mut response = server.agent.post(format!("{}/v1/predict", server.base)).content_type("text/csv").send("load\n1\n").unwrap();
    let (status, told) = (response.status().as_u16(), response.body_mut().read_to_string().unwrap());
    assert!(status == 500 && told.contains("the server could not keep the table") && !told.contains(&nowhere), "{status} {told}");
}

#[test]
fn what_predict_says_of_a_table_comes_with_the_answer() {
    let scratch = Scratch::new();
    let row = |site: &str, day: u32, kind: &str, load: &str| format!("{site},2024-03-{day:02},{kind},{load}\n");
    let usual = |site: &'static str, days: std::ops::RangeInclusive<u32>| -> String {
        days.map(|day| row(site, day, ["old", "new"][day as usize % 2], &(day % 7).to_string())).collect()
    };
    let header = "site,day,kind,load\n".to_owned();
    let data = shown(&scratch.write("load.csv", header.clone() + &usual("north", 1..=31) + &usual("south", 1..=31)));
    let args = ["--task", "forecast", "--data", &data, "--group", "site", "--target", "load", "--columns", "load,kind", "--horizon", "2"];
    let args = [&args[..], &["--missing", "mask", "--season", "7"]].concat().into_iter().map(str::to_owned).collect();
    let forecaster = Training { args, ..scratch.task("load", &["max_iterations=4"]) };
    forecaster.run().ok();
    let run = shown(&forecaster.out);
    let packed = shown(&scratch.path("load.minrnn"));
    Finished::of(&mut minrnn(&["pack", &run, "-o", &packed])).ok();
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
        let request = server.agent.post(format!("{}/v1/predict", server.base)).content_type("text/csv").header("Accept", accept);
        let mut response = request.send(odd.as_str()).unwrap();
        let notes: Vec<String> = response.headers().get_all("Minrnn-Note").iter().map(|note| note.to_str().unwrap().to_owned()).collect();
        (notes, response.body_mut().read_to_string().unwrap())
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
    let (data, to_come) = (shown(&scratch.write("history.csv", &history)), shown(&scratch.write("future.csv", &future)));
    let args = ["--task", "forecast", "--data", &data, "--group", "shop", "--time", "day", "--target", "sold", "--horizon", "3"];
    let args = [&args[..], &["--known-ahead", "offer"]].concat().into_iter().map(str::to_owned).collect();
    let forecaster = Training { args, ..scratch.task("shop", &[]) };
    forecaster.run().ok();
    let packed = shown(&scratch.path("shop.minrnn"));
    Finished::of(&mut minrnn(&["pack", &shown(&forecaster.out), "-o", &packed])).ok();
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
