//! Rows of a table looked up by token, and the table's gradient.
//!
//! y_n = table_(token_n), and backward d_table_v = Σ over the n with token_n = v of d_y_n. The gradient is cut by columns, so that every
//! sum is taken in the order of n on one thread: the same bits for every number of threads, and no table of partial sums.

use crate::grid::{self, SharedOut};
use crate::rows;
use crate::shape::{Out, elements, expect_len};
use crate::simd::{self, Level, Simd, WithSimd};
use core::mem::MaybeUninit;
use core::ops::Range;

/// Narrowest block of columns: 256 bytes, below which memory is read in shreds.
const NARROWEST: usize = 64;

/// Copies the row of every token.
///
/// # Shapes
/// - `tokens`: `[rows]`, each below V; `table`: `[V, width]`; `y`: `[rows, width]`
///
/// # Panics
/// When a length does not fit or a token is not below V.
pub fn forward(width: usize, tokens: &[u32], table: &[f32], y: Out) {
    check(width, tokens, table.len());
    expect_len("y", y, elements([tokens.len(), width]));
    let y = SharedOut::new(y);
    rows::for_each_block(tokens.len(), width, 0, |range, _| {
        for row in range {
            // SAFETY: blocks are disjoint.
            let y = unsafe { y.slice(row * width, width) };
            y.write_copy_of_slice(&table[tokens[row] as usize * width..][..width]);
        }
    });
}

/// Gradient of [`forward`] with respect to the table.
///
/// # Shapes
/// - `tokens`: `[rows]`, each below V; `d_y`: `[rows, width]`; `d_table`: `[V, width]`
///
/// # Panics
/// When a length does not fit or a token is not below V.
pub fn backward(width: usize, tokens: &[u32], d_y: &[f32], d_table: Out) {
    check(width, tokens, d_table.len());
    expect_len("d_y", d_y, elements([tokens.len(), width]));
    let level = Level::current();
    let pieces = grid::threads().min(width / NARROWEST).max(1);
    let rows = d_table.len() / width.max(1);
    let shared = SharedOut::new(d_table);
    grid::for_each(pieces, |i| {
        let columns = grid::piece(width, pieces, i);
        for row in 0..rows {
            // SAFETY: pieces have columns of their own.
            unsafe { shared.slice(row * width + columns.start, columns.len()) }.fill(MaybeUninit::new(0.0));
        }
        level.run(Backward { width, tokens, d_y, columns, d_table: shared });
    });
}

fn check(width: usize, tokens: &[u32], table_len: usize) {
    assert!(width == 0 || table_len.is_multiple_of(width), "table: expected rows of {width} elements, found {table_len} elements");
    let vocab_size = table_len.checked_div(width).unwrap_or(0);
    if let Some(token) = tokens.iter().find(|&&token| width > 0 && token as usize >= vocab_size) {
        panic!("token {token} is not below the {vocab_size} rows of the table");
    }
}

struct Backward<'a> {
    width: usize,
    tokens: &'a [u32],
    d_y: &'a [f32],
    columns: Range<usize>,
    /// Initialised in `columns`.
    d_table: SharedOut,
}

impl WithSimd for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { width, tokens, d_y, columns, d_table } = self;
        for (&token, d_y) in tokens.iter().zip(d_y.chunks_exact(width.max(1))) {
            let d_y = &d_y[columns.clone()];
            // SAFETY: no other task has these columns, and they are initialised.
            let row = unsafe { d_table.slice(token as usize * width + columns.start, columns.len()).assume_init_mut() };
            for at in (0..row.len()).step_by(S::F32_LANES) {
                simd::add_to(simd, row, at, simd::load(simd, d_y, at));
            }
        }
    }
}
