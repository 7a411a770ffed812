//! What is done in the loops over steps: running the recurrence, summarising a chunk, and both in reverse.

use super::cell::Cell;
use super::steps::{Body, Feed, Source, Target, get, put, walk};
use crate::simd::Level;
use pulp::Simd;

/// Runs the recurrence and writes every state. `state` enters as h and leaves as h; over 0 steps nothing happens to it.
#[derive(Clone, Copy)]
pub struct Advance<C, const N: usize> {
    pub feed: Feed<C, N>,
    pub state: *mut f32,
    pub h: Target,
    pub streaming: bool,
}

impl<C: Cell<N>, const N: usize> Advance<C, N> {
    /// # Safety
    /// See [`Body`].
    pub unsafe fn run(self, level: Level, steps: usize) {
        let convert = |entering| Convert { cell: self.feed.cell, state: self.state, entering };
        // SAFETY: the caller's promise; the conversions touch `state` alone.
        unsafe {
            walk(level, 1, self.feed.width, convert(true));
            walk(level, steps, self.feed.width, self);
            walk(level, 1, self.feed.width, convert(false));
        }
    }
}

impl<C: Cell<N>, const N: usize> Body for Advance<C, N> {
    const BACKWARDS: bool = false;
    const CACHED: bool = false;
    type State<S: Simd> = S::f32s;

    #[inline(always)]
    unsafe fn load<S: Simd>(self, simd: S, c: usize) -> S::f32s {
        // SAFETY: the caller's promise.
        unsafe { get(simd, self.state, c) }
    }

    #[inline(always)]
    unsafe fn save<S: Simd>(self, simd: S, c: usize, state: S::f32s) {
        // SAFETY: the caller's promise.
        unsafe { put(simd, self.state, c, state) }
    }

    #[inline(always)]
    unsafe fn step<S: Simd, const TAIL: bool>(self, simd: S, t: usize, c: usize, carried: S::f32s) -> S::f32s {
        let cell = self.feed.cell;
        // SAFETY: the caller's promise.
        unsafe {
            let x = self.feed.inputs::<S, TAIL>(simd, t, c);
            let carried = cell.advance(simd, x, carried);
            self.h.write::<S, TAIL>(simd, t, c, self.feed.width, self.streaming, cell.leave(simd, carried));
            carried
        }
    }
}

/// Turns a buffer of h into the cell's carried form, or back.
#[derive(Clone, Copy)]
struct Convert<C, const N: usize> {
    cell: C,
    state: *mut f32,
    entering: bool,
}

impl<C: Cell<N>, const N: usize> Body for Convert<C, N> {
    const BACKWARDS: bool = false;
    const CACHED: bool = true;
    type State<S: Simd> = S::f32s;

    #[inline(always)]
    unsafe fn load<S: Simd>(self, simd: S, c: usize) -> S::f32s {
        // SAFETY: the caller's promise.
        unsafe { get(simd, self.state, c) }
    }

    #[inline(always)]
    unsafe fn save<S: Simd>(self, simd: S, c: usize, state: S::f32s) {
        // SAFETY: the caller's promise.
        unsafe { put(simd, self.state, c, state) }
    }

