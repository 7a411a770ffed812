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
fn prompts_are_texts_or_tokens_and_counted_before_they_are_read() {
    let server = Running::of_text("abcdefgh");
    let asked = |prompt: &Value| server.asked("/v1/completions", &json!({ "prompt": prompt, "max_tokens": 0, "echo": true }));
    for (prompt, expected) in [
        (json!("abc"), vec!["abc"]),
        (json!([0, 1, 2]), vec!["abc"]),
        (json!(["abc", "d"]), vec!["abc", "d"]),
        (json!([[0, 1], [], "d"]), vec!["ab", "", "d"]),
        (json!([]), vec![""]),
        (json!(""), vec![""]),
        (Value::Null, vec![""]),
    ] {
        let (status, told) = asked(&prompt);
        let texts: Vec<&str> = told["choices"].as_array().unwrap().iter().map(|choice| choice["text"].as_str().unwrap()).collect();
        assert_eq!((status, texts), (200, expected), "{prompt}");
    }
    let kinds = "prompt: expected a text, a list of texts, a list of tokens, or a list of such lists";
    // A list of tokens may be long, whatever else is wrong with it.
    for wrong in [json!(5), json!({ "a": "b" }), json!(["a", 5]), json!([0, 1, 2, 3, 4, "a"]), json!([[0, [1]]]), json!([1.0]), json!([-1])]
    {
        let (status, told) = asked(&wrong);
        assert_eq!((status, &told["error"]["message"], &told["error"]["param"]), (400, &kinds.into(), &"prompt".into()), "{wrong}");
    }
    let (status, told) = asked(&json!(["a", "z", "a", "a", "a"]));
    let many = "prompt: expected at most 4 prompts, found 5; send them in several requests";
    assert_eq!((status, &told["error"]["message"]), (400, &many.into()));
    server.end();
}

#[test]
fn the_input_of_a_response_is_a_text_or_messages_of_a_user() {
    let server = Running::of_text("abcdefgh");
    let asked = |input: &Value| server.asked("/v1/responses", &json!({ "input": input, "max_output_tokens": 8, "temperature": 0 }));
    let text = |told: &Value| told["output"][0]["content"][0]["text"].as_str().unwrap().to_owned();
    let expected = text(&asked(&json!("abc")).1);
    let parts = json!([{ "type": "input_text", "text": "b" }, { "text": "c", "type": "input_text", "annotations": [{}] }]);
    for input in [
        json!([{ "role": "user", "content": "abc" }]),
        json!([{ "type": "message", "role": "user", "content": "a" }, { "content": parts, "id": null, "role": "user" }]),
    ] {
        let (status, told) = asked(&input);
        assert_eq!((status, text(&told), &told["usage"]["input_tokens"]), (200, expected.clone(), &json!(3)), "{input}");
    }
    let message = |message: Value| json!([message]);
    for input in [
        json!(5),
        json!({ "role": "user", "content": "a" }),
        json!(["a"]),
        json!([["user", "a"]]),
        message(json!({ "role": "system", "content": "a" })),
        message(json!({ "content": "a" })),
        message(json!({ "role": "user", "content": null })),
        message(json!({ "role": "user", "content": ["a"] })),
        message(json!({ "role": "user", "content": [{ "type": "input_image", "text": "a" }] })),
        message(json!({ "role": "user", "content": [["input_text", "a"]] })),
    ] {
        let (status, told) = asked(&input);
        let sentence = "input: expected a text, or messages of a user with texts; the model knows no roles";
        assert_eq!((status, &told["error"]["message"]), (400, &sentence.into()), "{input}");
    }
    server.end();
}

#[test]
fn metadata_have_the_limits_of_openai_s_api() {
    let server = Running::of_text("abcdefgh");
    let asked = |metadata: &Value| server.asked("/v1/responses", &json!({ "input": "a", "max_output_tokens": 1, "metadata": metadata }));
    let pairs = |n: usize| Value::Object((0..n).map(|i| (format!("{i:é>64}"), "é".repeat(512).into())).collect());
    for (metadata, told) in [(pairs(16), pairs(16)), (json!({ "b": "", "a": "x" }), json!({ "a": "x", "b": "" })), (Value::Null, json!({}))]
    {
        let (status, answer) = asked(&metadata);
        assert_eq!((status, &answer["metadata"]), (200, &told));
    }
    for (metadata, found) in [
        (pairs(17), "{\"éé"),
        (json!({ ("é".repeat(65)): "x" }), "{\"éé"),
        (json!({ "a": "é".repeat(513) }), "{\"a\":\"éé"),
        (json!({ "a": 1 }), "{\"a\":1}"),
        (json!({ "a": null }), "{\"a\":null}"),
        (json!({ "a": [{ "": 0 }] }), "{\"a\":[{\"\":0}]}"),
        (json!(["a"]), "[\"a\"]"),
        (json!("a"), "\"a\""),
    ] {
        let (status, answer) = asked(&metadata);
        let sentence = "metadata: expected an object of at most 16 texts of at most 512 characters each, under names of at most 64, found ";
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(status == 400 && message.starts_with(&format!("{sentence}{found}")), "{message}");
        assert_eq!((&answer["error"]["param"], &answer["error"]["type"]), (&"metadata".into(), &"invalid_request_error".into()));
    }
    server.end();
}

#[test]
fn tokens_come_with_their_number_and_become_the_text() {
    let server = Running::of_text("abcdefgh");
    let json = "Content-Type: application/json";
    let answer = server.answer_of("/tokenize", r#"{"prompt": "cab"}"#, json);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\n{\"count\":3,\"tokens\":[2,0,1]}"), "{answer}");
    let answer = server.answer_of("/detokenize", r#"{"tokens": [2, 0, 1]}"#, json);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\n{\"prompt\":\"cab\"}"), "{answer}");
    for (path, body, sentence) in [
        ("/tokenize", json!({ "prompt": "cabz" }), "prompt: "),
        ("/tokenize", json!({}), "prompt: expected a text"),
        ("/detokenize", json!({ "tokens": [9] }), "tokens: "),
        ("/detokenize", json!({ "tokens": "a" }), "tokens: expected a list of tokens"),
        ("/detokenize", json!({ "tokens": [0], "model": "other" }), "there is no model 'other' of text"),
    ] {
        let (status, told) = server.asked(path, &body);
        assert!(status >= 400 && told["error"]["message"].as_str().unwrap().starts_with(sentence), "{path} {body}: {told}");
    }
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
