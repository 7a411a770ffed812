//! RWKV-4's time mixing: an average of the values weighted by e^key, in which the past decays and the current step has a bonus.
//!
//! With Q_t the weight of everything read, P_t the weighted sum and w = −e^decay < 0 (Peng et al. 2023, arXiv:2305.13048), per channel:
//!
//! ```text
//! y_t = σ(r_t) (P_{t−1} + e^{u + k_t} v_t) / (Q_{t−1} + e^{u + k_t})
//! P_t = e^w P_{t−1} + e^{k_t} v_t        Q_t = e^w Q_{t−1} + e^{k_t}
//! ```
//!
//! where: r receptance, k key, v value, u bonus.
//!
//! Departures:
//! 1. The memory is the mean a = P / Q and the logarithm l = ln Q. Nothing overflows, no running maximum is needed, and the pair is unique
//!    for its P and Q, so that gradients of a carried memory are meaningful. In these terms the recurrence is a mixture:
//!
//! ```text
//! y_t = σ(r_t) (a + s (v_t − a))     s = σ(u + k_t − l)
//! a⁺  = a + z (v_t − a)              z = σ(k_t − w − l)        l⁺ = ln(e^{w + l} + e^{k_t})
//! ```
//!
//! 2. Backward, A and L being the gradients of a⁺ and l⁺, ȳ that of y before its gate, ṡ = s (1 − s) (v − a) ȳ, ż = z (1 − z) (v − a) A:
//!
//! ```text
//! dk = ṡ + ż + z L      dv = s ȳ + z A      du += ṡ      dw += (1 − z) L − ż
//! A ← (1 − s) ȳ + (1 − z) A                 L ← (1 − z) L − ṡ − ż
//! ```
//!
//! 3. The rounding error of l is carried to the next step: where the past decays slowly, it would add up over a thousand steps.
//! 4. The forward pass stores the memory before every 128th step; the backward pass recomputes the others, 128 at a time.
//! 5. Rows and blocks of 64 channels are tasks for threads.

use crate::grid::{self, SharedOut};
use crate::out::Out;
use crate::rows::combine;
use crate::segments::{RESET, Segments};
use crate::shape::{Shape, elements, expect_len};
use crate::simd::{self, Level, Simd, WithSimd, load, mul_add, put, sigmoid_pair, store};
use crate::stepwise::flush;
use alloc::{vec, vec::Vec};
use core::mem::MaybeUninit;
use core::ops::Range;

/// ln Q of an empty memory.
pub const EMPTY: f32 = -1e38;
/// Number of steps between two stored memories.
pub const CHUNK: usize = 128;
/// Channels of a task.
const BLOCK: usize = 64;

/// The inputs of every step.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a, T = f32> {
    /// r `[B, T, E]`, before its sigmoid.
    pub receptance: &'a [T],
    /// k `[B, T, E]`.
    pub key: &'a [T],
    /// v `[B, T, E]`.
    pub value: &'a [T],
    /// `[E]`: w = −e^decay.
    pub decay: &'a [T],
    /// u `[E]`.
    pub bonus: &'a [T],
}

/// The initial memories of a batch's rows; a reset restores the empty memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct Start<'a, T = f32> {
    /// The carried mean a `[B, E]` and log-weight l `[B, E]`; `None` is the empty memory.
    pub memory: Option<[&'a [T]; 2]>,
    /// Which steps are real and where the memory is emptied.
    pub segments: Segments<'a>,
}

/// Number of elements that [`forward`] stores for [`backward`].
///
/// # Panics
/// When that is more than memory can hold.
pub fn kept_len(shape: Shape) -> usize {
    elements([shape.batch, shape.seq_len.div_ceil(CHUNK), 2, shape.width])
}

