//! SiLU: y = x σ(x), with slope σ(x) (1 + x (1 − σ(x))).
//!
//! Departure: backward adds the gradients of several readers of y in the pass that writes d_x.

use crate::activation::{self, Activation};
use crate::out::Out;
use crate::rows::{Input, flat};
use crate::shape::expect_len;
use crate::simd::{Simd, mul_add, sigmoid};

/// y = x σ(x), element by element.
///
/// # Panics
/// When the lengths differ.
pub fn forward(x: &[f32], y: Out) {
    y.expect_len("y", x.len());
    let y = y.slots();
    for (sizes, at) in flat(x.len()) {
        activation::forward(Silu, sizes, &x[at.clone()], None, Out::from(&mut y[at]));
    }
}

/// Gradient of [`forward`], given those of one or two readers of y; `None` is 0.
///
/// # Panics
/// When the lengths differ.
pub fn backward(x: &[f32], d_y: [Option<&[f32]>; 2], d_x: Out) {
    d_y.iter().flatten().for_each(|d_y| expect_len("d_y", d_y, x.len()));
    d_x.expect_len("d_x", x.len());
    let d_x = d_x.slots();
    for (sizes, at) in flat(x.len()) {
        let matrix = |x| Input::matrix(x, sizes[1]).after(at.start);
        let d_y = d_y.map(|d_y| d_y.map_or(Input::ZERO, matrix));
        activation::backward(Silu, sizes, [matrix(x), Input::ZERO], d_y, Out::from(&mut d_x[at.clone()]), None);
    }
}

/// SiLU(x) = x σ(x) and its slope σ(x) (1 + x (1 − σ(x))).
#[inline(always)]
pub fn silu<S: Simd>(simd: S, x: S::f32s) -> (S::f32s, S::f32s) {
    let gate = sigmoid(simd, x);
    let value = simd.mul_f32s(x, gate);
    (value, mul_add(simd, value, simd.sub_f32s(simd.splat_f32s(1.0), gate), gate))
}

/// [`silu`] as an activation.
#[derive(Clone, Copy)]
pub(crate) struct Silu;

impl Activation for Silu {
    #[inline(always)]
    fn value_and_slope<S: Simd>(self, simd: S, u: S::f32s) -> (S::f32s, S::f32s) {
        silu(simd, u)
    }
}
