//! The loops over the rows and steps of a task. The formulas stand in [`super`].

use super::{Inputs, RANK_ONE};
use crate::grid::SharedOut;
use crate::segments::{CONTINUE, PADDING, RESET};
use crate::simd::{self, Simd, WithSimd, mul_add, neg};
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// Steps whose states backward holds at a time.
const BLOCK: usize = 32;

const A: usize = 0;
const B: usize = 2;
const C: usize = 4;
const G: usize = 6;
const F: usize = 8;

/// Real and imaginary part.
type Pair<S> = [<S as Simd>::f32s; 2];

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
    /// Nobody else may use these channels of row `row` of the matrix `[·, D]` that begins at `first`.
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
        let simd = self.simd;
        let (mut sum_re, mut sum_im) = (simd.splat_f32s(0.0), simd.splat_f32s(0.0));
        for (p, &[re, im]) in self.parameters.iter().zip(x) {
            sum_re = mul_add(simd, p[plane], re, sum_re);
            sum_im = mul_add(simd, p[plane + 1], im, sum_im);
        }
        let sum = simd.sub_f32s(sum_re, sum_im);
        simd.add_f32s(sum, sum)
    }

    /// x_t from x_{t−1}; y_t without the skip.
    #[inline(always)]
    fn advance(&self, u: S::f32s, before: &[Pair<S>], after: &mut [Pair<S>]) -> S::f32s {
        let simd = self.simd;
        let back = if P == RANK_ONE { neg(simd, self.dot(F, before)) } else { u };
        let (mut sum_re, mut sum_im) = (simd.splat_f32s(0.0), simd.splat_f32s(0.0));
        for ((p, &[re, im]), after) in self.parameters.iter().zip(before).zip(after) {
            let mut next_re = mul_add(simd, p[A], re, simd.mul_f32s(p[B], u));
            let mut next_im = mul_add(simd, p[A], im, simd.mul_f32s(p[B + 1], u));
            next_re = mul_add(simd, neg(simd, p[A + 1]), im, next_re);
            next_im = mul_add(simd, p[A + 1], re, next_im);
            if P == RANK_ONE {
                next_re = mul_add(simd, p[G], back, next_re);
                next_im = mul_add(simd, p[G + 1], back, next_im);
            }
            *after = [next_re, next_im];
            sum_re = mul_add(simd, p[C], next_re, sum_re);
            sum_im = mul_add(simd, p[C + 1], next_im, sum_im);
        }
        let sum = simd.sub_f32s(sum_re, sum_im);
        simd.add_f32s(sum, sum)
    }
}