/// Outputs and the last memory.
///
/// # Shapes
/// `y` `[B, T, E]`, 0 at padding; `mean_last`, `log_weight_last` `[B, E]`; `kept` [`kept_len`] elements.
///
/// # Panics
/// When a length does not fit `shape`.
pub fn forward(shape: Shape, inputs: Inputs, start: Start, y: Out, mean_last: Out, log_weight_last: Out, kept: Out) {
    y.expect_len("y", shape.elements());
    mean_last.expect_len("mean_last", shape.states());
    log_weight_last.expect_len("log_weight_last", shape.states());
    kept.expect_len("kept", kept_len(shape));
    let problem = Problem::new(shape, inputs, start);
    let [y, mean_last, log_weight_last, kept] = [y, mean_last, log_weight_last, kept].map(SharedOut::new);
    problem.for_each_task(|task| {
        problem.level.run(Forward { problem: &problem, task, y, last: [mean_last, log_weight_last], kept });
    });
}

/// The further inputs of [`backward`]: what [`forward`] stored and the gradients of its outputs; `None` is 0.
#[derive(Debug, Clone, Copy)]
pub struct Upstream<'a> {
    /// [`kept_len`] elements.
    pub kept: &'a [f32],
    /// Of y.
    pub d_y: Option<&'a [f32]>,
    /// Of the last mean and log-weight.
    pub d_last: [Option<&'a [f32]>; 2],
}

/// The outputs of [`backward`], in the shapes of [`Inputs`] and [`Start`].
#[derive(Debug)]
pub struct Gradients<'a> {
    /// Of the receptance.
    pub d_receptance: Out<'a>,
    /// Of the key.
    pub d_key: Out<'a>,
    /// Of the value.
    pub d_value: Out<'a>,
    /// Of the decay, with w = −e^decay.
    pub d_decay: Out<'a>,
    /// Of the bonus.
    pub d_bonus: Out<'a>,
    /// Of the carried mean and log-weight, whether or not there are any.
    pub d_memory: [Out<'a>; 2],
}

/// Gradients of everything.
///
/// # Panics
/// When a length does not fit `shape`.
pub fn backward(shape: Shape, inputs: Inputs, start: Start, upstream: Upstream, gradients: Gradients) {
    expect_len("kept", upstream.kept, kept_len(shape));
    upstream.d_y.inspect(|d| expect_len("d_y", d, shape.elements()));
    upstream.d_last.iter().flatten().for_each(|d| expect_len("d_last", d, shape.states()));
    for (name, d) in [("d_receptance", &gradients.d_receptance), ("d_key", &gradients.d_key), ("d_value", &gradients.d_value)] {
        d.expect_len(name, shape.elements());
    }
    gradients.d_memory.iter().for_each(|d| d.expect_len("d_memory", shape.states()));
    let e = shape.width;
    for (name, d) in [("d_decay", &gradients.d_decay), ("d_bonus", &gradients.d_bonus)] {
        d.expect_len(name, e);
    }
    let problem = Problem::new(shape, inputs, start);
    // For each row the sums of decay, then of bonus.
    let mut partials = vec![0.0; shape.batch * 2 * e];
    let sums = SharedOut::new(&mut partials);
    let d_inputs = [gradients.d_receptance, gradients.d_key, gradients.d_value].map(SharedOut::new);
    let d_memory = gradients.d_memory.map(SharedOut::new);
    problem.for_each_task(|task| {
        problem.level.run(Backward { problem: &problem, task, upstream, d_inputs, d_memory, sums });
    });
    combine(&partials, 2 * e, 0, gradients.d_decay);
    combine(&partials, 2 * e, e, gradients.d_bonus);
}

struct Problem<'a> {
    level: Level,
    shape: Shape,
    inputs: Inputs<'a>,
    /// w = −e^decay.
    fading: Vec<f32>,
    start: Start<'a>,
    lengths: Vec<usize>,
}

/// Some channels of a row.
#[derive(Clone)]
struct Task {
    b: usize,
    channels: Range<usize>,
}

