//! Tables that are sent: what a request holds, and how it gets its turn and its answer.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::{Value, json};

use super::error::ApiError;
use super::fields::{Fields, without_mark};
use super::kinds::{CSV, JSON, accepted, expect_kind, expect_plain};
use super::notes::{NOTE, in_headers};
use super::{App, Table};
use crate::counts::{TableCounts, add};
use crate::served::{Accept, TableModel, Unanswered};

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

/// What a request holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub table: Vec<u8>,
    /// The other table, if one was sent.
    pub other: Option<Vec<u8>>,
    /// Why a JSON object that looks like a request with two tables is none; it may be a table of one row with such columns instead.
    flaw: Option<ApiError>,
}

impl Sent {
    /// What `body` holds: a table, or one JSON object with a table and another one, in the field `other`, as texts. A table of JSON lines is told apart by
    /// other fields in its rows, or by having several.
    fn of(body: Vec<u8>, is_json: bool, other: &'static str) -> Self {
        let is_object = is_json && without_mark(&body).trim_ascii_start().starts_with(b"{");
        let fields = is_object.then(|| Fields::of(&body).ok()).flatten();
        match fields.filter(|fields| fields.has_table("data") || fields.has_table(other)).map(|fields| both(fields, other)) {
            None => Self { table: body, other: None, flaw: None },
            Some(Err(flaw)) => Self { table: body, other: None, flaw: Some(flaw) },
            Some(Ok((data, other))) => Self { table: data.into_bytes(), other: other.map(String::into_bytes), flaw: None },
        }
    }

    /// The error for its sender.
    fn refused(self, why: Unanswered) -> ApiError {
        match self.flaw {
            _ if !why.is_wrong_input => ApiError::failed(why.sentence),
            Some(flaw) => flaw.or(&format!("read as a table of one row, {}", why.sentence)),
            None => ApiError::wrong(why.sentence),
        }
    }
}

/// A table and the one in the field `other`.
fn both(mut fields: Fields, other: &'static str) -> Result<(String, Option<String>), ApiError> {
    let (data, other) = (fields.take("data")?, fields.take(other)?);
    fields.end()?;
    Ok((data.ok_or_else(|| ApiError::field("data", "is missing; expected a table as a text"))?, other))
}

/// Bytes that a client is handed at once of an answer that waits for it.
const PIECE: usize = 1 << 16;

/// The answer to a request.
pub(super) struct Answer {
    /// Rows, as CSV or as an array of JSON.
    pub rows: String,
    /// The field of the rows in an object of JSON.
    pub field: &'static str,
    /// A further field, for which CSV has no place.
    pub further: Option<(&'static str, Value)>,
    /// What readers should know, a sentence each.
    pub notes: Vec<String>,
}

impl Answer {
    /// The response, which has its `place` until the client has taken it: of long answers that wait for their clients, a model has one.
    fn into_response(self, accept: Accept, place: impl Send + 'static) -> Response {
        let Self { rows, field, further, notes } = self;
        if accept == Accept::Json {
            let further = further.map_or_else(String::new, |(name, value)| format!(",\"{name}\":{value}"));
            let parts = [format!("{{\"{field}\":"), rows, format!("{further},\"notes\":{}}}", json!(notes))];
            return in_pieces(JSON, parts.map(Bytes::from).into(), place);
        }
        let mut response = in_pieces("text/csv; charset=utf-8", vec![Bytes::from(rows)], place);
        for note in in_headers(&notes) {
            response.headers_mut().append(NOTE, note);
        }
        response
    }
}

/// A response of the bytes of `parts`. `place` is dropped when they have been taken, or the client is gone.
fn in_pieces(kind: &'static str, parts: Vec<Bytes>, place: impl Send + 'static) -> Response {
    let len: usize = parts.iter().map(Bytes::len).sum();
    let pieces = stream::unfold((VecDeque::from(parts), place), async |(mut parts, place)| {
        while parts.front().is_some_and(Bytes::is_empty) {
            parts.pop_front();
        }
        let part = parts.front_mut()?;
        let piece = part.split_to(part.len().min(PIECE));
        Some((Ok::<_, Infallible>(piece), (parts, place)))
    });
    ([(header::CONTENT_TYPE, kind), (header::CONTENT_LENGTH, &*len.to_string())], Body::from_stream(pieces)).into_response()
}

/// A request under way. If it is dropped before its end, because its client has left, its work is told to stop.
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

/// The response to a request of a table, for which `work` has the answer of its model once it is the table's turn. A JSON request may have another table,
/// in the field `other`.
pub(super) async fn answered(
    app: &Arc<App>,
    table: &Table,
    other: &'static str,
    request: Request,
    work: impl FnOnce(&dyn TableModel, &Sent, Accept, &AtomicBool) -> Result<Answer, Unanswered> + Send + 'static,
) -> Result<Response, ApiError> {
    expect_kind(request.headers(), &KINDS)?;
    expect_plain(request.headers())?;
    let is_json = expect_kind(request.headers(), &[JSON]).is_ok();
    let accept = accepted(request.headers());
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
    let answer = move |app: &App| {
        if stop.load(Relaxed) {
            return Err(ApiError::failed("nobody waits for the answer any more"));
        }
        let table = app.table(Some(&name))?;
        // Held until the work ends, and the answer was taken: a client that leaves frees neither its turn nor its place in the queue before.
        let place = (turn, held, Counted::new(&table.counts, |counts| &counts.running));
        let sent = Sent::of(body, is_json, other);
        match work(&*table.served.model, &sent, accept, &stop) {
            Ok(answer) => Ok((answer, place)),
            Err(why) => Err(sent.refused(why)),
        }
    };
    let answered = app.aside(answer).await;
    under_way.has_ended = true;
    match &answered {
        Ok(_) => counts.answered.add(arrived.elapsed()),
        Err(error) => add(if error.is_failure() { &counts.failed } else { &counts.wrong }, 1),
    }
    answered.map(|(answer, place)| answer.into_response(accept, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(body: &str) -> Sent {
        Sent { table: body.as_bytes().to_vec(), other: None, flaw: None }
    }

    fn of(body: &str, is_json: bool) -> Sent {
        Sent::of(body.as_bytes().to_vec(), is_json, "future")
    }

    #[test]
    fn rows_to_come_are_told_from_a_table_of_objects() {
        let both = r#"{"future": "x\n3\n", "data": "x\n1\n2\n"}"#;
        assert_eq!(of(both, true), Sent { other: Some(b"x\n3\n".to_vec()), ..table("x\n1\n2\n") });
        for alone in [r#" {"data": "x\n1\n"}"#, r#"{"data": "x\n1\n", "future": null}"#] {
            assert_eq!(of(alone, true), table("x\n1\n"));
        }
        let rows = "{\"data\": \"a\"}\n{\"data\": \"b\"}\n";
        for body in [rows, r#"{"data": 1}"#, r#"{"x": 1, "y": "a"}"#, r#"[{"data": "a"}]"#, "x\n1\n", ""] {
            assert_eq!(of(body, true), table(body));
        }
        assert_eq!(of(both, false), table(both));
        // A field of the other table is one only where it is asked for.
        let scored = |body: &str| Sent::of(body.as_bytes().to_vec(), true, "calibrate");
        let both = r#"{"data": "x\n1\n", "calibrate": "x\n2\n"}"#;
        assert_eq!(scored(both), Sent { other: Some(b"x\n2\n".to_vec()), ..table("x\n1\n") });
        let row = r#"{"future": "b"}"#;
        assert_eq!(scored(row), table(row));
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
