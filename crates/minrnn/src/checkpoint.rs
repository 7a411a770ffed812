//! Checkpoint directories: a self-describing model, and what is needed to resume training.
//!
//! | file | content |
//! |---|---|
//! | `config.json` | the whole configuration and the format's version |
//! | `model.safetensors` | the weights, PyTorch names and layouts |
//! | `tokenizer.json` | the vocabulary, for text |
//! | `task.json` | names, means and standard deviations of a task's data, if it has any |
//! | `surprise.json` | how surprising held-out rows were, if the model can tell; written when training has ended |
//! | `training.safetensors` | moments of the optimiser and the carried state, for resuming |
//! | `progress.json` | counters, for resuming |
//! | `SHA256SUMS` | the digest of each of them, checked on reading; files it does not list are refused; checkpoints without it are read unchecked |

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use burn::module::Module;
use burn::tensor::{Device, TensorData};
use minrnn_model::{
    CheckpointConfig, CheckpointFiles, MAX_TASK_BYTES, ModelConfig, Tensor, WEIGHTS_FILE, Weights, read_checkpoint, write_atomic,
    write_safetensors,
};
pub use minrnn_model::{SURPRISE_FILE, TASK_FILE, TOKENIZER_FILE};

use crate::data::Tokenizer;
use crate::data::offline_rl::StepEncoding;
use crate::data::table::TableTask;
use crate::model::{AnyModel, SequenceModel};
use crate::new_directory::make_directory;
use crate::{Error, Result, parameters};

/// A model read from a checkpoint.
#[derive(Debug)]
pub struct LoadedModel<M = SequenceModel> {
    /// The configuration beside the weights.
    pub config: CheckpointConfig,
    /// The model.
    pub model: M,
    /// The vocabulary, if the model reads text.
    pub tokenizer: Option<Tokenizer>,
}

/// Loads the sequence model in the checkpoint directory `directory`.
///
/// # Errors
/// When a file is missing, damaged, or belongs to another model, and when the model is a policy.
pub fn load_model(directory: impl AsRef<Path>, device: &Device) -> Result<LoadedModel> {
    let LoadedModel { config, model, tokenizer } = load_any_model(&directory, device)?;
    match model {
        AnyModel::Sequence(model) => Ok(LoadedModel { config, model, tokenizer }),
        AnyModel::Policy(_) => Err(Error::malformed(directory.as_ref(), "it is a policy, which acts; expected a model of sequences")),
    }
}

/// Loads any kind of model in the checkpoint directory `directory`.
///
/// # Errors
/// When a file is missing, damaged, or belongs to another model.
pub fn load_any_model(directory: impl AsRef<Path>, device: &Device) -> Result<LoadedModel<AnyModel>> {
    let directory = directory.as_ref();
    let (config, mut weights) = read_checkpoint(directory)?;
    let model = AnyModel::new(&config.model, 0, device)?;
    let model = load_weights(model, &mut weights)?;
    weights.expect_empty()?;
    let tokenizer = CheckpointFiles::open(directory)?.tokenizer()?.map(|(tokenizer, _)| tokenizer);
    if let Some(tokenizer) = &tokenizer {
        let named = |error: minrnn_model::Error| Error::malformed(directory.join(TOKENIZER_FILE), error.to_string());
        tokenizer.expect_known(config.model.vocab_size).map_err(named)?;
    }
    Ok(LoadedModel { config, model, tokenizer })
}

/// The task on tables of the model with configuration `config` in the checkpoint directory `directory`; `None` for other tasks.
///
/// # Errors
/// When its description cannot be read or belongs to another model.
pub fn load_table_task(directory: impl AsRef<Path>, config: &ModelConfig) -> Result<Option<TableTask>> {
    Ok(CheckpointFiles::open(directory)?.table_task(config)?.map(|(task, _)| task))
}

/// The encoding of a policy's steps as numbers, and the content of its file.
///
/// # Errors
/// When it cannot be read or belongs to another model.
pub fn policy_of(files: &CheckpointFiles, config: &ModelConfig) -> Result<(StepEncoding, Vec<u8>)> {
    let path = files.path(TASK_FILE);
    let text = files.bytes(TASK_FILE, MAX_TASK_BYTES)?;
    let encoding = StepEncoding::of_model(&text, config).map_err(|error| Error::malformed(&path, error.to_string()))?;
    Ok((encoding, text))
}

