//! What the kernels with a recurrent product (GRU, LSTM, sLSTM) share: the rows of one task, the states before their steps, and sums over
//! tasks.
//!
//! The steps of such a cell depend on each other through a product, so only rows are independent: the batch is split into as many tasks as
//! there are threads, each of which runs whole rows from end to end with its own products.

use crate::grid::{self, SharedOut};
use crate::out::Slots;
use crate::segments::{RESET, Segments};
use crate::shape::Shape;
use crate::simd::{self, Simd, TRACE, sigmoid_pair, without_traces};
use alloc::{vec, vec::Vec};
use core::mem::MaybeUninit;
use core::ops::Range;

/// Rows of a block, over all of its steps: enough for products at full speed, few enough to stay in the cache.
const BLOCK_ROWS: usize = 512;
/// Rows, over all steps, whose bias gradients are added up in f32 before they go to an f64 sum.
const SUM_ROWS: usize = 64;

/// Runs `work(rows of the task, its sums)` for every task that the batch of `shape` is cut into; each adds into `sums` numbers of its own
/// that start at 0. Returns the sums of all tasks, `[tasks, sums]`.
pub(crate) fn for_each_task(
    shape: Shape,
    segments: Segments<'_>,
    sums: usize,
    work: impl Fn(&Rows<'_>, &mut [f32]) + Sync + Send,
) -> Vec<f32> {
    let shape = shape.with_rows_of(shape.width);
    let n = grid::threads().min(shape.batch);
    let mut partial = vec![0.0; n * sums];
    let shared = SharedOut::new(&mut partial);
    grid::for_each(n, |i| {
        let rows = Rows::new(shape, segments, grid::piece(shape.batch, n, i));
        // SAFETY: every task has sums of its own, and all are initialised.
        let own = unsafe { shared.slice(i * sums, sums).assume_init_mut() };
        work(&rows, own);
    });
    partial
}

/// The rows of one task. Row and step indices below are within it.
pub(crate) struct Rows<'a> {
    pub range: Range<usize>,
    pub seq_len: usize,
    pub width: usize,
    codes: Option<&'a [i32]>,
    lengths: Vec<usize>,
}

impl<'a> Rows<'a> {
    pub fn new(shape: Shape, segments: Segments<'a>, range: Range<usize>) -> Self {
        let Shape { seq_len, width, .. } = shape;
        let codes = segments.codes().map(|codes| &codes[range.start * seq_len..range.end * seq_len]);
        let lengths = range.clone().map(|b| segments.length(b, seq_len)).collect();
        Self { range, seq_len, width, codes, lengths }
    }

    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// This task's part of a slice with `per_row` elements for each row of the batch.
    pub fn of<'b>(&self, slice: &'b [f32], per_row: usize) -> &'b [f32] {
        &slice[self.range.start * per_row..self.range.end * per_row]
    }

    /// This task's part of an output with `per_row` elements for each row of the batch.
    ///
    /// # Safety
    /// As for [`SharedOut::slice`]; the tasks of a batch have different rows.
    pub unsafe fn own<'b>(&self, out: &SharedOut, per_row: usize) -> Slots<'b> {
        // SAFETY: by the caller's promise.
        unsafe { out.slice(self.range.start * per_row, self.len() * per_row) }
    }

    /// Number of steps until every row has ended.
    pub fn steps(&self) -> usize {
        self.lengths.iter().copied().max().unwrap_or(0)
    }

    /// Steps per block of the backward pass.
    pub fn block_steps(&self) -> usize {
        (BLOCK_ROWS / self.len().max(1)).clamp(1, self.steps().max(1))
    }

    /// Whether the sums go to f64 now, when `left` of the block's steps are still to come.
    pub fn flushes(&self, left: usize) -> bool {
        left.is_multiple_of((SUM_ROWS / self.len().max(1)).max(1))
    }

    /// The steps until every row has ended, in blocks from the last to the first.
    pub fn blocks_back(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let (steps, block) = (self.steps(), self.block_steps());
        (0..steps.div_ceil(block)).map(move |i| {
            let end = steps - i * block;
            end.saturating_sub(block)..end
        })
    }

    /// Rows whose step `t` is real, each with the index of that step among all steps of the task.
    #[inline(always)]
    pub fn real(&self, t: usize) -> impl Iterator<Item = (usize, usize)> {
        (0..self.len()).filter(move |&row| self.is_real(row, t)).map(move |row| (row, row * self.seq_len + t))
    }

    /// Writes 0 to the rows of `x` `[rows, per_row]` whose step `t` is padding.
    #[inline(always)]
    pub fn clear_padded_rows(&self, t: usize, x: &mut [f32], per_row: usize) {
        for row in (0..self.len()).filter(|&row| !self.is_real(row, t)) {
            x[row * per_row..][..per_row].fill(0.0);
        }
    }

    #[inline(always)]
    pub fn is_real(&self, row: usize, t: usize) -> bool {
        t < self.lengths[row]
    }

    pub fn is_reset(&self, row: usize, t: usize) -> bool {
        self.codes.is_some_and(|codes| codes[row * self.seq_len + t] == RESET)
    }

    /// The state before each row's step `t` as `[rows, E]`, from the states after each step; 0 in padding.
    pub fn gather_before(&self, t: usize, first: Option<&[f32]>, init: Option<&[f32]>, states: &[f32], out: &mut [f32]) {
        let e = self.width;
        for row in 0..self.len() {
            let state = if !self.is_real(row, t) {
                None
            } else if self.is_reset(row, t) {
                init
            } else if t == 0 {
                first.map(|first| &first[row * e..][..e])
            } else {
                Some(&states[(row * self.seq_len + t - 1) * e..][..e])
            };
            copy_or_zero(state, &mut out[row * e..][..e]);
        }
    }

    /// Sets the states of rows with a reset before step `t` to what a reset restores.
    pub fn reset(&self, t: usize, init: Option<&[f32]>, state: &mut [f32]) {
        for row in (0..self.len()).filter(|&row| self.is_reset(row, t)) {
            copy_or_zero(init, &mut state[row * self.width..][..self.width]);
        }
    }

    /// Moves the gradients of rows with a reset before step `t` from `gradient` to `d_init`: they go no further back.
    pub fn collect_resets(&self, t: usize, gradient: &mut [f32], d_init: &mut [f64]) {
        for row in (0..self.len()).filter(|&row| self.is_reset(row, t)) {
            for (sum, d) in d_init.iter_mut().zip(&mut gradient[row * self.width..][..self.width]) {
                *sum += f64::from(core::mem::take(d));
            }
        }
    }

    /// Clears the gradients of rows with a reset before step `t`, for states that a reset restores to constants.
    pub fn drop_resets(&self, t: usize, gradient: &mut [f32]) {
        for row in (0..self.len()).filter(|&row| self.is_reset(row, t)) {
            gradient[row * self.width..][..self.width].fill(0.0);
        }
    }

    /// Writes 0 to every padded step of an output with `per_step` elements for each.
    pub fn clear_padding(&self, out: Slots, per_step: usize) {
        for (row, &length) in self.lengths.iter().enumerate() {
            let padding = row * self.seq_len + length..(row + 1) * self.seq_len;
            out[padding.start * per_step..padding.end * per_step].fill(MaybeUninit::new(0.0));
        }
    }
}

