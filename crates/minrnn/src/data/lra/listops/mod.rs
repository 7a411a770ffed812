//! ListOps: the value of an expression such as `[MAX 4 [MED 1 8 ] [SM 7 9 ] ]`, read token by token.
//!
//! A node is a digit with probability 3/4 and always at the maximum depth; otherwise it is an operator with 2 to 10 arguments. Expressions
//! with a length strictly between the bounds are kept, each once. MED of an even number of arguments is the mean of the middle two, rounded
//! down; SM is the sum modulo 10.

mod expression;
mod files;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::data::labelled::{Labelled, side_by_side};
use crate::data::passes::{Examples, Parts};
use crate::data::{Batch, BatchSource, EvaluationSet, IoKind, SequenceTask};
use crate::rng::{Purpose, stream};
use crate::{Error, Result};

// Maximum values of the settings: expressions are drawn recursively and kept in memory, one byte per token.
const MAX_LENGTH: usize = 1 << 20;
const MAX_DEPTH: usize = 100;
const MAX_ARGUMENTS: usize = 100;
const MAX_EXPRESSIONS: usize = 1 << 24;
/// After this many consecutive expressions that are unwanted or already present, generation gives up.
const MAX_TRIES: u32 = 1_000_000;

/// How expressions are generated, with the names of the settings in files. The defaults are the published ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ListOpsTask {
    /// Expressions are longer than this, in tokens; 0 means a quarter of `max_length`. Default 0.
    #[serde(rename = "listops_min_length")]
    pub min_length: usize,
    /// Expressions are shorter than this. Default 2000.
    #[serde(rename = "listops_max_length")]
    pub max_length: usize,
    /// Maximum depth of a node; the outermost has depth 1. Default 10.
    #[serde(rename = "listops_max_depth")]
    pub max_depth: usize,
    /// Maximum number of arguments of an operator; the minimum is 2. Default 10.
    #[serde(rename = "listops_max_arguments")]
    pub max_arguments: usize,
    /// Number of training expressions. Default 96000.
    #[serde(rename = "listops_train")]
    pub n_train: usize,
    /// Number of validation expressions, and of test expressions. Default 2000.
    #[serde(rename = "listops_eval")]
    pub n_eval: usize,
    /// Seed of the expressions, separate from the training seed, so that runs share their data. Default 0.
    #[serde(rename = "listops_seed")]
    pub seed: u64,
}

impl Default for ListOpsTask {
    fn default() -> Self {
        Self { min_length: 0, max_length: 2000, max_depth: 10, max_arguments: 10, n_train: 96_000, n_eval: 2000, seed: 0 }
    }
}

impl ListOpsTask {
    /// Every expression has more tokens than this.
    fn longer_than(&self) -> usize {
        if self.min_length == 0 { self.max_length / 4 } else { self.min_length }
    }

    /// Checks that the settings make sense and can be held in memory.
    ///
    /// # Errors
    /// [`Error::Config`] that names the setting.
    pub fn validate(&self) -> Result<()> {
        let within = |name: &str, found: usize, least: usize, most: usize| {
            let sentence = || format!("ListOps needs {name} between {least} and {most}, found {found}");
            if (least..=most).contains(&found) { Ok(()) } else { Err(Error::Config(sentence())) }
        };
        within("max_length", self.max_length, 2, MAX_LENGTH)?;
        // There must be a length strictly between the bounds.
        within("min_length", self.longer_than(), 0, self.max_length - 2)?;
        within("max_depth", self.max_depth, 1, MAX_DEPTH)?;
        within("max_arguments", self.max_arguments, 2, MAX_ARGUMENTS)?;
        within("n_train", self.n_train, 1, MAX_EXPRESSIONS)?;
        within("n_eval", self.n_eval, 1, MAX_EXPRESSIONS)
    }

