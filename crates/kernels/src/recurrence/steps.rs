//! The loops over the steps of one dense stretch (nothing reset, nothing padded) of one row, for one block of channels.
//!
//! Time outside, vectors of channels inside, the state in a small buffer: every row of memory is read and written whole.

use super::cell::Cell;
use crate::simd::{Level, prefetch, stream};
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
    /// Asks for the vector that stands `ahead` rows further.
    #[inline(always)]
    fn ask(self, t: usize, c: usize, ahead: isize) {
        let row = t.wrapping_add_signed(ahead);
        prefetch(self.first.wrapping_add(row.wrapping_mul(self.stride).wrapping_add(c)));
    }

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
///
/// # Safety of its functions
/// In the whole stretch sources must be readable and targets writable for `width` floats per row, and nobody else may touch the targets
/// meanwhile; `bias` must be readable for `width` floats (unless the cell has none); buffers must have room for `width` floats rounded up
/// to [`LANES`]; when `streaming`, targets must be aligned at every whole vector.
pub trait Body: Copy {
    /// Whether time runs backwards.
    const BACKWARDS: bool;
    /// Whether the memory is known to be in a cache, so that a few channels may run through all steps before the next few.
    const CACHED: bool;
    /// What one step leaves to the next, for one vector of channels.
    type State<S: Simd>: Copy;

    /// Takes the state of the vector at channel `c` from its buffer.
    unsafe fn load<S: Simd>(self, simd: S, c: usize) -> Self::State<S>;

    /// Puts it back.
    unsafe fn save<S: Simd>(self, simd: S, c: usize, state: Self::State<S>);

    /// Step `t` of the stretch at channel `c`; with `TAIL` there are fewer channels left than lanes.
    unsafe fn step<S: Simd, const TAIL: bool>(self, simd: S, t: usize, c: usize, state: Self::State<S>) -> Self::State<S>;
}

/// Vectors whose states stay in registers where that is possible.
const TILE: usize = 4;

/// Runs `body` over a stretch of `steps` steps of `width` channels.
///
/// # Safety
/// See [`Body`].
pub unsafe fn walk(level: Level, steps: usize, width: usize, body: impl Body) {
    struct Walk<B>(usize, usize, B);

    impl<B: Body> Walk<B> {
        /// Channels from `c` on, `TILE` vectors of them, through all steps.
        #[inline(always)]
        unsafe fn tile<S: Simd>(&self, simd: S, c: usize) {
            let Walk(steps, _, body) = *self;
            // SAFETY: the promise made to `walk`.
            unsafe {
                let mut states = [body.load(simd, c); TILE];
                for (i, state) in states.iter_mut().enumerate() {
                    *state = body.load(simd, c + i * S::F32_LANES);
                }
                for i in 0..steps {
                    let t = if B::BACKWARDS { steps - 1 - i } else { i };
                    for (i, state) in states.iter_mut().enumerate() {
                        *state = body.step::<S, false>(simd, t, c + i * S::F32_LANES, *state);
                    }
                }
                for (i, state) in states.into_iter().enumerate() {
                    body.save(simd, c + i * S::F32_LANES, state);
                }
            }
        }

        /// All channels from `c` on, step by step.
        #[inline(always)]
        unsafe fn rows<S: Simd>(&self, simd: S, first: usize) {
            let Walk(steps, width, body) = *self;
            let whole = width - width % S::F32_LANES;
            for i in 0..steps {
                let t = if B::BACKWARDS { steps - 1 - i } else { i };
                // SAFETY: the promise made to `walk`.
                unsafe {
                    for c in (first..whole).step_by(S::F32_LANES) {
                        body.save(simd, c, body.step::<S, false>(simd, t, c, body.load(simd, c)));
                    }
                    if whole < width {
                        body.save(simd, whole, body.step::<S, true>(simd, t, whole, body.load(simd, whole)));
                    }
                }
            }
        }
    }

    impl<B: Body> WithSimd for Walk<B> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let tile = TILE * S::F32_LANES;
            let mut c = 0;
            if B::CACHED || self.1 == tile {
                while c + tile <= self.1 {
                    // SAFETY: the promise made to `walk`.
                    unsafe { self.tile(simd, c) };
                    c += tile;
                }
            }
            if c < self.1 {
                // SAFETY: as above.
                unsafe { self.rows(simd, c) };
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
    /// Rows between what is read and what is asked for meanwhile.
    pub ahead: isize,
}

impl<C: Cell<N>, const N: usize> Feed<C, N> {
    #[inline(always)]
    unsafe fn inputs<S: Simd, const TAIL: bool>(self, simd: S, t: usize, c: usize) -> [S::f32s; N] {
        let mut x = [simd.splat_f32s(0.0); N];
        for (j, x) in x.iter_mut().enumerate() {
            self.x[j].ask(t, c, self.ahead);
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
                self.d_x[j].write::<S, TAIL>(simd, t, c, width, self.streaming, d_x);
                if C::BIASED && !self.sums[j].is_null() {
                    put(simd, self.sums[j], c, simd.add_f32s(get(simd, self.sums[j], c), d_x));
                }
            }
            carry
        }
    }
}
