//! Retrieval (ACL Anthology Network): does one of two papers cite the other? Both are read letter by letter.
//!
//! A row of a batch is the first document with an end token, a reset, and the second one with its end token: the same model reads each from
//! its initial state, like the two towers of one encoder, and the label is at the last step. The head for this task compares the features
//! there with those before the reset (`model.pair_head`).

mod documents;
mod files;

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;

pub use self::documents::TextUnit;
use self::documents::{Documents, Vocabulary};
use crate::data::labelled::{Labelled, side_by_side};
use crate::data::passes::{Examples, Parts};
use crate::data::{Batch, BatchSource, EvaluationSet, IoKind, SequenceTask};
use crate::rng::Purpose;
use crate::{Error, Result};

const MAX_LENGTH: usize = 1 << 20;

/// How documents are read, with the names of the settings in files. The defaults are the published ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RetrievalTask {
    /// What a token is. Default `char`.
    #[serde(rename = "retrieval_unit")]
    pub unit: TextUnit,
    /// Maximum number of tokens of a document, including its end; the rest of a longer one is cut off. Default 4000.
    #[serde(rename = "retrieval_max_length")]
    pub max_length: usize,
}

impl Default for RetrievalTask {
    fn default() -> Self {
        Self { unit: TextUnit::Char, max_length: 4000 }
    }
}

/// Pairs of documents and whether they belong together.
#[derive(Debug)]
struct Pairs {
    documents: Arc<Documents>,
    vocabulary: Arc<Vocabulary>,
    pairs: Vec<Pair>,
    n_steps: u64,
    longest: usize,
}

/// Two documents by number, and their label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pair {
    documents: [u32; 2],
    cites: bool,
}

impl Pairs {
    /// `lengths` holds the number of tokens of every document.
    fn new(documents: &Arc<Documents>, vocabulary: &Arc<Vocabulary>, lengths: &[u32], pairs: Vec<Pair>) -> Arc<Self> {
        let length = |pair: &Pair| pair.documents.iter().map(|&i| lengths[i as usize] as usize).sum::<usize>();
        let n_steps = pairs.iter().map(|pair| length(pair) as u64).sum();
        let longest = pairs.iter().map(length).max().unwrap_or(0);
        Arc::new(Self { documents: Arc::clone(documents), vocabulary: Arc::clone(vocabulary), pairs, n_steps, longest })
    }
}

impl Examples for Pairs {
    fn n_examples(&self) -> usize {
        self.pairs.len()
    }

    fn n_steps(&self) -> u64 {
        self.n_steps
    }

    fn longest(&self) -> usize {
        self.longest
    }

    fn batch(&self, chosen: &[u32]) -> Batch {
        let row = |&i: &u32| {
            let Pair { documents: [first, second], cites } = self.pairs[i as usize];
            let mut tokens = Vec::new();
            self.vocabulary.encode(self.documents.get(first), &mut tokens);
            let restart = Some(tokens.len());
            self.vocabulary.encode(self.documents.get(second), &mut tokens);
            Labelled { tokens, restart, class: u32::from(cites) }
        };
        side_by_side(&chosen.iter().map(row).collect::<Vec<_>>())
    }

    fn checksum(&self) -> u32 {
        let texts = self.pairs.iter().flat_map(|pair| pair.documents).map(|i| self.documents.get(i));
        let text = texts.fold(0, crc32c::crc32c_append);
        self.pairs.iter().fold(text, |crc, pair| crc32c::crc32c_append(crc, &[u8::from(pair.cites)]))
    }
}

/// The task with its data.
#[derive(Debug, Clone)]
pub struct Retrieval {
    parts: Parts,
    vocabulary: Arc<Vocabulary>,
}

impl Retrieval {
    /// Its files, for use in a sentence.
    pub(crate) const FILES: &'static str = files::ALL;

    /// The three files of `folder`.
    ///
    /// # Errors
    /// When a file is missing or malformed, or the settings are out of range.
    pub fn open(task: &RetrievalTask, folder: impl AsRef<Path>) -> Result<Self> {
        task.validate()?;
        let folder = folder.as_ref();
        let mut documents = Documents::default();
        let train = files::read(task, &folder.join(files::TRAIN), &mut documents)?;
        let n_train = documents.len() as u32;
        let validation = files::read(task, &folder.join(files::VALIDATION), &mut documents)?;
        let test = files::read(task, &folder.join(files::TEST), &mut documents)?;
        // The documents of the training part come first.
        let vocabulary = Arc::new(Vocabulary::new(task.unit, (0..n_train).map(|i| documents.get(i))));
        let documents = Arc::new(documents);
        let lengths: Vec<u32> = (0..documents.len() as u32).map(|i| vocabulary.n_tokens(documents.get(i)) as u32).collect();
        let part = |pairs| Pairs::new(&documents, &vocabulary, &lengths, pairs);
        Ok(Self { parts: Parts { train: part(train), validation: part(validation), test: part(test) }, vocabulary })
    }
}

