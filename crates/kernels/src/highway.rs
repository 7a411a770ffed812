//! Highway output, beyond the paper: y = s ⊙ (value + value_bias) + (1 − s) ⊙ x with s = σ(gate + gate_bias).
//!
//! Backward, with δ = d_y: d_value = s δ, d_x = (1 − s) δ, d_gate = δ (value − x) s (1 − s), biases the sums over rows.

use crate::out::Out;
use crate::rows::{self, Formula, Input, Output};
use crate::shape::{elements, expect_len};
use crate::simd::{Simd, mul_add, sigmoid_pair};

/// The inputs of a highway mixture, all `[rows, width]`, the biases `[width]`; a bias of `None` is 0.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// Pre-activation of s.
    pub gate: &'a [f32],
    /// Added to `gate`.
    pub gate_bias: Option<&'a [f32]>,
    /// Weighted by s.
    pub value: &'a [f32],
    /// Added to `value`.
    pub value_bias: Option<&'a [f32]>,
    /// Weighted by 1 − s.
    pub x: &'a [f32],
}

/// The outputs of [`backward`], in the shapes of [`Inputs`].
#[derive(Debug)]
pub struct Gradients<'a> {
    /// Of the gate.
    pub d_gate: Out<'a>,
    /// Of its bias, if wanted.
    pub d_gate_bias: Option<Out<'a>>,
    /// Of the value.
    pub d_value: Out<'a>,
    /// Of its bias, if wanted.
    pub d_value_bias: Option<Out<'a>>,
    /// Of x.
    pub d_x: Out<'a>,
}

impl<'a> Inputs<'a> {
    /// Gate, its bias, value, its bias, x.
    fn check(&self, rows: usize, width: usize) -> [Input<'a>; 5] {
        let Self { gate, gate_bias, value, value_bias, x } = *self;
        for (name, part) in [("gate", gate), ("value", value), ("x", x)] {
            expect_len(name, part, elements([rows, width]));
        }
        gate_bias.inspect(|bias| expect_len("gate_bias", bias, width));
        value_bias.inspect(|bias| expect_len("value_bias", bias, width));
        let [gate, value, x] = [gate, value, x].map(|part| Input::matrix(part, width));
        [gate, gate_bias.map_or(Input::ZERO, Input::row), value, value_bias.map_or(Input::ZERO, Input::row), x]
    }
}

/// Writes the mixture to `y` `[rows, width]`.
///
/// # Panics
/// When a length does not fit.
pub fn forward(rows: usize, width: usize, inputs: Inputs, y: Out) {
    let inputs = inputs.check(rows, width);
    y.expect_len("y", elements([rows, width]));
    rows::apply(Mixture, [rows, width], inputs, [Output::matrix(y, width)], []);
}

/// Gradients of [`forward`], given `d_y` `[rows, width]`.
///
/// # Panics
/// When a length does not fit.
pub fn backward(rows: usize, width: usize, inputs: Inputs, d_y: &[f32], gradients: Gradients) {
    let [gate, gate_bias, value, value_bias, x] = inputs.check(rows, width);
    expect_len("d_y", d_y, elements([rows, width]));
    for (name, out) in [("d_gate", &gradients.d_gate), ("d_value", &gradients.d_value), ("d_x", &gradients.d_x)] {
        out.expect_len(name, elements([rows, width]));
    }
    for (name, out) in [("d_gate_bias", &gradients.d_gate_bias), ("d_value_bias", &gradients.d_value_bias)] {
        out.iter().for_each(|out| out.expect_len(name, width));
    }
    let inputs = [gate, gate_bias, value, value_bias, x, Input::matrix(d_y, width)];
    let outputs = [gradients.d_gate, gradients.d_value, gradients.d_x].map(|out| Output::matrix(out, width));
    rows::apply(Backward, [rows, width], inputs, outputs, [gradients.d_gate_bias, gradients.d_value_bias]);
}

/// s ⊙ value + (1 − s) ⊙ x with s = σ(gate).
#[inline(always)]
pub fn mixture<S: Simd>(simd: S, gate: S::f32s, value: S::f32s, x: S::f32s) -> S::f32s {
    let [share, rest] = sigmoid_pair(simd, gate);
    mul_add(simd, share, value, simd.mul_f32s(rest, x))
}

#[derive(Clone, Copy)]
struct Mixture;

impl Formula<5, 1, 0> for Mixture {
    #[inline(always)]
    fn at<S: Simd>(self, simd: S, [gate, gate_bias, value, value_bias, x]: [S::f32s; 5]) -> ([S::f32s; 1], [S::f32s; 0]) {
        ([mixture(simd, simd.add_f32s(gate, gate_bias), simd.add_f32s(value, value_bias), x)], [])
    }
}

#[derive(Clone, Copy)]
struct Backward;

impl Formula<6, 3, 2> for Backward {
    /// Gradients of gate, value and x; terms of the sums of the first two.
    #[inline(always)]
    fn at<S: Simd>(self, simd: S, [gate, gate_bias, value, value_bias, x, d]: [S::f32s; 6]) -> ([S::f32s; 3], [S::f32s; 2]) {
        let [share, rest] = sigmoid_pair(simd, simd.add_f32s(gate, gate_bias));
        let difference = simd.sub_f32s(simd.add_f32s(value, value_bias), x);
        let through = simd.mul_f32s(share, d);
        let of_gate = simd.mul_f32s(simd.mul_f32s(through, rest), difference);
        ([of_gate, through, simd.mul_f32s(rest, d)], [of_gate, through])
    }
}