    /// Training, validation and test parts, without repeated expressions.
    ///
    /// # Errors
    /// [`Error::Config`] when there are not enough such expressions.
    pub fn generate(&self) -> Result<[Expressions; 3]> {
        self.validate()?;
        let mut rng = stream(self.seed, Purpose::TrainData, 0);
        let (mut seen, mut tokens) = (HashSet::new(), Vec::new());
        let mut parts = [Expressions::default(), Expressions::default(), Expressions::default()];
        for (part, wanted) in parts.iter_mut().zip([self.n_train, self.n_eval, self.n_eval]) {
            let mut tries = 0;
            while part.len() < wanted {
                tries += 1;
                if tries > MAX_TRIES {
                    return Err(self.too_few(seen.len()));
                }
                let fits = expression::draw(self, &mut rng, &mut tokens) && tokens.len() > self.longer_than();
                if fits && seen.insert(fingerprint(&tokens)) {
                    let value = expression::evaluate(&tokens).expect("what is drawn is an expression");
                    part.push(&tokens, value);
                    tries = 0;
                }
            }
        }
        Ok(parts)
    }

    fn too_few(&self, found: usize) -> Error {
        let (min_length, Self { max_length, max_depth, max_arguments, n_train, n_eval, .. }) = (self.longer_than(), self);
        Error::Config(format!(
            "{} different ListOps expressions are wanted, but only {found} longer than {min_length} and shorter than {max_length} tokens \
             turned up at max_depth = {max_depth} and max_arguments = {max_arguments}; ask for fewer, or widen the bounds",
            n_train + 2 * n_eval
        ))
    }
}

/// Sixteen bytes, enough to tell apart some hundred thousand expressions.
fn fingerprint(tokens: &[u8]) -> [u8; 16] {
    use sha2::{Digest, Sha256};
    Sha256::digest(tokens)[..16].try_into().expect("a digest has 32 bytes")
}

/// Expressions and their values, one byte per token.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expressions {
    tokens: Vec<u8>,
    /// The index in `tokens` at which each expression ends.
    ends: Vec<usize>,
    values: Vec<u8>,
}

impl Expressions {
    /// Number of expressions.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Token ids and value of expression `i`.
    ///
    /// # Panics
    /// When there is no such expression.
    pub fn get(&self, i: usize) -> (&[u8], u8) {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        (&self.tokens[start..self.ends[i]], self.values[i])
    }

    fn push(&mut self, tokens: &[u8], value: u8) {
        self.tokens.extend_from_slice(tokens);
        self.ends.push(self.tokens.len());
        self.values.push(value);
    }
}

impl Examples for Expressions {
    fn n_examples(&self) -> usize {
        self.len()
    }

    fn n_steps(&self) -> u64 {
        (self.tokens.len() + self.len()) as u64
    }

    fn longest(&self) -> usize {
        (0..self.len()).map(|i| self.get(i).0.len() + 1).max().unwrap_or(0)
    }

    /// An expression, then the end of the sequence.
    fn batch(&self, chosen: &[u32]) -> Batch {
        let row = |&i: &u32| {
            let (tokens, value) = self.get(i as usize);
            let tokens = tokens.iter().copied().chain([expression::END]).map(u32::from).collect();
            Labelled { tokens, restart: None, class: u32::from(value) }
        };
        side_by_side(&chosen.iter().map(row).collect::<Vec<_>>())
    }

    fn checksum(&self) -> u32 {
        // The end of each expression follows from its brackets.
        crc32c::crc32c_append(crc32c::crc32c(&self.tokens), &self.values)
    }
}

/// The task with its data.
#[derive(Debug, Clone)]
pub struct ListOps {
    parts: Parts,
}

impl ListOps {
    /// The model's inputs and outputs.
    pub const SIGNALS: (IoKind, IoKind) = (IoKind::Tokens { n: expression::VOCAB_SIZE }, IoKind::Tokens { n: expression::N_CLASSES });

    /// The official files in `folder` if it has them (the settings of `task` are then ignored), otherwise expressions with these settings,
    /// which the first call writes to `folder` for later ones.
    ///
    /// # Errors
    /// When the settings are not valid, a file is missing or malformed, or the folder cannot be written.
    pub fn open(task: &ListOpsTask, folder: impl AsRef<Path>) -> Result<Self> {
        task.validate()?;
        let [train, validation, test] = files::open(task, folder.as_ref())?;
        Ok(Self { parts: Parts { train: Arc::new(train), validation: Arc::new(validation), test: Arc::new(test) } })
    }
}

impl SequenceTask for ListOps {
    fn reads(&self) -> IoKind {
        Self::SIGNALS.0
    }

    fn predicts(&self) -> IoKind {
        Self::SIGNALS.1
    }

