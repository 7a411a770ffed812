//! What the first pass over a chunk of time stores for the second.

use super::formulas::Formulas;
use super::gate::{Gate, MOST};
use super::plan::Plan;
use super::stretch::{LANES, get, put};
use alloc::{vec, vec::Vec};
use pulp::{Scalar, Simd};

/// Number of vectors for a gate's decay, and for the whole gate.
pub const fn gate_vectors<F: Formulas<N>, const N: usize>() -> [usize; 2] {
    let decay = <F::Gate<Scalar> as Gate<Scalar>>::DECAY;
    [decay, decay + 1]
}

/// A thread's memory for what is kept of the steps of a chunk.
pub struct Room {
    numbers: Vec<f32>,
    /// Vectors of a step.
    vectors: usize,
    /// Width of a vector, padded.
    width: usize,
}

impl Room {
    /// Room for `vectors` vectors of every step of a chunk of `plan` that is passed twice.
    pub fn new(plan: &Plan, vectors: usize) -> Self {
        let width = plan.channel_block().next_multiple_of(LANES);
        Self { numbers: vec![0.0; plan.passed_twice() * vectors * width], vectors, width }
    }

    /// The place of `steps` steps from number `from` on.
    ///
    /// # Panics
    /// When there is no room for them.
    pub fn place(&mut self, from: usize, steps: usize) -> Kept {
        let step = self.vectors * self.width;
        let numbers = &mut self.numbers[from * step..(from + steps) * step];
        Kept { first: numbers.as_mut_ptr(), step, width: self.width }
    }
}

/// Vectors that are kept of every step of a stretch.
#[derive(Clone, Copy)]
pub struct Kept {
    first: *mut f32,
    /// Distance from one step to the next.
    step: usize,
    /// Distance from one vector of a step to the next.
    width: usize,
}

impl Kept {
    /// Of nothing.
    pub const NONE: Self = Self { first: core::ptr::null_mut(), step: 0, width: 0 };

    /// Keeps `vectors` of step `t` at channel `c`, after `before` others.
    ///
    /// # Safety
    /// The room has these steps, that many vectors, and the channels of a whole vector from `c` on.
    #[inline(always)]
    pub unsafe fn put<S: Simd>(self, simd: S, t: usize, c: usize, before: usize, vectors: &[S::f32s]) {
        for (j, vector) in vectors.iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { put(simd, self.first.add(t * self.step + (before + j) * self.width), c, *vector) };
        }
    }

    /// Vector `j` of step `t` at channel `c`.
    ///
    /// # Safety
    /// See [`Kept::put`].
    #[inline(always)]
    pub unsafe fn get<S: Simd>(self, simd: S, t: usize, c: usize, j: usize) -> S::f32s {
        // SAFETY: the caller's promise.
        unsafe { get(simd, self.first.add(t * self.step + j * self.width), c) }
    }

    /// The gate of step `t` at channel `c` from its first `count` vectors, which come after `before` others.
    ///
    /// # Safety
    /// See [`Kept::put`].
    #[inline(always)]
    pub unsafe fn gate<S: Simd, G: Gate<S>>(self, simd: S, t: usize, c: usize, before: usize, count: usize) -> G {
        let mut vectors = [simd.splat_f32s(0.0); MOST];
        for (j, vector) in vectors.iter_mut().enumerate().take(count) {
            // SAFETY: the caller's promise.
            *vector = unsafe { self.get(simd, t, c, before + j) };
        }
        G::of_vectors(simd, vectors)
    }
}
