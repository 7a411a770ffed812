//! The fields of a request, each taken by its name; any that are left were not understood, and are refused rather than silently ignored.

use std::fmt;
use std::io::{self, Write};

use serde::de::{DeserializeOwned, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::error::ApiError;
use super::unsupported::Unsupported;

type Result<T> = std::result::Result<T, ApiError>;

/// Most bytes of a field that a refusal repeats.
const SHOWN: usize = 60;

/// A JSON object whose fields are taken one after the other.
pub(crate) struct Fields {
    left: Map<String, Value>,
    known: Vec<&'static str>,
}

/// What the value of a field may be.
pub(crate) trait Field: DeserializeOwned {
    /// What is expected, as an error says it.
    const EXPECTED: &'static str;
}

macro_rules! expected {
    ($($field:ty => $expected:literal),* $(,)?) => {
        $(impl Field for $field {
            const EXPECTED: &'static str = $expected;
        })*
    };
}

expected! {
    String => "a text",
    bool => "true or false",
    f64 => "a number",
    usize => "a whole number of at least 0",
    i64 => "a whole number from -9223372036854775808 to 9223372036854775807",
    Vec<u32> => "a list of tokens, which are whole numbers of at least 0",
    Texts => "a text or a list of texts",
    Map<String, Value> => "an object",
    Value => "any value",
    StreamOptions => "an object with nothing but include_usage, which is true or false",
}

impl Fields {
    /// The fields of the object `json`.
    pub fn of(json: &[u8]) -> Result<Self> {
        let read = serde_json::from_slice(without_mark(json));
        match read.map_err(|error| ApiError::wrong(format!("the request is no JSON: {error}")))? {
            Read::Object { twice: Some(name), .. } => Err(ApiError::field(&name, "is there twice; give it once")),
            Read::Object { fields, twice: None } => Ok(Self { left: fields, known: Vec::new() }),
            Read::Other => Err(ApiError::wrong("the request must be a JSON object, such as {\"prompt\": \"Once\"}")),
        }
    }

    /// Whether the field `name` exists and may hold more than a single cell of a table: a text, which may be a table, or several values.
    pub fn has_table(&self, name: &str) -> bool {
        matches!(self.left.get(name), Some(Value::String(_) | Value::Array(_) | Value::Object(_)))
    }

    /// The field `name`; `null` counts as no field.
    pub fn take<T: Field>(&mut self, name: &'static str) -> Result<Option<T>> {
        self.known.push(name);
        match self.left.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                let shown = shown(&value);
                let read = serde_json::from_value(value).map(Some);
                read.map_err(|_| ApiError::field(name, format!("expected {}, found {shown}", T::EXPECTED)))
            }
        }
    }

    /// A number that must be one of `range`.
    pub fn number(&mut self, name: &'static str, range: std::ops::RangeInclusive<usize>) -> Result<Option<usize>> {
        let found = self.take::<usize>(name)?;
        match found.filter(|found| !range.contains(found)) {
            None => Ok(found),
            Some(found) => Err(ApiError::field(name, format!("must be between {} and {}, found {found}", range.start(), range.end()))),
        }
    }

    /// Takes `fields`, which clients know and the server does not support; refuses those that ask for something.
    pub fn expect_unused(&mut self, fields: &[Unsupported]) -> Result<()> {
        for field in fields {
            if let Some(value) = self.left.remove(field.name)
                && field.asks(&value)
            {
                return Err(ApiError::field(field.name, format!("is not supported; {}", field.instead)));
            }
        }
        Ok(())
    }

    /// Refuses fields that were not taken.
    pub fn end(self) -> Result<()> {
        match self.left.keys().next() {
            None => Ok(()),
            Some(name) => Err(ApiError::field(name, format!("there is no such field; expected one of {}", self.known.join(", ")))),
        }
    }
}

/// `text` without the byte order mark that some programs write first.
pub(crate) fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix("\u{FEFF}".as_bytes()).unwrap_or(text)
}

