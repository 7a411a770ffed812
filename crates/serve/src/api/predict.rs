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

/// Tables are told apart by what they hold; these are none that a page of another site could send unasked.
const KINDS: [&str; 7] = [
    "text/csv",
    "application/json",
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
    let accepted = request.headers().get(header::ACCEPT).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let json = accepted.contains("application/json");
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
        let predicted = app.table(Some(&name))?.served.predictor.predict(&body, json, &stop);
        predicted.map_err(|why| if why.is_wrong_input { ApiError::wrong(why.sentence) } else { ApiError::failed(why.sentence) })
    };
    let predicted = app.aside(predict).await?;
    let kind = if json { "application/json" } else { "text/csv; charset=utf-8" };
    Ok(([(header::CONTENT_TYPE, kind)], predicted).into_response())
}
