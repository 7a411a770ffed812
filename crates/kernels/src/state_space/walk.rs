//! The steps of one sequence forwards, of as many channels as a vector has lanes. For the formulas see [`super`].
//!
//! Without a rank-one part the states of a channel meet only in the sum of y. So a few of them walk through a block of steps, then the next ones: they
//! and their parameters stay in registers, and only the block's u and y are in memory in between. With a rank-one part every step needs all states,
//! and for a single step none of this pays off.

use super::{A, B, C, F, Form, G, RANK_ONE};
use crate::simd::{Simd, mul_add, neg};
use core::ops::Range;

/// Real and imaginary part.
pub type Pair<S> = [<S as Simd>::f32s; 2];

/// States that walk together.
const TOGETHER: usize = 2;
/// Steps of a block.
const BLOCK: usize = 32;

/// Where the numbers of a sequence are.
pub trait Sequence<S: Simd> {
    /// Whether y is wanted.
    const WANTS_Y: bool = true;

    /// State `n` of plane `plane` of the parameters.
    fn parameter(&self, plane: usize, n: usize) -> S::f32s;

    /// The factor of u in y.
    fn skip(&self) -> S::f32s;

    /// u of step `t`.
    fn u(&self, t: usize) -> S::f32s;

    /// Sets y of step `t`, if it is wanted.
    fn set_y(&mut self, t: usize, y: S::f32s);

    /// State `n`.
    fn x(&self, n: usize) -> Pair<S>;

    /// Sets state `n`.
    fn set_x(&mut self, n: usize, x: Pair<S>);

    /// Called with state `n` after step `t`.
    #[inline(always)]
    fn passed(&mut self, _t: usize, _n: usize, _x: Pair<S>) {}
}

/// Walks through `steps`, from the sequence's present states to those after the last step.
#[inline(always)]
pub fn walk<S: Simd, Q: Sequence<S>>(simd: S, form: Form, steps: Range<usize>, sequence: &mut Q) {
    let n = form.states;
    if form.planes == RANK_ONE || steps.len() == 1 || n == 0 {
        for t in steps {
            step(simd, form, t, sequence);
        }
        return;
    }
    let skip = sequence.skip();
    for start in steps.clone().step_by(BLOCK) {
        let block = start..steps.end.min(start + BLOCK);
        let (mut u, mut sums) = ([simd.splat_f32s(0.0); BLOCK], [simd.splat_f32s(0.0); BLOCK]);
        for (u, t) in u.iter_mut().zip(block.clone()) {
            *u = sequence.u(t);
        }
        let (inputs, sums_so_far) = (&u[..block.len()], &mut sums[..block.len()]);
        let mut first = 0;
        while first < n {
            match n - first {
                1 => pass::<S, Q, 1>(simd, first, start, inputs, sums_so_far, sequence),
                _ => pass::<S, Q, TOGETHER>(simd, first, start, inputs, sums_so_far, sequence),
            }
            first += TOGETHER;
        }
        if Q::WANTS_Y {
            for ((&u, &sum), t) in u.iter().zip(&sums).zip(block) {
                sequence.set_y(t, mul_add(simd, skip, u, simd.add_f32s(sum, sum)));
            }
        }
    }
}

/// Walks with the states `first..first + K` through the steps from `start` on, whose u are in `u`; adds their part of y / 2 to `sums`.
#[inline(always)]
fn pass<S: Simd, Q: Sequence<S>, const K: usize>(
    simd: S,
    first: usize,
    start: usize,
    u: &[S::f32s],
    sums: &mut [S::f32s],
    sequence: &mut Q,
) {
    let zero = simd.splat_f32s(0.0);
    let (mut parameters, mut states) = ([[[zero; 2]; 3]; K], [[zero; 2]; K]);
    for k in 0..K {
        parameters[k] = [pair(sequence, A, first + k), pair(sequence, B, first + k), pair(sequence, C, first + k)];
        states[k] = sequence.x(first + k);
    }
    for ((&u, sum), t) in u.iter().zip(sums).zip(start..) {
        for k in 0..K {
            let [a, b, c] = parameters[k];
            states[k] = next(simd, a, b, states[k], u);
            if Q::WANTS_Y {
                *sum = add_product(simd, c, states[k], *sum);
            }
            sequence.passed(t, first + k, states[k]);
        }
    }
    for (k, &state) in states.iter().enumerate() {
        sequence.set_x(first + k, state);
    }
}

