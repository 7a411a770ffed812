//! A model for inference: from a run, a checkpoint, or a packed file.

use std::path::{Path, PathBuf};

use minrnn::Error;
use minrnn::checkpoint::TOKENIZER_FILE;
use minrnn::data::Tokenizer;
use minrnn::generate::ModelIdentity;
use minrnn::train::find_checkpoint;
use minrnn_stream::{CONFIG_FILE, Model, PackedModel, TensorEntry, WEIGHTS_FILE};

/// A model as the runtime holds it.
pub struct Deployed {
    pub model: Model,
    /// The vocabulary, where the model reads text.
    pub tokenizer: Option<Tokenizer>,
    /// The checkpoint directory or the packed file.
    pub path: PathBuf,
    /// The tensors of a packed file.
    pub tensors: Vec<TensorEntry>,
}

impl Deployed {
    /// Reads the best checkpoint of a run, a checkpoint, or a packed file.
    pub fn load(path: &Path) -> minrnn::Result<Self> {
        let (model, tokenizer, path, tensors) = if path.is_file() {
            let packed = PackedModel::read(path).map_err(|error| not_a_model(path, error))?;
            let tokenizer = packed.tokenizer.map(|json| Tokenizer::from_bytes(&json, path)).transpose()?;
            (packed.model, tokenizer, path.to_owned(), packed.tensors)
        } else {
            let directory = find_checkpoint(path)?;
            let model = Model::load(&directory)?;
            let file = directory.join(TOKENIZER_FILE);
            let tokenizer = if file.exists() { Some(Tokenizer::load(&file)?) } else { None };
            (model, tokenizer, directory, Vec::new())
        };
        if let Some(found) = tokenizer.as_ref().map(Tokenizer::vocab_size).filter(|&found| found > model.vocab_size()) {
            let expected = model.vocab_size();
            let problem = format!("its tokenizer has {found} tokens, but the model knows {expected}; take the tokenizer of this model");
            return Err(Error::malformed(path, problem));
        }
        Ok(Self { model, tokenizer, path, tensors })
    }

    /// What a saved session must have been made with.
    pub fn identity(&self) -> minrnn::Result<ModelIdentity> {
        match self.path.is_dir() {
            true => ModelIdentity::of_files(&[CONFIG_FILE, WEIGHTS_FILE].map(|file| self.path.join(file))),
            false => ModelIdentity::of_files(&[&self.path]),
        }
    }
}

/// Whoever gave a file may have meant a directory.
fn not_a_model(path: &Path, error: minrnn_stream::Error) -> Error {
    match error {
        minrnn_stream::Error::Malformed { problem, .. } => {
            Error::malformed(path, format!("{problem}; expected a run directory or a checkpoint, or a file made by minrnn pack"))
        }
        error => error.into(),
    }
}
