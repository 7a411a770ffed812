//! Tiles of 6 × 16 on AVX2, of f32.
//!
//! Per step of depth a tile loads 2 vectors and broadcasts 6 numbers for 12 multiply-adds, two of which start per cycle; 12 sums, 2 vectors and
//! a broadcast are 15 of the 16 registers.

use super::unit::{Begin, Panels, Sides, Target, Unit};
use super::{Piece, ROW};
use crate::simd::prefetch;
use core::arch::asm;
use core::arch::x86_64::*;

const LANES: usize = 8;
const ROWS: usize = 6;
const VECTORS: usize = 2;
const ISSUE: usize = 8;

/// One f32.
pub(super) struct F32;

impl Unit for F32 {
    const DEPTH: usize = 1;
    const LANES: usize = LANES;
    const ROWS: usize = ROWS;
    const VECTORS: usize = VECTORS;
    const ISSUE: usize = ISSUE;

    #[inline(always)]
    unsafe fn left_along(source: *const f32, depth: usize, packed: *mut i32) {
        for k in (0..depth).step_by(LANES) {
            // SAFETY: the caller's promise.
            unsafe { _mm256_storeu_ps(packed.add(k).cast(), operand(source.wrapping_add(k), depth - k)) };
        }
    }

    #[inline(always)]
    unsafe fn left_across(source: *const f32, stride: usize, rows: usize, depth: usize, packed: *mut i32) {
        for k in 0..depth {
            for r in (0..rows).step_by(ROWS) {
                // SAFETY: the caller's promise; the six numbers of a group are stored as four and two.
                unsafe {
                    let from = source.wrapping_add(k * stride + r);
                    prefetch(from.wrapping_add(DISTANCE * stride));
                    let values = operand(from, rows - r);
                    let target = packed.add(r * depth + k * ROWS).cast::<f32>();
                    _mm_storeu_ps(target, _mm256_castps256_ps128(values));
                    _mm_storel_epi64(target.add(4).cast(), _mm_castps_si128(_mm256_extractf128_ps::<1>(values)));
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn right_across(source: *const f32, stride: usize, depth: usize, panels: Panels, packed: *mut i32) {
        // A few steps of all panels at a time: rows are read in the order they lie in memory, and panels are written in few places.
        for first in (0..depth).step_by(DISTANCE) {
            for p in panels.each() {
                let panel = panels.range(p);
                for k in first..depth.min(first + DISTANCE) {
                    for v in panel.clone() {
                        // SAFETY: the caller's promise.
                        unsafe {
                            let from = source.wrapping_add(k * stride + v * LANES);
                            prefetch(from.wrapping_add(DISTANCE * stride));
                            let at = panel.start * depth + k * panel.len() + v - panel.start;
                            _mm256_storeu_ps(packed.add(at * LANES).cast(), operand(from, panels.columns - v * LANES));
                        }
                    }
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn right_along(source: *const f32, stride: usize, depth: usize, panels: Panels, packed: *mut i32) {
        for p in panels.each() {
            let panel = panels.range(p);
            for v in panel.clone() {
                for k in (0..depth).step_by(LANES) {
                    // SAFETY: the caller's promise.
                    unsafe {
                        let mut square = [_mm256_setzero_ps(); LANES];
                        for (j, column) in square.iter_mut().enumerate() {
                            if v * LANES + j < panels.columns {
                                *column = operand(source.wrapping_add((v * LANES + j) * stride + k), depth - k);
                            }
                        }
                        for (i, values) in transposed(square).into_iter().enumerate() {
                            if k + i < depth {
                                let at = panel.start * depth + (k + i) * panel.len() + v - panel.start;
                                _mm256_storeu_ps(packed.add(at * LANES).cast(), values);
                            }
                        }
                    }
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn tile(along: bool, vectors: usize, sides: Sides, begin: Begin, target: Target, issue: &mut impl FnMut()) {
        // SAFETY: the caller's promise.
        unsafe {
            match (along, vectors) {
                (true, 1) => tile::<1, ROW, 1>(sides, begin, target, issue),
                (true, _) => tile::<VECTORS, ROW, 1>(sides, begin, target, issue),
                (false, 1) => tile::<1, 1, ROWS>(sides, begin, target, issue),
                (false, _) => tile::<VECTORS, 1, ROWS>(sides, begin, target, issue),
            }
        }
    }

    #[target_feature(enable = "avx2,fma")]
    unsafe fn run(piece: Piece<'_>) {
        // SAFETY: the caller's promise.
        unsafe { piece.run::<Self>() }
    }
}

/// Memory is prefetched this many strided runs before it is packed.
const DISTANCE: usize = 16;

/// Ones in the first `count` lanes.
#[inline(always)]
unsafe fn first_lanes(count: usize) -> __m256i {
    const ONES: [i32; 2 * LANES] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
    // SAFETY: AVX2 by the callers' promise; eight lanes from any of the first nine elements are inside.
    unsafe { _mm256_loadu_si256(ONES.as_ptr().add(LANES - count.min(LANES)).cast()) }
}

/// [`load`] of an operand, with subnormal numbers replaced by 0: many processors multiply them a hundred times more slowly.
#[inline(always)]
unsafe fn operand(source: *const f32, count: usize) -> __m256 {
    // SAFETY: the callers' promise.
    unsafe {
        let values = load(source, count);
        let exponents = _mm256_and_si256(_mm256_castps_si256(values), _mm256_set1_epi32(0x7f80_0000));
        _mm256_andnot_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(exponents, _mm256_setzero_si256())), values)
    }
}

/// Eight elements; those from `count` on are 0 and need not exist.
#[inline(always)]
unsafe fn load(source: *const f32, count: usize) -> __m256 {
    // SAFETY: AVX2 by the callers' promise; masked lanes are not read.
    unsafe { if count >= LANES { _mm256_loadu_ps(source) } else { _mm256_maskload_ps(source, first_lanes(count)) } }
}

/// # Safety
/// See [`Unit::tile`]; unit u of row r of the left side is `left[r · L + u · STEP]`.
#[target_feature(enable = "avx2,fma")]
unsafe fn tile<const V: usize, const L: usize, const STEP: usize>(sides: Sides, begin: Begin, target: Target, issue: &mut impl FnMut()) {
    let (left, right) = (sides.left.cast::<f32>(), sides.right.cast::<f32>());
    // SAFETY: the caller's promise, for every operation below.
    unsafe {
        let count = |v: usize| if v + 1 == V { target.last } else { LANES };
        let mut sums = [[_mm256_setzero_ps(); V]; ROWS];
        if let Begin::Bias(bias) = begin {
            for v in 0..V {
                let bias = load(bias.wrapping_add(v * LANES), count(v));
                for row in &mut sums {
                    row[v] = bias;
                }
            }
        }
        let whole = sides.units - sides.units % ISSUE;
        for k in (0..whole).step_by(ISSUE) {
            if V == VECTORS {
                steps::<L, STEP>(&mut *sums.as_mut_ptr().cast(), left.add(k * STEP), right.add(k * V * LANES));
            } else {
                for k in k..k + ISSUE {
                    step::<V, L, STEP>(&mut sums, left, right, k);
                }
            }
            issue();
        }
        for k in whole..sides.units {
            step::<V, L, STEP>(&mut sums, left, right, k);
        }
        for (r, sums) in sums.iter().enumerate() {
            if r >= target.rows {
                break;
            }
            for (v, &sum) in sums.iter().enumerate() {
                let at = target.out.wrapping_add(r * target.stride + v * LANES);
                let sum = if matches!(begin, Begin::Add) { _mm256_add_ps(load(at, count(v)), sum) } else { sum };
                if count(v) >= LANES {
                    _mm256_storeu_ps(at, sum);
                } else {
                    _mm256_maskstore_ps(at, first_lanes(count(v)), sum);
                }
            }
        }
    }
}

/// Adds the products of step `k`.
///
/// # Safety
/// See [`tile`].
#[inline(always)]
unsafe fn step<const V: usize, const L: usize, const STEP: usize>(
    sums: &mut [[__m256; V]; ROWS],
    left: *const f32,
    right: *const f32,
    k: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut columns = [_mm256_setzero_ps(); V];
        for (v, column) in columns.iter_mut().enumerate() {
            *column = _mm256_loadu_ps(right.add((k * V + v) * LANES));
        }
        for (r, sums) in sums.iter_mut().enumerate() {
            let row = _mm256_broadcast_ss(&*left.add(r * L + k * STEP));
            for (sum, &column) in sums.iter_mut().zip(&columns) {
                *sum = _mm256_fmadd_ps(row, column, *sum);
            }
        }
    }
}

/// One step of a full tile in assembly: the sums of row r are ymm r and ymm (6 + r).
macro_rules! step {
    () => {
        concat!(
            "vmovups ymm12, [{right}]\n",
            "vmovups ymm13, [{right} + 32]\n",
            "vbroadcastss ymm14, [{left}]\n",
            "vfmadd231ps ymm0, ymm14, ymm12\n",
            "vfmadd231ps ymm6, ymm14, ymm13\n",
            "vbroadcastss ymm15, [{left} + {row}]\n",
            "vfmadd231ps ymm1, ymm15, ymm12\n",
            "vfmadd231ps ymm7, ymm15, ymm13\n",
            "vbroadcastss ymm14, [{left} + 2 * {row}]\n",
            "vfmadd231ps ymm2, ymm14, ymm12\n",
            "vfmadd231ps ymm8, ymm14, ymm13\n",
            "vbroadcastss ymm15, [{below}]\n",
            "vfmadd231ps ymm3, ymm15, ymm12\n",
            "vfmadd231ps ymm9, ymm15, ymm13\n",
            "vbroadcastss ymm14, [{below} + {row}]\n",
            "vfmadd231ps ymm4, ymm14, ymm12\n",
            "vfmadd231ps ymm10, ymm14, ymm13\n",
            "vbroadcastss ymm15, [{below} + 2 * {row}]\n",
            "vfmadd231ps ymm5, ymm15, ymm12\n",
            "vfmadd231ps ymm11, ymm15, ymm13\n",
            "add {right}, 64\n",
            "add {left}, {step}\n",
            "add {below}, {step}\n",
        )
    };
}

/// Adds the products of [`ISSUE`] steps of a full tile. Given intrinsics, compilers group the loads of several rows, and spill sums to make room.
///
/// # Safety
/// See [`tile`].
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn steps<const L: usize, const STEP: usize>(sums: &mut [[__m256; VECTORS]; ROWS], left: *const f32, right: *const f32) {
    // SAFETY: reads what the caller promised, and writes nothing but the sums.
    unsafe {
        asm!(
            step!(), step!(), step!(), step!(),
            step!(), step!(), step!(), step!(),
            left = inout(reg) left => _,
            below = inout(reg) left.add(3 * L) => _,
            right = inout(reg) right => _,
            row = in(reg) 4 * L,
            step = const 4 * STEP,
            inout("ymm0") sums[0][0], inout("ymm6") sums[0][1],
            inout("ymm1") sums[1][0], inout("ymm7") sums[1][1],
            inout("ymm2") sums[2][0], inout("ymm8") sums[2][1],
            inout("ymm3") sums[3][0], inout("ymm9") sums[3][1],
            inout("ymm4") sums[4][0], inout("ymm10") sums[4][1],
            inout("ymm5") sums[5][0], inout("ymm11") sums[5][1],
            out("ymm12") _, out("ymm13") _, out("ymm14") _, out("ymm15") _,
            options(nostack, readonly),
        );
    }
}

/// A square of 8 × 8 transposed.
#[inline(always)]
unsafe fn transposed(rows: [__m256; LANES]) -> [__m256; LANES] {
    // SAFETY: AVX2 by the callers' promise.
    unsafe {
        let zero = _mm256_setzero_ps();
        let (mut a, mut b) = ([zero; LANES], [zero; LANES]);
        // Pairs of rows, then fours, within each half; then the halves change places.
        for i in 0..4 {
            a[2 * i] = _mm256_unpacklo_ps(rows[2 * i], rows[2 * i + 1]);
            a[2 * i + 1] = _mm256_unpackhi_ps(rows[2 * i], rows[2 * i + 1]);
        }
        for i in 0..2 {
            b[4 * i] = _mm256_shuffle_ps::<0x44>(a[4 * i], a[4 * i + 2]);
            b[4 * i + 1] = _mm256_shuffle_ps::<0xee>(a[4 * i], a[4 * i + 2]);
            b[4 * i + 2] = _mm256_shuffle_ps::<0x44>(a[4 * i + 1], a[4 * i + 3]);
            b[4 * i + 3] = _mm256_shuffle_ps::<0xee>(a[4 * i + 1], a[4 * i + 3]);
        }
        for i in 0..4 {
            a[i] = _mm256_permute2f128_ps::<0x20>(b[i], b[i + 4]);
            a[i + 4] = _mm256_permute2f128_ps::<0x31>(b[i], b[i + 4]);
        }
        a
    }
}
