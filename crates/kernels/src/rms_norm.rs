//! RMSNorm with the gain stored around 1: y = u ⊙ (1 + γ), u = x / r, r = max(‖x‖₂, 1e-12) / √width, over the last dimension.
//!
//! Backward, with s = 1 + γ and δ = d_y:
//!
//! ```text
//! d_x = (s δ − u mean(s δ u)) / r;   d_γ = Σ δ u      (sum over rows)
//! ```
//!
//! Where the norm is at its floor it is a constant, and the second term of d_x is absent.

use crate::grid::SharedOut;
use crate::rows::{self, accumulate, plus};
use crate::shape::{Out, elements, expect_len};
use crate::simd::{self, Level, Simd, WithSimd};

/// Smallest norm a row is divided by.
pub const FLOOR: f32 = 1e-12;

/// y = RMSNorm(x).
///
/// # Shapes
/// - `x`, `y`: `[rows, width]`
/// - `gamma`: `[width]`, the gain is `1 + gamma`
///
/// # Panics
/// When a length does not fit.
pub fn forward(rows: usize, width: usize, x: &[f32], gamma: &[f32], y: Out) {
    check(rows, width, x, gamma);
    expect_len("y", y, elements([rows, width]));
    let level = Level::current();
    let y = SharedOut::new(y);
    rows::for_each_block(rows, width, 0, |range, _| {
        let at = range.start * width..range.end * width;
        // SAFETY: blocks are disjoint.
        let y = unsafe { y.slice(at.start, at.len()) };
        level.run(Forward { width, x: &x[at], gamma, y });
    });
}

/// Gradients of [`forward`] with respect to `x` and `gamma`; `d_residual`, what reaches `x` by another way, is added to `d_x`.
///
/// # Shapes
/// - `x`, `d_y`, `d_residual`, `d_x`: `[rows, width]`
/// - `gamma`, `d_gamma`: `[width]`
///
/// # Panics
/// When a length does not fit.
#[allow(clippy::too_many_arguments, reason = "the kernels' flat convention: inputs, then outputs")]
pub fn backward(rows: usize, width: usize, x: &[f32], gamma: &[f32], d_y: &[f32], d_residual: Option<&[f32]>, d_x: Out, d_gamma: Out) {
    check(rows, width, x, gamma);
    expect_len("d_y", d_y, elements([rows, width]));
    if let Some(d_residual) = d_residual {
        expect_len("d_residual", d_residual, elements([rows, width]));
    }
    expect_len("d_x", d_x, elements([rows, width]));
    expect_len("d_gamma", d_gamma, width);
    let level = Level::current();
    let d_x = SharedOut::new(d_x);
    let partial = rows::for_each_block(rows, width, width, |range, d_gamma| {
        let at = range.start * width..range.end * width;
        // SAFETY: blocks are disjoint.
        let d_x = unsafe { d_x.slice(at.start, at.len()) };
        let d_residual = d_residual.map(|d| &d[at.clone()]);
        level.run(Backward { width, x: &x[at.clone()], gamma, d_y: &d_y[at], d_residual, d_x, d_gamma });
    });
    rows::combine(&partial, width, 0, d_gamma);
}

fn check(rows: usize, width: usize, x: &[f32], gamma: &[f32]) {
    expect_len("x", x, elements([rows, width]));
    expect_len("gamma", gamma, width);
}

/// 1 / r of a row, and whether its norm is at the floor.
#[inline(always)]
fn inverse_rms<S: Simd>(simd: S, row: &[f32]) -> (f32, bool) {
    let lanes = S::F32_LANES;
    let whole = row.len() / (4 * lanes) * (4 * lanes);
    let mut sums = [simd.splat_f32s(0.0); 4];
    for at in (0..whole).step_by(4 * lanes) {
        for (k, sum) in sums.iter_mut().enumerate() {
            let x = simd::load(simd, row, at + k * lanes);
            *sum = simd.mul_add_e_f32s(x, x, *sum);
        }
    }
    for at in (whole..row.len()).step_by(lanes) {
        let x = simd::load(simd, row, at);
        sums[0] = simd.mul_add_e_f32s(x, x, sums[0]);
    }
    let [a, b, c, d] = sums;
    let norm = libm::sqrtf(simd.reduce_sum_f32s(simd.add_f32s(simd.add_f32s(a, b), simd.add_f32s(c, d))));
    let floored = norm < FLOOR;
    (libm::sqrtf(row.len() as f32) / if floored { FLOOR } else { norm }, floored)
}

struct Forward<'a> {
    width: usize,
    x: &'a [f32],
    gamma: &'a [f32],
    y: Out<'a>,
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let width = self.width;
        for (x, y) in self.x.chunks_exact(width).zip(self.y.chunks_exact_mut(width)) {
            let inverse = simd.splat_f32s(inverse_rms(simd, x).0);
            for at in (0..width).step_by(S::F32_LANES) {
                let u = simd.mul_f32s(simd::load(simd, x, at), inverse);
                simd::store(simd, y, at, simd.mul_add_e_f32s(u, simd::load(simd, self.gamma, at), u));
            }
        }
    }
}

struct Backward<'a> {
    width: usize,
    x: &'a [f32],
    gamma: &'a [f32],
    d_y: &'a [f32],
    d_residual: Option<&'a [f32]>,
    d_x: Out<'a>,
    d_gamma: &'a mut [f32],
}

impl WithSimd for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let width = self.width;
        let rows = self.x.chunks_exact(width).zip(self.d_y.chunks_exact(width)).zip(self.d_x.chunks_exact_mut(width));
        for (row, ((x, d_y), d_x)) in rows.enumerate() {
            let d_residual = self.d_residual.map(|d| &d[row * width..][..width]);
            let (inverse, floored) = inverse_rms(simd, x);
            let inverse = simd.splat_f32s(inverse);
            let mut along = simd.splat_f32s(0.0);
            for at in (0..width).step_by(S::F32_LANES) {
                let d = simd::load(simd, d_y, at);
                let du = simd.mul_f32s(d, simd.mul_f32s(simd::load(simd, x, at), inverse));
                along = simd.add_f32s(along, simd.mul_add_e_f32s(du, simd::load(simd, self.gamma, at), du));
                accumulate(simd, self.d_gamma, at, du);
            }
            let along = if floored { 0.0 } else { simd.reduce_sum_f32s(along) / width as f32 };
            let along = simd.splat_f32s(along);
            for at in (0..width).step_by(S::F32_LANES) {
                let d = simd::load(simd, d_y, at);
                let scaled = simd.mul_add_e_f32s(d, simd::load(simd, self.gamma, at), d);
                let u = simd.mul_f32s(simd::load(simd, x, at), inverse);
                let d = simd.mul_f32s(simd.sub_f32s(scaled, simd.mul_f32s(u, along)), inverse);
                simd::store(simd, d_x, at, plus(simd, d, d_residual, at));
            }
        }
    }
}
