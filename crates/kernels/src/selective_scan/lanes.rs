//! What both directions compute for one vector of channels at the steps of a chunk.

use super::{CHUNK, Scan};
use crate::simd::{self, Simd};
use alloc::{vec, vec::Vec};
use core::ops::Range;

/// A number of each step of a chunk, for one vector of channels.
pub(super) struct Steps<S: Simd> {
    /// Δ.
    pub delta: Vec<S::f32s>,
    /// Δ u.
    pub delta_u: Vec<S::f32s>,
    /// v, as summed so far.
    pub value: Vec<S::f32s>,
}

impl<S: Simd> Steps<S> {
    #[inline(always)]
    pub fn new(simd: S) -> Self {
        let zeros = || vec![simd.splat_f32s(0.0); CHUNK];
        Self { delta: zeros(), delta_u: zeros(), value: zeros() }
    }

    /// Δ, Δ u and D u of the steps `range` of row `b`, for the channels from `c` on.
    #[inline(always)]
    pub fn prepare(&mut self, simd: S, scan: &Scan<'_>, b: usize, range: Range<usize>, c: usize) {
        let bias = simd::load(simd, scan.inputs.delta_bias, c);
        let skip = simd::load(simd, scan.inputs.skip, c);
        for (i, t) in range.enumerate() {
            let u = simd::load(simd, scan.step(scan.inputs.u, b, t), c);
            let preact = simd.add_f32s(simd::load(simd, scan.step(scan.inputs.delta, b, t), c), bias);
            let (delta, _) = simd::softplus(simd, preact);
            self.delta[i] = delta;
            self.delta_u[i] = simd.mul_f32s(delta, u);
            self.value[i] = simd.mul_f32s(skip, u);
        }
    }
}

/// `G` rows of a matrix whose rows have `width` numbers, from row `n` on, at the channels from `c` on.
#[inline(always)]
pub(super) fn load_group<S: Simd, const G: usize>(simd: S, matrix: &[f32], width: usize, n: usize, c: usize) -> [S::f32s; G] {
    let mut rows = [simd.splat_f32s(0.0); G];
    for (i, row) in rows.iter_mut().enumerate() {
        *row = simd::load(simd, &matrix[(n + i) * width..][..width], c);
    }
    rows
}

/// The inverse of [`load_group`].
#[inline(always)]
pub(super) fn store_group<S: Simd, const G: usize>(simd: S, matrix: &mut [f32], width: usize, n: usize, c: usize, rows: [S::f32s; G]) {
    for (i, &row) in rows.iter().enumerate() {
        crate::simd::put(simd, &mut matrix[(n + i) * width..][..width], c, row);
    }
}