    #[inline(always)]
    unsafe fn step<S: Simd, const TAIL: bool>(self, simd: S, _t: usize, _c: usize, state: S::f32s) -> S::f32s {
        if self.entering { self.cell.enter(simd, state) } else { self.cell.leave(simd, state) }
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

impl Summary {
    #[inline(always)]
    unsafe fn load<S: Simd>(self, simd: S, c: usize) -> Effects<S> {
        // SAFETY: the caller's promise in `Body`.
        unsafe { Effects { local: get(simd, self.local, c), p: get(simd, self.p, c), q: get(simd, self.q, c) } }
    }

    #[inline(always)]
    unsafe fn save<S: Simd>(self, simd: S, c: usize, effects: Effects<S>) {
        // SAFETY: the caller's promise in `Body`.
        unsafe {
            put(simd, self.local, c, effects.local);
            put(simd, self.p, c, effects.p);
            put(simd, self.q, c, effects.q);
        }
    }
}

/// Summarises what a stretch does to the state before it.
#[derive(Clone, Copy)]
pub struct SummarizeForward<C, const N: usize> {
    pub feed: Feed<C, N>,
    pub summary: Summary,
}

impl<C: Cell<N>, const N: usize> Body for SummarizeForward<C, N> {
    const BACKWARDS: bool = false;
    const CACHED: bool = true;
    type State<S: Simd> = Effects<S>;

    #[inline(always)]
    unsafe fn load<S: Simd>(self, simd: S, c: usize) -> Effects<S> {
        // SAFETY: the caller's promise.
        unsafe { self.summary.load(simd, c) }
    }

    #[inline(always)]
    unsafe fn save<S: Simd>(self, simd: S, c: usize, state: Effects<S>) {
        // SAFETY: the caller's promise.
        unsafe { self.summary.save(simd, c, state) }
    }

    #[inline(always)]
    unsafe fn step<S: Simd, const TAIL: bool>(self, simd: S, t: usize, c: usize, Effects { local, p, q }: Effects<S>) -> Effects<S> {
        let cell = self.feed.cell;
        // SAFETY: the caller's promise.
        let gate = cell.gate(simd, unsafe { self.feed.inputs::<S, TAIL>(simd, t, c) });
        Effects { local: cell.step(simd, gate, local), p: cell.decay(simd, gate, p), q: simd.mul_add_e_f32s(cell.loss(simd, gate), p, q) }
    }
}

/// Summarises what a stretch does to the gradient after it.
#[derive(Clone, Copy)]
pub struct SummarizeBackward<C, const N: usize> {
    pub feed: Feed<C, N>,
    pub d_h: Source,
    pub summary: Summary,
}

impl<C: Cell<N>, const N: usize> Body for SummarizeBackward<C, N> {
    const BACKWARDS: bool = true;
    const CACHED: bool = true;
    type State<S: Simd> = Effects<S>;

    #[inline(always)]
    unsafe fn load<S: Simd>(self, simd: S, c: usize) -> Effects<S> {
        // SAFETY: the caller's promise.
        unsafe { self.summary.load(simd, c) }
    }

    #[inline(always)]
    unsafe fn save<S: Simd>(self, simd: S, c: usize, state: Effects<S>) {
        // SAFETY: the caller's promise.
        unsafe { self.summary.save(simd, c, state) }
    }

    #[inline(always)]
    unsafe fn step<S: Simd, const TAIL: bool>(self, simd: S, t: usize, c: usize, Effects { local, p, q }: Effects<S>) -> Effects<S> {
        let cell = self.feed.cell;
        self.d_h.ask(t, c, self.feed.ahead);
        // SAFETY: the caller's promise.
        let (x, d_h) = unsafe { (self.feed.inputs::<S, TAIL>(simd, t, c), self.d_h.read::<S, TAIL>(simd, t, c, self.feed.width)) };
        let gate = cell.gate(simd, x);
        Effects {
            local: cell.decay(simd, gate, simd.add_f32s(d_h, local)),
            p: cell.decay(simd, gate, p),
            q: simd.mul_add_e_f32s(cell.loss(simd, gate), p, q),
        }
    }
}

/// Runs the reverse recurrence and writes the gradients of every input. `carry` is the gradient of the state after the stretch, in the
/// end of the state before it.
#[derive(Clone, Copy)]
pub struct Retreat<C, const N: usize> {
    pub feed: Feed<C, N>,
    /// State before the stretch's first step.
    pub before: *const f32,
    pub h: Source,
    pub d_h: Source,
    pub carry: *mut f32,
    pub d_x: [Target; N],
    /// Buffers to which each input's gradients are added, or null.
    pub sums: [*mut f32; N],
    pub streaming: bool,
}

impl<C: Cell<N>, const N: usize> Body for Retreat<C, N> {
    const BACKWARDS: bool = true;
    const CACHED: bool = false;
    type State<S: Simd> = S::f32s;

    #[inline(always)]
    unsafe fn load<S: Simd>(self, simd: S, c: usize) -> S::f32s {
        // SAFETY: the caller's promise.
        unsafe { get(simd, self.carry, c) }
    }

    #[inline(always)]
    unsafe fn save<S: Simd>(self, simd: S, c: usize, state: S::f32s) {
        // SAFETY: the caller's promise.
        unsafe { put(simd, self.carry, c, state) }
    }

    #[inline(always)]
    unsafe fn step<S: Simd, const TAIL: bool>(self, simd: S, t: usize, c: usize, carry: S::f32s) -> S::f32s {
        let width = self.feed.width;
        self.h.ask(t, c, self.feed.ahead);
        self.d_h.ask(t, c, self.feed.ahead);
        // SAFETY: the caller's promise.
        unsafe {
            let x = self.feed.inputs::<S, TAIL>(simd, t, c);
            let before = if t == 0 { Source { first: self.before, stride: 0 } } else { self.h };
            let before = before.read::<S, TAIL>(simd, t.wrapping_sub(usize::from(t > 0)), c, width);
            let g = simd.add_f32s(self.d_h.read::<S, TAIL>(simd, t, c, width), carry);
            let (d_x, carry) = self.feed.cell.gradients(simd, x, before, g);
            for (j, d_x) in d_x.into_iter().enumerate() {
                if j < N - C::SHARED {
                    self.d_x[j].write::<S, TAIL>(simd, t, c, width, self.streaming, d_x);
                }
                if C::BIASED && !self.sums[j].is_null() {
                    put(simd, self.sums[j], c, simd.add_f32s(get(simd, self.sums[j], c), d_x));
                }
            }
            carry
        }
    }
}
