//! `/v1/predict`: predictions for the sequences of a table.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use axum::extract::{Query, Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;

use super::error::ApiError;
use super::fields::{Fields, without_mark};
use super::kinds::{CSV, JSON, accepted, expect_kind, expect_plain};
use super::notes::{NOTE, in_headers};
use super::{App, answered_json};
use crate::counts::{TableCounts, add};
use crate::served::{Accept, Predictions};

/// Kinds of content that are accepted, none of which a page of another site could send without a CORS preflight. The kind of a table is recognised by
/// its content.
const KINDS: [&str; 7] = [
    CSV,
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

/// What a request holds.
#[derive(Debug, PartialEq, Eq)]
struct Sent {
    table: Vec<u8>,
    /// The future rows, if they were sent.
    future: Option<Vec<u8>>,
    /// Why a JSON object that looks like a request with a table and future rows is none; it may be a table of one row with such columns instead.
    flaw: Option<ApiError>,
}

impl Sent {
    /// What `body` holds: a table, or one JSON object with a table and its future rows as texts. A table of JSON lines is told apart by other fields in its
    /// rows, or by having several.
    fn of(body: Vec<u8>, is_json: bool) -> Self {
        let is_object = is_json && without_mark(&body).trim_ascii_start().starts_with(b"{");
        let fields = is_object.then(|| Fields::of(&body).ok()).flatten();
        match fields.filter(|fields| fields.has_table("data") || fields.has_table("future")).map(both) {
            None => Self { table: body, future: None, flaw: None },
            Some(Err(flaw)) => Self { table: body, future: None, flaw: Some(flaw) },
            Some(Ok((data, future))) => Self { table: data.into_bytes(), future: future.map(String::into_bytes), flaw: None },
        }
    }
}

/// A table and its future rows.
fn both(mut fields: Fields) -> Result<(String, Option<String>), ApiError> {
    let (data, future) = (fields.take("data")?, fields.take("future")?);
    fields.end()?;
    Ok((data.ok_or_else(|| ApiError::field("data", "is missing; expected a table as a text"))?, future))
}

/// A request under way. If it is dropped before its end, because its client has left, the prediction is told to stop.
struct UnderWay {
    stop: Arc<AtomicBool>,
    counts: Arc<TableCounts>,
    has_ended: bool,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if !self.has_ended {
            add(&self.counts.left, 1);
        }
    }
}

/// Counts itself in a gauge while it exists.
struct Counted {
    counts: Arc<TableCounts>,
    gauge: fn(&TableCounts) -> &AtomicU64,
}

