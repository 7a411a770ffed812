//! Conversion of whole models between other libraries' formats and our checkpoints.

use std::path::{Path, PathBuf};

use burn::tensor::Device;
use minrnn_model::{
    CONFIG_FILE, CheckpointConfig, CheckpointFiles, MAX_TASK_BYTES, ModelConfig, Weights, read_checkpoint, write_safetensors,
};
use minrnn_stream::PackedModel;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::checkpoint::{LoadedModel, SURPRISE_FILE, TASK_FILE, create_checkpoint, fill, load_any_model};
use crate::data::Tokenizer;
use crate::deployed::Deployed;
use crate::interchange::{ForeignModel, Form, Format, NamedTensor, Settings, export, export_folder, import};
use crate::model::AnyModel;
use crate::new_directory::{expect_new, make_directory};
use crate::output::{expect_harmless, expect_outside_runs, expect_replaceable};
use crate::tensor_file::begins_as_tensors;
use crate::train::find_checkpoint;
use crate::{Error, Needed, Result};

/// The key in the configuration of an imported model for the form of its original file.
const IMPORTED: &str = "imported";

/// Weights named as in another library, to be converted to a checkpoint.
#[derive(Debug, Clone)]
pub struct Import {
    /// A safetensors file, the index of several, or a folder with either.
    pub file: PathBuf,
    /// The library's format.
    pub format: Format,
    /// Configuration keys that the file does not determine, `key=value`.
    pub settings: Vec<String>,
    /// The vocabulary, if the model reads text.
    pub tokenizer: Option<PathBuf>,
    /// The run or checkpoint whose recurrent layers are replaced, for files with recurrent layers only.
    pub into: Option<PathBuf>,
}

/// An imported model.
pub struct Imported {
    /// The model as loaded from its checkpoint.
    pub loaded: LoadedModel<AnyModel>,
    /// Why the vocabulary in the file's folder was not used.
    pub unused: Option<String>,
}

impl Import {
    /// Writes the checkpoint `output`.
    ///
    /// # Errors
    /// When the weights cannot be read or do not fit the format, when an argument is missing or unused, or when `output` exists or cannot
    /// be created.
    pub fn write(&self, output: &Path) -> Result<Imported> {
        expect_new(output)?;
        expect_outside_runs(output)?;
        let format = self.format;
        let mut model = ForeignModel::read(&self.file)?;
        let form = Form::of(&model.weights);
        let (mut config, tensors, kept) = match (&self.into, format.is_part()) {
            (None, false) => {
                let config = model.config(format, &Settings::parse(&self.settings)?)?;
                let tensors = import(format, &mut model.weights, &config)?;
                (CheckpointConfig::new(config), tensors, None)
            }
            (Some(run), true) => {
                let (config, tensors, kept) = replace_mixers(format, &mut model.weights, run, &self.settings)?;
                (config, tensors, Some(kept))
            }
            (None, true) => {
                let problem = format!("a file of format {format} holds only recurrent layers; name the model they go into");
                return Err(Error::needed(Needed::Into, problem));
            }
            (Some(run), false) => {
                let run = run.display();
                return Err(Error::Config(format!(
                    "a file of format {format} holds a whole model, and goes into no other; leave '{run}' out"
                )));
            }
        };
        let file = self.file.canonicalize().unwrap_or_else(|_| self.file.clone());
        let file = file.file_name().map(|name| name.to_string_lossy());
        let source = serde_json::json!({"format": format.name(), "file": file, "form": form});
        config.sections.insert(IMPORTED.to_owned(), source);
        let given = self.tokenizer.as_deref().map(|file| vocabulary(file, config.model.vocab_size)).transpose()?;
        if let Some(kept) = kept {
            let loaded = kept.make_checkpoint(output, &config, tensors, given)?;
            return Ok(Imported { loaded, unused: None });
        }
        let (tokenizer, unused) = match given {
            None if config.model.is_language_model() => of_folder(model.tokenizer.as_deref(), config.model.vocab_size),
            given => (given, None),
        };
        let LoadedModel { config, model, tokenizer } = create_checkpoint(output, &config, tensors, tokenizer.as_ref(), &Device::flex())?;
        Ok(Imported { loaded: LoadedModel { config, model: AnyModel::Sequence(model), tokenizer }, unused })
    }
}

/// A model exported for another library.
pub struct Exported {
    /// The checkpoint or packed file it was made from.
    pub path: PathBuf,
    /// Number of tensors.
    pub tensors: usize,
    /// For a folder, whether it has a vocabulary; `None` for a file.
    pub vocabulary: Option<bool>,
}

/// Writes the model of `run`, a run directory, a checkpoint, or a packed model with f32 weights, to `output` in `format`: a folder with
/// everything its library opens, if the format has one and the name does not end in `.safetensors`, otherwise a file.
///
/// # Errors
/// When the model cannot be read, the format cannot represent it, or `output` cannot be written or would overwrite something.
pub fn export_model(run: &Path, format: Format, output: &Path) -> Result<Exported> {
    let is_folder = format.has_folder() && output.extension().is_none_or(|end| end != "safetensors");
    if !is_folder {
        expect_harmless(output, [run])?;
        expect_replaceable(output, "a safetensors file", begins_as_tensors)?;
    } else {
        expect_new(output)?;
        expect_outside_runs(output)?;
    }
    let Source { path, config, mut weights, sections } = Source::read(run)?;
    let form = form(&sections, format, &path)?;
    if is_folder {
        let tokenizer = Deployed::load(run)?.tokenizer;
        let tensors = export_folder(output, format, &mut weights, &config, form, tokenizer.as_ref())?;
        return Ok(Exported { path, tensors, vocabulary: Some(tokenizer.is_some()) });
    }
    let named = export(format, &mut weights, &config, form)?;
    let tensors = named.len();
    let named = named.into_iter().map(|(name, tensor)| {
        let (shape, data) = tensor.into_parts();
        (name, shape, data.into())
    });
    // The entry that PyTorch-based libraries look for.
    write_safetensors(output, named, Some(("format", "pt")))?;
    Ok(Exported { path, tensors, vocabulary: None })
}