impl RetrievalTask {
    /// Checks the settings.
    ///
    /// # Errors
    /// [`Error::Config`] that names the setting.
    pub fn validate(&self) -> Result<()> {
        if (2..=MAX_LENGTH).contains(&self.max_length) {
            return Ok(());
        }
        Err(Error::Config(format!("retrieval needs max_length between 2 and {MAX_LENGTH}, found {}", self.max_length)))
    }
}

impl SequenceTask for Retrieval {
    fn reads(&self) -> IoKind {
        IoKind::Tokens { n: self.vocabulary.size() }
    }

    fn predicts(&self) -> IoKind {
        IoKind::Tokens { n: 2 }
    }

    fn has_parts(&self) -> bool {
        true
    }

    fn longest(&self) -> usize {
        self.parts.longest()
    }

    fn description(&self) -> Option<serde_json::Value> {
        let characters = match &*self.vocabulary {
            Vocabulary::Bytes => None,
            Vocabulary::Characters(known) => Some(known.iter().collect::<String>()),
        };
        Some(json!({ "task": "retrieval", "classes": ["unrelated", "cites"], "characters": characters, "data": self.parts.description() }))
    }

    fn training(&self, batch_size: usize, seed: u64) -> Result<Box<dyn BatchSource>> {
        self.parts.training(batch_size, seed)
    }

    fn evaluation(&self, batch_size: usize, _: u64, purpose: Purpose, _: u64) -> Result<Box<dyn EvaluationSet>> {
        self.parts.evaluation(batch_size, purpose)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(train: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [(files::TRAIN, train), (files::VALIDATION, "0\t1\t2\tba\tc\n"), (files::TEST, "1\t1\t2\ta\tabab\n")] {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        dir
    }

    #[test]
    fn a_pair_is_two_sequences_with_a_reset_between_them() {
        let dir = folder("1\tp1\tp2\tab\tabba\n0.0\tp2\tp3\tabba\tb\n");
        let task = Retrieval::open(&RetrievalTask { max_length: 4, ..RetrievalTask::default() }, dir.path()).unwrap();
        assert_eq!((task.reads(), task.predicts(), task.longest()), (IoKind::Tokens { n: 5 }, IoKind::Tokens { n: 2 }, 7));
        // Three characters and the end of each document; 'c' is not in the training part.
        let batch = task.evaluation(2, 0, Purpose::ValidationData, 1).unwrap().batch(0).unwrap();
        assert_eq!(batch.inputs.tokens(), [4, 3, 2, 1, 2]);
        assert_eq!(batch.segments.resets().unwrap(), [[3]]);
        let batch = task.evaluation(2, 0, Purpose::TestData, 1).unwrap().batch(0).unwrap();
        assert_eq!((batch.inputs.tokens(), batch.targets.tokens()[5]), (&[3, 2, 3, 4, 3, 2][..], 1));
        let batch = task.training(2, 0).unwrap().batch(0, 0).unwrap();
        assert_eq!((batch.batch_size, batch.seq_len, batch.n_scored()), (2, 7, 2));
        assert_eq!(task.description().unwrap()["characters"], "ab");
    }

    #[test]
    fn bytes_need_no_vocabulary() {
        let dir = folder("1\tp1\tp2\té\tb\n");
        let task = Retrieval::open(&RetrievalTask { unit: TextUnit::Byte, ..RetrievalTask::default() }, dir.path()).unwrap();
        let batch = task.training(1, 0).unwrap().batch(0, 0).unwrap();
        assert_eq!((task.reads(), batch.inputs.tokens()), (IoKind::Tokens { n: 258 }, &[196, 170, 257, 99, 257][..]));
        let message = Retrieval::open(&RetrievalTask { max_length: 1, ..RetrievalTask::default() }, dir.path()).unwrap_err().to_string();
        assert!(message.contains("max_length between 2"), "{message}");
    }
}