impl<'a> Problem<'a> {
    fn new(shape: Shape, inputs: Inputs<'a>, start: Start<'a>) -> Self {
        for (name, x) in [("receptance", inputs.receptance), ("key", inputs.key), ("value", inputs.value)] {
            expect_len(name, x, shape.elements());
        }
        expect_len("decay", inputs.decay, shape.width);
        expect_len("bonus", inputs.bonus, shape.width);
        if let Some([mean, log_weight]) = start.memory {
            expect_len("mean", mean, shape.states());
            expect_len("log_weight", log_weight, shape.states());
        }
        start.segments.expect_fits(shape.batch, shape.seq_len);
        let shape = shape.with_rows_of(shape.width);
        let fading = inputs.decay.iter().map(|&decay| -libm::expf(decay)).collect();
        let lengths = (0..shape.batch).map(|b| start.segments.length(b, shape.seq_len)).collect();
        Self { level: Level::current(), shape, inputs, fading, start, lengths }
    }

    fn for_each_task(&self, run: impl Fn(Task) + Sync + Send) {
        let blocks = self.shape.width.div_ceil(BLOCK);
        grid::for_each(self.shape.batch * blocks, |i| {
            let first = i % blocks * BLOCK;
            run(Task { b: i / blocks, channels: first..(first + BLOCK).min(self.shape.width) });
        });
    }

