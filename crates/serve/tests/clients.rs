//! A server in this process: what it does when clients leave, what it answers for tables, and which models it accepts.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use minrnn_model::{ModelConfig, Pooling, Tokenizer, WeightFormat, Weights, write_safetensors};
use minrnn_serve::{Accept, Error, Predictions, Scores, ServedModel, ServedTable, Server, Settings, TableModel, Unanswered};
use minrnn_stream::Model;
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde_json::{Value, json};

fn pool() -> Arc<ThreadPool> {
    Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap())
}

fn settings() -> Settings {
    let mut settings = Settings::default();
    (settings.address, settings.queue) = (([127, 0, 0, 1], 0).into(), 4);
    settings
}

/// A server of tables on a thread of its own.
struct Running {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<minrnn_serve::Result<()>>,
}

impl Running {
    fn of(name: &str, model: impl TableModel + 'static) -> Self {
        let table = ServedTable { name: name.into(), about: String::new(), model: Box::new(model) };
        Self::started(Server::bind(Vec::new(), vec![table], settings(), pool()).unwrap())
    }

    /// A server of text with a model that reacts differently to every letter of `text`.
    fn of_text(text: &str) -> Self {
        let tokenizer = Tokenizer::characters_of(text);
        let config = ModelConfig { vocab_size: tokenizer.vocab_size(), d_model: 16, n_layers: 1, ..Default::default() };
        let served = ServedModel { name: "text".into(), model: model(&config, |i| (i as f32 * 0.7).sin()), tokenizer };
        let mut settings = settings();
        settings.max_tokens = 1 << 30;
        Self::started(Server::bind(vec![served], Vec::new(), settings, pool()).unwrap())
    }

    fn started(server: Server) -> Self {
        let (address, stop) = (server.address(), Arc::new(AtomicBool::new(false)));
        let stops = stop.clone();
        Self { address, stop, thread: std::thread::spawn(move || server.run(move || stops.load(SeqCst))) }
    }

    /// A connection on which this request was sent.
    fn asking(&self, path: &str, body: &Value) -> TcpStream {
        let mut connection = TcpStream::connect(self.address).unwrap();
        let (body, kind) = (body.to_string(), "Content-Type: application/json");
        let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n{kind}\r\nContent-Length: {}\r\n", body.len());
        connection.write_all(format!("{head}Connection: close\r\n\r\n{body}").as_bytes()).unwrap();
        connection
    }

