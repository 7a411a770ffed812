//! Large products: both sides packed into panels of f32 or of pairs of bf16, sums kept in registers.
//!
//! ```text
//! for each block of depth, in order
//!     pack the right side's block into panels, as wide as a tile
//!     for each block of 96 rows
//!         pack the left side's block
//!         for each panel, for each tile's rows: out (+)= left · right
//! ```
//!
//! 1. A right side that fits [`KEPT_RIGHT`] (the weight of a layer) is packed once, by all threads, and shared. Rows are spread over the
//!    threads, and each block of rows goes through the whole depth before the next one, so that its results stay in the cache until they
//!    are done and its inputs are read in the order they lie in memory. A deeper right side (in the gradient of a weight) is never packed
//!    whole: the result is cut into regions, each a product of its own on one thread, and the depth into parts, which many threads compute
//!    separately.
//! 2. A block of depth is 192 units of four bytes, each one f32 or two bf16: a panel of the right side (36 KiB on AVX-512, 12 KiB on AVX2)
//!    stays in the first-level cache while rows pass by, the left block (78 KiB) in the second.
//! 3. Left sides whose depth is contiguous are only converted, not transposed: a tile reads its rows where they are.
//! 4. While tiles are computed, the cache lines of the next block to be packed are prefetched, one every few units. Otherwise memory would
//!    idle while tiles are computed, and arithmetic while blocks are packed.
//!
//! An element's sum is taken block by block in the order of depth. If the right side is not packed whole, each part has a sum of its own,
//! and the parts, whose number follows from the depth, are added in order. So the number of threads never changes the result.
//!
//! Each instruction set packs operands and computes tiles in its own way: [`Unit`]. AMX multiplies so fast that its tiles wait for memory, and its
//! blocks begin at whole tiles of depth.

mod amx;
mod avx2;
mod avx512;
mod memory;
mod unit;

use super::Matrix;
use crate::grid::{self, SharedOut};
use crate::simd::prefetch;
use core::ops::Range;
use memory::{Address, Prefetcher, with_left, with_partial, with_right};
use unit::{Begin, Panels, Sides, Target, Unit};

/// Units of depth in a block.
const UNITS: usize = 192;
/// Distance in units between the rows of a left block whose depth is contiguous: not a power of two, so that rows share no cache set.
const ROW: usize = UNITS + 16;
/// Rows of a left block.
const BLOCK: usize = 96;
/// Units of a left block, including the last row's whole vectors.
const BLOCK_LEN: usize = BLOCK * ROW;
/// Blocks of depth whose left sides are packed together.
const SLAB: usize = 6;
/// Most bytes of a packed right side that is shared, and that a thread keeps.
const KEPT_RIGHT: usize = 4 << 20;
/// Widest region that a thread packs for itself.
const REGION: usize = 384;
/// Fewest blocks of depth in a part, and most parts.
const PART: usize = 8;
/// Most elements of a result whose parts are computed separately.
const APART: usize = 1 << 20;

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

/// What a product's inputs are packed as, and the instructions that multiply them.
pub(super) enum Packing {
    /// f32 on AVX2 and FMA.
    F32Avx2,
    /// f32 on AVX-512 F, BW and VL.
    F32Avx512,
    /// Pairs of bf16 on AVX-512 F, BW and VL and AVX512-BF16.
    Bf16Avx512,
    /// Pairs of bf16 on the same and AMX.
    Bf16Amx,
}

/// Computes `product` on `threads` threads.
///
/// # Safety
/// The machine has the packing's instructions; one of each side's strides is 1.
pub(super) unsafe fn run(packing: Packing, product: &Product<'_>, threads: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match packing {
            Packing::F32Avx2 => run_as::<avx2::F32>(product, threads),
            Packing::F32Avx512 => run_as::<avx512::F32>(product, threads),
            Packing::Bf16Avx512 => run_as::<avx512::Bf16>(product, threads),
            Packing::Bf16Amx => run_as::<amx::Bf16>(product, threads),
        }
    }
}

