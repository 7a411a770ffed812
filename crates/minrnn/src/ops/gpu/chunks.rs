//! Numbering of the cubes that walk through time: groups of channels first, then chunks of time, then rows of the batch.

use cubecl::prelude::*;

use super::tensors::LANES;

/// What a unit works on.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Place {
    /// Row of the batch.
    pub b: usize,
    pub chunk: usize,
    /// The channel, clamped to the width.
    pub c: usize,
    /// False if the group of channels extends past the width.
    pub live: bool,
    /// The chunk's steps.
    pub start: usize,
    pub end: usize,
}

/// Sizes of the problem and how it is cut.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Sizes {
    pub seq_len: usize,
    pub width: usize,
    pub groups: usize,
    pub chunk_len: usize,
    pub chunks: usize,
}

#[cube]
pub(super) fn place(sizes: &Sizes) -> Place {
    let group = CUBE_POS % sizes.groups;
    let rest = CUBE_POS / sizes.groups;
    let chunk = rest % sizes.chunks;
    let c = group * LANES + UNIT_POS_X as usize;
    let start = chunk * sizes.chunk_len;
    Place {
        b: rest / sizes.chunks,
        chunk,
        c: min(c, sizes.width - 1),
        live: c < sizes.width,
        start,
        end: min(start + sizes.chunk_len, sizes.seq_len),
    }
}
