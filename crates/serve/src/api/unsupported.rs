//! Fields of OpenAI's API that have no meaning here, and the values by which they ask for nothing: clients send these unprompted.

use serde_json::Value;

/// Most bytes of a value that may ask for nothing. A longer one is not even read: as a tree of values it could take far more memory.
const MAX_NEUTRAL: usize = 4096;

/// A field that is not supported.
pub(crate) struct Unsupported {
    pub name: &'static str,
    neutral: Neutral,
    /// What to do instead, if it asks for something.
    pub instead: &'static str,
}

/// The values by which a field asks for nothing.
#[derive(Clone, Copy)]
enum Neutral {
    /// Empty ones: null, false, 0, an empty text, list or object.
    Empty,
    /// Empty ones, and those in this JSON list.
    Or(&'static str),
    /// All: the field is for the provider's records and changes no answer.
    All,
}

use Neutral::{All, Empty, Or};

const fn field(name: &'static str, neutral: Neutral, instead: &'static str) -> Unsupported {
    Unsupported { name, neutral, instead }
}

const PENALTY: &str = "repetition_penalty weakens the latest tokens";

/// Fields of any request for text.
pub(crate) const OF_TEXTS: [Unsupported; 8] = [
    field("frequency_penalty", Empty, PENALTY),
    field("presence_penalty", Empty, PENALTY),
    field("logit_bias", Empty, "leave it out"),
    field("service_tier", Or(r#"["auto", "default"]"#), "all requests are served alike"),
    field("user", All, ""),
    field("safety_identifier", All, ""),
    field("prompt_cache_key", All, ""),
    field("prompt_cache_retention", All, ""),
];

/// Fields of completions.
pub(crate) const OF_COMPLETIONS: [Unsupported; 1] = [field("suffix", Empty, "a recurrent model reads from left to right")];

/// Fields of responses.
pub(crate) const OF_RESPONSES: [Unsupported; 15] = [
    field("background", Empty, "the answer comes at once, or as a stream"),
    field("context_management", Empty, "the whole text is read"),
    field("conversation", Empty, "name previous_response_id"),
    field("include", Empty, "the answer holds all that there is"),
    field("instructions", Empty, "the model continues text; write them at its beginning"),
    field("max_tool_calls", All, ""),
    field("parallel_tool_calls", Or("[true]"), "the model calls no tools"),
    field("prompt", Empty, "there are no templates of prompts; write the text as input"),
    field("reasoning", Or(r#"[{"effort": "none"}]"#), "the model continues text"),
    field("stream_options", Or(r#"[{"include_obfuscation": false}, {"include_obfuscation": true}]"#), "leave it out"),
    field(
        "text",
        Or(r#"[{"format": {"type": "text"}}, {"verbosity": "medium"}, {"format": {"type": "text"}, "verbosity": "medium"}]"#),
        "the model continues text",
    ),
    field("tool_choice", Or(r#"["auto", "none"]"#), "the model calls no tools"),
    field("tools", Empty, "the model continues text"),
    field("top_logprobs", Empty, "/v1/completions tells them (logprobs)"),
    field("truncation", Or(r#"["disabled"]"#), "the whole text is read; send less of it"),
];

impl Unsupported {
    /// Whether the value `json` asks for something.
    pub fn asks(&self, json: &str) -> bool {
        let others = match self.neutral {
            Neutral::All => return false,
            Neutral::Empty => "[]",
            Neutral::Or(list) => list,
        };
        let value = Some(json).filter(|json| json.len() <= MAX_NEUTRAL).and_then(|json| serde_json::from_str(json).ok());
        value.is_none_or(|value: Value| {
            let value = without_nulls(&value);
            !is_empty(&value) && !serde_json::from_str::<Vec<Value>>(others).expect("a constant").contains(&value)
        })
    }
}

/// The value without the fields of objects in it that are null.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let there = fields.iter().filter(|(_, value)| !value.is_null());
            there.map(|(name, value)| (name.clone(), without_nulls(value))).collect()
        }
        value => value.clone(),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn all() -> impl Iterator<Item = &'static Unsupported> {
        OF_TEXTS.iter().chain(&OF_COMPLETIONS).chain(&OF_RESPONSES)
    }

    fn asks(name: &str, value: Value) -> bool {
        all().find(|field| field.name == name).unwrap().asks(&value.to_string())
    }

    #[test]
    fn every_field_asks_for_nothing_where_it_is_null_and_lists_values_that_are_read() {
        for field in all() {
            assert!(!field.asks("null"), "{}", field.name);
            assert!(matches!(field.neutral, All) != field.asks("\"something\""), "{}", field.name);
            // Of what is long nothing is read.
            assert!(matches!(field.neutral, All) != field.asks(&"[".repeat(1 << 20)), "{}", field.name);
            assert_eq!(matches!(field.neutral, All), field.instead.is_empty(), "{}", field.name);
        }
    }

    #[test]
    fn what_clients_send_unasked_asks_for_nothing() {
        for (name, value) in [
            ("include", json!([])),
            ("truncation", json!("disabled")),
            ("tool_choice", json!("none")),
            ("tool_choice", json!("auto")),
            ("parallel_tool_calls", json!(false)),
            ("parallel_tool_calls", json!(true)),
            ("text", json!({ "format": { "type": "text" } })),
            ("text", json!({ "format": { "type": "text" }, "verbosity": null })),
            ("top_logprobs", json!(0)),
            ("reasoning", json!({ "effort": null, "summary": null })),
            ("stream_options", json!({ "include_obfuscation": false })),
            ("service_tier", json!("auto")),
            ("user", json!("somebody")),
            ("frequency_penalty", json!(0.0)),
        ] {
            assert!(!asks(name, value.clone()), "{name}: {value}");
        }
        for (name, value) in [
            ("include", json!(["message.output_text.logprobs"])),
            ("truncation", json!("auto")),
            ("tool_choice", json!("required")),
            ("text", json!({ "format": { "type": "json_object" } })),
            ("top_logprobs", json!(5)),
            ("reasoning", json!({ "effort": "high" })),
            ("stream_options", json!({ "include_usage": true })),
            ("service_tier", json!("priority")),
            ("frequency_penalty", json!(0.1)),
        ] {
            assert!(asks(name, value.clone()), "{name}: {value}");
        }
    }
}
