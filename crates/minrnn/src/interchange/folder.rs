//! Whole folders for other libraries: the tensors, the configuration, the vocabulary, and a page that explains how to use it.

use std::path::{Path, PathBuf};

use minrnn_model::{CheckedConfig, INDEX_FILE, ModelConfig, WEIGHTS_FILE, Weights, read_text, write_atomic, write_safetensors};
use serde_json::Value;

use super::foreign::Foreign;
use super::said::Said;
use super::{Form, Format, Settings, export};
use crate::counted::counted;
use crate::data::Tokenizer;
use crate::new_directory::make_directory;
use crate::{Error, Result};

const CONFIG_FILE: &str = "config.json";
const TOKENIZER_FILE: &str = "tokenizer.json";
const MAX_CONFIG_BYTES: u64 = 1 << 20;
/// Files that libraries wrote before safetensors existed.
const PICKLED: [&str; 2] = ["pytorch_model.bin", "pytorch_model.bin.index.json"];

/// How a format's library stores a whole model.
pub(super) struct Folder {
    /// `config.json` of a model whose tensors are written in this form; refuses what it cannot express.
    pub(super) config: fn(&CheckedConfig, Form) -> Result<Value>,
    /// Further files whose content is always the same.
    pub(super) others: &'static [(&'static str, &'static str)],
    /// The settings of a model that `config.json` states and the tensors do not, as `key=value`; or why it is not of this format.
    pub(super) settings: fn(&Said) -> Result<Vec<String>>,
    /// Refuses a `config.json` that does not match the tensors, or that describes a model which ours cannot compute.
    pub(super) expect: fn(&Said, &CheckedConfig, &Foreign<'_>) -> Result<()>,
    /// The library, as the hub calls it.
    pub(super) library: &'static str,
    /// Python that opens the folder `model` and computes the `logits` of the tokens `ids` `[B, T]`.
    pub(super) loading: &'static str,
}

/// A model of another library: its tensors and the files beside them.
#[derive(Debug)]
pub struct ForeignModel {
    /// The tensors.
    pub weights: Weights,
    /// The folder's `tokenizer.json`, if any.
    pub tokenizer: Option<PathBuf>,
    /// `config.json` of a folder that has one.
    config: Option<Said>,
}

impl ForeignModel {
    /// Reads a safetensors file, the index of several, or a folder with either; tensors may be F32, F16 or BF16.
    ///
    /// # Errors
    /// When there is none, one is damaged, or does not match the index.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if !path.is_dir() {
            return Ok(Self { weights: Weights::read_foreign(path)?, tokenizer: None, config: None });
        }
        let weights = match find(path, WEIGHTS_FILE)? {
            None => find(path, INDEX_FILE)?,
            whole => whole,
        };
        let Some(weights) = weights else {
            for name in PICKLED {
                if find(path, name)?.is_some() {
                    let problem = format!("it has '{name}', which can run code when it is read; save the model as safetensors");
                    return Err(Error::malformed(path, problem));
                }
            }
            let problem = format!("the folder has neither {WEIGHTS_FILE} nor {INDEX_FILE}, expected a model of another library");
            return Err(Error::malformed(path, problem));
        };
        let config = match find(path, CONFIG_FILE)? {
            None => None,
            Some(file) => {
                let text = read_text(&file, MAX_CONFIG_BYTES)?;
                let value = serde_json::from_str(&text).map_err(|error| Error::malformed(&file, format!("it is not JSON: {error}")))?;
                Some(Said::new(file, value))
            }
        };
        let tokenizer = find(path, TOKENIZER_FILE)?;
        Ok(Self { weights: Weights::read_foreign(weights)?, tokenizer, config })
    }

    /// The configuration of the model, found by [`Format::config`] from the tensors and the folder's other files.
    ///
    /// # Errors
    /// As [`Format::config`]; also when the folder belongs to another library, describes a different model from the tensors, or contradicts
    /// a given setting.
    pub fn config(&self, format: Format, settings: &Settings) -> Result<ModelConfig> {
        let Some((said, folder)) = self.config.as_ref().zip(format.layout().folder) else {
            return format.config(&self.weights, settings);
        };
        let beside = Settings::parse(&(folder.settings)(said)?)?;
        settings.expect_no_other(&beside, said.path())?;
        let config = format.config(&self.weights, &settings.and(beside))?;
        (folder.expect)(said, &config.checked()?, &Foreign::new(&self.weights))?;
        Ok(config)
    }
}

