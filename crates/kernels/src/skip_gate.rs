//! The end of an mLSTM block: out = (y + s ⊙ c) ⊙ SiLU(z), with a learned skip s for each channel.
//!
//! With δ = d_out: d_y = δ SiLU(z);  d_c = s d_y;  d_s = Σ c d_y;  d_z = δ (y + s c) SiLU'(z).

use crate::grid::SharedOut;
use crate::rows::{self, accumulate};
use crate::shape::{Out, elements, expect_len};
use crate::silu::silu;
use crate::simd::{Level, Simd, WithSimd, load, store};

/// The output of all rows.
///
/// # Shapes
/// - `y`, `c`, `z`, `out`: `[rows, width]`
/// - `skip`: `[width]`
///
/// # Panics
/// When a length does not fit.
pub fn forward(rows: usize, y: &[f32], c: &[f32], skip: &[f32], z: &[f32], out: Out) {
    let width = skip.len();
    [y, c, z].iter().for_each(|x| expect_len("y, c or z", x, elements([rows, width])));
    expect_len("out", out, elements([rows, width]));
    let level = Level::current();
    let out = SharedOut::new(out);
    rows::for_each_block(rows, width, 0, |range, _| {
        let at = range.start * width..range.end * width;
        // SAFETY: blocks are disjoint.
        let out = unsafe { out.slice(at.start, at.len()) };
        level.run(Forward { inputs: [y, c, z].map(|x| &x[at.clone()]), skip, out });
    });
}

/// Gradients of [`forward`] with respect to `y`, `c`, `z` (in `d_inputs`) and `skip`.
///
/// # Shapes
/// As in [`forward`]; `d_x` has the shape of `x`.
///
/// # Panics
/// When a length does not fit.
#[allow(clippy::too_many_arguments, reason = "the kernels' flat convention: inputs, then outputs")]
pub fn backward(rows: usize, y: &[f32], c: &[f32], skip: &[f32], z: &[f32], d_out: &[f32], d_inputs: [Out; 3], d_skip: Out) {
    let width = skip.len();
    [y, c, z, d_out].iter().for_each(|x| expect_len("y, c, z or d_out", x, elements([rows, width])));
    d_inputs.iter().for_each(|d| expect_len("a gradient of y, c or z", d, elements([rows, width])));
    expect_len("d_skip", d_skip, width);
    let level = Level::current();
    let d_inputs = d_inputs.map(SharedOut::new);
    let partial = rows::for_each_block(rows, width, width, |range, d_skip| {
        let at = range.start * width..range.end * width;
        // SAFETY: blocks are disjoint.
        let d_inputs = d_inputs.map(|d| unsafe { d.slice(at.start, at.len()) });
        level.run(Backward { inputs: [y, c, z, d_out].map(|x| &x[at.clone()]), skip, d_inputs, d_skip });
    });
    rows::combine(&partial, width, 0, d_skip);
}

struct Forward<'a> {
    /// y, c, z.
    inputs: [&'a [f32]; 3],
    skip: &'a [f32],
    out: Out<'a>,
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (width, [y, c, z]) = (self.skip.len(), self.inputs);
        for (row, out) in self.out.chunks_exact_mut(width).enumerate() {
            let part = row * width..(row + 1) * width;
            let (y, c, z) = (&y[part.clone()], &c[part.clone()], &z[part]);
            for at in (0..width).step_by(S::F32_LANES) {
                let sum = simd.mul_add_e_f32s(load(simd, self.skip, at), load(simd, c, at), load(simd, y, at));
                store(simd, out, at, simd.mul_f32s(sum, silu(simd, load(simd, z, at)).0));
            }
        }
    }
}

struct Backward<'a> {
    /// y, c, z, d_out.
    inputs: [&'a [f32]; 4],
    skip: &'a [f32],
    d_inputs: [Out<'a>; 3],
    d_skip: &'a mut [f32],
}

impl WithSimd for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (width, [y, c, z, d_out], [d_y, d_c, d_z]) = (self.skip.len(), self.inputs, self.d_inputs);
        for row in 0..y.len() / width {
            let part = row * width..(row + 1) * width;
            let (y, c, z, d_out) = (&y[part.clone()], &c[part.clone()], &z[part.clone()], &d_out[part.clone()]);
            let (d_y, d_c, d_z) = (&mut d_y[part.clone()], &mut d_c[part.clone()], &mut d_z[part]);
            for at in (0..width).step_by(S::F32_LANES) {
                let (skip, c, d) = (load(simd, self.skip, at), load(simd, c, at), load(simd, d_out, at));
                let (gate, slope) = silu(simd, load(simd, z, at));
                let sum = simd.mul_add_e_f32s(skip, c, load(simd, y, at));
                let d_sum = simd.mul_f32s(d, gate);
                store(simd, d_y, at, d_sum);
                store(simd, d_c, at, simd.mul_f32s(d_sum, skip));
                store(simd, d_z, at, simd.mul_f32s(simd.mul_f32s(d, sum), slope));
                accumulate(simd, self.d_skip, at, simd.mul_f32s(d_sum, c));
            }
        }
    }
}
