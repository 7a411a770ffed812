//! The loops over the rows and steps of a task. For the formulas see [`super`].

use super::walk::{Pair, Sequence, add_parts, twice_real, walk};
use super::{A, B, C, F, G, Inputs, RANK_ONE};
use crate::grid::SharedOut;
use crate::segments::{CONTINUE, RESET};
use crate::simd::{self, Simd, WithSimd, mul_add, neg};
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// Steps whose states backward holds at a time.
const BLOCK: usize = 32;

/// All rows and channels of a task.
pub(super) struct Forward<'a, const P: usize> {
    pub inputs: Inputs<'a>,
    pub rows: Range<usize>,
    pub channels: Range<usize>,
    pub y: SharedOut,
    pub x_last: SharedOut,
}

/// The same backwards; `partial` takes the task's sums from `first_sum` on.
pub(super) struct Backward<'a, const P: usize> {
    pub inputs: Inputs<'a>,
    pub rows: Range<usize>,
    pub channels: Range<usize>,
    pub d_y: Option<&'a [f32]>,
    pub d_x_last: Option<&'a [f32]>,
    pub d_u: SharedOut,
    pub d_x0: SharedOut,
    pub partial: SharedOut,
    pub first_sum: usize,
}

/// As many channels as a vector holds.
struct Lanes<'a, S: Simd, const P: usize> {
    simd: S,
    inputs: &'a Inputs<'a>,
    channels: Range<usize>,
    parameters: Vec<[S::f32s; P]>,
    skip: S::f32s,
}

impl<'a, S: Simd, const P: usize> Lanes<'a, S, P> {
    #[inline(always)]
    fn new(simd: S, inputs: &'a Inputs<'a>, channels: Range<usize>) -> Self {
        let (n, zero) = (inputs.form.states, simd.splat_f32s(0.0));
        let mut lanes = Self { simd, inputs, channels, parameters: vec![[zero; P]; n], skip: zero };
        for i in 0..n {
            for plane in 0..P {
                lanes.parameters[i][plane] = lanes.load(inputs.parameters, plane * n + i);
            }
        }
        lanes.skip = lanes.load(inputs.skip, 0);
        lanes
    }

    #[inline(always)]
    fn zeros(&self) -> Vec<Pair<S>> {
        vec![[self.simd.splat_f32s(0.0); 2]; self.inputs.form.states]
    }

    /// The channels of row `row` of a matrix `[·, D]`.
    #[inline(always)]
    fn load(&self, matrix: &[f32], row: usize) -> S::f32s {
        let at = row * self.inputs.shape.width;
        simd::load(self.simd, &matrix[at + self.channels.start..at + self.channels.end], 0)
    }

    /// # Safety
    /// Nothing else may use these channels of row `row` of the matrix `[·, D]` that begins at `first`.
    #[inline(always)]
    unsafe fn store(&self, matrix: &SharedOut, first: usize, row: usize, value: S::f32s) {
        let at = first + row * self.inputs.shape.width + self.channels.start;
        // SAFETY: the caller's promise.
        simd::store(self.simd, unsafe { matrix.slice(at, self.channels.len()) }, 0, value);
    }

    /// The states of row `b` in a tensor `[B, 2N, D]`.
    #[inline(always)]
    fn load_states(&self, source: Option<&[f32]>, b: usize, states: &mut [Pair<S>]) {
        let n = states.len();
        for (i, [re, im]) in states.iter_mut().enumerate() {
            *re = source.map_or(self.simd.splat_f32s(0.0), |source| self.load(source, (2 * b) * n + i));
            *im = source.map_or(self.simd.splat_f32s(0.0), |source| self.load(source, (2 * b + 1) * n + i));
        }
    }