    /// The task's channels at step `t`.
    #[inline(always)]
    fn at(&self, task: &Task, x: &'a [f32], t: usize) -> &'a [f32] {
        &x[self.step(task, t)..][..task.channels.len()]
    }

    /// Where the task's channels of step `t` begin.
    #[inline(always)]
    fn step(&self, task: &Task, t: usize) -> usize {
        (task.b * self.shape.seq_len + t) * self.shape.width + task.channels.start
    }

    /// Where the task's channels of a state begin.
    fn state(&self, task: &Task) -> usize {
        task.b * self.shape.width + task.channels.start
    }

    /// Where the task's channels of the memory before chunk `chunk` begin.
    fn kept(&self, task: &Task, chunk: usize) -> usize {
        let chunks = self.shape.seq_len.div_ceil(CHUNK);
        (task.b * chunks + chunk) * 2 * self.shape.width + task.channels.start
    }

    fn is_reset(&self, b: usize, t: usize) -> bool {
        self.start.segments.row(b, self.shape.seq_len).is_some_and(|codes| codes[t] == RESET)
    }

    /// Moves the memory past step `t`; `then` gets the step's vectors of y before the gate, with their places.
    #[inline(always)]
    fn advance<S: Simd>(&self, simd: S, task: &Task, t: usize, memory: &mut Memory, mut then: impl FnMut(usize, S::f32s)) {
        let (k, v) = (self.at(task, self.inputs.key, t), self.at(task, self.inputs.value, t));
        let (u, w) = (&self.inputs.bonus[task.channels.clone()], &self.fading[task.channels.clone()]);
        let [mean, log_weight, lost] = memory;
        for at in (0..k.len()).step_by(S::F32_LANES) {
            let inputs = [load(simd, k, at), load(simd, v, at), load(simd, u, at), load(simd, w, at)];
            let (value, after) = advance(simd, inputs, [load(simd, mean, at), load(simd, log_weight, at), load(simd, lost, at)]);
            then(at, value);
            for (part, after) in [&mut *mean, &mut *log_weight, &mut *lost].into_iter().zip(after) {
                put(simd, part, at, after);
            }
        }
    }
}

/// One step with k, v, u and w, from the memory before it (a, l and what rounding l has lost): y before its gate, and the memory after it.
#[inline(always)]
fn advance<S: Simd>(simd: S, [k, v, u, w]: [S::f32s; 4], [a, l, lost]: [S::f32s; 3]) -> (S::f32s, [S::f32s; 3]) {
    let distance = simd.sub_f32s(v, a);
    let ahead = simd.sub_f32s(simd.sub_f32s(k, l), lost);
    let [s, _] = sigmoid_pair(simd, simd.add_f32s(u, ahead));
    let x = simd.sub_f32s(ahead, w);
    let [z, _] = sigmoid_pair(simd, x);
    let more = ln_one_plus(simd, simd::exp_neg_abs(simd, x));
    let grown = simd.add_f32s(lost, simd.add_f32s(w, more));
    let positive = simd.greater_than_f32s(x, simd.splat_f32s(0.0));
    let (larger, more) = (simd.select_f32s(positive, k, l), simd.select_f32s(positive, more, grown));
    let next = simd.add_f32s(larger, more);
    let lost = simd.sub_f32s(more, simd.sub_f32s(next, larger));
    (mul_add(simd, s, distance, a), [mul_add(simd, z, distance, a), next, lost])
}

/// ln(1 + e) for e in [0, 1]. Where e is small, 1 + e would lose its digits, and many small weights would not count.
#[inline(always)]
fn ln_one_plus<S: Simd>(simd: S, e: S::f32s) -> S::f32s {
    let one = simd.splat_f32s(1.0);
    let small = simd.less_than_f32s(e, simd.splat_f32s(1e-3));
    let series = mul_add(simd, simd.mul_f32s(e, e), simd.splat_f32s(-0.5), e);
    simd.select_f32s(small, series, simd::ln_of_normal(simd, simd.add_f32s(one, e)))
}

/// One step of some channels; allocates nothing. `lost` is the accumulated rounding error of `log_weight`, initially 0: carried from step
/// to step, it keeps the memory as accurate as [`forward`] over a whole sequence.
///
/// # Shapes
/// r, k, v, w = −e^decay, u, the mean, the log-weight, `lost` and `y`: one number for each channel.
///
/// # Panics
/// When the lengths differ.
pub fn step(level: Level, [r, k, v]: [&[f32]; 3], [fading, bonus]: [&[f32]; 2], memory: [&mut [f32]; 3], y: &mut [f32]) {
    for (name, x) in [("receptance", r), ("key", k), ("value", v), ("fading", fading), ("bonus", bonus)] {
        expect_len(name, x, y.len());
    }
    for (name, x) in ["mean", "log_weight", "lost"].into_iter().zip(&memory) {
        expect_len(name, x, y.len());
    }
    level.run(Step { inputs: [k, v, bonus, fading], receptance: r, memory, y });
}

struct Step<'a> {
    inputs: [&'a [f32]; 4],
    receptance: &'a [f32],
    memory: [&'a mut [f32]; 3],
    y: &'a mut [f32],
}

impl WithSimd for Step<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let [mean, log_weight, lost] = self.memory;
        for at in (0..self.y.len()).step_by(S::F32_LANES) {
            let before = [load(simd, mean, at), load(simd, log_weight, at), load(simd, lost, at)];
            let (value, after) = advance(simd, self.inputs.map(|x| load(simd, x, at)), before);
            let [gate, _] = sigmoid_pair(simd, load(simd, self.receptance, at));
            put(simd, self.y, at, simd.mul_f32s(gate, value));
            for (part, after) in [&mut *mean, &mut *log_weight, &mut *lost].into_iter().zip(after) {
                put(simd, part, at, after);
            }
        }
    }
}

/// Mean and log-weight of a block, and what rounding the log-weight has lost.
type Memory = [[f32; BLOCK]; 3];

/// A block that has read nothing.
const NOTHING: Memory = [[0.0; BLOCK], [EMPTY; BLOCK], [0.0; BLOCK]];

/// A block with this mean and log-weight.
fn block(sources: [&[f32]; 2]) -> Memory {
    let mut block = NOTHING;
    for (block, source) in block.iter_mut().zip(sources) {
        block[..source.len()].copy_from_slice(source);
    }
    block
}

