//! The backward pass: every p is recomputed from the saved log-sums, tile by tile.

use super::cache::{Head, Part};
use super::forward::{query_tiles, scale, shares, steps_read};
use super::tiles::{Gradient, KEYS, QUERIES};
use super::{Row, Sizes, Start};
use crate::grid::{self, SharedOut};
use crate::matmul::{Matrix, Write, multiply};
use crate::out::Out;
use crate::shape::{elements, expect_len};
use crate::simd::Level;
use alloc::{vec, vec::Vec};
use core::mem::MaybeUninit;
use core::ops::Range;

/// The further inputs of [`backward`]: the outputs of [`forward`](super::forward) and their gradients; `None` is 0.
#[derive(Debug, Clone, Copy)]
pub struct Upstream<'a> {
    /// `[B, T, D]`, as written.
    pub y: &'a [f32],
    /// `[B, heads, T]`, as written.
    pub log_sums: &'a [f32],
    /// Of y; values at padding are not read.
    pub d_y: Option<&'a [f32]>,
    /// Of the next cache `[B, N, 2D]`.
    pub d_next: Option<&'a [f32]>,
}

/// Gradients of [`forward`](super::forward) with respect to `qkv` and the cache.
///
/// # Shapes
/// - `d_qkv`: `[B, T, 3D]`, 0 at padding
/// - `d_past`: `[B, P, 2D]`
///
/// # Panics
/// When a length does not fit.
pub fn backward(sizes: Sizes, qkv: &[f32], start: Start<'_>, upstream: Upstream<'_>, d_qkv: Out, d_past: Out) {
    let Sizes { batch, seq_len, past, next, heads, head_width, .. } = sizes;
    let Upstream { y, log_sums, d_y, d_next } = upstream;
    let d = sizes.width();
    start.expect_fits(&sizes);
    expect_len("qkv", qkv, elements([batch, seq_len, 3, d]));
    expect_len("y", y, elements([batch, seq_len, d]));
    expect_len("log_sums", log_sums, elements([batch, heads, seq_len]));
    d_qkv.expect_len("d_qkv", elements([batch, seq_len, 3, d]));
    d_past.expect_len("d_past", elements([batch, past, 2, d]));
    d_y.inspect(|d_y| expect_len("d_y", d_y, elements([batch, seq_len, d])));
    d_next.inspect(|d_next| expect_len("d_next", d_next, elements([batch, next, 2, d])));
    if d_qkv.is_empty() && d_past.is_empty() {
        return;
    }
    let level = Level::current();
    let shares = if d_y.is_some() { shares(&sizes) } else { 0 };
    let d_qkv = SharedOut::new(d_qkv);
    // d_k and d_v of each head, from each share of its queries.
    let of_task = (past + seq_len) * 2 * head_width;
    let mut partial = vec![0.0f32; batch * heads * shares * of_task];
    let partial_out = SharedOut::new(&mut partial);
    if let Some(d_y) = d_y {
        grid::for_each(batch * heads * shares, |task| {
            let (b, h, share) = (task / shares / heads, task / shares % heads, task % shares);
            let row = Row::new(&sizes, &start, b);
            // SAFETY: every task has a part of its own, and all of it was initialised with 0.
            let own = unsafe { partial_out.slice(task * of_task, of_task).assume_init_mut() };
            let (d_keys, d_values) = own.split_at_mut(of_task / 2);
            let at = |t: usize| (b * seq_len + t) * d + h * head_width;
            let pass = Pass {
                level,
                head: Head::new(&sizes, qkv, start.past, b, h),
                y: &y[at(0).min(y.len())..],
                d_y: &d_y[at(0).min(d_y.len())..],
                log_sums: &log_sums[(b * heads + h) * seq_len..][..seq_len],
            };
            pass.run(&row, query_tiles(row.length, shares, share), d_keys, d_values, |t, d_query| {
                // SAFETY: each step of a head belongs to one query tile, and each tile to one share.
                let out = unsafe { d_qkv.slice((b * seq_len + t) * 3 * d + h * head_width, head_width) };
                out.iter_mut().zip(d_query).for_each(|(out, &x)| {
                    out.write(x);
                });
            });
        });
    }
    let d_past = SharedOut::new(d_past);
    grid::for_each(batch, |b| {
        let row = Row::new(&sizes, &start, b);
        let mut sum = vec![0.0; 2 * d];
        for step in 0..past + seq_len {
            for (h, part) in (0..heads).flat_map(|h| [(h, 0), (h, 1)]) {
                let total = &mut sum[part * d + h * head_width..][..head_width];
                total.fill(0.0);
                for share in 0..shares {
                    let task = (b * heads + h) * shares + share;
                    let own = &partial[task * of_task + (part * (past + seq_len) + step) * head_width..][..head_width];
                    total.iter_mut().zip(own).for_each(|(total, x)| *total += x);
                }
            }
            // The place in the next cache is the step's distance from the row's end, counted from the cache's end.
            let place = (step + next).checked_sub(past + row.length).filter(|&i| i < next && row.kept(i) == Some(step));
            if let (Some(place), Some(d_next)) = (place, d_next) {
                sum.iter_mut().zip(&d_next[(b * next + place) * 2 * d..]).for_each(|(sum, d)| *sum += d);
            }
            // SAFETY: every step of every row is written once; queries were written above.
            let out = unsafe {
                match step.checked_sub(past) {
                    None => d_past.slice((b * past + step) * 2 * d, 2 * d),
                    Some(t) => d_qkv.slice((b * seq_len + t) * 3 * d + d, 2 * d),
                }
            };
            out.iter_mut().zip(&sum).for_each(|(out, &x)| {
                out.write(x);
            });
        }
        for t in if d_y.is_some() { row.length..seq_len } else { 0..seq_len } {
            // SAFETY: no query tile holds these steps.
            unsafe { d_qkv.slice((b * seq_len + t) * 3 * d, d) }.fill(MaybeUninit::new(0.0));
        }
    });
}

