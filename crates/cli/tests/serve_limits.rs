//! `minrnn serve`: what is refused, what an answer may take, and clients that go away, lag behind or ask for too much.

#![cfg(unix)]

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use common::server::{Server, data_of, model, text_of};
use common::{Finished, Scratch, minrnn, overflowing, shown};
use serde_json::{Value, json};

#[test]
fn texts_share_what_is_told_of_their_prompt_and_more_than_an_answer_holds_is_refused() {
    let server = Server::start(&[model()]);
    let asked = |n: usize, top: usize| json!({ "prompt": common::words(1 << 14), "n": n, "max_tokens": 0, "echo": true, "logprobs": top });
    let (status, sentence) = server.refused("/v1/completions", &asked(64, 20));
    assert!(status == 400 && sentence.contains("1048576 tokens of all texts with 21 probabilities each are 22020096"), "{sentence}");
    assert_eq!(server.metric("prompts_total"), 0);
    // What may be generated counts too, for each prompt.
    let (status, sentence) = server.refused("/v1/completions", &json!({ "prompt": vec!["the "; 13], "max_tokens": 4096, "logprobs": 20 }));
    assert!(status == 400 && sentence.contains("ask for fewer"), "{sentence}");
    // The most that is let through.
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
fn what_a_request_nests_takes_no_large_multiple_of_its_bytes() {
    let server = Server::start(&[model()]);
    let (objects, lists) = (format!("[{}{{}}]", "{\"\":0},".repeat(500_000)), format!("[{}[]]", "[],".repeat(1_199_999)));
    let ask = |path: &str, body: String| {
        let request = server.agent.post(format!("{}{path}", server.base)).content_type("application/json");
        let mut response = request.send(body).unwrap();
        (response.status().as_u16(), response.body_mut().read_to_string().unwrap())
    };
    let prompts = "prompt: expected at most 256 prompts, found 1200000; send them in several requests";
    for (path, field, value, status, sentence) in [
        ("/v1/responses", "metadata", format!("{{\"a\":{objects}}}"), 400, "metadata: expected an object of at most 16 texts"),
        ("/v1/responses", "input", objects.clone(), 400, "input: expected a text, or messages"),
        ("/v1/responses", "tools", objects.clone(), 400, "tools: is not supported"),
        ("/v1/responses", "max_tool_calls", objects.clone(), 200, "\"status\":\"incomplete\""),
        ("/v1/completions", "user", objects.clone(), 200, "\"finish_reason\":\"length\""),
        ("/v1/completions", "stop", objects.clone(), 400, "stop: expected a text or a list of texts, found [{"),
        ("/v1/completions", "prompt", objects.clone(), 400, "prompt: expected a text, a list"),
        ("/v1/completions", "prompt", lists.clone(), 400, prompts),
        ("/v1/completions", "other", lists, 400, "other: there is no such field"),
        ("/detokenize", "tokens", objects, 400, "tokens: expected a list of tokens"),
    ] {
        let (found, told) = ask(path, format!("{{\"{field}\":{value}}}"));
        assert!(found == status && told.contains(sentence), "{path} {field}: {found} {told}");
    }
    assert!(server.peak_mib() < 200, "{} MiB", server.peak_mib());
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
    // A client that waits for the whole text, and goes away too.
    let impatient = ureq::Agent::config_builder().timeout_global(Some(Duration::from_millis(300))).build();
    let request = ureq::Agent::from(impatient).post(format!("{}/v1/completions", server.base)).content_type("application/json");
    request.send(json!({ "prompt": "the ", "max_tokens": 1_000_000_000 }).to_string()).unwrap_err();
    server.wait_until(|server| server.metric("sessions_running") == 0 && server.metric("prompts_left_total") == 2);
}

#[test]
fn a_text_waits_for_a_client_that_does_not_read_and_others_go_on() {
    let server = Server::start(&[model(), "--max-tokens", "45000"]);
    // 30 MB, more than an unread connection holds.
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
    // A client that does not read is as good as gone.
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
        // The body is all on one line, after the head.
        let told = lines.map_while(|line| line.ok()).find(|line| line.starts_with('{')).unwrap_or_default();
        (status, told)
    };
    let (status, told) = answer(begun("Content-Length: 99999999999"));
    assert!(
        status.starts_with("HTTP/1.1 413") && told.contains("the request has 99999999999 bytes, expected at most 1048576"),
        "{status} {told}"
    );
    // In pieces without a total length, which go on until the server has had enough.
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
    // Neutral values of unsupported fields are as good as none.
    let harmless = json!({ "prompt": "the ", "frequency_penalty": 0, "presence_penalty": 0.0, "logit_bias": {}, "suffix": null, "best_of": 1,
        "user": "somebody", "max_tokens": 2 });
    server.completed(&harmless);
    assert_eq!(server.get("/health"), (200, "{\"status\":\"ok\"}".to_owned()));
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
    // Ten alone take more, however little of the distant past they see.
    let (status, sentence) = server.refused("/v1/completions", &json!({ "prompt": "the ", "max_tokens": 10_000, "n": 10 }));
    assert!(status == 400 && sentence.contains("4 tokens and 10000 more take"), "{status} {sentence}");
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
    refused(&[model(), "--host", "0"], &["--host '0': expected an address of this machine or a name of one; it is not a complete address"]);
    refused(&[model(), "--host", "no such name"], &["--host 'no such name': expected an address of this machine or a name of one"]);
    refused(&[model(), "--threads", "0"], &["--threads must be between"]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    refused(&[model(), "--port", &port], &["could not listen on 127.0.0.1", "choose another port"]);
}
