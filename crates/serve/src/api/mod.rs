//! The interface: OpenAI's completions and responses, and what a server needs beside them.

mod asked;
mod completions;
mod error;
mod fields;
mod guard;
mod kept;
mod kinds;
mod metrics;
mod notes;
mod page;
mod pieces;
mod predict;
mod responses;
mod score;
mod tables;
mod tokens;
mod unsupported;

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::SystemTime;

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::StreamExt;
use minrnn_model::Tokenizer;
use minrnn_stream::Model;
use rayon::ThreadPool;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::counts::TableCounts;
use crate::engine::Engine;
use crate::served::{ServedModel, ServedTable};
use crate::settings::Settings;
use error::ApiError;
use fields::Fields;
use kept::Kept;
use kinds::{JSON, expect_kind, expect_plain};

/// Most characters and probabilities that are serialised on the threads that serve all requests; more go to a thread of their own.
const AT_ONCE: usize = 1 << 13;

/// What all requests share.
pub(crate) struct App {
    models: Vec<Served>,
    tables: Vec<Table>,
    settings: Settings,
    address: SocketAddr,
    /// Seconds since 1970 when the server began.
    begun: u64,
    ids: AtomicU64,
    secret: RandomState,
    seeds: AtomicU64,
    kept: Kept,
}

/// A model of tables, which answers for one table at a time.
struct Table {
    served: ServedTable,
    turn: Arc<Semaphore>,
    counts: Arc<TableCounts>,
}

/// A model and its thread.
pub(crate) struct Served {
    name: String,
    model: Arc<Model>,
    tokenizer: Arc<Tokenizer>,
    engine: Engine,
}

impl App {
    pub fn new(
        models: Vec<ServedModel>,
        tables: Vec<ServedTable>,
        settings: Settings,
        address: SocketAddr,
        pool: &Arc<ThreadPool>,
    ) -> crate::Result<Self> {
        let start = |ServedModel { name, model, tokenizer }| {
            let (model, tokenizer) = (Arc::new(model), Arc::new(tokenizer));
            let engine = Engine::start(model.clone(), tokenizer.clone(), &settings, pool.clone())?;
            Ok(Served { name, model, tokenizer, engine })
        };
        let models = models.into_iter().map(start).collect::<crate::Result<_>>()?;
        let (seeds, kept) = (AtomicU64::new(settings.seed), Kept::new(settings.cache_bytes));
        let table = |served| Table { served, turn: Arc::new(Semaphore::new(1)), counts: Arc::default() };
        let tables = tables.into_iter().map(table).collect();
        Ok(Self { models, tables, settings, address, begun: now(), ids: AtomicU64::new(0), secret: RandomState::new(), seeds, kept })
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
            .route("/v1/predict", post(predict::predict))
            .route("/v1/score", post(score::score))
            .route("/tokenize", post(tokens::tokenize))
            .route("/detokenize", post(tokens::detokenize))
            .fallback(async || {
                let sentence = "there is nothing here; see /v1/models, /v1/completions, /v1/responses, /v1/predict, /v1/score";
                ApiError::new(StatusCode::NOT_FOUND, sentence)
            })
            .method_not_allowed_fallback(async || ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "this is asked by another method"))
            .layer(from_fn_with_state(self.clone(), guard::guard))
            .with_state(self)
    }

    /// The model of text of that name, or the first where none is named.
    fn model(&self, name: Option<&str>) -> Result<&Served, ApiError> {
        named(name, " of text", self.models.iter().map(|served| (&*served.name, served)))
    }

    /// The model of tables of that name, or the first where none is named.
    fn table(&self, name: Option<&str>) -> Result<&Table, ApiError> {
        named(name, " of tables", self.tables.iter().map(|table| (&*table.served.name, table)))
    }

    fn next_seed(&self) -> u64 {
        self.seeds.fetch_add(1, Relaxed)
    }

    /// A unique id that cannot be guessed, since whoever knows it can continue the text.
    fn next_id(&self, prefix: &str) -> String {
        let number = self.ids.fetch_add(1, Relaxed);
        format!("{prefix}{:016x}{number:x}", self.secret.hash_one(number))
    }

    /// Runs work that may take long, such as reading a long request, on a thread where no other request waits for it.
    async fn aside<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let app = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&app)).await;
        done.map_err(|_| ApiError::failed("the request broke off; the server's messages say why"))?
    }

    /// What `read` makes of the fields of a request, once all of it has arrived. A request may be megabytes, so it is read aside.
    async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        request: Request,
        read: impl FnOnce(&Self, Fields) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        expect_kind(request.headers(), &[JSON])?;
        expect_plain(request.headers())?;
        let body = self.body(request).await?;
        self.aside(move |app| {
            let fields = Fields::of(&body)?;
            // Each field has its part of it.
            drop(body);
            read(app, fields)
        })
        .await
    }

    /// The whole body of a request.
    async fn body(&self, request: Request) -> Result<Vec<u8>, ApiError> {
        let most = self.settings.max_request;
        let far = most.saturating_add(DRAINED);
        let too_long =
            |len: &str| ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the request has {len} bytes, expected at most {most}"));
        let announced = request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if let Some(len) = announced.filter(|&len: &usize| len > far) {
            return Err(too_long(&len.to_string()));
        }
        let mut parts = request.into_body().into_data_stream();
        let (mut body, mut len) = (Vec::new(), 0usize);
        let whole = async {
            while let Some(part) = parts.next().await {
                let part = part.map_err(|error| ApiError::wrong(format!("the request broke off: {error}")))?;
                len = len.saturating_add(part.len());
                // A request that is only a little too long is read to its end, so that its sender gets to read the answer.
                if len > far {
                    break;
                }
                if len <= most { body.extend_from_slice(&part) } else { body = Vec::new() }
            }
            Ok::<_, ApiError>(())
        };
        let patience = self.settings.patience;
        let late = |_| ApiError::new(StatusCode::REQUEST_TIMEOUT, format!("the request did not come within {} s", patience.as_secs_f64()));
        tokio::time::timeout(patience, whole).await.map_err(late)??;
        if len > most {
            return Err(too_long(&if len > far { format!("more than {far}") } else { len.to_string() }));
        }
        Ok(body)
    }
}

