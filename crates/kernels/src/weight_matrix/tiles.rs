//! The product with bf16 weights in the tile registers of AMX: sixteen rows of x times sixteen words of sixteen outputs in one instruction.
//!
//! Sixteen lines of the layout are a register of weights, a line of packed x one row of a register of x. Four registers hold sums: of up to
//! sixteen rows and the four blocks of a panel, or of 32 rows and two blocks. Words that fill no register are left to vectors. Every row
//! goes through the same registers whatever other rows there are, so its result depends on nothing else.

use super::layout::{BLOCK, Layout, Line, PANEL};
use super::pairs::{Product, ROW, Stretch, Tile};
use crate::amx::{SIDE, Shapes};
use alloc::vec::Vec;
use core::arch::asm;
use core::arch::x86_64::*;
use core::mem::MaybeUninit;

/// Most rows of a tile.
const ROWS: usize = 2 * SIDE;
/// Fewest lines of a matrix that repay configuring the registers, which every product does, even with one row.
const WORTH: usize = 256;
/// Parts of the inputs are whole registers.
pub(super) const STEP: usize = SIDE;

/// Whether products with a matrix run here: that depends on the machine and the matrix, not on the rows and outputs asked for.
pub(super) fn take(layout: &Layout) -> bool {
    layout.blocks * layout.words >= WORTH && crate::amx::is_available()
}

/// Computes everything; `packed` grows to what x needs.
///
/// # Safety
/// As for [`Product::run`]; parts begin at multiples of [`STEP`], and there is AMX.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
pub(super) unsafe fn run(product: &Product<'_>, packed: &mut Vec<Line>) {
    // SAFETY: the caller's promise; the rows of a stretch are packed.
    unsafe { product.by_stretches(ROWS, packed, |stretch| stretch.run_in_tiles()) }
}

impl Stretch<'_> {
    /// Every output.
    ///
    /// # Safety
    /// As for [`super::pairs::Product::run`]; the rows are packed, with room for [`ROWS`] more, and there is AMX.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
    unsafe fn run_in_tiles(&self) {
        // SAFETY: the caller's promise; no product runs inside of another.
        unsafe { Shapes::new(self.rows.len().min(SIDE)).with(|| self.blocks()) }
    }

    /// # Safety
    /// As for [`Stretch::run_in_tiles`], with registers of as many rows as there are, or of sixteen.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
    unsafe fn blocks(&self) {
        let layout = self.product.layout;
        let end = self.product.outputs.end.div_ceil(BLOCK);
        let mut block = self.product.outputs.start / BLOCK;
        let few = self.rows.len() <= SIDE;
        while block < end {
            // Blocks that follow each other in a panel lie side by side.
            let beside = |n: usize| block + n <= end && block % PANEL + n <= PANEL && layout.block(block).1 == PANEL;
            // SAFETY: the caller's promise.
            block += unsafe {
                match few {
                    true if beside(4) => self.few_rows::<4>(block),
                    false if beside(2) => self.many_rows::<2>(block),
                    true => self.few_rows::<1>(block),
                    false => self.many_rows::<1>(block),
                }
            };
        }
    }

    /// `N` blocks from `block` on for at most sixteen rows.
    ///
    /// # Safety
    /// As for [`Stretch::blocks`]; the blocks lie side by side.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
    unsafe fn few_rows<const N: usize>(&self, block: usize) -> usize {
        for p in 0..self.product.parts() {
            let tile = self.tile::<N>(block, p);
            // SAFETY: the caller's promise, and that of `tile`.
            unsafe { tile.in_tiles(self.rows.len(), |from, sums| sixteen_rows(from, sums)) };
        }
        N
    }

    /// `N` blocks from `block` on, 32 rows at a time.
    ///
    /// # Safety
    /// As for [`Stretch::few_rows`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
    unsafe fn many_rows<const N: usize>(&self, block: usize) -> usize {
        for p in 0..self.product.parts() {
            let first = self.tile::<N>(block, p);
            for row in (0..self.rows.len()).step_by(ROWS) {
                let left = (self.rows.len() - row).min(ROWS);
                // SAFETY: the caller's promise, and that of `tile`; registers have sixteen rows, and there is room for 32.
                unsafe { first.below(row).in_tiles(left, |from, sums| thirty_two_rows(from, sums)) };
            }
        }
        N
    }
}

impl<const N: usize> Tile<N> {
    /// Computes and writes `rows` rows; `multiply` stores their sums over whole registers of words, row after row.
    ///
    /// # Safety
    /// As for [`Tile::run`], and as `multiply` asks.
    #[inline(always)]
    unsafe fn in_tiles(self, rows: usize, multiply: impl FnOnce(Self, *mut f32)) {
        let (whole, rest) = (self.words / SIDE, self.words % SIDE);
        if whole > 0 {
            let tile = Self { words: whole * SIDE, bias: self.bias.filter(|_| rest == 0), ..self };
            let mut sums = MaybeUninit::<[[Line; N]; ROWS]>::uninit();
            let sums = sums.as_mut_ptr().cast::<f32>();
            multiply(tile, sums);
            for r in 0..rows {
                // SAFETY: the caller's promise; the sums of these rows were stored.
                unsafe { tile.put(r, core::array::from_fn(|n| _mm512_load_ps(sums.add((r * N + n) * BLOCK)))) };
            }
        }
        if rest > 0 || whole == 0 {
            let x = self.x.wrapping_add(whole * SIDE);
            let weights = self.weights.map(|line| line.wrapping_add(whole * SIDE * self.step));
            let tile = Self { words: rest, x, weights, add: self.add || whole > 0, ..self };
            for row in (0..rows).step_by(4) {
                // SAFETY: the caller's promise; there is room for more rows than these four.
                unsafe { tile.below(row).run::<4>(rows - row) };
            }
        }
    }
}