impl<const P: usize> WithSimd for Forward<'_, P> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let seq_len = self.inputs.shape.seq_len;
        for first in self.channels.clone().step_by(S::F32_LANES) {
            let lanes = Lanes::<S, P>::new(simd, &self.inputs, first..(first + S::F32_LANES).min(self.channels.end));
            let (mut x, mut next) = (lanes.zeros(), lanes.zeros());
            for b in self.rows.clone() {
                lanes.load_states(self.inputs.x0, b, &mut x);
                for t in 0..seq_len {
                    let mut y = simd.splat_f32s(0.0);
                    let code = lanes.code(b, t);
                    if code != PADDING {
                        if code == RESET {
                            x.fill([simd.splat_f32s(0.0); 2]);
                        }
                        let u = lanes.u(b, t);
                        y = mul_add(simd, lanes.skip, u, lanes.advance(u, &x, &mut next));
                        core::mem::swap(&mut x, &mut next);
                    }
                    // SAFETY: tasks have rows and channels of their own.
                    unsafe { lanes.store(&self.y, 0, b * seq_len + t, y) };
                }
                // SAFETY: a task has rows and channels of its own, and so the last states of them.
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
                    // SAFETY: tasks have rows and channels of their own, and so sums.
                    unsafe { lanes.store(&self.partial, self.first_sum, plane * n + i, total) };
                }
            }
            // SAFETY: the sums of these rows are this task's alone, and channels are cut among tasks.
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
    /// Adds everything to `totals` and begins anew.
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
        let zeros = lanes.zeros();
        let mut sums = Sums { parameters: vec![[simd.splat_f32s(0.0); P]; n], skip: simd.splat_f32s(0.0) };
        let length = self.inputs.segments.length(b, seq_len);
        for t in length..seq_len {
            // SAFETY: tasks have rows and channels of their own.
            unsafe { lanes.store(&self.d_u, 0, b * seq_len + t, zeros.first().map_or(simd.splat_f32s(0.0), |zero| zero[0])) };
        }
        // States before every step of a block, and after its last.
        let mut states = vec![[simd.splat_f32s(0.0); 2]; (BLOCK + 1) * n];
        let mut borders = vec![[simd.splat_f32s(0.0); 2]; length.div_ceil(BLOCK) * n];
        lanes.load_states(self.inputs.x0, b, &mut states[..n]);
        for (block, border) in borders.chunks_exact_mut(n.max(1)).enumerate() {
            border.copy_from_slice(&states[..n]);
            let steps = block * BLOCK..((block + 1) * BLOCK).min(length);
            let last = steps.len() * n;
            self.states(lanes, b, steps, &zeros, &mut states);
            states.copy_within(last..last + n, 0);
        }
        let mut gamma = lanes.zeros();
        lanes.load_states(self.d_x_last, b, &mut gamma);
        for (block, border) in borders.chunks_exact(n.max(1)).enumerate().rev() {
            let steps = block * BLOCK..((block + 1) * BLOCK).min(length);
            states[..n].copy_from_slice(border);
            self.states(lanes, b, steps.clone(), &zeros, &mut states);
            for (i, t) in steps.enumerate().rev() {
                let reset = lanes.code(b, t) == RESET;
                let before = if reset { &zeros[..] } else { &states[i * n..][..n] };
                let d_y = self.d_y.map_or(simd.splat_f32s(0.0), |d_y| lanes.load(d_y, b * seq_len + t));
                let d_u = self.step(lanes, [lanes.u(b, t), d_y], before, &states[(i + 1) * n..][..n], &mut gamma, &mut sums);
                // SAFETY: tasks have rows and channels of their own.
                unsafe { lanes.store(&self.d_u, 0, b * seq_len + t, d_u) };
                if reset {
                    gamma.copy_from_slice(&zeros);
                }
            }
            sums.flush(simd, totals);
        }
        // SAFETY: a task has rows and channels of its own, and so the first states of them.
        unsafe { lanes.store_states(&self.d_x0, b, &gamma) };
    }

    /// The states after each of `steps`, behind the first of `states`.
    #[inline(always)]
    fn states<S: Simd>(&self, lanes: &Lanes<'_, S, P>, b: usize, steps: Range<usize>, zeros: &[Pair<S>], states: &mut [Pair<S>]) {
        let n = self.inputs.form.states;
        for (i, t) in steps.enumerate() {
            let (before, after) = states.split_at_mut((i + 1) * n);
            let before = if lanes.code(b, t) == RESET { zeros } else { &before[i * n..] };
            lanes.advance(lanes.u(b, t), before, &mut after[..n]);
        }
    }

    /// One step back; du.
    #[inline(always)]
    fn step<S: Simd>(
        &self,
        lanes: &Lanes<'_, S, P>,
        [u, d_y]: [S::f32s; 2],
        before: &[Pair<S>],
        after: &[Pair<S>],
        gamma: &mut [Pair<S>],
        sums: &mut Sums<S, P>,
    ) -> S::f32s {
        let simd = lanes.simd;
        let add = |a: S::f32s, b: S::f32s, sum: S::f32s| mul_add(simd, a, b, sum);
        let less = |a: S::f32s, b: S::f32s, sum: S::f32s| mul_add(simd, neg(simd, a), b, sum);
        let twice = simd.add_f32s(d_y, d_y);
        let zero = simd.splat_f32s(0.0);
        let feedback = if P == RANK_ONE { lanes.dot(F, before) } else { zero };
        let (mut d_u_re, mut d_u_im, mut back_re, mut back_im) = (zero, zero, zero, zero);
        sums.skip = add(d_y, u, sums.skip);
        let states = before.iter().zip(after).zip(gamma.iter_mut());
        for ((p, sum), ((&[before_re, before_im], &[re, im]), gamma)) in lanes.parameters.iter().zip(&mut sums.parameters).zip(states) {
            sum[C] = add(twice, re, sum[C]);
            sum[C + 1] = less(twice, im, sum[C + 1]);
            let (g_re, g_im) = (add(twice, p[C], gamma[0]), less(twice, p[C + 1], gamma[1]));
            d_u_re = add(p[B], g_re, d_u_re);
            d_u_im = add(p[B + 1], g_im, d_u_im);
            sum[B] = add(u, g_re, sum[B]);
            sum[B + 1] = add(u, g_im, sum[B + 1]);
            sum[A] = add(before_re, g_re, add(before_im, g_im, sum[A]));
            sum[A + 1] = less(before_im, g_re, add(before_re, g_im, sum[A + 1]));
            if P == RANK_ONE {
                back_re = less(p[G], g_re, back_re);
                back_im = less(p[G + 1], g_im, back_im);
                sum[G] = less(feedback, g_re, sum[G]);
                sum[G + 1] = less(feedback, g_im, sum[G + 1]);
            }
            gamma[0] = add(p[A], g_re, simd.mul_f32s(p[A + 1], g_im));
            gamma[1] = less(p[A + 1], g_re, simd.mul_f32s(p[A], g_im));
        }
        if P == RANK_ONE {
            let back = simd.add_f32s(back_re, back_im);
            let twice = simd.add_f32s(back, back);
            for (((p, sum), &[re, im]), gamma) in lanes.parameters.iter().zip(&mut sums.parameters).zip(before).zip(gamma) {
                sum[F] = add(twice, re, sum[F]);
                sum[F + 1] = less(twice, im, sum[F + 1]);
                *gamma = [add(twice, p[F], gamma[0]), less(twice, p[F + 1], gamma[1])];
            }
        }
        add(d_y, lanes.skip, simd.add_f32s(d_u_re, d_u_im))
    }
}
