//! A model for inference: from a run, a checkpoint, or a packed file.
//!
//! [`Deployed::load`] reads any of them; [`score`] gives the loss on a text by the runtime.

mod score;

pub use score::{Score, score};

use std::path::{Path, PathBuf};

use burn::tensor::Device;
use minrnn_model::{CONFIG_FILE, ModelConfig, TensorEntry, WEIGHTS_FILE, WeightFormat, read_checkpoint};
use minrnn_stream::{Model, PackedModel};

use crate::checkpoint::{LoadedModel, load_model, load_tokenizer, parameter_count};
use crate::data::Tokenizer;
use crate::generate::ModelIdentity;
use crate::model::SequenceModel;
use crate::train::find_checkpoint;
use crate::{Error, Result};

/// What runs a model.
pub enum Engine {
    /// The inference runtime.
    Runtime(Box<Model>),
    /// The model as it was trained, where the runtime lacks one of its mixers.
    Training(Box<(ModelConfig, SequenceModel)>),
}

/// A trained model, ready for inference.
pub struct Deployed {
    /// What runs it.
    pub engine: Engine,
    /// The vocabulary, where the model reads text.
    pub tokenizer: Option<Tokenizer>,
    /// The checkpoint directory or the packed file.
    pub path: PathBuf,
    /// The tensors of a packed file.
    pub tensors: Vec<TensorEntry>,
}

impl Deployed {
    /// Reads the best checkpoint of a run, a checkpoint, or a packed file.
    ///
    /// # Errors
    /// When it is none of them, damaged, or its tokenizer has more tokens than the model.
    pub fn load(path: &Path) -> Result<Self> {
        let (engine, tokenizer, path, tensors) = if path.is_file() {
            let packed = PackedModel::read(path).map_err(|error| not_a_model(path, error))?;
            let tokenizer = packed.tokenizer.map(|json| Tokenizer::from_bytes(&json, path)).transpose()?;
            (Engine::Runtime(Box::new(packed.model)), tokenizer, path.to_owned(), packed.tensors)
        } else {
            let directory = find_checkpoint(path)?;
            let (engine, tokenizer) = Engine::load(&directory)?;
            (engine, tokenizer, directory, Vec::new())
        };
        if let Some(found) = tokenizer.as_ref().map(Tokenizer::vocab_size).filter(|&found| found > engine.config().vocab_size) {
            let expected = engine.config().vocab_size;
            let problem = format!("its tokenizer has {found} tokens, but the model knows {expected}; take the tokenizer of this model");
            return Err(Error::malformed(path, problem));
        }
        Ok(Self { engine, tokenizer, path, tensors })
    }

    /// The model in the runtime.
    ///
    /// # Errors
    /// When the runtime lacks one of its mixers.
    pub fn runtime(&self) -> Result<&Model> {
        match &self.engine {
            Engine::Runtime(model) => Ok(model),
            Engine::Training(trained) => {
                minrnn_stream::check_supported(&trained.0)?;
                unreachable!("models that the runtime runs are loaded into it")
            }
        }
    }

    /// What a saved session must have been made with.
    ///
    /// # Errors
    /// When its files cannot be read.
    pub fn identity(&self) -> Result<ModelIdentity> {
        match self.path.is_dir() {
            true => ModelIdentity::of_files(&[CONFIG_FILE, WEIGHTS_FILE].map(|file| self.path.join(file))),
            false => ModelIdentity::of_files(&[&self.path]),
        }
    }
}

impl Engine {
    /// The model of a checkpoint and its vocabulary.
    fn load(directory: &Path) -> Result<(Self, Option<Tokenizer>)> {
        let (config, mut weights) = read_checkpoint(directory)?;
        if minrnn_stream::check_supported(&config.model).is_err() {
            let LoadedModel { config, model, tokenizer } = load_model(directory, &Device::flex())?;
            return Ok((Self::Training(Box::new((config.model, model))), tokenizer));
        }
        let model = Model::new(&config.model, &mut weights, WeightFormat::F32)?;
        Ok((Self::Runtime(Box::new(model)), load_tokenizer(directory)?))
    }

    /// What the model is.
    pub fn config(&self) -> &ModelConfig {
        match self {
            Self::Runtime(model) => model.config(),
            Self::Training(trained) => &trained.0,
        }
    }

    /// Number of trainable parameters.
    pub fn parameters(&self) -> usize {
        match self {
            Self::Runtime(model) => model.parameters(),
            Self::Training(trained) => parameter_count(&trained.1),
        }
    }
}

/// Whoever gave a file may have meant a directory.
fn not_a_model(path: &Path, error: minrnn_stream::Error) -> Error {
    match error {
        minrnn_stream::Error::Model(minrnn_model::Error::Malformed { problem, .. }) => {
            Error::malformed(path, format!("{problem}; expected a run directory or a checkpoint, or a packed model"))
        }
        error => error.into(),
    }
}
