//! What a server answers for texts: continued responses, wrong fields, clients that read nothing.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use common::Running;

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
