//! What a cube works on: a head in a few rows of the batch.

use cubecl::prelude::*;

use super::Plan;

/// What a cube works on.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Place {
    pub head: usize,
    /// Its first row of the batch.
    pub first: usize,
    pub batch: usize,
    /// Channels of all heads.
    pub e: usize,
}

#[cube]
pub(super) fn place(batch: usize, heads: usize, #[comptime] plan: Plan) -> Place {
    Place { head: CUBE_POS % heads, first: CUBE_POS / heads * comptime!(plan.rows), batch, e: heads * comptime!(plan.width) }
}

/// The row of the batch that is the cube's `r`th, or the last one where there are fewer.
#[cube]
pub(super) fn row_of(place: &Place, r: usize) -> usize {
    min(place.first + r, place.batch - 1)
}
