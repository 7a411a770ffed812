//! Passes over a finite list of examples: in a new order each time for training, in the list's own order for scoring.

use std::fmt::Debug;
use std::sync::Arc;

use rand::RngExt;
use serde_json::json;

use super::batch::{check_shape, expect_index};
use super::{Batch, BatchSource, EvaluationSet};
use crate::rng::{self, Purpose};
use crate::{Error, Result};

/// A finite list of examples, at most 2³² of them.
pub(super) trait Examples: Debug + Send + Sync {
    /// Number of examples.
    fn n_examples(&self) -> usize;

    /// Total number of steps of all examples.
    fn n_steps(&self) -> u64;

    /// Number of steps of the longest example.
    fn longest(&self) -> usize;

    /// The examples numbered `chosen` as the rows of a batch.
    fn batch(&self, chosen: &[u32]) -> Batch;

    /// CRC-32C of all examples, to detect changed data.
    fn checksum(&self) -> u32;
}

/// A data set in its three parts.
#[derive(Debug, Clone)]
pub(super) struct Parts {
    pub train: Arc<dyn Examples>,
    pub validation: Arc<dyn Examples>,
    pub test: Arc<dyn Examples>,
}

impl Parts {
    /// Number of steps of the longest example.
    pub(super) fn longest(&self) -> usize {
        [&self.train, &self.validation, &self.test].iter().map(|part| part.longest()).max().unwrap_or(0)
    }

    /// Size and checksum of each part, so that a run is resumed only with the data it began with.
    pub(super) fn description(&self) -> serde_json::Value {
        let of = |part: &Arc<dyn Examples>| json!({ "examples": part.n_examples(), "crc32c": format!("{:08x}", part.checksum()) });
        json!({ "train": of(&self.train), "validation": of(&self.validation), "test": of(&self.test) })
    }

    /// Endless passes over the training part.
    pub(super) fn training(&self, batch_size: usize, seed: u64) -> Result<Box<dyn BatchSource>> {
        Ok(Box::new(ShuffledPasses::new(Arc::clone(&self.train), batch_size, seed)?))
    }

    /// One pass over the whole part reserved for `purpose`.
    pub(super) fn evaluation(&self, batch_size: usize, purpose: Purpose) -> Result<Box<dyn EvaluationSet>> {
        let part = if purpose == Purpose::TestData { &self.test } else { &self.validation };
        Ok(Box::new(OrderedPass::new(Arc::clone(part), batch_size)?))
    }
}

/// One pass after another, each in its own order; examples left at the end of a pass that do not fill a batch wait for a later pass.
///
/// Every micro-step makes its own passes, so that a batch depends only on iteration and micro-step.
#[derive(Debug)]
struct ShuffledPasses {
    examples: Arc<dyn Examples>,
    batch_size: usize,
    seed: u64,
    /// The order of the pass and micro-step asked for last.
    order: Vec<u32>,
    order_of: Option<(u64, u64)>,
}

impl ShuffledPasses {
    fn new(examples: Arc<dyn Examples>, batch_size: usize, seed: u64) -> Result<Self> {
        check(&*examples, batch_size)?;
        let batch_size = batch_size.min(examples.n_examples());
        Ok(Self { examples, batch_size, seed, order: Vec::new(), order_of: None })
    }

    fn arrange(&mut self, pass: u64, micro: u64) {
        if self.order_of == Some((pass, micro)) {
            return;
        }
        self.order = shuffled(self.examples.n_examples(), self.seed, pass, micro);
        self.order_of = Some((pass, micro));
    }
}

/// The numbers below `n` in a random order (Fisher and Yates).
pub(super) fn shuffled(n: usize, seed: u64, pass: u64, part: u64) -> Vec<u32> {
    let mut rng = rng::substream(seed, Purpose::Order, pass, part);
    let mut order: Vec<u32> = (0..n as u32).collect();
    for i in (1..n).rev() {
        order.swap(i, rng.random_range(0..=i as u64) as usize);
    }
    order
}

impl BatchSource for ShuffledPasses {
    fn batch(&mut self, iteration: u64, micro: u64) -> Result<Batch> {
        let per_pass = (self.examples.n_examples() / self.batch_size) as u64;
        self.arrange(iteration / per_pass, micro);
        let start = (iteration % per_pass) as usize * self.batch_size;
        Ok(self.examples.batch(&self.order[start..start + self.batch_size]))
    }

