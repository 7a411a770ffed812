//! minGRU: h_t = (1 − z_t) h_{t−1} + z_t h̃_t with z = σ(k), h̃ = candidate(v) (the paper, §3.1).

use super::scan::{self, Outputs};
use super::{Float, sigmoid};
use crate::shape::{Candidate, Shape, Start, expect_len};
use alloc::{vec, vec::Vec};

/// Gradients of minGRU and minLSTM.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradients<T> {
    /// With respect to the pre-activations, in their layout.
    pub d_preact: Vec<T>,
    /// With respect to the bias: the sum of `d_preact` over all rows.
    pub d_bias: Vec<T>,
    /// With respect to the carried state `[B, E]`.
    pub d_h0: Vec<T>,
    /// With respect to the state that resets restore `[E]`.
    pub d_init: Vec<T>,
}

/// Adds the bias to every row of `preact`, whose rows have `row` elements.
pub(super) fn with_bias<T: Float>(preact: &[T], row: usize, bias: Option<&[T]>) -> Vec<T> {
    let bias = |i: usize| bias.map_or(T::ZERO, |bias| bias[i % row]);
    preact.iter().enumerate().map(|(i, &x)| x + bias(i)).collect()
}

/// Column sums of `x`, whose rows have `row` elements.
pub(super) fn column_sums<T: Float>(x: &[T], row: usize) -> Vec<T> {
    let mut sums = vec![T::ZERO; row];
    for row in x.chunks_exact(row.max(1)) {
        sums.iter_mut().zip(row).for_each(|(sum, &x)| *sum += x);
    }
    sums
}

/// Position of channel `e` of step `at / E` in rows of `[candidate | z]`.
fn places(at: usize, width: usize) -> (usize, usize) {
    let candidate = at / width * 2 * width + at % width;
    (candidate, candidate + width)
}

/// The recurrence on `preact` `[B, T, 2E]`, rows `[candidate | z]`, to which `bias` `[2E]` is added.
///
/// # Panics
/// When a length does not fit `shape`.
pub fn forward<T: Float>(shape: Shape, candidate: Candidate, preact: &[T], bias: Option<&[T]>, start: Start<T>) -> Outputs<T> {
    expect_len("preact", preact, 2 * shape.elements());
    let x = with_bias(preact, 2 * shape.width, bias);
    let gates = |at| {
        let (v, k) = places(at, shape.width);
        (sigmoid(-x[k]), sigmoid(x[k]) * candidate.value(x[v]))
    };
    let (coeffs, values): (Vec<T>, Vec<T>) = (0..shape.elements()).map(gates).unzip();
    scan::forward(shape, &coeffs, &values, start)
}

/// dk = G (h̃ − h_{t−1}) z (1 − z), dv = G z h̃'(v), with G of the linear recurrence.
///
/// # Panics
/// When a length does not fit `shape`.
#[allow(clippy::too_many_arguments, reason = "the kernel's arguments")]
pub fn backward<T: Float>(
    shape: Shape,
    candidate: Candidate,
    preact: &[T],
    bias: Option<&[T]>,
    start: Start<T>,
    h: &[T],
    d_h: Option<&[T]>,
    d_h_last: Option<&[T]>,
) -> Gradients<T> {
    expect_len("preact", preact, 2 * shape.elements());
    let x = with_bias(preact, 2 * shape.width, bias);
    let coeffs: Vec<T> = (0..shape.elements()).map(|at| sigmoid(-x[places(at, shape.width).1])).collect();
    let scan::Gradients { d_coeffs, d_values, d_h0, d_init } = scan::backward(shape, &coeffs, start, h, d_h, d_h_last);
    let mut d_preact = vec![T::ZERO; preact.len()];
    for at in 0..shape.elements() {
        let (v, k) = places(at, shape.width);
        let z = sigmoid(x[k]);
        d_preact[k] = (d_values[at] * candidate.value(x[v]) - d_coeffs[at]) * z * coeffs[at];
        d_preact[v] = d_values[at] * z * candidate.slope(x[v]);
    }
    Gradients { d_bias: column_sums(&d_preact, 2 * shape.width), d_preact, d_h0, d_init }
}
