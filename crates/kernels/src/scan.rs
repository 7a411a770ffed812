//! The linear recurrence h_t = a_t h_{t−1} + b_t with given coefficients and values.
//!
//! Backward, with G_t = ∂L/∂h_t + a_{t+1} G_{t+1}: ∂a_t = G_t h_{t−1}, ∂b_t = G_t.

use crate::grid::SharedOut;
use crate::recurrence::cell::Cell;
use crate::recurrence::{self, Column, ColumnOut, Gradients, Problem, Upstream};
use crate::shape::{Out, Shape, Start, expect_len};
use pulp::Simd;

/// The recurrence whose inputs are a and b themselves.
#[derive(Clone, Copy)]
struct Given;

impl Cell<2> for Given {
    const BIASED: bool = false;
    const NARROWEST: usize = 64;
    type Gate<S: Simd> = [S::f32s; 2];

    #[inline(always)]
    fn gate<S: Simd>(self, _simd: S, x: [S::f32s; 2]) -> [S::f32s; 2] {
        x
    }

    #[inline(always)]
    fn step<S: Simd>(self, simd: S, [a, b]: [S::f32s; 2], h: S::f32s) -> S::f32s {
        simd.mul_add_e_f32s(a, h, b)
    }

    #[inline(always)]
    fn decay<S: Simd>(self, simd: S, [a, _]: [S::f32s; 2], h: S::f32s) -> S::f32s {
        simd.mul_f32s(a, h)
    }

    #[inline(always)]
    fn loss<S: Simd>(self, simd: S, [a, _]: [S::f32s; 2]) -> S::f32s {
        simd.sub_f32s(simd.splat_f32s(1.0), a)
    }

    #[inline(always)]
    fn gradients<S: Simd>(self, simd: S, [a, _]: [S::f32s; 2], before: S::f32s, g: S::f32s) -> ([S::f32s; 2], S::f32s) {
        ([simd.mul_f32s(g, before), g], simd.mul_f32s(a, g))
    }
}

fn problem<'a>(shape: Shape, coeffs: &'a [f32], values: &'a [f32], start: Start<'a>) -> Problem<'a, Given, 2> {
    expect_len("coeffs", coeffs, shape.elements());
    expect_len("values", values, shape.elements());
    let column = |data| Column { data, stride: shape.width };
    Problem { shape, cell: Given, x: [column(coeffs), column(values)], bias: None, start }
}

/// Writes every state to `h` `[B, T, E]` and each row's end to `h_last` `[B, E]`, for `coeffs` and `values` `[B, T, E]`.
///
/// # Panics
/// When a length does not fit `shape`.
pub fn forward(shape: Shape, coeffs: &[f32], values: &[f32], start: Start, h: Out, h_last: Out) {
    recurrence::forward(&problem(shape, coeffs, values, start), h, h_last);
}

/// Writes the gradients of `coeffs` and `values` `[B, T, E]`, of the carried state `[B, E]` and of the reset state `[E]`, given `h`
/// of [`forward`]. An upstream gradient that is `None` is 0.
///
/// # Panics
/// When a length does not fit `shape`.
#[allow(clippy::too_many_arguments, reason = "a kernel's inputs and outputs")]
pub fn backward(
    shape: Shape,
    coeffs: &[f32],
    start: Start,
    h: &[f32],
    d_h: Option<&[f32]>,
    d_h_last: Option<&[f32]>,
    d_coeffs: Out,
    d_values: Out,
    d_h0: Out,
    d_init: Out,
) {
    expect_len("d_coeffs", d_coeffs, shape.elements());
    expect_len("d_values", d_values, shape.elements());
    let d_x = [d_coeffs, d_values].map(|out| ColumnOut { out: SharedOut::new(out), offset: 0, stride: shape.width });
    // The gradients do not depend on the values; the coefficients stand in their place and are not read twice.
    let problem = problem(shape, coeffs, coeffs, start);
    recurrence::backward(&problem, &Upstream { h, d_h, d_h_last }, d_x, Gradients { d_bias: None, d_h0, d_init });
}
