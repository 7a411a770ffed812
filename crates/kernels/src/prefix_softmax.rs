//! Aaren's attention to a prefix: the mean of all values read so far, weighted by the softmax of their scores (Feng et al. 2024,
//! arXiv:2405.13956, §3).
//!
//! For each head, with the scores s of its values v:
//!
//! ```text
//! o_t = Σ_{i ≤ t} e^{s_i} v_i / Σ_{i ≤ t} e^{s_i}
//! ```
//!
//! With z_t the share of the newest value this is a mixture, and z needs only the logarithm l of the weight of everything read:
//!
//! ```text
//! o_t = o_{t−1} + z_t (v_t − o_{t−1})        z_t = e^{s_t} / (e^{l_{t−1}} + e^{s_t})        l_t = ln(e^{l_{t−1}} + e^{s_t})
//! ```
//!
//! Backward, G and L being the gradients of o_t and l_t, and ż = z (1 − z) G·(v_t − o_{t−1}):
//!
//! ```text
//! dv = z G        ds = ż + z L        G ← (1 − z) G        L ← (1 − z) L − ż
//! ```
//!
//! Departures:
//! 1. The sum of weights is taken in f64 relative to the maximum of the scores; it is one number per head, not per channel.
//! 2. The forward pass stores the shares, `[B, T, H]`; the states are the outputs themselves.
//! 3. Rows and heads are tasks for threads.

use crate::grid::{self, SharedOut};
use crate::out::Out;
use crate::segments::{RESET, Segments};
use crate::shape::{Shape, elements, expect_len};
use crate::simd::{Level, Simd, WithSimd, load, mul_add, put, store};
use alloc::{vec, vec::Vec};
use core::mem::MaybeUninit;

/// l of an empty memory.
pub const EMPTY: f32 = crate::rwkv4::EMPTY;

/// The inputs of every step; `H` heads share the `E` channels equally.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a, T = f32> {
    /// H.
    pub heads: usize,
    /// s `[B, T, H]`.
    pub scores: &'a [T],
    /// v `[B, T, E]`.
    pub values: &'a [T],
}

/// The initial memories of a batch's rows; a reset restores the empty memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct Start<'a, T = f32> {
    /// The carried mean `[B, E]` and log-weight `[B, H]`; `None` is the empty memory.
    pub memory: Option<[&'a [T]; 2]>,
    /// Which steps are real and where the memory is emptied.
    pub segments: Segments<'a>,
}

/// Means of every prefix and the last memory.
///
/// # Shapes
/// `shape` is `[B, T, E]`; out: `y` `[B, T, E]`, 0 at padding; `mean_last` `[B, E]`, `log_weight_last` `[B, H]`; `shares` `[B, T, H]`, which
/// [`backward`] needs.
///
/// # Panics
/// When a length does not fit `shape`, or the heads do not divide its width.
pub fn forward(shape: Shape, inputs: Inputs, start: Start, y: Out, mean_last: Out, log_weight_last: Out, shares: Out) {
    let problem = Problem::new(shape, inputs, start);
    y.expect_len("y", shape.elements());
    mean_last.expect_len("mean_last", shape.states());
    log_weight_last.expect_len("log_weight_last", elements([shape.batch, inputs.heads]));
    shares.expect_len("shares", inputs.scores.len());
    let [y, mean_last, log_weight_last, shares] = [y, mean_last, log_weight_last, shares].map(SharedOut::new);
    problem.for_each_task(|b, head| {
        problem.level.run(Forward { problem: &problem, b, head, y, mean_last, log_weight_last, shares });
    });
}

/// The further inputs of [`backward`]: the outputs of [`forward`] and their gradients; `None` is 0.
#[derive(Debug, Clone, Copy)]
pub struct Upstream<'a> {
    /// `[B, T, E]`, as written.
    pub y: &'a [f32],
    /// `[B, T, H]`, as written.
    pub shares: &'a [f32],
    /// Of y.
    pub d_y: Option<&'a [f32]>,
    /// Of the last mean.
    pub d_mean_last: Option<&'a [f32]>,
    /// Of the last log-weight.
    pub d_log_weight_last: Option<&'a [f32]>,
}

/// The outputs of [`backward`], in the shapes of [`Inputs`] and [`Start`].
#[derive(Debug)]
pub struct Gradients<'a> {
    /// Of the scores.
    pub d_scores: Out<'a>,
    /// Of the values.
    pub d_values: Out<'a>,
    /// Of the carried mean, whether or not there is one.
    pub d_mean: Out<'a>,
    /// Of the carried log-weight, whether or not there is one.
    pub d_log_weight: Out<'a>,
}