/// # Safety
/// See [`run`].
unsafe fn run_as<U: Unit>(product: &Product<'_>, threads: usize) {
    let [rows, depth, columns] = product.sizes;
    // It may overflow `usize`, since the elements of a side may overlap in memory.
    let right_len = depth.div_ceil(U::DEPTH).saturating_mul(Panels::new::<U>(columns).vectors() * U::LANES);
    if right_len <= KEPT_RIGHT / size_of::<i32>() {
        return with_right(right_len, |packed| {
            let packed = Address(packed);
            let blocks = product.blocks::<U>();
            let parts = threads.div_ceil(blocks).min(Panels::new::<U>(columns).count()).max(1);
            grid::for_each(blocks * parts, |i| {
                let panels = Panels::new::<U>(columns).part(parts, i % parts);
                // SAFETY: the caller's promise; every task packs its own panels of its own block of depth.
                unsafe { U::run(Piece::Right { product, block: i / parts, panels, packed: packed.get() }) };
            });
            let most = if threads == 1 { 1 } else { 8 * threads };
            // The same number for every thread: otherwise some would end a task later than the others.
            let tasks = rows.div_ceil(BLOCK).max(2 * threads).next_multiple_of(threads).min(most).min(rows.div_ceil(U::ROWS));
            grid::for_each(tasks, |i| {
                let rows = aligned_piece(rows, U::ROWS, tasks, i);
                with_left(BLOCK_LEN * blocks.min(SLAB), |left| {
                    // SAFETY: the caller's promise; the right side is packed, and every task has its own rows.
                    unsafe { U::run(Piece::Rows { product, rows, left, right: packed.get() }) };
                });
            });
        });
    }
    // SAFETY: the caller's promise.
    unsafe { by_regions::<U>(product, threads) }
}

/// Computes regions of the result, and parts of the depth one after the other or as separate tasks.
///
/// # Safety
/// See [`run`].
unsafe fn by_regions<U: Unit>(product: &Product<'_>, threads: usize) {
    let [rows, _, columns] = product.sizes;
    let Regions { down, across, apart } = regions::<U>(product, threads);
    let parts = product.parts::<U>();
    let region = |i: usize| (aligned_piece(rows, U::ROWS, down, i / across), aligned_piece(columns, U::LANES, across, i % across));
    let run = |(rows, columns): (Range<usize>, Range<usize>), part: usize, into: Place| {
        with_left(BLOCK_LEN, |left| {
            with_right(UNITS * (columns.len() + U::LANES), |right| {
                let blocks = grid::piece(product.blocks::<U>(), parts, part);
                // SAFETY: the caller's promise; regions do not overlap, and all parts but the first have memory of their own.
                unsafe { U::run(Piece::Region { product, rows, columns, blocks, into, left, right }) };
            });
        });
    };
    if !apart {
        return grid::for_each(down * across, |i| {
            let (rows, columns) = region(i);
            let whole = product.whole(&rows, &columns);
            run((rows.clone(), columns.clone()), 0, whole);
            let len = if parts > 1 { rows.len() * columns.len() } else { 0 };
            with_partial(len, |partial| {
                for part in 1..parts {
                    let into = Place { out: partial, stride: columns.len() };
                    run((rows.clone(), columns.clone()), part, into);
                    // SAFETY: both belong to this region alone and were just written.
                    unsafe { add(whole, into, [rows.len(), columns.len()]) };
                }
            });
        });
    }
    with_partial((parts - 1) * rows * columns, |partial| {
        let partial = Address(partial.cast());
        let place = |part: usize, rows: &Range<usize>, columns: &Range<usize>| match part {
            0 => product.whole(rows, columns),
            _ => {
                let at = ((part - 1) * product.sizes[0] + rows.start) * product.sizes[2] + columns.start;
                Place { out: partial.get().cast::<f32>().wrapping_add(at), stride: product.sizes[2] }
            }
        };
        grid::for_each(down * across * parts, |i| {
            let (rows, columns) = region(i / parts);
            let into = place(i % parts, &rows, &columns);
            run((rows, columns), i % parts, into);
        });
        grid::for_each(threads.min(rows), |i| {
            let rows = grid::piece(rows, threads.min(rows), i);
            for part in 1..parts {
                // SAFETY: every task has rows of its own, which were written before.
                unsafe { add(place(0, &rows, &(0..columns)), place(part, &rows, &(0..columns)), [rows.len(), columns]) };
            }
        });
    });
}

