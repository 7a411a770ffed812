//! The loops over the steps of one dense stretch (nothing reset, nothing padded) of one row, for one block of channels.
//!
//! Time outside, vectors of channels inside, the state in a small buffer: every row of memory is read and written whole.

use super::cell::Cell;
use crate::simd::{Level, stream};
use core::slice::{from_raw_parts, from_raw_parts_mut};
use pulp::{Simd, WithSimd};

/// Buffers of state are rounded up to this many floats, the largest vector.
pub const LANES: usize = 16;

/// The rows of one tensor in a stretch: the first channel of the first step, and the distance from one step to the next.
#[derive(Debug, Clone, Copy)]
pub struct Rows<P> {
    pub first: P,
    pub stride: usize,
}

/// Rows to read.
pub type Source = Rows<*const f32>;
/// Rows to write.
pub type Target = Rows<*mut f32>;

impl Source {
    /// Reads the vector of step `t` at channel `c`; with `TAIL` only its first `width − c` lanes, the others 0.
    #[inline(always)]
    unsafe fn read<S: Simd, const TAIL: bool>(self, simd: S, t: usize, c: usize, width: usize) -> S::f32s {
        // SAFETY: the caller's promise in `Body`.
        unsafe {
            let at = self.first.add(t * self.stride + c);
            if TAIL { simd.partial_load_f32s(from_raw_parts(at, width - c)) } else { at.cast::<S::f32s>().read_unaligned() }
        }
    }
}

impl Target {
    /// Writes the vector of step `t` at channel `c`; with `TAIL` only its first `width − c` lanes.
    #[inline(always)]
    unsafe fn write<S: Simd, const TAIL: bool>(self, simd: S, t: usize, c: usize, width: usize, streaming: bool, value: S::f32s) {
        // SAFETY: the caller's promise in `Body`.
        unsafe {
            let at = self.first.add(t * self.stride + c);
            if TAIL {
                simd.partial_store_f32s(from_raw_parts_mut(at, width - c), value);
            } else if streaming {
                stream(simd, at, value);
            } else {
                at.cast::<S::f32s>().write_unaligned(value);
            }
        }
    }
}

/// A buffer with room for whole vectors.
#[inline(always)]
unsafe fn get<S: Simd>(_simd: S, buffer: *const f32, c: usize) -> S::f32s {
    // SAFETY: the caller's promise in `Body`.
    unsafe { buffer.add(c).cast::<S::f32s>().read_unaligned() }
}

/// Writes to a buffer with room for whole vectors.
#[inline(always)]
unsafe fn put<S: Simd>(_simd: S, buffer: *mut f32, c: usize, value: S::f32s) {
    // SAFETY: the caller's promise in `Body`.
    unsafe { buffer.add(c).cast::<S::f32s>().write_unaligned(value) }
}

/// What is done at every step with every vector of channels.
pub trait Body {
    /// Whether time runs backwards.
    const BACKWARDS: bool;

    /// Does it for step `t` of the stretch at channel `c`; with `TAIL` there are fewer channels left than lanes.
    ///
    /// # Safety
    /// In the whole stretch sources must be readable and targets writable for `width` floats per row, and nobody else may touch the
    /// targets meanwhile; `bias` must be readable for `width` floats (unless the cell has none); buffers must have room for `width`
    /// floats rounded up to [`LANES`]; when `streaming`, targets must be aligned at every whole vector.
    unsafe fn vector<S: Simd, const TAIL: bool>(&self, simd: S, t: usize, c: usize);
}