/// One head of one row.
struct Pass<'a> {
    level: Level,
    head: Head<'a>,
    /// Rows lie D apart.
    y: &'a [f32],
    d_y: &'a [f32],
    log_sums: &'a [f32],
}

impl Pass<'_> {
    /// Adds to `d_keys` and `d_values` `[P + T, dₕ]`, and passes the gradient of every query of the tiles to `write`.
    fn run(
        &self,
        row: &Row<'_>,
        tiles: impl Iterator<Item = Range<usize>>,
        d_keys: &mut [f32],
        d_values: &mut [f32],
        mut write: impl FnMut(usize, &[f32]),
    ) {
        let (level, width, d) = (self.level, self.head.sizes.head_width, self.head.sizes.width());
        let mut tiles = tiles.peekable();
        if tiles.peek().is_none() {
            return;
        }
        let steps = steps_read(row);
        let (origin, count) = (steps.start, steps.len());
        let mut packed = vec![0.0; 3 * count * width];
        let (keys, rest) = packed.split_at_mut(count * width);
        let (keys_across, values_across) = rest.split_at_mut(count * width);
        self.head.copy(Part::Key, steps.clone(), keys);
        self.head.copy_transposed(Part::Key, steps.clone(), keys_across);
        self.head.copy_transposed(Part::Value, steps, values_across);
        let (mut scores, mut products) = (vec![0.0; QUERIES * KEYS], vec![0.0; QUERIES * KEYS]);
        let mut d_queries = vec![0.0; QUERIES * width];
        for queries in tiles {
            let n = queries.len();
            let seen: Vec<Range<usize>> = row.seen(queries.clone()).map(|seen| seen.start - origin..seen.end - origin).collect();
            let q = Matrix::new(self.head.queries(queries.start), 3 * d);
            let (y, d_y) = (&self.y[queries.start * d..], &self.d_y[queries.start * d..]);
            let mut deltas = [0.0; QUERIES];
            for (i, delta) in deltas[..n].iter_mut().enumerate() {
                let terms = y[i * d..][..width].iter().zip(&d_y[i * d..][..width]);
                *delta = terms.map(|(y, d_y)| f64::from(*y) * f64::from(*d_y)).sum::<f64>() as f32;
            }
            let d_y = Matrix::new(d_y, d);
            let d_queries = &mut d_queries[..n * width];
            d_queries.fill(0.0);
            for first in (seen[0].start..seen[n - 1].end).step_by(KEYS) {
                let columns = KEYS.min(seen[n - 1].end - first);
                let (scores, products) = (&mut scores[..n * columns], &mut products[..n * columns]);
                multiply(level, [n, width, columns], q, Matrix::new(&keys_across[first..], count), Write::Store, scores, columns);
                multiply(level, [n, width, columns], d_y, Matrix::new(&values_across[first..], count), Write::Store, products, columns);
                level.run(Gradient {
                    scores: &mut *scores,
                    products: &mut *products,
                    columns,
                    first,
                    seen: &seen,
                    scale: scale(width),
                    log_sums: &self.log_sums[queries.clone()],
                    deltas: &deltas[..n],
                });
                let at = (origin + first) * width..(origin + first + columns) * width;
                let (p, d_scores) = (Matrix::new(scores, columns), Matrix::new(products, columns));
                multiply(level, [columns, n, width], p.transpose(), d_y, Write::Add, &mut d_values[at.clone()], width);
                multiply(level, [columns, n, width], d_scores.transpose(), q, Write::Add, &mut d_keys[at], width);
                let k = Matrix::new(&keys[first * width..], width);
                multiply(level, [n, columns, width], d_scores, k, Write::Add, d_queries, width);
            }
            for (t, d_query) in queries.zip(d_queries.chunks_exact(width)) {
                write(t, d_query);
            }
        }
    }
}