/// Gradients of everything.
///
/// # Panics
/// When a length does not fit `shape`, or the heads do not divide its width.
pub fn backward(shape: Shape, inputs: Inputs, start: Start, upstream: Upstream, gradients: Gradients) {
    let problem = Problem::new(shape, inputs, start);
    expect_len("y", upstream.y, shape.elements());
    expect_len("shares", upstream.shares, inputs.scores.len());
    upstream.d_y.inspect(|d| expect_len("d_y", d, shape.elements()));
    upstream.d_mean_last.inspect(|d| expect_len("d_mean_last", d, shape.states()));
    upstream.d_log_weight_last.inspect(|d| expect_len("d_log_weight_last", d, elements([shape.batch, inputs.heads])));
    gradients.d_scores.expect_len("d_scores", inputs.scores.len());
    gradients.d_values.expect_len("d_values", shape.elements());
    gradients.d_mean.expect_len("d_mean", shape.states());
    gradients.d_log_weight.expect_len("d_log_weight", elements([shape.batch, inputs.heads]));
    let outputs = [gradients.d_scores, gradients.d_values, gradients.d_mean, gradients.d_log_weight].map(SharedOut::new);
    problem.for_each_task(|b, head| {
        problem.level.run(Backward { problem: &problem, b, head, upstream, outputs });
    });
}

struct Problem<'a> {
    level: Level,
    shape: Shape,
    inputs: Inputs<'a>,
    start: Start<'a>,
    /// Channels of a head.
    width: usize,
    lengths: Vec<usize>,
}

impl<'a> Problem<'a> {
    fn new(shape: Shape, inputs: Inputs<'a>, start: Start<'a>) -> Self {
        let heads = inputs.heads;
        assert!(heads > 0 && shape.width.is_multiple_of(heads), "heads: {heads} do not divide the width {}", shape.width);
        expect_len("scores", inputs.scores, elements([shape.batch, shape.seq_len, heads]));
        expect_len("values", inputs.values, shape.elements());
        if let Some([mean, log_weight]) = start.memory {
            expect_len("mean", mean, shape.states());
            expect_len("log_weight", log_weight, elements([shape.batch, heads]));
        }
        start.segments.expect_fits(shape.batch, shape.seq_len);
        let lengths = (0..shape.batch).map(|b| start.segments.length(b, shape.seq_len)).collect();
        Self { level: Level::current(), shape, inputs, start, width: shape.width / heads, lengths }
    }

    fn for_each_task(&self, run: impl Fn(usize, usize) + Sync + Send) {
        let heads = self.inputs.heads;
        grid::for_each(self.shape.batch * heads, |i| run(i / heads, i % heads));
    }

    /// Where the score of step `t` is.
    #[inline(always)]
    fn score(&self, b: usize, head: usize, t: usize) -> usize {
        (b * self.shape.seq_len + t) * self.inputs.heads + head
    }

    /// Where the head's values of step `t` begin.
    #[inline(always)]
    fn value(&self, b: usize, head: usize, t: usize) -> usize {
        (b * self.shape.seq_len + t) * self.shape.width + head * self.width
    }

    /// Where the head's mean begins.
    fn mean(&self, b: usize, head: usize) -> usize {
        b * self.shape.width + head * self.width
    }

    fn is_reset(&self, b: usize, t: usize) -> bool {
        self.start.segments.row(b, self.shape.seq_len).is_some_and(|codes| codes[t] == RESET)
    }

    /// The mean before the first step of a row.
    fn carried(&self, b: usize, head: usize) -> Vec<f32> {
        let at = self.mean(b, head);
        self.start.memory.map_or_else(|| vec![0.0; self.width], |[mean, _]| mean[at..at + self.width].to_vec())
    }
}

/// The weight of everything read: `sum` · e^`largest`.
struct Weight {
    largest: f64,
    sum: f64,
}

impl Weight {
    fn new(log: f32) -> Self {
        Self { largest: log.into(), sum: 1.0 }
    }

    /// Adds e^score; returns its share of the whole.
    fn add(&mut self, score: f32) -> f64 {
        let score = f64::from(score);
        if score > self.largest {
            self.sum *= libm::exp(self.largest - score);
            self.largest = score;
        }
        let own = libm::exp(score - self.largest);
        self.sum += own;
        own / self.sum
    }

    fn log(&self) -> f32 {
        (self.largest + libm::log(self.sum)) as f32
    }
}