/// Creates the checkpoint directory `directory`, which must not exist, from `tensors` and the vocabulary in the file `tokenizer`. It
/// appears once it is complete and its model, which is returned, has been read back.
///
/// # Errors
/// When `directory` exists, a file cannot be read or written, or the parts do not make a model.
pub fn create_checkpoint(
    directory: impl AsRef<Path>,
    config: &CheckpointConfig,
    tensors: impl IntoIterator<Item = (String, Tensor)>,
    tokenizer: Option<&Tokenizer>,
    device: &Device,
) -> Result<LoadedModel> {
    make_directory(directory.as_ref(), |unfinished| {
        fill(unfinished, config, tensors, tokenizer, &[])?;
        load_model(unfinished, device)
    })
}

/// Creates the checkpoint directory `directory`, which must not exist, from a `model` built from `config.model`, with its vocabulary if it
/// reads text. It appears once it is complete and has been read back; [`load_model`] and the runtime can then read it.
///
/// What no tensor's shape determines, such as `candidate`, is taken from `config`.
///
/// # Errors
/// When `directory` exists, a file cannot be written, or model, configuration and vocabulary do not belong together.
pub fn save_model(
    directory: impl AsRef<Path>,
    config: &CheckpointConfig,
    model: &SequenceModel,
    tokenizer: Option<&Tokenizer>,
) -> Result<()> {
    create_checkpoint(directory, config, tensors_of(model)?, tokenizer, &Device::flex()).map(drop)
}

/// Writes the files of a checkpoint into an empty directory; `others` are names and contents of further ones.
pub(crate) fn fill(
    directory: &Path,
    config: &CheckpointConfig,
    tensors: impl IntoIterator<Item = (String, Tensor)>,
    tokenizer: Option<&Tokenizer>,
    others: &[(&str, Vec<u8>)],
) -> Result<()> {
    config.write(directory)?;
    let tensors = tensors.into_iter().map(|(name, tensor)| {
        let (shape, data) = tensor.into_parts();
        (name, shape, Cow::Owned(data))
    });
    write_safetensors(directory.join(WEIGHTS_FILE), tensors, None)?;
    if let Some(tokenizer) = tokenizer {
        tokenizer.save(directory.join(TOKENIZER_FILE))?;
    }
    others.iter().try_for_each(|(name, content)| write_atomic(directory.join(name), content))?;
    Ok(CheckpointFiles::seal(directory)?)
}

/// Loads the tensors of `weights` into the parameters of `module` by name, taking them out of `weights`.
///
/// The running statistics of a [`BatchNorm`](crate::nn::BatchNorm) are shared between clones of a module: loading changes them in all
/// clones.
///
/// # Errors
/// When a parameter is missing or has another shape.
pub fn load_weights<M: Module>(module: M, weights: &mut Weights) -> Result<M> {
    load_named(module, weights, "")
}

/// The same for tensors whose names begin with `prefix`.
pub(crate) fn load_named<M: Module>(module: M, weights: &mut Weights, prefix: &str) -> Result<M> {
    let mut problem = None;
    let module = parameters::replace(module, |place, shape| match weights.take(&format!("{prefix}{}", place.name), shape) {
        Ok(values) => Some(values),
        Err(error) => {
            problem.get_or_insert(error);
            None
        }
    });
    problem.map_or(Ok(module), |error| Err(error.into()))
}

/// Writes every parameter of `module` to `path`, atomically.
///
/// # Errors
/// When the file cannot be written.
pub fn save_weights<M: Module>(module: &M, path: impl AsRef<Path>) -> Result<()> {
    let tensors = named_values(module).into_iter().map(|(name, shape, values)| (name, shape, Cow::Owned(values)));
    Ok(write_safetensors(path, tensors, None)?)
}

/// Name, shape and values (as in files) of every parameter and running statistic of `module`.
pub(crate) fn named_values<M: Module>(module: &M) -> Vec<(String, Vec<usize>, Vec<f32>)> {
    let mut tensors = Vec::new();
    parameters::visit(module, |place, values| tensors.push((place.name, values.shape.clone(), values.read())));
    tensors
}

