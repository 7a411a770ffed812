//! How a recurrence is cut into cubes, slices and chunks.

use cubecl::prelude::CubeDim;

use super::super::chunks::SizesLaunch;
use super::super::tensors::LANES;
use super::slice::STEPS;

/// Cubes from which on time is not cut into chunks: the pass over chunks that a device of 132 multiprocessors then goes without costs about as
/// much as its idle ones do.
const ENOUGH: usize = 160;
/// Cubes that chunks make.
const WANTED: usize = 512;
/// Fewest tiles of a chunk: what the extra pass costs must be small beside what it starts.
const CHUNK_TILES: usize = 4;

/// How a problem is cut.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    pub batch: usize,
    pub seq_len: usize,
    pub width: usize,
    /// Channels of a unit.
    pub channels: usize,
    pub groups: usize,
    pub slices: usize,
    pub chunks: usize,
    pub chunk_len: usize,
}

impl Cut {
    pub(super) fn new([batch, seq_len, width]: [usize; 3], channels: usize, slices: usize) -> Self {
        let groups = (width / channels).div_ceil(LANES);
        let slices = seq_len.div_ceil(STEPS).next_power_of_two().min(slices);
        let tile = slices * STEPS;
        let whole = batch * groups;
        let wanted = if whole >= ENOUGH { 1 } else { (WANTED / whole).min(seq_len / (CHUNK_TILES * tile)).max(1) };
        let chunk_len = seq_len.div_ceil(wanted).next_multiple_of(tile);
        Self { batch, seq_len, width, channels, groups, slices, chunks: seq_len.div_ceil(chunk_len), chunk_len }
    }

    pub(super) fn cubes(&self) -> usize {
        self.batch * self.groups * self.chunks
    }

    pub(super) fn cube(&self) -> CubeDim {
        CubeDim::new_2d(LANES as u32, self.slices as u32)
    }

    pub(super) fn sizes(&self) -> SizesLaunch {
        SizesLaunch::new(self.seq_len, self.width / self.channels, self.groups, self.chunk_len, self.chunks)
    }
}
