//! Products of AVX-512 machines: both sides packed into panels, sums kept in registers.
//!
//! ```text
//! for each block of depth, in order
//!     pack the right side's block into panels of 48 columns
//!     for each block of 96 rows
//!         pack the left side's block
//!         for each panel, for each 8 rows: out (+)= left · right      (tile.rs)
//! ```
//!
//! 1. A right side that fits [`KEPT_RIGHT`] (the weight of a layer) is packed once, by all threads, and shared; rows are spread over the
//!    threads, and each block of rows passes all depth before the next one, so that its results stay in the cache until they are done.
//!    A deeper right side (the gradient of a weight) is never packed whole: the result is cut into regions, each a product of its own on
//!    one thread.
//! 2. A block of depth is 192 units of four bytes: a panel of the right side (36 KiB) stays in the first-level cache while rows pass by,
//!    the left block (78 KiB) in the second.
//! 3. Left sides whose depth is contiguous are only converted, not transposed: a tile reads its eight rows where they are.
//! 4. While tiles are computed, the cache lines of the next block to be packed are asked for, a few per tile, and those of the tile's
//!    results before its sums begin. Without this the memory rests while tiles are computed and the arithmetic while blocks are packed.
//! 5. Packed memory is kept by each thread: at most [`KEPT_RIGHT`] bytes and one block of the left side.
//!
//! An element's sum is taken block by block in the order of depth, whatever the threads and regions, so the number of threads never
//! changes the result.

mod pack;
mod tile;
mod unit;

use super::Matrix;
use crate::grid::{self, SharedOut};
use crate::simd::prefetch;
use core::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
use core::cell::Cell;
use core::ops::Range;
use std::vec::Vec;
use tile::{Begin, LANES, ROWS, Target, VECTORS, tile};
pub(super) use unit::Bf16;
use unit::Unit;

/// Units of depth in a block.
const UNITS: usize = 192;
/// Distance in units between the rows of a left block whose depth is contiguous: not a power of two, so that rows share no cache set.
const ROW: usize = UNITS + LANES;
/// Rows of a left block.
const BLOCK: usize = 96;
/// Most bytes of a packed right side that is shared, and that a thread keeps.
const KEPT_RIGHT: usize = 4 << 20;
/// Widest region that a thread packs for itself.
const REGION: usize = 768;

/// `out = left · right + bias`, every element of which lies in its slice.
pub(super) struct Product<'a> {
    /// Rows, depth, columns.
    pub sizes: [usize; 3],
    pub left: Matrix<'a>,
    pub right: Matrix<'a>,
    /// One per column.
    pub bias: Option<&'a [f32]>,
    /// Dense.
    pub out: SharedOut,
}

/// Computes `product` with operands packed as `U`.
///
/// # Safety
/// The machine has `U`'s instructions, and one of each side's strides is 1.
pub(super) unsafe fn run<U: Unit>(product: &Product<'_>, threads: usize) {
    let [rows, depth, columns] = product.sizes;
    let panels = Panels { columns };
    let right_len = depth.div_ceil(U::DEPTH) * panels.vectors() * LANES;
    if right_len * size_of::<i32>() <= KEPT_RIGHT {
        return RIGHT.with_len(right_len, |right| {
            let right = Address(right);
            // SAFETY: the caller's promise; every task packs its own block of depth into its own part.
            grid::for_each(product.blocks::<U>(), |block| unsafe { U::run(Piece::Right { product, block, packed: right.get() }) });
            let tasks = if threads == 1 { 1 } else { (8 * threads).min(rows.div_ceil(ROWS)) };
            grid::for_each(tasks, |i| {
                let rows = aligned_piece(rows, ROWS, tasks, i);
                // SAFETY: the caller's promise; the right side is packed, and every task has its own rows.
                LEFT.with_len(LEFT_LEN, |left| unsafe { U::run(Piece::Rows { product, rows, left, right: right.get() }) });
            });
        });
    }
    let [down, across] = regions(rows, columns, threads);
    grid::for_each(down * across, |i| {
        let rows = aligned_piece(rows, ROWS, down, i / across);
        let columns = aligned_piece(columns, LANES, across, i % across);
        LEFT.with_len(LEFT_LEN, |left| {
            // SAFETY: the caller's promise; regions do not overlap.
            RIGHT.with_len(UNITS * (columns.len() + LANES), |right| unsafe {
                U::run(Piece::Region { product, rows: rows.clone(), columns: columns.clone(), left, right });
            });
        });
    });
}