/// Name and tensor (as in files) of every parameter and running statistic of `module`: what a checkpoint is made of.
pub(crate) fn tensors_of<M: Module>(module: &M) -> Result<Vec<(String, Tensor)>> {
    named_values(module).into_iter().map(|(name, shape, values)| Ok((name, Tensor::new(shape, values)?))).collect()
}

/// Number of parameters of `module`, without running statistics.
pub fn parameter_count<M: Module>(module: &M) -> usize {
    parameters::count(module)
}

/// Name and shape (as in files) of every parameter and running statistic of `module`.
pub fn parameter_shapes<M: Module>(module: &M) -> Vec<(String, Vec<usize>)> {
    let mut shapes = Vec::new();
    parameters::visit(module, |place, values| shapes.push((place.name, values.shape)));
    shapes
}

/// The tensors of a file as the states of this library load them.
///
/// # Errors
/// When one of their values is NaN or infinite.
pub(crate) fn state_tensors(weights: &mut Weights, prefix: &str) -> Result<BTreeMap<String, TensorData>> {
    let names: Vec<String> = weights.names().filter(|name| name.starts_with(prefix)).map(ToString::to_string).collect();
    names
        .into_iter()
        .map(|name| {
            let shape = weights.get(&name).map(|tensor| tensor.shape().to_vec()).unwrap_or_default();
            let data = weights.take(&name, &shape)?;
            Ok((name[prefix.len()..].to_owned(), TensorData::new(data, shape)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use burn::tensor::Int;

    use super::*;
    use crate::nn::Mode;
    use crate::ops::StepCodes;

    fn config(vocab_size: usize) -> CheckpointConfig {
        CheckpointConfig::new(ModelConfig { vocab_size, d_model: 8, ..Default::default() })
    }

    fn trained(config: &CheckpointConfig) -> SequenceModel {
        SequenceModel::new(&config.model, 1, &Device::flex().autodiff()).unwrap()
    }

    #[test]
    fn a_saved_model_is_read_again_with_its_predictions_its_sections_and_its_vocabulary() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("model");
        let tokenizer = Tokenizer::characters_of("abc");
        let mut config = config(tokenizer.vocab_size());
        config.sections.insert("data".to_owned(), "three letters".into());
        let model = trained(&config);
        save_model(&directory, &config, &model, Some(&tokenizer)).unwrap();

        let loaded = load_model(&directory, &Device::flex()).unwrap();
        assert_eq!(loaded.config, config);
        assert_eq!(loaded.tokenizer.unwrap().to_json().unwrap(), tokenizer.to_json().unwrap());
        let logits = |model: &SequenceModel| {
            let tokens = burn::tensor::Tensor::<2, Int>::from_data([[0, 2, 1, 1]], &Device::flex());
            model.forward(tokens, model.init_state(1), &StepCodes::dense(), Mode::Evaluate).0.into_data()
        };
        assert_eq!(logits(&loaded.model), logits(&model.valid()));
    }

    #[test]
    fn a_model_is_saved_in_no_directory_that_exists() {
        let (folder, config) = (tempfile::tempdir().unwrap(), config(5));
        std::fs::write(folder.path().join("kept"), "").unwrap();
        let refused = save_model(folder.path(), &config, &trained(&config), None).unwrap_err().to_string();
        assert!(refused.contains("it already exists; name a new directory"), "{refused}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_model_that_its_configuration_or_vocabulary_does_not_fit_leaves_nothing_behind() {
        let (folder, own) = (tempfile::tempdir().unwrap(), config(5));
        let wider = ModelConfig { d_model: 16, ..own.model.clone() };
        let lower = ModelConfig { n_layers: 1, ..own.model.clone() };
        let higher = ModelConfig { n_layers: 3, ..own.model.clone() };
        for other in [wider, lower, higher] {
            let other = CheckpointConfig::new(other);
            save_model(folder.path().join("model"), &other, &trained(&own), None).unwrap_err();
        }
        let of_more = Tokenizer::characters_of("abcdefgh");
        save_model(folder.path().join("model"), &own, &trained(&own), Some(&of_more)).unwrap_err();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
