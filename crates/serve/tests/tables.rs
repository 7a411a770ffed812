//! What a server answers for tables, whose turn it is, and what is counted.

mod common;

use std::io::Read;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use minrnn_serve::{Accept, Predictions, Scores, TableModel, Unanswered};
use serde_json::json;

use common::Running;

/// Answers what it was asked, with a note for each line of the table and the share as the threshold; fails for the tables "wrong" and "failed".
struct Echo;

impl TableModel for Echo {
    fn predict(&self, table: &[u8], future: Option<&[u8]>, accept: Accept, _stop: &AtomicBool) -> Result<Predictions, Unanswered> {
        let table = String::from_utf8(table.to_vec()).unwrap();
        if table.contains("wrong") || table == "failed" {
            return Err(Unanswered { sentence: "there is no column 'x'".to_owned(), is_wrong_input: table != "failed" });
        }
        let future = future.map_or_else(String::new, |future| String::from_utf8(future.to_vec()).unwrap());
        let text = match accept {
            Accept::Json => format!("[{:?}]", table + &future),
            Accept::Csv => format!("csv {table}{future}"),
        };
        Ok(Predictions { notes: text.split('\n').skip(1).map(|line| format!("note on {line}")).collect(), text })
    }

    fn score(&self, table: &[u8], usual: Option<&[u8]>, share: f64, accept: Accept, stop: &AtomicBool) -> Result<Scores, Unanswered> {
        let Predictions { text, notes } = self.predict(table, usual, accept, stop)?;
        Ok(Scores { text, threshold: Some(share), notes })
    }
}

#[test]
fn what_is_to_be_known_of_a_table_comes_with_its_predictions() {
    let server = Running::of("echo", Echo);
    let answer = server.answer("a\nb, é\nc", "Content-Type: Text/CSV; charset=utf-8");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\ncsv a\nb, é\nc"), "{answer}");
    let notes: Vec<&str> = answer.lines().filter_map(|line| line.strip_prefix("minrnn-note: ")).collect();
    assert_eq!(notes, ["note on b, \\u{e9}", "note on c"]);
    let both = r#"{"data": "a", "future": "b"}"#;
    for (accept, expected) in [
        ("application/json", r#"{"predictions":["ab"],"notes":[]}"#),
        ("Application/JSON, text/csv;q=0.5", r#"{"predictions":["ab"],"notes":[]}"#),
        ("application/json;q=0, text/csv", "csv ab"),
        ("application/json;q=0.1, */*", "csv ab"),
    ] {
        let answer = server.answer(both, &format!("Content-Type: application/json\r\nAccept: {accept}"));
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with(&format!("\r\n\r\n{expected}")), "{accept}: {answer}");
        assert!(!answer.contains("minrnn-note"), "{answer}");
    }
    server.end();
}

#[test]
fn scores_come_with_their_threshold_and_what_is_to_be_known() {
    let server = Running::of("echo", Echo);
    let asked = |query: &str, accept: &str| {
        let both = r#"{"data": "a\nb", "calibrate": "c"}"#;
        server.answer_of(&format!("/v1/score{query}"), both, &format!("Content-Type: application/json\r\nAccept: {accept}"))
    };
    for (query, threshold) in [("?threshold=0.25", "0.25"), ("?model=echo&threshold=5e-1", "0.5"), ("", "0.999")] {
        let answer = asked(query, "application/json");
        let expected = format!("\r\n\r\n{{\"rows\":[\"a\\nbc\"],\"threshold\":{threshold},\"notes\":[]}}");
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with(&expected), "{query}: {answer}");
    }
    let answer = asked("", "*/*");
    assert!(answer.contains("\r\nminrnn-note: note on bc\r\n") && answer.ends_with("\r\n\r\ncsv a\nbc"), "{answer}");
    for (query, sentence) in [
        ("?threshold=often", "expected /v1/score?model=NAME&threshold=SHARE: "),
        ("?threshold=often", "invalid float literal"),
        ("?share=0.5", "unknown field `share`"),
        ("?threshold=1", "threshold: expected a share of rows above 0 and below 1, such as 0.999, found 1.0"),
        ("?threshold=nan", "found NaN"),
    ] {
        let answer = asked(query, "*/*");
        assert!(answer.starts_with("HTTP/1.1 400") && answer.contains(sentence), "{answer}");
    }
    assert!(server.get("/v1/score").starts_with("HTTP/1.1 405"));
    // Both ask the same of a table, and count the same.
    assert_eq!(server.metric("tables_total"), 4);
    server.end();
}

