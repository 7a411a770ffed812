//! LayerNorm: y = γ ⊙ u + β, u = (x − mean(x)) / std(x), std(x) = √(variance + ε), over the last dimension (Ba, Kiros and Hinton, "Layer
//! normalization", 2016).
//!
//! Backward, with s = γ and δ = d_y:
//!
//! ```text
//! d_x = (s δ − mean(s δ) − u mean(s δ u)) / std;   d_γ = Σ δ u;   d_β = Σ δ      (sums over rows)
//! ```
//!
//! Numbers whose squares overflow give NaN, never a silent zero: if the variance of a row is not finite, all of its outputs are NaN.

use crate::norm::{self, Standard};
use crate::out::Out;
use crate::shape::expect_len;

/// The ε of every model's LayerNorms, head norms and BatchNorms.
pub const EPS: f32 = 1e-5;

/// The inputs of the norm.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// `[rows, width]`.
    pub x: &'a [f32],
    /// γ `[width]`.
    pub gamma: &'a [f32],
    /// ε.
    pub eps: f32,
}

/// The outputs of [`backward`].
#[derive(Debug)]
pub struct Gradients<'a> {
    /// Of x `[rows, width]`.
    pub d_x: Out<'a>,
    /// Of γ `[width]`.
    pub d_gamma: Out<'a>,
    /// Of β `[width]`.
    pub d_beta: Out<'a>,
}

impl<'a> Inputs<'a> {
    fn check(&self, rows: usize, width: usize) -> (Standard<false>, norm::Inputs<'a>) {
        expect_len("gamma", self.gamma, width);
        (Standard { eps: self.eps }, norm::Inputs { rows, parts: 1, x: self.x, gain: self.gamma })
    }
}

/// y = LayerNorm(x) `[rows, width]`, β being `beta` `[width]`.
///
/// # Panics
/// When a length does not fit.
pub fn forward(rows: usize, width: usize, inputs: Inputs, beta: &[f32], y: Out) {
    let (norm, inputs) = inputs.check(rows, width);
    expect_len("beta", beta, width);
    norm::forward(norm, inputs, beta, y);
}

/// Gradients of [`forward`], given `d_y` `[rows, width]`; `d_residual` `[rows, width]`, the gradient that reaches `x` by another path, is
/// added to that of x.
///
/// # Panics
/// When a length does not fit.
pub fn backward(rows: usize, width: usize, inputs: Inputs, d_y: &[f32], d_residual: Option<&[f32]>, gradients: Gradients) {
    let (norm, inputs) = inputs.check(rows, width);
    norm::backward(norm, inputs, d_y, d_residual, gradients.d_x, gradients.d_gamma, Some(gradients.d_beta));
}
