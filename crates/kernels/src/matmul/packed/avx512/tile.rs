//! The register tile: eight rows times up to three vectors of columns, 24 sums that stay in registers over a whole block of depth.
//!
//! Per unit of depth it loads 3 vectors and broadcasts 8 units for 24 multiply-adds; two of each start per cycle, so the
//! loads fit beside the arithmetic, and 24 independent sums hide its latency. 48 columns divide the usual widths, and a panel of the right
//! side 48 wide fits the first-level cache over a whole block of depth.

use super::super::unit::{Begin, Sides, Target};
use super::operand::Operand;
use core::arch::x86_64::*;

/// Rows of a tile.
pub(in super::super) const ROWS: usize = 8;
/// Vectors of columns in a full tile.
pub(super) const VECTORS: usize = 3;
/// Columns in a vector.
pub(super) const LANES: usize = 16;
/// After how many units a tile issues a prefetch.
pub(super) const ISSUE: usize = 4;

/// The first `count` of 16 lanes.
#[inline(always)]
pub(in super::super) fn first_lanes(count: usize) -> __mmask16 {
    if count >= LANES { !0 } else { (1 << count) - 1 }
}

/// A tile of the result. Unit u of row r of the left side is `left[r · ROW + u · STEP]`, of vector v of the right side
/// `right[(u · V + v) · LANES..]`. `issue` is called every [`ISSUE`] units.
///
/// # Safety
/// Called below [`Operand::run`]; all [`ROWS`] rows of the left side and V vectors of the right are readable, the
/// target's rows writable.
#[inline(always)]
pub(in super::super) unsafe fn tile<U: Operand, const V: usize, const ROW: usize, const STEP: usize>(
    sides: Sides,
    begin: Begin,
    target: Target,
    issue: &mut impl FnMut(),
) {
    let Sides { units, left, right } = sides;
    // SAFETY: the caller's promise, for every operation below.
    unsafe {
        let last = first_lanes(target.last);
        let zero = _mm512_setzero_ps();
        let mut sums = [[zero; V]; ROWS];
        if let Begin::Bias(bias) = begin {
            for v in 0..V {
                let mask = if v + 1 == V { last } else { !0 };
                let bias = _mm512_maskz_loadu_ps(mask, bias.wrapping_add(v * LANES));
                for row in &mut sums {
                    row[v] = bias;
                }
            }
        }
        for u in 0..units {
            if u % ISSUE == ISSUE - 1 {
                issue();
            }
            let mut columns = [_mm512_setzero_si512(); V];
            for (v, column) in columns.iter_mut().enumerate() {
                *column = _mm512_loadu_epi32(right.add((u * V + v) * LANES));
            }
            for (r, sums) in sums.iter_mut().enumerate() {
                let row = _mm512_set1_epi32(*left.add(r * ROW + u * STEP));
                for (sum, column) in sums.iter_mut().zip(columns) {
                    *sum = U::multiply_add(*sum, row, column);
                }
            }
        }
        for (r, sums) in sums.iter().enumerate() {
            if r >= target.rows {
                break;
            }
            for (v, &sum) in sums.iter().enumerate() {
                let at = target.out.wrapping_add(r * target.stride + v * LANES);
                let mask = if v + 1 == V { last } else { !0 };
                let sum = if matches!(begin, Begin::Add) { _mm512_add_ps(_mm512_maskz_loadu_ps(mask, at), sum) } else { sum };
                _mm512_mask_storeu_ps(at, mask, sum);
            }
        }
    }
}
