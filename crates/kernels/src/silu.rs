//! SiLU: y = x σ(x); d_x = d_y σ(x) (1 + x (1 − σ(x))).

use crate::grid::SharedOut;
use crate::rows;
use crate::shape::{Out, expect_len};
use crate::simd::{self, Level, Simd, WithSimd};
use crate::stepwise::sigmoid_pair;

/// Elements that are worked on together.
const WIDTH: usize = 64;

/// y of every element.
///
/// # Panics
/// When the lengths differ.
pub fn forward(x: &[f32], y: Out) {
    expect_len("y", y, x.len());
    for_each(x.len(), SharedOut::new(y), |level, range, y| level.run(Forward(&x[range], y)));
}

/// Gradient of [`forward`].
///
/// # Panics
/// When the lengths differ.
pub fn backward(x: &[f32], d_y: &[f32], d_x: Out) {
    expect_len("d_y", d_y, x.len());
    expect_len("d_x", d_x, x.len());
    for_each(x.len(), SharedOut::new(d_x), |level, range, d_x| level.run(Backward(&x[range.clone()], &d_y[range], d_x)));
}

fn for_each(len: usize, out: SharedOut, work: impl Fn(Level, core::ops::Range<usize>, Out) + Sync + Send) {
    let level = Level::current();
    rows::for_each_block(len.div_ceil(WIDTH), WIDTH, 0, |rows, _| {
        let range = rows.start * WIDTH..(rows.end * WIDTH).min(len);
        // SAFETY: blocks are disjoint.
        work(level, range.clone(), unsafe { out.slice(range.start, range.len()) });
    });
}

/// x σ(x) and its slope.
#[inline(always)]
pub(crate) fn silu<S: Simd>(simd: S, x: S::f32s) -> (S::f32s, S::f32s) {
    let [p, q] = sigmoid_pair(simd, x);
    let y = simd.mul_f32s(x, p);
    (y, simd.mul_add_e_f32s(y, q, p))
}

struct Forward<'a>(&'a [f32], Out<'a>);

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for at in (0..self.0.len()).step_by(S::F32_LANES) {
            let x = simd::load(simd, self.0, at);
            simd::store(simd, self.1, at, simd.mul_f32s(x, simd::sigmoid(simd, x)));
        }
    }
}

struct Backward<'a>(&'a [f32], &'a [f32], Out<'a>);

impl WithSimd for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for at in (0..self.0.len()).step_by(S::F32_LANES) {
            let (_, slope) = silu(simd, simd::load(simd, self.0, at));
            simd::store(simd, self.2, at, simd.mul_f32s(simd::load(simd, self.1, at), slope));
        }
    }
}
