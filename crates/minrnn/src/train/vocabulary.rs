//! How many token ids a model will have, as far as an experiment tells before its data are read.

use super::config::Experiment;
use super::data_config::{Corpus, TokenizerKind};
use super::task::{generated, tokenizer_kind};
use crate::Result;
use crate::data::Tokenizer;

/// Characters of Tiny Shakespeare.
const SHAKESPEARE: usize = 65;

/// The number of token ids of an untrained model, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vocabulary {
    /// Number of token ids.
    pub size: usize,
    /// Where the number comes from, in words.
    pub source: String,
}

impl Vocabulary {
    /// The vocabulary that training `experiment` would find. For text it is `model.vocab_size` where that is set, else that of the
    /// tokenizer; characters are counted in `data.path`, and where there is none they are as many as in Tiny Shakespeare.
    ///
    /// # Errors
    /// When the text cannot be read or is empty.
    pub fn of(experiment: &Experiment) -> Result<Self> {
        let data = &experiment.data;
        if let Some(task) = generated(data)? {
            return Ok(Self { size: task.vocab_size(), source: "of the task".to_owned() });
        }
        let (size, source) = match (experiment.model.vocab_size, data.tokenizer, &data.path, data.corpus) {
            (0, TokenizerKind::Byte, ..) => (256, "the bytes".to_owned()),
            (0, TokenizerKind::Bpe, ..) => (data.bpe_vocab_size, "bpe_vocab_size".to_owned()),
            (0, TokenizerKind::Char, Some(path), _) => {
                let tokenizer = Tokenizer::train(tokenizer_kind(data.tokenizer), data.bpe_vocab_size, path)?;
                (tokenizer.vocab_size(), format!("the characters of '{}'", path.display()))
            }
            (0, TokenizerKind::Char, None, Some(Corpus::TinyShakespeare)) => (SHAKESPEARE, "the characters of Tiny Shakespeare".to_owned()),
            (0, TokenizerKind::Char, None, None) => {
                (SHAKESPEARE, "assumed, as in Tiny Shakespeare; a text may have others: set vocab_size or data.path".to_owned())
            }
            (size, ..) => (size, "vocab_size".to_owned()),
        };
        Ok(Self { size, source })
    }
}
