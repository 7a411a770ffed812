//! The end of an mLSTM block: out = (y + s ⊙ c) ⊙ SiLU(z), with a learned skip s for each channel.
//!
//! With δ = d_out: d_y = δ SiLU(z);  d_c = s d_y;  d_s = Σ c d_y;  d_z = δ (y + s c) SiLU'(z).

use crate::out::Out;
use crate::rows::{self, Formula, Input, Output};
use crate::shape::{elements, expect_len};
use crate::silu::silu;
use crate::simd::{Simd, mul_add};

/// The inputs: `y`, `c` and `z` `[rows, width]`, `skip` `[width]`.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// y.
    pub y: &'a [f32],
    /// c, which is added with weight s.
    pub c: &'a [f32],
    /// s.
    pub skip: &'a [f32],
    /// z, the gate.
    pub z: &'a [f32],
}

/// The outputs of [`backward`], in the shapes of [`Inputs`].
#[derive(Debug)]
pub struct Gradients<'a> {
    /// Of y.
    pub d_y: Out<'a>,
    /// Of c.
    pub d_c: Out<'a>,
    /// Of the skip.
    pub d_skip: Out<'a>,
    /// Of z.
    pub d_z: Out<'a>,
}

impl<'a> Inputs<'a> {
    /// y, c, z, skip.
    fn check(&self, rows: usize) -> [Input<'a>; 4] {
        let width = self.skip.len();
        let [y, c, z] = [("y", self.y), ("c", self.c), ("z", self.z)].map(|(name, x)| {
            expect_len(name, x, elements([rows, width]));
            Input::matrix(x, width)
        });
        [y, c, z, Input::row(self.skip)]
    }
}

/// Writes the output `[rows, width]`.
///
/// # Panics
/// When a length does not fit.
pub fn forward(rows: usize, inputs: Inputs, out: Out) {
    let (width, inputs) = (inputs.skip.len(), inputs.check(rows));
    out.expect_len("out", elements([rows, width]));
    rows::apply(Gate, [rows, width], inputs, [Output::matrix(out, width)], []);
}

/// Gradients of [`forward`], given `d_out` `[rows, width]`.
///
/// # Panics
/// When a length does not fit.
pub fn backward(rows: usize, inputs: Inputs, d_out: &[f32], gradients: Gradients) {
    let (width, [y, c, z, skip]) = (inputs.skip.len(), inputs.check(rows));
    expect_len("d_out", d_out, elements([rows, width]));
    for (name, out) in [("d_y", &gradients.d_y), ("d_c", &gradients.d_c), ("d_z", &gradients.d_z)] {
        out.expect_len(name, elements([rows, width]));
    }
    gradients.d_skip.expect_len("d_skip", width);
    let outputs = [gradients.d_y, gradients.d_c, gradients.d_z].map(|out| Output::matrix(out, width));
    rows::apply(Backward, [rows, width], [y, c, z, skip, Input::matrix(d_out, width)], outputs, [Some(gradients.d_skip)]);
}

#[derive(Clone, Copy)]
struct Gate;

impl Formula<4, 1, 0> for Gate {
    #[inline(always)]
    fn at<S: Simd>(self, simd: S, [y, c, z, skip]: [S::f32s; 4]) -> ([S::f32s; 1], [S::f32s; 0]) {
        ([simd.mul_f32s(mul_add(simd, skip, c, y), silu(simd, z).0)], [])
    }
}

#[derive(Clone, Copy)]
struct Backward;

impl Formula<5, 3, 1> for Backward {
    /// Gradients of y, c and z; terms of that of the skip.
    #[inline(always)]
    fn at<S: Simd>(self, simd: S, [y, c, z, skip, d]: [S::f32s; 5]) -> ([S::f32s; 3], [S::f32s; 1]) {
        let (gate, slope) = silu(simd, z);
        let d_sum = simd.mul_f32s(d, gate);
        let d_z = simd.mul_f32s(simd.mul_f32s(d, mul_add(simd, skip, c, y)), slope);
        ([d_sum, simd.mul_f32s(d_sum, skip), d_z], [simd.mul_f32s(d_sum, c)])
    }
}
