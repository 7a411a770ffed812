//! What is done in the loops over steps: running the recurrence, summarising a chunk, and both in reverse.

use super::formulas::Formulas;
use super::gate::Gate;
use super::stretch::{Body, Feed, Source, Target, get, put, walk};
use crate::simd::{Level, mul_add};
use pulp::Simd;

/// Runs the recurrence and writes every state. `state` enters as h and leaves as h; over 0 steps nothing happens to it.
#[derive(Clone, Copy)]
pub struct Advance<F, const N: usize> {
    pub feed: Feed<F, N>,
    pub state: *mut f32,
    pub h: Target,
    pub streaming: bool,
}

impl<F: Formulas<N>, const N: usize> Advance<F, N> {
    /// # Safety
    /// See [`Body`].
    pub unsafe fn run(self, level: Level, steps: usize) {
        let convert = |entering| Convert { formulas: self.feed.formulas, state: self.state, entering };
        // SAFETY: the caller's promise; the conversions touch `state` alone.
        unsafe {
            walk(level, 1, self.feed.width, convert(true));
            walk(level, steps, self.feed.width, self);
            walk(level, 1, self.feed.width, convert(false));
        }
    }
}

impl<F: Formulas<N>, const N: usize> Body for Advance<F, N> {
    const BACKWARDS: bool = false;
    const CACHED: bool = false;
    type State<S: Simd> = S::f32s;

    #[inline(always)]
    unsafe fn load<S: Simd>(self, simd: S, c: usize) -> S::f32s {
        // SAFETY: the caller's promise: the state has room for whole vectors.
        unsafe { get(simd, self.state, c) }
    }

    #[inline(always)]
    unsafe fn save<S: Simd>(self, simd: S, c: usize, state: S::f32s) {
        // SAFETY: the caller's promise: the state has room for whole vectors.
        unsafe { put(simd, self.state, c, state) }
    }

    #[inline(always)]
    unsafe fn step<S: Simd, const TAIL: bool>(self, simd: S, t: usize, c: usize, carried: S::f32s) -> S::f32s {
        let formulas = self.feed.formulas;
        // SAFETY: the caller's promise: inputs are readable and the output is writable at every step.
        unsafe {
            let x = self.feed.inputs::<S, TAIL>(simd, t, c);
            let carried = formulas.advance(simd, x, carried);
            self.h.write::<S, TAIL>(simd, t, c, self.feed.width, self.streaming, formulas.leave(simd, carried));
            carried
        }
    }
}

/// Turns a buffer of h into the cell's carried form, or back.
#[derive(Clone, Copy)]
struct Convert<F, const N: usize> {
    formulas: F,
    state: *mut f32,
    entering: bool,
}

impl<F: Formulas<N>, const N: usize> Body for Convert<F, N> {
    const BACKWARDS: bool = false;
    const CACHED: bool = true;
    type State<S: Simd> = S::f32s;

    #[inline(always)]
    unsafe fn load<S: Simd>(self, simd: S, c: usize) -> S::f32s {
        // SAFETY: the caller's promise: the state has room for whole vectors.
        unsafe { get(simd, self.state, c) }
    }

    #[inline(always)]
    unsafe fn save<S: Simd>(self, simd: S, c: usize, state: S::f32s) {
        // SAFETY: the caller's promise: the state has room for whole vectors.
        unsafe { put(simd, self.state, c, state) }
    }

    #[inline(always)]
    unsafe fn step<S: Simd, const TAIL: bool>(self, simd: S, _t: usize, _c: usize, state: S::f32s) -> S::f32s {
        if self.entering { self.formulas.enter(simd, state) } else { self.formulas.leave(simd, state) }
    }
}

/// Buffers that say what a stretch does to a state: h ↦ p h + local, and q = 1 − p, which stays exact where p is close to 1.
#[derive(Clone, Copy)]
pub struct Summary {
    pub local: *mut f32,
    pub p: *mut f32,
    pub q: *mut f32,
}

/// A vector of [`Summary`].
#[derive(Clone, Copy)]
pub struct Effects<S: Simd> {
    local: S::f32s,
    p: S::f32s,
    q: S::f32s,
}

/// Summarises what a stretch does to the state before it or, with `BACKWARDS`, to the gradient after it.
#[derive(Clone, Copy)]
pub struct Summarize<F, const N: usize, const BACKWARDS: bool> {
    pub feed: Feed<F, N>,
    /// Gradients of the states, read only with `BACKWARDS`.
    pub d_h: Source,
    pub summary: Summary,
}

