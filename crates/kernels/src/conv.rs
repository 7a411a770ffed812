//! Causal depthwise convolution with a carried window.
//!
//! y_t = bias + Σ_j w_j ⊙ x_(t−K+1+j), j = 0 … K−1: tap K−1 applies to the current step (the layout of a torch `Conv1d` with left padding).
//! Positions before the first step come from `window` `[B, K−1, D]`, oldest first, or are 0. A reset sets everything before it to 0; a
//! padded step outputs 0 and is not an input. `window_last` holds the K−1 inputs before the next step.
//!
//! With at least 128 taps and 128 steps the sums are computed as products of Fourier transforms. Their rounding error, about 3e-8, is
//! relative to the largest input of a piece between resets, at earlier steps too; an input that is not finite makes all outputs of its
//! piece non-finite.
//!
//! Positions: the inputs of a row are counted from the oldest in the window, so that position p ≥ K−1 is step p − (K−1), and step t uses
//! positions t, …, t+K−1 with taps 0, …, K−1.
//!
//! ```text
//! backward of position p, over the steps t = p−K+1 … p that can see it, tap j = p − t:
//! d_x_p = Σ_t w_j ⊙ d_y_t  (+ d_window_last_p);   d_w_j += Σ_t d_y_t ⊙ x_p;   d_bias += d_y_(p−K+1)
//! ```
//!
//! Departures: all `D` channels of a step are done before the next one, so memory is read in order and the K rows in use stay in the
//! nearest cache; taps that reach nothing read a row of zeros, so there is one inner loop; K = 4 is compiled separately, with its taps
//! unrolled; steps of all rows are split into blocks, which also parallelises one long row; long filters over long rows use Fourier
//! transforms (`spectral.rs`).

#[cfg(feature = "fft")]
mod spectral;

use crate::grid::SharedOut;
use crate::out::{Out, Slots};
use crate::rows;
use crate::segments::{RESET, Segments};
use crate::shape::{Shape, elements, expect_len};
use crate::simd::{self, Level, Simd, WithSimd, add_to, mul_add, plus};
use alloc::vec;
use alloc::vec::Vec;
use core::mem::MaybeUninit;
use core::ops::Range;

/// The inputs of a convolution: `[B, T, D]` are the batch, seq_len and width of a shape, `K` is the kernel size.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a, T = f32> {
    /// `[B, T, D]`.
    pub x: &'a [T],
    /// `[D, K]`.
    pub weight: &'a [T],
    /// `[B, K−1, D]`, oldest first; `None` is 0.
    pub window: Option<&'a [T]>,
    /// Which steps are real, and before which ones everything is 0.
    pub segments: Segments<'a>,
}

/// Gradients of the outputs of [`forward`]; `None` is 0.
#[derive(Debug, Clone, Copy)]
pub struct Upstream<'a, T = f32> {
    /// Of y.
    pub d_y: Option<&'a [T]>,
    /// Of the last window.
    pub d_window_last: Option<&'a [T]>,
    /// The gradient that reaches `x` `[B, T, D]` by another path: it is added to that of every step, including padded ones.
    pub d_residual: Option<&'a [T]>,
}

/// The outputs of [`backward`], in the shapes of [`Inputs`].
#[derive(Debug)]
pub struct Gradients<'a> {
    /// Of x.
    pub d_x: Out<'a>,
    /// Of the weight.
    pub d_weight: Out<'a>,
    /// Of the bias `[D]`.
    pub d_bias: Out<'a>,
    /// Of the window, whether or not there is one.
    pub d_window: Out<'a>,
}

/// Output of the convolution `[B, T, D]` with `bias` `[D]`, and the window to carry on `[B, K−1, D]`.
///
/// # Panics
/// When a length does not fit or `kernel_size` is 0.
pub fn forward(shape: Shape, kernel_size: usize, inputs: Inputs, bias: &[f32], y: Out, window_last: Out) {
    let weight = inputs.weight;
    let positions = Positions::new(shape, kernel_size, inputs);
    expect_len("bias", bias, shape.width);
    y.expect_len("y", shape.elements());
    window_last.expect_len("window_last", positions.window_elements());
    positions.write_window_last(window_last.slots());
    #[cfg(feature = "fft")]
    if !inputs.x.is_empty() && spectral::pays(shape.seq_len, kernel_size) {
        return spectral::forward(&positions, weight, bias, y);
    }
    let taps = transpose(weight, shape.width, kernel_size);
    let level = Level::current();
    let y = SharedOut::new(y);
    rows::for_each_block(shape.steps(), shape.width, 0, |steps, _| {
        // SAFETY: blocks are disjoint.
        let y = unsafe { y.slice(steps.start * shape.width, steps.len() * shape.width) };
        level.run(Forward { positions: &positions, steps, taps: &taps, bias, y });
    });
}

