//! `minrnn inspect`: what a run, a checkpoint or a tensor file holds, and what the model of an experiment or a configuration would be.

mod cost;
mod memory;
mod untrained;

use std::path::{Path, PathBuf};

use anyhow::Context;
use burn::tensor::Device;
use minrnn::Error;
use minrnn::checkpoint::{LoadedModel, load_any_model, parameter_shapes, policy_of};
use minrnn::data::Tokenizer;
use minrnn::data::offline_rl::StepEncoding;
use minrnn::deployed::Deployed;
use minrnn::generate::expect_undamaged;
use minrnn::numbers::{Shortest, significant};
use minrnn::subject::{Subject, bytes_of, is_packed, training_of};
use minrnn::tensor_file::read_tensors;
use minrnn::train::{MAX_PROGRESS_BYTES, PROGRESS_FILE, Pointer, checkpoint, find_checkpoint};
use minrnn::words::counted;
use minrnn_model::{CheckpointFiles, Classifier, Forecaster, Missing, ModelConfig, Regressor, TableTask};
use serde_json::{Map, Value};

use crate::exit::ExitCode;
use crate::output::print;
use crate::printable::printable;
use crate::session_size::session_size;

#[derive(clap::Args)]
pub struct Args {
    /// A run directory (its best checkpoint is shown, or else its last), a checkpoint directory, a packed model, a .safetensors file, a
    /// config.json, or an experiment by its name or TOML file
    #[arg(value_name = "RUN|FILE|EXPERIMENT")]
    path: PathBuf,
    /// Set a key of an experiment or a config.json, for example mixer=mamba or d_model=64
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// Size and memory of a model as one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Args { path, settings, json } = args;
    Subject::of(&path).expect_settings(&settings)?;
    let text = match Subject::of(&path) {
        subject if json => format!("{}\n", subject.to_json(&path, &settings)?),
        Subject::Experiment(name) => untrained::experiment(name, &settings)?,
        Subject::Configuration => untrained::configuration(&path, &settings)?,
        Subject::File => file(&path)?,
        Subject::Directory => run_or_checkpoint(&path)?,
    };
    print(text)?;
    Ok(ExitCode::SUCCESS)
}

fn file(path: &Path) -> anyhow::Result<String> {
    if is_packed(path) {
        return packed(path);
    }
    let weights = read_tensors(path, "a safetensors file or a packed model")?;
    expect_undamaged(&weights)?;
    let shapes: Vec<_> =
        weights.names().filter_map(|name| weights.get(name).map(|tensor| (printable(name), tensor.shape().to_vec()))).collect();
    let metadata: Vec<_> = weights.metadata().iter().map(|(key, value)| (printable(key), printable(value))).collect();
    let (tensors, values) = (counted(shapes.len(), "tensor"), grouped(weights.value_count() as u128));
    let mut text = format!("{}: {tensors}, {values} values (f32)\n", path.display());
    text += &section("metadata", &metadata);
    Ok(text + &section("tensors", &sizes(shapes)))
}

/// A model made by `minrnn pack`.
fn packed(path: &Path) -> anyhow::Result<String> {
    let deployed = Deployed::load(path)?;
    let Deployed { model, tokenizer, table, policy, tensors, .. } = &deployed;
    let packed = bytes_of(&deployed);
    let bytes = std::fs::metadata(path).map_err(|error| Error::io("read", path, error))?.len();
    let mut text = format!("packed model {}\n", path.display());
    text += &section("model", &settings(model.config())?);
    let mut more = vec![("packed".to_owned(), format!("{} bytes of tensors in a file of {}", grouped(packed), grouped(bytes.into())))];
    more.push(("session".to_owned(), session_size(model, table.as_ref())));
    more.extend(tokenizer.as_ref().map(vocabulary));
    text += &cost::sections(model.config(), more)?;
    text += &table.as_ref().map_or_else(String::new, |table| section("table", &columns(table)));
    text += &policy.as_ref().map_or_else(String::new, |policy| section("policy", &acts(policy)));
    text += &memory::sections(model.config(), None, Some(packed))?;
    let rows = tensors
        .iter()
        .map(|tensor| (printable(&tensor.name), format!("{:?} {} {} bytes", tensor.shape, tensor.format, grouped(tensor.bytes as u128))));
    Ok(text + &section("tensors", &rows.collect::<Vec<_>>()))
}

