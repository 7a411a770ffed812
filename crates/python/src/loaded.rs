//! What is read from a file or a directory: the model, and what its inputs and outputs mean.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use minrnn::checkpoint::policy_of;
use minrnn::data::offline_rl::StepEncoding;
use minrnn_model::{
    CONFIG_FILE, CheckpointFiles, TableTask, TensorEntry, Tokenizer, WEIGHTS_FILE, WeightFormat, read_checkpoint, read_text,
};
use minrnn_stream::{AlignedBytes, Model, PackedModel, Reads};
use sha2::{Digest, Sha256};

use crate::failure::{Failure, Mistake, Result};

const MAX_NAME_BYTES: u64 = 256;

/// A model, shared by all of its sessions.
pub(crate) struct Loaded {
    pub model: Model,
    pub table: Option<TableTask>,
    /// How a step becomes numbers, of a policy.
    pub encoding: Option<StepEncoding>,
    tokenizer: Option<Tokenizer>,
    /// The tensors of a packed file.
    pub tensors: Vec<TensorEntry>,
    /// Where it was read from; none where it came as bytes.
    pub path: Option<PathBuf>,
    origin: Origin,
    identity: OnceLock<String>,
}

/// What a saved session must have been made with.
enum Origin {
    /// The packed file, whose memory is that of the matrices.
    Packed(AlignedBytes),
    /// The checkpoint's directory.
    Directory(PathBuf),
}

impl Loaded {
    /// The model at `path`: a packed file, a checkpoint, or a run, whose best checkpoint it is.
    pub fn read(path: &Path) -> Result<Self> {
        if path.is_dir() {
            return Self::of_directory(path);
        }
        let bytes = minrnn_stream::read_aligned(path)?;
        let named = |failure: Failure| match failure {
            Failure::Said(kind, sentence) => Failure::Said(kind, format!("'{}': {sentence}", path.display())),
            raised => raised,
        };
        Ok(Self { path: Some(path.to_owned()), ..Self::of_bytes(bytes).map_err(named)? })
    }

    /// The packed model with these bytes.
    pub fn of_bytes(bytes: AlignedBytes) -> Result<Self> {
        let PackedModel { model, tokenizer, table, policy, tensors, .. } = PackedModel::from_aligned(&bytes)?;
        let tokenizer = tokenizer.map(|json| Tokenizer::from_json(&json)).transpose()?;
        let encoding = policy.map(|json| StepEncoding::of_model(&json, model.config())).transpose()?;
        Self { model, table, encoding, tokenizer, tensors, path: None, origin: Origin::Packed(bytes), identity: OnceLock::new() }.checked()
    }

    fn of_directory(path: &Path) -> Result<Self> {
        let directory = checkpoint_in(path)?;
        let (config, mut weights) = read_checkpoint(&directory)?;
        let model = Model::new(&config.model, &mut weights, WeightFormat::F32)?;
        let files = CheckpointFiles::open(&directory)?;
        let tokenizer = files.tokenizer()?.map(|(tokenizer, _)| tokenizer);
        let table = files.table_task(&config.model)?.map(|(task, _)| task);
        let encoding = model.is_policy().then(|| policy_of(&files, &config.model)).transpose()?.map(|(encoding, _)| encoding);
        let origin = Origin::Directory(directory);
        Self { model, table, encoding, tokenizer, tensors: Vec::new(), path: Some(path.to_owned()), origin, identity: OnceLock::new() }
            .checked()
    }

    fn checked(self) -> Result<Self> {
        let (found, known) = (self.tokenizer.as_ref().map_or(0, Tokenizer::vocab_size), self.model.vocab_size());
        if found > known {
            let sentence = format!("the tokenizer has {found} tokens, but the model knows {known}; take the tokenizer of this model");
            return Err(Failure::new(Mistake::Model, sentence));
        }
        Ok(self)
    }

    /// The digest of the file, or of the configuration and weights of a checkpoint: as the command line has it in saved sessions.
    pub fn identity(&self) -> Result<&str> {
        if let Some(identity) = self.identity.get() {
            return Ok(identity);
        }
        let mut hash = Sha256::new();
        match &self.origin {
            Origin::Packed(bytes) => hash.update(&bytes[..]),
            Origin::Directory(directory) => {
                for path in [CONFIG_FILE, WEIGHTS_FILE].map(|file| directory.join(file)) {
                    hash.update(std::fs::read(&path).map_err(|source| minrnn_model::Error::io("read", &path, source))?);
                }
            }
        }
        Ok(self.identity.get_or_init(|| hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// Whether it reads text.
    pub fn has_tokenizer(&self) -> bool {
        self.tokenizer.is_some()
    }

    /// The tokenizer, where the model reads text.
    pub fn tokenizer(&self) -> Result<&Tokenizer> {
        let none = || Failure::new(Mistake::Kind, "the model has no tokenizer: it does not read text");
        self.tokenizer.as_ref().ok_or_else(none)
    }

    /// What the model is for, in a word.
    pub fn kind(&self) -> &'static str {
        match (&self.table, &self.tokenizer, self.model.reads()) {
            (Some(TableTask::Classify(_)), ..) => "classifier",
            (Some(TableTask::Regress(_)), ..) => "regressor",
            (Some(TableTask::Forecast(_)), ..) => "forecaster",
            (None, Some(_), _) => "text",
            (None, None, _) if self.model.is_policy() => "policy",
            (None, None, Reads::Tokens { .. }) => "tokens",
            (None, None, Reads::Values { .. }) => "values",
        }
    }
}

/// The directory itself, or that of the best checkpoint of a run, or else its last.
fn checkpoint_in(path: &Path) -> Result<PathBuf> {
    if path.join(CONFIG_FILE).is_file() {
        return Ok(path.to_owned());
    }
    let checkpoints = path.join("checkpoints");
    for pointer in ["best", "last"].map(|name| checkpoints.join(name)) {
        if !pointer.is_file() {
            continue;
        }
        let text = read_text(&pointer, MAX_NAME_BYTES)?;
        let name = text.trim();
        if name.is_empty() || name.contains(['/', '\\', '\0']) || name == ".." {
            let sentence = format!("'{}': expected the name of a checkpoint beside it, found '{name}'", pointer.display());
            return Err(Failure::new(Mistake::Model, sentence));
        }
        return Ok(checkpoints.join(name));
    }
    let sentence =
        "expected a packed model, a run directory or a checkpoint, found a directory with neither a checkpoints/best nor a config.json";
    Err(Failure::new(Mistake::Model, format!("'{}': {sentence}", path.display())))
}
