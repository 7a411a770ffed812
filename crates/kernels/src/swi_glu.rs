//! SwiGLU (Shazeer, "GLU variants improve transformer", 2020): y = value ⊙ SiLU(gate), rows of x being [value | gate].
//!
//! ```text
//! SiLU(u) = u σ(u)      SiLU'(u) = σ(u) (1 + u (1 − σ(u)))
//! d_value = d_y SiLU(gate)      d_gate = d_y value SiLU'(gate)
//! ```

use crate::grid::SharedOut;
use crate::rows;
use crate::shape::{Out, elements, expect_len};
use crate::simd::{self, Level, Simd, WithSimd};

/// y = value ⊙ SiLU(gate).
///
/// # Shapes
/// - `x`: `[rows, 2 · width]`, rows are [value | gate]
/// - `y`: `[rows, width]`
///
/// # Panics
/// When a length does not fit.
pub fn forward(rows: usize, width: usize, x: &[f32], y: Out) {
    expect_len("x", x, elements([rows, 2, width]));
    expect_len("y", y, elements([rows, width]));
    let level = Level::current();
    let y = SharedOut::new(y);
    rows::for_each_block(rows, width, 0, |range, _| {
        // SAFETY: blocks are disjoint.
        let y = unsafe { y.slice(range.start * width, range.len() * width) };
        level.run(Forward { width, x: &x[range.start * 2 * width..range.end * 2 * width], y });
    });
}

/// The gradient of [`forward`] with respect to `x`.
///
/// # Shapes
/// - `x`, `d_x`: `[rows, 2 · width]`
/// - `d_y`: `[rows, width]`
///
/// # Panics
/// When a length does not fit.
pub fn backward(rows: usize, width: usize, x: &[f32], d_y: &[f32], d_x: Out) {
    expect_len("x", x, elements([rows, 2, width]));
    expect_len("d_y", d_y, elements([rows, width]));
    expect_len("d_x", d_x, elements([rows, 2, width]));
    let level = Level::current();
    let d_x = SharedOut::new(d_x);
    rows::for_each_block(rows, width, 0, |range, _| {
        let at = range.start * 2 * width..range.end * 2 * width;
        // SAFETY: blocks are disjoint.
        let d_x = unsafe { d_x.slice(at.start, at.len()) };
        level.run(Backward { width, x: &x[at], d_y: &d_y[range.start * width..range.end * width], d_x });
    });
}

/// SiLU(u) and its slope.
#[inline(always)]
fn silu<S: Simd>(simd: S, u: S::f32s) -> (S::f32s, S::f32s) {
    let one = simd.splat_f32s(1.0);
    let sigma = simd::sigmoid(simd, u);
    let slope = simd.mul_f32s(sigma, simd.mul_add_e_f32s(u, simd.sub_f32s(one, sigma), one));
    (simd.mul_f32s(u, sigma), slope)
}

struct Forward<'a> {
    width: usize,
    x: &'a [f32],
    y: Out<'a>,
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for (x, y) in self.x.chunks_exact(2 * self.width).zip(self.y.chunks_exact_mut(self.width)) {
            let (value, gate) = x.split_at(self.width);
            for at in (0..self.width).step_by(S::F32_LANES) {
                let (active, _) = silu(simd, simd::load(simd, gate, at));
                simd::store(simd, y, at, simd.mul_f32s(simd::load(simd, value, at), active));
            }
        }
    }
}

struct Backward<'a> {
    width: usize,
    x: &'a [f32],
    d_y: &'a [f32],
    d_x: Out<'a>,
}

impl WithSimd for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let width = self.width;
        let rows = self.x.chunks_exact(2 * width).zip(self.d_y.chunks_exact(width)).zip(self.d_x.chunks_exact_mut(2 * width));
        for ((x, d_y), d_x) in rows {
            let ((value, gate), (d_value, d_gate)) = (x.split_at(width), d_x.split_at_mut(width));
            for at in (0..width).step_by(S::F32_LANES) {
                let (active, slope) = silu(simd, simd::load(simd, gate, at));
                let d = simd::load(simd, d_y, at);
                simd::store(simd, d_value, at, simd.mul_f32s(d, active));
                simd::store(simd, d_gate, at, simd.mul_f32s(simd.mul_f32s(d, simd::load(simd, value, at)), slope));
            }
        }
    }
}