struct Forward<'a> {
    problem: &'a Problem<'a>,
    task: Task,
    y: SharedOut,
    last: [SharedOut; 2],
    kept: SharedOut,
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { problem, task, .. } = &self;
        let (width, seq_len, e) = (task.channels.len(), problem.shape.seq_len, problem.shape.width);
        let state = problem.state(task);
        let mut memory = problem.start.memory.map_or(NOTHING, |memory| block(memory.map(|x| &x[state..][..width])));
        for t in 0..seq_len {
            if t % CHUNK == 0 {
                let kept = problem.kept(task, t / CHUNK);
                for (i, memory) in memory.iter().take(2).enumerate() {
                    // SAFETY: what is kept of a chunk has channels of every row, and this task has its own.
                    unsafe { self.kept.slice(kept + i * e, width) }.write_copy_of_slice(&memory[..width]);
                }
            }
            // SAFETY: a task is a row and some channels, whose outputs no other task writes.
            let y = unsafe { self.y.slice(problem.step(task, t), width) };
            if t >= problem.lengths[task.b] {
                y.fill(MaybeUninit::new(0.0));
                continue;
            }
            if problem.is_reset(task.b, t) {
                memory = NOTHING;
            }
            let r = problem.at(task, problem.inputs.receptance, t);
            problem.advance(simd, task, t, &mut memory, |at, value| {
                let [gate, _] = sigmoid_pair(simd, load(simd, r, at));
                store(simd, y, at, simd.mul_f32s(gate, value));
            });
        }
        for (last, memory) in self.last.iter().zip(&memory) {
            // SAFETY: a task is a row and some channels, whose memory no other task writes.
            unsafe { last.slice(state, width) }.write_copy_of_slice(&memory[..width]);
        }
    }
}

struct Backward<'a> {
    problem: &'a Problem<'a>,
    task: Task,
    upstream: Upstream<'a>,
    d_inputs: [SharedOut; 3],
    d_memory: [SharedOut; 2],
    sums: SharedOut,
}

impl WithSimd for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { problem, task, upstream, .. } = &self;
        let (width, seq_len, e) = (task.channels.len(), problem.shape.seq_len, problem.shape.width);
        let (state, length) = (problem.state(task), problem.lengths[task.b]);
        let zeros = [0.0; BLOCK];
        let [d_mean, d_log_weight, _] = block(upstream.d_last.map(|d| d.map_or(&zeros[..width], |d| &d[state..][..width])));
        let mut gradient = [d_mean, d_log_weight];
        // Sums of decay (as those of w) and bonus: of a chunk in f32, of the row in f64.
        let (mut sums, mut totals) = ([0.0; 2 * BLOCK], [0.0; 2 * BLOCK]);
        let mut before = vec![NOTHING; CHUNK.min(seq_len)];
        for chunk in (0..seq_len.div_ceil(CHUNK)).rev() {
            let first = chunk * CHUNK;
            let end = (first + CHUNK).min(seq_len);
            for t in length.clamp(first, end)..end {
                for d in &self.d_inputs {
                    // SAFETY: padding belongs to the row and channels of one task, and no other task writes there.
                    unsafe { d.slice(problem.step(task, t), width) }.fill(MaybeUninit::new(0.0));
                }
            }
            let kept = problem.kept(task, chunk);
            let mut memory = block([&upstream.kept[kept..][..width], &upstream.kept[kept + e..][..width]]);
            let steps = first..length.clamp(first, end);
            for t in steps.clone() {
                if problem.is_reset(task.b, t) {
                    memory = NOTHING;
                }
                before[t - first] = memory;
                problem.advance(simd, task, t, &mut memory, |_, _| ());
            }
            for t in steps.rev() {
                self.step(simd, t, &before[t - first], &mut gradient, &mut sums);
                if problem.is_reset(task.b, t) {
                    gradient = [zeros; 2];
                }
            }
            flush(&mut sums, &mut totals);
        }
        // SAFETY: every row has sums of its own, in which a task has its channels.
        let [d_decay, d_bonus] = unsafe { [0, e].map(|part| self.sums.slice(task.b * 2 * e + part + task.channels.start, width)) };
        for i in 0..width {
            d_decay[i].write((totals[i] * f64::from(problem.fading[task.channels.start + i])) as f32);
            d_bonus[i].write(totals[BLOCK + i] as f32);
        }
        for (d, gradient) in self.d_memory.iter().zip(&gradient) {
            // SAFETY: a task is a row and some channels, whose memory no other task writes.
            unsafe { d.slice(state, width) }.write_copy_of_slice(&gradient[..width]);
        }
    }
}

