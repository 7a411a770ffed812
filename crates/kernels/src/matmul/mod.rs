//! Matrix products: those of recurrences, many small ones, each on one thread; and those of layers, spread over all threads.
//!
//! The layout of the right side decides the speed. One with contiguous rows (`column_stride` 1) is read as it is; a transposed one is
//! packed again in every call, which costs as much as a product with few rows. So a weight that is used at every step is [`transposed`]
//! once.
//!
//! Products use the `gemm` crate, which chooses its own instructions. A single row has a loop of its own, which runs as fast as the weights
//! arrive from the cache; large products on AVX2 and AVX-512 and those with bf16 inputs ([`mod@bf16`]) use `packed`, which keeps memory
//! and arithmetic busy at the same time. Without `std` plain loops do the work.

pub mod bf16;
#[cfg(all(target_arch = "x86_64", feature = "std"))]
mod packed;

use crate::choices;
use crate::grid::{self, SharedOut};
use crate::out::{Out, Slots};
use crate::shape::{elements, expect_len};
use crate::simd::{self, Level, Simd, WithSimd, mul_add};
use alloc::{vec, vec::Vec};
use core::mem::MaybeUninit;

/// A matrix inside a slice: element `[i, j]` is `data[i · row_stride + j · column_stride]`.
#[derive(Debug, Clone, Copy)]
pub struct Matrix<'a> {
    data: &'a [f32],
    row_stride: usize,
    column_stride: usize,
}

impl<'a> Matrix<'a> {
    /// Row-major with `stride` elements from one row to the next.
    pub fn new(data: &'a [f32], stride: usize) -> Self {
        Self { data, row_stride: stride, column_stride: 1 }
    }

    /// The same elements with rows and columns exchanged.
    pub fn transpose(self) -> Self {
        Self { row_stride: self.column_stride, column_stride: self.row_stride, ..self }
    }

    #[track_caller]
    fn expect_holds(&self, name: &str, rows: usize, columns: usize) {
        if rows > 0 && columns > 0 {
            // If the end of a matrix overflows, it is longer than any slice.
            let last = |count: usize, stride: usize| (count - 1).saturating_mul(stride);
            let needed = last(rows, self.row_stride).saturating_add(last(columns, self.column_stride)).saturating_add(1);
            assert!(needed <= self.data.len(), "{name} side of a product: expected at least {needed} elements, found {}", self.data.len());
        }
    }
}

/// What happens to the old contents of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Write {
    /// They are overwritten.
    Store,
    /// The product is added to them.
    Add,
}

/// `out[i, j] (+)= Σ_k left[i, k] · right[k, j]` on the calling thread.
///
/// # Shapes
/// `left` [rows, depth], `right` [depth, columns], `out` [rows, columns] with `out_stride ≥ columns` elements from row to row.
///
/// # Panics
/// When an element lies outside its slice.
pub fn multiply(
    level: Level,
    [rows, depth, columns]: [usize; 3],
    left: Matrix<'_>,
    right: Matrix<'_>,
    into: Write,
    out: &mut [f32],
    out_stride: usize,
) {
    if rows == 0 || columns == 0 {
        return;
    }
    left.expect_holds("left", rows, depth);
    right.expect_holds("right", depth, columns);
    assert!(rows == 1 || out_stride >= columns, "result of a product: rows of {columns} elements lie {out_stride} apart");
    let needed = (rows - 1).saturating_mul(out_stride).saturating_add(columns);
    assert!(out.len() >= needed, "result of a product: expected at least {needed} elements, found {}", out.len());
    if rows == 1 && left.column_stride == 1 && right.column_stride == 1 {
        return level.run(RowProduct { left: &left.data[..depth], right, into, out: Out::new(&mut out[..columns]).slots() });
    }
    general([rows, depth, columns], left, right, into, Out::new(out).slots(), out_stride, 1);
}

/// Fewest rows that repay packing both sides of a large f32 product.
#[cfg(all(target_arch = "x86_64", feature = "std"))]
const PACKED_ROWS: usize = 64;

