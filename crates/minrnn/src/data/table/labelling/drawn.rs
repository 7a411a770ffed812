//! Training sequences, drawn at random.

use std::sync::Arc;

use rand::RngExt;

use super::table::{Labels, Table};
use crate::data::table::Chunk;
use crate::data::{Batch, BatchSource};
use crate::rng::{self, Purpose};
use crate::{Result, Segments};

/// Whole sequences, drawn in proportion to the weights of their classes.
pub(super) struct DrawnSequences {
    table: Arc<Table>,
    batch_size: usize,
    seed: u64,
    /// If classes have different weights, the cumulative weight up to each training sequence.
    sums: Vec<f64>,
}

impl DrawnSequences {
    /// Sequences of the training part.
    ///
    /// # Errors
    /// When a class that has a weight does not exist.
    pub fn new(table: Arc<Table>, batch_size: usize, seed: u64) -> Result<Self> {
        let mut sums = Vec::new();
        if let Labels::Classes(classes) = &*table.labels {
            let training = &table.parts.training;
            let n_of = |class: usize| training.iter().filter(|&&at| classes[at] as usize == class).count();
            if let Some(weights) = table.config.class_weights.of(table.task.classes(), n_of)? {
                let mut sum = 0.0;
                sums.extend(training.iter().map(|&at| {
                    sum += weights[classes[at] as usize];
                    sum
                }));
            }
        }
        Ok(Self { table, batch_size, seed, sums })
    }
}

impl BatchSource for DrawnSequences {
    fn batch(&mut self, iteration: u64, micro: u64) -> Result<Batch> {
        let mut rng = rng::substream(self.seed, Purpose::TrainData, iteration, micro);
        let training = &self.table.parts.training;
        let mut draw = || match self.sums.last() {
            None => rng.random_range(0..training.len() as u64) as usize,
            Some(total) => {
                let drawn = rng.random_range(0.0..*total);
                self.sums.partition_point(|&sum| sum <= drawn).min(training.len() - 1)
            }
        };
        let drawn: Vec<usize> = (0..self.batch_size).map(|_| training[draw()]).collect();
        let lengths: Vec<usize> = drawn.iter().map(|&at| self.table.steps(at)).collect();
        let rows = drawn.iter().zip(&lengths).map(|(&at, &length)| Some((at, 0..length))).collect();
        let seq_len = lengths.iter().copied().max().unwrap_or(0);
        Ok(self.table.batch(Chunk { rows, seq_len, segments: Segments::from_lengths(lengths) }))
    }

    fn tokens_per_batch(&self) -> usize {
        let training = &self.table.parts.training;
        let steps: usize = training.iter().map(|&at| self.table.steps(at)).sum();
        self.batch_size * steps.div_ceil(training.len().max(1))
    }
}