    /// # Safety
    /// As for [`store`](Self::store), of all states of row `b`.
    #[inline(always)]
    unsafe fn store_states(&self, target: &SharedOut, b: usize, states: &[Pair<S>]) {
        let n = states.len();
        for (i, &[re, im]) in states.iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe {
                self.store(target, 0, 2 * b * n + i, re);
                self.store(target, 0, (2 * b + 1) * n + i, im);
            }
        }
    }

    #[inline(always)]
    fn code(&self, b: usize, t: usize) -> i32 {
        self.inputs.segments.row(b, self.inputs.shape.seq_len).map_or(CONTINUE, |row| row[t])
    }

    #[inline(always)]
    fn u(&self, b: usize, t: usize) -> S::f32s {
        self.load(self.inputs.u, b * self.inputs.shape.seq_len + t)
    }

    /// v · x for the parameter that begins at plane `plane`.
    #[inline(always)]
    fn dot(&self, plane: usize, x: &[Pair<S>]) -> S::f32s {
        let mut sums = [self.simd.splat_f32s(0.0); 2];
        for (p, &x) in self.parameters.iter().zip(x) {
            sums = add_parts(self.simd, [p[plane], p[plane + 1]], x, sums);
        }
        twice_real(self.simd, sums)
    }

    /// Whether the state is reset before step `t`, and the steps from there to the next reset or to `end`.
    #[inline(always)]
    fn run(&self, b: usize, t: usize, end: usize) -> (bool, Range<usize>) {
        let next = (t + 1..end).find(|&t| self.code(b, t) == RESET).unwrap_or(end);
        (self.code(b, t) == RESET, t..next)
    }

    /// Walks `row` through `steps`, with resets before some of them.
    #[inline(always)]
    fn walk(&self, steps: Range<usize>, row: &mut Row<'_, S, P, impl Take<S>>) {
        // The loops over the states rely on this.
        assert!([row.x.len(), self.parameters.len()] == [self.inputs.form.states; 2], "as many states as the form says");
        let mut t = steps.start;
        while t < steps.end {
            let (reset, run) = self.run(row.b, t, steps.end);
            if reset {
                row.x.fill([self.simd.splat_f32s(0.0); 2]);
            }
            t = run.end;
            walk(self.simd, self.inputs.form, run, row);
        }
    }
}

/// One row as it walks.
struct Row<'a, S: Simd, const P: usize, T> {
    lanes: &'a Lanes<'a, S, P>,
    b: usize,
    x: &'a mut [Pair<S>],
    take: T,
}

/// What is wanted of a row besides its last state: by default, nothing.
trait Take<S: Simd> {
    const WANTS_Y: bool = false;

    #[inline(always)]
    fn set_y(&mut self, _t: usize, _y: S::f32s) {}

    #[inline(always)]
    fn passed(&mut self, _t: usize, _n: usize, _x: Pair<S>) {}
}

impl<S: Simd> Take<S> for () {}

impl<S: Simd, const P: usize, T: Take<S>> Sequence<S> for Row<'_, S, P, T> {
    const WANTS_Y: bool = T::WANTS_Y;

    #[inline(always)]
    fn parameter(&self, plane: usize, n: usize) -> S::f32s {
        self.lanes.parameters[n][plane]
    }

    #[inline(always)]
    fn skip(&self) -> S::f32s {
        self.lanes.skip
    }

    #[inline(always)]
    fn u(&self, t: usize) -> S::f32s {
        self.lanes.u(self.b, t)
    }

    #[inline(always)]
    fn set_y(&mut self, t: usize, y: S::f32s) {
        self.take.set_y(t, y);
    }

    #[inline(always)]
    fn x(&self, n: usize) -> Pair<S> {
        self.x[n]
    }

    #[inline(always)]
    fn set_x(&mut self, n: usize, x: Pair<S>) {
        self.x[n] = x;
    }

    #[inline(always)]
    fn passed(&mut self, t: usize, n: usize, x: Pair<S>) {
        self.take.passed(t, n, x);
    }
}

/// y of every step.
struct Outputs<'a, S: Simd, const P: usize> {
    lanes: &'a Lanes<'a, S, P>,
    b: usize,
    y: SharedOut,
}

