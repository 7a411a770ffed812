//! Numbering of the cubes that walk down the columns of a matrix: groups of columns first, then blocks of rows.

use cubecl::prelude::*;

use super::tensors::{LANES, ROWS, column_vector_size};

/// Cubes that keep a large device busy while there is work for them.
const BUSY: usize = 1024;

/// How a `[rows, width]` matrix is cut.
#[derive(Debug, Clone, Copy)]
pub(super) struct Columns {
    rows: usize,
    /// Numbers in a vector.
    pub size: usize,
    /// Vectors in a row.
    width: usize,
    /// Groups of [`LANES`] vectors.
    groups: usize,
    /// Blocks of rows.
    pub blocks: usize,
    /// Rows in a block.
    block_rows: usize,
}

impl Columns {
    pub(super) fn new(rows: usize, width: usize) -> Self {
        let size = column_vector_size(width);
        let width = width / size;
        let groups = width.div_ceil(LANES);
        let wanted = (BUSY / groups.max(1)).clamp(1, rows.div_ceil(4 * ROWS).max(1));
        let block_rows = rows.div_ceil(wanted).next_multiple_of(ROWS).max(ROWS);
        Self { rows, size, width, groups, blocks: rows.div_ceil(block_rows).max(1), block_rows }
    }

    /// Cubes of the kernel.
    pub(super) fn cubes(&self) -> usize {
        self.groups * self.blocks
    }

    pub(super) fn sizes(&self) -> SizesLaunch {
        SizesLaunch::new(self.rows, self.width, self.groups, self.block_rows)
    }
}

/// Sizes of the matrix and how it is cut; `width` is of vectors.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Sizes {
    pub rows: usize,
    pub width: usize,
    pub groups: usize,
    pub block_rows: usize,
}

/// What a unit works on: every [`ROWS`]th row of a block, in one column of vectors, which is past the width in some units of the last group.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Place {
    pub column: usize,
    pub block: usize,
    /// The end of the block.
    pub end: usize,
}

#[cube]
pub(super) fn place(sizes: &Sizes) -> Place {
    let column = CUBE_POS % sizes.groups * LANES + UNIT_POS_X as usize;
    let block = CUBE_POS / sizes.groups;
    Place { column, block, end: min((block + 1) * sizes.block_rows, sizes.rows) }
}

/// The unit's first row. Kernels compute it where they need it, not with the rest, which would hold registers.
#[cube]
pub(super) fn first_row(place: &Place, sizes: &Sizes) -> usize {
    place.block * sizes.block_rows + UNIT_POS_Y as usize
}
