//! Tiles of 32 × 32 on AMX, of pairs of bf16: four tile registers of sums, two of the left side, two of the right.
//!
//! An instruction multiplies 16 rows of 16 units by 16 units of 16 columns, so both sides are read sixteen units at a time; the rest of a
//! block's depth uses AVX-512. Packed operands are those of AVX-512, except that a left side with contiguous rows is transposed: its units
//! are contiguous along the depth too, [`ROW`] apart from row to row.
//!
//! AMX rounds like AVX512-BF16, and inputs and results below the smallest normal f32 likewise count as 0; sums are taken in another order.

use super::avx512::{self, pack};
use super::unit::{Begin, Panels, Sides, Target, Unit};
use super::{Piece, ROW};
use crate::amx::{SIDE, Shapes};
use core::arch::asm;
use core::arch::x86_64::*;

/// Rows and columns of a tile of the result.
const ROWS: usize = 2 * SIDE;
/// Initial sums of tiles without a bias.
static ZEROS: [f32; ROWS] = [0.0; ROWS];

/// Two bf16, rounded to nearest even. Their sums are f32.
pub(super) struct Bf16;

/// Whole registers.
static SHAPES: Shapes = Shapes::new(SIDE);

impl Unit for Bf16 {
    const DEPTH: usize = 2;
    const LANES: usize = SIDE;
    const ROWS: usize = ROWS;
    const VECTORS: usize = 2;
    /// Never: prefetches would occupy the buffers in which tile loads wait for their cache lines.
    const ISSUE: usize = usize::MAX;
    const ALIGN: usize = 2 * SIDE;

    fn left_at(_: bool, _: usize, row: usize) -> usize {
        row * ROW
    }

    #[inline(always)]
    unsafe fn left_along(source: *const f32, depth: usize, packed: *mut i32) {
        // SAFETY: the caller's promise, which is the same.
        unsafe { pack::left_along::<avx512::Bf16>(source, depth, packed) }
    }