/// What a task on tables reads and predicts.
fn columns(table: &TableTask) -> Vec<(String, String)> {
    let listed = |names: &[String]| names.iter().map(|name| printable(name)).collect::<Vec<_>>().join(", ");
    let mut rows = vec![("reads".to_owned(), listed(table.columns()))];
    for category in table.categories() {
        rows.push((format!("names of {}", printable(&table.columns()[category.column])), listed(&category.values)));
    }
    rows.extend(table.group().map(|group| ("sequences by".to_owned(), printable(group))));
    rows.extend(table.time().map(|time| ("times".to_owned(), printable(time))));
    let missing = match table.missing() {
        Missing::Error => None,
        Missing::ForwardFill => Some("read as the last known value"),
        Missing::Mask => Some("read as the last known value, and marked"),
    };
    rows.extend(missing.map(|missing| ("missing".to_owned(), missing.to_owned())));
    if !table.scaling().is_standard() {
        rows.push(("relative to".to_owned(), "the level of each series".to_owned()));
    }
    if table.rows_per_step() > 1 {
        let n = table.rows_per_step();
        rows.push(("a step is".to_owned(), format!("{n} rows, read by their mean, deviation and change")));
    }
    match table {
        TableTask::Classify(Classifier { target, classes, .. }) => {
            rows.push(("predicts".to_owned(), format!("{}, one of {}", printable(target), listed(classes))));
        }
        TableTask::Regress(Regressor { target, .. }) => {
            rows.push(("predicts".to_owned(), format!("{}, a number for each sequence", printable(target))));
        }
        TableTask::Forecast(Forecaster { target, horizon, season, quantiles, .. }) => {
            rows.push(("predicts".to_owned(), format!("{}, {horizon} steps ahead", listed(target))));
            if !quantiles.is_empty() {
                rows.push(("quantiles".to_owned(), quantiles.iter().map(f64::to_string).collect::<Vec<_>>().join(", ")));
            }
            if *season > 0 {
                rows.push(("season".to_owned(), format!("{season} steps")));
            }
        }
    }
    rows
}

/// What a policy observes and does.
fn acts(policy: &StepEncoding) -> Vec<(String, String)> {
    let mut rows = vec![
        ("observes".to_owned(), format!("{} numbers", policy.observation_width())),
        ("acts with".to_owned(), format!("{} numbers between -1 and 1", policy.action_width)),
        ("returns".to_owned(), format!("divided by {}", policy.return_scale)),
    ];
    rows.extend(policy.best_return.map(|best| ("best episode".to_owned(), format!("return {best:.2}"))));
    rows
}

fn run_or_checkpoint(path: &Path) -> anyhow::Result<String> {
    let directory = find_checkpoint(path)?;
    let LoadedModel { config, model, tokenizer } = load_any_model(&directory, &Device::flex())?;
    let mut text = format!("checkpoint {}\n", directory.display());
    if directory != path {
        for (what, pointer) in [("best", Pointer::Best), ("last", Pointer::Last)] {
            if let Some(name) = checkpoint(path, pointer)?.as_deref().and_then(Path::file_name) {
                text += &format!("  {what}  {}\n", name.display());
            }
        }
    }
    text += &section("model", &settings(&config.model)?);
    text += &cost::sections(&config.model, tokenizer.as_ref().map(vocabulary).into_iter().collect())?;
    let files = CheckpointFiles::open(&directory).map_err(Error::from)?;
    if config.model.decision {
        text += &section("policy", &acts(&policy_of(&files, &config.model)?.0));
    } else if let Some((table, _)) = files.table_task(&config.model).map_err(Error::from)? {
        text += &section("table", &columns(&table));
    }
    text += &memory::sections(&config.model, training_of(path)?.as_ref(), None)?;
    if let Some(progress) = progress(&directory)? {
        text += &section("progress", &fields(&progress));
    }
    Ok(text + &section("tensors", &sizes(parameter_shapes(&model))))
}

