//! Looks up rows of a table by token, with the table's gradient.
//!
//! y_n = table_(token_n), and backward d_table_v = Σ over the n with token_n = v of d_y_n. The gradient is split by columns and, if there
//! are more threads, by table rows that are looked up equally often: every sum is taken in the order of n on one thread, so it does not
//! depend on the number of threads, and no table of partial sums is needed.

use crate::grid::{self, SharedOut};
use crate::out::Out;
use crate::rows;
use crate::shape::{elements, expect_len};
use crate::simd::{self, Level, Simd, WithSimd};
use alloc::{vec, vec::Vec};
use core::mem::MaybeUninit;
use core::ops::Range;

/// Narrowest block of columns: 256 bytes; narrower ones would read memory in small fragments.
const NARROWEST: usize = 64;

/// Copies the row of every token.
///
/// # Shapes
/// - `tokens`: `[rows]`, each less than V; `table`: `[V, width]`; `y`: `[rows, width]`
///
/// # Panics
/// When a length does not fit or a token is V or more.
pub fn forward(width: usize, tokens: &[u32], table: &[f32], y: Out) {
    check(width, tokens, table.len());
    y.expect_len("y", elements([tokens.len(), width]));
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
/// - `tokens`: `[rows]`, each less than V; `d_y`: `[rows, width]`; `d_table`: `[V, width]`
///
/// # Panics
/// When a length does not fit or a token is V or more.
pub fn backward(width: usize, tokens: &[u32], d_y: &[f32], d_table: Out) {
    check(width, tokens, d_table.len());
    expect_len("d_y", d_y, elements([tokens.len(), width]));
    if width == 0 {
        return;
    }
    let level = Level::current();
    let threads = grid::threads();
    let across = threads.min(width / NARROWEST).max(1);
    let ranges = equal_shares(tokens, d_table.len() / width, threads.div_ceil(across));
    let shared = SharedOut::new(d_table);
    grid::for_each(across * ranges.len(), |i| {
        let columns = grid::piece(width, across, i % across);
        let rows = ranges[i / across].clone();
        for row in rows.clone() {
            // SAFETY: tasks have rows or columns of their own.
            unsafe { shared.slice(row * width + columns.start, columns.len()) }.fill(MaybeUninit::new(0.0));
        }
        level.run(Backward { width, tokens, d_y, rows, columns, d_table: shared });
    });
}

/// Cuts the rows of a table into at most `parts` ranges that are looked up nearly equally often, as far as whole rows allow.
fn equal_shares(tokens: &[u32], rows: usize, parts: usize) -> Vec<Range<usize>> {
    if parts == 1 {
        return core::iter::once(0..rows).collect();
    }
    let mut counts = vec![0usize; rows];
    for &token in tokens {
        counts[token as usize] += 1;
    }
    let mut ranges = Vec::with_capacity(parts);
    let (mut start, mut found) = (0, 0);
    for (row, count) in counts.into_iter().enumerate() {
        found += count;
        if found * parts >= tokens.len() * (ranges.len() + 1) && ranges.len() + 1 < parts {
            ranges.push(start..row + 1);
            start = row + 1;
        }
    }
    ranges.push(start..rows);
    ranges
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
    /// Rows and columns of the table.
    rows: Range<usize>,
    columns: Range<usize>,
    /// Initialised at these rows and columns.
    d_table: SharedOut,
}

impl WithSimd for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { width, tokens, d_y, rows, columns, d_table } = self;
        for (&token, d_y) in tokens.iter().zip(d_y.chunks_exact(width)).filter(|(token, _)| rows.contains(&(**token as usize))) {
            let d_y = &d_y[columns.clone()];
            // SAFETY: no other task has these rows and columns, and they are initialised.
            let row = unsafe { d_table.slice(token as usize * width + columns.start, columns.len()).assume_init_mut() };
            for at in (0..row.len()).step_by(S::F32_LANES) {
                simd::add_to(simd, row, at, simd::load(simd, d_y, at));
            }
        }
    }
}