/// Multiplies in the tile registers: what is done once at the beginning, in each step of sixteen words, and once at the end. It is a single piece of
/// assembly, since a compiler need not preserve the registers between two.
macro_rules! multiply {
    ($tile:ident, $sums:ident, [$($begin:literal),*], [$($step:literal),*], [$($end:literal),*]) => {
        asm!(
            $($begin,)*
            "2:",
            $($step,)*
            "add {x}, 64",
            "add {below}, 64",
            "add {weights}, {next}",
            "dec {steps}",
            "jnz 2b",
            $($end,)*
            x = inout(reg) $tile.x => _,
            below = inout(reg) $tile.x.wrapping_add(SIDE * ROW * BLOCK) => _,
            row = in(reg) 64 * ROW,
            weights = inout(reg) $tile.weights[0] => _,
            word = in(reg) 64 * $tile.step,
            next = in(reg) 64 * SIDE * $tile.step,
            steps = inout(reg) $tile.words / SIDE => _,
            sums = in(reg) $sums,
            sums_row = in(reg) 64 * N,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack),
        )
    };
}

/// Stores the sums of as many rows as the registers have, of one block or of four that lie side by side.
///
/// # Safety
/// As for [`Stretch::few_rows`]; there is at least one whole register of words.
#[inline(always)]
unsafe fn sixteen_rows<const N: usize>(tile: Tile<N>, sums: *mut f32) {
    // SAFETY: the caller's promise.
    unsafe {
        match N {
            1 => multiply!(
                tile,
                sums,
                ["tilezero tmm0"],
                ["tileloadd tmm4, [{x} + {row}]", "tileloadd tmm6, [{weights} + {word}]", "tdpbf16ps tmm0, tmm4, tmm6"],
                ["tilestored [{sums} + {sums_row}], tmm0"]
            ),
            _ => multiply!(
                tile,
                sums,
                ["tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3"],
                [
                    "tileloadd tmm4, [{x} + {row}]",
                    "tileloadd tmm6, [{weights} + {word}]",
                    "tdpbf16ps tmm0, tmm4, tmm6",
                    "tileloadd tmm7, [{weights} + {word} + 64]",
                    "tdpbf16ps tmm1, tmm4, tmm7",
                    "tileloadd tmm6, [{weights} + {word} + 128]",
                    "tdpbf16ps tmm2, tmm4, tmm6",
                    "tileloadd tmm7, [{weights} + {word} + 192]",
                    "tdpbf16ps tmm3, tmm4, tmm7"
                ],
                [
                    "tilestored [{sums} + {sums_row}], tmm0",
                    "tilestored [{sums} + {sums_row} + 64], tmm1",
                    "tilestored [{sums} + {sums_row} + 128], tmm2",
                    "tilestored [{sums} + {sums_row} + 192], tmm3"
                ]
            ),
        }
    }
}

/// Stores the sums of 32 rows, of one block or of two that lie side by side.
///
/// # Safety
/// As for [`Stretch::many_rows`]; there is at least one whole register of words.
#[inline(always)]
unsafe fn thirty_two_rows<const N: usize>(tile: Tile<N>, sums: *mut f32) {
    // SAFETY: the caller's promise.
    unsafe {
        match N {
            1 => multiply!(
                tile,
                sums,
                ["tilezero tmm0", "tilezero tmm2"],
                [
                    "tileloadd tmm6, [{weights} + {word}]",
                    "tileloadd tmm4, [{x} + {row}]",
                    "tdpbf16ps tmm0, tmm4, tmm6",
                    "tileloadd tmm5, [{below} + {row}]",
                    "tdpbf16ps tmm2, tmm5, tmm6"
                ],
                ["tilestored [{sums} + {sums_row}], tmm0", "tilestored [{sums} + {sums_row} + 1024], tmm2"]
            ),
            _ => multiply!(
                tile,
                sums,
                ["tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3"],
                [
                    "tileloadd tmm6, [{weights} + {word}]",
                    "tileloadd tmm4, [{x} + {row}]",
                    "tdpbf16ps tmm0, tmm4, tmm6",
                    "tileloadd tmm5, [{below} + {row}]",
                    "tdpbf16ps tmm2, tmm5, tmm6",
                    "tileloadd tmm7, [{weights} + {word} + 64]",
                    "tdpbf16ps tmm1, tmm4, tmm7",
                    "tdpbf16ps tmm3, tmm5, tmm7"
                ],
                [
                    "tilestored [{sums} + {sums_row}], tmm0",
                    "tilestored [{sums} + {sums_row} + 64], tmm1",
                    "tilestored [{sums} + {sums_row} + 2048], tmm2",
                    "tilestored [{sums} + {sums_row} + 2112], tmm3"
                ]
            ),
        }
    }
}