/// A trained model and its location.
pub struct Source {
    /// The checkpoint or the packed file.
    pub path: PathBuf,
    /// Its configuration.
    pub config: ModelConfig,
    /// Its weights.
    pub weights: Weights,
    /// The other sections of its configuration.
    pub sections: Map<String, Value>,
}

impl Source {
    /// Reads a run directory (its best checkpoint), a checkpoint, or a packed model with f32 weights.
    ///
    /// # Errors
    /// When it cannot be read, or its weights were rounded.
    pub fn read(run: &Path) -> Result<Self> {
        if run.is_file() {
            let (config, weights) = PackedModel::unpack(run)?;
            return Ok(Self { path: run.to_owned(), config, weights, sections: Map::new() });
        }
        let path = find_checkpoint(run)?;
        let (config, weights) = read_checkpoint(&path)?;
        Ok(Self { path, config: config.model, weights, sections: config.sections })
    }
}

/// The form of the file of `format` that the model in `checkpoint` was imported from; the default if it was not imported.
fn form(sections: &Map<String, Value>, format: Format, checkpoint: &Path) -> Result<Form> {
    let imported = sections.get(IMPORTED).filter(|imported| imported["format"] == format.name());
    match imported.map(|imported| &imported["form"]).filter(|form| !form.is_null()) {
        None => Ok(Form::default()),
        Some(form) => Form::deserialize(form).map_err(|error| {
            Error::malformed(checkpoint.join(CONFIG_FILE), format!("the form of the imported file cannot be read: {error}"))
        }),
    }
}

/// The vocabulary in the folder of a model with `most` tokens, or why there is none: other libraries have kinds that ours lacks.
fn of_folder(file: Option<&Path>, most: usize) -> (Option<Tokenizer>, Option<String>) {
    match file.map(|file| vocabulary(file, most)).transpose() {
        Ok(tokenizer) => (tokenizer, None),
        Err(why) => (None, Some(why.to_string())),
    }
}

/// The vocabulary in `file`, for a model with `most` tokens.
fn vocabulary(file: &Path, most: usize) -> minrnn_model::Result<Tokenizer> {
    let tokenizer = Tokenizer::load(file)?;
    match tokenizer.expect_known(most) {
        Err(minrnn_model::Error::Tokenizer(problem)) => Err(minrnn_model::Error::malformed(file, problem)),
        known => known.map(|()| tokenizer),
    }
}

/// Parts of a checkpoint other than configuration and weights that a model with replaced recurrent layers still needs.
struct Kept {
    /// The vocabulary, if the model reads text.
    tokenizer: Option<Tokenizer>,
    /// Names and contents of further files.
    files: Vec<(&'static str, Vec<u8>)>,
}

impl Kept {
    /// The parts of the checkpoint `directory`; `is_same` if no weight differs.
    fn of(directory: &Path, is_same: bool) -> Result<Self> {
        let files = CheckpointFiles::open(directory)?;
        let task = files.find(TASK_FILE, MAX_TASK_BYTES)?.map(|content| (TASK_FILE, content));
        // One model's surprises are not thresholds for another.
        let surprise = if is_same { files.surprise()?.map(|(_, content)| (SURPRISE_FILE, content)) } else { None };
        let tokenizer = files.tokenizer()?.map(|(tokenizer, _)| tokenizer);
        Ok(Self { tokenizer, files: task.into_iter().chain(surprise).collect() })
    }

    /// Makes the checkpoint `output` with these parts, using `given` instead of the vocabulary if there is one, and reads its model.
    fn make_checkpoint(
        self,
        output: &Path,
        config: &CheckpointConfig,
        tensors: Vec<NamedTensor>,
        given: Option<Tokenizer>,
    ) -> Result<LoadedModel<AnyModel>> {
        let tokenizer = given.or(self.tokenizer);
        make_directory(output, |directory| {
            fill(directory, config, tensors, tokenizer.as_ref(), &self.files)?;
            load_any_model(directory, &Device::flex())
        })
    }
}

/// The checkpoint of `run` with the recurrent layers of a file, and its other parts.
fn replace_mixers(
    format: Format,
    weights: &mut Weights,
    run: &Path,
    settings: &[String],
) -> Result<(CheckpointConfig, Vec<NamedTensor>, Kept)> {
    if let Some(setting) = settings.first() {
        return Err(Error::Config(format!("the configuration is that of the run whose layers are replaced; leave {setting} out")));
    }
    let checkpoint = find_checkpoint(run)?;
    let (config, mut rest) = read_checkpoint(&checkpoint)?;
    let mut tensors = import(format, weights, &config.model)?;
    let mut is_same = true;
    for (name, tensor) in &tensors {
        is_same &= rest.take(name, tensor.shape())? == tensor.data();
    }
    let names: Vec<String> = rest.names().map(ToOwned::to_owned).collect();
    for name in names {
        let tensor = rest.take_any(&name)?;
        tensors.push((name, tensor));
    }
    Ok((config, tensors, Kept::of(&checkpoint, is_same)?))
}
