//! What a client gets instead of an answer: a status, and a sentence in the form of OpenAI's errors.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::engine::Refused;

/// Seconds after which a busy server may be asked again.
const RETRY_AFTER: &str = "1";

/// Why a request has no answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ApiError {
    status: StatusCode,
    code: Option<&'static str>,
    /// The field at fault.
    param: Option<String>,
    sentence: String,
}

impl ApiError {
    pub fn new(status: StatusCode, sentence: impl Into<String>) -> Self {
        Self { status, code: None, param: None, sentence: sentence.into() }
    }

    /// For a request that is wrong.
    pub fn wrong(sentence: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, sentence)
    }

    /// For a request whose field `name` is wrong.
    pub fn field(name: &str, sentence: impl AsRef<str>) -> Self {
        Self { param: Some(name.to_owned()), ..Self::wrong(format!("{name}: {}", sentence.as_ref())) }
    }

    /// For a computation that failed.
    pub fn failed(sentence: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, sentence)
    }

    /// For a request that comes when the most `others` allowed are waiting.
    pub fn busy(others: &str) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, format!("too many {others} wait for this model; ask again in a second"))
    }

    /// For a model whose thread has ended.
    pub fn gone() -> Self {
        Self::failed("the model stopped before the text was complete; the server ends, or has to be started anew")
    }

    /// The same, blaming the field `name`.
    pub fn of(self, name: &str) -> Self {
        Self { sentence: format!("{name}: {}", self.sentence), ..self }.param(name)
    }

    /// The same for the field `name`, which the sentence already mentions.
    pub fn param(self, name: &str) -> Self {
        Self { param: Some(name.to_owned()), ..self }
    }

    /// The same, with the error of another reading of the request.
    pub fn or(self, other: &str) -> Self {
        Self { sentence: format!("{} ({other})", self.sentence), ..self }
    }

    /// The same, with a `hint`.
    pub fn with_hint(self, hint: &str) -> Self {
        Self { sentence: format!("{}; {hint}", self.sentence), ..self }
    }

    /// Whether the server is at fault, and not the request.
    pub fn is_failure(&self) -> bool {
        self.status.is_server_error()
    }

    pub fn code(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }

    pub fn body(&self) -> Value {
        let kind = match self.status {
            StatusCode::UNAUTHORIZED => "authentication_error",
            StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
            status if status.is_server_error() => "server_error",
            _ => "invalid_request_error",
        };
        json!({ "error": { "message": self.sentence, "type": kind, "param": self.param, "code": self.code } })
    }
}

impl From<Refused> for ApiError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Busy => Self::busy("prompts"),
            Refused::Gone => Self::gone(),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, [(header::CONTENT_TYPE, "application/json")], self.body().to_string()).into_response();
        let also = match self.status {
            StatusCode::TOO_MANY_REQUESTS => Some((header::RETRY_AFTER, RETRY_AFTER)),
            StatusCode::UNAUTHORIZED => Some((header::WWW_AUTHENTICATE, "Bearer")),
            _ => None,
        };
        if let Some((name, value)) = also {
            response.headers_mut().insert(name, value.parse().expect("a constant"));
        }
        response
    }
}
