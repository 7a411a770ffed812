//! The fields of a request, each taken by its name; any that are left were not understood, and are refused rather than silently ignored.
//!
//! A field is kept as the text that came, and read as what it should be when it is taken: as a tree of any values, which a sender shapes, it could take
//! a few hundred times its bytes of memory.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{DeserializeOwned, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::error::ApiError;
use super::unsupported::Unsupported;

type Result<T> = std::result::Result<T, ApiError>;

/// Most bytes of a field that a refusal repeats.
const SHOWN: usize = 60;

/// A JSON object whose fields are taken one after the other.
pub(crate) struct Fields {
    left: BTreeMap<String, Box<RawValue>>,
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
    TextOr<String> => "a text or a list of texts",
    Box<RawValue> => "any value",
    StreamOptions => "an object with nothing but include_usage, which is true or false",
}

impl Fields {
    /// The fields of the object `json`.
    pub fn of(json: &[u8]) -> Result<Self> {
        let json = without_mark(json);
        let no_json = |error: serde_json::Error| ApiError::wrong(format!("the request is no JSON: {error}"));
        let twice = twice_in(json).map_err(no_json)?;
        if !json.trim_ascii_start().starts_with(b"{") {
            return Err(ApiError::wrong("the request must be a JSON object, such as {\"prompt\": \"Once\"}"));
        }
        match twice {
            Some(name) => Err(ApiError::field(&name, "is there twice; give it once")),
            None => Ok(Self { left: serde_json::from_slice(json).map_err(no_json)?, known: Vec::new() }),
        }
    }

    /// Whether the field `name` exists and may hold more than a single cell of a table: a text, which may be a table, or several values.
    pub fn has_table(&self, name: &str) -> bool {
        self.left.get(name).is_some_and(|json| json.get().starts_with(['"', '[', '{']))
    }

    /// The field `name`; `null` counts as no field.
    pub fn take<T: Field>(&mut self, name: &'static str) -> Result<Option<T>> {
        self.known.push(name);
        let Some(json) = self.left.remove(name).filter(|json| json.get() != "null") else { return Ok(None) };
        let expected = |_: serde_json::Error| ApiError::field(name, format!("expected {}, found {}", T::EXPECTED, shown(json.get())));
        serde_json::from_str(json.get()).map(Some).map_err(expected)
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
            if let Some(json) = self.left.remove(field.name)
                && field.asks(json.get())
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

/// The first field that an object in `json` has twice, where a map would silently keep the last one. Nothing else is kept of the values.
fn twice_in(json: &[u8]) -> serde_json::Result<Option<String>> {
    let (mut json, mut twice) = (serde_json::Deserializer::from_slice(json), None);
    Once { twice: &mut twice }.deserialize(&mut json)?;
    json.end()?;
    Ok(twice)
}

/// Reads any value; `twice` receives the first field that an object in it has twice.
struct Once<'a> {
    twice: &'a mut Option<String>,
}

impl<'de> DeserializeSeed<'de> for Once<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

macro_rules! plain {
    ($($visit:ident: $kind:ty),*) => {
        $(fn $visit<E>(self, _: $kind) -> std::result::Result<(), E> {
            Ok(())
        })*
    };
}

impl<'de> Visitor<'de> for Once<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    plain! { visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str }

    fn visit_unit<E>(self) -> std::result::Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> std::result::Result<(), A::Error> {
        while seq.next_element_seed(Once { twice: &mut *self.twice })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<(), A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = map.next_key::<String>()? {
            let mut inner = None;
            map.next_value_seed(Once { twice: &mut inner })?;
            if let Some(inner) = inner {
                self.twice.get_or_insert_with(|| format!("{name}.{inner}"));
            }
            if let Some(name) = names.replace(name) {
                self.twice.get_or_insert(name);
            }
        }
        Ok(())
    }
}

/// The value `json` without the spaces between its parts, or only its beginning if it is long.
fn shown(json: &str) -> String {
    let (mut beginning, mut in_text, mut is_escaped) = (String::new(), false, false);
    for c in json.chars() {
        if in_text || !c.is_ascii_whitespace() {
            if beginning.len() + c.len_utf8() > SHOWN {
                return beginning + "…";
            }
            beginning.push(c);
        }
        in_text ^= c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
    }
    beginning
}

/// A text, or a list whose items are read as what they should be, not as any value first.
pub(crate) enum TextOr<T> {
    Text(String),
    List(Vec<T>),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for TextOr<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Either<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
            type Value = TextOr<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list")
            }

            fn visit_str<E>(self, text: &str) -> std::result::Result<TextOr<T>, E> {
                Ok(TextOr::Text(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> std::result::Result<TextOr<T>, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(TextOr::List)
            }
        }
        deserializer.deserialize_any(Either(PhantomData))
    }
}

/// What is read from an object alone: serde reads a struct from a list of its fields, too.
pub(crate) struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Alone<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Alone<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> std::result::Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }
        deserializer.deserialize_map(Alone(PhantomData))
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
        let kept = Fields::of(b"{\"a\": {\"c\": [null, true, -1, 18446744073709551615, 1.5, \"b\", {}]} }").unwrap().left;
        assert_eq!(kept["a"].get(), "{\"c\": [null, true, -1, 18446744073709551615, 1.5, \"b\", {}]}");
        for other in ["[1, {}]", "1", "-1.5", "\"a\"", "null", "true"] {
            assert!(of(other).unwrap_err()["message"].as_str().unwrap().contains("must be a JSON object"), "{other}");
        }
        for broken in ["{\"a\": 1", "{\"a\": 1} 2", "{\"a\": 1e400}", "{\"a\": \"\\ud800\"}", "{\"a\": [1,]}"] {
            assert!(of(broken).unwrap_err()["message"].as_str().unwrap().contains("is no JSON"), "{broken}");
        }
    }

    #[test]
    fn a_value_of_another_kind_is_told_beside_what_is_expected() {
        assert_eq!(refusal::<usize>("-1"), "x: expected a whole number of at least 0, found -1");
        assert_eq!(refusal::<usize>("1.5"), "x: expected a whole number of at least 0, found 1.5");
        assert_eq!(refusal::<f64>("\"hot\""), "x: expected a number, found \"hot\"");
        assert!(refusal::<i64>("18446744073709551615").starts_with("x: expected a whole number from -9223372036854775808 to 92"));
        assert_eq!(refusal::<bool>("1"), "x: expected true or false, found 1");
        assert_eq!(refusal::<TextOr<String>>("{\"a\": [1, 2]}"), "x: expected a text or a list of texts, found {\"a\":[1,2]}");
        assert_eq!(refusal::<bool>(r#"[ "a \" b", "\\" , 1 ]"#), r#"x: expected true or false, found ["a \" b","\\",1]"#);
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