/// Adds a matrix of `sizes` to another.
///
/// # Safety
/// Both are initialised, and nothing else uses them.
unsafe fn add(into: Place, partial: Place, [rows, columns]: [usize; 2]) {
    for row in 0..rows {
        // SAFETY: the caller's promise.
        unsafe {
            let sum = core::slice::from_raw_parts_mut(into.out.wrapping_add(row * into.stride), columns);
            let partial = core::slice::from_raw_parts(partial.out.wrapping_add(row * partial.stride), columns);
            for (sum, x) in sum.iter_mut().zip(partial) {
                *sum += x;
            }
        }
    }
}

/// Piece `i` of `pieces`, each beginning at a multiple of `step`.
fn aligned_piece(len: usize, step: usize, pieces: usize, i: usize) -> Range<usize> {
    let piece = grid::piece(len.div_ceil(step), pieces, i);
    (piece.start * step).min(len)..(piece.end * step).min(len)
}

/// How a product is cut.
struct Regions {
    /// Number of regions of the result below each other, and side by side.
    down: usize,
    across: usize,
    /// Whether each task computes one part of the depth, rather than all parts of a region.
    apart: bool,
}

/// How a product is cut so that `threads` threads finish soonest.
fn regions<U: Unit>(product: &Product<'_>, threads: usize) -> Regions {
    // The cost, in multiply-adds, of packing an element and of adding an element of a partial result.
    const PACK: f64 = 16.0;
    const ADD: f64 = 64.0;
    // The time of separate parts relative to the same work in one task: their results go through memory.
    const APART_FACTOR: f64 = 1.06;
    let [rows, depth, columns] = product.sizes;
    let parts = product.parts::<U>();
    let narrowest = columns.div_ceil(REGION);
    let mut best = (Regions { down: 1, across: narrowest, apart: false }, f64::INFINITY);
    for apart in [false, true] {
        if apart && (threads == 1 || parts == 1 || rows * columns > APART) {
            continue;
        }
        let (pieces, factor) = if apart { (parts, APART_FACTOR) } else { (1, 1.0) };
        let after = (pieces - 1) as f64 * (rows * columns) as f64 * ADD / (depth * threads) as f64;
        for across in narrowest..=narrowest.max((narrowest + threads).min(columns.div_ceil(U::LANES))) {
            for down in 1..=(2 * threads).min(rows.div_ceil(U::ROWS)) {
                let (height, width) = (rows.div_ceil(down) as f64, columns.div_ceil(across) as f64);
                let rounds = (down * across * pieces).div_ceil(threads) as f64;
                let cost = factor * rounds * (height * width + PACK * (height + width)) / pieces as f64 + after;
                if cost < best.1 {
                    best = (Regions { down, across, apart }, cost);
                }
            }
        }
    }
    best.0
}

/// A part of a product that one thread does.
enum Piece<'a> {
    /// Packs panels of the right side's block of depth number `block` into their part of the whole packed right side.
    Right { product: &'a Product<'a>, block: usize, panels: Panels, packed: *mut i32 },
    /// Computes whole rows from the packed right side; `left` has room for a slab.
    Rows { product: &'a Product<'a>, rows: Range<usize>, left: *mut i32, right: *const i32 },
    /// Computes a region of the result over some blocks of depth; `left` and `right` have room for a block.
    Region {
        product: &'a Product<'a>,
        rows: Range<usize>,
        columns: Range<usize>,
        blocks: Range<usize>,
        into: Place,
        left: *mut i32,
        right: *mut i32,
    },
}