impl Counted {
    fn new(counts: &Arc<TableCounts>, gauge: fn(&TableCounts) -> &AtomicU64) -> Self {
        gauge(counts).fetch_add(1, Relaxed);
        Self { counts: counts.clone(), gauge }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        (self.gauge)(&self.counts).fetch_sub(1, Relaxed);
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
    expect_plain(request.headers())?;
    let is_json = expect_kind(request.headers(), &[JSON]).is_ok();
    let accept = accepted(request.headers());
    let table = app.table(model.as_deref())?;
    let body = app.body(request).await?;
    let counts = table.counts.clone();
    // One of those held has its turn or is about to get it, and does not count as waiting.
    if counts.held.load(Relaxed) > app.settings.queue as u64 {
        add(&counts.refused, 1);
        return Err(ApiError::busy("tables"));
    }
    add(&counts.tables, 1);
    let (arrived, held) = (Instant::now(), Counted::new(&counts, |counts| &counts.held));
    let (stop, name) = (Arc::new(AtomicBool::new(false)), table.served.name.clone());
    let mut under_way = UnderWay { stop: stop.clone(), counts: counts.clone(), has_ended: false };
    let turn = table.turn.clone().acquire_owned().await.map_err(|_| ApiError::gone())?;
    let predict = move |app: &App| {
        // Held until the work ends: a client that leaves frees neither its turn nor its place in the queue before.
        let _held = (turn, held);
        if stop.load(Relaxed) {
            return Err(ApiError::failed("nobody waits for the predictions any more"));
        }
        let table = app.table(Some(&name))?;
        let _running = Counted::new(&table.counts, |counts| &counts.running);
        let Sent { table: data, future, flaw } = Sent::of(body, is_json);
        table.served.predictor.predict(&data, future.as_deref(), accept, &stop).map_err(|why| match flaw {
            _ if !why.is_wrong_input => ApiError::failed(why.sentence),
            Some(flaw) => flaw.or(&format!("read as a table of one row, {}", why.sentence)),
            None => ApiError::wrong(why.sentence),
        })
    };
    let predicted = app.aside(predict).await;
    under_way.has_ended = true;
    match &predicted {
        Ok(_) => counts.predicted.add(arrived.elapsed()),
        Err(error) => add(if error.is_failure() { &counts.failed } else { &counts.wrong }, 1),
    }
    predicted.map(|predictions| answer(predictions, accept))
}

fn answer(Predictions { text, notes }: Predictions, accept: Accept) -> Response {
    if accept == Accept::Json {
        return answered_json(format!("{{\"predictions\":{text},\"notes\":{}}}", json!(notes)));
    }
    let mut response = ([(header::CONTENT_TYPE, "text/csv; charset=utf-8")], text).into_response();
    for note in in_headers(&notes) {
        response.headers_mut().append(NOTE, note);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(body: &str) -> Sent {
        Sent { table: body.as_bytes().to_vec(), future: None, flaw: None }
    }

    fn of(body: &str, is_json: bool) -> Sent {
        Sent::of(body.as_bytes().to_vec(), is_json)
    }

    #[test]
    fn rows_to_come_are_told_from_a_table_of_objects() {
        let both = r#"{"future": "x\n3\n", "data": "x\n1\n2\n"}"#;
        assert_eq!(of(both, true), Sent { future: Some(b"x\n3\n".to_vec()), ..table("x\n1\n2\n") });
        for alone in [r#" {"data": "x\n1\n"}"#, r#"{"data": "x\n1\n", "future": null}"#] {
            assert_eq!(of(alone, true), table("x\n1\n"));
        }
        let rows = "{\"data\": \"a\"}\n{\"data\": \"b\"}\n";
        for body in [rows, r#"{"data": 1}"#, r#"{"x": 1, "y": "a"}"#, r#"[{"data": "a"}]"#, "x\n1\n", ""] {
            assert_eq!(of(body, true), table(body));
        }
        assert_eq!(of(both, false), table(both));
    }

    #[test]
    fn an_object_that_is_nearly_both_tables_is_a_table_with_a_flaw() {
        for (body, sentence) in [
            (r#"{"data": "a", "Future": "b"}"#, "Future: there is no such field; expected one of data, future"),
            (r#"{"data": "a", "future": "b", "x": 1}"#, "x: there is no such field; expected one of data, future"),
            (r#"{"data": "a", "future": ["b"]}"#, "future: expected a text, found [\"b\"]"),
            (r#"{"data": [{"x": 1}]}"#, "data: expected a text, found [{\"x\":1}]"),
            (r#"{"data": {"x": [1, 2]}, "future": "b"}"#, "data: expected a text, found {\"x\":[1,2]}"),
            (r#"{"future": "b"}"#, "data: is missing; expected a table as a text"),
            (r#"{"Data": "a", "future": "b"}"#, "Data: there is no such field; expected one of data, future"),
        ] {
            let Sent { flaw, .. } = of(body, true);
            let refused = flaw.unwrap().body();
            assert_eq!(refused["error"]["message"], sentence, "{body}");
            assert_eq!(refused["error"]["param"], sentence.split(':').next().unwrap());
            assert_eq!(of(body, true).table, body.as_bytes());
        }
    }
}
