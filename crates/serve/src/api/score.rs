//! `/v1/score`: how surprising every row of a table is.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::response::Response;
use minrnn_model::Calibration;
use serde::Deserialize;
use serde_json::json;

use super::App;
use super::error::ApiError;
use super::tables::{Answer, answered};
use crate::served::Scores;

/// How texts are scored, for a client that names a model of text.
const TEXTS: &str = "texts are scored by /v1/completions, with echo, logprobs and max_tokens 0";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    model: Option<String>,
    threshold: Option<f64>,
}

pub(super) async fn score(
    State(app): State<Arc<App>>,
    asked: Result<Query<Asked>, QueryRejection>,
    request: Request,
) -> Result<Response, ApiError> {
    let Query(Asked { model, threshold }) =
        asked.map_err(|refused| ApiError::wrong(format!("expected /v1/score?model=NAME&threshold=SHARE: {}", refused.body_text())))?;
    let share = threshold.unwrap_or(Calibration::SHARE);
    Calibration::expect_share(share).map_err(|error| ApiError::wrong(format!("threshold: {error}")))?;
    let name = model.as_deref();
    let table = app.table(name).map_err(|error| if app.model(name).is_ok() { error.with_hint(TEXTS) } else { error })?;
    answered(&app, table, "calibrate", request, move |model, sent, accept, stop| {
        let Scores { text: rows, threshold, notes } = model.score(&sent.table, sent.other.as_deref(), share, accept, stop)?;
        Ok(Answer { rows, field: "rows", further: Some(("threshold", json!(threshold))), notes })
    })
    .await
}