/// Where the first element of a region goes, and how far it is from row to row.
#[derive(Clone, Copy)]
struct Place {
    out: *mut f32,
    stride: usize,
}

impl Piece<'_> {
    /// # Safety
    /// See [`Unit::run`].
    #[inline(always)]
    unsafe fn run<U: Unit>(self) {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Piece::Right { product, block, panels, packed } => {
                    let depth = product.block::<U>(block);
                    product.pack_right::<U>(0, panels, depth.clone(), packed.wrapping_add(product.packed_before::<U>(&depth)));
                }
                Piece::Rows { product, rows, left, right } => product.rows::<U>(rows, left, right),
                Piece::Region { product, rows, columns, blocks, into, left, right } => {
                    product.region::<U>(rows, columns, blocks, into, left, right);
                }
            }
        }
    }
}

impl Product<'_> {
    /// Number of blocks of depth: at least one, which is empty if the depth is 0.
    fn blocks<U: Unit>(&self) -> usize {
        self.sizes[1].div_ceil(U::DEPTH * UNITS).max(1)
    }

    /// Block `i` of depth.
    fn block<U: Unit>(&self, i: usize) -> Range<usize> {
        aligned_piece(self.sizes[1], U::ALIGN, self.blocks::<U>(), i)
    }

    /// Number of parts, whose sums are added at the end, that the depth is cut into if the right side is not packed whole.
    fn parts<U: Unit>(&self) -> usize {
        (self.blocks::<U>() / PART).clamp(1, PART)
    }

    /// A region's place in the result.
    fn whole(&self, rows: &Range<usize>, columns: &Range<usize>) -> Place {
        let stride = self.sizes[2];
        Place { out: self.out.pointer(rows.start * stride + columns.start), stride }
    }

    /// Units of the whole packed right side before a block of depth.
    fn packed_before<U: Unit>(&self, depth: &Range<usize>) -> usize {
        depth.start / U::DEPTH * Panels::new::<U>(self.sizes[2]).vectors() * U::LANES
    }

    /// How often the tiles of a block issue prefetches.
    fn issues<U: Unit>(rows: usize, columns: usize, depth: usize) -> usize {
        rows.div_ceil(U::ROWS) * Panels::new::<U>(columns).count() * (depth / U::DEPTH / U::ISSUE)
    }

    /// # Safety
    /// See [`Piece::Rows`].
    #[inline(always)]
    unsafe fn rows<U: Unit>(&self, rows: Range<usize>, left: *mut i32, right: *const i32) {
        let (blocks, columns) = (self.blocks::<U>(), self.sizes[2]);
        let slab = |first: usize| first..blocks.min(first + SLAB);
        let depth = |blocks: Range<usize>| self.block::<U>(blocks.start).start..self.block::<U>(blocks.end - 1).end;
        for start in rows.clone().step_by(BLOCK) {
            let these = start..rows.end.min(start + BLOCK);
            for first in (0..blocks).step_by(SLAB) {
                let (next_rows, next) = match first + SLAB < blocks {
                    true => (these.clone(), slab(first + SLAB)),
                    false => (these.end..rows.end.min(these.end + BLOCK), slab(0)),
                };
                let issues = Self::issues::<U>(these.len(), columns, depth(slab(first)).len());
                let mut next = Prefetcher::new(self.left, next_rows, depth(next), issues);
                // SAFETY: the caller's promise.
                unsafe {
                    self.pack_left::<U>(these.clone(), slab(first), left);
                    for i in slab(first) {
                        let (left, depth) = (left.add((i - first) * BLOCK_LEN), self.block::<U>(i));
                        let right = right.wrapping_add(self.packed_before::<U>(&depth));
                        let into = self.whole(&these, &(0..columns));
                        self.tiles::<U>(these.len(), 0..columns, depth, i == 0, into, left, right, || next.issue());
                    }
                }
            }
        }
    }

    /// # Safety
    /// See [`Piece::Region`].
    #[inline(always)]
    unsafe fn region<U: Unit>(
        &self,
        rows: Range<usize>,
        columns: Range<usize>,
        blocks: Range<usize>,
        into: Place,
        left: *mut i32,
        right: *mut i32,
    ) {
        for i in blocks.clone() {
            let depth = self.block::<U>(i);
            let next_depth = if i + 1 < blocks.end { self.block::<U>(i + 1) } else { 0..0 };
            let issues = Self::issues::<U>(rows.len(), columns.len(), depth.len());
            let mut next_right = Prefetcher::new(self.right, next_depth.clone(), columns.clone(), issues);
            // SAFETY: the caller's promise.
            unsafe { self.pack_right::<U>(columns.start, Panels::new::<U>(columns.len()), depth.clone(), right) };
            for start in rows.clone().step_by(BLOCK) {
                let these = start..rows.end.min(start + BLOCK);
                let issues = Self::issues::<U>(these.len(), columns.len(), depth.len());
                let (next_rows, next_depth) = match these.end < rows.end {
                    true => (these.end..rows.end.min(these.end + BLOCK), depth.clone()),
                    false => (rows.start..rows.end.min(rows.start + BLOCK), next_depth.clone()),
                };
                let mut next_left = Prefetcher::new(self.left, next_rows, next_depth, issues);
                // SAFETY: the caller's promise.
                unsafe {
                    self.pack_left::<U>(these.clone(), i..i + 1, left);
                    let into = Place { out: into.out.wrapping_add((start - rows.start) * into.stride), ..into };
                    self.tiles::<U>(these.len(), columns.clone(), depth.clone(), i == blocks.start, into, left, right, || {
                        next_left.issue();
                        next_right.issue();
                    });
                }
            }
        }
    }

    /// Packs rows of these blocks of depth, [`BLOCK_LEN`] apart.
    ///
    /// # Safety
    /// `packed` has room for them.
    #[inline(always)]
    unsafe fn pack_left<U: Unit>(&self, rows: Range<usize>, blocks: Range<usize>, packed: *mut i32) {
        let Matrix { data, row_stride, column_stride } = self.left;
        let source = |row: usize, depth: &Range<usize>| data.as_ptr().wrapping_add(row * row_stride + depth.start * column_stride);
        if column_stride != 1 {
            for (i, depth) in blocks.map(|i| self.block::<U>(i)).enumerate() {
                // SAFETY: the caller's promise, and that of `run` on the strides.
                unsafe {
                    U::left_across(source(rows.start, &depth), column_stride, rows.len(), depth.len(), packed.add(i * BLOCK_LEN));
                }
            }
            return;
        }
        for (r, row) in rows.enumerate() {
            for (i, depth) in blocks.clone().map(|i| self.block::<U>(i)).enumerate() {
                // SAFETY: `packed` has room for every block and row by the caller's promise; a row's depth is contiguous, as `column_stride` is 1.
                unsafe { U::left_along(source(row, &depth), depth.len(), packed.add(i * BLOCK_LEN + r * ROW)) };
            }
        }
    }

    /// # Safety
    /// `packed` has room for the columns from `column` on that the panels have, rounded up to whole vectors.
    #[inline(always)]
    unsafe fn pack_right<U: Unit>(&self, column: usize, panels: Panels, depth: Range<usize>, packed: *mut i32) {
        let Matrix { data, row_stride, column_stride } = self.right;
        let source = data.as_ptr().wrapping_add(depth.start * row_stride + column * column_stride);
        // SAFETY: the caller's promise, and that of `run` on the strides.
        unsafe {
            match column_stride {
                1 => U::right_across(source, row_stride, depth.len(), panels, packed),
                _ => U::right_along(source, column_stride, depth.len(), panels, packed),
            }
        }
    }

    /// All tiles of a block, which is the `first` of its sums or adds to them; `issue` is called every few units.
    ///
    /// # Safety
    /// Both sides are packed; nothing else uses the results.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "a block is three ranges and three places, and its parts are used nowhere else together")]
    unsafe fn tiles<U: Unit>(
        &self,
        rows: usize,
        columns: Range<usize>,
        depth: Range<usize>,
        first: bool,
        into: Place,
        left: *const i32,
        right: *const i32,
        mut issue: impl FnMut(),
    ) {
        let (units, stride) = (depth.len().div_ceil(U::DEPTH), into.stride);
        let panels = Panels::new::<U>(columns.len());
        for p in 0..panels.count() {
            let panel = panels.range(p);
            let column = columns.start + panel.start * U::LANES;
            let begin = match self.bias {
                _ if !first => Begin::Add,
                Some(bias) if depth.start == 0 => Begin::Bias(bias.as_ptr().wrapping_add(column)),
                _ => Begin::Zero,
            };
            let last = (columns.end - (columns.start + (panel.end - 1) * U::LANES)).min(U::LANES);
            let right = right.wrapping_add(panel.start * units * U::LANES);
            for r in (0..rows).step_by(U::ROWS) {
                let out = into.out.wrapping_add(r * stride + panel.start * U::LANES);
                let target = Target { out, stride, rows: (rows - r).min(U::ROWS), last };
                if matches!(begin, Begin::Add) {
                    for i in 0..target.rows {
                        for v in 0..=panel.len() {
                            prefetch(out.wrapping_add(i * stride + v * U::LANES));
                        }
                    }
                }
                let along = self.left.column_stride == 1;
                let left = left.wrapping_add(U::left_at(along, units, r));
                // SAFETY: the caller's promise.
                unsafe { U::tile(along, panel.len(), Sides { units, left, right }, begin, target, &mut issue) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Level;
    use alloc::{vec, vec::Vec};

    fn product(packing: Packing, sizes: [usize; 3], left: Matrix<'_>, right: Matrix<'_>, bias: Option<&[f32]>, threads: usize) -> Vec<f32> {
        let mut out = vec![f32::NAN; sizes[0] * sizes[2]];
        let product = Product { sizes, left, right, bias, out: SharedOut::new(&mut out) };
        // SAFETY: the tests ask for instructions that were detected, and their matrices lie in their slices.
        unsafe { run(packing, &product, threads) };
        out
    }

    #[test]
    fn bf16_products_in_tiles_are_those_of_vectors_but_for_the_order_of_sums() {
        if !Level::available().iter().any(|level| level.multiplies_bf16()) || !crate::amx::is_available() {
            return;
        }
        let wave = |len: usize, step: usize| (0..len).map(|i| ((i * step) % 1009) as f32 / 504.5 - 1.0).collect::<Vec<f32>>();
        for [rows, depth, columns] in [
            [1, 1, 1],
            [15, 31, 17],
            [16, 32, 16],
            [17, 33, 32],
            [32, 64, 33],
            [33, 96, 48],
            [95, 385, 65],
            [97, 1000, 130],
            [40, 9000, 300],
        ] {
            let (left, right, bias) = (wave(rows * depth, 7919), wave(depth * columns, 6007), wave(columns, 31));
            for layout in 0..8 {
                let left = if layout & 1 > 0 { Matrix::new(&left, rows).transpose() } else { Matrix::new(&left, depth) };
                let right = if layout & 2 > 0 { Matrix::new(&right, depth).transpose() } else { Matrix::new(&right, columns) };
                let bias = (layout & 4 > 0).then_some(&bias[..]);
                let run = |packing, threads| product(packing, [rows, depth, columns], left, right, bias, threads);
                let (vectors, tiles) = (run(Packing::Bf16Avx512, 1), run(Packing::Bf16Amx, 1));
                for (i, (a, b)) in vectors.iter().zip(&tiles).enumerate() {
                    // Every product is at most 1.
                    assert!(
                        (a - b).abs() <= 2e-6 * (depth + 1) as f32,
                        "{rows}×{depth}×{columns} layout {layout} element {i}: {b}, in vectors {a}"
                    );
                }
                assert!(run(Packing::Bf16Amx, 3) == tiles, "{rows}×{depth}×{columns} layout {layout}: threads change the result");
            }
        }
    }
}