/// Runs `body` over a stretch of `steps` steps of `width` channels.
///
/// # Safety
/// See [`Body::vector`].
pub unsafe fn walk(level: Level, steps: usize, width: usize, body: &impl Body) {
    struct Walk<'a, B>(usize, usize, &'a B);
    impl<B: Body> WithSimd for Walk<'_, B> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let Walk(steps, width, body) = self;
            let whole = width - width % S::F32_LANES;
            for i in 0..steps {
                let t = if B::BACKWARDS { steps - 1 - i } else { i };
                let mut c = 0;
                while c < whole {
                    // SAFETY: the promise made to `walk`.
                    unsafe { body.vector::<S, false>(simd, t, c) };
                    c += S::F32_LANES;
                }
                if c < width {
                    // SAFETY: as above.
                    unsafe { body.vector::<S, true>(simd, t, c) };
                }
            }
        }
    }
    level.run(Walk(steps, width, body));
}

/// The cell and what it reads in a stretch.
#[derive(Clone, Copy)]
pub struct Feed<C, const N: usize> {
    pub cell: C,
    pub x: [Source; N],
    pub bias: [*const f32; N],
    pub width: usize,
}

impl<C: Cell<N>, const N: usize> Feed<C, N> {
    #[inline(always)]
    unsafe fn inputs<S: Simd, const TAIL: bool>(&self, simd: S, t: usize, c: usize) -> [S::f32s; N] {
        let mut x = [simd.splat_f32s(0.0); N];
        for (j, x) in x.iter_mut().enumerate() {
            // SAFETY: the caller's promise in `Body`.
            unsafe {
                *x = self.x[j].read::<S, TAIL>(simd, t, c, self.width);
                if C::BIASED {
                    let bias = Source { first: self.bias[j], stride: 0 };
                    *x = simd.add_f32s(*x, bias.read::<S, TAIL>(simd, 0, c, self.width));
                }
            }
        }
        x
    }
}

/// Runs the recurrence and writes every state. `state` enters as h and leaves as h; over 0 steps nothing happens to it.
pub struct Advance<C, const N: usize> {
    pub feed: Feed<C, N>,
    pub state: *mut f32,
    pub h: Target,
    pub streaming: bool,
}

impl<C: Cell<N>, const N: usize> Advance<C, N> {
    /// # Safety
    /// See [`Body::vector`].
    pub unsafe fn run(&self, level: Level, steps: usize) {
        let convert = |entering| Convert { cell: self.feed.cell, state: self.state, entering };
        // SAFETY: the caller's promise; the conversions touch `state` alone.
        unsafe {
            walk(level, 1, self.feed.width, &convert(true));
            walk(level, steps, self.feed.width, self);
            walk(level, 1, self.feed.width, &convert(false));
        }
    }
}

impl<C: Cell<N>, const N: usize> Body for Advance<C, N> {
    const BACKWARDS: bool = false;
    #[inline(always)]
    unsafe fn vector<S: Simd, const TAIL: bool>(&self, simd: S, t: usize, c: usize) {
        let cell = self.feed.cell;
        // SAFETY: the caller's promise.
        unsafe {
            let x = self.feed.inputs::<S, TAIL>(simd, t, c);
            let carried = cell.advance(simd, x, get(simd, self.state, c));
            put(simd, self.state, c, carried);
            self.h.write::<S, TAIL>(simd, t, c, self.feed.width, self.streaming, cell.leave(simd, carried));
        }
    }
}

/// Turns a buffer of h into the cell's carried form, or back.
struct Convert<C, const N: usize> {
    cell: C,
    state: *mut f32,
    entering: bool,
}

impl<C: Cell<N>, const N: usize> Body for Convert<C, N> {
    const BACKWARDS: bool = false;
    #[inline(always)]
    unsafe fn vector<S: Simd, const TAIL: bool>(&self, simd: S, _t: usize, c: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            let h = get(simd, self.state, c);
            let converted = if self.entering { self.cell.enter(simd, h) } else { self.cell.leave(simd, h) };
            put(simd, self.state, c, converted);
        }
    }
}

/// Buffers that say what a stretch does to a state: h ↦ p h + local, and q = 1 − p, which stays exact where p is close to 1.
#[derive(Clone, Copy)]
pub struct Summary {
    pub local: *mut f32,
    pub p: *mut f32,
    pub q: *mut f32,
}

