//! The loops over the steps of one dense stretch (nothing reset, nothing padded) of one row, for one block of channels.
//!
//! The outer loop is over time and the inner one over vectors of channels, with the state in a small buffer: every row of memory is read
//! and written whole.

use super::formulas::Formulas;
use crate::simd::{Level, load_some, prefetch, store_some, stream};
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
    /// Prefetches the vector `distance` rows further on.
    #[inline(always)]
    pub fn prefetch(self, t: usize, c: usize, distance: isize) {
        let row = t.wrapping_add_signed(distance);
        prefetch(self.first.wrapping_add(row.wrapping_mul(self.stride).wrapping_add(c)));
    }

    /// Reads the vector of step `t` at channel `c`; with `TAIL` only its first `width − c` lanes, the others 0.
    ///
    /// # Safety
    /// See [`Body`].
    #[inline(always)]
    pub unsafe fn read<S: Simd, const TAIL: bool>(self, simd: S, t: usize, c: usize, width: usize) -> S::f32s {
        // SAFETY: the caller's promise in `Body`.
        unsafe {
            let at = self.first.add(t * self.stride + c);
            if TAIL { load_some(simd, from_raw_parts(at, width - c)) } else { at.cast::<S::f32s>().read_unaligned() }
        }
    }
}

impl Target {
    /// Writes the vector of step `t` at channel `c`; with `TAIL` only its first `width − c` lanes.
    ///
    /// # Safety
    /// See [`Body`].
    #[inline(always)]
    pub unsafe fn write<S: Simd, const TAIL: bool>(self, simd: S, t: usize, c: usize, width: usize, streaming: bool, value: S::f32s) {
        // SAFETY: the caller's promise in `Body`.
        unsafe {
            let at = self.first.add(t * self.stride + c);
            if TAIL {
                store_some(simd, from_raw_parts_mut(at, width - c), value);
            } else if streaming {
                stream(simd, at, value);
            } else {
                at.cast::<S::f32s>().write_unaligned(value);
            }
        }
    }
}

/// Reads from a buffer with room for whole vectors.
///
/// # Safety
/// See [`Body`].
#[inline(always)]
pub unsafe fn get<S: Simd>(_simd: S, buffer: *const f32, c: usize) -> S::f32s {
    // SAFETY: the caller's promise in `Body`.
    unsafe { buffer.add(c).cast::<S::f32s>().read_unaligned() }
}

/// Writes to a buffer with room for whole vectors.
///
/// # Safety
/// See [`Body`].
#[inline(always)]
pub unsafe fn put<S: Simd>(_simd: S, buffer: *mut f32, c: usize, value: S::f32s) {
    // SAFETY: the caller's promise in `Body`.
    unsafe { buffer.add(c).cast::<S::f32s>().write_unaligned(value) }
}

/// What is done at every step with every vector of channels.
///
/// # Safety of its functions
/// In the whole stretch sources must be readable and targets writable for `width` floats per row, and nothing else may touch the targets
/// meanwhile; `bias` must be readable for `width` floats (unless the cell has none); buffers must have room for `width` floats rounded up
/// to [`LANES`]; when `streaming`, targets must be aligned at every whole vector.
pub trait Body: Copy {
    /// Whether time runs backwards.
    const BACKWARDS: bool;
    /// Whether the memory is known to be in a cache, so that a few channels may run through all steps before the next few.
    const CACHED: bool;
    /// What one step leaves to the next, for one vector of channels.
    type State<S: Simd>: Copy;

    /// Reads the state of the vector at channel `c` from its buffer.
    unsafe fn load<S: Simd>(self, simd: S, c: usize) -> Self::State<S>;

    /// Writes it back.
    unsafe fn save<S: Simd>(self, simd: S, c: usize, state: Self::State<S>);

    /// Step `t` of the stretch at channel `c`; with `TAIL` there are fewer channels left than lanes.
    unsafe fn step<S: Simd, const TAIL: bool>(self, simd: S, t: usize, c: usize, state: Self::State<S>) -> Self::State<S>;
}

/// Vectors whose states stay in registers if possible.
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
                // SAFETY: the promise made to `walk`, for the channels that are left.
                unsafe { self.rows(simd, c) };
            }
        }
    }
    level.run(Walk(steps, width, body));
}

/// The formulas and what they read in a stretch.
#[derive(Clone, Copy)]
pub struct Feed<F, const N: usize> {
    pub formulas: F,
    pub x: [Source; N],
    /// Of the parts of the pre-activations.
    pub bias: [*const f32; N],
    pub width: usize,
    /// Rows from the one that is read to the one that is prefetched.
    pub distance: isize,
}

impl<F: Formulas<N>, const N: usize> Feed<F, N> {
    /// # Safety
    /// See [`Body`].
    #[inline(always)]
    pub unsafe fn inputs<S: Simd, const TAIL: bool>(self, simd: S, t: usize, c: usize) -> [S::f32s; N] {
        let mut x = [simd.splat_f32s(0.0); N];
        for (j, x) in x.iter_mut().enumerate() {
            self.x[j].prefetch(t, c, self.distance);
            // SAFETY: the caller's promise: the rows of inputs and biases are readable for `width` floats.
            unsafe {
                *x = self.x[j].read::<S, TAIL>(simd, t, c, self.width);
                if F::BIASED && j < F::PARTS {
                    let bias = Source { first: self.bias[j], stride: 0 };
                    *x = simd.add_f32s(*x, bias.read::<S, TAIL>(simd, 0, c, self.width));
                }
            }
        }
        x
    }
}
