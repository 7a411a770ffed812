//! A file's description of its model besides the graph, under keys that begin with `minrnn.`.

use minrnn_model::{CheckedConfig, TableTask, Tokenizer};
use serde_json::{Value as Json, json};

use crate::proto::Entry;
use crate::{Error, Result};

/// What a model was trained on, beyond its configuration.
#[derive(Debug, Clone, Copy, Default)]
pub struct Attached<'a> {
    /// The vocabulary of a model that reads text.
    pub tokenizer: Option<&'a Tokenizer>,
    /// The task of a model trained on a table.
    pub task: Option<&'a TableTask>,
    /// How the steps of a policy become numbers, as JSON.
    pub policy: Option<&'a Json>,
}

/// The entries of a model that carries `state`.
pub(crate) fn entries(config: &CheckedConfig, attached: Attached<'_>, state: Json) -> Result<Vec<Entry>> {
    let unwritten = |error: serde_json::Error| Error::Config(format!("the metadata of the graph cannot be written: {error}"));
    let reads = match config.input_width {
        _ if config.decision => "rows of return, observation, action before and time",
        0 => "a token",
        _ => "values",
    };
    let predicts = match config.n_outputs {
        _ if config.decision => "an action",
        0 => "logits of the token that follows",
        _ => "classes or values",
    };
    let mut entries = vec![
        ("model", serde_json::to_value(&**config).map_err(unwritten)?),
        ("state", state),
        ("reads", json!(reads)),
        ("predicts", json!(predicts)),
    ];
    if let Some(tokenizer) = attached.tokenizer {
        entries.push(("tokenizer", serde_json::to_value(tokenizer.kind()).map_err(unwritten)?));
        entries.push(("tokenizer.json", Json::String(tokenizer.to_json()?)));
    }
    if let Some(task) = attached.task {
        entries.push(("columns", json!(task.columns())));
        match task {
            TableTask::Classify(classifier) => entries.push(("classes", json!(classifier.classes))),
            TableTask::Regress(regressor) => entries.push(("target", json!([regressor.target]))),
            TableTask::Forecast(forecaster) => entries.push(("target", json!(forecaster.target))),
        }
        entries.push(("task", serde_json::to_value(task).map_err(unwritten)?));
    }
    if let Some(policy) = attached.policy {
        entries.push(("policy", policy.clone()));
    }
    // Texts are written as they are, everything else as JSON.
    let text = |value: Json| if let Json::String(text) = value { text } else { value.to_string() };
    Ok(entries.into_iter().map(|(key, value)| Entry { key: format!("minrnn.{key}"), value: text(value) }).collect())
}