/// Fewest multiplications worth more than one thread.
const PARALLEL: usize = 1 << 22;

choices! {
    /// What a product's inputs are rounded to. Sums are f32.
    Precision, "precision" {
        /// Not at all.
        #[default]
        F32 = "f32",
        /// To bf16, nearest even, if the CPU can multiply them ([`bf16::has_bf16`]); otherwise not at all.
        Bf16 = "bf16",
    }
}

/// `out[i, j] = bias[j] + Σ_k left[i, k] · right[k, j]` on the threads of the ambient pool.
///
/// # Shapes
/// `left` [rows, depth], `right` [depth, columns], `bias` `[columns]`, `out` [rows, columns], dense.
///
/// Subnormal inputs, those below [`f32::MIN_POSITIVE`], count as 0 in large products: many CPUs multiply them a hundred times more slowly.
///
/// # Panics
/// When an element is outside its slice, or `bias` or `out` has the wrong length.
pub fn matmul(
    precision: Precision,
    [rows, depth, columns]: [usize; 3],
    left: Matrix<'_>,
    right: Matrix<'_>,
    bias: Option<&[f32]>,
    out: Out,
) {
    out.expect_len("result of a product", elements([rows, columns]));
    if let Some(bias) = bias {
        expect_len("bias of a product", bias, columns);
    }
    let out = out.slots();
    if out.is_empty() {
        return;
    }
    left.expect_holds("left", rows, depth);
    right.expect_holds("right", depth, columns);
    let large = rows.saturating_mul(depth).saturating_mul(columns) >= PARALLEL;
    let threads = if large { grid::threads() } else { 1 };
    #[cfg(all(target_arch = "x86_64", feature = "std"))]
    {
        use packed::Packing;
        let product = packed::Product { sizes: [rows, depth, columns], left, right, bias, out: SharedOut::of(out) };
        // SAFETY: the instructions were detected; every element lies in its slice; matrices are row-major or transposed.
        unsafe {
            match (precision, Level::current()) {
                (Precision::Bf16, _) if bf16::has_tiles() => return packed::run(Packing::Bf16Amx, &product, threads),
                (Precision::Bf16, _) if bf16::has_bf16() => return packed::run(Packing::Bf16Avx512, &product, threads),
                (_, Level::Avx512(_)) if large && rows >= PACKED_ROWS => return packed::run(Packing::F32Avx512, &product, threads),
                (_, Level::Avx2(_)) if large && rows >= PACKED_ROWS => return packed::run(Packing::F32Avx2, &product, threads),
                _ => {}
            }
        }
    }
    #[cfg(not(all(target_arch = "x86_64", feature = "std")))]
    let _ = precision;
    let into = match bias {
        Some(bias) => {
            fill_rows(bias, out);
            Write::Add
        }
        None => Write::Store,
    };
    if rows > 1 || left.column_stride != 1 || right.column_stride != 1 {
        return general([rows, depth, columns], left, right, into, out, columns, threads);
    }
    let level = Level::current();
    let shared = SharedOut::of(out);
    grid::for_each(threads, |i| {
        let piece = grid::piece(columns, threads, i);
        // SAFETY: pieces do not overlap, and `out` outlives the loop.
        let out = unsafe { shared.slice(piece.start, piece.len()) };
        if depth == 0 || piece.is_empty() {
            return if into == Write::Store {
                out.fill(MaybeUninit::new(0.0))
            };
        }
        let right = Matrix { data: &right.data[piece.start..], ..right };
        level.run(RowProduct { left: &left.data[..depth], right, into, out });
    });
}

/// Fewest threads that do two products side by side.
#[cfg(feature = "std")]
const SIDE_BY_SIDE: usize = 4;

/// Runs two independent pieces of work, such as the two products of a layer's backward pass. Threads that find no more tasks in the first
/// start on the second.
pub fn both(first: impl FnOnce() + Send, second: impl FnOnce() + Send) {
    #[cfg(feature = "std")]
    if grid::threads() >= SIDE_BY_SIDE && !crate::schedule::is_recording() {
        let level = Level::current();
        rayon::join(|| level.scope(first), || level.scope(second));
        return;
    }
    first();
    second();
}

