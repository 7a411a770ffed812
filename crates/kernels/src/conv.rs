//! Causal depthwise convolution with a carried window.
//!
//! y_t = bias + Σ_j w_j ⊙ x_(t−K+1+j), j = 0 … K−1: tap K−1 meets the current step (the layout of a torch `Conv1d` with left padding).
//! Inputs before the first step come from `window` `[B, K−1, D]`, oldest first, or are 0. A reset makes everything before it 0; a padded step
//! gives 0 and is no input. `window_last` holds the K−1 inputs before the next step.
//!
//! Positions: the inputs of a row are counted from the oldest of the window, so that position p ≥ K−1 is step p − (K−1), and step t meets
//! positions t, …, t+K−1 with taps 0, …, K−1.
//!
//! ```text
//! backward of position p, over the steps t = p−K+1 … p that can see it, tap j = p − t:
//! d_x_p = Σ_t w_j ⊙ d_y_t  (+ d_window_last_p);   d_w_j += Σ_t d_y_t ⊙ x_p;   d_bias += d_y_(p−K+1)
//! ```
//!
//! Departures: all `D` channels of a step are done before the next one, so memory is walked in order and the K rows in use stay in the
//! nearest cache; a tap that reaches nothing meets a row of zeros, so there is one inner loop; K = 4 is compiled apart, with its taps
//! unrolled; steps of all rows are cut into blocks, which also parallelises one long row; long filters over long rows go through Fourier
//! transforms (`spectral.rs`).

#[cfg(feature = "fft")]
mod spectral;

use crate::grid::SharedOut;
use crate::rows::{self, accumulate, plus};
use crate::segments::{RESET, Segments};
use crate::shape::{Out, Shape, elements, expect_len};
use crate::simd::{self, Level, Simd, WithSimd};
use alloc::vec;
use alloc::vec::Vec;
use core::mem::MaybeUninit;
use core::ops::Range;

/// Output of the convolution and the window to carry on.
///
/// # Shapes
/// `[B, T, D]` are `shape`'s batch, seq_len and width; `K = kernel_size`.
/// - `x`, `y`: `[B, T, D]`
/// - `weight`: `[D, K]`; `bias`: `[D]`
/// - `window`, `window_last`: `[B, K−1, D]`, oldest first; no window is 0
///
/// # Panics
/// When a length does not fit or `kernel_size` is 0.
#[allow(clippy::too_many_arguments, reason = "the kernels' flat convention: inputs, then outputs")]
pub fn forward(
    shape: Shape,
    kernel_size: usize,
    x: &[f32],
    weight: &[f32],
    bias: &[f32],
    window: Option<&[f32]>,
    segments: Segments,
    y: Out,
    window_last: Out,
) {
    let inputs = Inputs::new(shape, kernel_size, x, weight, window, segments);
    expect_len("bias", bias, shape.width);
    expect_len("y", y, shape.elements());
    expect_len("window_last", window_last, inputs.window_elements());
    inputs.write_window_last(window_last);
    #[cfg(feature = "fft")]
    if !x.is_empty() && spectral::pays(shape.seq_len, kernel_size) {
        return spectral::forward(&inputs, weight, bias, y);
    }
    let taps = transpose(weight, shape.width, kernel_size);
    let level = Level::current();
    let y = SharedOut::new(y);
    rows::for_each_block(shape.steps(), shape.width, 0, |steps, _| {
        // SAFETY: blocks are disjoint.
        let y = unsafe { y.slice(steps.start * shape.width, steps.len() * shape.width) };
        level.run(Forward { inputs: &inputs, steps, taps: &taps, bias, y });
    });
}