impl Backward<'_> {
    /// One step back; `gradient` becomes that of the memory before it.
    #[inline(always)]
    fn step<S: Simd>(&self, simd: S, t: usize, before: &Memory, gradient: &mut [[f32; BLOCK]; 2], sums: &mut [f32; 2 * BLOCK]) {
        let Self { problem, task, upstream, .. } = self;
        let Inputs { receptance, key, value, bonus, .. } = problem.inputs;
        let (r, k, v) = (problem.at(task, receptance, t), problem.at(task, key, t), problem.at(task, value, t));
        let (u, w) = (&bonus[task.channels.clone()], &problem.fading[task.channels.clone()]);
        let d_y = upstream.d_y.map(|d| problem.at(task, d, t));
        let first = problem.step(task, t);
        // SAFETY: tasks have rows or channels of their own.
        let [d_r, d_k, d_v] = unsafe { [0, 1, 2].map(|i: usize| self.d_inputs[i].slice(first, r.len())) };
        let ([mean, log_weight, _], [d_mean, d_log_weight]) = (before, gradient);
        let (d_w, d_u) = sums.split_at_mut(BLOCK);
        let zero = simd.splat_f32s(0.0);
        for at in (0..r.len()).step_by(S::F32_LANES) {
            let (v, a) = (load(simd, v, at), load(simd, mean, at));
            let ahead = simd.sub_f32s(load(simd, k, at), load(simd, log_weight, at));
            let distance = simd.sub_f32s(v, a);
            let [s, not_s] = sigmoid_pair(simd, simd.add_f32s(load(simd, u, at), ahead));
            let [z, not_z] = sigmoid_pair(simd, simd.sub_f32s(ahead, load(simd, w, at)));
            let [gate, not_gate] = sigmoid_pair(simd, load(simd, r, at));
            let d_gated = d_y.map_or(zero, |d| load(simd, d, at));
            let y = mul_add(simd, s, distance, a);
            store(simd, d_r, at, simd.mul_f32s(simd.mul_f32s(d_gated, y), simd.mul_f32s(gate, not_gate)));
            let d_y = simd.mul_f32s(d_gated, gate);
            let (d_a, d_l) = (load(simd, d_mean, at), load(simd, d_log_weight, at));
            let d_s = simd.mul_f32s(simd.mul_f32s(s, not_s), simd.mul_f32s(distance, d_y));
            let d_z = simd.mul_f32s(simd.mul_f32s(z, not_z), simd.mul_f32s(distance, d_a));
            let both = simd.add_f32s(d_s, d_z);
            store(simd, d_k, at, mul_add(simd, z, d_l, both));
            store(simd, d_v, at, mul_add(simd, s, d_y, simd.mul_f32s(z, d_a)));
            let faded = simd.mul_f32s(not_z, d_l);
            let d_w_new = simd.add_f32s(load(simd, d_w, at), simd.sub_f32s(faded, d_z));
            put(simd, d_w, at, d_w_new);
            let d_u_new = simd.add_f32s(load(simd, d_u, at), d_s);
            put(simd, d_u, at, d_u_new);
            put(simd, d_mean, at, mul_add(simd, not_s, d_y, simd.mul_f32s(not_z, d_a)));
            put(simd, d_log_weight, at, simd.sub_f32s(faded, both));
        }
    }
}