    /// Status and body of the answer.
    fn asked(&self, path: &str, body: &Value) -> (u16, Value) {
        let mut answer = String::new();
        self.asking(path, body).read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), serde_json::from_str(body).unwrap())
    }

    fn metric(&self, name: &str) -> u64 {
        let told = self.get("/metrics");
        let line = told.lines().find(|line| line.starts_with(&format!("minrnn_{name}{{"))).unwrap_or_else(|| panic!("no {name}: {told}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    /// A connection on which `table` was sent to `path`, with these additional lines of the head.
    fn sent(&self, path: &str, table: &str, head: &str) -> TcpStream {
        let mut connection = TcpStream::connect(self.address).unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n{head}\r\n", table.len());
        connection.write_all(format!("{head}Connection: close\r\n\r\n{table}").as_bytes()).unwrap();
        connection
    }

    /// The whole answer of `/v1/predict`.
    fn answer(&self, table: &str, head: &str) -> String {
        self.answer_of("/v1/predict", table, head)
    }

    /// The whole answer of `path`.
    fn answer_of(&self, path: &str, table: &str, head: &str) -> String {
        let mut answer = String::new();
        self.sent(path, table, head).read_to_string(&mut answer).unwrap();
        answer
    }

    fn get(&self, path: &str) -> String {
        let mut connection = TcpStream::connect(self.address).unwrap();
        connection.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        answer
    }

    fn end(self) {
        self.stop.store(true, SeqCst);
        self.thread.join().unwrap().unwrap();
    }
}

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
    assert!(server.get("/v1/models/echo").contains(r#""id":"echo""#));
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

#[test]
fn a_response_that_a_stop_string_ended_goes_on_from_the_text_that_was_told() {
    let server = Running::of_text("abcdefgh");
    let asked = |input: &str, before: &Value, n: usize| {
        let body = json!({ "input": input, "previous_response_id": before, "max_output_tokens": n, "seed": 3, "stop": ["bc", "d"] });
        let (status, told) = server.asked("/v1/responses", &body);
        assert_eq!(status, 200, "{told}");
        told
    };
    let text = |told: &Value| told["output"][0]["content"][0]["text"].as_str().unwrap().to_owned();
    let first = asked("abc", &Value::Null, 1000);
    assert_eq!(first["status"], "completed");
    let output = text(&first);
    // The stop string was generated too.
    assert!(first["usage"]["output_tokens"].as_u64().unwrap() > output.len() as u64);
    let (next, alone) = (asked("efg", &first["id"], 40), asked(&format!("abc{output}efg"), &Value::Null, 40));
    assert_eq!(text(&next), text(&alone));
    assert_eq!(next["usage"]["input_tokens"], alone["usage"]["input_tokens"]);
    server.end();
}

#[test]
fn a_client_that_reads_nothing_has_little_made_for_it() {
    let server = Running::of_text("abcdefgh");
    let unread = server.asking("/v1/completions", &json!({ "prompt": "a", "max_tokens": 1 << 30, "stream": true }));
    socket2::SockRef::from(&unread).set_recv_buffer_size(1 << 16).unwrap();
    let begun = Instant::now();
    let mut generated = 0;
    loop {
        std::thread::sleep(Duration::from_millis(300));
        let now = server.metric("generated_tokens_total");
        if now > 0 && now == generated && server.metric("texts_behind") == 1 {
            break;
        }
        generated = now;
        assert!(begun.elapsed() < Duration::from_secs(30), "{generated} tokens");
    }
    // As much as both ends buffer, not the megabytes that one would by default; a token is at least a byte.
    assert!(generated < 600_000, "{generated} tokens");
    drop(unread);
    server.end();
}

#[test]
fn what_is_wrong_with_a_field_is_said_with_its_name() {
    let server = Running::of_text("abcdefgh");
    for (field, value, sentence) in [
        ("max_tokens", json!(-1), "max_tokens: expected a whole number of at least 0, found -1"),
        ("temperature", json!("hot"), "temperature: expected a number, found \"hot\""),
        ("temperature", json!(-1), "temperature must be 0 (take the likeliest token) or above, found -1.0"),
        ("top_p", json!(0), "top_p must be above 0 and at most 1 (off), found 0.0"),
        ("service_tier", json!("priority"), "service_tier: is not supported; all requests are served alike"),
        ("servicetier", Value::Null, "servicetier: there is no such field; expected one of model, prompt"),
    ] {
        let mut body = json!({ "prompt": "a" });
        body[field] = value;
        let (status, told) = server.asked("/v1/completions", &body);
        assert!(status == 400 && told["error"]["message"].as_str().unwrap().starts_with(sentence), "{told}");
        assert_eq!(told["error"]["param"], field, "{told}");
    }
    // Fields that ask for nothing are accepted by each interface.
    let nothing = json!({ "prompt": "a", "max_tokens": 1, "suffix": null, "service_tier": null, "logit_bias": null, "user": null, "stream_options": null });
    assert_eq!(server.asked("/v1/completions", &nothing).0, 200);
    let nothing = json!({ "input": "a", "max_output_tokens": 1, "include": [], "truncation": "disabled", "tool_choice": "none", "tools": [],
        "parallel_tool_calls": false, "text": { "format": { "type": "text" } }, "top_logprobs": 0, "reasoning": null, "stream_options": null });
    let (status, told) = server.asked("/v1/responses", &nothing);
    assert_eq!(status, 200, "{told}");
    server.end();
}

#[test]
fn requests_that_are_no_text_are_refused_as_objects() {
    let server = Running::of_text("abcdefgh");
    let answer = server.get("/v1/models/%ff");
    assert!(
        answer.starts_with("HTTP/1.1 400") && answer.contains(r#"{"error":{"code":null,"message":"the name of the model is no UTF-8"#),
        "{answer}"
    );
    let mut connection = TcpStream::connect(server.address).unwrap();
    let head = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n";
    connection.write_all(format!("{head}Content-Length: 3\r\nConnection: close\r\n\r\n\x1f\x08\x00").as_bytes()).unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 415") && answer.contains("expected a request that is not compressed"), "{answer}");
    server.end();
}

#[test]
fn a_limit_of_nothing_is_refused() {
    let bound = |change: fn(&mut Settings)| {
        let mut settings = settings();
        change(&mut settings);
        let table = ServedTable { name: "echo".into(), about: String::new(), model: Box::new(Echo) };
        Server::bind(Vec::new(), vec![table], settings, pool()).map(drop)
    };
    let rest = "must be at least 1, found 0; raise it";
    let refused = |change: fn(&mut Settings)| bound(change).unwrap_err().to_string();
    assert_eq!(refused(|settings| settings.max_request = 0), format!("max_request {rest}"));
    assert_eq!(refused(|settings| settings.session_bytes = 0), format!("the memory of the sessions of a model (session_bytes) {rest}"));
    bound(|settings| (settings.max_request, settings.session_bytes) = (1, 1)).unwrap();
}

/// A model of `config` with these weights, by the number of each in its tensor.
fn model(config: &ModelConfig, weight: fn(usize) -> f32) -> Model {
    let file = tempfile::NamedTempFile::new().unwrap();
    let tensors = config.checked().unwrap().tensors().into_iter().map(|tensor| {
        let values: Vec<f32> = (0..tensor.shape.iter().product()).map(weight).collect();
        (tensor.name, tensor.shape, values.into())
    });
    write_safetensors(file.path(), tensors, None).unwrap();
    Model::new(config, &mut Weights::read(file.path()).unwrap(), WeightFormat::F32).unwrap()
}

#[test]
fn only_models_that_continue_text_are_served_as_such() {
    let text = ModelConfig { vocab_size: 256, d_model: 8, n_layers: 1, ..Default::default() };
    let bound = |config: ModelConfig| {
        let served = ServedModel { name: "m".into(), model: model(&config, |_| 0.1), tokenizer: Tokenizer::Byte };
        Server::bind(vec![served], Vec::new(), settings(), pool()).map(drop)
    };
    bound(text.clone()).unwrap();
    let classes = ModelConfig { n_outputs: 256, tie_embeddings: false, ..text.clone() };
    for config in [
        classes.clone(),
        ModelConfig { pooling: Pooling::Mean, ..classes.clone() },
        ModelConfig { pair_head: true, ..classes },
        // What it made of one text would affect the next.
        ModelConfig { pair_head: true, tie_embeddings: false, ..text },
    ] {
        let refused = bound(config).unwrap_err();
        assert!(matches!(&refused, Error::Input(sentence) if sentence.contains("does not continue text with its 256 tokens")), "{refused}");
    }
}
