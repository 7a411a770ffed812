//! LayerNorm: y = γ ⊙ u + β, u = (x − mean(x)) / std(x), std(x) = √(variance + ε), over the last dimension.
//!
//! Backward, with s = γ and δ = d_y:
//!
//! ```text
//! d_x = (s δ − mean(s δ) − u mean(s δ u)) / std;   d_γ = Σ δ u;   d_β = Σ δ      (sums over rows)
//! ```
//!
//! Nothing but x is kept from the forward pass: mean and std are taken again while the row is in the nearest cache.

use crate::grid::SharedOut;
use crate::rows::{self, accumulate, load_or, plus};
use crate::shape::{Out, elements, expect_len};
use crate::simd::{self, Level, Simd, WithSimd};

/// y = LayerNorm(x).
///
/// # Shapes
/// - `x`, `y`: `[rows, width]`
/// - `gamma`, `beta`: `[width]`
///
/// # Panics
/// When a length does not fit.
pub fn forward(rows: usize, width: usize, x: &[f32], gamma: &[f32], beta: &[f32], eps: f32, y: Out) {
    check(rows, width, x, gamma);
    expect_len("beta", beta, width);
    expect_len("y", y, elements([rows, width]));
    let level = Level::current();
    let y = SharedOut::new(y);
    rows::for_each_block(rows, width, 0, |range, _| {
        let at = range.start * width..range.end * width;
        // SAFETY: blocks are disjoint.
        let y = unsafe { y.slice(at.start, at.len()) };
        level.run(Forward { width, x: &x[at], gamma, beta, eps, y });
    });
}

/// Gradients of [`forward`] with respect to `x`, `gamma` and `beta`; `d_residual`, what reaches `x` by another way, is added to `d_x`.
///
/// # Shapes
/// - `x`, `d_y`, `d_residual`, `d_x`: `[rows, width]`
/// - `gamma`, `d_gamma`, `d_beta`: `[width]`
///
/// # Panics
/// When a length does not fit.
#[allow(clippy::too_many_arguments, reason = "the kernels' flat convention: inputs, then outputs")]
pub fn backward(
    rows: usize,
    width: usize,
    x: &[f32],
    gamma: &[f32],
    eps: f32,
    d_y: &[f32],
    d_residual: Option<&[f32]>,
    d_x: Out,
    d_gamma: Out,
    d_beta: Out,
) {
    check(rows, width, x, gamma);
    expect_len("d_y", d_y, elements([rows, width]));
    if let Some(d_residual) = d_residual {
        expect_len("d_residual", d_residual, elements([rows, width]));
    }
    expect_len("d_x", d_x, elements([rows, width]));
    expect_len("d_gamma", d_gamma, width);
    expect_len("d_beta", d_beta, width);
    let level = Level::current();
    let d_x = SharedOut::new(d_x);
    let partial = rows::for_each_block(rows, width, 2 * width, |range, sums| {
        let at = range.start * width..range.end * width;
        // SAFETY: blocks are disjoint.
        let d_x = unsafe { d_x.slice(at.start, at.len()) };
        let (d_gamma, d_beta) = sums.split_at_mut(width);
        let d_residual = d_residual.map(|d| &d[at.clone()]);
        level.run(Backward { width, x: &x[at.clone()], gamma, eps, d_y: &d_y[at], d_residual, d_x, d_gamma, d_beta });
    });
    rows::combine(&partial, 2 * width, 0, d_gamma);
    rows::combine(&partial, 2 * width, width, d_beta);
}

fn check(rows: usize, width: usize, x: &[f32], gamma: &[f32]) {
    expect_len("x", x, elements([rows, width]));
    expect_len("gamma", gamma, width);
}