/// A request's JSON as read.
enum Read {
    /// An object, and a field that it, or an object inside, has twice; a map would silently keep the last one.
    Object { fields: Map<String, Value>, twice: Option<String> },
    /// Something else.
    Other,
}

impl<'de> Deserialize<'de> for Read {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Any;
        macro_rules! others {
            ($($visit:ident: $kind:ty),*) => {
                $(fn $visit<E: serde::de::Error>(self, _: $kind) -> std::result::Result<Read, E> {
                    Ok(Read::Other)
                })*
            };
        }
        impl<'de> Visitor<'de> for Any {
            type Value = Read;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }

            others! { visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str }

            fn visit_unit<E>(self) -> std::result::Result<Read, E> {
                Ok(Read::Other)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> std::result::Result<Read, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Read::Other)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Read, A::Error> {
                let (mut fields, mut twice) = (Map::new(), None);
                while let Some(name) = map.next_key::<String>()? {
                    let value = map.next_value_seed(Nested { twice: &mut twice, name: &name })?;
                    insert(&mut fields, name, value, &mut twice);
                }
                Ok(Read::Object { fields, twice })
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// Adds a field to an object; `twice` receives the first field that was there already.
fn insert(fields: &mut Map<String, Value>, name: String, value: Value, twice: &mut Option<String>) {
    if fields.contains_key(&name) {
        twice.get_or_insert_with(|| name.clone());
    }
    fields.insert(name, value);
}

/// Reads the value of the field `name`; `twice` receives the first field that an object inside it has twice.
struct Nested<'a> {
    twice: &'a mut Option<String>,
    name: &'a str,
}

impl<'de> DeserializeSeed<'de> for Nested<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<Value, D::Error> {
        let mut twice = None;
        let value = deserializer.deserialize_any(Once { twice: &mut twice })?;
        if let Some(inner) = twice {
            self.twice.get_or_insert_with(|| format!("{}.{inner}", self.name));
        }
        Ok(value)
    }
}

/// Reads any value; `twice` receives the first field that an object in it has twice.
struct Once<'a> {
    twice: &'a mut Option<String>,
}

impl<'de> DeserializeSeed<'de> for Once<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Once<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> std::result::Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> std::result::Result<Value, E> {
        Ok(flag.into())
    }

    fn visit_i64<E>(self, number: i64) -> std::result::Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> std::result::Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E>(self, number: f64) -> std::result::Result<Value, E> {
        Ok(number.into())
    }

    fn visit_str<E>(self, text: &str) -> std::result::Result<Value, E> {
        Ok(text.into())
    }

    fn visit_string<E>(self, text: String) -> std::result::Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> std::result::Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(Once { twice: &mut *self.twice })? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            let value = map.next_value_seed(Nested { twice: &mut *self.twice, name: &name })?;
            insert(&mut fields, name, value, self.twice);
        }
        Ok(Value::Object(fields))
    }
}

/// A value as JSON, or only its beginning if it is long.
fn shown(value: &Value) -> String {
    let mut beginning = Beginning(Vec::new());
    let is_whole = serde_json::to_writer(&mut beginning, value).is_ok();
    let text = String::from_utf8_lossy(&beginning.0);
    // The replacement of a character cut at the end is not part of the text.
    if is_whole { text.into_owned() } else { text.trim_end_matches('\u{FFFD}').to_owned() + "…" }
}

/// Takes [`SHOWN`] bytes.
struct Beginning(Vec<u8>);

impl Write for Beginning {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = bytes.len().min(SHOWN - self.0.len());
        self.0.extend(&bytes[..n]);
        // Writing 0 of several bytes ends the serialisation.
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One text or several, as `stop` takes them.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Texts {
    One(String),
    Many(Vec<String>),
}

impl Texts {
    pub fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(text) => vec![text],
            Self::Many(texts) => texts,
        }
    }
}

