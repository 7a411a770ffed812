//! Gated GELU: y = GELU(gate) ⊙ value ⊙ scale, the rows of x + bias being [value | gate] or [gate | value].
//!
//! Backward, with δ = d_y and the slope GELU' = Φ + gate φ:
//!
//! ```text
//! d_value = δ scale GELU(gate);   d_gate = δ scale value GELU'(gate);   d_bias = Σ [d_value | d_gate];   d_scale = Σ δ value GELU(gate)
//! ```

use crate::activation::Activation;
use crate::gelu::Gelu;
use crate::out::Out;
use crate::rows::{self, Formula, Input, Output};
use crate::shape::{elements, expect_len};
use crate::simd::Simd;

/// Which half of a row is the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halves {
    /// [value | gate].
    ValueGate,
    /// [gate | value].
    GateValue,
}

impl Halves {
    /// Value and gate of a row, or of anything else split the same way.
    fn split<T>(self, row: [T; 2]) -> [T; 2] {
        let [first, second] = row;
        match self {
            Self::ValueGate => [first, second],
            Self::GateValue => [second, first],
        }
    }
}

/// The inputs of a gated GELU.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// Which half of a row of `x` is the gate.
    pub halves: Halves,
    /// `[rows, 2 · width]`.
    pub x: &'a [f32],
    /// `[2 · width]`, added to `x`; `None` is 0.
    pub bias: Option<&'a [f32]>,
    /// `[width]`; `None` is 1.
    pub scale: Option<&'a [f32]>,
}

/// The outputs of [`backward`], in the shapes of [`Inputs`].
#[derive(Debug)]
pub struct Gradients<'a> {
    /// Of x.
    pub d_x: Out<'a>,
    /// Of the bias, if wanted.
    pub d_bias: Option<Out<'a>>,
    /// Of the scale, if wanted.
    pub d_scale: Option<Out<'a>>,
}

/// y = GELU(gate) ⊙ value ⊙ scale, `[rows, width]`.
///
/// # Panics
/// When a length does not fit.
pub fn forward(rows: usize, width: usize, inputs: Inputs, y: Out) {
    gate(Gelu, rows, width, inputs, y);
}

/// Gradients of [`forward`], given `d_y` `[rows, width]`.
///
/// # Panics
/// When a length does not fit.
pub fn backward(rows: usize, width: usize, inputs: Inputs, d_y: &[f32], gradients: Gradients) {
    gate_backward(Gelu, rows, width, inputs, d_y, gradients);
}

/// [`forward`] with any activation.
pub(crate) fn gate(activation: impl Activation, rows: usize, width: usize, inputs: Inputs, y: Out) {
    let inputs = inputs.check(rows, width);
    y.expect_len("y", elements([rows, width]));
    rows::apply(Gated(activation), [rows, width], inputs, [Output::matrix(y, width)], []);
}

/// [`backward`] with any activation.
pub(crate) fn gate_backward(activation: impl Activation, rows: usize, width: usize, inputs: Inputs, d_y: &[f32], gradients: Gradients) {
    let [value, gate, value_bias, gate_bias, scale] = inputs.check(rows, width);
    expect_len("d_y", d_y, elements([rows, width]));
    gradients.d_x.expect_len("d_x", elements([rows, 2, width]));
    if let Some(d_scale) = &gradients.d_scale {
        d_scale.expect_len("d_scale", width);
    }
    let [value_sums, gate_sums] = match gradients.d_bias {
        Some(d_bias) => {
            d_bias.expect_len("d_bias", elements([2, width]));
            inputs.halves.split(d_bias.split_at(width).map(Some))
        }
        None => [None, None],
    };
    let inputs_and_d = [value, gate, value_bias, gate_bias, scale, Input::matrix(d_y, width)];
    let outputs = inputs.halves.split(Output::halves(gradients.d_x, width));
    rows::apply(GatedBackward(activation), [rows, width], inputs_and_d, outputs, [value_sums, gate_sums, gradients.d_scale]);
}

impl<'a> Inputs<'a> {
    /// Value, gate, the bias of each, scale.
    fn check(&self, rows: usize, width: usize) -> [Input<'a>; 5] {
        let Self { halves, x, bias, scale } = *self;
        expect_len("x", x, elements([rows, 2, width]));
        if let Some(scale) = scale {
            expect_len("scale", scale, width);
        }
        if let Some(bias) = bias {
            expect_len("bias", bias, elements([2, width]));
        }
        let [value, gate] = halves.split(Input::halves(x, width));
        let biases = [bias.map(|bias| &bias[..width]), bias.map(|bias| &bias[width..])];
        let [value_bias, gate_bias] = halves.split(biases.map(|bias| bias.map_or(Input::ZERO, Input::row)));
        [value, gate, value_bias, gate_bias, scale.map_or(Input::ONE, Input::row)]
    }
}

#[derive(Clone, Copy)]
struct Gated<A>(A);

impl<A: Activation> Formula<5, 1, 0> for Gated<A> {
    #[inline(always)]
    fn at<S: Simd>(self, simd: S, [value, gate, value_bias, gate_bias, scale]: [S::f32s; 5]) -> ([S::f32s; 1], [S::f32s; 0]) {
        let (active, _) = self.0.value_and_slope(simd, simd.add_f32s(gate, gate_bias));
        ([simd.mul_f32s(active, simd.mul_f32s(simd.add_f32s(value, value_bias), scale))], [])
    }
}

#[derive(Clone, Copy)]
struct GatedBackward<A>(A);

impl<A: Activation> Formula<6, 2, 3> for GatedBackward<A> {
    /// d_value and d_gate; terms of their sums and of d_scale.
    #[inline(always)]
    fn at<S: Simd>(self, simd: S, [value, gate, value_bias, gate_bias, scale, d]: [S::f32s; 6]) -> ([S::f32s; 2], [S::f32s; 3]) {
        let value = simd.add_f32s(value, value_bias);
        let (active, slope) = self.0.value_and_slope(simd, simd.add_f32s(gate, gate_bias));
        let scaled = simd.mul_f32s(d, scale);
        let d_value = simd.mul_f32s(scaled, active);
        let d_gate = simd.mul_f32s(simd.mul_f32s(scaled, value), slope);
        ([d_value, d_gate], [d_value, d_gate, simd.mul_f32s(d, simd.mul_f32s(value, active))])
    }
}
