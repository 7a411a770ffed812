//! What the server has done, as Prometheus reads it.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::App;
use crate::counts::{Counts, FIRST_TOKEN_BOUNDS};

/// Name, kind, meaning, and where it is counted.
type Metric = (&'static str, &'static str, &'static str, fn(&Counts) -> &AtomicU64);

const METRICS: [Metric; 12] = [
    ("prompts_total", "counter", "Prompts taken.", |counts| &counts.prompts),
    ("prompts_refused_total", "counter", "Prompts refused because too many waited.", |counts| &counts.refused),
    ("prompts_left_total", "counter", "Prompts and texts whose client went away before their end.", |counts| &counts.left),
    ("prompt_tokens_total", "counter", "Tokens of prompts.", |counts| &counts.prompt_tokens),
    ("prompt_tokens_cached_total", "counter", "Tokens of prompts whose state was known.", |counts| &counts.cached_tokens),
    ("generated_tokens_total", "counter", "Tokens generated.", |counts| &counts.generated_tokens),
    ("steps_total", "counter", "Steps, each giving one token of every text under way.", |counts| &counts.steps),
    ("prompts_waiting", "gauge", "Prompts that wait for a session.", |counts| &counts.waiting),
    ("sessions_running", "gauge", "Prompts that are read and texts that are continued.", |counts| &counts.running),
    ("texts_behind", "gauge", "Texts that wait for their clients to take what is there.", |counts| &counts.behind),
    ("cache_entries", "gauge", "States kept of texts that were read.", |counts| &counts.cache_entries),
    ("cache_bytes", "gauge", "Bytes that they take.", |counts| &counts.cache_bytes),
];

pub(super) async fn metrics(State(app): State<Arc<App>>) -> Response {
    let mut text = String::new();
    // Writing into a string does not fail.
    let _ = write(&app, &mut text);
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

fn write(app: &App, text: &mut String) -> std::fmt::Result {
    let name = |name: &str| name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let models: Vec<(String, &Counts)> = app.models.iter().map(|served| (name(&served.name), &*served.engine.counts)).collect();
    for (metric, kind, meaning, counter) in METRICS {
        writeln!(text, "# HELP minrnn_{metric} {meaning}\n# TYPE minrnn_{metric} {kind}")?;
        for (model, counts) in &models {
            writeln!(text, "minrnn_{metric}{{model=\"{model}\"}} {}", counter(counts).load(Relaxed))?;
        }
    }
    let metric = "minrnn_first_token_seconds";
    writeln!(text, "# HELP {metric} From a prompt's arrival to its first token.\n# TYPE {metric} histogram")?;
    for (model, counts) in &models {
        let (within, sum) = counts.first_tokens();
        let bounds = FIRST_TOKEN_BOUNDS.iter().map(f64::to_string).chain(["+Inf".to_owned()]);
        for (bound, count) in bounds.zip(within) {
            writeln!(text, "{metric}_bucket{{model=\"{model}\",le=\"{bound}\"}} {count}")?;
        }
        writeln!(text, "{metric}_sum{{model=\"{model}\"}} {sum}\n{metric}_count{{model=\"{model}\"}} {}", within[within.len() - 1])?;
    }
    Ok(())
}
