//! What a path may name, and the size and memory of its model: an experiment, a configuration, a run, a checkpoint, or a packed file.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use minrnn_model::{CheckpointConfig, ModelConfig};
use minrnn_stream::PackedModel;
use serde_json::{Map, Value, json};

use crate::deployed::Deployed;
use crate::interchange::Settings;
use crate::memory::Estimate;
use crate::train::{EXPERIMENT_FILE, Experiment, ResolvedModel, experiments, find_checkpoint, training_memory_of};
use crate::{Error, Needed, Result};

/// Bytes per number of a state, and per weight before packing.
const F32: u128 = size_of::<f32>() as u128;

/// What a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject<'a> {
    /// The name of a built-in experiment, or the path of a TOML file.
    Experiment(&'a str),
    /// A JSON file.
    Configuration,
    /// A packed model, or tensors.
    File,
    /// A run or a checkpoint, or nothing.
    Directory,
}

impl<'a> Subject<'a> {
    /// What `path` names, whether or not it exists.
    pub fn of(path: &'a Path) -> Self {
        let extension = path.extension().and_then(|extension| extension.to_str());
        match (path.to_str(), extension) {
            (Some(name), Some("toml")) => Self::Experiment(name),
            // A directory may have the name of an experiment.
            (Some(name), _) if experiments::NAMES.contains(&name) && !path.exists() => Self::Experiment(name),
            // A name that is not an existing path is most likely a misspelt experiment.
            (Some(name), None) if !path.exists() && path.components().count() == 1 => Self::Experiment(name),
            (_, Some("json")) => Self::Configuration,
            _ if path.is_file() => Self::File,
            _ => Self::Directory,
        }
    }

    /// The size and memory of its model as one JSON object, with `settings` on top of an experiment or a configuration; bytes are integers.
    ///
    /// # Errors
    /// When it cannot be read, has no model, or does not accept settings.
    pub fn to_json(self, path: &Path, settings: &[String]) -> Result<Value> {
        self.expect_settings(settings)?;
        match self {
            Self::Experiment(name) => {
                let experiment = Experiment::load(name, settings)?;
                let ResolvedModel { model, longest, .. } = untrained(name, &experiment)?;
                object(&model, Some(&Training { experiment, longest }), None)
            }
            Self::Configuration => object(&stored_config(path, settings)?, None, None),
            Self::File if is_packed(path) => {
                let deployed = Deployed::load(path)?;
                object(deployed.model.config(), None, Some(bytes_of(&deployed)))
            }
            Self::File => {
                Err(Error::Config("a file of tensors does not describe a model; give a run, a checkpoint or a packed model".to_owned()))
            }
            Self::Directory => {
                let config = CheckpointConfig::read(find_checkpoint(path)?)?;
                object(&config.model, training_of(path)?.as_ref(), None)
            }
        }
    }

    /// Refuses settings for a trained model.
    ///
    /// # Errors
    /// When there are any.
    pub fn expect_settings(self, settings: &[String]) -> Result<()> {
        if settings.is_empty() || matches!(self, Self::Experiment(_) | Self::Configuration) {
            return Ok(());
        }
        Err(Error::Config("settings change only an experiment or a config.json, not a trained model; leave them out".to_owned()))
    }
}

/// The untrained model of the `experiment` called `name`.
///
/// # Errors
/// When its size depends on data that are missing.
pub fn untrained(name: &str, experiment: &Experiment) -> Result<ResolvedModel> {
    ResolvedModel::of(experiment).map_err(|error| match error {
        Error::Needed { what: Needed::File, .. } => {
            Error::Config(format!("experiment '{name}' learns from a file, which says how large its model is; train it, and give the run"))
        }
        error => error,
    })
}

/// A training whose memory is estimated.
pub struct Training {
    /// The experiment.
    pub experiment: Experiment,
    /// Length of the longest sequence in steps, if the data determine it.
    pub longest: Option<usize>,
}

impl Training {
    /// The training of an experiment whose data may be gone.
    pub fn of_run(experiment: Experiment) -> Option<Self> {
        let longest = ResolvedModel::of(&experiment).ok()?.longest;
        Some(Self { experiment, longest })
    }

    /// The memory needed to train `model`.
    ///
    /// # Errors
    /// When the model is not valid.
    pub fn estimate(&self, model: &ModelConfig) -> Result<Estimate> {
        training_memory_of(&self.experiment, model, self.longest)
    }
}

/// The memory a model needs in use, in bytes.
pub struct Use {
    /// For its weights.
    pub weights: u128,
    /// For each sequence, initially.
    pub session: u128,
    /// For each token of a sequence, if caches grow.
    pub token: u128,
}

impl Use {
    /// For the model of `config`, whose weights have `packed` bytes or are f32.
    ///
    /// # Errors
    /// When the configuration is not valid.
    pub fn of(config: &ModelConfig, packed: Option<u128>) -> Result<Self> {
        let cost = config.cost()?;
        let token = cost.past.iter().filter(|past| past.grows).map(|past| past.len_per_token).sum::<u128>();
        Ok(Self { weights: packed.unwrap_or(F32 * cost.parameters), session: F32 * cost.carried(0), token: F32 * token })
    }
}

fn object(config: &ModelConfig, training: Option<&Training>, packed: Option<u128>) -> Result<Value> {
    let cost = config.cost()?;
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
    Ok(object)
}

fn of_estimate(estimate: &Estimate) -> Value {
    let parts: Map<String, Value> = estimate.parts.iter().map(|part| (part.name.to_owned(), number(part.bytes))).collect();
    json!({"bytes": number(estimate.total()), "parts": parts})
}

/// JSON integers are limited to 64 bits here.
fn number(n: u128) -> Value {
    u64::try_from(n).unwrap_or(u64::MAX).into()
}

/// The training of the run directory `run`, if it is one.
///
/// # Errors
/// When its experiment cannot be read.
pub fn training_of(run: &Path) -> Result<Option<Training>> {
    let path = run.join(EXPERIMENT_FILE);
    Ok(if path.is_file() { Training::of_run(Experiment::load_file(path, &[])?) } else { None })
}

/// Whether `path` is a packed model, judging by its first bytes.
pub fn is_packed(path: &Path) -> bool {
    let mut start = [0; PackedModel::MAGIC.len()];
    let begins = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    begins.is_ok() && start == PackedModel::MAGIC
}

/// Bytes of the tensors of a packed model.
pub fn bytes_of(deployed: &Deployed) -> u128 {
    deployed.tensors.iter().map(|tensor| tensor.bytes as u128).sum()
}

/// The configuration in the file `path`, with `settings` on top.
///
/// # Errors
/// When it cannot be read, or a setting is not valid.
pub fn stored_config(path: &Path, settings: &[String]) -> Result<ModelConfig> {
    let stored = CheckpointConfig::read_file(path)?;
    let config = Settings::parse(settings)?.over(&stored.model)?;
    config.validate()?;
    Ok(config)
}
