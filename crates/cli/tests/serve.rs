//! `minrnn serve`: texts that the real server continues, asked for over HTTP.

#![cfg(unix)]

mod common;

use std::io::{BufRead, BufReader, Read};

use common::server::{Server, data_of, model, text_of};
use common::{Finished, minrnn, signal};
use serde_json::{Value, json};

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
    // Without a seed each request gets one of its own, and says which.
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
    // At least half of what two texts share is known.
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
    // More text of the user's follows.
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
    // What is not stored cannot be continued.
    let mut body = asked("the ", &Value::Null, 5);
    body["store"] = false.into();
    let unstored = server.asked("/v1/responses", &body);
    assert_eq!(server.refused("/v1/responses", &asked("", &unstored["id"], 5)).0, 400);
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
    // A request that takes too long is not waited for.
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
