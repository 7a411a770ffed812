//! Activations: each defines a value and a slope, from which its kernels follow.

use crate::out::Out;
use crate::rows::{self, Formula, Input, Output};
use crate::simd::Simd;

/// A function of one number.
pub(crate) trait Activation: Copy + Send + Sync {
    /// A(u) and A'(u).
    fn value_and_slope<S: Simd>(self, simd: S, u: S::f32s) -> (S::f32s, S::f32s);
}

/// y = A(x + bias) for a matrix of `[rows, width]` elements.
pub(crate) fn forward(activation: impl Activation, sizes: [usize; 2], x: &[f32], bias: Option<&[f32]>, y: Out) {
    let width = sizes[1];
    rows::apply(Value(activation), sizes, [Input::matrix(x, width), bias.map_or(Input::ZERO, Input::row)], [Output::matrix(y, width)], []);
}

/// d_x = A'(x + bias) ⊙ (d_y + d_y'), and its column sums.
pub(crate) fn backward(
    activation: impl Activation,
    sizes: [usize; 2],
    [x, bias]: [Input; 2],
    d_y: [Input; 2],
    d_x: Out,
    d_bias: Option<Out>,
) {
    rows::apply(Slope(activation), sizes, [x, bias, d_y[0], d_y[1]], [Output::matrix(d_x, sizes[1])], [d_bias]);
}

#[derive(Clone, Copy)]
struct Value<A>(A);

impl<A: Activation> Formula<2, 1, 0> for Value<A> {
    #[inline(always)]
    fn at<S: Simd>(self, simd: S, [x, bias]: [S::f32s; 2]) -> ([S::f32s; 1], [S::f32s; 0]) {
        ([self.0.value_and_slope(simd, simd.add_f32s(x, bias)).0], [])
    }
}

#[derive(Clone, Copy)]
struct Slope<A>(A);

impl<A: Activation> Formula<4, 1, 1> for Slope<A> {
    #[inline(always)]
    fn at<S: Simd>(self, simd: S, [x, bias, d_y, more]: [S::f32s; 4]) -> ([S::f32s; 1], [S::f32s; 1]) {
        let (_, slope) = self.0.value_and_slope(simd, simd.add_f32s(x, bias));
        let d = simd.mul_f32s(simd.add_f32s(d_y, more), slope);
        ([d], [d])
    }
}