/// Gradients of [`forward`]; `d_residual` `[B, T, D]`, what reaches `x` by another way, is added to `d_x` of every step, padded ones too.
///
/// # Shapes
/// As in [`forward`]; a missing `d_y`, `d_window_last` or `d_residual` is 0.
///
/// # Panics
/// When a length does not fit or `kernel_size` is 0.
#[allow(clippy::too_many_arguments, reason = "the kernels' flat convention: inputs, then outputs")]
pub fn backward(
    shape: Shape,
    kernel_size: usize,
    x: &[f32],
    weight: &[f32],
    window: Option<&[f32]>,
    segments: Segments,
    d_y: Option<&[f32]>,
    d_window_last: Option<&[f32]>,
    d_residual: Option<&[f32]>,
    d_x: Out,
    d_weight: Out,
    d_bias: Out,
    d_window: Out,
) {
    let inputs = Inputs::new(shape, kernel_size, x, weight, window, segments);
    if let Some(d_y) = d_y {
        expect_len("d_y", d_y, shape.elements());
    }
    if let Some(d_window_last) = d_window_last {
        expect_len("d_window_last", d_window_last, inputs.window_elements());
    }
    if let Some(d_residual) = d_residual {
        expect_len("d_residual", d_residual, shape.elements());
    }
    expect_len("d_x", d_x, shape.elements());
    expect_len("d_weight", d_weight, weight.len());
    expect_len("d_bias", d_bias, shape.width);
    expect_len("d_window", d_window, inputs.window_elements());
    if shape.seq_len == 0 {
        copy_or_zero(d_window_last, d_window);
    }
    let taps = transpose(weight, shape.width, kernel_size);
    let gradients = Gradients { inputs: &inputs, d_y, d_window_last, d_residual, taps: &taps };
    #[cfg(feature = "fft")]
    if !x.is_empty() && spectral::pays(shape.seq_len, kernel_size) {
        return spectral::backward(&gradients, weight, d_x, d_weight, d_bias, d_window);
    }
    let level = Level::current();
    let (d_x, d_window) = (SharedOut::new(d_x), SharedOut::new(d_window));
    let sums = (kernel_size + 1) * shape.width;
    let partial = rows::for_each_block(shape.steps(), shape.width, sums, |steps, sums| {
        let (d_taps, d_bias) = sums.split_at_mut(kernel_size * shape.width);
        level.run(Backward { gradients, steps, d_x, d_window, d_taps, d_bias });
    });
    let mut d_taps = vec![MaybeUninit::uninit(); kernel_size * shape.width];
    rows::combine(&partial, sums, 0, &mut d_taps);
    for (i, d) in d_weight.iter_mut().enumerate() {
        *d = d_taps[i % kernel_size * shape.width + i / kernel_size];
    }
    rows::combine(&partial, sums, kernel_size * shape.width, d_bias);
}

fn copy_or_zero(source: Option<&[f32]>, out: Out) {
    match source {
        Some(source) => _ = out.write_copy_of_slice(source),
        None => out.fill(MaybeUninit::new(0.0)),
    }
}

/// `[D, K]` as `[K, D]`.
fn transpose(weight: &[f32], width: usize, kernel_size: usize) -> Vec<f32> {
    let mut taps = vec![0.0; weight.len()];
    for (channel, filter) in weight.chunks_exact(kernel_size).enumerate() {
        for (tap, &w) in filter.iter().enumerate() {
            taps[tap * width + channel] = w;
        }
    }
    taps
}

/// The inputs of every row by position, and which steps see them.
struct Inputs<'a> {
    shape: Shape,
    /// K − 1.
    past: usize,
    x: &'a [f32],
    window: Option<&'a [f32]>,
    segments: Segments<'a>,
    /// Real steps of every row.
    lengths: Vec<usize>,
    zeros: Vec<f32>,
}

impl<'a> Inputs<'a> {
    fn new(shape: Shape, kernel_size: usize, x: &'a [f32], weight: &[f32], window: Option<&'a [f32]>, segments: Segments<'a>) -> Self {
        assert!(kernel_size > 0, "kernel_size: expected at least 1, found 0");
        expect_len("x", x, shape.elements());
        expect_len("weight", weight, elements([shape.width, kernel_size]));
        if let Some(codes) = segments.codes() {
            expect_len("segments", codes, shape.steps());
        }
        let past = kernel_size - 1;
        let window_elements = elements([shape.batch, past, shape.width]);
        if let Some(window) = window {
            expect_len("window", window, window_elements);
        }
        let shape = shape.with_rows_of(x.len() + window_elements);
        let lengths = (0..shape.batch).map(|b| segments.length(b, shape.seq_len)).collect();
        Self { shape, past, x, window, segments, lengths, zeros: vec![0.0; shape.width] }
    }

    /// Elements of a window `[B, K−1, D]`.
    fn window_elements(&self) -> usize {
        elements([self.shape.batch, self.past, self.shape.width])
    }