impl Summary {
    /// Takes one more step, "a h + b" with `loss` = 1 − a, into p and q.
    #[inline(always)]
    unsafe fn prolong<S: Simd>(self, simd: S, c: usize, loss: S::f32s, decay: impl FnOnce(S::f32s) -> S::f32s) {
        // SAFETY: the caller's promise in `Body`.
        unsafe {
            let p = get(simd, self.p, c);
            put(simd, self.q, c, simd.mul_add_e_f32s(loss, p, get(simd, self.q, c)));
            put(simd, self.p, c, decay(p));
        }
    }
}

/// Summarises what a stretch does to the state before it.
pub struct SummarizeForward<C, const N: usize> {
    pub feed: Feed<C, N>,
    pub summary: Summary,
}

impl<C: Cell<N>, const N: usize> Body for SummarizeForward<C, N> {
    const BACKWARDS: bool = false;
    #[inline(always)]
    unsafe fn vector<S: Simd, const TAIL: bool>(&self, simd: S, t: usize, c: usize) {
        let cell = self.feed.cell;
        // SAFETY: the caller's promise.
        unsafe {
            let gate = cell.gate(simd, self.feed.inputs::<S, TAIL>(simd, t, c));
            let local = cell.step(simd, gate, get(simd, self.summary.local, c));
            put(simd, self.summary.local, c, local);
            self.summary.prolong(
                simd,
                c,
                cell.loss(simd, gate),
                #[inline(always)]
                |p| cell.decay(simd, gate, p),
            );
        }
    }
}

/// Summarises what a stretch does to the gradient after it.
pub struct SummarizeBackward<C, const N: usize> {
    pub feed: Feed<C, N>,
    pub d_h: Source,
    pub summary: Summary,
}

impl<C: Cell<N>, const N: usize> Body for SummarizeBackward<C, N> {
    const BACKWARDS: bool = true;
    #[inline(always)]
    unsafe fn vector<S: Simd, const TAIL: bool>(&self, simd: S, t: usize, c: usize) {
        let cell = self.feed.cell;
        // SAFETY: the caller's promise.
        unsafe {
            let gate = cell.gate(simd, self.feed.inputs::<S, TAIL>(simd, t, c));
            let d_h = self.d_h.read::<S, TAIL>(simd, t, c, self.feed.width);
            let g = simd.add_f32s(d_h, get(simd, self.summary.local, c));
            put(simd, self.summary.local, c, cell.decay(simd, gate, g));
            self.summary.prolong(
                simd,
                c,
                cell.loss(simd, gate),
                #[inline(always)]
                |p| cell.decay(simd, gate, p),
            );
        }
    }
}

/// Runs the reverse recurrence and writes the gradients of every input. `carry` is the gradient of the state after the stretch, in the
/// end of the state before it.
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
    #[inline(always)]
    unsafe fn vector<S: Simd, const TAIL: bool>(&self, simd: S, t: usize, c: usize) {
        let width = self.feed.width;
        // SAFETY: the caller's promise.
        unsafe {
            let x = self.feed.inputs::<S, TAIL>(simd, t, c);
            let before = if t == 0 { Source { first: self.before, stride: 0 } } else { self.h };
            let before = before.read::<S, TAIL>(simd, t.wrapping_sub(usize::from(t > 0)), c, width);
            let g = simd.add_f32s(self.d_h.read::<S, TAIL>(simd, t, c, width), get(simd, self.carry, c));
            let (d_x, carry) = self.feed.cell.gradients(simd, x, before, g);
            put(simd, self.carry, c, carry);
            for (j, d_x) in d_x.into_iter().enumerate() {
                self.d_x[j].write::<S, TAIL>(simd, t, c, width, self.streaming, d_x);
                if C::BIASED && !self.sums[j].is_null() {
                    put(simd, self.sums[j], c, simd.add_f32s(get(simd, self.sums[j], c), d_x));
                }
            }
        }
    }
}