    /// Unit u of row r goes to `packed[r · ROW + u]`.
    #[inline(always)]
    unsafe fn left_across(source: *const f32, stride: usize, rows: usize, depth: usize, packed: *mut i32) {
        for u in (0..depth.div_ceil(Self::DEPTH)).step_by(SIDE) {
            for r in (0..rows).step_by(SIDE) {
                // SAFETY: the caller's promise; a row has room for whole vectors of units, a block for whole groups of rows.
                unsafe {
                    let square = pack::square::<avx512::Bf16>(source.wrapping_add(2 * u * stride + r), stride, rows - r, depth - 2 * u);
                    for (i, values) in pack::transposed(square).into_iter().enumerate() {
                        _mm512_storeu_epi32(packed.add((r + i) * ROW + u), values);
                    }
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn right_across(source: *const f32, stride: usize, depth: usize, panels: Panels, packed: *mut i32) {
        // SAFETY: the caller's promise, which is the same.
        unsafe { pack::right_across::<avx512::Bf16>(source, stride, depth, panels, packed) }
    }

    #[inline(always)]
    unsafe fn right_along(source: *const f32, stride: usize, depth: usize, panels: Panels, packed: *mut i32) {
        // SAFETY: the caller's promise, which is the same.
        unsafe { pack::right_along::<avx512::Bf16>(source, stride, depth, panels, packed) }
    }

    #[inline(always)]
    unsafe fn tile(_: bool, vectors: usize, sides: Sides, begin: Begin, target: Target, _: &mut impl FnMut()) {
        // SAFETY: the caller's promise.
        unsafe {
            match vectors {
                1 => tile::<1>(sides, begin, target),
                _ => tile::<2>(sides, begin, target),
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
    unsafe fn run(piece: Piece<'_>) {
        // SAFETY: the caller's promise; a piece is one thread's work.
        unsafe { SHAPES.with(|| piece.run::<Self>()) }
    }
}

/// A tile of the result, V vectors wide.
///
/// # Safety
/// Called below [`Bf16::run`]; see [`Unit::tile`].
#[inline(always)]
unsafe fn tile<const V: usize>(sides: Sides, begin: Begin, target: Target) {
    let steps = sides.units / SIDE;
    let rest = Sides {
        units: sides.units % SIDE,
        left: sides.left.wrapping_add(steps * SIDE),
        right: sides.right.wrapping_add(steps * SIDE * V * SIDE),
    };
    // SAFETY: the caller's promise.
    unsafe {
        if steps > 0 {
            whole_steps::<V>(steps, sides, begin, target);
        }
        if rest.units > 0 || steps == 0 {
            let begin = if steps > 0 { Begin::Add } else { begin };
            for r in (0..target.rows).step_by(avx512::ROWS) {
                let sides = Sides { left: rest.left.wrapping_add(r * ROW), ..rest };
                let out = target.out.wrapping_add(r * target.stride);
                let target = Target { out, rows: (target.rows - r).min(avx512::ROWS), ..target };
                avx512::tile::<avx512::Bf16, V, ROW, 1>(sides, begin, target, &mut || ());
            }
        }
    }
}

/// A tile's sums over `steps` times sixteen units.
///
/// # Safety
/// See [`tile`].
#[inline(always)]
unsafe fn whole_steps<const V: usize>(steps: usize, sides: Sides, begin: Begin, target: Target) {
    let last = avx512::first_lanes(target.last);
    let mask = |v: usize| if v + 1 == V { last } else { !0 };
    let is_whole = target.rows == ROWS && target.last == SIDE;
    // SAFETY: the caller's promise: what is read and written are the rows and columns of the target, or memory of this function.
    unsafe {
        let mut bias = ZEROS;
        let (mut from, mut from_stride) = (ZEROS.as_ptr(), 0);
        match begin {
            Begin::Zero => {}
            Begin::Bias(values) => {
                for v in 0..V {
                    let values = _mm512_maskz_loadu_ps(mask(v), values.wrapping_add(v * SIDE));
                    _mm512_storeu_ps(bias.as_mut_ptr().add(v * SIDE), values);
                }
                from = bias.as_ptr();
            }
            Begin::Add if is_whole => (from, from_stride) = (target.out.cast_const(), target.stride),
            Begin::Add => {}
        }
        if is_whole {
            return products::<V, 2>(steps, sides, (from, from_stride), (target.out, target.stride));
        }
        let mut sums = [0.0f32; ROWS * ROWS];
        match target.rows > SIDE {
            true => products::<V, 2>(steps, sides, (from, from_stride), (sums.as_mut_ptr(), ROWS)),
            false => products::<V, 1>(steps, sides, (from, from_stride), (sums.as_mut_ptr(), ROWS)),
        }
        for r in 0..target.rows {
            for v in 0..V {
                let at = target.out.wrapping_add(r * target.stride + v * SIDE);
                let sum = _mm512_loadu_ps(sums.as_ptr().add(r * ROWS + v * SIDE));
                let sum = if matches!(begin, Begin::Add) { _mm512_add_ps(_mm512_maskz_loadu_ps(mask(v), at), sum) } else { sum };
                _mm512_mask_storeu_ps(at, mask(v), sum);
            }
        }
    }
}

/// Moves a pointer down by sixteen rows.
macro_rules! sixteen_rows {
    ($pointer:literal, $row:literal) => {
        concat!(
            "lea {",
            $pointer,
            "}, [{",
            $pointer,
            "} + 8 * {",
            $row,
            "}]\n",
            "lea {",
            $pointer,
            "}, [{",
            $pointer,
            "} + 8 * {",
            $row,
            "}]"
        )
    };
}

/// `to = from + left · right` in the tile registers: what is done once at the beginning, in each step, and once at the end. It is a single piece of
/// assembly, since a compiler need not preserve the registers between two.
macro_rules! multiply {
    ($vectors:literal, $steps:ident, $sides:ident, $from:ident, $to:ident, [$($begin:expr),*], [$($step:literal),*], [$($end:expr),*]) => {
        asm!(
            $($begin,)*
            "2:",
            $($step,)*
            "add {left}, 64",
            "add {below}, 64",
            "add {right}, {panel}",
            "dec {steps}",
            "jnz 2b",
            $($end,)*
            from = inout(reg) $from.0 => _,
            from_row = in(reg) 4 * $from.1,
            left = inout(reg) $sides.left => _,
            below = inout(reg) $sides.left.wrapping_add(SIDE * ROW) => _,
            row = in(reg) 4 * ROW,
            right = inout(reg) $sides.right => _,
            right_row = in(reg) 64usize * $vectors,
            panel = const 64 * SIDE * $vectors,
            steps = inout(reg) $steps => _,
            to = inout(reg) $to.0 => _,
            to_row = in(reg) 4 * $to.1,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack),
        )
    };
}

/// Sixteen times H rows and V vectors of columns of `to = from + left · right` over `steps` times sixteen units. The second numbers of `from` and
/// `to` are the distances between their rows, in f32.
///
/// # Safety
/// Called below [`Bf16::run`]; all of these rows, columns and units are readable, those of `to` writable; `steps` is at least 1.
#[inline(always)]
unsafe fn products<const V: usize, const H: usize>(steps: usize, sides: Sides, from: (*const f32, usize), to: (*mut f32, usize)) {
    debug_assert!(steps > 0, "a tile's loop is passed at least once");
    // SAFETY: the caller's promise.
    unsafe {
        match (V, H) {
            (1, 1) => multiply!(
                1,
                steps,
                sides,
                from,
                to,
                ["tileloadd tmm0, [{from} + {from_row}]"],
                ["tileloadd tmm4, [{left} + {row}]", "tileloadd tmm6, [{right} + {right_row}]", "tdpbf16ps tmm0, tmm4, tmm6"],
                ["tilestored [{to} + {to_row}], tmm0"]
            ),
            (1, _) => multiply!(
                1,
                steps,
                sides,
                from,
                to,
                ["tileloadd tmm0, [{from} + {from_row}]", sixteen_rows!("from", "from_row"), "tileloadd tmm2, [{from} + {from_row}]"],
                [
                    "tileloadd tmm6, [{right} + {right_row}]",
                    "tileloadd tmm4, [{left} + {row}]",
                    "tdpbf16ps tmm0, tmm4, tmm6",
                    "tileloadd tmm5, [{below} + {row}]",
                    "tdpbf16ps tmm2, tmm5, tmm6"
                ],
                ["tilestored [{to} + {to_row}], tmm0", sixteen_rows!("to", "to_row"), "tilestored [{to} + {to_row}], tmm2"]
            ),
            (_, 1) => multiply!(
                2,
                steps,
                sides,
                from,
                to,
                ["tileloadd tmm0, [{from} + {from_row}]", "tileloadd tmm1, [{from} + {from_row} + 64]"],
                [
                    "tileloadd tmm4, [{left} + {row}]",
                    "tileloadd tmm6, [{right} + {right_row}]",
                    "tdpbf16ps tmm0, tmm4, tmm6",
                    "tileloadd tmm7, [{right} + {right_row} + 64]",
                    "tdpbf16ps tmm1, tmm4, tmm7"
                ],
                ["tilestored [{to} + {to_row}], tmm0", "tilestored [{to} + {to_row} + 64], tmm1"]
            ),
            _ => multiply!(
                2,
                steps,
                sides,
                from,
                to,
                [
                    "tileloadd tmm0, [{from} + {from_row}]",
                    "tileloadd tmm1, [{from} + {from_row} + 64]",
                    sixteen_rows!("from", "from_row"),
                    "tileloadd tmm2, [{from} + {from_row}]",
                    "tileloadd tmm3, [{from} + {from_row} + 64]"
                ],
                [
                    "tileloadd tmm6, [{right} + {right_row}]",
                    "tileloadd tmm4, [{left} + {row}]",
                    "tdpbf16ps tmm0, tmm4, tmm6",
                    "tileloadd tmm5, [{below} + {row}]",
                    "tdpbf16ps tmm2, tmm5, tmm6",
                    "tileloadd tmm7, [{right} + {right_row} + 64]",
                    "tdpbf16ps tmm1, tmm4, tmm7",
                    "tdpbf16ps tmm3, tmm5, tmm7"
                ],
                [
                    "tilestored [{to} + {to_row}], tmm0",
                    "tilestored [{to} + {to_row} + 64], tmm1",
                    sixteen_rows!("to", "to_row"),
                    "tilestored [{to} + {to_row}], tmm2",
                    "tilestored [{to} + {to_row} + 64], tmm3"
                ]
            ),
        }
    }
}
