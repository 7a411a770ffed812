//! The loops over steps: running the recurrence, summarising a chunk, and both in reverse.

use super::formulas::Formulas;
use super::gate::Gate;
use super::kept::{Kept, gate_vectors};
use super::stretch::{Body, Feed, Source, Target, get, put, walk};
use crate::simd::{Level, mul_add, without_traces};
use pulp::Simd;

/// Runs the recurrence and writes every state. `state` enters as h and leaves as h; over 0 steps nothing happens to it. With `KEPT` the gates
/// are those that [`Summarize`] kept, else they are computed. What is kept is in a cache, so nothing is prefetched: memory is left to the first
/// pass over the next chunk, which runs at the same time.
#[derive(Clone, Copy)]
pub struct Advance<F, const N: usize, const KEPT: bool> {
    pub feed: Feed<F, N>,
    pub kept: Kept,
    pub state: *mut f32,
    pub h: Target,
    pub streaming: bool,
}

impl<F: Formulas<N>, const N: usize, const KEPT: bool> Advance<F, N, KEPT> {
    /// # Safety
    /// See [`Body`].
    pub unsafe fn run(self, level: Level, steps: usize) {
        if KEPT {
            // SAFETY: the caller's promise.
            return unsafe { walk(level, steps, self.feed.width, self) };
        }
        let convert = |entering| Convert { formulas: self.feed.formulas, state: self.state, entering };
        // SAFETY: the caller's promise; the conversions touch `state` alone.
        unsafe {
            walk(level, 1, self.feed.width, convert(true));
            walk(level, steps, self.feed.width, self);
            walk(level, 1, self.feed.width, convert(false));
        }
    }
}

impl<F: Formulas<N>, const N: usize, const KEPT: bool> Body for Advance<F, N, KEPT> {
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
            let carried = if KEPT {
                self.kept.gate::<S, F::Gate<S>>(simd, t, c, 0, const { gate_vectors::<F, N>()[1] }).step(simd, carried)
            } else {
                formulas.advance(simd, self.feed.inputs::<S, TAIL>(simd, t, c), carried)
            };
            let h = if KEPT { carried } else { formulas.leave(simd, carried) };
            self.h.write::<S, TAIL>(simd, t, c, self.feed.width, self.streaming, h);
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

/// Summarises what a stretch does to the state before it or, with `BACKWARDS`, to the gradient after it. If the cell's gates are worth
/// keeping, they are kept; with `BACKWARDS`, the slopes of the inputs and the gates' decay are kept instead.
#[derive(Clone, Copy)]
pub struct Summarize<F, const N: usize, const BACKWARDS: bool> {
    pub feed: Feed<F, N>,
    /// The states and the one before the first, read only with `BACKWARDS`.
    pub h: States,
    /// Gradients of the states, read only with `BACKWARDS`.
    pub d_h: Source,
    pub summary: Summary,
    pub kept: Kept,
}

/// The states of a stretch.
#[derive(Clone, Copy)]
pub struct States {
    /// That before the stretch's first step.
    pub before: *const f32,
    pub h: Source,
}

impl States {
    /// h_{t−1}
    ///
    /// # Safety
    /// See [`Body`].
    #[inline(always)]
    unsafe fn before<S: Simd, const TAIL: bool>(self, simd: S, t: usize, c: usize, width: usize) -> S::f32s {
        let before = if t == 0 { Source { first: self.before, stride: 0 } } else { self.h };
        // SAFETY: the caller's promise.
        unsafe { before.read::<S, TAIL>(simd, t.wrapping_sub(usize::from(t > 0)), c, width) }
    }
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
        // SAFETY: the caller's promise: the inputs of the stretch and its states are readable, and the room has all of its steps.
        let gate = unsafe {
            let x = self.feed.inputs::<S, TAIL>(simd, t, c);
            let [decay, whole] = const { gate_vectors::<F, N>() };
            if BACKWARDS && F::KEPT {
                self.h.h.prefetch(t, c, distance);
                let (slopes, gate) = formulas.slopes(simd, x, self.h.before::<S, TAIL>(simd, t, c, width));
                self.kept.put(simd, t, c, 0, &slopes);
                self.kept.put(simd, t, c, N, &gate.vectors(simd)[..decay]);
                gate
            } else {
                let gate = formulas.gate(simd, x);
                if F::KEPT {
                    self.kept.put(simd, t, c, 0, &gate.vectors(simd)[..whole]);
                }
                gate
            }
        };
        let trace = F::Gate::<S>::TRACE;
        let local = if BACKWARDS {
            self.d_h.prefetch(t, c, distance);
            // SAFETY: the caller's promise: so are the gradients of its states.
            let d_h = unsafe { self.d_h.read::<S, TAIL>(simd, t, c, width) };
            gate.decay(simd, without_traces(simd, simd.add_f32s(d_h, local), trace))
        } else {
            gate.step(simd, local)
        };
        Effects { local, p: without_traces(simd, gate.decay(simd, p), trace), q: mul_add(simd, gate.loss(simd), p, q) }
    }
}

