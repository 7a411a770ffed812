//! How a selective scan is cut into cubes and chunks.

use super::super::chunks::SizesLaunch;
use super::super::tensors::LANES;
use super::STEPS;

/// Cubes from which on time is not cut into chunks.
const ENOUGH: usize = 1024;
/// Cubes that chunks make.
const WANTED: usize = 2048;
/// Fewest tiles of a chunk.
const CHUNK_TILES: usize = 8;

/// How a problem is cut.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    pub batch: usize,
    pub seq_len: usize,
    pub width: usize,
    pub d_state: usize,
    pub groups: usize,
    pub tiles: usize,
    pub chunks: usize,
    pub chunk_len: usize,
}

impl Cut {
    pub(super) fn new([batch, seq_len, width]: [usize; 3], d_state: usize) -> Self {
        let groups = width.div_ceil(LANES);
        let whole = batch * groups;
        let wanted = if whole >= ENOUGH { 1 } else { (WANTED / whole).min(seq_len / (CHUNK_TILES * STEPS)).max(1) };
        let chunk_len = seq_len.div_ceil(wanted).next_multiple_of(STEPS);
        Self { batch, seq_len, width, d_state, groups, tiles: seq_len.div_ceil(STEPS), chunks: seq_len.div_ceil(chunk_len), chunk_len }
    }

    pub(super) fn cubes(&self) -> usize {
        self.batch * self.groups * self.chunks
    }

    pub(super) fn sizes(&self) -> SizesLaunch {
        SizesLaunch::new(self.seq_len, self.width, self.groups, self.chunk_len, self.chunks)
    }

    /// Numbers of the states before every tile, `[B, tiles, N, E]`.
    pub(super) fn boundaries(&self) -> [usize; 4] {
        [self.batch, self.tiles, self.d_state, self.width]
    }
}
