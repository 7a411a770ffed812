//! The model that training would build, as far as the experiment determines it before its data are read.

use minrnn_model::ModelConfig;

use super::data::{shape, signals};
use super::data_config::{Corpus, Task};
use super::experiment::Experiment;
use crate::Result;
use crate::data::{IoKind, TokenizerKind, train_tokenizer};

/// Characters of Tiny Shakespeare.
const SHAKESPEARE: usize = 65;

/// An untrained model, and the source of its input and output sizes.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedModel {
    /// The model.
    pub model: ModelConfig,
    /// The source of its input and output sizes, in words.
    pub source: String,
    /// Length of the longest sequence in steps, if the data determine it.
    pub longest: Option<usize>,
}

impl ResolvedModel {
    /// The same model as far as it can be determined without reading data, whose widths hardly matter: a character model is assumed to have
    /// as many characters as Tiny Shakespeare, and a table its named columns.
    ///
    /// # Errors
    /// When the settings of a task are not valid.
    pub(super) fn assumed(experiment: &Experiment) -> Result<ModelConfig> {
        let (data, mut model) = (&experiment.data, experiment.model.clone());
        let (reads, predicts) = match data.task.spec().assumed_io {
            Some(io) => io(data),
            None if data.task == Task::Text && data.text.tokenizer == TokenizerKind::Character && model.vocab_size == 0 => {
                (IoKind::Tokens { n: SHAKESPEARE }, IoKind::Tokens { n: SHAKESPEARE })
            }
            None => return Ok(Self::of(experiment)?.model),
        };
        shape(&mut model, reads, predicts);
        Ok(model)
    }

    /// The model that training `experiment` would build. The vocabulary size of a text is `model.vocab_size` if set, otherwise the
    /// tokenizer's; characters are counted in `data.path`, or are as many as in Tiny Shakespeare if that is not set.
    ///
    /// # Errors
    /// When data that must be read cannot be.
    pub fn of(experiment: &Experiment) -> Result<Self> {
        let (data, mut model) = (&experiment.data, experiment.model.clone());
        if let Some(((reads, predicts), longest)) = signals(experiment)? {
            shape(&mut model, reads, predicts);
            return Ok(Self { model, source: "of the task".to_owned(), longest });
        }
        let (size, source) = match (experiment.model.vocab_size, data.text.tokenizer, &data.path, data.corpus) {
            (0, TokenizerKind::Byte, ..) => (256, "the bytes".to_owned()),
            (0, TokenizerKind::Bpe, ..) => (data.text.bpe_vocab_size, "bpe_vocab_size".to_owned()),
            (0, TokenizerKind::Character, Some(path), _) => {
                let tokenizer = train_tokenizer(data.text.tokenizer, data.text.bpe_vocab_size, path)?;
                (tokenizer.vocab_size(), format!("the characters of '{}'", path.display()))
            }
            (0, TokenizerKind::Character, None, Some(Corpus::TinyShakespeare)) => {
                (SHAKESPEARE, "the characters of Tiny Shakespeare".to_owned())
            }
            (0, TokenizerKind::Character, None, None) => {
                (SHAKESPEARE, "assumed, as in Tiny Shakespeare; a text may have others: set vocab_size or data.path".to_owned())
            }
            (size, ..) => (size, "vocab_size".to_owned()),
        };
        model.vocab_size = size;
        Ok(Self { model, source, longest: None })
    }
}
