//! `minrnn serve`: the real server, asked over HTTP.

#![cfg(unix)]

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use common::{Finished, Scratch, Training, minrnn, overflowing, shown, signal};
use parquet::data_type::DoubleType;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(120);

/// A tiny model of text, trained once for all tests.
fn model() -> &'static str {
    static MODEL: OnceLock<String> = OnceLock::new();
    MODEL.get_or_init(|| {
        let scratch = Scratch::shared("serve");
        let training = scratch.training("run", &["max_iterations=60", "eval_every=30", "lr=0.01"]);
        training.run().ok();
        let packed = shown(&scratch.path("words.minrnn"));
        Finished::of(&mut minrnn(&["pack", &shown(&training.out), "-o", &packed])).ok();
        packed
    })
}

/// A server of its own, which ends with the test.
struct Server {
    child: Child,
    base: String,
    agent: ureq::Agent,
    said: Option<BufReader<std::process::ChildStderr>>,
}

impl Server {
    fn start(args: &[&str]) -> Self {
        Self::of(&mut minrnn(&[&["serve", "--port", "0", "--threads", "2"], args].concat()))
    }

    fn of(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let base = loop {
            let mut line = String::new();
            assert_ne!(said.read_line(&mut line).unwrap(), 0, "the server ended");
            if let Some(address) = line.trim().strip_prefix("listening on ") {
                break address.to_owned();
            }
        };
        let config = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(PATIENCE));
        Self { child, base, agent: config.build().into(), said: Some(said) }
    }

    fn post(&self, path: &str, body: &Value) -> ureq::http::Response<ureq::Body> {
        let request = self.agent.post(format!("{}{path}", self.base)).content_type("application/json");
        request.send(body.to_string()).unwrap()
    }

    fn asked(&self, path: &str, body: &Value) -> Value {
        let mut response = self.post(path, body);
        let text = response.body_mut().read_to_string().unwrap();
        assert_eq!(response.status(), 200, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    /// The same of an answer of any length.
    fn asked_whole(&self, body: &Value) -> Value {
        let mut response = self.post("/v1/completions", body);
        assert_eq!(response.status(), 200);
        serde_json::from_reader(BufReader::new(response.body_mut().as_reader())).unwrap()
    }

    fn completed(&self, body: &Value) -> Value {
        self.asked("/v1/completions", body)
    }

    /// Status and sentence of a request that is refused.
    fn refused(&self, path: &str, body: &Value) -> (u16, String) {
        let mut response = self.post(path, body);
        let told: Value = serde_json::from_str(&response.body_mut().read_to_string().unwrap()).unwrap();
        (response.status().as_u16(), told["error"]["message"].as_str().unwrap().to_owned())
    }

    fn get(&self, path: &str) -> (u16, String) {
        let mut response = self.agent.get(format!("{}{path}", self.base)).call().unwrap();
        (response.status().as_u16(), response.body_mut().read_to_string().unwrap())
    }

    fn metric(&self, name: &str) -> u64 {
        let (_, text) = self.get("/metrics");
        let line = text.lines().find(|line| line.starts_with(&format!("minrnn_{name}{{"))).unwrap_or_else(|| panic!("no {name}:\n{text}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    fn wait_until(&self, reached: impl Fn(&Self) -> bool) {
        let started = Instant::now();
        while !reached(self) {
            assert!(started.elapsed() < PATIENCE, "waited in vain");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// A connection on which a completion was asked for.
    fn connection(&self, body: &Value) -> TcpStream {
        let mut connection = self.silent();
        let body = body.to_string();
        let head = format!(
            "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        connection.write_all((head + &body).as_bytes()).unwrap();
        connection
    }

    /// A connection on which nothing was said.
    fn silent(&self) -> TcpStream {
        let connection = TcpStream::connect(self.base.strip_prefix("http://").unwrap()).unwrap();
        connection.set_read_timeout(Some(PATIENCE)).unwrap();
        connection
    }

    /// Most MiB that it has taken until now; 0 where the system does not say.
    fn peak_mib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        peak.map_or(0, |peak| peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024)
    }

    /// The exit code and what was said after the beginning.
    fn ended(mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.said.take().unwrap().read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), rest)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The `data:` of a stream's events.
fn data_of(stream: &str) -> Vec<&str> {
    stream.lines().filter_map(|line| line.strip_prefix("data: ")).collect()
}

fn text_of(completion: &Value) -> &str {
    completion["choices"][0]["text"].as_str().unwrap()
}

#[test]
fn a_seed_gives_the_text_of_generate_whoever_else_asks_and_whatever_was_read_before() {
    let server = Server::start(&[model(), "--sessions", "5"]);
    let prompts = ["", "the quick ", "brown\nfox ", "jumps. the quick brown\n"];
    let asked = |prompt: &str, seed: u64| json!({ "prompt": prompt, "max_tokens": 60, "seed": seed });
    let expected = |prompt: &str, seed: u64| {
        let args = ["generate", model(), "--prompt", prompt, "--max-tokens", "60", "--seed", &seed.to_string()];
        Finished::of(&mut minrnn(&args)).ok().stdout
    };
    let cases: Vec<(&str, u64)> = prompts.iter().flat_map(|&prompt| (0..3).map(move |seed| (prompt, seed))).collect();
    let expected: Vec<String> = cases.iter().map(|&(prompt, seed)| expected(prompt, seed)).collect();
    for round in 0..2 {
        std::thread::scope(|scope| {
            for (&(prompt, seed), expected) in cases.iter().zip(&expected) {
                let (server, asked) = (&server, &asked);
                scope.spawn(move || assert_eq!(text_of(&server.completed(&asked(prompt, seed))), expected, "round {round}"));
            }
        });
    }
    assert!(server.metric("prompt_tokens_cached_total") > 0);
    assert_eq!(server.metric("generated_tokens_total"), 2 * 60 * cases.len() as u64);
    // Without a seed each request has one of its own, and says which.
    let [one, other] = [0, 1].map(|_| server.completed(&json!({ "prompt": "the ", "max_tokens": 40 })));
    assert_ne!(one["seed"], other["seed"]);
    let again = server.completed(&json!({ "prompt": "the ", "max_tokens": 40, "seed": one["seed"] }));
    assert_eq!(text_of(&again), text_of(&one));
}

#[test]
fn long_prompts_are_read_in_pieces_between_the_steps_of_others() {
    let server = Server::start(&[model(), "--cache", "0"]);
    let cached = Server::start(&[model()]);
    let long = common::words(5000);
    let asked = json!({ "prompt": long, "max_tokens": 30, "temperature": 0 });
    let alone = server.completed(&asked);
    assert_eq!(alone["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
    assert_eq!(text_of(&cached.completed(&asked)), text_of(&alone));
    // Of what two texts share, at least half is known.
    let other = json!({ "prompt": long[..3000].to_owned() + "fox fox ", "max_tokens": 30, "temperature": 0 });
    let known = cached.completed(&other);
    assert_eq!(known["usage"]["prompt_tokens_details"]["cached_tokens"], 2048);
    assert_eq!(text_of(&known), text_of(&server.completed(&other)));
    assert_eq!(server.metric("cache_entries"), 0);
}

#[test]
fn a_stream_has_the_whole_text_its_usage_and_its_end() {
    let server = Server::start(&[model()]);
    let whole = server.completed(&json!({ "prompt": ["the ", "fox "], "n": 2, "max_tokens": 50, "seed": 5, "echo": true, "logprobs": 1 }));
    let body = json!({ "prompt": ["the ", "fox "], "n": 2, "max_tokens": 50, "seed": 5, "echo": true, "logprobs": 1, "stream": true,
        "stream_options": { "include_usage": true } });
    let mut response = server.post("/v1/completions", &body);
    assert!(response.headers()["content-type"].to_str().unwrap().starts_with("text/event-stream"));
    let stream = response.body_mut().read_to_string().unwrap();
    let data = data_of(&stream);
    assert_eq!(data.last(), Some(&"[DONE]"));
    let chunks: Vec<Value> = data[..data.len() - 1].iter().map(|data| serde_json::from_str(data).unwrap()).collect();
    for choice in whole["choices"].as_array().unwrap() {
        let of_choice =
            || chunks.iter().flat_map(|chunk| chunk["choices"].as_array().unwrap()).filter(|part| part["index"] == choice["index"]);
        let text: String = of_choice().map(|part| part["text"].as_str().unwrap()).collect();
        assert_eq!(choice["text"], text);
        for list in ["tokens", "token_logprobs", "top_logprobs", "text_offset"] {
            let joined: Vec<Value> = of_choice().flat_map(|part| part["logprobs"][list].as_array().unwrap().clone()).collect();
            assert_eq!(choice["logprobs"][list], Value::from(joined), "{list}");
        }
        assert_eq!(of_choice().filter(|part| part["finish_reason"] == "length").count(), 1);
        assert_eq!(text.chars().count(), 54);
    }
    let usage = &chunks.last().unwrap()["usage"];
    assert_eq!((&usage["prompt_tokens"], &usage["completion_tokens"], &usage["total_tokens"]), (&json!(8), &json!(200), &json!(208)));
    assert_eq!(whole["usage"]["total_tokens"], 208);
}

#[test]
fn tokens_of_a_prompt_have_the_probabilities_that_they_were_generated_with() {
    let server = Server::start(&[model()]);
    let told = server.completed(&json!({ "prompt": "the quick ", "max_tokens": 700, "seed": 2, "logprobs": 3 }));
    let (text, logprobs) = (text_of(&told), &told["choices"][0]["logprobs"]);
    let read = server.completed(&json!({ "prompt": format!("the quick {text}"), "max_tokens": 0, "echo": true, "logprobs": 3 }));
    let of_prompt = &read["choices"][0]["logprobs"];
    assert_eq!(read["usage"]["completion_tokens"], 0);
    assert_eq!(of_prompt["token_logprobs"][0], Value::Null);
    let empty = server.completed(&json!({ "prompt": "", "max_tokens": 2, "echo": true, "logprobs": 0 }));
    assert_eq!(empty["choices"][0]["logprobs"]["text_offset"], json!([0, 1]));
    for list in ["tokens", "token_logprobs", "top_logprobs", "text_offset"] {
        assert_eq!(of_prompt[list].as_array().unwrap()[10..], logprobs[list].as_array().unwrap()[..], "{list}");
    }
}

#[test]
fn texts_share_what_is_told_of_their_prompt_and_more_than_an_answer_holds_is_refused() {
    let server = Server::start(&[model()]);
    let asked = |n: usize, top: usize| json!({ "prompt": common::words(1 << 14), "n": n, "max_tokens": 0, "echo": true, "logprobs": top });
    let (status, sentence) = server.refused("/v1/completions", &asked(64, 20));
    assert!(status == 400 && sentence.contains("1048576 tokens of all texts with 21 probabilities each are 22020096"), "{sentence}");
    assert_eq!(server.metric("prompts_total"), 0);
    // What may be generated counts too, behind each prompt.
    let (status, sentence) = server.refused("/v1/completions", &json!({ "prompt": vec!["the "; 13], "max_tokens": 4096, "logprobs": 20 }));
    assert!(status == 400 && sentence.contains("ask for fewer"), "{sentence}");
    // As much as is let through.
    let told = server.asked_whole(&asked(64, 0));
    let choices = told["choices"].as_array().unwrap();
    assert_eq!(choices[0]["logprobs"]["tokens"].as_array().unwrap().len(), 1 << 14);
    assert!(choices.iter().all(|choice| choice["logprobs"] == choices[0]["logprobs"]));
    assert!(server.peak_mib() < 280, "{} MiB", server.peak_mib());
    let (status, sentence) =
        server.refused("/v1/completions", &json!({ "prompt": common::words(1 << 20), "n": 17, "max_tokens": 1, "echo": true }));
    assert!(status == 400 && sentence.contains("echo: the answer would repeat 17825792 bytes"), "{sentence}");
}

#[test]
fn stop_strings_are_there_once_for_all_texts() {
    let server = Server::start(&[model()]);
    let stops: Vec<String> = (0..64).map(|i| format!("{i:01000}")).collect();
    let told = server.asked_whole(&json!({ "prompt": vec!["the "; 256], "n": 64, "max_tokens": 0, "stop": stops }));
    assert_eq!(told["choices"].as_array().unwrap().len(), 256 * 64);
    assert!(server.peak_mib() < 200, "{} MiB", server.peak_mib());
}

#[test]
fn a_stop_string_ends_a_text_before_it() {
    let server = Server::start(&[model()]);
    let whole = server.completed(&json!({ "prompt": "the ", "max_tokens": 400, "seed": 1 }));
    let expected = text_of(&whole).split("fox").next().unwrap();
    assert!(expected.len() < 300, "the text has no fox: {expected}");
    let stopped = server.completed(&json!({ "prompt": "the ", "max_tokens": 400, "seed": 1, "stop": ["fox", "never"] }));
    assert_eq!(text_of(&stopped), expected);
    assert_eq!(stopped["choices"][0]["finish_reason"], "stop");
}

#[test]
fn a_response_goes_on_from_the_one_before() {
    let server = Server::start(&[model()]);
    let asked = |input: &str, before: &Value, n: usize| json!({ "input": input, "previous_response_id": before, "max_output_tokens": n, "temperature": 0 });
    let whole = server.asked("/v1/responses", &asked("the quick ", &Value::Null, 80));
    let text = |response: &Value| response["output"][0]["content"][0]["text"].as_str().unwrap().to_owned();
    let first = server.asked("/v1/responses", &asked("the quick ", &Value::Null, 30));
    let second = server.asked("/v1/responses", &asked("", &first["id"], 50));
    assert_eq!(text(&first) + &text(&second), text(&whole));
    assert_eq!(second["usage"]["input_tokens_details"]["cached_tokens"], 39);
    assert_eq!(second["status"], "incomplete");
    // More text of the user's comes behind.
    let more = server.asked("/v1/responses", &asked("brown\n", &first["id"], 20));
    let same = server.completed(&json!({ "prompt": format!("the quick {}brown\n", text(&first)), "max_tokens": 20, "temperature": 0 }));
    assert_eq!(text(&more), text_of(&same));
    // As a stream: the same text, and events that count up.
    let mut body = asked("the quick ", &Value::Null, 80);
    body["stream"] = true.into();
    let stream = server.post("/v1/responses", &body).body_mut().read_to_string().unwrap();
    let events: Vec<Value> = data_of(&stream).iter().map(|data| serde_json::from_str(data).unwrap()).collect();
    assert!(events.iter().enumerate().all(|(i, event)| event["sequence_number"] == i));
    let deltas: String = events.iter().filter_map(|event| event["delta"].as_str()).collect();
    assert_eq!(deltas, text(&whole));
    let last = events.last().unwrap();
    assert_eq!((last["type"].as_str(), text(&last["response"])), (Some("response.completed"), deltas));
    let (status, sentence) = server.refused("/v1/responses", &asked("", &"resp_none".into(), 5));
    assert_eq!((status, sentence.contains("there is no answer 'resp_none'")), (400, true));
    // What is not stored cannot be gone on from.
    let mut body = asked("the ", &Value::Null, 5);
    body["store"] = false.into();
    let unstored = server.asked("/v1/responses", &body);
    assert_eq!(server.refused("/v1/responses", &asked("", &unstored["id"], 5)).0, 400);
}

#[test]
fn a_text_ends_when_its_client_goes_away() {
    let server = Server::start(&[model(), "--max-tokens", "1000000000"]);
    let endless = json!({ "prompt": "the ", "max_tokens": 1_000_000_000, "stream": true });
    let mut response = server.post("/v1/completions", &endless);
    let mut begun = [0; 200];
    response.body_mut().as_reader().read_exact(&mut begun).unwrap();
    assert_eq!(server.metric("sessions_running"), 1);
    drop(response);
    server.wait_until(|server| server.metric("sessions_running") == 0);
    // One that waits for the whole text, and goes away too.
    let impatient = ureq::Agent::config_builder().timeout_global(Some(Duration::from_millis(300))).build();
    let request = ureq::Agent::from(impatient).post(format!("{}/v1/completions", server.base)).content_type("application/json");
    request.send(json!({ "prompt": "the ", "max_tokens": 1_000_000_000 }).to_string()).unwrap_err();
    server.wait_until(|server| server.metric("sessions_running") == 0 && server.metric("prompts_left_total") == 2);
}

#[test]
fn a_text_waits_for_a_client_that_does_not_read_and_others_go_on() {
    let server = Server::start(&[model(), "--max-tokens", "45000"]);
    // 30 MB, more than a connection holds that nobody reads.
    let mut unread = server.connection(&json!({ "prompt": "the ", "max_tokens": 45_000, "logprobs": 20, "seed": 3, "stream": true }));
    let generated = |server: &Server| server.metric("generated_tokens_total");
    server.wait_until(|server| {
        let before = generated(server);
        std::thread::sleep(Duration::from_millis(300));
        before > 0 && generated(server) == before
    });
    let before = generated(&server);
    assert!(before < 45_000 && server.metric("texts_behind") == 1, "{before}");
    server.completed(&json!({ "prompt": "fox ", "max_tokens": 100 }));
    assert_eq!((generated(&server), server.metric("sessions_running")), (before + 100, 1));
    // Once it reads, it gets all of it.
    let mut stream = String::new();
    let mut reader = BufReader::new(&mut unread);
    while !stream.ends_with("[DONE]\n") {
        assert_ne!(reader.read_line(&mut stream).unwrap(), 0, "the stream broke off");
    }
    let text: String = data_of(&stream)
        .iter()
        .filter_map(|data| serde_json::from_str::<Value>(data).ok())
        .map(|event| text_of(&event).to_owned())
        .collect();
    let whole = server.completed(&json!({ "prompt": "the ", "max_tokens": 45_000, "seed": 3 }));
    assert_eq!(text, text_of(&whole));
}

#[test]
fn a_client_that_keeps_a_connection_waiting_loses_it() {
    let server = Server::start(&[model(), "--max-tokens", "45000", "--patience", "1"]);
    // One that does not read is as good as gone.
    let unread = server.connection(&json!({ "prompt": "the ", "max_tokens": 45_000, "logprobs": 20, "stream": true }));
    server.wait_until(|server| server.metric("texts_behind") == 1);
    server.wait_until(|server| server.metric("sessions_running") == 0);
    assert_eq!(server.metric("prompts_left_total"), 1);
    drop(unread);
    // So is one that says nothing, half a head, or nothing more.
    for said in ["", "GET /health HTTP/1.1\r\nHost: localhost\r\n", "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"] {
        let mut connection = server.silent();
        connection.write_all(said.as_bytes()).unwrap();
        let begun = Instant::now();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        assert!(begun.elapsed() > Duration::from_millis(900), "{said:?}");
        assert_eq!(answer.starts_with("HTTP/1.1 200"), said.ends_with("\r\n\r\n"), "{said:?}: {answer}");
    }
    let mut half = server.silent();
    let head = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
    half.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    BufReader::new(half).read_line(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
}

#[test]
fn a_request_that_is_far_too_long_is_answered_before_its_end() {
    let server = Server::start(&[model(), "--max-request", "1"]);
    let begun = |head: &str| {
        let mut connection = server.silent();
        let head = format!("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{head}\r\n\r\n");
        connection.write_all(head.as_bytes()).unwrap();
        connection
    };
    let answer = |connection: TcpStream| {
        let mut lines = BufReader::new(connection).lines();
        let status = lines.next().unwrap().unwrap();
        // The body is all on one line, behind the head.
        let told = lines.map_while(|line| line.ok()).find(|line| line.starts_with('{')).unwrap_or_default();
        (status, told)
    };
    let (status, told) = answer(begun("Content-Length: 99999999999"));
    assert!(
        status.starts_with("HTTP/1.1 413") && told.contains("the request has 99999999999 bytes, expected at most 1048576"),
        "{status} {told}"
    );
    // In pieces without a length, which go on until the server has had enough.
    let mut endless = begun("Transfer-Encoding: chunked");
    let piece = [&b"10000\r\n"[..], &[b' '; 1 << 16], b"\r\n"].concat();
    let n_pieces = (0..1 << 10).take_while(|_| endless.write_all(&piece).is_ok()).count();
    assert!(n_pieces < 1 << 10, "64 MiB were read");
}

#[test]
fn more_than_can_wait_is_refused_and_may_come_again() {
    let server = Server::start(&[model(), "--sessions", "1", "--queue", "1", "--max-tokens", "1000000000"]);
    let endless = json!({ "prompt": "the ", "max_tokens": 1_000_000_000, "stream": true });
    let [running, waiting] = [1, 1].map(|session| {
        let response = server.post("/v1/completions", &endless);
        server.wait_until(|server| server.metric("sessions_running") == session);
        response
    });
    server.wait_until(|server| server.metric("prompts_waiting") == 1);
    let response = server.post("/v1/completions", &json!({ "prompt": "the " }));
    assert_eq!((response.status().as_u16(), &response.headers()["retry-after"]), (429, &ureq::http::HeaderValue::from_static("1")));
    assert_eq!(server.metric("prompts_refused_total"), 1);
    drop((running, waiting));
    server.wait_until(|server| server.post("/v1/completions", &json!({ "prompt": "the ", "max_tokens": 3 })).status() == 200);
}

#[test]
fn what_is_wrong_with_a_request_is_said() {
    let server = Server::start(&[model(), "--max-request", "1"]);
    let cases = [
        (json!({ "promt": "a" }), "promt: there is no such field; expected one of model, prompt"),
        (json!({ "prompt": 5 }), "prompt: expected a text, a list"),
        (json!({ "prompt": ["t", 5] }), "prompt: expected a text, a list"),
        (json!({ "prompt": [-1] }), "prompt: expected a text, a list"),
        (json!({ "prompt": [100_000] }), "token id 100000 is outside the vocabulary"),
        (json!({ "prompt": "日" }), "'日' (U+65E5)"),
        (json!({ "prompt": "t", "max_tokens": 4097 }), "max_tokens: must be between 0 and 4096, found 4097"),
        (json!({ "prompt": "t", "max_tokens": -1 }), "max_tokens: expected a whole number of at least 0, found -1"),
        (json!({ "prompt": "t", "n": 0 }), "n: must be between 1 and 64, found 0"),
        (json!({ "prompt": "t", "temperature": -0.5 }), "temperature must be 0"),
        (json!({ "prompt": "t", "top_p": 2 }), "top_p must be above 0"),
        (json!({ "prompt": "t", "logprobs": 21 }), "logprobs: must be between 0 and 20"),
        (json!({ "prompt": "t", "stop": [""] }), "stop: a stop string is empty"),
        (json!({ "prompt": "t", "stop": vec!["a"; 65] }), "stop: expected at most 64 strings"),
        (json!({ "prompt": "t", "frequency_penalty": 0.1 }), "frequency_penalty: is not supported; repetition_penalty"),
        (json!({ "prompt": "t", "suffix": "s" }), "suffix: is not supported"),
        (json!({ "prompt": "t", "best_of": 2 }), "best_of: must be n"),
        (json!({ "prompt": vec!["t"; 257] }), "prompt: expected at most 256 prompts, found 257"),
        (json!([1]), "must be a JSON object"),
    ];
    for (body, expected) in cases {
        let (status, sentence) = server.refused("/v1/completions", &body);
        assert!(status == 400 && sentence.contains(expected), "{body}: {status} {sentence}");
    }
    let (status, sentence) = server.refused("/v1/completions", &json!({ "model": "other", "prompt": "t" }));
    assert_eq!((status, sentence.as_str()), (404, "there is no model 'other' of text; there is words"));
    let (status, _) = server.refused("/v1/completions", &json!({ "prompt": "t".repeat(2 << 20) }));
    assert_eq!(status, 413);
    assert_eq!(server.refused("/v1/chat/completions", &json!({})).0, 404);
    assert_eq!(server.get("/v1/completions").0, 405);
    let plain = server.agent.post(format!("{}/v1/completions", server.base)).content_type("text/plain").send("{}").unwrap();
    assert_eq!(plain.status(), 415);
    let broken = server.agent.post(format!("{}/v1/completions", server.base)).content_type("application/json").send("{").unwrap();
    assert_eq!(broken.status(), 400);
    let elsewhere = server.agent.get(format!("{}/health", server.base)).header("Host", "example.org").call().unwrap();
    assert_eq!(elsewhere.status(), 403);
    for (name, input) in
        [("input", json!({ "input": [{ "role": "system", "content": "t" }] })), ("instructions", json!({ "instructions": "t" }))]
    {
        let (status, sentence) = server.refused("/v1/responses", &input);
        assert!(status == 400 && sentence.starts_with(name), "{sentence}");
    }
    // Neutral values of what is not supported are as good as none.
    let harmless = json!({ "prompt": "the ", "frequency_penalty": 0, "presence_penalty": 0.0, "logit_bias": {}, "suffix": null, "best_of": 1,
        "user": "somebody", "max_tokens": 2 });
    server.completed(&harmless);
    assert_eq!(server.get("/health"), (200, "{\"status\":\"ok\"}".to_owned()));
}

#[test]
fn texts_become_tokens_and_tokens_texts() {
    let server = Server::start(&[model()]);
    let tokens = server.asked("/tokenize", &json!({ "prompt": "the fox " }));
    assert_eq!(tokens["count"], 8);
    let text = server.asked("/detokenize", &json!({ "tokens": tokens["tokens"] }));
    assert_eq!(text["prompt"], "the fox ");
    let by_tokens = server.completed(&json!({ "prompt": tokens["tokens"], "seed": 1, "echo": true }));
    let by_text = server.completed(&json!({ "prompt": "the fox ", "seed": 1, "echo": true }));
    assert_eq!(text_of(&by_tokens), text_of(&by_text));
}

#[test]
fn only_who_knows_the_key_may_ask() {
    let scratch = Scratch::new();
    let key = shown(&scratch.write("key", "s3cret\n"));
    let server = Server::start(&[model(), "--api-key-file", &key]);
    assert_eq!(server.get("/health").0, 200);
    assert_eq!(server.get("/").0, 200);
    for path in ["/v1/models", "/metrics", "/nowhere"] {
        assert_eq!(server.get(path).0, 401, "{path}");
    }
    let with = |key: &str| {
        let request = server.agent.get(format!("{}/v1/models", server.base)).header("Authorization", format!("Bearer {key}"));
        request.call().unwrap().status().as_u16()
    };
    assert_eq!(["s3cret", "s3cre", "s3crets", ""].map(with), [200, 401, 401, 401]);
    let lower = server.agent.get(format!("{}/v1/models", server.base)).header("Authorization", "bearer s3cret");
    assert_eq!(lower.call().unwrap().status(), 200);
    let empty = shown(&scratch.write("empty", "\n"));
    Finished::of(&mut minrnn(&["serve", model(), "--port", "0", "--api-key-file", &empty])).refused(&["expected a key"]);
}

#[test]
fn a_stop_lets_what_is_under_way_end() {
    let server = Server::start(&[model(), "--max-tokens", "1000000000"]);
    let mut response = server.post("/v1/completions", &json!({ "prompt": "the ", "max_tokens": 20_000, "stream": true }));
    let mut reader = BufReader::new(response.body_mut().as_reader());
    let mut first = String::new();
    reader.read_line(&mut first).unwrap();
    signal(&server.child, "TERM");
    let mut rest = String::new();
    reader.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("\"finish_reason\":\"length\"") && rest.ends_with("data: [DONE]\n\n"));
    let (code, said) = server.ended();
    assert_eq!((code, said.as_str()), (Some(0), "stopping; open requests may finish\n"));
    // What takes too long is not waited for.
    let server = Server::start(&[model(), "--max-tokens", "1000000000", "--drain", "0"]);
    let endless = server.post("/v1/completions", &json!({ "prompt": "the ", "max_tokens": 1_000_000_000, "stream": true }));
    signal(&server.child, "INT");
    assert_eq!(server.ended().0, Some(0));
    drop(endless);
}

#[test]
fn several_models_are_called_by_their_names() {
    let other = format!("other={}", model());
    let server = Server::start(&[model(), &other]);
    let listed: Value = serde_json::from_str(&server.get("/v1/models").1).unwrap();
    let names: Vec<&str> = listed["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!(names, ["words", "other"]);
    let asked = |model: &str| json!({ "model": model, "prompt": "the ", "seed": 1 });
    let [one, two] = ["words", "other"].map(|name| server.completed(&asked(name)));
    assert_eq!((text_of(&one), &two["model"]), (text_of(&two), &json!("other")));
    let described: Value = serde_json::from_str(&server.get("/v1/models/other").1).unwrap();
    assert_eq!((&described["id"], &described["mixer"]), (&json!("other"), &json!("min-gru")));
}

#[test]
fn numbers_that_are_none_are_told_and_harm_nobody_else() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &[]);
    training.run().ok();
    let damaged = format!("damaged={}", shown(&overflowing(&scratch, &training.checkpoint("best"))));
    let server = Server::start(&[model(), &damaged]);
    for body in [json!({ "max_tokens": 5 }), json!({ "max_tokens": 5, "n": 2 }), json!({ "max_tokens": 0, "echo": true, "logprobs": 1 })] {
        let mut body = body;
        (body["model"], body["prompt"]) = ("damaged".into(), "the fox ".into());
        for _ in 0..2 {
            let (status, sentence) = server.refused("/v1/completions", &body);
            assert!(
                status == 500 && sentence.contains("expected a number; the model's weights or its state are damaged"),
                "{status} {sentence}"
            );
        }
    }
    let body = json!({ "model": "damaged", "prompt": "the ", "stream": true });
    let stream = server.post("/v1/completions", &body).body_mut().read_to_string().unwrap();
    assert!(data_of(&stream)[0].contains("server_error") && !stream.contains("[DONE]"), "{stream}");
    assert_eq!(server.get("/health").0, 200);
    server.completed(&json!({ "prompt": "the " }));
}

#[test]
fn sessions_that_grow_wait_for_memory() {
    let scratch = Scratch::new();
    let training = scratch.training("attention", &["mixer=attention", "n_heads=2", "positions=rotary"]);
    training.run().ok();
    // A token of this model takes 2 × 16 numbers, so that a text of 1000 tokens takes 128 kB and eight have room at once.
    let server = Server::start(&[&shown(&training.out), "--session-memory", "1", "--max-tokens", "10000"]);
    let asked = |n: usize| json!({ "prompt": "the ", "max_tokens": n, "temperature": 0 });
    let whole = server.completed(&asked(1000));
    std::thread::scope(|scope| {
        for _ in 0..20 {
            let (server, whole, asked) = (&server, &whole, &asked);
            scope.spawn(move || assert_eq!(text_of(&server.completed(&asked(1000))), text_of(whole)));
        }
        let mut most = 0;
        server.wait_until(|server| server.metric("prompts_waiting") > 0);
        while server.metric("generated_tokens_total") < 21_000 {
            let running = server.metric("sessions_running");
            assert!(running <= 8, "{running} at once");
            most = running.max(most);
        }
        assert!(most > 1);
    });
    // Ten take more by themselves, however little they see of what is long past.
    let (status, sentence) = server.refused("/v1/completions", &json!({ "prompt": "the ", "max_tokens": 10_000, "n": 10 }));
    assert!(status == 400 && sentence.contains("4 tokens and 10000 more take"), "{status} {sentence}");
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
    // Those that were taken, and what became of them.
    let counted = ["tables_total", "tables_wrong_total", "tables_failed_total", "tables_waiting"].map(|name| server.metric(name));
    assert_eq!(counted, [5, 3, 0, 0]);
    // Without a model of text there is nothing to complete.
    let server = Server::start(&[&packed]);
    let (status, sentence) = server.refused("/v1/completions", &json!({ "prompt": "the " }));
    assert_eq!((status, sentence.as_str()), (404, "there is no model of text; none is served"));
}

/// A Parquet file of one column `load` of numbers, of which few bytes tell.
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
    // A cell of a text takes two bytes.
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
    // A file of this machine is read whole, however long.
    let longer = shown(&scratch.write("longer.parquet", longer));
    assert_eq!(Finished::of(&mut minrnn(&["predict", &packed, "--data", &longer])).ok().stdout.lines().count(), 4);
    // That a table has no place is the server's fault, and where that would be nobody else's business.
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
    // One without some days, one that ends early, one with a name that training never saw, and one whose values are all unknown.
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
fn a_server_listens_under_a_name_and_guards_what_it_leads_to() {
    let server = Server::start(&[model(), "--host", "localhost"]);
    assert!(server.base.starts_with("http://127.0.0.1:"), "{}", server.base);
    let asked = |host: &str| server.agent.get(format!("{}/health", server.base)).header("Host", host).call().unwrap();
    assert_eq!(["localhost", "127.0.0.1:9", "models.example.org"].map(|host| asked(host).status().as_u16()), [200, 200, 403]);
    let told = asked("models.example.org").body_mut().read_to_string().unwrap();
    assert!(told.contains("let a proxy in front send 'Host: localhost', or start the server with a key"), "{told}");
    // A key is enough, whatever the server is called.
    let scratch = Scratch::new();
    let key = shown(&scratch.write("key", "s3cret"));
    let server = Server::start(&[model(), "--host", "localhost", "--api-key-file", &key]);
    let request = server.agent.get(format!("{}/v1/models", server.base)).header("Host", "models.example.org");
    assert_eq!(request.header("Authorization", "Bearer s3cret").call().unwrap().status(), 200);
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

#[test]
fn what_cannot_be_served_is_refused_before_it_listens() {
    let scratch = Scratch::new();
    let task = scratch.task("copying", &[]);
    task.run().ok();
    let refused = |args: &[&str], parts: &[&str]| Finished::of(&mut minrnn(&[&["serve"], args].concat())).refused(parts);
    refused(&[&shown(&task.out)], &["was trained neither on text nor on a table"]);
    refused(&[&shown(&scratch.path("none"))], &["none"]);
    let damaged = scratch.path("damaged.minrnn");
    let bytes = std::fs::read(model()).unwrap();
    std::fs::write(&damaged, &bytes[..bytes.len() / 2]).unwrap();
    refused(&[&shown(&damaged)], &["damaged.minrnn"]);
    refused(&[model(), model()], &["two models are called 'words'"]);
    refused(&[model(), "--sessions", "0"], &["sessions must be at least 1"]);
    refused(&[model(), "--patience", "0"], &["patience must be at least 1"]);
    refused(&[model(), "--max-request", "0"], &["max_request must be at least 1"]);
    let of_sessions = "the memory of the sessions of a model (session_bytes) must be at least 1, found 0; raise it";
    refused(&[model(), "--session-memory", "0"], &[of_sessions]);
    refused(&[model(), "--host", "0"], &["--host '0': expected an address of this machine or a name of one; it is no whole address"]);
    refused(&[model(), "--host", "no such name"], &["--host 'no such name': expected an address of this machine or a name of one"]);
    refused(&[model(), "--threads", "0"], &["--threads must be between"]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    refused(&[model(), "--port", &port], &["could not listen on 127.0.0.1", "choose another port"]);
}
