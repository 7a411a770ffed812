//! Bias and GELU: y = u · Φ(u), u = x + bias, with Φ the distribution function of the standard normal (the exact form, not the tanh one).
//!
//! Pseudo-code, one row:
//!
//! ```text
//! u = x + bias;  y = u Φ(u);  d_x = d_y (Φ(u) + u φ(u));  d_bias += d_x
//! ```
//!
//! Departures: Φ and φ share one exponential, Φ(−|u|) = e^(−u²/2) · t q(t) with t = 1 / (1 + 0.3 |u|) and a polynomial q of degree 7
//! (relative error 1.5e-7 on `[0, 14]`; fitted by `tools/fit_normal_tail.py`); d_bias is summed in the pass that writes d_x.

use crate::activation::{self, Activation};
use crate::out::Out;
use crate::rows::Input;
use crate::shape::{elements, expect_len};
use crate::simd::{self, Simd, abs, mul_add};

/// y = GELU(x + bias).
///
/// # Shapes
/// - `x`, `y`: `[rows, width]`
/// - `bias`: `[width]`; `None` is 0
///
/// # Panics
/// When a length does not fit.
pub fn forward(rows: usize, width: usize, x: &[f32], bias: Option<&[f32]>, y: Out) {
    check(rows, width, x, bias);
    y.expect_len("y", elements([rows, width]));
    activation::forward(Gelu, [rows, width], x, bias, y);
}

/// Gradients of [`forward`] with respect to `x` and `bias`.
///
/// # Shapes
/// - `x`, `d_y`, `d_x`: `[rows, width]`
/// - `bias`, `d_bias`: `[width]`
///
/// # Panics
/// When a length does not fit.
pub fn backward(rows: usize, width: usize, x: &[f32], bias: Option<&[f32]>, d_y: &[f32], d_x: Out, d_bias: Option<Out>) {
    check(rows, width, x, bias);
    expect_len("d_y", d_y, elements([rows, width]));
    d_x.expect_len("d_x", elements([rows, width]));
    if let Some(d_bias) = &d_bias {
        d_bias.expect_len("d_bias", width);
    }
    let d_y = [Input::matrix(d_y, width), Input::ZERO];
    activation::backward(Gelu, [rows, width], [Input::matrix(x, width), bias.map_or(Input::ZERO, Input::row)], d_y, d_x, d_bias);
}

fn check(rows: usize, width: usize, x: &[f32], bias: Option<&[f32]>) {
    expect_len("x", x, elements([rows, width]));
    if let Some(bias) = bias {
        expect_len("bias", bias, width);
    }
}

/// Φ(u) and φ(u), the distribution function (absolute error 2e-7) and density of the standard normal.
#[inline(always)]
fn normal<S: Simd>(simd: S, u: S::f32s) -> (S::f32s, S::f32s) {
    const TAIL: [f32; 8] = [0.1196293, 0.12075395, 0.09991351, 0.12856159, -0.053683568, 0.20635343, -0.15720303, 0.035674762];
    let s = |value: f32| simd.splat_f32s(value);
    let e = simd::exp(simd, simd.mul_f32s(simd.mul_f32s(u, u), s(-0.5)));
    let t = simd.div_f32s(s(1.0), mul_add(simd, abs(simd, u), s(0.3), s(1.0)));
    let mut q = s(TAIL[7]);
    for c in TAIL[..7].iter().rev() {
        q = mul_add(simd, q, t, s(*c));
    }
    let tail = simd.mul_f32s(simd.mul_f32s(q, t), e);
    let phi = simd.select_f32s(simd.less_than_f32s(u, s(0.0)), tail, simd.sub_f32s(s(1.0), tail));
    (phi, simd.mul_f32s(e, s(0.398_942_3)))
}

/// GELU(u) and its slope Φ(u) + u φ(u).
#[inline(always)]
pub fn gelu<S: Simd>(simd: S, u: S::f32s) -> (S::f32s, S::f32s) {
    let (phi, density) = normal(simd, u);
    (simd.mul_f32s(u, phi), mul_add(simd, u, density, phi))
}

/// [`gelu`] as an activation.
#[derive(Clone, Copy)]
pub(crate) struct Gelu;

impl Activation for Gelu {
    #[inline(always)]
    fn value_and_slope<S: Simd>(self, simd: S, u: S::f32s) -> (S::f32s, S::f32s) {
        gelu(simd, u)
    }
}