/// Every row of `out` becomes `row`.
fn fill_rows(row: &[f32], out: Slots) {
    for out in out.chunks_exact_mut(row.len()) {
        out.write_copy_of_slice(row);
    }
}

/// `[rows, columns]` → `[columns, rows]`, both row-major and dense.
///
/// # Panics
/// When `data` is shorter than the matrix.
pub fn transposed(data: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    // Square tiles, so that both sides stay in the cache while a tile is copied.
    const TILE: usize = 16;
    let len = elements([rows, columns]);
    assert!(data.len() >= len, "data: expected at least {len} elements, found {}; check it against the shape", data.len());
    let mut out = vec![0.0; len];
    let rows = if len == 0 { 0 } else { rows };
    for i0 in (0..rows).step_by(TILE) {
        for j0 in (0..columns).step_by(TILE) {
            for i in i0..rows.min(i0 + TILE) {
                for j in j0..columns.min(j0 + TILE) {
                    out[j * rows + i] = data[i * columns + j];
                }
            }
        }
    }
    out
}

/// Every element of the three matrices must lie in its slice, and `out` must be initialised if it is added to.
#[cfg(feature = "std")]
fn general(
    [rows, depth, columns]: [usize; 3],
    left: Matrix<'_>,
    right: Matrix<'_>,
    into: Write,
    out: Slots,
    out_stride: usize,
    threads: usize,
) {
    // SAFETY: the callers checked that every element of the three matrices lies in its slice; `out` is borrowed mutably, and is read
    // only by `multiply`'s `Write::Add`, whose `out` is initialised.
    unsafe {
        gemm::gemm(
            rows,
            columns,
            depth,
            out.as_mut_ptr().cast::<f32>(),
            1,
            out_stride as isize,
            into == Write::Add,
            left.data.as_ptr(),
            left.column_stride as isize,
            left.row_stride as isize,
            right.data.as_ptr(),
            right.column_stride as isize,
            right.row_stride as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            if threads > 1 { gemm::Parallelism::Rayon(threads) } else { gemm::Parallelism::None },
        );
    }
}

#[cfg(not(feature = "std"))]
fn general([rows, depth, columns]: [usize; 3], left: Matrix<'_>, right: Matrix<'_>, into: Write, out: Slots, out_stride: usize, _: usize) {
    for i in 0..rows {
        let out = &mut out[i * out_stride..][..columns];
        if into == Write::Store {
            out.fill(MaybeUninit::new(0.0));
        }
        // SAFETY: filled above, or by the caller of `multiply` with `Write::Add`.
        let out = unsafe { core::slice::from_raw_parts_mut(out.as_mut_ptr().cast::<f32>(), columns) };
        for k in 0..depth {
            let a = left.data[i * left.row_stride + k * left.column_stride];
            for (j, out) in out.iter_mut().enumerate() {
                *out += a * right.data[k * right.row_stride + j * right.column_stride];
            }
        }
    }
}

/// One row times a matrix with contiguous rows.
struct RowProduct<'a> {
    left: &'a [f32],
    right: Matrix<'a>,
    /// With [`Write::Add`], `out` must be initialised.
    into: Write,
    out: Slots<'a>,
}

impl WithSimd for RowProduct<'_> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let columns = self.out.len();
        let mut first = 0;
        // Eight independent sums hide the latency of an addition.
        while first + 8 * S::F32_LANES <= columns {
            self.vectors::<S, 8>(simd, first);
            first += 8 * S::F32_LANES;
        }
        while first + 2 * S::F32_LANES <= columns {
            self.vectors::<S, 2>(simd, first);
            first += 2 * S::F32_LANES;
        }
        while first < columns {
            self.vectors::<S, 1>(simd, first);
            first += S::F32_LANES;
        }
    }
}

