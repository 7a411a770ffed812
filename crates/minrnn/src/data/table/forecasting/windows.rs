//! Training windows of forecasts: at random positions in the training parts, each from the initial state.

use std::sync::Arc;

use rand::RngExt;

use super::{Part, Table};
use crate::data::batch::check_shape;
use crate::data::{Batch, BatchSource};
use crate::rng::{self, Purpose};
use crate::{Result, Segments};

/// Windows of at most T steps. A sequence is chosen with probability proportional to its number of training steps, and all its windows are
/// equally likely.
pub(super) struct ForecastWindows {
    table: Arc<Table>,
    batch_size: usize,
    seq_len: usize,
    seed: u64,
    /// For each sequence with training steps, its index and the cumulative number of training steps up to its end.
    sums: Vec<(usize, usize)>,
}

impl ForecastWindows {
    pub fn new(table: Arc<Table>, batch_size: usize, seed: u64) -> Result<Self> {
        let trained = |at: usize| table.scored(at, Part::Training).len();
        let mut sum = 0;
        let mut sums = Vec::new();
        for at in (0..table.series.len()).filter(|&at| trained(at) > 0) {
            sum += trained(at);
            sums.push((at, sum));
        }
        let longest = (0..table.series.len()).map(trained).max().unwrap_or(0);
        let seq_len = table.seq_len.min(longest);
        check_shape(batch_size, seq_len)?;
        Ok(Self { table, batch_size, seq_len, seed, sums })
    }
}

impl BatchSource for ForecastWindows {
    fn batch(&mut self, iteration: u64, micro: u64) -> Result<Batch> {
        let (table, batch_size, seq_len) = (&self.table, self.batch_size, self.seq_len);
        let mut rng = rng::substream(self.seed, Purpose::TrainData, iteration, micro);
        let (n, inputs_width, targets_width) = (batch_size * seq_len, table.n_inputs(), table.n_targets());
        let (mut inputs, mut targets, mut mask) = (vec![0.0; n * inputs_width], vec![0.0; n * targets_width], vec![0.0; n]);
        let mut lengths = Vec::with_capacity(batch_size);
        let total = self.sums.last().map_or(0, |&(_, sum)| sum) as u64;
        let mut kept = Vec::new();
        for row in 0..batch_size {
            let drawn = rng.random_range(0..total) as usize;
            let (series, _) = self.sums[self.sums.partition_point(|&(_, sum)| sum <= drawn)];
            let trained = table.scored(series, Part::Training).len();
            let length = seq_len.min(trained);
            let start = rng.random_range(0..=(trained - length) as u64) as usize;
            for at in 0..length {
                let place = row * seq_len + at;
                let targets = &mut targets[place * targets_width..][..targets_width];
                table.fill_inputs(series, start + at, &mut kept, &mut inputs[place * inputs_width..][..inputs_width]);
                table.fill_targets(series, start + at, Part::Training, &mut kept, targets);
                mask[place] = 1.0;
            }
            lengths.push(length);
        }
        Ok(table.batch(inputs, targets, mask, Segments::from_lengths(lengths), batch_size))
    }

    fn tokens_per_batch(&self) -> usize {
        self.batch_size * self.seq_len
    }
}
