//! A model for inference: from a run, a checkpoint, or a packed file.
//!
//! [`Deployed::load`] loads any of them. With the runtime, [`score`] computes the loss on a text, [`predict`] predictions for the sequences
//! of a table, [`evaluate`] scores on batches, [`score_rows`] and [`TextScorer`] how surprising the rows of tables and texts are, and
//! [`write_inside`] writes the model's internal activations.

mod acting;
mod evaluation;
mod groups;
mod held_out;
mod inside;
mod packing;
mod predictions;
mod row_surprise;
mod saved;
mod score;
mod surprise;
mod text_rows;
mod text_surprise;
mod unknown_characters;
mod usual;

pub use acting::DeployedPolicy;
pub use evaluation::{evaluate, evaluate_memory};
pub use groups::Groups;
pub use held_out::{HeldOut, held_out_text};
pub use inside::{InsideFiles, InsideInputs, write_inside};
pub use packing::{Packed, pack};
pub use predictions::{predict, prediction_memory};
pub use row_surprise::{calibrate_rows, score_rows, scoring_memory};
pub use score::{Score, score, score_memory};
pub use surprise::{Listener, Surprise};
pub use text_rows::{RowUnit, TextRow, TextRows};
pub use text_surprise::TextScorer;
pub use usual::{Usual, exceeds};

use std::path::{Path, PathBuf};

use minrnn_model::{CONFIG_FILE, Calibration, CheckpointFiles, TableTask, TensorEntry, WEIGHTS_FILE, WeightFormat, read_checkpoint};
use minrnn_stream::{AlignedBytes, Model, PackedModel, read_aligned};

use crate::checkpoint::policy_of;
use crate::data::Tokenizer;
use crate::data::offline_rl::StepEncoding;
use crate::generate::ModelIdentity;
use crate::train::{find_checkpoint, named_in};
use crate::{Error, Result};

/// A trained model, ready for inference.
pub struct Deployed {
    /// The model in the runtime.
    pub model: Model,
    /// The vocabulary, if the model reads text.
    pub tokenizer: Option<Tokenizer>,
    /// The task on tables, if the model was trained on one.
    pub table: Option<TableTask>,
    /// The encoding of steps as numbers, if the model is a policy.
    pub policy: Option<StepEncoding>,
    /// How surprising held-out rows were, if known.
    pub surprise: Option<Calibration>,
    /// The checkpoint directory or the packed file; empty if the model was loaded from bytes.
    pub path: PathBuf,
    /// The tensors of a packed file.
    pub tensors: Vec<TensorEntry>,
    /// The content of a packed file; the matrices point into it.
    packed: Option<AlignedBytes>,
}

impl Deployed {
    /// Loads the best checkpoint of a run, a checkpoint, or a packed file.
    ///
    /// # Errors
    /// When it is none of them, damaged, or its tokenizer has more tokens than the model.
    pub fn load(path: &Path) -> Result<Self> {
        if !path.is_file() {
            return Self::of_checkpoint(find_checkpoint(path)?);
        }
        let bytes = read_aligned(path).map_err(|error| not_a_model(path, error))?;
        let deployed = Self::from_bytes(bytes).map_err(|error| Error::malformed(path, error.to_string()))?;
        Ok(Self { path: path.to_owned(), ..deployed })
    }

    /// Loads a packed model from the bytes of its file.
    ///
    /// # Errors
    /// When they are damaged or not those of a packed model, or its tokenizer has more tokens than the model.
    pub fn from_bytes(bytes: AlignedBytes) -> Result<Self> {
        let PackedModel { model, tokenizer, table, policy, surprise, tensors, .. } = PackedModel::from_aligned(&bytes)?;
        let tokenizer = tokenizer.map(|json| Tokenizer::from_json(&json)).transpose()?;
        let policy = policy.map(|json| StepEncoding::of_model(&json, model.config())).transpose();
        let policy = policy.map_err(|error| minrnn_model::Error::Packed(format!("has a section 'policy': {error}")))?;
        Self { model, tokenizer, table, policy, surprise, path: PathBuf::new(), tensors, packed: Some(bytes) }.checked()
    }

    fn of_checkpoint(directory: PathBuf) -> Result<Self> {
        let (config, mut weights) = read_checkpoint(&directory)?;
        let model = Model::new(&config.model, &mut weights, WeightFormat::F32)?;
        let files = CheckpointFiles::open(&directory)?;
        let tokenizer = files.tokenizer()?.map(|(tokenizer, _)| tokenizer);
        let table = files.table_task(&config.model)?.map(|(task, _)| task);
        let policy = model.is_policy().then(|| policy_of(&files, model.config())).transpose()?.map(|(encoding, _)| encoding);
        let surprise = files.surprise()?.map(|(surprise, _)| surprise);
        let deployed = Self { model, tokenizer, table, policy, surprise, path: directory.clone(), tensors: Vec::new(), packed: None };
        deployed.checked().map_err(|error| Error::malformed(directory, error.to_string()))
    }

    fn checked(self) -> Result<Self> {
        if let Some(tokenizer) = &self.tokenizer {
            tokenizer.expect_known(self.model.vocab_size())?;
        }
        Ok(self)
    }

    /// Whether it is a packed file.
    pub fn is_packed(&self) -> bool {
        self.packed.is_some()
    }

    /// The identity that a saved session must match.
    ///
    /// # Errors
    /// When the files of its checkpoint cannot be read.
    pub fn identity(&self) -> Result<ModelIdentity> {
        match &self.packed {
            Some(bytes) => Ok(ModelIdentity::of_bytes(bytes)),
            None => ModelIdentity::of_files(&[CONFIG_FILE, WEIGHTS_FILE].map(|file| self.path.join(file))),
        }
    }
}

/// The error for a file that is not a packed model: the user may have meant its directory, or the checkpoint named in it.
fn not_a_model(path: &Path, error: minrnn_stream::Error) -> Error {
    if let Some(checkpoint) = named_in(path) {
        let checkpoint = checkpoint.display();
        return Error::malformed(
            path,
            format!("it holds the name of a checkpoint and no model; give the checkpoint, '{checkpoint}', or its run"),
        );
    }
    match error {
        minrnn_stream::Error::Model(minrnn_model::Error::Malformed { problem, .. }) => {
            Error::malformed(path, format!("{problem}; expected a run directory or a checkpoint, or a packed model"))
        }
        error => error.into(),
    }
}
