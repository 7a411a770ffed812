//! Rows drawn from a set of examples, each made by its own generator and therefore identified by a number.

use rand::{Rng, RngExt};

use crate::rng::{self, ChaCha8Rng, Purpose};

/// The part of a generator's name under which examples are made; no micro-step has this number.
const EXAMPLE: u64 = u64::MAX;

/// The examples of a generated task.
#[derive(Debug, Clone, Copy)]
pub(super) struct NumberedExamples {
    /// Size of the set; 0 means an endless one, in which no example occurs twice.
    pub n: u64,
    pub seed: u64,
    pub purpose: Purpose,
}

impl NumberedExamples {
    /// The generator for the batch of (`iteration`, `micro`), which chooses its rows.
    pub fn batch(self, iteration: u64, micro: u64) -> ChaCha8Rng {
        rng::substream(self.seed, self.purpose, iteration, micro)
    }

    /// The generator of an example, drawn with replacement.
    pub fn draw(self, batch: &mut ChaCha8Rng) -> ChaCha8Rng {
        let number = if self.n == 0 { batch.next_u64() } else { batch.random_range(0..self.n) };
        rng::substream(self.seed, self.purpose, number, EXAMPLE)
    }
}
