//! A model for inference: from a run, a checkpoint, or a packed file.
//!
//! [`Deployed::load`] reads any of them; [`score`] gives the loss on a text, [`predict`] what is predicted for the sequences of a table,
//! [`evaluate`] the measures of batches, [`score_rows`] and [`Surprise`] how surprising rows and texts are, and [`write_inside`] what the model has
//! inside, all by the runtime.

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

pub use acting::DeployedPolicy;
pub use evaluation::evaluate;
pub use groups::Groups;
pub use held_out::held_out_text;
pub use inside::{InsideFiles, InsideInputs, write_inside};
pub use packing::{Packed, pack};
pub use predictions::predict;
pub use row_surprise::score_rows;
pub use score::{Score, score};
pub use surprise::{Listener, Surprise};
pub use text_rows::{RowUnit, TextRow, TextRows};

use std::path::{Path, PathBuf};

use minrnn_model::{CONFIG_FILE, Calibration, CheckpointFiles, TableTask, TensorEntry, WEIGHTS_FILE, WeightFormat, read_checkpoint};
use minrnn_stream::{Model, PackedModel};

use crate::checkpoint::{policy_of, surprise_of, table_task_of, tokenizer_of};
use crate::data::Tokenizer;
use crate::data::offline_rl::StepEncoding;
use crate::generate::ModelIdentity;
use crate::train::find_checkpoint;
use crate::{Error, Result};

/// A trained model, ready for inference.
pub struct Deployed {
    /// The model in the runtime.
    pub model: Model,
    /// The vocabulary, where the model reads text.
    pub tokenizer: Option<Tokenizer>,
    /// The task on tables, where the model was trained on one.
    pub table: Option<TableTask>,
    /// How a step becomes numbers, where the model is a policy.
    pub policy: Option<StepEncoding>,
    /// How surprising rows were that it did not learn from, where that is known.
    pub surprise: Option<Calibration>,
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
        let deployed = if path.is_file() {
            let packed = PackedModel::read(path).map_err(|error| not_a_model(path, error))?;
            let tokenizer = packed.tokenizer.map(|json| Tokenizer::from_bytes(&json, path)).transpose()?;
            let of_policy = |json: Vec<u8>| StepEncoding::of_model(&json, packed.model.config());
            let policy = packed.policy.map(of_policy).transpose().map_err(|error| Error::malformed(path, error.to_string()))?;
            let PackedModel { model, table, surprise, tensors, .. } = packed;
            Self { model, tokenizer, table, policy, surprise, path: path.to_owned(), tensors }
        } else {
            let directory = find_checkpoint(path)?;
            let (config, mut weights) = read_checkpoint(&directory)?;
            let model = Model::new(&config.model, &mut weights, WeightFormat::F32)?;
            let files = CheckpointFiles::open(&directory)?;
            let tokenizer = tokenizer_of(&files)?.map(|(tokenizer, _)| tokenizer);
            let table = table_task_of(&files, &config.model)?.map(|(task, _)| task);
            let policy = model.is_policy().then(|| policy_of(&files, model.config())).transpose()?.map(|(encoding, _)| encoding);
            let surprise = surprise_of(&files)?.map(|(surprise, _)| surprise);
            Self { model, tokenizer, table, policy, surprise, path: directory, tensors: Vec::new() }
        };
        let expected = deployed.model.vocab_size();
        if let Some(found) = deployed.tokenizer.as_ref().map(Tokenizer::vocab_size).filter(|&found| found > expected) {
            let problem = format!("its tokenizer has {found} tokens, but the model knows {expected}; take the tokenizer of this model");
            return Err(Error::malformed(path, problem));
        }
        Ok(deployed)
    }

    /// Whether it is a packed file.
    pub fn is_packed(&self) -> bool {
        !self.tensors.is_empty()
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

/// Whoever gave a file may have meant a directory.
fn not_a_model(path: &Path, error: minrnn_stream::Error) -> Error {
    match error {
        minrnn_stream::Error::Model(minrnn_model::Error::Malformed { problem, .. }) => {
            Error::malformed(path, format!("{problem}; expected a run directory or a checkpoint, or a packed model"))
        }
        error => error.into(),
    }
}
