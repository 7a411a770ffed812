//! The fields of a request, each taken by its name; one that is left was not understood, and would else be ignored without a word.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::error::ApiError;

type Result<T> = std::result::Result<T, ApiError>;

/// A JSON object whose fields are taken one after the other.
pub(crate) struct Fields {
    left: Map<String, Value>,
    known: Vec<&'static str>,
}

impl Fields {
    /// Those of the object that `json` is.
    pub fn of(json: &[u8]) -> Result<Self> {
        let value: Value = serde_json::from_slice(json).map_err(|error| ApiError::wrong(format!("the request is no JSON: {error}")))?;
        match value {
            Value::Object(left) => Ok(Self { left, known: Vec::new() }),
            _ => Err(ApiError::wrong("the request must be a JSON object, such as {\"prompt\": \"Once\"}")),
        }
    }

    /// Whether the field `name` is there and a text.
    pub fn has_text(&self, name: &str) -> bool {
        matches!(self.left.get(name), Some(Value::String(_)))
    }

    /// The field `name`; `null` is as good as no field.
    pub fn take<T: DeserializeOwned>(&mut self, name: &'static str) -> Result<Option<T>> {
        self.known.push(name);
        match self.left.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => serde_json::from_value(value).map(Some).map_err(|error| ApiError::field(name, error.to_string())),
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

    /// A field that clients send and that changes nothing here, such as the name of a user.
    pub fn ignore(&mut self, name: &str) {
        self.left.remove(name);
    }

    /// A field that is not supported, and refused unless it asks for nothing.
    pub fn expect_unused(&mut self, name: &str, instead: &str) -> Result<()> {
        let asks = match self.left.remove(name) {
            None | Some(Value::Null | Value::Bool(false)) => false,
            Some(Value::Number(number)) => number.as_f64() != Some(0.0),
            Some(Value::String(text)) => !text.is_empty(),
            Some(Value::Array(list)) => !list.is_empty(),
            Some(Value::Object(map)) => !map.is_empty(),
            Some(Value::Bool(true)) => true,
        };
        if asks { Err(ApiError::field(name, format!("is not supported; {instead}"))) } else { Ok(()) }
    }

    /// Refuses what was not taken.
    pub fn end(self) -> Result<()> {
        match self.left.keys().next() {
            None => Ok(()),
            Some(name) => Err(ApiError::field(name, format!("there is no such field; expected one of {}", self.known.join(", ")))),
        }
    }
}

/// One text or several, as `stop` takes them.
#[derive(serde::Deserialize)]
#[serde(untagged, expecting = "expected a string or a list of strings")]
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