impl<F: Formulas<N>, const N: usize, const BACKWARDS: bool> Body for Summarize<F, N, BACKWARDS> {
    const BACKWARDS: bool = BACKWARDS;
    const CACHED: bool = true;
    type State<S: Simd> = Effects<S>;

    #[inline(always)]
    unsafe fn load<S: Simd>(self, simd: S, c: usize) -> Effects<S> {
        let Summary { local, p, q } = self.summary;
        // SAFETY: the caller's promise: the three buffers have room for whole vectors.
        unsafe { Effects { local: get(simd, local, c), p: get(simd, p, c), q: get(simd, q, c) } }
    }

    #[inline(always)]
    unsafe fn save<S: Simd>(self, simd: S, c: usize, Effects { local, p, q }: Effects<S>) {
        // SAFETY: the caller's promise: the three buffers have room for whole vectors.
        unsafe {
            put(simd, self.summary.local, c, local);
            put(simd, self.summary.p, c, p);
            put(simd, self.summary.q, c, q);
        }
    }

    #[inline(always)]
    unsafe fn step<S: Simd, const TAIL: bool>(self, simd: S, t: usize, c: usize, Effects { local, p, q }: Effects<S>) -> Effects<S> {
        let Feed { formulas, width, distance, .. } = self.feed;
        // SAFETY: the caller's promise: the inputs of the stretch are readable.
        let gate = formulas.gate(simd, unsafe { self.feed.inputs::<S, TAIL>(simd, t, c) });
        let local = if BACKWARDS {
            self.d_h.prefetch(t, c, distance);
            // SAFETY: the caller's promise: so are the gradients of its states.
            gate.decay(simd, simd.add_f32s(unsafe { self.d_h.read::<S, TAIL>(simd, t, c, width) }, local))
        } else {
            gate.step(simd, local)
        };
        Effects { local, p: gate.decay(simd, p), q: mul_add(simd, gate.loss(simd), p, q) }
    }
}

/// Runs the reverse recurrence and writes the gradients of every input. `carry` is the gradient of the state after the stretch, in the
/// end of the state before it.
#[derive(Clone, Copy)]
pub struct StepBackward<F, const N: usize> {
    pub feed: Feed<F, N>,
    /// State before the stretch's first step.
    pub before: *const f32,
    pub h: Source,
    pub d_h: Source,
    pub carry: *mut f32,
    pub d_x: [Target; N],
    /// Buffers to which the gradients of the bias and of a shared input are added, or null.
    pub sums: [*mut f32; N],
    pub streaming: bool,
}

impl<F: Formulas<N>, const N: usize> Body for StepBackward<F, N> {
    const BACKWARDS: bool = true;
    const CACHED: bool = false;
    type State<S: Simd> = S::f32s;

    #[inline(always)]
    unsafe fn load<S: Simd>(self, simd: S, c: usize) -> S::f32s {
        // SAFETY: the caller's promise: the gradient carried has room for whole vectors.
        unsafe { get(simd, self.carry, c) }
    }

    #[inline(always)]
    unsafe fn save<S: Simd>(self, simd: S, c: usize, state: S::f32s) {
        // SAFETY: the caller's promise: the gradient carried has room for whole vectors.
        unsafe { put(simd, self.carry, c, state) }
    }

    #[inline(always)]
    unsafe fn step<S: Simd, const TAIL: bool>(self, simd: S, t: usize, c: usize, carry: S::f32s) -> S::f32s {
        let width = self.feed.width;
        self.h.prefetch(t, c, self.feed.distance);
        self.d_h.prefetch(t, c, self.feed.distance);
        // SAFETY: the caller's promise: inputs, states and their gradients are readable and the outputs writable at every step; before
        // the first step the state stands at `before`; the sums have room for whole vectors.
        unsafe {
            let x = self.feed.inputs::<S, TAIL>(simd, t, c);
            let before = if t == 0 { Source { first: self.before, stride: 0 } } else { self.h };
            let before = before.read::<S, TAIL>(simd, t.wrapping_sub(usize::from(t > 0)), c, width);
            let g = simd.add_f32s(self.d_h.read::<S, TAIL>(simd, t, c, width), carry);
            let (d_x, carry) = self.feed.formulas.gradients(simd, x, before, g);
            for (j, d_x) in d_x.into_iter().enumerate() {
                let shared = F::SHARED && j == N - 1;
                if !shared {
                    self.d_x[j].write::<S, TAIL>(simd, t, c, width, self.streaming, d_x);
                }
                if (shared || F::BIASED && j < F::PARTS) && !self.sums[j].is_null() {
                    put(simd, self.sums[j], c, simd.add_f32s(get(simd, self.sums[j], c), d_x));
                }
            }
            carry
        }
    }
}