fn vocabulary(tokenizer: &Tokenizer) -> (String, String) {
    ("tokenizer".to_owned(), format!("{} tokens", grouped(tokenizer.vocab_size() as u128)))
}

/// Every setting of a model, in the order of its definition.
fn settings(config: &ModelConfig) -> anyhow::Result<Vec<(String, String)>> {
    let text = toml::to_string(config).context("could not list the configuration")?;
    let lines = text.lines().filter_map(|line| line.split_once(" = "));
    Ok(lines.map(|(key, value)| (key.to_owned(), value.trim_matches('"').to_owned())).collect())
}

/// What `progress.json` says, if there is one: a model that was passed on has none.
fn progress(directory: &Path) -> anyhow::Result<Option<Map<String, Value>>> {
    let files = CheckpointFiles::open(directory).map_err(Error::from)?;
    let Some(text) = files.find(PROGRESS_FILE, MAX_PROGRESS_BYTES).map_err(Error::from)? else { return Ok(None) };
    let not_ours = |error| Error::malformed(files.path(PROGRESS_FILE), format!("expected a JSON object: {error}"));
    Ok(Some(serde_json::from_slice(&text).map_err(not_ours)?))
}

fn fields(object: &Map<String, Value>) -> Vec<(String, String)> {
    object.iter().map(|(key, value)| (printable(key), in_words(value))).collect()
}

/// A value on one line: objects as keys and values, and numbers that are not whole with their significant digits.
fn in_words(value: &Value) -> String {
    match value {
        Value::String(text) => printable(text),
        Value::Null => "none".to_owned(),
        Value::Bool(_) => value.to_string(),
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(x) => significant(x).parse().map_or_else(|_| value.to_string(), |rounded| Shortest(rounded).to_string()),
            None => value.to_string(),
        },
        Value::Array(values) if values.is_empty() => "none".to_owned(),
        Value::Array(values) if values.iter().all(Value::is_object) => joined(values.iter().map(in_words), "; "),
        Value::Array(values) => format!("[{}]", joined(values.iter().map(in_words), ", ")),
        Value::Object(object) => joined(fields(object).into_iter().map(|(key, value)| format!("{key} {value}")), ", "),
    }
}

fn joined(words: impl Iterator<Item = String>, between: &str) -> String {
    words.collect::<Vec<_>>().join(between)
}

fn sizes(shapes: Vec<(String, Vec<usize>)>) -> Vec<(String, String)> {
    shapes.into_iter().map(|(name, shape)| (name, format!("{shape:?}"))).collect()
}

/// A heading and two columns; empty if there are no rows.
fn section(title: &str, rows: &[(String, String)]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let lines = rows.iter().map(|(name, value)| format!("  {name:width$}  {value}\n"));
    format!("\n{title}\n{}", lines.collect::<String>())
}

/// 6711105 as "6 711 105".
fn grouped(n: u128) -> String {
    let digits = n.to_string();
    let spaced = digits.char_indices().flat_map(|(i, digit)| {
        let space = i > 0 && (digits.len() - i).is_multiple_of(3);
        space.then_some(' ').into_iter().chain([digit])
    });
    spaced.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_run_has_come_to_stands_in_words() {
        let progress = serde_json::json!({
            "best": [{"iteration": 40, "loss": 0.703_312_3, "score": 0.25}, {"iteration": 20, "score": 1e-9}], "evaluated_at": null, "none_yet": [],
            "seconds": 1.814_207_082, "spreads": {"factors": [[1.25, 1.0], [0.5, 2.0]], "median": 1}, "tokens": 28_800
        });
        let Value::Object(progress) = progress else { unreachable!("it is an object") };
        let told: Vec<String> = fields(&progress).into_iter().map(|(key, value)| format!("{key}: {value}")).collect();
        assert_eq!(
            told,
            [
                "best: iteration 40, loss 0.70331, score 0.25; iteration 20, score 1e-9",
                "evaluated_at: none",
                "none_yet: none",
                "seconds: 1.8142",
                "spreads: factors [[1.25, 1], [0.5, 2]], median 1",
                "tokens: 28800"
            ]
        );
    }
}