/// Mean and 1 / √(variance + ε) of a row.
#[inline(always)]
pub(crate) fn statistics<S: Simd>(simd: S, row: &[f32], eps: f32) -> (f32, f32) {
    let n = row.len() as f32;
    let lanes = S::F32_LANES;
    let whole = row.len() / (4 * lanes) * (4 * lanes);
    let mut sums = [simd.splat_f32s(0.0); 4];
    for at in (0..whole).step_by(4 * lanes) {
        for (k, sum) in sums.iter_mut().enumerate() {
            *sum = simd.add_f32s(*sum, simd::load(simd, row, at + k * lanes));
        }
    }
    for at in (whole..row.len()).step_by(lanes) {
        sums[0] = simd.add_f32s(sums[0], simd::load(simd, row, at));
    }
    let mean = reduce(simd, sums) / n;
    let center = simd.splat_f32s(mean);
    let mut sums = [simd.splat_f32s(0.0); 4];
    for at in (0..whole).step_by(4 * lanes) {
        for (k, sum) in sums.iter_mut().enumerate() {
            let d = simd.sub_f32s(simd::load(simd, row, at + k * lanes), center);
            *sum = simd.mul_add_e_f32s(d, d, *sum);
        }
    }
    for at in (whole..row.len()).step_by(lanes) {
        let d = simd.sub_f32s(load_or(simd, row, at, mean), center);
        sums[0] = simd.mul_add_e_f32s(d, d, sums[0]);
    }
    (mean, 1.0 / libm::sqrtf(reduce(simd, sums) / n + eps))
}

/// Sum of the lanes of four vectors.
#[inline(always)]
fn reduce<S: Simd>(simd: S, [a, b, c, d]: [S::f32s; 4]) -> f32 {
    simd.reduce_sum_f32s(simd.add_f32s(simd.add_f32s(a, b), simd.add_f32s(c, d)))
}

struct Forward<'a> {
    width: usize,
    x: &'a [f32],
    gamma: &'a [f32],
    beta: &'a [f32],
    eps: f32,
    y: Out<'a>,
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let width = self.width;
        for (x, y) in self.x.chunks_exact(width).zip(self.y.chunks_exact_mut(width)) {
            let (mean, inverse) = statistics(simd, x, self.eps);
            let (mean, inverse) = (simd.splat_f32s(mean), simd.splat_f32s(inverse));
            for at in (0..width).step_by(S::F32_LANES) {
                let u = simd.mul_f32s(simd.sub_f32s(simd::load(simd, x, at), mean), inverse);
                let value = simd.mul_add_e_f32s(u, simd::load(simd, self.gamma, at), simd::load(simd, self.beta, at));
                simd::store(simd, y, at, value);
            }
        }
    }
}

struct Backward<'a> {
    width: usize,
    x: &'a [f32],
    gamma: &'a [f32],
    eps: f32,
    d_y: &'a [f32],
    d_residual: Option<&'a [f32]>,
    d_x: Out<'a>,
    d_gamma: &'a mut [f32],
    d_beta: &'a mut [f32],
}

impl WithSimd for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let width = self.width;
        let rows = self.x.chunks_exact(width).zip(self.d_y.chunks_exact(width)).zip(self.d_x.chunks_exact_mut(width));
        for (row, ((x, d_y), d_x)) in rows.enumerate() {
            let d_residual = self.d_residual.map(|d| &d[row * width..][..width]);
            let (mean, inverse) = statistics(simd, x, self.eps);
            let (mean, inverse) = (simd.splat_f32s(mean), simd.splat_f32s(inverse));
            let mut sum = simd.splat_f32s(0.0);
            let mut along = simd.splat_f32s(0.0);
            for at in (0..width).step_by(S::F32_LANES) {
                let u = simd.mul_f32s(simd.sub_f32s(simd::load(simd, x, at), mean), inverse);
                let d = simd::load(simd, d_y, at);
                let scaled = simd.mul_f32s(d, simd::load(simd, self.gamma, at));
                sum = simd.add_f32s(sum, scaled);
                along = simd.mul_add_e_f32s(scaled, u, along);
                accumulate(simd, self.d_gamma, at, simd.mul_f32s(d, u));
                accumulate(simd, self.d_beta, at, d);
            }
            let sum = simd.splat_f32s(simd.reduce_sum_f32s(sum) / width as f32);
            let along = simd.splat_f32s(simd.reduce_sum_f32s(along) / width as f32);
            for at in (0..width).step_by(S::F32_LANES) {
                let u = simd.mul_f32s(simd.sub_f32s(simd::load(simd, x, at), mean), inverse);
                let scaled = simd.mul_f32s(simd::load(simd, d_y, at), simd::load(simd, self.gamma, at));
                let d = simd.sub_f32s(simd.sub_f32s(scaled, sum), simd.mul_f32s(u, along));
                simd::store(simd, d_x, at, plus(simd, simd.mul_f32s(d, inverse), d_residual, at));
            }
        }
    }
}