    /// The values at position `p` of row `b`; `None` where there is no window.
    #[inline(always)]
    fn at(&self, b: usize, p: usize) -> Option<&'a [f32]> {
        let (source, row) = match p.checked_sub(self.past) {
            Some(t) => (self.x, b * self.shape.seq_len + t),
            None => (self.window?, b * self.past + p),
        };
        Some(&source[row * self.shape.width..][..self.shape.width])
    }

    /// The oldest position that step `t` of row `b` sees.
    #[inline(always)]
    fn oldest(&self, b: usize, t: usize) -> usize {
        let Some(codes) = self.segments.row(b, self.shape.seq_len) else { return t };
        (0..self.past.min(t + 1)).find(|&back| codes[t - back] == RESET).map_or(t, |back| t - back + self.past)
    }

    /// The steps that see position `p` of row `b`, and whether the window after the row does.
    #[inline(always)]
    fn seen_by(&self, b: usize, p: usize) -> (Range<usize>, bool) {
        let (first, end) = (p.saturating_sub(self.past), (p + 1).min(self.lengths[b]));
        // The step that brings the input sees it whatever stands before it.
        let after = if p < self.past { 0 } else { first + 1 };
        let codes = self.segments.row(b, self.shape.seq_len);
        match codes.and_then(|codes| (after..end).find(|&t| codes[t] == RESET)) {
            Some(reset) => (first..reset, false),
            None => (first..end, p >= self.lengths[b]),
        }
    }

    fn write_window_last(&self, out: Out) {
        for (i, out) in out.chunks_exact_mut(self.shape.width.max(1)).enumerate() {
            let (b, slot) = (i / self.past, i % self.past);
            let length = self.lengths[b];
            let visible = length == 0 || self.oldest(b, length - 1) <= length + slot;
            copy_or_zero(self.at(b, length + slot).filter(|_| visible), out);
        }
    }
}

struct Forward<'a> {
    inputs: &'a Inputs<'a>,
    /// Which of the `B · T` steps.
    steps: Range<usize>,
    /// `[K, D]`.
    taps: &'a [f32],
    bias: &'a [f32],
    y: Out<'a>,
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let inputs = self.inputs;
        let Shape { seq_len, width, .. } = inputs.shape;
        let mut rows = vec![&inputs.zeros[..]; inputs.past + 1];
        for (step, y) in self.steps.zip(self.y.chunks_exact_mut(width)) {
            let (b, t) = (step / seq_len, step % seq_len);
            if t >= inputs.lengths[b] {
                y.fill(MaybeUninit::new(0.0));
                continue;
            }
            let oldest = inputs.oldest(b, t);
            for (tap, row) in rows.iter_mut().enumerate() {
                *row = inputs.at(b, t + tap).filter(|_| t + tap >= oldest).unwrap_or(&inputs.zeros);
            }
            match <&[&[f32]; 4]>::try_from(&rows[..]) {
                Ok(rows) => convolve(simd, rows, self.taps, self.bias, y),
                Err(_) => convolve(simd, &rows, self.taps, self.bias, y),
            }
        }
    }
}

/// One step: y = bias + Σ_j taps_j ⊙ rows_j.
#[inline(always)]
fn convolve<S: Simd>(simd: S, rows: &[&[f32]], taps: &[f32], bias: &[f32], y: Out) {
    let width = y.len();
    for at in (0..width).step_by(S::F32_LANES) {
        let mut sum = simd::load(simd, bias, at);
        for (j, row) in rows.iter().enumerate() {
            sum = simd.mul_add_e_f32s(simd::load(simd, row, at), simd::load(simd, &taps[j * width..(j + 1) * width], at), sum);
        }
        simd::store(simd, y, at, sum);
    }
}

#[derive(Clone, Copy)]
struct Gradients<'a> {
    inputs: &'a Inputs<'a>,
    d_y: Option<&'a [f32]>,
    d_window_last: Option<&'a [f32]>,
    d_residual: Option<&'a [f32]>,
    /// `[K, D]`.
    taps: &'a [f32],
}

struct Backward<'a> {
    gradients: Gradients<'a>,
    steps: Range<usize>,
    d_x: SharedOut,
    d_window: SharedOut,
    /// `[K, D]`.
    d_taps: &'a mut [f32],
    d_bias: &'a mut [f32],
}