impl<S: Simd, const P: usize> Take<S> for Outputs<'_, S, P> {
    const WANTS_Y: bool = true;

    #[inline(always)]
    fn set_y(&mut self, t: usize, y: S::f32s) {
        // SAFETY: tasks have rows and channels of their own.
        unsafe { self.lanes.store(&self.y, 0, self.b * self.lanes.inputs.shape.seq_len + t, y) };
    }
}

/// The states after every step from `first` on, `[steps, N]`.
struct States<'a, S: Simd> {
    first: usize,
    states: &'a mut [Pair<S>],
    n: usize,
}

impl<S: Simd> Take<S> for States<'_, S> {
    #[inline(always)]
    fn passed(&mut self, t: usize, n: usize, x: Pair<S>) {
        self.states[(t - self.first) * self.n + n] = x;
    }
}

impl<const P: usize> WithSimd for Forward<'_, P> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let seq_len = self.inputs.shape.seq_len;
        for first in self.channels.clone().step_by(S::F32_LANES) {
            let lanes = Lanes::<S, P>::new(simd, &self.inputs, first..(first + S::F32_LANES).min(self.channels.end));
            let mut x = lanes.zeros();
            for b in self.rows.clone() {
                lanes.load_states(self.inputs.x0, b, &mut x);
                let length = self.inputs.segments.length(b, seq_len);
                let take = Outputs { lanes: &lanes, b, y: self.y };
                lanes.walk(0..length, &mut Row { lanes: &lanes, b, x: &mut x, take });
                for t in length..seq_len {
                    // SAFETY: tasks have rows and channels of their own.
                    unsafe { lanes.store(&self.y, 0, b * seq_len + t, simd.splat_f32s(0.0)) };
                }
                // SAFETY: a task has rows and channels of its own, and so their last states.
                unsafe { lanes.store_states(&self.x_last, b, &x) };
            }
        }
    }
}

impl<const P: usize> WithSimd for Backward<'_, P> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (n, planes) = (self.inputs.form.states, self.inputs.form.planes);
        for first in self.channels.clone().step_by(S::F32_LANES) {
            let lanes = Lanes::<S, P>::new(simd, &self.inputs, first..(first + S::F32_LANES).min(self.channels.end));
            let mut totals = Sums { parameters: vec![[simd.splat_f32s(0.0); P]; n], skip: simd.splat_f32s(0.0) };
            for b in self.rows.clone() {
                self.row(&lanes, b, &mut totals);
            }
            for (i, totals) in totals.parameters.iter().enumerate() {
                for (plane, &total) in totals.iter().enumerate() {
                    // SAFETY: tasks have rows and channels of their own, and so their own sums.
                    unsafe { lanes.store(&self.partial, self.first_sum, plane * n + i, total) };
                }
            }
            // SAFETY: the sums of these rows are this task's alone, and channels are split among tasks.
            unsafe { lanes.store(&self.partial, self.first_sum, planes * n, totals.skip) };
        }
    }
}

/// Gradients of the parameters of a vector's channels: summed over a block of steps, then over blocks, which keeps more digits.
struct Sums<S: Simd, const P: usize> {
    parameters: Vec<[S::f32s; P]>,
    skip: S::f32s,
}

impl<S: Simd, const P: usize> Sums<S, P> {
    /// Adds everything to `totals` and starts again from 0.
    #[inline(always)]
    fn flush(&mut self, simd: S, totals: &mut Self) {
        let zero = simd.splat_f32s(0.0);
        for (sums, totals) in self.parameters.iter_mut().zip(&mut totals.parameters) {
            for (sum, total) in sums.iter_mut().zip(totals) {
                *total = simd.add_f32s(*total, *sum);
                *sum = zero;
            }
        }
        totals.skip = simd.add_f32s(totals.skip, self.skip);
        self.skip = zero;
    }
}

