//! The forward pass: tiles of keys stream past a tile of queries.

use super::cache::{Head, Part, write_next};
use super::tiles::{KEYS, QUERIES, Softmax};
use super::{Row, Sizes, Start};
use crate::grid::{self, SharedOut};
use crate::matmul::{Matrix, Write, multiply};
use crate::out::Out;
use crate::shape::{elements, expect_len};
use crate::simd::{Level, sqrt};
use alloc::{vec, vec::Vec};
use core::mem::MaybeUninit;
use core::ops::Range;

/// Attention of every new step, and the cache after the last.
///
/// # Shapes
/// - `qkv`: `[B, T, 3D]`, queries, keys, values
/// - `y`: `[B, T, D]`, 0 at padding
/// - `log_sums`: `[B, heads, T]`, l of every step, 0 at padding; needed by the backward pass
/// - `next`: `[B, N, 2D]`, the last N steps of each row, the latest step last; zeros before a reset
///
/// # Panics
/// When a length does not fit.
pub fn forward(sizes: Sizes, qkv: &[f32], start: Start<'_>, y: Out, log_sums: Out, next: Out) {
    let Sizes { batch, seq_len, heads, .. } = sizes;
    let d = sizes.width();
    start.expect_fits(&sizes);
    expect_len("qkv", qkv, elements([batch, seq_len, 3, d]));
    y.expect_len("y", elements([batch, seq_len, d]));
    log_sums.expect_len("log_sums", elements([batch, heads, seq_len]));
    next.expect_len("next", elements([batch, sizes.next, 2, d]));
    // Without steps, the lengths of the slices do not limit the number of heads.
    if y.is_empty() && next.is_empty() {
        return log_sums.slots().fill(MaybeUninit::new(0.0));
    }
    write_next(&sizes, qkv, &start, next);
    let level = Level::current();
    let (y, log_sums) = (SharedOut::new(y), SharedOut::new(log_sums));
    let shares = shares(&sizes);
    grid::for_each(batch * heads * shares, |task| {
        let (b, h, share) = (task / shares / heads, task / shares % heads, task % shares);
        let row = Row::new(&sizes, &start, b);
        let head = Head::new(&sizes, qkv, start.past, b, h);
        let write = |t: usize, out: &[f32], log_sum: f32| {
            // SAFETY: each step of a head belongs to one query tile, and each tile to one share.
            let (y, log_sums) = unsafe {
                (y.slice((b * seq_len + t) * d + h * sizes.head_width, sizes.head_width), log_sums.slice((b * heads + h) * seq_len + t, 1))
            };
            y.iter_mut().zip(out).for_each(|(y, &x)| {
                y.write(x);
            });
            log_sums[0] = MaybeUninit::new(log_sum);
        };
        attend(level, &head, &row, query_tiles(row.length, shares, share), write);
        if share == 0 {
            let zeros = vec![0.0; sizes.head_width];
            (row.length..seq_len).for_each(|t| write(t, &zeros, 0.0));
        }
    });
}

/// Into how many shares the query tiles of a head are dealt.
pub(super) fn shares(sizes: &Sizes) -> usize {
    grid::threads().div_ceil((sizes.batch * sizes.heads).max(1)).min(sizes.seq_len.div_ceil(QUERIES)).max(1)
}

/// The query tiles of one share: every `shares`-th, since later ones see more.
pub(super) fn query_tiles(length: usize, shares: usize, share: usize) -> impl Iterator<Item = Range<usize>> {
    (share * QUERIES..length).step_by(shares * QUERIES).map(move |first| first..(first + QUERIES).min(length))
}

/// The steps that a call has to read: everything that some query sees.
pub(super) fn steps_read(row: &Row<'_>) -> Range<usize> {
    let first = row.seen(0..row.length.min(1)).next().map_or(0, |seen| seen.start);
    first..row.sizes.past + row.length
}

fn attend(
    level: Level,
    head: &Head<'_>,
    row: &Row<'_>,
    tiles: impl Iterator<Item = Range<usize>>,
    mut write: impl FnMut(usize, &[f32], f32),
) {
    let width = head.sizes.head_width;
    let mut tiles = tiles.peekable();
    if tiles.peek().is_none() {
        return;
    }
    let steps = steps_read(row);
    let (origin, count) = (steps.start, steps.len());
    let (mut keys, mut values) = (vec![0.0; count * width], vec![0.0; count * width]);
    head.copy_transposed(Part::Key, steps.clone(), &mut keys);
    head.copy(Part::Value, steps, &mut values);
    let mut scores = vec![0.0; QUERIES * KEYS];
    let mut out = vec![0.0; QUERIES * width];
    for queries in tiles {
        let n = queries.len();
        let seen: Vec<Range<usize>> = row.seen(queries.clone()).map(|seen| seen.start - origin..seen.end - origin).collect();
        let q = Matrix::new(head.queries(queries.start), 3 * head.sizes.width());
        let (mut maximum, mut sum) = ([f32::NEG_INFINITY; QUERIES], [0.0; QUERIES]);
        let out = &mut out[..n * width];
        out.fill(0.0);
        for first in (seen[0].start..seen[n - 1].end).step_by(KEYS) {
            let columns = KEYS.min(seen[n - 1].end - first);
            let scores = &mut scores[..n * columns];
            multiply(level, [n, width, columns], q, Matrix::new(&keys[first..], count), Write::Store, scores, columns);
            level.run(Softmax {
                scores: &mut *scores,
                columns,
                first,
                seen: &seen,
                scale: scale(width),
                maximum: &mut maximum[..n],
                sum: &mut sum[..n],
                out: &mut *out,
                head_width: width,
            });
            let v = Matrix::new(&values[first * width..], width);
            multiply(level, [n, columns, width], Matrix::new(scores, columns), v, Write::Add, out, width);
        }
        for (i, (t, out)) in queries.zip(out.chunks_exact_mut(width)).enumerate() {
            out.iter_mut().for_each(|x| *x /= sum[i]);
            write(t, out, maximum[i] + libm::logf(sum[i]));
        }
    }
}

/// 1/√dₕ.
pub(super) fn scale(head_width: usize) -> f32 {
    1.0 / sqrt(head_width as f32)
}