#[test]
fn who_wants_a_table_scored_by_a_model_of_text_is_told_how_texts_are() {
    let server = Running::of_text("abcdefgh");
    let told = "there is no model of tables; none is served";
    let how = "; texts are scored by /v1/completions, with echo, logprobs and max_tokens 0";
    for (path, message) in [
        ("/v1/predict", told.to_owned()),
        ("/v1/score", format!("{told}{how}")),
        ("/v1/score?model=text", format!("there is no model 'text' of tables; none is served{how}")),
        ("/v1/score?model=nope", "there is no model 'nope' of tables; none is served".to_owned()),
    ] {
        let (status, answer) = server.asked(path, &json!({ "data": "a" }));
        assert_eq!(
            (status, &answer["error"]["message"], &answer["error"]["code"]),
            (404, &json!(message), &json!("model_not_found")),
            "{path}"
        );
    }
    server.end();
}

#[test]
fn a_field_that_is_unknown_beside_a_table_is_named() {
    let server = Running::of("echo", Echo);
    let json = "Content-Type: application/json";
    let answer = server.answer_of("/v1/score", r#"{"data": "wrong", "future": "b"}"#, json);
    assert!(answer.contains("future: there is no such field; expected one of data, calibrate (read as"), "{answer}");
    let answer = server.answer(r#"{"data": "wrong", "Future": "b"}"#, json);
    let sentence = "Future: there is no such field; expected one of data, future (read as a table of one row, there is no column 'x')";
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains(sentence), "{answer}");
    // A table of one row may have such columns.
    let row = r#"{"data": "a", "x": 1}"#;
    assert!(server.answer(row, json).ends_with(&format!("csv {row}")));
    server.end();
}

#[test]
fn a_model_that_is_not_served_is_told_beside_all_that_are() {
    let server = Running::of("echo", Echo);
    let answer = server.get("/v1/models/nope");
    assert!(answer.starts_with("HTTP/1.1 404") && answer.contains("there is no model 'nope'; there is echo"), "{answer}");
    let listed = server.get("/v1/models/echo");
    assert!(listed.contains(r#""id":"echo""#), "{listed}");
    // By this the page knows which models continue texts.
    assert!(!listed.contains("vocab_size") && server.get("/").contains("filter(({ vocab_size }) => vocab_size)"), "{listed}");
    let texts = Running::of_text("abcdefgh");
    assert!(texts.get("/v1/models").contains(r#""vocab_size":8"#));
    texts.end();
    server.end();
}

#[test]
fn tables_are_counted_by_what_became_of_them() {
    let server = Running::of("echo \"1\"", Echo);
    for table in ["a", "b", "c", "wrong", "wrong", "failed"] {
        server.answer(table, "Content-Type: text/csv");
    }
    // A request that is refused before its table is read does not count.
    server.answer("a", "Content-Type: text/plain");
    let told = server.get("/metrics");
    for (metric, expected) in [
        ("tables_total", "6"),
        ("tables_refused_total", "0"),
        ("tables_wrong_total", "2"),
        ("tables_failed_total", "1"),
        ("tables_left_total", "0"),
        ("tables_waiting", "0"),
        ("tables_running", "0"),
        ("table_seconds_count", "3"),
    ] {
        let line = format!("\nminrnn_{metric}{{model=\"echo \\\"1\\\"\"}} {expected}\n");
        assert!(told.contains(&line), "{line}: {told}");
    }
    assert!(told.contains("minrnn_table_seconds_bucket{model=\"echo \\\"1\\\"\",le=\"+Inf\"} 3\n"), "{told}");
    server.end();
}

/// Answers "done" after a while during which it checks whether to stop, and stops only later.
#[derive(Clone, Default)]
struct Slow(Arc<Counts>);

#[derive(Default)]
struct Counts {
    at_once: AtomicUsize,
    most_at_once: AtomicUsize,
    ended: AtomicUsize,
}

impl Slow {
    fn answer(&self, table: &[u8], stop: &AtomicBool) -> String {
        let Counts { at_once, most_at_once, ended } = &*self.0;
        most_at_once.fetch_max(at_once.fetch_add(1, SeqCst) + 1, SeqCst);
        let begun = Instant::now();
        while table == b"slow" && !stop.load(SeqCst) && begun.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(300));
        at_once.fetch_sub(1, SeqCst);
        ended.fetch_add(1, SeqCst);
        "done".to_owned()
    }
}

impl TableModel for Slow {
    fn predict(&self, table: &[u8], _future: Option<&[u8]>, _accept: Accept, stop: &AtomicBool) -> Result<Predictions, Unanswered> {
        Ok(Predictions { text: self.answer(table, stop), ..Default::default() })
    }

    fn score(&self, table: &[u8], _usual: Option<&[u8]>, _share: f64, _accept: Accept, stop: &AtomicBool) -> Result<Scores, Unanswered> {
        Ok(Scores { text: self.answer(table, stop), ..Default::default() })
    }
}

/// Answers with a text that no socket holds, and counts how often.
#[derive(Clone, Default)]
struct Long(Arc<AtomicUsize>);

impl Long {
    const BYTES: usize = 64 << 20;

    fn answer(&self) -> String {
        self.0.fetch_add(1, SeqCst);
        "x".repeat(Self::BYTES)
    }
}

impl TableModel for Long {
    fn predict(&self, _: &[u8], _: Option<&[u8]>, _: Accept, _: &AtomicBool) -> Result<Predictions, Unanswered> {
        Ok(Predictions { text: self.answer(), ..Default::default() })
    }

    fn score(&self, _: &[u8], _: Option<&[u8]>, _: f64, _: Accept, _: &AtomicBool) -> Result<Scores, Unanswered> {
        Ok(Scores { text: self.answer(), ..Default::default() })
    }
}

#[test]
fn a_long_answer_keeps_its_turn_until_its_client_has_taken_it_or_left() {
    let long = Long::default();
    let server = Running::of("long", long.clone());
    let sent = |path: &str| server.sent(path, "a", "Content-Type: text/csv");
    let begun = |n: usize| {
        let since = Instant::now();
        while long.0.load(SeqCst) < n {
            assert!(since.elapsed() < Duration::from_secs(60), "{n} answers");
            std::thread::sleep(Duration::from_millis(5));
        }
        // Time in which another one could begin.
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(long.0.load(SeqCst), n);
    };
    let mut first = sent("/v1/score");
    begun(1);
    let second = sent("/v1/predict");
    begun(1);
    let mut answer = Vec::new();
    first.read_to_end(&mut answer).unwrap();
    let head = String::from_utf8_lossy(&answer[..400]).to_lowercase();
    assert!(head.contains(&format!("content-length: {}", Long::BYTES)) && answer.len() > Long::BYTES, "{head}");
    begun(2);
    let mut third = sent("/v1/score");
    begun(2);
    drop(second);
    begun(3);
    third.read_to_end(&mut answer).unwrap();
    server.end();
}

/// Where tables are sent.
const PATHS: [&str; 2] = ["/v1/predict", "/v1/score"];

#[test]
fn a_table_keeps_its_turn_until_its_work_ends_though_its_client_left() {
    let slow = Slow::default();
    let server = Running::of("slow", slow.clone());
    let csv = "Content-Type: text/csv";
    for path in PATHS.repeat(2) {
        let connection = server.sent(path, "slow", csv);
        std::thread::sleep(Duration::from_millis(60));
        drop(connection);
    }
    let answer = server.answer("quick", csv);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("done"), "{answer}");
    assert_eq!(slow.0.most_at_once.load(SeqCst), 1);
    // Those whose clients left while they waited were not begun, the others have ended.
    assert_eq!(slow.0.at_once.load(SeqCst), 0);
    assert!((2..5).contains(&slow.0.ended.load(SeqCst)));
    let told = server.get("/metrics");
    for line in ["tables_left_total{model=\"slow\"} 4\n", "tables_total{model=\"slow\"} 5\n", "table_seconds_count{model=\"slow\"} 1\n"] {
        assert!(told.contains(line), "{line}: {told}");
    }
    server.end();
}

#[test]
fn tables_that_wait_and_those_that_cannot_are_counted() {
    let server = Running::of("slow", Slow::default());
    let csv = "Content-Type: text/csv";
    // One has its turn, four wait.
    let holding: Vec<TcpStream> = (0..5).map(|at| server.sent(PATHS[at % 2], "slow", csv)).collect();
    let of = |line: &str| format!("minrnn_tables_{}\n", line.replace(' ', "{model=\"slow\"} "));
    let begun = Instant::now();
    let is_full = |told: String| told.contains(&of("waiting 4")) && told.contains(&of("running 1"));
    while !is_full(server.get("/metrics")) {
        assert!(begun.elapsed() < Duration::from_secs(10), "{}", server.get("/metrics"));
    }
    for path in PATHS {
        let answer = server.answer_of(path, "quick", csv);
        let sentence = "too many tables wait for this model; ask again in a second";
        assert!(answer.starts_with("HTTP/1.1 429") && answer.contains(sentence), "{path}: {answer}");
    }
    let told = server.get("/metrics");
    for line in ["total 5", "refused_total 2", "running 1", "waiting 4"] {
        assert!(told.contains(&of(line)), "{line}: {told}");
    }
    drop(holding);
    server.end();
}