impl WithSimd for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Inputs { shape: Shape { seq_len, width, .. }, past, ref lengths, .. } = *self.gradients.inputs;
        let mut rows = vec![&self.gradients.inputs.zeros[..]; past + 1];
        for step in self.steps {
            let (b, t) = (step / seq_len, step % seq_len);
            // The first step of a row also does the window's positions, which nobody else writes.
            for p in (if t == 0 { 0 } else { t + past })..t + past + 1 {
                // SAFETY: every step is in one block, and so is every row's first.
                let (out, residual) = match p.checked_sub(past) {
                    Some(_) => (unsafe { self.d_x.slice(step * width, width) }, self.gradients.residual(step)),
                    None => (unsafe { self.d_window.slice((b * past + p) * width, width) }, None),
                };
                if p >= lengths[b] + past {
                    copy_or_zero(residual, out);
                    continue;
                }
                let (used, carried) = self.gradients.gather(b, p, &mut rows);
                let (own, more) = (rows[past], [carried, residual]);
                let x = self.gradients.inputs.at(b, p);
                match <&[&[f32]; 4]>::try_from(&rows[..]) {
                    Ok(rows) => differentiate(simd, rows, self.gradients.taps, x, own, more, out, self.d_taps, self.d_bias),
                    Err(_) => {
                        let (rows, taps) = (&rows[used.clone()], used.start * width..used.end * width);
                        let (taps, d_taps) = (&self.gradients.taps[taps.clone()], &mut self.d_taps[taps]);
                        differentiate(simd, rows, taps, x, own, more, out, d_taps, self.d_bias);
                    }
                }
            }
        }
    }
}

impl<'a> Gradients<'a> {
    /// What reaches the input of one of the `B · T` steps by another way.
    #[inline(always)]
    fn residual(&self, step: usize) -> Option<&'a [f32]> {
        let width = self.inputs.shape.width;
        self.d_residual.map(|d| &d[step * width..][..width])
    }

    /// Puts into `rows[j]` the gradient of the step that meets position `p` with tap `j`, zeros where there is none. Returns the taps
    /// that meet a step and the gradient from the window after the row.
    #[inline(always)]
    fn gather(&self, b: usize, p: usize, rows: &mut [&'a [f32]]) -> (Range<usize>, Option<&'a [f32]>) {
        let Inputs { shape: Shape { seq_len, width, .. }, past, .. } = *self.inputs;
        let (steps, last) = self.inputs.seen_by(b, p);
        rows.fill(&self.inputs.zeros);
        let mut used = 0..0;
        if let Some(d_y) = self.d_y.filter(|_| !steps.is_empty()) {
            used = p + 1 - steps.end..p + 1 - steps.start;
            for t in steps {
                rows[p - t] = &d_y[(b * seq_len + t) * width..][..width];
            }
        }
        let slot = p.checked_sub(self.inputs.lengths[b]).filter(|_| last);
        let carried = slot.zip(self.d_window_last).map(|(slot, d)| &d[(b * past + slot) * width..][..width]);
        (used, carried)
    }
}

/// One position: out = Σ_j taps_j ⊙ rows_j + more, d_taps_j += rows_j ⊙ x, d_bias += `own`, the row of the position's own step.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "rows of one inner loop")]
fn differentiate<S: Simd>(
    simd: S,
    rows: &[&[f32]],
    taps: &[f32],
    x: Option<&[f32]>,
    own: &[f32],
    more: [Option<&[f32]>; 2],
    out: Out,
    d_taps: &mut [f32],
    d_bias: &mut [f32],
) {
    let width = out.len();
    for at in (0..width).step_by(S::F32_LANES) {
        let mut sum = more.into_iter().fold(simd.splat_f32s(0.0), |sum, more| plus(simd, sum, more, at));
        let x = x.map(|x| simd::load(simd, x, at));
        for (j, row) in rows.iter().enumerate() {
            let tap = j * width..(j + 1) * width;
            let row = simd::load(simd, row, at);
            sum = simd.mul_add_e_f32s(row, simd::load(simd, &taps[tap.clone()], at), sum);
            if let Some(x) = x {
                accumulate(simd, &mut d_taps[tap], at, simd.mul_f32s(row, x));
            }
        }
        simd::store(simd, out, at, sum);
        accumulate(simd, d_bias, at, simd::load(simd, own, at));
    }
}
