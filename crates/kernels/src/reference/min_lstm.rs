//! minLSTM: h_t = f'_t h_{t−1} + i'_t h̃_t with f = σ(p), i = σ(q), h̃ = candidate(v) (the paper, §3.2).
//!
//! Normalised gates are f' = σ(−D), i' = σ(D) with D = sp(−p) − sp(−q), which is f / (f + i) without its 0/0.

use super::min_gru::{Gradients, column_sums, with_bias};
use super::scan::{self, Outputs};
use super::{Float, sigmoid, softplus};
use crate::shape::{Candidate, Gates, Shape, Start, expect_len};
use alloc::{vec, vec::Vec};

/// Position of channel `e` of step `at / E` in rows of `[candidate | f | i]`.
fn places(at: usize, width: usize) -> [usize; 3] {
    let candidate = at / width * 3 * width + at % width;
    [candidate, candidate + width, candidate + 2 * width]
}

/// The factors of the state and of the candidate.
fn factors<T: Float>(gates: Gates, p: T, q: T) -> (T, T) {
    match gates {
        Gates::Normalized => {
            let d = softplus(-p) - softplus(-q);
            (sigmoid(-d), sigmoid(d))
        }
        Gates::Unnormalized => (sigmoid(p), sigmoid(q)),
    }
}

/// The recurrence on `preact` `[B, T, 3E]`, rows `[candidate | f | i]`, to which `bias` `[3E]` is added.
///
/// # Panics
/// When a length does not fit `shape`.
pub fn forward<T: Float>(
    shape: Shape,
    candidate: Candidate,
    gates: Gates,
    preact: &[T],
    bias: Option<&[T]>,
    start: Start<T>,
) -> Outputs<T> {
    expect_len("preact", preact, 3 * shape.elements());
    let x = with_bias(preact, 3 * shape.width, bias);
    let pair = |at| {
        let [v, p, q] = places(at, shape.width).map(|i| x[i]);
        let (forget, input) = factors(gates, p, q);
        (forget, input * candidate.value(v))
    };
    let (coeffs, values): (Vec<T>, Vec<T>) = (0..shape.elements()).map(pair).unzip();
    scan::forward(shape, &coeffs, &values, start)
}

/// Normalised: with s = G (h_{t−1} − h̃) f' i', dp = s (1 − f), dq = −s (1 − i). Independent: dp = G h_{t−1} f (1 − f),
/// dq = G h̃ i (1 − i). Both: dv = G i' h̃'(v). G is that of the linear recurrence.
///
/// # Panics
/// When a length does not fit `shape`.
#[allow(clippy::too_many_arguments, reason = "the kernel's arguments")]
pub fn backward<T: Float>(
    shape: Shape,
    candidate: Candidate,
    gates: Gates,
    preact: &[T],
    bias: Option<&[T]>,
    start: Start<T>,
    h: &[T],
    d_h: Option<&[T]>,
    d_h_last: Option<&[T]>,
) -> Gradients<T> {
    expect_len("preact", preact, 3 * shape.elements());
    let x = with_bias(preact, 3 * shape.width, bias);
    let factors_at = |at| {
        let [_, p, q] = places(at, shape.width).map(|i| x[i]);
        factors(gates, p, q)
    };
    let coeffs: Vec<T> = (0..shape.elements()).map(|at| factors_at(at).0).collect();
    let scan::Gradients { d_coeffs, d_values, d_h0, d_init } = scan::backward(shape, &coeffs, start, h, d_h, d_h_last);
    let mut d_preact = vec![T::ZERO; preact.len()];
    for at in 0..shape.elements() {
        let places = places(at, shape.width);
        let [v, p, q] = places.map(|i| x[i]);
        let (forget, input) = factors_at(at);
        let d_input = d_values[at] * candidate.value(v);
        let (d_p, d_q) = match gates {
            Gates::Normalized => {
                let s = (d_coeffs[at] - d_input) * forget * input;
                (s * sigmoid(-p), -s * sigmoid(-q))
            }
            Gates::Unnormalized => (d_coeffs[at] * forget * sigmoid(-p), d_input * input * sigmoid(-q)),
        };
        d_preact[places[0]] = d_values[at] * input * candidate.slope(v);
        d_preact[places[1]] = d_p;
        d_preact[places[2]] = d_q;
    }
    Gradients { d_bias: column_sums(&d_preact, 3 * shape.width), d_preact, d_h0, d_init }
}
