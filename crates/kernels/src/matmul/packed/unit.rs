//! What a set of instructions does for a product: packed operands, and a tile of the result from them.

use crate::grid;
use core::ops::Range;

/// A kind of packed operand and the instructions that multiply it.
///
/// A unit is four bytes and holds [`Unit::DEPTH`] neighbours along the depth of one row or column. "Along": elements that follow each other
/// along the depth are contiguous in the source. "Across": rows (left) or columns (right) are.
///
/// # Safety
/// All functions but [`Unit::run`] are to be inlined below it, where the instructions are enabled.
pub(super) trait Unit {
    /// Elements of depth in a unit.
    const DEPTH: usize;
    /// Columns in a vector.
    const LANES: usize;
    /// Rows of a tile.
    const ROWS: usize;
    /// Vectors of columns in a full tile.
    const VECTORS: usize;
    /// After how many units a tile issues a prefetch.
    const ISSUE: usize;
    /// Blocks of depth begin at multiples of this many elements.
    const ALIGN: usize = Self::DEPTH;

    /// Where row `row`, a multiple of [`Unit::ROWS`], of a packed left side of `units` units begins.
    fn left_at(along: bool, units: usize, row: usize) -> usize {
        row * if along { super::ROW } else { units }
    }

    /// Packs a row of a left side: unit u goes to `packed[u]`, `packed` having room for whole vectors.
    ///
    /// # Safety
    /// `depth` elements are readable, the packed ones writable.
    unsafe fn left_along(source: *const f32, depth: usize, packed: *mut i32);

    /// Packs rows of a left side, as [`Unit::tile`] reads them: unit u of row r goes to
    /// `packed[(r / ROWS) · ROWS · units + u · ROWS + r % ROWS]`, unless the instruction set's own file says otherwise. Groups of rows are written
    /// whole, and there is room for all of a block.
    ///
    /// # Safety
    /// `depth` runs of `rows` elements, `stride` apart, are readable, the packed ones writable.
    unsafe fn left_across(source: *const f32, stride: usize, rows: usize, depth: usize, packed: *mut i32);

    /// Packs panels of a right side with contiguous columns: unit u of vector v of a panel that begins at vector `start` goes to
    /// `packed[(start · units + u · width + v) · LANES..]`.
    ///
    /// # Safety
    /// `depth` runs of the panels' columns, `stride` apart, are readable, the packed ones writable.
    unsafe fn right_across(source: *const f32, stride: usize, depth: usize, panels: Panels, packed: *mut i32);

    /// [`Unit::right_across`] for a source whose depth is contiguous and whose columns are `stride` apart.
    ///
    /// # Safety
    /// As there, with the two directions exchanged.
    unsafe fn right_along(source: *const f32, stride: usize, depth: usize, panels: Panels, packed: *mut i32);

    /// A tile of the result, `vectors` wide. Unit u of row r of the left side is `left[r · ROW + u]` where it was packed `along`, else where
    /// [`Unit::left_across`] put it; that of vector v of the right side `right[(u · vectors + v) · LANES..]`. `issue` is called every [`Unit::ISSUE`] units.
    ///
    /// # Safety
    /// All rows of the left side and vectors of the right are readable, the target's rows writable.
    unsafe fn tile(along: bool, vectors: usize, sides: Sides, begin: Begin, target: Target, issue: &mut impl FnMut());

    /// Does a piece of work: everything else is inlined here.
    ///
    /// # Safety
    /// The machine has the instructions; the piece's pointers are as [`super::Piece`] says, and nothing else uses the memory it writes.
    unsafe fn run(piece: super::Piece<'_>);
}

/// The packed sides of a tile.
#[derive(Clone, Copy)]
pub(super) struct Sides {
    /// Units of depth.
    pub units: usize,
    pub left: *const i32,
    pub right: *const i32,
}

/// What a tile's sums begin with.
#[derive(Clone, Copy)]
pub(super) enum Begin {
    /// 0: the result is stored.
    Zero,
    /// A bias per column, beginning at the tile's first one.
    Bias(*const f32),
    /// 0, and the result is added to what is there.
    Add,
}

/// Where a tile goes.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub out: *mut f32,
    pub stride: usize,
    /// Rows to store, at most [`Unit::ROWS`].
    pub rows: usize,
    /// Columns of the last vector to store, at most [`Unit::LANES`].
    pub last: usize,
}

/// How columns are cut into panels of nearly equal width, so that none is much narrower than a tile.
#[derive(Clone, Copy)]
pub(super) struct Panels {
    pub columns: usize,
    lanes: usize,
    widest: usize,
    /// The selected panels: from the first number up to, but excluding, the second.
    part: [usize; 2],
}

impl Panels {
    pub(super) fn new<U: Unit>(columns: usize) -> Self {
        let panels = Self { columns, lanes: U::LANES, widest: U::VECTORS, part: [0; 2] };
        Self { part: [0, panels.vectors().div_ceil(panels.widest)], ..panels }
    }

    /// Part `i` of `parts` of these panels, each at its place among all of them.
    pub(super) fn part(self, parts: usize, i: usize) -> Self {
        let part = grid::piece(self.count(), parts, i);
        Self { part: [part.start, part.end], ..self }
    }

    /// Vectors of all columns.
    pub(super) fn vectors(self) -> usize {
        self.columns.div_ceil(self.lanes)
    }

    /// How many panels all columns have.
    pub(super) fn count(self) -> usize {
        self.vectors().div_ceil(self.widest)
    }

    /// The numbers of the selected panels.
    pub(super) fn each(self) -> Range<usize> {
        self.part[0]..self.part[1]
    }

    /// The vectors of panel `p`.
    pub(super) fn range(self, p: usize) -> Range<usize> {
        grid::piece(self.vectors(), self.count(), p)
    }
}
