//! The cache: keys and values of past and new steps, read as one sequence, and those for the next call.

use super::{Row, Sizes, Start};
use crate::grid::{self, SharedOut};
use crate::out::Out;
use core::mem::MaybeUninit;

/// Which part of a step to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Key,
    Value,
}

/// Keys and values of one head of one row of the batch.
#[derive(Clone, Copy)]
pub(super) struct Head<'a> {
    pub sizes: Sizes,
    qkv: &'a [f32],
    past: &'a [f32],
    b: usize,
    h: usize,
}

impl<'a> Head<'a> {
    pub fn new(sizes: &Sizes, qkv: &'a [f32], past: &'a [f32], b: usize, h: usize) -> Self {
        Self { sizes: *sizes, qkv, past, b, h }
    }

    /// The queries of the new steps from `t` on; rows are 3D apart.
    pub fn queries(&self, t: usize) -> &'a [f32] {
        &self.qkv[(self.b * self.sizes.seq_len + t) * 3 * self.sizes.width() + self.h * self.sizes.head_width..]
    }

    /// Key or value of a step; the cache's steps are counted first.
    fn row(&self, part: Part, step: usize) -> &'a [f32] {
        let Sizes { seq_len, past, head_width, .. } = self.sizes;
        let d = self.sizes.width();
        let column = self.h * head_width + if part == Part::Key { 0 } else { d };
        let row = match step.checked_sub(past) {
            None => &self.past[(self.b * past + step) * 2 * d..],
            Some(t) => &self.qkv[(self.b * seq_len + t) * 3 * d + d..],
        };
        &row[column..][..head_width]
    }

    /// `[steps, dₕ]`.
    pub fn copy(&self, part: Part, steps: core::ops::Range<usize>, out: &mut [f32]) {
        for (step, out) in steps.zip(out.chunks_exact_mut(self.sizes.head_width)) {
            out.copy_from_slice(self.row(part, step));
        }
    }

    /// `[dₕ, steps]`, the layout in which products with many queries read it at full speed.
    pub fn copy_transposed(&self, part: Part, steps: core::ops::Range<usize>, out: &mut [f32]) {
        /// Steps written together: a cache line.
        const TOGETHER: usize = 16;
        let (count, width) = (steps.len(), self.sizes.head_width);
        for first in (0..count).step_by(TOGETHER) {
            let together = TOGETHER.min(count - first);
            let mut rows = [&[][..]; TOGETHER];
            for (i, row) in rows[..together].iter_mut().enumerate() {
                *row = self.row(part, steps.start + first + i);
            }
            for c in 0..width {
                let out = &mut out[c * count + first..][..together];
                for (out, row) in out.iter_mut().zip(&rows) {
                    *out = row[c];
                }
            }
        }
    }
}

/// Writes the cache `[B, N, 2D]` after the new steps: the last N steps of each row, zeros before its last reset.
pub(super) fn write_next(sizes: &Sizes, qkv: &[f32], start: &Start<'_>, next: Out) {
    let d = sizes.width();
    let next = SharedOut::new(next);
    grid::for_each(sizes.batch, |b| {
        let row = Row::new(sizes, start, b);
        for i in 0..sizes.next {
            // SAFETY: every step of every row is written once.
            let out = unsafe { next.slice((b * sizes.next + i) * 2 * d, 2 * d) };
            match row.kept(i) {
                None => out.fill(MaybeUninit::new(0.0)),
                Some(step) => {
                    let source = match step.checked_sub(sizes.past) {
                        None => &start.past[(b * sizes.past + step) * 2 * d..][..2 * d],
                        Some(t) => &qkv[(b * sizes.seq_len + t) * 3 * d + d..][..2 * d],
                    };
                    for (out, &x) in out.iter_mut().zip(source) {
                        out.write(x);
                    }
                }
            }
        }
    });
}
