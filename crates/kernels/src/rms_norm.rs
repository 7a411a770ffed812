//! RMSNorm with the gain stored around 1: y = u ⊙ (1 + γ), u = x / r, r = max(‖x‖₂, 1e-12) / √width, over the last dimension (Zhang and
//! Sennrich, "Root mean square layer normalization", 2019).
//!
//! Backward, with s = 1 + γ and δ = d_y:
//!
//! ```text
//! d_x = (s δ − u mean(s δ u)) / r;   d_γ = Σ δ u      (sum over rows)
//! ```
//!
//! If the norm is at its floor it is a constant, and the second term of d_x is absent. Numbers whose squares overflow give NaN, never a
//! silent zero: if the sum of squares of a row is not finite, all of its outputs are NaN, as if it contained a NaN.

pub use crate::norm::inverse_root;
use crate::norm::{self, Measure, Norm};
use crate::out::Out;
use crate::shape::expect_len;
use crate::simd::{Simd, sqrt};

/// Smallest norm a row is divided by.
pub const FLOOR: f32 = 1e-12;

/// The inputs of the norm.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// `[rows, width]`.
    pub x: &'a [f32],
    /// γ `[width]`; the gain is 1 + γ.
    pub gamma: &'a [f32],
}

/// The outputs of [`backward`], in the shapes of [`Inputs`].
#[derive(Debug)]
pub struct Gradients<'a> {
    /// Of x.
    pub d_x: Out<'a>,
    /// Of γ.
    pub d_gamma: Out<'a>,
}

impl<'a> Inputs<'a> {
    fn check(&self, rows: usize, width: usize) -> norm::Inputs<'a> {
        expect_len("gamma", self.gamma, width);
        norm::Inputs { rows, parts: 1, x: self.x, gain: self.gamma }
    }
}

/// y = RMSNorm(x) `[rows, width]`.
///
/// # Panics
/// When a length does not fit.
pub fn forward(rows: usize, width: usize, inputs: Inputs, y: Out) {
    norm::forward(RootMeanSquare, inputs.check(rows, width), &[], y);
}

/// Gradients of [`forward`], given `d_y` `[rows, width]`; `d_residual` `[rows, width]`, the gradient that reaches `x` by another path, is
/// added to that of x.
///
/// # Panics
/// When a length does not fit.
pub fn backward(rows: usize, width: usize, inputs: Inputs, d_y: &[f32], d_residual: Option<&[f32]>, gradients: Gradients) {
    norm::backward(RootMeanSquare, inputs.check(rows, width), d_y, d_residual, gradients.d_x, gradients.d_gamma, None);
}

#[derive(Clone, Copy)]
struct RootMeanSquare;

impl Norm for RootMeanSquare {
    const CENTRED: bool = false;
    const AROUND_ONE: bool = true;

    #[inline(always)]
    fn measure<S: Simd>(self, simd: S, row: &[f32]) -> Measure {
        let squares = norm::sum::<S, true>(simd, row, 0.0);
        let norm = sqrt(squares);
        let constant = norm < FLOOR;
        let inverse = sqrt(row.len() as f32) / if constant { FLOOR } else { norm };
        Measure { centre: 0.0, inverse: norm::of_finite(squares, inverse), constant }
    }
}
