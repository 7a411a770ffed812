//! Packs strided f32 into units, for either orientation of the source.
//!
//! "Along": consecutive elements along the depth are contiguous. "Across": rows (left) or columns (right) are.

use super::super::unit::Panels;
use super::operand::Operand;
use super::tile::{LANES, ROWS, first_lanes};
use crate::simd::prefetch;
use core::arch::x86_64::*;

/// Sixteen elements; those from `count` on are 0 and need not exist.
#[inline(always)]
unsafe fn load(source: *const f32, count: usize) -> __m512 {
    // SAFETY: AVX-512 by the callers' promise; masked lanes are not read.
    unsafe { _mm512_maskz_loadu_ps(first_lanes(count), source) }
}

/// `LANES · DEPTH` elements along the depth, of which `count` exist, as sixteen units.
#[inline(always)]
unsafe fn along<U: Operand>(source: *const f32, count: usize) -> __m512i {
    // SAFETY: the callers' promise.
    unsafe {
        let second = if U::DEPTH > 1 { load(source.wrapping_add(LANES), count.saturating_sub(LANES)) } else { _mm512_setzero_ps() };
        U::consecutive(load(source, count), second)
    }
}

/// Sixteen lanes, of which `count` exist, of the unit whose first element is `source`; `second` says whether its second element exists too.
#[inline(always)]
unsafe fn across<U: Operand>(source: *const f32, stride: usize, count: usize, second: bool) -> __m512i {
    // SAFETY: the callers' promise.
    unsafe {
        let second = if U::DEPTH > 1 && second { load(source.wrapping_add(stride), count) } else { _mm512_setzero_ps() };
        U::pair(load(source, count), second)
    }
}

/// Prefetches a unit's lines some runs before they are packed: the hardware prefetcher does not follow strides this long.
#[inline(always)]
fn prefetch_unit<U: Operand>(source: *const f32, stride: usize) {
    for run in 0..U::DEPTH {
        prefetch(source.wrapping_add((LANES * U::DEPTH + run) * stride));
    }
}

/// A row of a left side along the depth: unit u goes to `packed[u]`, `packed` having room for whole vectors.
///
/// # Safety
/// Called below [`Operand::run`]; `depth` elements are readable, the packed ones writable.
#[inline(always)]
pub(in super::super) unsafe fn left_along<U: Operand>(source: *const f32, depth: usize, packed: *mut i32) {
    for k in (0..depth).step_by(LANES * U::DEPTH) {
        // SAFETY: the caller's promise.
        unsafe { _mm512_storeu_epi32(packed.add(k / U::DEPTH), along::<U>(source.wrapping_add(k), depth - k)) };
    }
}

/// Left side across: unit u of row r goes to `packed[(r / ROWS) · ROWS · units + u · ROWS + r % ROWS]`, an even number of row groups.
///
/// # Safety
/// Called below [`Operand::run`]; `depth` runs of `rows` elements, `stride` apart, are readable, the packed ones writable.
#[inline(always)]
pub(in super::super) unsafe fn left_across<U: Operand>(source: *const f32, stride: usize, rows: usize, depth: usize, packed: *mut i32) {
    let units = depth.div_ceil(U::DEPTH);
    for u in 0..units {
        let k = u * U::DEPTH;
        for r in (0..rows).step_by(LANES) {
            // SAFETY: the caller's promise.
            unsafe {
                let from = source.wrapping_add(k * stride + r);
                prefetch_unit::<U>(from, stride);
                let values = across::<U>(from, stride, rows - r, k + 1 < depth);
                let target = packed.add(r * units + u * ROWS);
                _mm256_storeu_epi32(target, _mm512_castsi512_si256(values));
                _mm256_storeu_epi32(target.add(ROWS * units), _mm512_extracti64x4_epi64::<1>(values));
            }
        }
    }
}

/// Sixteen units of sixteen contiguous rows, of which `rows` rows and `depth` elements of depth exist; the others are 0.
///
/// # Safety
/// Called below [`Operand::run`]; `depth` runs of `rows` elements, `stride` apart, are readable.
#[inline(always)]
pub(in super::super) unsafe fn square<U: Operand>(source: *const f32, stride: usize, rows: usize, depth: usize) -> [__m512i; LANES] {
    // SAFETY: the caller's promise.
    unsafe {
        let mut square = [_mm512_setzero_si512(); LANES];
        for (i, unit) in square.iter_mut().enumerate() {
            let k = i * U::DEPTH;
            if k < depth {
                let from = source.wrapping_add(k * stride);
                prefetch_unit::<U>(from, stride);
                *unit = across::<U>(from, stride, rows, k + 1 < depth);
            }
        }
        square
    }
}

