//! A page to try the models with: a text that they continue.

use axum::http::header;
use axum::response::{IntoResponse, Response};

const PAGE: &str = include_str!("page.html");
/// All of the page is in its file.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

pub(super) async fn page() -> Response {
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8"), (header::CONTENT_SECURITY_POLICY, POLICY)], PAGE).into_response()
}