/// Piece `i` of `pieces`, each beginning at a multiple of `step`.
fn aligned_piece(len: usize, step: usize, pieces: usize, i: usize) -> Range<usize> {
    let piece = grid::piece(len.div_ceil(step), pieces, i);
    (piece.start * step).min(len)..(piece.end * step).min(len)
}

/// Into how many regions, down and across, a result is cut so that `threads` threads end soonest.
fn regions(rows: usize, columns: usize, threads: usize) -> [usize; 2] {
    // Packing an element costs as much as this many multiply-adds.
    const PACK: f64 = 16.0;
    let narrowest = columns.div_ceil(REGION);
    let mut best = ([1, narrowest], f64::INFINITY);
    for across in narrowest..=narrowest.max(2 * threads).min(columns.div_ceil(LANES)) {
        for down in 1..=(2 * threads).min(rows.div_ceil(ROWS)) {
            let (height, width) = (rows.div_ceil(down) as f64, columns.div_ceil(across) as f64);
            let cost = (down * across).div_ceil(threads) as f64 * (height * width + PACK * (height + width));
            if cost < best.1 {
                best = ([down, across], cost);
            }
        }
    }
    best.0
}

/// A part of a product that one thread does.
pub(super) enum Piece<'a> {
    /// Packs the right side's block of depth number `block` into the whole packed right side.
    Right { product: &'a Product<'a>, block: usize, packed: *mut i32 },
    /// Computes whole rows from the packed right side; `left` has room for a block.
    Rows { product: &'a Product<'a>, rows: Range<usize>, left: *mut i32, right: *const i32 },
    /// Computes a region of the result; `left` and `right` have room for a block.
    Region { product: &'a Product<'a>, rows: Range<usize>, columns: Range<usize>, left: *mut i32, right: *mut i32 },
}

impl Piece<'_> {
    /// # Safety
    /// `U`'s instructions; the pointers are as the variants say, and nobody else uses what is written.
    #[inline(always)]
    unsafe fn run<U: Unit>(self) {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Piece::Right { product, block, packed } => {
                    let depth = product.block::<U>(block);
                    product.pack_right::<U>(0..product.sizes[2], depth.clone(), product.packed_block::<U>(packed, &depth));
                }
                Piece::Rows { product, rows, left, right } => product.rows::<U>(rows, left, right),
                Piece::Region { product, rows, columns, left, right } => product.region::<U>(rows, columns, left, right),
            }
        }
    }
}