/// What a stream sends beside the text.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct StreamOptions {
    pub include_usage: Option<bool>,
    /// Padding against listeners, which clients may ask for.
    #[serde(rename = "include_obfuscation")]
    _include_obfuscation: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal<T: Field>(json: &str) -> String {
        let mut fields = Fields::of(format!("{{\"x\": {json}}}").as_bytes()).unwrap();
        let refused = fields.take::<T>("x").err().unwrap().body();
        assert_eq!(refused["error"]["param"], "x");
        refused["error"]["message"].as_str().unwrap().to_owned()
    }

    #[test]
    fn a_field_that_is_there_twice_is_refused_and_a_byte_order_mark_is_not() {
        let of = |json: &str| Fields::of(json.as_bytes()).map(|fields| fields.left.len()).map_err(|error| error.body()["error"].clone());
        assert_eq!(of("\u{FEFF}{\"prompt\": \"the\", \"n\": 1}"), Ok(2));
        let refused = of("{\"prompt\": \"the\", \"n\": 1, \"prompt\": \"quick\"}").unwrap_err();
        assert_eq!((&refused["param"], &refused["message"]), (&"prompt".into(), &"prompt: is there twice; give it once".into()));
        for (nested, name) in [
            ("{\"stream_options\": {\"include_usage\": false, \"include_usage\": true}}", "stream_options.include_usage"),
            ("{\"text\": {\"format\": {\"type\": \"text\", \"type\": \"json\"}}}", "text.format.type"),
            ("{\"input\": [{\"role\": \"user\"}, {\"role\": \"user\", \"role\": \"system\"}]}", "input.role"),
            ("{\"a\": {\"b\": 1, \"b\": 2}, \"a\": 1}", "a.b"),
        ] {
            let refused = of(nested).unwrap_err();
            assert_eq!((&refused["param"], &refused["message"]), (&name.into(), &format!("{name}: is there twice; give it once").into()));
        }
        // Different objects may have the same fields.
        assert_eq!(of("{\"a\": {\"b\": 1}, \"c\": [{\"b\": 1}, {\"b\": [null, true, -1, 1.5, \"b\"]}]}"), Ok(2));
        let kept = Fields::of(b"{\"a\": {\"c\": [null, true, -1, 18446744073709551615, 1.5, \"b\", {}]}}").unwrap().left;
        assert_eq!(Value::from(kept), serde_json::json!({ "a": { "c": [null, true, -1, u64::MAX, 1.5, "b", {}] } }));
        for other in ["[1, {}]", "1", "-1.5", "\"a\"", "null", "true"] {
            assert!(of(other).unwrap_err()["message"].as_str().unwrap().contains("must be a JSON object"), "{other}");
        }
        assert!(of("{\"a\": 1").unwrap_err()["message"].as_str().unwrap().contains("is no JSON"));
    }

    #[test]
    fn a_value_of_another_kind_is_told_beside_what_is_expected() {
        assert_eq!(refusal::<usize>("-1"), "x: expected a whole number of at least 0, found -1");
        assert_eq!(refusal::<usize>("1.5"), "x: expected a whole number of at least 0, found 1.5");
        assert_eq!(refusal::<f64>("\"hot\""), "x: expected a number, found \"hot\"");
        assert!(refusal::<i64>("18446744073709551615").starts_with("x: expected a whole number from -9223372036854775808 to 92"));
        assert_eq!(refusal::<bool>("1"), "x: expected true or false, found 1");
        assert_eq!(refusal::<Texts>("{\"a\": [1, 2]}"), "x: expected a text or a list of texts, found {\"a\":[1,2]}");
        assert_eq!(
            refusal::<StreamOptions>("{\"usage\": true}"),
            "x: expected an object with nothing but include_usage, which is true or false, found {\"usage\":true}"
        );
        // A long value is cut after a whole character.
        assert_eq!(
            refusal::<bool>(&format!("\"{}\"", "é".repeat(1000))),
            format!("x: expected true or false, found \"{}…", "é".repeat(29))
        );
    }

    #[test]
    fn null_is_as_good_as_no_field() {
        let mut fields = Fields::of(b"{\"x\": null}").unwrap();
        assert_eq!(fields.take::<usize>("x").unwrap(), None);
        fields.end().unwrap();
    }
}
