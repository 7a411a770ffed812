//! Selective copying: remember the data tokens scattered in noise, and repeat them in order when asked.
//!
//! A sequence is a body of noise with `M` data tokens at random positions, then `M` markers; at the j-th marker the j-th data token is to
//! be predicted. All markers are alike, so the model has to count them. There are two encodings:
//!
//! | | body length | noise | marker | data |
//! |---|---|---|---|---|
//! | A (the paper's own generator) | `length` | V − 1 | 0 | 1 … V − 2 |
//! | B (the S4 lineage) | `length` + M | 0 | V − 1 | 1 … V − 2 |

use std::collections::BTreeSet;

use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::batch::check_shape;
use super::{Batch, BatchSource, EvaluationSet, FixedBatches, IoKind, SequenceTask};
use crate::rng::{self, ChaCha8Rng, Purpose};
use crate::{Error, Result, Segments};

/// The ids and the body length; see the module documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// The paper's own generator.
    #[default]
    A,
    /// The S4 lineage.
    B,
}

/// The task's settings, with the names they have in files. The defaults are the paper's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SelectiveCopyingConfig {
    /// Length of the body in encoding A, number of noise steps in encoding B. Default 4096.
    #[serde(rename = "copy_length")]
    pub length: usize,
    /// Number `M` of data tokens to remember. Default 16.
    #[serde(rename = "copy_tokens")]
    pub n_tokens: usize,
    /// Number `V` of symbols: noise, marker and at least one data token. Always 16 in files.
    #[serde(skip)]
    pub vocab_size: usize,
    /// The ids and the body length. Default `a`.
    #[serde(rename = "copy_encoding")]
    pub encoding: Encoding,
}

impl Default for SelectiveCopyingConfig {
    fn default() -> Self {
        Self { length: 4096, n_tokens: 16, vocab_size: 16, encoding: Encoding::A }
    }
}

impl SelectiveCopyingConfig {
    /// Length of the body, including the data tokens.
    pub fn body_len(&self) -> usize {
        match self.encoding {
            Encoding::A => self.length,
            Encoding::B => self.length.saturating_add(self.n_tokens),
        }
    }

    /// Length `T` of a whole sequence: the body and one marker per data token.
    pub fn seq_len(&self) -> usize {
        self.body_len().saturating_add(self.n_tokens)
    }

    /// Checks that such sequences exist.
    ///
    /// # Errors
    /// [`Error::Config`] when there is no data token, no symbol for it, or no room for it in the body.
    pub fn validate(&self) -> Result<()> {
        if self.vocab_size < 3 || self.vocab_size > u32::MAX as usize {
            return Err(Error::Config(format!(
                "selective copying needs a vocab_size of at least 3 (noise, marker, data), and one that fits 32 bits; found {}",
                self.vocab_size
            )));
        }
        if self.n_tokens == 0 {
            return Err(Error::Config("selective copying needs n_tokens of at least 1, found 0".into()));
        }
        if self.body_len() < self.n_tokens {
            return Err(Error::Config(format!(
                "selective copying cannot place n_tokens = {} data tokens in a body of length = {}; raise length or lower n_tokens",
                self.n_tokens, self.length
            )));
        }
        Ok(())
    }

    fn noise(&self) -> u32 {
        match self.encoding {
            Encoding::A => self.vocab_size as u32 - 1,
            Encoding::B => 0,
        }
    }

    fn marker(&self) -> u32 {
        match self.encoding {
            Encoding::A => 0,
            Encoding::B => self.vocab_size as u32 - 1,
        }
    }
}

/// Batches of selective copying, generated afresh for every iteration.
#[derive(Debug, Clone)]
pub struct SelectiveCopying {
    task: SelectiveCopyingConfig,
    batch_size: usize,
    seed: u64,
    purpose: Purpose,
}

impl SelectiveCopying {
    /// Sequences of `task`. For evaluation use another `purpose` (or `seed`) and wrap it in [`super::FixedBatches`].
    ///
    /// # Errors
    /// [`Error::Config`] when `task` is not valid, `batch_size` is 0, or a batch would be too large.
    pub fn new(task: SelectiveCopyingConfig, batch_size: usize, seed: u64, purpose: Purpose) -> Result<Self> {
        task.validate()?;
        check_shape(batch_size, task.seq_len())?;
        Ok(Self { task, batch_size, seed, purpose })
    }
}

