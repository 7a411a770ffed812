//! How a batch is split into tasks.

use crate::shape::Shape;
use core::ops::Range;

/// Inputs of one chunk of time, in bytes: they, or what is kept of them, are read twice, and the second time should find them in the
/// second-level cache.
const CHUNK_BYTES: usize = 768 * 1024;
/// Fewest channels worth a task: rows of less than 256 bytes halve the memory's speed.
const NARROWEST: usize = 64;
/// Chunks of time are not shorter than this.
const MIN_CHUNK: usize = 64;
/// Blocks of channels begin at multiples of this, so that whole vectors stay aligned.
const CHANNEL_STEP: usize = 16;
/// Sequences with fewer states than this are not cut in time: waking threads costs more.
const MIN_STATES: usize = 1 << 15;

/// A batch split into sequences, blocks of channels and chunks of time. It depends only on the shape and the number of threads.
///
/// Among as many chunks as there are threads, one is passed once, as soon as the state that enters it is known. The others are passed
/// twice: the first pass determines their effect on a state, so that the next chunk knows what enters, and the second writes. While one
/// thread is in the former, the others are in the latter.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    shape: Shape,
    channel_block: usize,
    /// Number of chunks after which the pattern repeats.
    group: usize,
    /// Steps of the first of them, which is passed once.
    once: usize,
    /// Steps of each of the others.
    twice: usize,
}

/// The part that one task works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Row of the batch.
    pub b: usize,
    /// Channels.
    pub channels: Range<usize>,
    /// Chunk of time, counted from the start.
    pub chunk: usize,
    /// Its steps.
    pub steps: Range<usize>,
}

impl Plan {
    /// Splits `shape` for `threads` threads; a step reads `streams` floats per channel. Chunks that are passed once are `once` times as
    /// long as the others, the ratio of the time of two passes over a step to that of one, so that no thread waits.
    ///
    /// Rows are split first, since they are independent; then channels, while blocks stay wide enough; then time.
    pub fn new(shape: Shape, threads: usize, streams: usize, once: f64) -> Self {
        let whole = Self { shape, channel_block: shape.width.max(1), group: 1, once: shape.seq_len.max(1), twice: 0 };
        let balanced = |tasks: usize| tasks.is_multiple_of(threads) || tasks >= 4 * threads;
        if balanced(shape.batch) {
            return whole;
        }
        let blocks = |n: usize| shape.width.div_ceil(n).next_multiple_of(CHANNEL_STEP);
        for n in 2..=shape.width / NARROWEST {
            let cut = Self { channel_block: blocks(n), ..whole };
            if balanced(shape.batch * cut.channel_blocks()) {
                return cut;
            }
        }
        if shape.seq_len * shape.width < MIN_STATES {
            return whole;
        }
        let fits = CHUNK_BYTES / (streams * size_of::<f32>() * shape.width.max(1));
        let twice = fits.min(shape.seq_len / (4 * threads)).max(MIN_CHUNK);
        Self { group: threads, once: (once * twice as f64) as usize, twice, ..whole }
    }

    /// Whether a chunk is passed twice.
    pub fn is_passed_twice(&self, chunk: usize) -> bool {
        !chunk.is_multiple_of(self.group)
    }

    /// Maximum number of steps in a chunk that is passed twice.
    pub fn passed_twice(&self) -> usize {
        self.twice
    }

    /// Number of chunks of every sequence.
    pub fn chunks(&self) -> usize {
        let period = self.start(self.group);
        let (whole, rest) = (self.shape.seq_len / period, self.shape.seq_len % period);
        let more = match rest {
            0 => 0,
            rest => 1 + rest.saturating_sub(self.once).div_ceil(self.twice.max(1)),
        };
        (whole * self.group + more).max(1)
    }

    /// The step with which a chunk begins.
    fn start(&self, chunk: usize) -> usize {
        let period = self.once + (self.group - 1) * self.twice;
        let within = match chunk % self.group {
            0 => 0,
            later => self.once + (later - 1) * self.twice,
        };
        chunk / self.group * period + within
    }

    fn channel_blocks(&self) -> usize {
        self.shape.width.div_ceil(self.channel_block)
    }

    /// Number of pairs of a row and a block of channels.
    pub fn sequences(&self) -> usize {
        self.shape.batch * self.channel_blocks()
    }

    /// Number of blocks.
    pub fn tasks(&self) -> usize {
        self.sequences() * self.chunks()
    }

    /// Maximum number of channels in a block.
    pub fn channel_block(&self) -> usize {
        self.channel_block
    }

    /// Block `i`, counted chunk by chunk through one sequence after another.
    pub fn block(&self, i: usize) -> Block {
        let (sequence, chunk) = (i / self.chunks(), i % self.chunks());
        let (b, first) = (sequence / self.channel_blocks(), sequence % self.channel_blocks() * self.channel_block);
        Block {
            b,
            channels: first..(first + self.channel_block).min(self.shape.width),
            chunk,
            steps: self.start(chunk).min(self.shape.seq_len)..self.start(chunk + 1).min(self.shape.seq_len),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_every_state_once() {
        for (batch, seq_len, width) in [(1, 100_000, 5), (3, 1000, 200), (64, 20, 7), (1, 1, 1), (2, 5000, 130)] {
            let shape = Shape { batch, seq_len, width };
            for threads in [1, 2, 3, 16] {
                let plan = Plan::new(shape, threads, 3, 1.3);
                let mut covered = alloc::vec![0u8; shape.elements()];
                for block in (0..plan.tasks()).map(|i| plan.block(i)) {
                    for t in block.steps {
                        block.channels.clone().for_each(|c| covered[(block.b * seq_len + t) * width + c] += 1);
                    }
                }
                assert!(covered.iter().all(|&n| n == 1), "{shape:?} on {threads} threads");
            }
        }
    }

    #[test]
    fn long_single_sequences_are_cut_in_time() {
        let plan = Plan::new(Shape { batch: 1, seq_len: 1 << 20, width: 64 }, 2, 2, 1.5);
        assert!(plan.chunks() > 100 && !plan.is_passed_twice(0) && plan.is_passed_twice(1) && !plan.is_passed_twice(2));
        let [once, twice] = [0, 1].map(|chunk| plan.block(chunk).steps.len());
        assert!(twice == plan.passed_twice() && once > twice, "{once} and {twice} steps");
        assert_eq!(Plan::new(Shape { batch: 64, seq_len: 4096, width: 128 }, 2, 2, 1.5).tasks(), 64);
        assert_eq!(Plan::new(Shape { batch: 1, seq_len: 4096, width: 128 }, 2, 2, 1.5).tasks(), 2);
    }
}