    /// An average: rows differ in length.
    fn tokens_per_batch(&self) -> usize {
        (self.examples.n_steps() as f64 / self.examples.n_examples() as f64 * self.batch_size as f64) as usize
    }
}

/// Every example once; the last batch may be smaller.
#[derive(Debug)]
struct OrderedPass {
    examples: Arc<dyn Examples>,
    batch_size: usize,
}

impl OrderedPass {
    fn new(examples: Arc<dyn Examples>, batch_size: usize) -> Result<Self> {
        check(&*examples, batch_size)?;
        Ok(Self { examples, batch_size })
    }
}

impl EvaluationSet for OrderedPass {
    fn n_batches(&self) -> u64 {
        self.examples.n_examples().div_ceil(self.batch_size) as u64
    }

    fn batch(&mut self, index: u64) -> Result<Batch> {
        expect_index(index, self.n_batches())?;
        let start = index as usize * self.batch_size;
        let end = (start + self.batch_size).min(self.examples.n_examples());
        let chosen: Vec<u32> = (start as u32..end as u32).collect();
        Ok(self.examples.batch(&chosen))
    }
}

fn check(examples: &dyn Examples, batch_size: usize) -> Result<()> {
    if examples.n_examples() == 0 {
        return Err(Error::Data("a part of the data set has no examples; give one with at least one example in each part".to_owned()));
    }
    check_shape(batch_size, examples.longest()).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::labelled::{Labelled, side_by_side};

    /// Example i is the single token i.
    #[derive(Debug)]
    struct Numbers(usize);

    impl Examples for Numbers {
        fn n_examples(&self) -> usize {
            self.0
        }
        fn n_steps(&self) -> u64 {
            self.0 as u64
        }
        fn longest(&self) -> usize {
            1
        }
        fn batch(&self, chosen: &[u32]) -> Batch {
            side_by_side(&chosen.iter().map(|&i| Labelled { tokens: vec![i], restart: None, class: 0 }).collect::<Vec<_>>())
        }
        fn checksum(&self) -> u32 {
            0
        }
    }

    fn passes(n: usize, batch_size: usize, seed: u64) -> ShuffledPasses {
        ShuffledPasses::new(Arc::new(Numbers(n)), batch_size, seed).unwrap()
    }

    fn pass(source: &mut ShuffledPasses, iterations: std::ops::Range<u64>, micro: u64) -> Vec<u32> {
        iterations.flat_map(|i| source.batch(i, micro).unwrap().inputs.tokens().to_vec()).collect()
    }

    #[test]
    fn a_pass_visits_every_example_once_in_an_order_of_its_own() {
        let mut source = passes(12, 3, 5);
        let first = pass(&mut source, 0..4, 0);
        let mut sorted = first.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..12).collect::<Vec<_>>());
        for other in [pass(&mut source, 4..8, 0), pass(&mut source, 0..4, 1), pass(&mut passes(12, 3, 6), 0..4, 0)] {
            assert_ne!(other, first);
        }
        // Asked for again, from the middle, by another source.
        assert_eq!(pass(&mut passes(12, 3, 5), 2..4, 0), first[6..]);
    }

    #[test]
    fn training_drops_what_fills_no_batch_and_scoring_does_not() {
        let mut source = passes(5, 2, 0);
        assert_eq!((pass(&mut source, 0..2, 0).len(), source.tokens_per_batch()), (4, 2));
        assert_eq!(passes(3, 8, 0).batch(7, 0).unwrap().batch_size, 3);
        let mut set = OrderedPass::new(Arc::new(Numbers(5)), 2).unwrap();
        assert_eq!(set.n_batches(), 3);
        let seen: Vec<Vec<u32>> = (0..3).map(|i| set.batch(i).unwrap().inputs.tokens().to_vec()).collect();
        assert_eq!(seen, [vec![0, 1], vec![2, 3], vec![4]]);
        assert!(set.batch(3).is_err());
    }

    #[test]
    fn empty_lists_and_batches_are_refused() {
        assert!(OrderedPass::new(Arc::new(Numbers(0)), 2).unwrap_err().to_string().contains("no examples"));
        assert!(ShuffledPasses::new(Arc::new(Numbers(2)), 0, 0).is_err());
    }
}
