//! Metrics in Prometheus' format.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::App;
use crate::counts::{BOUNDS, Counts, TableCounts, Times};

/// Name, kind, meaning, and how to get it from the counts of a model.
type Metric<C> = (&'static str, &'static str, &'static str, fn(&C) -> u64);

const OF_TEXT: [Metric<Counts>; 12] = [
    ("prompts_total", "counter", "Prompts taken.", |counts| counts.prompts.load(Relaxed)),
    ("prompts_refused_total", "counter", "Prompts refused because too many waited.", |counts| counts.refused.load(Relaxed)),
    ("prompts_left_total", "counter", "Prompts and texts whose client went away before their end.", |counts| counts.left.load(Relaxed)),
    ("prompt_tokens_total", "counter", "Tokens of prompts.", |counts| counts.prompt_tokens.load(Relaxed)),
    ("prompt_tokens_cached_total", "counter", "Tokens of prompts whose state was known.", |counts| counts.cached_tokens.load(Relaxed)),
    ("generated_tokens_total", "counter", "Tokens generated.", |counts| counts.generated_tokens.load(Relaxed)),
    ("steps_total", "counter", "Steps, each giving one token of every text under way.", |counts| counts.steps.load(Relaxed)),
    ("prompts_waiting", "gauge", "Prompts that wait for a session.", |counts| counts.waiting.load(Relaxed)),
    ("sessions_running", "gauge", "Prompts that are read and texts that are continued.", |counts| counts.running.load(Relaxed)),
    ("texts_behind", "gauge", "Texts that wait for their clients to take what is there.", |counts| counts.behind.load(Relaxed)),
    ("cache_entries", "gauge", "States kept of texts that were read.", |counts| counts.cache_entries.load(Relaxed)),
    ("cache_bytes", "gauge", "Bytes that they take.", |counts| counts.cache_bytes.load(Relaxed)),
];

const OF_TABLES: [Metric<TableCounts>; 7] = [
    ("tables_total", "counter", "Tables taken.", |counts| counts.tables.load(Relaxed)),
    ("tables_refused_total", "counter", "Tables refused because too many waited.", |counts| counts.refused.load(Relaxed)),
    ("tables_wrong_total", "counter", "Tables refused for what they hold or ask for.", |counts| counts.wrong.load(Relaxed)),
    ("tables_failed_total", "counter", "Tables that could be read, and failed all the same.", |counts| counts.failed.load(Relaxed)),
    ("tables_left_total", "counter", "Tables whose client went away before the answer.", |counts| counts.left.load(Relaxed)),
    ("tables_waiting", "gauge", "Tables that wait for their turn.", TableCounts::waiting),
    ("tables_running", "gauge", "Tables that are read and answered, until their answers have been taken.", |counts| {
        counts.running.load(Relaxed)
    }),
];

pub(super) async fn metrics(State(app): State<Arc<App>>) -> Response {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write(&app, &mut text);
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

fn write(app: &App, text: &mut String) -> std::fmt::Result {
    let name = |name: &str| name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let models: Vec<(String, &Counts)> = app.models.iter().map(|served| (name(&served.name), &*served.engine.counts)).collect();
    let tables: Vec<(String, &TableCounts)> = app.tables.iter().map(|table| (name(&table.served.name), &*table.counts)).collect();
    write_metrics(&OF_TEXT, &models, text)?;
    write_times("first_token_seconds", "From a prompt's arrival to its first token.", &models, |counts| &counts.first_tokens, text)?;
    write_metrics(&OF_TABLES, &tables, text)?;
    write_times("table_seconds", "From a table's arrival to its answer.", &tables, |counts| &counts.answered, text)
}

fn write_metrics<C>(metrics: &[Metric<C>], models: &[(String, &C)], text: &mut String) -> std::fmt::Result {
    for (metric, kind, meaning, count) in metrics {
        writeln!(text, "# HELP minrnn_{metric} {meaning}\n# TYPE minrnn_{metric} {kind}")?;
        for (model, counts) in models {
            writeln!(text, "minrnn_{metric}{{model=\"{model}\"}} {}", count(counts))?;
        }
    }
    Ok(())
}

fn write_times<C>(
    metric: &str,
    meaning: &str,
    models: &[(String, &C)],
    times: impl Fn(&C) -> &Times,
    text: &mut String,
) -> std::fmt::Result {
    writeln!(text, "# HELP minrnn_{metric} {meaning}\n# TYPE minrnn_{metric} histogram")?;
    for (model, counts) in models {
        let (within, sum) = times(counts).within();
        let bounds = BOUNDS.iter().map(f64::to_string).chain(["+Inf".to_owned()]);
        for (bound, count) in bounds.zip(within) {
            writeln!(text, "minrnn_{metric}_bucket{{model=\"{model}\",le=\"{bound}\"}} {count}")?;
        }
        let count = within[within.len() - 1];
        writeln!(text, "minrnn_{metric}_sum{{model=\"{model}\"}} {sum}\nminrnn_{metric}_count{{model=\"{model}\"}} {count}")?;
    }
    Ok(())
}
