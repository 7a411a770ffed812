//! Head-wise norm: LayerNorm of the channels of each head separately, with a gain 1 + w for each channel and no bias.
//!
//! ```text
//! y = (1 + w) ⊙ u,  u = (x − mean(x)) / std(x),  std(x) = √(variance + ε)         over the channels of a head
//! d_x = (s δ − mean(s δ) − u mean(s δ u)) / std;   d_w = Σ δ u                    with s = 1 + w, δ = d_y
//! ```
//!
//! Numbers whose squares overflow give NaN, never a silent zero: if the variance of a head is not finite, all of its outputs are NaN.

use crate::norm::{self, Standard};
use crate::out::Out;

/// The inputs of the norm.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// `[rows, heads · e]`.
    pub x: &'a [f32],
    /// w `[heads · e]`; the gain is 1 + w.
    pub weight: &'a [f32],
    /// ε.
    pub eps: f32,
}

/// The outputs of [`backward`], in the shapes of [`Inputs`].
#[derive(Debug)]
pub struct Gradients<'a> {
    /// Of x.
    pub d_x: Out<'a>,
    /// Of w.
    pub d_weight: Out<'a>,
}

impl<'a> Inputs<'a> {
    fn of(&self, rows: usize, heads: usize) -> (Standard<true>, norm::Inputs<'a>) {
        (Standard { eps: self.eps }, norm::Inputs { rows, parts: heads, x: self.x, gain: self.weight })
    }
}

/// y `[rows, heads · e]` for all heads.
///
/// # Panics
/// When a length does not fit, or the heads do not divide the width.
pub fn forward(rows: usize, heads: usize, inputs: Inputs, y: Out) {
    let (norm, inputs) = inputs.of(rows, heads);
    norm::forward(norm, inputs, &[], y);
}

/// Gradients of [`forward`], given `d_y` `[rows, heads · e]`.
///
/// # Panics
/// When a length does not fit, or the heads do not divide the width.
pub fn backward(rows: usize, heads: usize, inputs: Inputs, d_y: &[f32], gradients: Gradients) {
    let (norm, inputs) = inputs.of(rows, heads);
    norm::backward(norm, inputs, d_y, None, gradients.d_x, gradients.d_weight, None);
}
