//! `/v1/predict`: a table, and what is predicted for its sequences.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use axum::extract::{Query, Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::error::ApiError;
use super::{App, expect_kind};
use crate::engine::Refused;

const JSON: &str = "application/json";
/// Tables are told apart by what they hold; these are none that a page of another site could send unasked.
const KINDS: [&str; 7] = [
    "text/csv",
    JSON,
    "application/x-ndjson",
    "application/vnd.apache.parquet",
    "application/vnd.apache.arrow.file",
    "application/vnd.apache.arrow.stream",
    "application/octet-stream",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    model: Option<String>,
}

/// A table and its rows to come, as texts in one object of JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tables {
    data: String,
    future: Option<String>,
}

/// The table in `body` and, where it holds them too, the rows to come. A table of lines of JSON has rows of other fields, or more of them.
fn tables(body: Vec<u8>, is_json: bool) -> (Vec<u8>, Option<Vec<u8>>) {
    match is_json.then(|| serde_json::from_slice(&body)) {
        Some(Ok(Tables { data, future })) => (data.into_bytes(), future.map(String::into_bytes)),
        _ => (body, None),
    }
}

/// Raises a flag when it goes, as it does with a request whose client left.
struct Raised(Arc<AtomicBool>);

impl Drop for Raised {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Counts itself while it is there.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

pub(super) async fn predict(
    State(app): State<Arc<App>>,
    asked: Result<Query<Asked>, axum::extract::rejection::QueryRejection>,
    request: Request,
) -> Result<Response, ApiError> {
    let Query(Asked { model }) =
        asked.map_err(|refused| ApiError::wrong(format!("expected /v1/predict?model=NAME: {}", refused.body_text())))?;
    expect_kind(request.headers(), &KINDS)?;
    let is_json = expect_kind(request.headers(), &[JSON]).is_ok();
    let accepted = request.headers().get(header::ACCEPT).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let json = accepted.contains(JSON);
    let table = app.table(model.as_deref())?;
    let body = app.body(request).await?;
    if table.waiting.fetch_add(1, Relaxed) >= app.settings.queue {
        table.waiting.fetch_sub(1, Relaxed);
        return Err(Refused::Busy.into());
    }
    let counted = Counted(table.waiting.clone());
    let turn = table.turn.clone().acquire_owned().await.map_err(|_| ApiError::gone())?;
    let (stop, name) = (Arc::new(AtomicBool::new(false)), table.served.name.clone());
    let _raised = Raised(stop.clone());
    let predict = move |app: &App| {
        // Until the work ends: a client that leaves gives up neither its turn nor its place in the queue.
        let _held = (turn, counted);
        if stop.load(Relaxed) {
            return Err(ApiError::failed("nobody waits for the predictions any more"));
        }
        let (data, future) = tables(body, is_json);
        let predicted = app.table(Some(&name))?.served.predictor.predict(&data, future.as_deref(), json, &stop);
        predicted.map_err(|why| if why.is_wrong_input { ApiError::wrong(why.sentence) } else { ApiError::failed(why.sentence) })
    };
    let predicted = app.aside(predict).await?;
    let kind = if json { JSON } else { "text/csv; charset=utf-8" };
    Ok(([(header::CONTENT_TYPE, kind)], predicted).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_to_come_are_told_from_a_table_of_objects() {
        let of = |body: &str, is_json| {
            let text = |bytes| String::from_utf8(bytes).unwrap();
            let (data, future) = tables(body.as_bytes().to_vec(), is_json);
            (text(data), future.map(text))
        };
        let both = r#"{"future": "x\n3\n", "data": "x\n1\n2\n"}"#;
        assert_eq!(of(both, true), ("x\n1\n2\n".to_owned(), Some("x\n3\n".to_owned())));
        assert_eq!(of(r#"{"data": "x\n1\n"}"#, true), ("x\n1\n".to_owned(), None));
        let rows = "{\"data\": \"a\"}\n{\"data\": \"b\"}\n";
        for table in [rows, r#"{"data": "a", "x": 1}"#, r#"{"data": 1}"#, "x\n1\n", ""] {
            assert_eq!(of(table, true), (table.to_owned(), None));
        }
        assert_eq!(of(both, false), (both.to_owned(), None));
    }
}