/// Runs the reverse recurrence and writes the gradients of every input. `carry` enters as the gradient of the state after the stretch and
/// leaves as that of the state before it. With `KEPT` slopes and gates are those that [`Summarize`] kept, else they are computed.
#[derive(Clone, Copy)]
pub struct StepBackward<F, const N: usize, const KEPT: bool> {
    pub feed: Feed<F, N>,
    pub kept: Kept,
    pub h: States,
    pub d_h: Source,
    pub carry: *mut f32,
    pub d_x: [Target; N],
    /// Buffers to which the gradients of the bias and of a shared input are added, or null.
    pub sums: [*mut f32; N],
    pub streaming: bool,
}

impl<F: Formulas<N>, const N: usize, const KEPT: bool> Body for StepBackward<F, N, KEPT> {
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
        if !KEPT {
            self.h.h.prefetch(t, c, self.feed.distance);
            self.d_h.prefetch(t, c, self.feed.distance);
        }
        // SAFETY: the caller's promise: inputs, states and their gradients are readable and the outputs writable at every step; before
        // the first step the state is at `before`; the sums have room for whole vectors; what was kept has all steps.
        unsafe {
            let (slopes, gate) = if KEPT {
                let mut slopes = [simd.splat_f32s(0.0); N];
                for (j, slope) in slopes.iter_mut().enumerate() {
                    *slope = self.kept.get(simd, t, c, j);
                }
                (slopes, self.kept.gate(simd, t, c, N, const { gate_vectors::<F, N>()[0] }))
            } else {
                let x = self.feed.inputs::<S, TAIL>(simd, t, c);
                self.feed.formulas.slopes(simd, x, self.h.before::<S, TAIL>(simd, t, c, width))
            };
            let g = simd.add_f32s(self.d_h.read::<S, TAIL>(simd, t, c, width), carry);
            let g = without_traces(simd, g, F::Gate::<S>::TRACE);
            for (j, slope) in slopes.into_iter().enumerate() {
                let d_x = simd.mul_f32s(g, slope);
                let shared = F::SHARED && j == N - 1;
                if !shared {
                    self.d_x[j].write::<S, TAIL>(simd, t, c, width, self.streaming, d_x);
                }
                if (shared || F::BIASED && j < F::PARTS) && !self.sums[j].is_null() {
                    put(simd, self.sums[j], c, simd.add_f32s(get(simd, self.sums[j], c), d_x));
                }
            }
            gate.decay(simd, g)
        }
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::super::cells::linear::Linear;
    use super::*;

    #[test]
    fn what_vanishes_over_a_chunk_is_zero_and_no_trace() {
        let (a, b) = ([0.7f32; 16], [0.5f32; 16]);
        let rows = |x: &[f32; 16]| Source { first: x.as_ptr(), stride: 0 };
        for level in Level::available() {
            let ([mut local, mut q], mut p) = ([[0.0f32; 16]; 2], [1.0f32; 16]);
            let body = Summarize::<Linear, 2, false> {
                feed: Feed { formulas: Linear, x: [rows(&a), rows(&b)], bias: [core::ptr::null(); 2], width: 16, distance: 0 },
                h: States { before: a.as_ptr(), h: rows(&a) },
                d_h: rows(&a),
                summary: Summary { local: local.as_mut_ptr(), p: p.as_mut_ptr(), q: q.as_mut_ptr() },
                kept: Kept::NONE,
            };
            // SAFETY: rows and buffers are 16 floats long, and every step reads the same row.
            unsafe { walk(level, 1000, 16, body) };
            assert_eq!(p, [0.0; 16], "{}", level.name());
            assert!(q.iter().all(|q| (q - 1.0).abs() < 1e-6), "{}: {q:?}", level.name());
            assert!(local.iter().all(|local| (local - 0.5 / 0.3).abs() < 1e-5), "{}: {local:?}", level.name());
        }
    }
}