/// Right side with contiguous columns, into panels: unit u of vector v of a panel that begins at vector `start` goes to
/// `packed[(start · units + u · width + v) · LANES..]`.
///
/// # Safety
/// Called below [`Operand::run`]; `depth` runs of the panels' columns, `stride` apart, are readable, the packed ones writable.
#[inline(always)]
pub(in super::super) unsafe fn right_across<U: Operand>(source: *const f32, stride: usize, depth: usize, panels: Panels, packed: *mut i32) {
    let units = depth.div_ceil(U::DEPTH);
    for first in (0..units).step_by(LANES) {
        for p in panels.each() {
            let panel = panels.range(p);
            for u in first..units.min(first + LANES) {
                let k = u * U::DEPTH;
                for v in panel.clone() {
                    // SAFETY: the caller's promise.
                    unsafe {
                        let from = source.wrapping_add(k * stride + v * LANES);
                        prefetch_unit::<U>(from, stride);
                        let values = across::<U>(from, stride, panels.columns - v * LANES, k + 1 < depth);
                        _mm512_storeu_epi32(packed.add((panel.start * units + u * panel.len() + v - panel.start) * LANES), values);
                    }
                }
            }
        }
    }
}

/// [`right_across`] for a source whose depth is contiguous and whose columns are `stride` apart.
///
/// # Safety
/// As there, with the two directions exchanged.
#[inline(always)]
pub(in super::super) unsafe fn right_along<U: Operand>(source: *const f32, stride: usize, depth: usize, panels: Panels, packed: *mut i32) {
    let units = depth.div_ceil(U::DEPTH);
    for p in panels.each() {
        let panel = panels.range(p);
        for v in panel.clone() {
            for u in (0..units).step_by(LANES) {
                let k = u * U::DEPTH;
                // SAFETY: the caller's promise.
                unsafe {
                    let mut square = [_mm512_setzero_si512(); LANES];
                    for (j, column) in square.iter_mut().enumerate() {
                        if v * LANES + j < panels.columns {
                            *column = along::<U>(source.wrapping_add((v * LANES + j) * stride + k), depth - k);
                        }
                    }
                    for (i, values) in transposed(square).into_iter().enumerate() {
                        if u + i < units {
                            let at = panel.start * units + (u + i) * panel.len() + v - panel.start;
                            _mm512_storeu_epi32(packed.add(at * LANES), values);
                        }
                    }
                }
            }
        }
    }
}

/// A square of 16 × 16 transposed.
///
/// # Safety
/// Called below [`Operand::run`].
#[inline(always)]
pub(in super::super) unsafe fn transposed(rows: [__m512i; LANES]) -> [__m512i; LANES] {
    // SAFETY: AVX-512 by the callers' promise.
    unsafe {
        let zero = _mm512_setzero_si512();
        let (mut a, mut b) = ([zero; LANES], [zero; LANES]);
        // Pairs of rows, then fours, within each 128-bit quarter; then the quarters change places.
        for i in 0..8 {
            a[2 * i] = _mm512_unpacklo_epi32(rows[2 * i], rows[2 * i + 1]);
            a[2 * i + 1] = _mm512_unpackhi_epi32(rows[2 * i], rows[2 * i + 1]);
        }
        for i in 0..4 {
            b[4 * i] = _mm512_unpacklo_epi64(a[4 * i], a[4 * i + 2]);
            b[4 * i + 1] = _mm512_unpackhi_epi64(a[4 * i], a[4 * i + 2]);
            b[4 * i + 2] = _mm512_unpacklo_epi64(a[4 * i + 1], a[4 * i + 3]);
            b[4 * i + 3] = _mm512_unpackhi_epi64(a[4 * i + 1], a[4 * i + 3]);
        }
        for i in 0..4 {
            a[i] = _mm512_shuffle_i32x4::<0x88>(b[i], b[i + 4]);
            a[i + 4] = _mm512_shuffle_i32x4::<0xdd>(b[i], b[i + 4]);
            a[i + 8] = _mm512_shuffle_i32x4::<0x88>(b[i + 8], b[i + 12]);
            a[i + 12] = _mm512_shuffle_i32x4::<0xdd>(b[i + 8], b[i + 12]);
        }
        for i in 0..4 {
            b[i] = _mm512_shuffle_i32x4::<0x88>(a[i], a[i + 8]);
            b[i + 8] = _mm512_shuffle_i32x4::<0xdd>(a[i], a[i + 8]);
            b[i + 4] = _mm512_shuffle_i32x4::<0x88>(a[i + 4], a[i + 12]);
            b[i + 12] = _mm512_shuffle_i32x4::<0xdd>(a[i + 4], a[i + 12]);
        }
        b
    }
}
