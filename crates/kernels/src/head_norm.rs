//! Head-wise norm: LayerNorm of the channels of each head apart, with a gain 1 + w for each channel and no bias.
//!
//! ```text
//! y = (1 + w) ⊙ u,  u = (x − mean(x)) / std(x),  std(x) = √(variance + ε)         over the channels of a head
//! d_x = (s δ − mean(s δ) − u mean(s δ u)) / std;   d_w = Σ δ u                    with s = 1 + w, δ = d_y
//! ```

use crate::grid::SharedOut;
use crate::layer_norm::statistics;
use crate::rows::{self, accumulate};
use crate::shape::{Out, elements, expect_len};
use crate::simd::{self, Level, Simd, WithSimd};

/// y of all heads.
///
/// # Shapes
/// - `x`, `y`: `[rows, heads · e]`
/// - `weight`: `[heads · e]`
///
/// # Panics
/// When a length does not fit.
pub fn forward(rows: usize, heads: usize, x: &[f32], weight: &[f32], eps: f32, y: Out) {
    let width = weight.len();
    check(rows, heads, width, x);
    expect_len("y", y, elements([rows, width]));
    let level = Level::current();
    let y = SharedOut::new(y);
    rows::for_each_block(rows, width, 0, |range, _| {
        let at = range.start * width..range.end * width;
        // SAFETY: blocks are disjoint.
        let y = unsafe { y.slice(at.start, at.len()) };
        level.run(Forward { heads, x: &x[at], weight, eps, y });
    });
}

/// Gradients of [`forward`] with respect to `x` and `weight`.
///
/// # Shapes
/// - `x`, `d_y`, `d_x`: `[rows, heads · e]`
/// - `weight`, `d_weight`: `[heads · e]`
///
/// # Panics
/// When a length does not fit.
#[allow(clippy::too_many_arguments, reason = "the kernels' flat convention: inputs, then outputs")]
pub fn backward(rows: usize, heads: usize, x: &[f32], weight: &[f32], eps: f32, d_y: &[f32], d_x: Out, d_weight: Out) {
    let width = weight.len();
    check(rows, heads, width, x);
    expect_len("d_y", d_y, elements([rows, width]));
    expect_len("d_x", d_x, elements([rows, width]));
    expect_len("d_weight", d_weight, width);
    let level = Level::current();
    let d_x = SharedOut::new(d_x);
    let partial = rows::for_each_block(rows, width, width, |range, d_weight| {
        let at = range.start * width..range.end * width;
        // SAFETY: blocks are disjoint.
        let d_x = unsafe { d_x.slice(at.start, at.len()) };
        level.run(Backward { heads, x: &x[at.clone()], weight, eps, d_y: &d_y[at], d_x, d_weight });
    });
    rows::combine(&partial, width, 0, d_weight);
}

fn check(rows: usize, heads: usize, width: usize, x: &[f32]) {
    assert!(heads > 0 && width.is_multiple_of(heads), "{heads} heads do not divide a width of {width}");
    expect_len("x", x, elements([rows, width]));
}

struct Forward<'a> {
    heads: usize,
    x: &'a [f32],
    weight: &'a [f32],
    eps: f32,
    y: Out<'a>,
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let width = self.weight.len() / self.heads;
        let one = simd.splat_f32s(1.0);
        let parts = self.x.chunks_exact(width).zip(self.y.chunks_exact_mut(width));
        for (part, (x, y)) in parts.enumerate() {
            let weight = &self.weight[part % self.heads * width..][..width];
            let (mean, inverse) = statistics(simd, x, self.eps);
            let (mean, inverse) = (simd.splat_f32s(mean), simd.splat_f32s(inverse));
            for at in (0..width).step_by(S::F32_LANES) {
                let u = simd.mul_f32s(simd.sub_f32s(simd::load(simd, x, at), mean), inverse);
                simd::store(simd, y, at, simd.mul_f32s(u, simd.add_f32s(one, simd::load(simd, weight, at))));
            }
        }
    }
}

struct Backward<'a> {
    heads: usize,
    x: &'a [f32],
    weight: &'a [f32],
    eps: f32,
    d_y: &'a [f32],
    d_x: Out<'a>,
    d_weight: &'a mut [f32],
}

impl WithSimd for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let width = self.weight.len() / self.heads;
        let one = simd.splat_f32s(1.0);
        let parts = self.x.chunks_exact(width).zip(self.d_y.chunks_exact(width)).zip(self.d_x.chunks_exact_mut(width));
        for (part, ((x, d_y), d_x)) in parts.enumerate() {
            let from = part % self.heads * width;
            let (weight, d_weight) = (&self.weight[from..][..width], &mut self.d_weight[from..][..width]);
            let (mean, inverse) = statistics(simd, x, self.eps);
            let (mean, inverse) = (simd.splat_f32s(mean), simd.splat_f32s(inverse));
            let (mut sum, mut along) = (simd.splat_f32s(0.0), simd.splat_f32s(0.0));
            for at in (0..width).step_by(S::F32_LANES) {
                let u = simd.mul_f32s(simd.sub_f32s(simd::load(simd, x, at), mean), inverse);
                let d = simd::load(simd, d_y, at);
                let scaled = simd.mul_f32s(d, simd.add_f32s(one, simd::load(simd, weight, at)));
                sum = simd.add_f32s(sum, scaled);
                along = simd.mul_add_e_f32s(scaled, u, along);
                accumulate(simd, d_weight, at, simd.mul_f32s(d, u));
            }
            let sum = simd.splat_f32s(simd.reduce_sum_f32s(sum) / width as f32);
            let along = simd.splat_f32s(simd.reduce_sum_f32s(along) / width as f32);
            for at in (0..width).step_by(S::F32_LANES) {
                let u = simd.mul_f32s(simd.sub_f32s(simd::load(simd, x, at), mean), inverse);
                let scaled = simd.mul_f32s(simd::load(simd, d_y, at), simd.add_f32s(one, simd::load(simd, weight, at)));
                let d = simd.sub_f32s(simd.sub_f32s(scaled, sum), simd.mul_f32s(u, along));
                simd::store(simd, d_x, at, simd.mul_f32s(d, inverse));
            }
        }
    }
}
