//! How a batch is cut into tasks.

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

/// A batch cut into sequences, blocks of channels and chunks of time. Depends on the shape and the number of threads alone.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    shape: Shape,
    channel_block: usize,
    chunk: usize,
}

/// What one task works on.
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
    /// Cuts `shape` for `threads` threads; a step reads `streams` floats per channel.
    ///
    /// Rows first, since they are independent; then channels, while blocks stay wide enough; then time.
    pub fn new(shape: Shape, threads: usize, streams: usize) -> Self {
        let whole = Self { shape, channel_block: shape.width.max(1), chunk: shape.seq_len.max(1) };
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
        whole.with_chunk(fits.min(shape.seq_len / (4 * threads)).max(MIN_CHUNK))
    }

    /// The same with chunks of `chunk` steps.
    pub fn with_chunk(self, chunk: usize) -> Self {
        Self { chunk, ..self }
    }

    /// Steps of a chunk.
    pub fn chunk(&self) -> usize {
        self.chunk
    }

    /// Number of chunks of every sequence.
    pub fn chunks(&self) -> usize {
        self.shape.seq_len.div_ceil(self.chunk).max(1)
    }

    fn channel_blocks(&self) -> usize {
        self.shape.width.div_ceil(self.channel_block)
    }

    /// Number of (row, block of channels).
    pub fn sequences(&self) -> usize {
        self.shape.batch * self.channel_blocks()
    }

    /// Number of blocks.
    pub fn tasks(&self) -> usize {
        self.sequences() * self.chunks()
    }

    /// Most channels of a block.
    pub fn channel_block(&self) -> usize {
        self.channel_block
    }

    /// Block `i`: chunk by chunk of one sequence after the other.
    pub fn block(&self, i: usize) -> Block {
        let (sequence, chunk) = (i / self.chunks(), i % self.chunks());
        let (b, first) = (sequence / self.channel_blocks(), sequence % self.channel_blocks() * self.channel_block);
        Block {
            b,
            channels: first..(first + self.channel_block).min(self.shape.width),
            chunk,
            steps: (chunk * self.chunk).min(self.shape.seq_len)..((chunk + 1) * self.chunk).min(self.shape.seq_len),
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
                let plan = Plan::new(shape, threads, 3);
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
        assert!(Plan::new(Shape { batch: 1, seq_len: 1 << 20, width: 64 }, 2, 2).chunks() > 100);
        assert_eq!(Plan::new(Shape { batch: 64, seq_len: 4096, width: 128 }, 2, 2).tasks(), 64);
        assert_eq!(Plan::new(Shape { batch: 1, seq_len: 4096, width: 128 }, 2, 2).tasks(), 2);
    }
}