struct Forward<'a> {
    problem: &'a Problem<'a>,
    b: usize,
    head: usize,
    y: SharedOut,
    mean_last: SharedOut,
    log_weight_last: SharedOut,
    shares: SharedOut,
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { problem, b, head, .. } = self;
        let (inputs, width, length) = (problem.inputs, problem.width, problem.lengths[b]);
        let log_weight = problem.start.memory.map_or(EMPTY, |[_, log_weight]| log_weight[b * inputs.heads + head]);
        let mut weight = Weight::new(log_weight);
        let mut mean = problem.carried(b, head);
        for t in 0..problem.shape.seq_len {
            // SAFETY: every task writes the outputs and shares of one head of one row, and no other does.
            let (y, share) =
                unsafe { (self.y.slice(problem.value(b, head, t), width), &mut self.shares.slice(problem.score(b, head, t), 1)[0]) };
            if t >= length {
                y.fill(MaybeUninit::new(0.0));
                share.write(0.0);
                continue;
            }
            if problem.is_reset(b, t) {
                weight = Weight::new(EMPTY);
                mean.fill(0.0);
            }
            let z = weight.add(inputs.scores[problem.score(b, head, t)]) as f32;
            share.write(z);
            let (z, v) = (simd.splat_f32s(z), &inputs.values[problem.value(b, head, t)..][..width]);
            for at in (0..width).step_by(S::F32_LANES) {
                let old = load(simd, &mean, at);
                let new = mul_add(simd, z, simd.sub_f32s(load(simd, v, at), old), old);
                put(simd, &mut mean, at, new);
                store(simd, y, at, new);
            }
        }
        // SAFETY: a task is a head of a row, whose state no other task writes.
        unsafe { self.mean_last.slice(problem.mean(b, head), width) }.write_copy_of_slice(&mean);
        let last = if length == 0 { log_weight } else { weight.log() };
        // SAFETY: a task is a head of a row, whose state no other task writes.
        let log_weight_last = unsafe { self.log_weight_last.slice(b * inputs.heads + head, 1) };
        log_weight_last[0].write(last);
    }
}

struct Backward<'a> {
    problem: &'a Problem<'a>,
    b: usize,
    head: usize,
    upstream: Upstream<'a>,
    /// Of scores, values, mean and log-weight.
    outputs: [SharedOut; 4],
}

impl WithSimd for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { problem, b, head, upstream, outputs: [d_scores, d_values, d_mean, d_log_weight] } = self;
        let (inputs, width) = (problem.inputs, problem.width);
        let (state, weight) = (problem.mean(b, head), b * inputs.heads + head);
        let mut gradient = upstream.d_mean_last.map_or_else(|| vec![0.0; width], |d| d[state..state + width].to_vec());
        let mut d_weight = f64::from(upstream.d_log_weight_last.map_or(0.0, |d| d[weight]));
        let (carried, empty) = (problem.carried(b, head), vec![0.0; width]);
        for t in (0..problem.shape.seq_len).rev() {
            let (score, value) = (problem.score(b, head, t), problem.value(b, head, t));
            // SAFETY: every task writes the gradients of one head of one row, and no other does.
            let (d_v, d_s) = unsafe { (d_values.slice(value, width), &mut d_scores.slice(score, 1)[0]) };
            if t >= problem.lengths[b] {
                d_v.fill(MaybeUninit::new(0.0));
                d_s.write(0.0);
                continue;
            }
            let before = match t {
                _ if problem.is_reset(b, t) => &empty,
                0 => &carried,
                _ => &upstream.y[problem.value(b, head, t - 1)..][..width],
            };
            let (v, d_y) = (&inputs.values[value..][..width], upstream.d_y.map(|d| &d[value..][..width]));
            let z = upstream.shares[score];
            let (share, rest) = (simd.splat_f32s(z), simd.splat_f32s(1.0 - z));
            let mut along = simd.splat_f32s(0.0);
            for at in (0..width).step_by(S::F32_LANES) {
                let total = crate::simd::plus(simd, load(simd, &gradient, at), d_y, at);
                let distance = simd.sub_f32s(load(simd, v, at), load(simd, before, at));
                along = mul_add(simd, total, distance, along);
                store(simd, d_v, at, simd.mul_f32s(share, total));
                put(simd, &mut gradient, at, simd.mul_f32s(rest, total));
            }
            let z = f64::from(z);
            let d_z = z * (1.0 - z) * f64::from(simd.reduce_sum_f32s(along));
            d_s.write((d_z + z * d_weight) as f32);
            d_weight = (1.0 - z) * d_weight - d_z;
            if problem.is_reset(b, t) {
                gradient.fill(0.0);
                d_weight = 0.0;
            }
        }
        // SAFETY: a task is a head of a row, whose state no other task writes.
        unsafe { d_mean.slice(state, width) }.write_copy_of_slice(&gradient);
        // SAFETY: a task is a head of a row, whose state no other task writes.
        let d_log_weight = unsafe { d_log_weight.slice(weight, 1) };
        d_log_weight[0].write(d_weight as f32);
    }
}
