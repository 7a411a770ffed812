//! The interface: OpenAI's completions and responses, and what a server needs beside them.

mod asked;
mod completions;
mod error;
mod fields;
mod guard;
mod kept;
mod metrics;
mod page;
mod pieces;
mod responses;
mod tokens;

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use minrnn_model::Tokenizer;
use minrnn_stream::Model;
use rayon::ThreadPool;
use serde_json::{Value, json};

use crate::engine::Engine;
use crate::server::ServedModel;
use crate::settings::Settings;
use error::ApiError;
use fields::Fields;
use kept::Kept;

/// How long a client may take to send its request.
const PATIENCE: Duration = Duration::from_secs(30);

/// What all requests share.
pub(crate) struct App {
    models: Vec<Served>,
    settings: Settings,
    address: SocketAddr,
    /// Seconds since 1970 when the server began.
    begun: u64,
    ids: AtomicU64,
    secret: RandomState,
    seeds: AtomicU64,
    kept: Kept,
}

/// A model and its thread.
pub(crate) struct Served {
    name: String,
    model: Arc<Model>,
    tokenizer: Arc<Tokenizer>,
    engine: Engine,
}

impl App {
    pub fn new(models: Vec<ServedModel>, settings: Settings, address: SocketAddr, pool: &Arc<ThreadPool>) -> crate::Result<Self> {
        let start = |ServedModel { name, model, tokenizer }| {
            let (model, tokenizer) = (Arc::new(model), Arc::new(tokenizer));
            let engine = Engine::start(model.clone(), tokenizer.clone(), &settings, pool.clone())?;
            Ok(Served { name, model, tokenizer, engine })
        };
        let models = models.into_iter().map(start).collect::<crate::Result<_>>()?;
        let (seeds, kept) = (AtomicU64::new(settings.seed), Kept::new(settings.cache_bytes));
        Ok(Self { models, settings, address, begun: now(), ids: AtomicU64::new(0), secret: RandomState::new(), seeds, kept })
    }

    pub fn router(self: Arc<Self>) -> Router {
        Router::new()
            .route("/", get(page::page))
            .route("/health", get(health))
            .route("/metrics", get(metrics::metrics))
            .route("/v1/models", get(models))
            .route("/v1/models/{name}", get(model))
            .route("/v1/completions", post(completions::completions))
            .route("/v1/responses", post(responses::responses))
            .route("/tokenize", post(tokens::tokenize))
            .route("/detokenize", post(tokens::detokenize))
            .fallback(async || {
                ApiError::new(StatusCode::NOT_FOUND, "there is nothing here; see /v1/models, /v1/completions, /v1/responses")
            })
            .method_not_allowed_fallback(async || ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "this is asked by another method"))
            .layer(from_fn_with_state(self.clone(), guard::guard))
            .with_state(self)
    }

    /// The model of that name, or the first where none is named.
    fn model(&self, name: Option<&str>) -> Result<&Served, ApiError> {
        let Some(name) = name else { return Ok(&self.models[0]) };
        self.models.iter().find(|served| served.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.models.iter().map(|served| served.name.as_str()).collect();
            let sentence = format!("there is no model '{name}'; there is {}", known.join(", "));
            ApiError::new(StatusCode::NOT_FOUND, sentence).code("model_not_found")
        })
    }

    fn next_seed(&self) -> u64 {
        self.seeds.fetch_add(1, Relaxed)
    }

    /// A name that no other answer has, and that nobody guesses who was not told: it lets go on from a text.
    fn next_id(&self, prefix: &str) -> String {
        let number = self.ids.fetch_add(1, Relaxed);
        format!("{prefix}{:016x}{number:x}", self.secret.hash_one(number))
    }

    /// The fields of a request, once all of it has come.
    async fn fields(&self, request: Request) -> Result<Fields, ApiError> {
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        // A page of another site can send any other kind without being asked whether it may.
        if kind.split(';').next().map(str::trim) != Some("application/json") {
            let sentence = format!("expected 'Content-Type: application/json', found '{kind}'");
            return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, sentence));
        }
        let most = self.settings.max_request;
        let body = tokio::time::timeout(PATIENCE, to_bytes(request.into_body(), most)).await;
        let late = |_| ApiError::new(StatusCode::REQUEST_TIMEOUT, format!("the request did not come within {} s", PATIENCE.as_secs()));
        let too_long = |_| ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the request broke off or has more than {most} bytes"));
        Fields::of(&body.map_err(late)?.map_err(too_long)?)
    }
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn answered(body: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

/// Whether every model still answers.
async fn health(State(app): State<Arc<App>>) -> Response {
    match app.models.iter().find(|served| !served.engine.is_alive()) {
        None => answered(&json!({ "status": "ok" })),
        Some(served) => ApiError::new(StatusCode::SERVICE_UNAVAILABLE, format!("the model '{}' has stopped", served.name)).into_response(),
    }
}

fn described(app: &App, served: &Served) -> Value {
    json!({ "id": served.name, "object": "model", "created": app.begun, "owned_by": "minrnn", "mixer": served.model.config().mixer,
        "parameters": served.model.parameters(), "vocab_size": served.tokenizer.vocab_size() })
}

async fn models(State(app): State<Arc<App>>) -> Response {
    let models: Vec<Value> = app.models.iter().map(|served| described(&app, served)).collect();
    answered(&json!({ "object": "list", "data": models }))
}

async fn model(State(app): State<Arc<App>>, Path(name): Path<String>) -> Result<Response, ApiError> {
    Ok(answered(&described(&app, app.model(Some(&name))?)))
}