/// Gradients of [`forward`].
///
/// # Panics
/// When a length does not fit or `kernel_size` is 0.
pub fn backward(shape: Shape, kernel_size: usize, inputs: Inputs, upstream: Upstream, mut gradients: Gradients) {
    let weight = inputs.weight;
    let positions = Positions::new(shape, kernel_size, inputs);
    upstream.d_y.inspect(|d| expect_len("d_y", d, shape.elements()));
    upstream.d_window_last.inspect(|d| expect_len("d_window_last", d, positions.window_elements()));
    upstream.d_residual.inspect(|d| expect_len("d_residual", d, shape.elements()));
    gradients.d_x.expect_len("d_x", shape.elements());
    gradients.d_weight.expect_len("d_weight", weight.len());
    gradients.d_bias.expect_len("d_bias", shape.width);
    gradients.d_window.expect_len("d_window", positions.window_elements());
    if shape.seq_len == 0 {
        copy_or_zero(upstream.d_window_last, gradients.d_window.reborrow().slots());
    }
    let taps = transpose(weight, shape.width, kernel_size);
    let adjoint = Adjoint { positions: &positions, upstream, taps: &taps };
    #[cfg(feature = "fft")]
    if !inputs.x.is_empty() && spectral::pays(shape.seq_len, kernel_size) {
        return spectral::backward(&adjoint, weight, gradients);
    }
    let level = Level::current();
    let (d_x, d_window) = (SharedOut::new(gradients.d_x), SharedOut::new(gradients.d_window));
    let sums = (kernel_size + 1) * shape.width;
    let partial = rows::for_each_block(shape.steps(), shape.width, sums, |steps, sums| {
        let (d_taps, d_bias) = sums.split_at_mut(kernel_size * shape.width);
        level.run(Backward { adjoint, steps, d_x, d_window, d_taps, d_bias });
    });
    let mut d_taps = vec![0.0; kernel_size * shape.width];
    rows::combine(&partial, sums, 0, Out::new(&mut d_taps));
    for (i, out) in gradients.d_weight.slots().iter_mut().enumerate() {
        out.write(d_taps[i % kernel_size * shape.width + i / kernel_size]);
    }
    rows::combine(&partial, sums, kernel_size * shape.width, gradients.d_bias);
}

fn copy_or_zero(source: Option<&[f32]>, out: Slots) {
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
struct Positions<'a> {
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

impl<'a> Positions<'a> {
    fn new(shape: Shape, kernel_size: usize, inputs: Inputs<'a>) -> Self {
        let Inputs { x, weight, window, segments } = inputs;
        assert!(kernel_size > 0, "kernel_size: expected at least 1, found 0");
        expect_len("x", x, shape.elements());
        expect_len("weight", weight, elements([shape.width, kernel_size]));
        segments.expect_fits(shape.batch, shape.seq_len);
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

    /// The values at position `p` of row `b`; `None` if it is in a missing window.
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
        // The input's own step sees it even if a reset comes before that step.
        let after = if p < self.past { 0 } else { first + 1 };
        let codes = self.segments.row(b, self.shape.seq_len);
        match codes.and_then(|codes| (after..end).find(|&t| codes[t] == RESET)) {
            Some(reset) => (first..reset, false),
            None => (first..end, p >= self.lengths[b]),
        }
    }

    fn write_window_last(&self, out: Slots) {
        for (i, out) in out.chunks_exact_mut(self.shape.width.max(1)).enumerate() {
            let (b, slot) = (i / self.past, i % self.past);
            let length = self.lengths[b];
            let visible = length == 0 || self.oldest(b, length - 1) <= length + slot;
            copy_or_zero(self.at(b, length + slot).filter(|_| visible), out);
        }
    }
}

struct Forward<'a> {
    positions: &'a Positions<'a>,
    /// Which of the `B · T` steps.
    steps: Range<usize>,
    /// `[K, D]`.
    taps: &'a [f32],
    bias: &'a [f32],
    y: Slots<'a>,
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let positions = self.positions;
        let Shape { seq_len, width, .. } = positions.shape;
        let mut rows = vec![&positions.zeros[..]; positions.past + 1];
        for (step, y) in self.steps.zip(self.y.chunks_exact_mut(width)) {
            let (b, t) = (step / seq_len, step % seq_len);
            if t >= positions.lengths[b] {
                y.fill(MaybeUninit::new(0.0));
                continue;
            }
            let oldest = positions.oldest(b, t);
            for (tap, row) in rows.iter_mut().enumerate() {
                *row = positions.at(b, t + tap).filter(|_| t + tap >= oldest).unwrap_or(&positions.zeros);
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
fn convolve<S: Simd>(simd: S, rows: &[&[f32]], taps: &[f32], bias: &[f32], y: Slots) {
    let width = y.len();
    for at in (0..width).step_by(S::F32_LANES) {
        let mut sum = simd::load(simd, bias, at);
        for (j, row) in rows.iter().enumerate() {
            sum = mul_add(simd, simd::load(simd, row, at), simd::load(simd, &taps[j * width..(j + 1) * width], at), sum);
        }
        simd::store(simd, y, at, sum);
    }
}

/// The gradients that reach the positions of every row from the steps that see them.
#[derive(Clone, Copy)]
struct Adjoint<'a> {
    positions: &'a Positions<'a>,
    upstream: Upstream<'a>,
    /// `[K, D]`.
    taps: &'a [f32],
}

struct Backward<'a> {
    adjoint: Adjoint<'a>,
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
        let Positions { shape: Shape { seq_len, width, .. }, past, ref lengths, .. } = *self.adjoint.positions;
        let mut rows = vec![&self.adjoint.positions.zeros[..]; past + 1];
        for step in self.steps {
            let (b, t) = (step / seq_len, step % seq_len);
            // The first step of a row also handles the window's positions, which no other step writes.
            for p in (if t == 0 { 0 } else { t + past })..t + past + 1 {
                let (out, residual) = match p.checked_sub(past) {
                    // SAFETY: every step is in one block.
                    Some(_) => (unsafe { self.d_x.slice(step * width, width) }, self.adjoint.residual(step)),
                    // SAFETY: every row has one first step, which is in one block.
                    None => (unsafe { self.d_window.slice((b * past + p) * width, width) }, None),
                };
                if p >= lengths[b] + past {
                    copy_or_zero(residual, out);
                    continue;
                }
                let (used, carried) = self.adjoint.gather(b, p, &mut rows);
                let input = Position { x: self.adjoint.positions.at(b, p), own: rows[past], more: [carried, residual] };
                match <&[&[f32]; 4]>::try_from(&rows[..]) {
                    Ok(rows) => differentiate(simd, rows, self.adjoint.taps, input, out, self.d_taps, self.d_bias),
                    Err(_) => {
                        let (rows, taps) = (&rows[used.clone()], used.start * width..used.end * width);
                        let (taps, d_taps) = (&self.adjoint.taps[taps.clone()], &mut self.d_taps[taps]);
                        differentiate(simd, rows, taps, input, out, d_taps, self.d_bias);
                    }
                }
            }
        }
    }
}