/// Step `t` of all states.
#[inline(always)]
fn step<S: Simd>(simd: S, form: Form, t: usize, sequence: &mut impl Sequence<S>) {
    let (rank_one, zero, u) = (form.planes == RANK_ONE, simd.splat_f32s(0.0), sequence.u(t));
    let back = if rank_one { neg(simd, feedback(simd, form.states, sequence)) } else { zero };
    let mut sum = zero;
    for n in 0..form.states {
        let mut x = next(simd, pair(sequence, A, n), pair(sequence, B, n), sequence.x(n), u);
        if rank_one {
            let g = pair(sequence, G, n);
            x = [mul_add(simd, g[0], back, x[0]), mul_add(simd, g[1], back, x[1])];
        }
        sum = add_product(simd, pair(sequence, C, n), x, sum);
        sequence.set_x(n, x);
        sequence.passed(t, n, x);
    }
    sequence.set_y(t, mul_add(simd, sequence.skip(), u, simd.add_f32s(sum, sum)));
}

/// f · x. The next states wait for it, so four sums are taken in parallel.
#[inline(always)]
fn feedback<S: Simd>(simd: S, states: usize, sequence: &impl Sequence<S>) -> S::f32s {
    let mut sums = [[simd.splat_f32s(0.0); 2]; 2];
    for n in (0..states).step_by(2) {
        sums[0] = add_parts(simd, pair(sequence, F, n), sequence.x(n), sums[0]);
        if n + 1 < states {
            sums[1] = add_parts(simd, pair(sequence, F, n + 1), sequence.x(n + 1), sums[1]);
        }
    }
    twice_real(simd, [simd.add_f32s(sums[0][0], sums[1][0]), simd.add_f32s(sums[0][1], sums[1][1])])
}

#[inline(always)]
fn pair<S: Simd>(sequence: &impl Sequence<S>, plane: usize, n: usize) -> Pair<S> {
    [sequence.parameter(plane, n), sequence.parameter(plane + 1, n)]
}

/// a x + b u.
#[inline(always)]
fn next<S: Simd>(simd: S, a: Pair<S>, b: Pair<S>, [re, im]: Pair<S>, u: S::f32s) -> Pair<S> {
    let next_re = mul_add(simd, a[0], re, simd.mul_f32s(b[0], u));
    let next_im = mul_add(simd, a[0], im, simd.mul_f32s(b[1], u));
    [mul_add(simd, neg(simd, a[1]), im, next_re), mul_add(simd, a[1], re, next_im)]
}

/// sum + Re v x.
#[inline(always)]
fn add_product<S: Simd>(simd: S, v: Pair<S>, [re, im]: Pair<S>, sum: S::f32s) -> S::f32s {
    mul_add(simd, neg(simd, v[1]), im, mul_add(simd, v[0], re, sum))
}

/// Adds each of the two terms of Re v x to a sum of its own, from which [`twice_real`] makes v · x.
#[inline(always)]
pub(super) fn add_parts<S: Simd>(simd: S, v: Pair<S>, [re, im]: Pair<S>, sums: Pair<S>) -> Pair<S> {
    [mul_add(simd, v[0], re, sums[0]), mul_add(simd, v[1], im, sums[1])]
}

/// 2 (re − im).
#[inline(always)]
pub(super) fn twice_real<S: Simd>(simd: S, [re, im]: Pair<S>) -> S::f32s {
    let real = simd.sub_f32s(re, im);
    simd.add_f32s(real, real)
}