impl Product<'_> {
    fn blocks<U: Unit>(&self) -> usize {
        self.sizes[1].div_ceil(U::DEPTH * UNITS).max(1)
    }

    /// Block `i` of depth.
    fn block<U: Unit>(&self, i: usize) -> Range<usize> {
        aligned_piece(self.sizes[1], U::DEPTH, self.blocks::<U>(), i)
    }

    /// Where a block of depth begins in the whole packed right side.
    fn packed_block<U: Unit>(&self, packed: *mut i32, depth: &Range<usize>) -> *mut i32 {
        packed.wrapping_add(depth.start / U::DEPTH * Panels { columns: self.sizes[2] }.vectors() * LANES)
    }

    /// # Safety
    /// See [`Piece::Rows`].
    #[inline(always)]
    unsafe fn rows<U: Unit>(&self, rows: Range<usize>, left: *mut i32, right: *const i32) {
        let blocks = self.blocks::<U>();
        for start in rows.clone().step_by(BLOCK) {
            let end = rows.end.min(start + BLOCK);
            for i in 0..blocks {
                let depth = self.block::<U>(i);
                let (next_rows, next_depth) = if i + 1 < blocks {
                    (start..end, self.block::<U>(i + 1))
                } else {
                    (end..rows.end.min(end + BLOCK), self.block::<U>(0))
                };
                let mut next = Ahead::left(self, next_rows, next_depth);
                next.spread_over((end - start).div_ceil(ROWS) * Panels { columns: self.sizes[2] }.count());
                // SAFETY: the caller's promise.
                unsafe {
                    self.pack_left::<U>(start..end, depth.clone(), left);
                    let right = self.packed_block::<U>(right.cast_mut(), &depth);
                    self.tiles::<U>(start..end, 0..self.sizes[2], depth, left, right, || next.ask());
                }
            }
        }
    }

    /// # Safety
    /// See [`Piece::Region`].
    #[inline(always)]
    unsafe fn region<U: Unit>(&self, rows: Range<usize>, columns: Range<usize>, left: *mut i32, right: *mut i32) {
        let blocks = self.blocks::<U>();
        let panels = Panels { columns: columns.len() }.count();
        for i in 0..blocks {
            let depth = self.block::<U>(i);
            let next_depth = if i + 1 < blocks { self.block::<U>(i + 1) } else { 0..0 };
            let mut next_right = Ahead::right(self, columns.clone(), next_depth.clone());
            next_right.spread_over(rows.len().div_ceil(ROWS) * panels);
            // SAFETY: the caller's promise.
            unsafe { self.pack_right::<U>(columns.clone(), depth.clone(), right) };
            for start in rows.clone().step_by(BLOCK) {
                let end = rows.end.min(start + BLOCK);
                let mut next_left = if end < rows.end {
                    Ahead::left(self, end..rows.end.min(end + BLOCK), depth.clone())
                } else {
                    Ahead::left(self, rows.start..rows.end.min(rows.start + BLOCK), next_depth.clone())
                };
                next_left.spread_over((end - start).div_ceil(ROWS) * panels);
                // SAFETY: the caller's promise.
                unsafe {
                    self.pack_left::<U>(start..end, depth.clone(), left);
                    self.tiles::<U>(start..end, columns.clone(), depth.clone(), left, right, || {
                        next_left.ask();
                        next_right.ask();
                    });
                }
            }
        }
    }

    /// # Safety
    /// `packed` has room for a block of rows.
    #[inline(always)]
    unsafe fn pack_left<U: Unit>(&self, rows: Range<usize>, depth: Range<usize>, packed: *mut i32) {
        let Matrix { data, row_stride, column_stride } = self.left;
        let source = data.as_ptr().wrapping_add(rows.start * row_stride + depth.start * column_stride);
        // SAFETY: the caller's promise, and that of `run` on the strides.
        unsafe {
            match column_stride {
                1 => pack::left_along::<U, ROW>(source, row_stride, rows.len(), depth.len(), packed),
                _ => pack::left_across::<U>(source, column_stride, rows.len(), depth.len(), packed),
            }
        }
    }

    /// # Safety
    /// `packed` has room for the columns, rounded up to whole vectors.
    #[inline(always)]
    unsafe fn pack_right<U: Unit>(&self, columns: Range<usize>, depth: Range<usize>, packed: *mut i32) {
        let Matrix { data, row_stride, column_stride } = self.right;
        let source = data.as_ptr().wrapping_add(depth.start * row_stride + columns.start * column_stride);
        let panels = Panels { columns: columns.len() };
        // SAFETY: the caller's promise, and that of `run` on the strides.
        unsafe {
            match column_stride {
                1 => pack::right_across::<U>(source, row_stride, depth.len(), panels, packed),
                _ => pack::right_along::<U>(source, column_stride, depth.len(), panels, packed),
            }
        }
    }

    /// All tiles of a block; `ahead` is called before each.
    ///
    /// # Safety
    /// Both sides are packed; nobody else uses the results.
    #[inline(always)]
    unsafe fn tiles<U: Unit>(
        &self,
        rows: Range<usize>,
        columns: Range<usize>,
        depth: Range<usize>,
        left: *const i32,
        right: *const i32,
        mut ahead: impl FnMut(),
    ) {
        let units = depth.len().div_ceil(U::DEPTH);
        let panels = Panels { columns: columns.len() };
        let stride = self.sizes[2];
        for p in 0..panels.count() {
            let panel = panels.range(p);
            let column = columns.start + panel.start * LANES;
            let begin = match self.bias {
                _ if depth.start > 0 => Begin::Add,
                Some(bias) => Begin::Bias(bias.as_ptr().wrapping_add(column)),
                None => Begin::Zero,
            };
            let mask = pack::first_lanes(columns.end - (columns.start + (panel.end - 1) * LANES));
            let right = right.wrapping_add(panel.start * units * LANES);
            for r in (0..rows.len()).step_by(ROWS) {
                let out = self.out.pointer((rows.start + r) * stride + column);
                let target = Target { out, stride, rows: (rows.len() - r).min(ROWS), mask };
                for i in 0..target.rows {
                    for v in 0..=panel.len() {
                        prefetch(out.wrapping_add(i * stride + v * LANES));
                    }
                }
                ahead();
                // SAFETY: the caller's promise.
                unsafe {
                    if self.left.column_stride == 1 {
                        let left = left.add(r * ROW);
                        match panel.len() {
                            1 => tile::<U, 1, ROW, 1>(units, left, right, begin, target),
                            2 => tile::<U, 2, ROW, 1>(units, left, right, begin, target),
                            _ => tile::<U, VECTORS, ROW, 1>(units, left, right, begin, target),
                        }
                    } else {
                        let left = left.add(r * units);
                        match panel.len() {
                            1 => tile::<U, 1, 1, ROWS>(units, left, right, begin, target),
                            2 => tile::<U, 2, 1, ROWS>(units, left, right, begin, target),
                            _ => tile::<U, VECTORS, 1, ROWS>(units, left, right, begin, target),
                        }
                    }
                }
            }
        }
    }
}