impl<const P: usize> Backward<'_, P> {
    #[inline(always)]
    fn row<S: Simd>(&self, lanes: &Lanes<'_, S, P>, b: usize, totals: &mut Sums<S, P>) {
        let (simd, n, seq_len) = (lanes.simd, self.inputs.form.states, self.inputs.shape.seq_len);
        let zero = simd.splat_f32s(0.0);
        let mut sums = Sums { parameters: vec![[zero; P]; n], skip: zero };
        let length = self.inputs.segments.length(b, seq_len);
        for t in length..seq_len {
            // SAFETY: tasks have rows and channels of their own.
            unsafe { lanes.store(&self.d_u, 0, b * seq_len + t, zero) };
        }
        // States before every step of a block, and after its last.
        let mut states = vec![[zero; 2]; (BLOCK + 1) * n];
        let blocks = length.div_ceil(BLOCK);
        let mut borders = vec![[zero; 2]; blocks * n];
        let (zeros, mut x) = (lanes.zeros(), lanes.zeros());
        lanes.load_states(self.inputs.x0, b, &mut x);
        for block in 0..blocks {
            borders[block * n..][..n].copy_from_slice(&x);
            lanes.walk(block * BLOCK..((block + 1) * BLOCK).min(length), &mut Row { lanes, b, x: &mut x, take: () });
        }
        let mut gamma = lanes.zeros();
        lanes.load_states(self.d_x_last, b, &mut gamma);
        let mut steps = [Step { u: zero, d_y: zero, d_u: zero }; BLOCK];
        for block in (0..blocks).rev() {
            let (first, end) = (block * BLOCK, ((block + 1) * BLOCK).min(length));
            let border = &borders[block * n..][..n];
            x.copy_from_slice(border);
            states[..n].copy_from_slice(border);
            lanes.walk(first..end, &mut Row { lanes, b, x: &mut x, take: States { first, states: &mut states[n..], n } });
            for (step, t) in steps.iter_mut().zip(first..end) {
                let d_y = self.d_y.map_or(zero, |d_y| lanes.load(d_y, b * seq_len + t));
                *step = Step { u: lanes.u(b, t), d_y, d_u: simd.mul_f32s(d_y, lanes.skip) };
                sums.skip = mul_add(simd, d_y, step.u, sums.skip);
            }
            let mut end = end;
            while end > first {
                let start = (first..end).rev().find(|&t| lanes.code(b, t) == RESET).unwrap_or(first);
                let reset = lanes.code(b, start) == RESET;
                let (before, after) = states[(start - first) * n..].split_at(n);
                let before = if reset { &zeros[..] } else { before };
                let steps = &mut steps[start - first..end - first];
                match P {
                    RANK_ONE => lanes.back_by_steps([before, after], steps, &mut gamma, &mut sums),
                    _ => lanes.back_by_states([before, after], steps, &mut gamma, &mut sums),
                }
                if reset {
                    gamma.copy_from_slice(&zeros);
                }
                end = start;
            }
            for (step, t) in steps.iter().zip(first..) {
                if t < length {
                    // SAFETY: tasks have rows and channels of their own.
                    unsafe { lanes.store(&self.d_u, 0, b * seq_len + t, step.d_u) };
                }
            }
            sums.flush(simd, totals);
        }
        // SAFETY: a task has rows and channels of its own, and so their first states.
        unsafe { lanes.store_states(&self.d_x0, b, &gamma) };
    }
}

/// A step on the way back.
#[derive(Clone, Copy)]
struct Step<S: Simd> {
    u: S::f32s,
    d_y: S::f32s,
    d_u: S::f32s,
}