/// The file `name` in `folder`, if it exists.
fn find(folder: &Path, name: &str) -> Result<Option<PathBuf>> {
    let file = folder.join(name);
    // A file that cannot be checked may exist, so it is not reported as missing.
    let is_there = file.try_exists().map_err(|source| Error::io("read", &file, source))?;
    Ok(is_there.then_some(file))
}

impl Format {
    /// Whether [`export_folder`] writes folders of this format.
    pub fn has_folder(self) -> bool {
        self.layout().folder.is_some()
    }
}

/// Creates `directory`, for the library of `format`, from `weights`, a minrnn model's; all of them are taken out. Returns the number of
/// tensors.
///
/// # Errors
/// As [`export`]; also when `directory` exists, the format has no folders, or it cannot describe this model.
pub fn export_folder(
    directory: impl AsRef<Path>,
    format: Format,
    weights: &mut Weights,
    config: &ModelConfig,
    form: Form,
    tokenizer: Option<&Tokenizer>,
) -> Result<usize> {
    let Some(folder) = format.layout().folder else {
        return Err(Error::Config(format!("format {format} is a file of tensors; name a file to write, which ends in .safetensors")));
    };
    let form = form.that_holds(weights)?;
    let tensors = export(format, weights, config, form)?;
    let described = (folder.config)(&config.checked()?, form)?;
    let tokenizer = tokenizer.map(Tokenizer::to_hugging_face).transpose()?;
    let count = tensors.len();
    make_directory(directory.as_ref(), |directory| {
        let write = |name: &str, text: &str| write_atomic(directory.join(name), text.as_bytes());
        write(CONFIG_FILE, &format!("{described:#}\n"))?;
        folder.others.iter().try_for_each(|(name, text)| write(name, text))?;
        if let Some(tokenizer) = &tokenizer {
            write(TOKENIZER_FILE, tokenizer)?;
            write("tokenizer_config.json", TOKENIZER_CONFIG)?;
        }
        write("README.md", &card(folder, config, tokenizer.is_some()))?;
        let tensors = tensors.into_iter().map(|(name, tensor)| {
            let (shape, data) = tensor.into_parts();
            (name, shape, data.into())
        });
        // The entry that PyTorch-based libraries look for.
        write_safetensors(directory.join(WEIGHTS_FILE), tensors, Some(("format", "pt")))?;
        Ok(count)
    })
}

const TOKENIZER_CONFIG: &str = r#"{
  "tokenizer_class": "PreTrainedTokenizerFast",
  "clean_up_tokenization_spaces": false,
  "add_bos_token": false,
  "add_eos_token": false
}
"#;

/// The model card.
fn card(folder: &Folder, config: &ModelConfig, reads_text: bool) -> String {
    let (library, loading) = (folder.library, folder.loading.trim());
    let kinds: Vec<_> = config.mixer_kinds().iter().map(ToString::to_string).collect();
    let (kinds, blocks) = (kinds.join(" and "), counted(config.n_layers, "block"));
    let (width, vocab) = (config.d_model, config.vocab_size);
    let vocabulary = match reads_text {
        true => {
            "Its vocabulary is `tokenizer.json`: `tokenizers.Tokenizer.from_file(\"model/tokenizer.json\").encode(text).ids` are the ids of a text."
        }
        false => "It has no vocabulary of its own: it reads ids.",
    };
    format!(
        "---\nlibrary_name: {library}\npipeline_tag: text-generation\ntags:\n- minrnn\n---\n\n\
         A language model of {blocks} of {kinds}, width {width}, {vocab} tokens, trained with\n\
         [minrnn](https://github.com/minrnn/minrnn) and written for {library}.\n\n\
         ```python\n{loading}\n```\n\n{vocabulary}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_file_that_cannot_be_looked_at_is_not_taken_for_missing() {
        let folder = tempfile::tempdir().unwrap();
        let weights = std::iter::once(("w".to_owned(), vec![1], vec![0.5f32].into()));
        write_safetensors(folder.path().join(WEIGHTS_FILE), weights, None).unwrap();
        let read = || ForeignModel::read(folder.path());
        assert!(read().unwrap().config.is_none());
        for name in [CONFIG_FILE, TOKENIZER_FILE, WEIGHTS_FILE] {
            let (file, aside) = (folder.path().join(name), folder.path().join("aside"));
            let is_there = std::fs::rename(&file, &aside).is_ok();
            // A link to itself.
            std::os::unix::fs::symlink(&file, &file).unwrap();
            let refused = read().unwrap_err().to_string();
            assert!(refused.starts_with(&format!("could not read '{}': ", file.display())), "{refused}");
            std::fs::remove_file(&file).unwrap();
            if is_there {
                std::fs::rename(&aside, &file).unwrap();
            }
        }
        read().unwrap();
    }
}