impl BatchSource for SelectiveCopying {
    fn batch(&mut self, iteration: u64, micro: u64) -> Result<Batch> {
        let Self { task, batch_size, .. } = self;
        let (batch_size, body_len, seq_len) = (*batch_size, task.body_len(), task.seq_len());
        let mut rng = rng::substream(self.seed, self.purpose, iteration, micro);
        let mut inputs = vec![task.noise(); batch_size * seq_len];
        let (mut targets, mut mask) = (vec![0; batch_size * seq_len], vec![0.0; batch_size * seq_len]);
        for row in 0..batch_size {
            let start = row * seq_len;
            let answers = start + body_len..start + seq_len;
            for target in &mut targets[answers.clone()] {
                *target = rng.random_range(1..task.vocab_size as u32 - 1);
            }
            for (j, position) in sorted_positions(&mut rng, task.n_tokens, body_len).into_iter().enumerate() {
                inputs[start + position] = targets[answers.start + j];
            }
            inputs[answers.clone()].fill(task.marker());
            mask[answers].fill(1.0);
        }
        Ok(Batch { inputs: inputs.into(), targets: targets.into(), mask: Some(mask), segments: Segments::dense(), batch_size, seq_len })
    }

    fn tokens_per_batch(&self) -> usize {
        self.batch_size * self.task.seq_len()
    }
}

/// `n` distinct positions below `len`, uniform among all such sets, in ascending order (R. Floyd's algorithm: `n` draws).
fn sorted_positions(rng: &mut ChaCha8Rng, n: usize, len: usize) -> BTreeSet<usize> {
    let mut chosen = BTreeSet::new();
    for last in (len - n)..len {
        let position = rng.random_range(0..=last as u64) as usize;
        if !chosen.insert(position) {
            chosen.insert(last);
        }
    }
    chosen
}

impl SequenceTask for SelectiveCopyingConfig {
    fn reads(&self) -> IoKind {
        IoKind::Tokens { n: self.vocab_size }
    }

    fn longest(&self) -> usize {
        self.seq_len()
    }

    fn training(&self, batch_size: usize, seed: u64) -> Result<Box<dyn BatchSource>> {
        Ok(Box::new(SelectiveCopying::new(self.clone(), batch_size, seed, Purpose::TrainData)?))
    }