impl<S: Simd, const P: usize> Lanes<'_, S, P> {
    /// Goes back through `steps`, one state after the other, given the states before the first step and after each; without a rank-one part.
    #[inline(always)]
    fn back_by_states(&self, [first, states]: [&[Pair<S>]; 2], steps: &mut [Step<S>], gamma: &mut [Pair<S>], sums: &mut Sums<S, P>) {
        let (n, zero) = (gamma.len(), self.simd.splat_f32s(0.0));
        for (i, (gamma, sums)) in gamma.iter_mut().zip(&mut sums.parameters).enumerate() {
            let (mut g, mut sum) = (*gamma, *sums);
            for (t, step) in steps.iter_mut().enumerate().rev() {
                let before = if t == 0 { first[i] } else { states[(t - 1) * n + i] };
                self.back(&self.parameters[i], [before, states[t * n + i]], zero, step, &mut g, &mut sum);
            }
            (*gamma, *sums) = (g, sum);
        }
    }

    /// Goes back through `steps` with a rank-one part, for which every step needs all states.
    #[inline(always)]
    fn back_by_steps(&self, [first, states]: [&[Pair<S>]; 2], steps: &mut [Step<S>], gamma: &mut [Pair<S>], sums: &mut Sums<S, P>) {
        let (simd, n, zero) = (self.simd, gamma.len(), self.simd.splat_f32s(0.0));
        for (t, at) in steps.iter_mut().enumerate().rev() {
            // A copy, which stays in registers.
            let mut step = *at;
            let before = if t == 0 { first } else { &states[(t - 1) * n..][..n] };
            let after = &states[t * n..][..n];
            let feedback = self.dot(F, before);
            let mut back = [zero; 2];
            let both = before.iter().zip(after).zip(gamma.iter_mut());
            for ((p, sum), ((&before, &after), gamma)) in self.parameters.iter().zip(&mut sums.parameters).zip(both) {
                let [g_re, g_im] = self.back(p, [before, after], feedback, &mut step, gamma, sum);
                back = [less(simd, p[G], g_re, back[0]), less(simd, p[G + 1], g_im, back[1])];
            }
            *at = step;
            let back = simd.add_f32s(back[0], back[1]);
            let twice = simd.add_f32s(back, back);
            for (((p, sum), &[re, im]), gamma) in self.parameters.iter().zip(&mut sums.parameters).zip(before).zip(&mut *gamma) {
                sum[F] = mul_add(simd, twice, re, sum[F]);
                sum[F + 1] = less(simd, twice, im, sum[F + 1]);
                *gamma = [mul_add(simd, twice, p[F], gamma[0]), less(simd, twice, p[F + 1], gamma[1])];
            }
        }
    }

    /// Goes back through one step of one state, given the state before and after it; returns γ once y has added to it.
    #[inline(always)]
    fn back(
        &self,
        p: &[S::f32s; P],
        [[before_re, before_im], [re, im]]: [Pair<S>; 2],
        feedback: S::f32s,
        step: &mut Step<S>,
        gamma: &mut Pair<S>,
        sum: &mut [S::f32s; P],
    ) -> Pair<S> {
        let simd = self.simd;
        let twice = simd.add_f32s(step.d_y, step.d_y);
        sum[C] = mul_add(simd, twice, re, sum[C]);
        sum[C + 1] = less(simd, twice, im, sum[C + 1]);
        let (g_re, g_im) = (mul_add(simd, twice, p[C], gamma[0]), less(simd, twice, p[C + 1], gamma[1]));
        step.d_u = mul_add(simd, p[B], g_re, mul_add(simd, p[B + 1], g_im, step.d_u));
        sum[B] = mul_add(simd, step.u, g_re, sum[B]);
        sum[B + 1] = mul_add(simd, step.u, g_im, sum[B + 1]);
        sum[A] = mul_add(simd, before_re, g_re, mul_add(simd, before_im, g_im, sum[A]));
        sum[A + 1] = less(simd, before_im, g_re, mul_add(simd, before_re, g_im, sum[A + 1]));
        if P == RANK_ONE {
            sum[G] = less(simd, feedback, g_re, sum[G]);
            sum[G + 1] = less(simd, feedback, g_im, sum[G + 1]);
        }
        *gamma = [mul_add(simd, p[A], g_re, simd.mul_f32s(p[A + 1], g_im)), less(simd, p[A + 1], g_re, simd.mul_f32s(p[A], g_im))];
        [g_re, g_im]
    }
}

/// sum − a b.
#[inline(always)]
fn less<S: Simd>(simd: S, a: S::f32s, b: S::f32s, sum: S::f32s) -> S::f32s {
    mul_add(simd, neg(simd, a), b, sum)
}
