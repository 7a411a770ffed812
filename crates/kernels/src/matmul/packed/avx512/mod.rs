//! Tiles of 8 × 48 on AVX-512, of f32 or of pairs of bf16.

mod operand;
pub(super) mod pack;
mod tile;

use super::unit::{Begin, Panels, Sides, Target, Unit};
use super::{Piece, ROW};
use operand::Operand;
pub(super) use operand::{Bf16, F32};
use tile::{ISSUE, LANES, VECTORS};
pub(super) use tile::{ROWS, first_lanes, tile};

impl<U: Operand> Unit for U {
    const DEPTH: usize = <U as Operand>::DEPTH;
    const LANES: usize = LANES;
    const ROWS: usize = ROWS;
    const VECTORS: usize = VECTORS;
    const ISSUE: usize = ISSUE;

    #[inline(always)]
    unsafe fn left_along(source: *const f32, depth: usize, packed: *mut i32) {
        // SAFETY: the caller's promise, which is the same.
        unsafe { pack::left_along::<U>(source, depth, packed) }
    }

    #[inline(always)]
    unsafe fn left_across(source: *const f32, stride: usize, rows: usize, depth: usize, packed: *mut i32) {
        // SAFETY: packing rows across asks what its trait method asks.
        unsafe { pack::left_across::<U>(source, stride, rows, depth, packed) }
    }

    #[inline(always)]
    unsafe fn right_across(source: *const f32, stride: usize, depth: usize, panels: Panels, packed: *mut i32) {
        // SAFETY: packing panels across asks what its trait method asks.
        unsafe { pack::right_across::<U>(source, stride, depth, panels, packed) }
    }

    #[inline(always)]
    unsafe fn right_along(source: *const f32, stride: usize, depth: usize, panels: Panels, packed: *mut i32) {
        // SAFETY: packing panels along asks what its trait method asks.
        unsafe { pack::right_along::<U>(source, stride, depth, panels, packed) }
    }

    #[inline(always)]
    unsafe fn tile(along: bool, vectors: usize, sides: Sides, begin: Begin, target: Target, issue: &mut impl FnMut()) {
        // SAFETY: tiles of every size ask what their trait method asks.
        unsafe {
            match (along, vectors) {
                (true, 1) => tile::<U, 1, ROW, 1>(sides, begin, target, issue),
                (true, 2) => tile::<U, 2, ROW, 1>(sides, begin, target, issue),
                (true, _) => tile::<U, VECTORS, ROW, 1>(sides, begin, target, issue),
                (false, 1) => tile::<U, 1, 1, ROWS>(sides, begin, target, issue),
                (false, 2) => tile::<U, 2, 1, ROWS>(sides, begin, target, issue),
                (false, _) => tile::<U, VECTORS, 1, ROWS>(sides, begin, target, issue),
            }
        }
    }

    #[inline(always)]
    unsafe fn run(piece: Piece<'_>) {
        // SAFETY: a piece asks what the trait method asks: the instructions, and operands that lie in their slices.
        unsafe { <U as Operand>::run(piece) }
    }
}