    fn has_parts(&self) -> bool {
        true
    }

    fn longest(&self) -> usize {
        self.parts.longest()
    }

    fn description(&self) -> Option<serde_json::Value> {
        let classes: Vec<String> = (0..expression::N_CLASSES).map(|value| value.to_string()).collect();
        Some(json!({ "task": "listops", "classes": classes, "data": self.parts.description() }))
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

    #[test]
    fn the_published_settings_give_the_published_statistics() {
        let [train, validation, test] = ListOpsTask { n_train: 3000, n_eval: 100, ..ListOpsTask::default() }.generate().unwrap();
        assert_eq!((train.len(), validation.len(), test.len()), (3000, 100, 100));
        let mut lengths: Vec<usize> = (0..train.len()).map(|i| train.get(i).0.len()).collect();
        lengths.sort_unstable();
        assert!(lengths[0] > 500 && lengths[2999] < 2000, "{} {}", lengths[0], lengths[2999]);
        // Mean about 1040 with a standard error of 8, median 961.
        let mean = lengths.iter().sum::<usize>() as f64 / 3000.0;
        assert!((1005.0..1075.0).contains(&mean) && (925..1000).contains(&lengths[1500]), "{mean} {}", lengths[1500]);
        let mut shares = [0.0; 10];
        for i in 0..train.len() {
            shares[usize::from(train.get(i).1)] += 1.0 / 3000.0;
        }
        // About 0.17 at both ends, 0.075 to 0.09 between them.
        for (value, &share) in shares.iter().enumerate() {
            let expected = if value % 9 == 0 { 0.145..0.195 } else { 0.055..0.11 };
            assert!(expected.contains(&share), "{value}: {share}");
        }
    }

    #[test]
    fn expressions_are_stable_and_none_is_there_twice() {
        let task = ListOpsTask { min_length: 4, max_length: 8, n_train: 60, n_eval: 20, ..ListOpsTask::default() };
        let parts = task.generate().unwrap();
        let all: Vec<&[u8]> = parts.iter().flat_map(|part| (0..part.len()).map(|i| part.get(i).0)).collect();
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), 100);
        assert!(all.iter().all(|tokens| (5..8).contains(&tokens.len())));
        assert_eq!(task.generate().unwrap(), parts);
        assert_ne!(ListOpsTask { seed: 1, ..task }.generate().unwrap(), parts);
    }

    #[test]
    fn batches_hold_expressions_with_an_end_and_their_values() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("basic_train.tsv"), "Source\tTarget\n[MAX 2 9 ]\t9\n4\t4\n").unwrap();
        for name in ["basic_val.tsv", "basic_test.tsv"] {
            std::fs::write(dir.path().join(name), "Source\tTarget\n[SM 9 9 ]\t8\n").unwrap();
        }
        let task = ListOps::open(&ListOpsTask::default(), dir.path()).unwrap();
        assert_eq!(task.longest(), 5);
        let batch = task.evaluation(4, 0, Purpose::ValidationData, 7).unwrap().batch(0).unwrap();
        assert_eq!((batch.inputs.tokens(), batch.targets.tokens()), (&[5, 16, 16, 6, 1][..], &[0, 0, 0, 0, 8][..]));
        let batch = task.training(2, 0).unwrap().batch(0, 0).unwrap();
        assert_eq!((batch.batch_size, batch.seq_len, batch.n_scored()), (2, 5, 2));
        let mut lengths = batch.segments.lengths().unwrap().to_vec();
        lengths.sort_unstable();
        assert_eq!(lengths, [2, 5]);
    }

    #[test]
    fn impossible_settings_are_refused() {
        let base = ListOpsTask::default();
        for (task, expected) in [
            (ListOpsTask { min_length: 1999, ..base.clone() }, "min_length between 0 and 1998"),
            (ListOpsTask { max_arguments: 1, ..base.clone() }, "max_arguments between 2"),
            (ListOpsTask { max_depth: 0, ..base.clone() }, "max_depth"),
            // There are ten digits, and twelve are wanted.
            (ListOpsTask { min_length: 0, max_length: 2, n_train: 10, n_eval: 1, ..base }, "only 10 longer than 0"),
        ] {
            let message = task.generate().unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}