/// What the element-wise part of step `t` of all rows of a task reads.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'a> {
    pub rows: &'a Rows<'a>,
    pub t: usize,
    /// Of the task, over all steps.
    pub preact: &'a [f32],
    /// What is added to the pre-activations of every step.
    pub bias: &'a [f32],
}

/// A copy of `source`, or as many zeros as there are `elements`.
pub(crate) fn state_of(source: Option<&[f32]>, elements: usize) -> Vec<f32> {
    source.map_or_else(|| vec![0.0; elements], <[f32]>::to_vec)
}

fn copy_or_zero(source: Option<&[f32]>, target: &mut [f32]) {
    match source {
        Some(source) => target.copy_from_slice(source),
        None => target.fill(0.0),
    }
}

/// The sum of two optional biases.
pub(crate) fn bias_sum(a: Option<&[f32]>, b: Option<&[f32]>, elements: usize) -> Vec<f32> {
    (0..elements).map(|i| a.map_or(0.0, |a| a[i]) + b.map_or(0.0, |b| b[i])).collect()
}

/// Block `gate` of `width` elements.
#[inline(always)]
pub(crate) fn gate(x: &[f32], width: usize, gate: usize) -> &[f32] {
    &x[gate * width..(gate + 1) * width]
}

/// Block `gate` of `width` elements, to write.
#[inline(always)]
pub(crate) fn gate_mut(x: &mut [f32], width: usize, gate: usize) -> &mut [f32] {
    &mut x[gate * width..(gate + 1) * width]
}

/// The sum p + u + b of which a gate is the sigmoid.
#[inline(always)]
pub(crate) fn gate_sum<S: Simd>(simd: S, e: usize, [p, u, bias]: [&[f32]; 3], index: usize, at: usize) -> S::f32s {
    let sum = simd.add_f32s(simd::load(simd, gate(p, e, index), at), simd::load(simd, gate(u, e, index), at));
    simd.add_f32s(sum, simd::load(simd, gate(bias, e, index), at))
}

/// ln σ(x) to an absolute 1e-7 and a relative 1e-6.
#[inline(always)]
pub(crate) fn log_sigmoid<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let one = simd.splat_f32s(1.0);
    let small = simd::exp_neg_abs(simd, x);
    // ln(1 + small): what the sum's rounding loses is added back, times the logarithm's slope.
    let sum = simd.add_f32s(one, small);
    let lost = simd.sub_f32s(small, simd.sub_f32s(sum, one));
    let softplus = simd.add_f32s(simd::ln_of_normal(simd, sum), simd.div_f32s(lost, sum));
    simd.sub_f32s(simd.min_f32s(x, simd.splat_f32s(0.0)), softplus)
}

/// The gradient of h after a step: what later steps sent back, and what the step's own output adds.
#[inline(always)]
pub(crate) fn carried<S: Simd>(simd: S, gamma: &[f32], d_h: Option<&[f32]>, at: usize) -> S::f32s {
    without_traces(simd, simd::plus(simd, simd::load(simd, gamma, at), d_h, at), TRACE)
}

/// tanh(x) to an absolute 2e-7, and its slope 1 − tanh²(x) with full relative accuracy.
#[inline(always)]
pub(crate) fn tanh_and_slope<S: Simd>(simd: S, x: S::f32s) -> [S::f32s; 2] {
    let [p, q] = sigmoid_pair(simd, simd.add_f32s(x, x));
    [simd.sub_f32s(p, q), simd.mul_f32s(simd.splat_f32s(4.0), simd.mul_f32s(p, q))]
}

/// Adds a block's sums to `totals` and clears them: blocks are summed in f32, their results in f64.
pub(crate) fn flush(sums: &mut [f32], totals: &mut [f64]) {
    for (total, sum) in totals.iter_mut().zip(sums) {
        *total += f64::from(core::mem::take(sum));
    }
}
