//! `/v1/predict`: predictions for the sequences of a table.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::response::Response;
use serde::Deserialize;

use super::App;
use super::error::ApiError;
use super::tables::{Answer, answered};
use crate::served::Predictions;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    model: Option<String>,
}

pub(super) async fn predict(
    State(app): State<Arc<App>>,
    asked: Result<Query<Asked>, QueryRejection>,
    request: Request,
) -> Result<Response, ApiError> {
    let Query(Asked { model }) =
        asked.map_err(|refused| ApiError::wrong(format!("expected /v1/predict?model=NAME: {}", refused.body_text())))?;
    let table = app.table(model.as_deref())?;
    answered(&app, table, "future", request, |model, sent, accept, stop| {
        let Predictions { text: rows, notes } = model.predict(&sent.table, sent.other.as_deref(), accept, stop)?;
        Ok(Answer { rows, field: "predictions", further: None, notes })
    })
    .await
}
