//! What a model needs of memory, in training and in use, as lines and as JSON.

use minrnn::Error;
use minrnn::memory::{Estimate, rounded};
use minrnn::train::{Experiment, ResolvedModel, training_memory_of};
use minrnn_model::ModelConfig;
use serde_json::{Map, Value, json};

use super::section;

/// Bytes of a number of a state, and of a weight before packing.
const F32: u128 = size_of::<f32>() as u128;

/// What a training is about.
pub struct Training {
    pub experiment: Experiment,
    /// Steps of the longest sequence, where the data tell.
    pub longest: Option<usize>,
}

impl Training {
    /// Of an experiment whose data may be gone.
    pub fn of_run(experiment: Experiment) -> Option<Self> {
        let longest = ResolvedModel::of(&experiment).ok()?.longest;
        Some(Self { experiment, longest })
    }

    fn estimate(&self, model: &ModelConfig) -> minrnn::Result<Estimate> {
        training_memory_of(&self.experiment, model, self.longest)
    }
}

/// The section about `training`, when there is one, and the one about use, whose weights have `packed` bytes or are f32.
pub fn sections(config: &ModelConfig, training: Option<&Training>, packed: Option<u128>) -> anyhow::Result<String> {
    let mut text = String::new();
    if let Some(training) = training {
        let estimate = training.estimate(config)?;
        let mut rows: Vec<(String, String)> = estimate.parts.iter().map(|part| (part.name.to_owned(), rounded(part.bytes))).collect();
        rows.push(("in all".to_owned(), format!("about {}", rounded(estimate.total()))));
        text += &section("memory of training", &rows);
    }
    let Use { weights, session, token } = Use::of(config, packed)?;
    let mut rows = vec![("weights".to_owned(), rounded(weights)), ("each sequence".to_owned(), rounded(session))];
    if token > 0 {
        rows.push(("each token of it".to_owned(), format!("{} (where a cache grows)", rounded(token))));
    }
    Ok(text + &section("memory of use", &rows))
}

/// What a model needs where it is used.
struct Use {
    weights: u128,
    /// Of each sequence, at its beginning.
    session: u128,
    /// What caches that grow add for each of its tokens.
    token: u128,
}

impl Use {
    fn of(config: &ModelConfig, packed: Option<u128>) -> anyhow::Result<Self> {
        let cost = config.cost().map_err(Error::from)?;
        let token = cost.past.iter().filter(|past| past.grows).map(|past| past.len_per_token).sum::<u128>();
        Ok(Self { weights: packed.unwrap_or(F32 * cost.parameters), session: F32 * cost.carried(0), token: F32 * token })
    }
}

/// The model's size and memory as one JSON object; bytes are whole numbers.
pub fn json(config: &ModelConfig, training: Option<&Training>, packed: Option<u128>) -> anyhow::Result<String> {
    let cost = config.cost().map_err(Error::from)?;
    let Use { weights, session, token } = Use::of(config, packed)?;
    let mut object = json!({
        "model": config,
        "parameters": number(cost.parameters),
        "flops_of_first_token": number(cost.flops(1)),
        "memory_of_use": {"weights": number(weights), "each_sequence": number(session), "each_token": number(token)},
    });
    if let Some(training) = training {
        object["memory_of_training"] = of_estimate(&training.estimate(config)?);
    }
    Ok(format!("{object}\n"))
}

fn of_estimate(estimate: &Estimate) -> Value {
    let parts: Map<String, Value> = estimate.parts.iter().map(|part| (part.name.to_owned(), number(part.bytes))).collect();
    json!({"bytes": number(estimate.total()), "parts": parts})
}

/// JSON has no number beyond 64 bits here.
fn number(n: u128) -> Value {
    u64::try_from(n).unwrap_or(u64::MAX).into()
}
