//! Numbering of the rows of a matrix in cubes that take [`ROWS`] of them, [`LANES`](super::tensors::LANES) lanes each.

use cubecl::prelude::*;

use super::tensors::ROWS;

/// The row that a unit works on.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Row {
    pub number: usize,
    /// False past the last row.
    pub live: bool,
    /// Where the row begins; the last one, past it.
    pub from: usize,
}

#[cube]
pub(super) fn row(rows: usize, width: usize) -> Row {
    let number = CUBE_POS * ROWS + UNIT_POS_Y as usize;
    Row { number, live: number < rows, from: min(number, rows - 1) * width }
}