/// Most bytes beyond the limit of a request that are read and discarded.
const DRAINED: usize = 16 << 20;

/// The one of `all` with this name, or the first if none is given; `what` says for errors what they are.
fn named<'a, T>(name: Option<&str>, what: &str, mut all: impl Iterator<Item = (&'a str, T)> + Clone) -> Result<T, ApiError> {
    let names = all.clone().map(|(known, _)| known);
    let found = all.find(|(known, _)| name.is_none_or(|name| name == *known));
    found.map(|(_, found)| found).ok_or_else(|| {
        let known = names.collect::<Vec<_>>().join(", ");
        let asked = name.map_or_else(String::new, |name| format!(" '{name}'"));
        let there = if known.is_empty() { "none is served".to_owned() } else { format!("there is {known}") };
        ApiError::new(StatusCode::NOT_FOUND, format!("there is no model{asked}{what}; {there}")).code("model_not_found")
    })
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn answered(body: &Value) -> Response {
    answered_json(body.to_string())
}

fn answered_json(json: String) -> Response {
    ([(header::CONTENT_TYPE, JSON)], json).into_response()
}

/// Whether every model still answers.
async fn health(State(app): State<Arc<App>>) -> Response {
    match app.models.iter().find(|served| !served.engine.is_alive()) {
        None => answered(&json!({ "status": "ok" })),
        Some(served) => ApiError::new(StatusCode::SERVICE_UNAVAILABLE, format!("the model '{}' has stopped", served.name)).into_response(),
    }
}

/// The models of text and of tables with their names and descriptions, in the order in which they are listed.
fn described(app: &App) -> impl Iterator<Item = (&str, Described<'_>)> + Clone {
    let texts = app.models.iter().map(|served| (&*served.name, Described::Text(served)));
    texts.chain(app.tables.iter().map(|table| (&*table.served.name, Described::Tables(&table.served))))
}

/// A model as the list of models has it.
#[derive(Clone, Copy)]
enum Described<'a> {
    Text(&'a Served),
    Tables(&'a ServedTable),
}

impl Described<'_> {
    fn to_json(self, app: &App) -> Value {
        match self {
            Self::Text(served) => {
                json!({ "id": served.name, "object": "model", "created": app.begun, "owned_by": "minrnn", "mixer": served.model.config().mixer_names(),
                    "parameters": served.model.parameters(), "vocab_size": served.tokenizer.vocab_size() })
            }
            Self::Tables(served) => {
                json!({ "id": served.name, "object": "model", "created": app.begun, "owned_by": "minrnn", "about": served.about })
            }
        }
    }
}

async fn models(State(app): State<Arc<App>>) -> Response {
    let models: Vec<Value> = described(&app).map(|(_, model)| model.to_json(&app)).collect();
    answered(&json!({ "object": "list", "data": models }))
}

async fn model(State(app): State<Arc<App>>, name: Result<Path<String>, PathRejection>) -> Result<Response, ApiError> {
    let Path(name) = name.map_err(|_| ApiError::wrong("the name of the model is no UTF-8; /v1/models has the names"))?;
    Ok(answered(&named(Some(&name), "", described(&app))?.to_json(&app)))
}