/// How columns are cut into panels of nearly equal width, so that none is much narrower than a tile.
#[derive(Clone, Copy)]
struct Panels {
    columns: usize,
}

impl Panels {
    fn vectors(self) -> usize {
        self.columns.div_ceil(LANES)
    }

    fn count(self) -> usize {
        self.vectors().div_ceil(VECTORS)
    }

    /// The vectors of panel `p`.
    fn range(self, p: usize) -> Range<usize> {
        grid::piece(self.vectors(), self.count(), p)
    }
}

/// Cache lines of a matrix that will be packed soon.
struct Ahead {
    at: *const f32,
    stride: usize,
    /// Lines of each run of contiguous elements.
    lines: usize,
    line: usize,
    runs: usize,
    per_tile: usize,
}

impl Ahead {
    fn left(product: &Product<'_>, rows: Range<usize>, depth: Range<usize>) -> Self {
        Self::new(product.left, rows, depth)
    }

    fn right(product: &Product<'_>, columns: Range<usize>, depth: Range<usize>) -> Self {
        Self::new(product.right, depth, columns)
    }

    fn new(Matrix { data, row_stride, column_stride }: Matrix<'_>, rows: Range<usize>, columns: Range<usize>) -> Self {
        let at = data.as_ptr().wrapping_add(rows.start * row_stride + columns.start * column_stride);
        let (stride, runs, len) =
            if column_stride == 1 { (row_stride, rows.len(), columns.len()) } else { (column_stride, columns.len(), rows.len()) };
        Self { at, stride, lines: len.div_ceil(LANES), line: 0, runs: if len == 0 { 0 } else { runs }, per_tile: 0 }
    }

    fn spread_over(&mut self, tiles: usize) {
        self.per_tile = (self.lines * self.runs).div_ceil(tiles.max(1));
    }

    /// Asks for the next few lines.
    #[inline(always)]
    fn ask(&mut self) {
        for _ in 0..self.per_tile {
            if self.runs == 0 {
                return;
            }
            // SAFETY: a prefetch never faults.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(self.at.wrapping_add(self.line * LANES).cast()) };
            self.line += 1;
            if self.line == self.lines {
                (self.line, self.runs, self.at) = (0, self.runs - 1, self.at.wrapping_add(self.stride));
            }
        }
    }
}

/// A vector's worth of packed units.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(#[allow(dead_code, reason = "read through pointers")] [i32; LANES]);

/// Units of a left block: room for whole vectors behind the last row.
const LEFT_LEN: usize = BLOCK * ROW + LANES;

std::thread_local! {
    static LEFT: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
    static RIGHT: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
}

trait Kept {
    /// Runs `work` with kept memory for at least `len` units. A product inside `work` on the same thread gets memory of its own.
    fn with_len<R>(&'static self, len: usize, work: impl FnOnce(*mut i32) -> R) -> R;
}

impl Kept for std::thread::LocalKey<Cell<Vec<Line>>> {
    fn with_len<R>(&'static self, len: usize, work: impl FnOnce(*mut i32) -> R) -> R {
        let mut lines = self.take();
        if lines.len() < len.div_ceil(LANES) {
            lines = alloc::vec![Line([0; LANES]); len.div_ceil(LANES)];
        }
        let result = work(lines.as_mut_ptr().cast());
        self.set(lines);
        result
    }
}

/// A pointer that tasks share.
#[derive(Clone, Copy)]
struct Address(*mut i32);

// SAFETY: its users write disjoint parts, or only read.
unsafe impl Send for Address {}
// SAFETY: as above.
unsafe impl Sync for Address {}

impl Address {
    fn get(self) -> *mut i32 {
        self.0
    }
}