impl RowProduct<'_> {
    #[inline(always)]
    fn vectors<S: Simd, const V: usize>(&mut self, simd: S, first: usize) {
        let mut sums = [simd.splat_f32s(0.0); V];
        let end = self.out.len().min(first + V * S::F32_LANES);
        for (k, &a) in self.left.iter().enumerate() {
            let a = simd.splat_f32s(a);
            let row = &self.right.data[k * self.right.row_stride..][first..end];
            for (v, sum) in sums.iter_mut().enumerate() {
                *sum = mul_add(simd, a, simd::load(simd, row, v * S::F32_LANES), *sum);
            }
        }
        for (v, sum) in sums.into_iter().enumerate() {
            let at = first + v * S::F32_LANES;
            let sum = match self.into {
                // SAFETY: the old contents are initialised if they are added to.
                Write::Add => simd.add_f32s(simd::load(simd, unsafe { self.out.assume_init_ref() }, at), sum),
                Write::Store => sum,
            };
            simd::store(simd, self.out, at, sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(i: usize) -> f32 {
        ((i * 37 + 11) % 101) as f32 / 50.0 - 1.0
    }

    #[test]
    fn products_match_the_plain_sum_on_every_level() {
        for level in Level::available() {
            for [m, k, n] in [[1, 1, 1], [1, 33, 200], [2, 5, 17], [7, 64, 48], [8, 128, 128], [9, 3, 50], [3, 0, 4], [1, 0, 4]] {
                let a: Vec<f32> = (0..m * k).map(value).collect();
                let b: Vec<f32> = (0..k * n).map(|i| value(i + 5)).collect();
                let (a_t, b_t) = (transposed(&a, m, k), transposed(&b, k, n));
                let (a_t, b_t) = (Matrix::new(&a_t, m).transpose(), Matrix::new(&b_t, k).transpose());
                let (a, b) = (Matrix::new(&a, k), Matrix::new(&b, n));
                let stride = n + 3;
                let mut out = vec![f32::NAN; m * stride];
                multiply(level, [m, k, n], a, b, Write::Store, &mut out, stride);
                multiply(level, [m, k, n], a_t, b, Write::Add, &mut out, stride);
                multiply(level, [m, k, n], a, b_t, Write::Add, &mut out, stride);
                for i in 0..m {
                    for j in 0..n {
                        let sum: f64 = (0..k).map(|l| f64::from(a.data[i * k + l]) * f64::from(b.data[l * n + j])).sum();
                        let found = f64::from(out[i * stride + j]);
                        assert!((found - 3.0 * sum).abs() < 1e-4, "{} {m}×{k}×{n}: {found}, expected {}", level.name(), 3.0 * sum);
                    }
                    assert!(out[i * stride + n..(i + 1) * stride].iter().all(|x| x.is_nan()), "wrote past a row");
                }
            }
        }
    }
    #[test]
    fn products_on_all_threads_match_the_plain_sum() {
        for [m, k, n] in [[1, 1, 1], [1, 2100, 2100], [1, 0, 3], [0, 2, 3], [2, 0, 3], [3, 5, 0], [5, 7, 9], [170, 160, 160]] {
            let a: Vec<f32> = (0..m * k).map(value).collect();
            let b: Vec<f32> = (0..k * n).map(|i| value(i + 5)).collect();
            let (a_t, b_t) = (transposed(&a, m, k), transposed(&b, k, n));
            for (left, right) in [
                (Matrix::new(&a, k), Matrix::new(&b, n)),
                (Matrix::new(&a_t, m).transpose(), Matrix::new(&b, n)),
                (Matrix::new(&a, k), Matrix::new(&b_t, k).transpose()),
            ] {
                let mut out = vec![f32::NAN; m * n];
                matmul(Precision::F32, [m, k, n], left, right, None, Out::new(&mut out));
                for (at, found) in out.into_iter().enumerate() {
                    let (i, j) = (at / n, at % n);
                    let sum: f64 = (0..k).map(|l| f64::from(a[i * k + l]) * f64::from(b[l * n + j])).sum();
                    let found = f64::from(found);
                    assert!((found - sum).abs() < 2e-3, "{m}×{k}×{n}: {found}, expected {sum}");
                }
            }
        }
    }
}