impl<'a> Adjoint<'a> {
    /// The gradient that reaches the input of one of the `B · T` steps by another path.
    #[inline(always)]
    fn residual(&self, step: usize) -> Option<&'a [f32]> {
        let width = self.positions.shape.width;
        self.upstream.d_residual.map(|d| &d[step * width..][..width])
    }

    /// Puts into `rows[j]` the gradient of the step that meets position `p` with tap `j`, zeros where there is none. Returns the taps
    /// that meet a step and the gradient from the window after the row.
    #[inline(always)]
    fn gather(&self, b: usize, p: usize, rows: &mut [&'a [f32]]) -> (Range<usize>, Option<&'a [f32]>) {
        let Positions { shape: Shape { seq_len, width, .. }, past, .. } = *self.positions;
        let (steps, last) = self.positions.seen_by(b, p);
        rows.fill(&self.positions.zeros);
        let mut used = 0..0;
        if let Some(d_y) = self.upstream.d_y.filter(|_| !steps.is_empty()) {
            used = p + 1 - steps.end..p + 1 - steps.start;
            for t in steps {
                rows[p - t] = &d_y[(b * seq_len + t) * width..][..width];
            }
        }
        let slot = p.checked_sub(self.positions.lengths[b]).filter(|_| last);
        let carried = slot.zip(self.upstream.d_window_last).map(|(slot, d)| &d[(b * past + slot) * width..][..width]);
        (used, carried)
    }
}

/// An input, and the parts of its gradient that need no tap.
struct Position<'a> {
    /// Its values; `None` is 0.
    x: Option<&'a [f32]>,
    /// The gradient of the step whose newest input it is.
    own: &'a [f32],
    /// Gradients that reach it by other paths.
    more: [Option<&'a [f32]>; 2],
}

/// One position: out = Σ_j taps_j ⊙ rows_j + more, d_taps_j += rows_j ⊙ x, d_bias += own.
#[inline(always)]
fn differentiate<S: Simd>(
    simd: S,
    rows: &[&[f32]],
    taps: &[f32],
    Position { x, own, more }: Position<'_>,
    out: Slots,
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
            sum = mul_add(simd, row, simd::load(simd, &taps[tap.clone()], at), sum);
            if let Some(x) = x {
                add_to(simd, &mut d_taps[tap], at, simd.mul_f32s(row, x));
            }
        }
        simd::store(simd, out, at, sum);
        add_to(simd, d_bias, at, simd::load(simd, own, at));
    }
}
