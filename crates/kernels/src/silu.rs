//! SiLU: y = x σ(x), with slope σ(x) (1 + x (1 − σ(x))).
//!
//! Departure: backward takes the gradients of several readers of y and adds them up in the pass that writes d_x.

use crate::grid::SharedOut;
use crate::rows;
use crate::shape::{Out, expect_len};
use crate::simd::{self, Level, Simd, WithSimd, sigmoid};

/// Elements that are cut as one row.
const ROW: usize = 256;

/// y = x σ(x), element by element.
///
/// # Panics
/// When the lengths differ.
pub fn forward(x: &[f32], y: Out) {
    expect_len("y", y, x.len());
    let level = Level::current();
    let y = SharedOut::new(y);
    rows::for_each_block(x.len().div_ceil(ROW), ROW, 0, |range, _| {
        let at = range.start * ROW..(range.end * ROW).min(x.len());
        // SAFETY: blocks are disjoint.
        let y = unsafe { y.slice(at.start, at.len()) };
        level.run(Forward { x: &x[at], y });
    });
}

/// Gradient of [`forward`], given those of everyone who read y; one that is `None` is 0.
///
/// # Panics
/// When the lengths differ.
pub fn backward<const N: usize>(x: &[f32], d_y: [Option<&[f32]>; N], d_x: Out) {
    d_y.iter().flatten().for_each(|d_y| expect_len("d_y", d_y, x.len()));
    expect_len("d_x", d_x, x.len());
    let level = Level::current();
    let d_x = SharedOut::new(d_x);
    rows::for_each_block(x.len().div_ceil(ROW), ROW, 0, |range, _| {
        let at = range.start * ROW..(range.end * ROW).min(x.len());
        // SAFETY: blocks are disjoint.
        let d_x = unsafe { d_x.slice(at.start, at.len()) };
        level.run(Backward { x: &x[at.clone()], d_y: d_y.map(|d_y| d_y.map(|d_y| &d_y[at.clone()])), d_x });
    });
}

/// SiLU(x) and its slope.
#[inline(always)]
pub(crate) fn silu<S: Simd>(simd: S, x: S::f32s) -> (S::f32s, S::f32s) {
    let gate = sigmoid(simd, x);
    let value = simd.mul_f32s(x, gate);
    (value, simd.mul_add_e_f32s(value, simd.sub_f32s(simd.splat_f32s(1.0), gate), gate))
}

struct Forward<'a> {
    x: &'a [f32],
    y: Out<'a>,
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for at in (0..self.x.len()).step_by(S::F32_LANES) {
            let (value, _) = silu(simd, simd::load(simd, self.x, at));
            simd::store(simd, self.y, at, value);
        }
    }
}

struct Backward<'a, const N: usize> {
    x: &'a [f32],
    d_y: [Option<&'a [f32]>; N],
    d_x: Out<'a>,
}

impl<const N: usize> WithSimd for Backward<'_, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for at in (0..self.x.len()).step_by(S::F32_LANES) {
            let mut d_y = simd.splat_f32s(0.0);
            for more in &self.d_y {
                d_y = rows::plus(simd, d_y, *more, at);
            }
            let (_, slope) = silu(simd, simd::load(simd, self.x, at));
            simd::store(simd, self.d_x, at, simd.mul_f32s(d_y, slope));
        }
    }
}