    fn evaluation(&self, batch_size: usize, seed: u64, purpose: Purpose, n_batches: u64) -> Result<Box<dyn EvaluationSet>> {
        Ok(Box::new(FixedBatches::new(SelectiveCopying::new(self.clone(), batch_size, seed, purpose)?, n_batches)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn source(task: &SelectiveCopyingConfig, batch_size: usize) -> SelectiveCopying {
        SelectiveCopying::new(task.clone(), batch_size, 42, Purpose::TrainData).unwrap()
    }

    #[test]
    fn the_default_is_the_papers_task() {
        let task = SelectiveCopyingConfig::default();
        assert_eq!((task.body_len(), task.seq_len()), (4096, 4112));
        let b = SelectiveCopyingConfig { encoding: Encoding::B, ..task };
        assert_eq!((b.body_len(), b.seq_len()), (4112, 4128));
        assert_eq!(SelectiveCopyingConfig { length: 4096 - 16, ..b }.body_len(), 4096);
    }

    #[test]
    fn the_encodings_differ_by_relabelling_only() {
        let a = SelectiveCopyingConfig { length: 40, n_tokens: 8, ..SelectiveCopyingConfig::default() };
        let b = SelectiveCopyingConfig { length: 32, encoding: Encoding::B, ..a.clone() };
        let (a, b) = (source(&a, 5).batch(3, 1).unwrap(), source(&b, 5).batch(3, 1).unwrap());
        let relabel = |id: &u32| match id {
            0 => 15,
            15 => 0,
            &id => id,
        };
        assert_eq!(a.inputs.tokens().iter().map(relabel).collect::<Vec<_>>(), b.inputs.tokens());
        assert_eq!((a.targets.tokens(), a.mask), (b.targets.tokens(), b.mask));
    }

    #[test]
    fn the_same_name_gives_the_same_batch_and_any_other_another() {
        let task = SelectiveCopyingConfig { length: 64, ..SelectiveCopyingConfig::default() };
        let first = source(&task, 4).batch(9, 1).unwrap();
        assert_eq!(source(&task, 4).batch(9, 1).unwrap(), first);
        for (iteration, micro) in [(9, 0), (8, 1)] {
            assert_ne!(source(&task, 4).batch(iteration, micro).unwrap(), first);
        }
        for (seed, purpose) in [(43, Purpose::TrainData), (42, Purpose::TestData)] {
            assert_ne!(SelectiveCopying::new(task.clone(), 4, seed, purpose).unwrap().batch(9, 1).unwrap(), first);
        }
        // Rows do not depend on how many follow them.
        assert_eq!(source(&task, 2).batch(9, 1).unwrap().inputs.tokens(), &first.inputs.tokens()[..2 * task.seq_len()]);
    }

    #[test]
    fn a_batch_is_stable_across_versions() {
        let task = SelectiveCopyingConfig { length: 8, n_tokens: 3, ..SelectiveCopyingConfig::default() };
        let batch = source(&task, 1).batch(1, 0).unwrap();
        assert_eq!(batch.inputs.tokens(), [15, 15, 15, 11, 15, 7, 14, 15, 0, 0, 0]);
        assert_eq!(batch.targets.tokens()[8..], [11, 7, 14]);
    }

    #[test]
    fn tokens_and_positions_are_uniform() {
        let task = SelectiveCopyingConfig { length: 20, n_tokens: 5, ..SelectiveCopyingConfig::default() };
        let batch = source(&task, 20_000).batch(0, 0).unwrap();
        let (mut tokens, mut positions) = ([0_u32; 16], [0_u32; 20]);
        for row in batch.inputs.tokens().chunks(25) {
            for (t, &id) in row[..20].iter().enumerate().filter(|(_, id)| **id != 15) {
                tokens[id as usize] += 1;
                positions[t] += 1;
            }
        }
        // 100 000 draws over 14 tokens: mean 7143, standard deviation 81. Each position is hit by 1 row in 4: 5000, 61.
        assert_eq!((tokens[0], tokens[15]), (0, 0));
        assert!(tokens[1..15].iter().all(|n| n.abs_diff(7143) < 410), "{tokens:?}");
        assert!(positions.iter().all(|n| n.abs_diff(5000) < 310), "{positions:?}");
    }

    #[test]
    fn impossible_tasks_are_refused() {
        let task = SelectiveCopyingConfig::default();
        for (bad, expected) in [
            (SelectiveCopyingConfig { length: 15, ..task.clone() }, "n_tokens = 16 data tokens in a body of length = 15"),
            (SelectiveCopyingConfig { n_tokens: 0, ..task.clone() }, "n_tokens of at least 1"),
            (SelectiveCopyingConfig { vocab_size: 2, ..task.clone() }, "vocab_size of at least 3"),
            (SelectiveCopyingConfig { length: usize::MAX, ..task.clone() }, "batch_size 1 times"),
            (SelectiveCopyingConfig { length: usize::MAX, encoding: Encoding::B, ..task.clone() }, "batch_size 1 times"),
        ] {
            let message = SelectiveCopying::new(bad, 1, 0, Purpose::TrainData).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
        assert!(SelectiveCopying::new(task, 0, 0, Purpose::TrainData).is_err());
        let full = SelectiveCopyingConfig { length: 4, n_tokens: 4, vocab_size: 3, encoding: Encoding::A };
        assert_eq!(source(&full, 1).batch(0, 0).unwrap().inputs.tokens(), [1, 1, 1, 1, 0, 0, 0, 0]);
    }

    proptest! {
        #[test]
        fn every_row_has_the_structure_of_the_task(
            extra in 0_usize..40, n_tokens in 1_usize..9, vocab_size in 3_usize..20, b: bool, iteration: u64,
        ) {
            let encoding = if b { Encoding::B } else { Encoding::A };
            let task = SelectiveCopyingConfig { length: n_tokens + extra, n_tokens, vocab_size, encoding };
            let batch = source(&task, 3).batch(iteration, 0).unwrap();
            let (noise, marker) = if b { (0, vocab_size as u32 - 1) } else { (vocab_size as u32 - 1, 0) };
            let (body_len, seq_len) = (task.body_len(), task.seq_len());
            prop_assert_eq!(batch.seq_len, seq_len);
            prop_assert_eq!(batch.n_scored(), 3 * n_tokens);
            for row in 0..3 {
                let at = row * seq_len..(row + 1) * seq_len;
                let (inputs, targets) = (&batch.inputs.tokens()[at.clone()], &batch.targets.tokens()[at.clone()]);
                let data: Vec<u32> = inputs[..body_len].iter().copied().filter(|&id| id != noise).collect();
                prop_assert!(data.iter().all(|&id| id >= 1 && id <= vocab_size as u32 - 2));
                prop_assert_eq!(&data[..], &targets[body_len..]);
                prop_assert!(inputs[body_len..].iter().all(|&id| id == marker));
                let mask = &batch.mask.as_ref().unwrap()[at];
                prop_assert!(mask.iter().enumerate().all(|(t, &m)| m == f32::from(t >= body_len)));
            }
        }
    }
}
