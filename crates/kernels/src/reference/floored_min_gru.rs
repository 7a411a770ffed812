//! minGRU with a floor under its forget gate: h_t = (1 − c z_t) h_{t−1} + c z_t h̃_t with z = σ(k), h̃ = candidate(v), c per channel.

use super::min_gru::{Gradients, column_sums, with_bias};
use super::scaled_min_gru::{join, split};
use super::scan::{self, Outputs};
use super::{Float, sigmoid};
use crate::shape::{Candidate, Shape, Start, expect_len};
use alloc::{vec, vec::Vec};

fn coeffs<T: Float>(k: &[T], share: &[T]) -> Vec<T> {
    k.iter().enumerate().map(|(i, &k)| sigmoid(-k) + (T::ONE - share[i % share.len()]) * sigmoid(k)).collect()
}

/// The recurrence on `preact` `[B, T, 2E]`, rows `[candidate | z]`, to which `bias` `[2E]` is added, and `share` `[E]`.
///
/// # Panics
/// When a length does not fit `shape`.
pub fn forward<T: Float>(shape: Shape, candidate: Candidate, preact: &[T], bias: Option<&[T]>, share: &[T], start: Start<T>) -> Outputs<T> {
    expect_len("preact", preact, 2 * shape.elements());
    let [v, k] = split(&with_bias(preact, 2 * shape.width, bias), shape.width);
    let value = |(i, (&v, &k)): (usize, (&T, &T))| share[i % share.len()] * sigmoid(k) * candidate.value(v);
    let values: Vec<T> = v.iter().zip(&k).enumerate().map(value).collect();
    scan::forward(shape, &coeffs(&k, share), &values, start)
}

/// dv = G c z h̃'(v), dk = d c z (1 − z), dc = Σ d z with d = G (h̃ − h_{t−1}), G of the linear recurrence; the last is that of c.
///
/// # Panics
/// When a length does not fit `shape`.
#[allow(clippy::too_many_arguments, reason = "the kernel's arguments")]
pub fn backward<T: Float>(
    shape: Shape,
    candidate: Candidate,
    preact: &[T],
    bias: Option<&[T]>,
    share: &[T],
    start: Start<T>,
    h: &[T],
    d_h: Option<&[T]>,
    d_h_last: Option<&[T]>,
) -> (Gradients<T>, Vec<T>) {
    expect_len("preact", preact, 2 * shape.elements());
    let [v, k] = split(&with_bias(preact, 2 * shape.width, bias), shape.width);
    let scan::Gradients { d_coeffs, d_values, d_h0, d_init } = scan::backward(shape, &coeffs(&k, share), start, h, d_h, d_h_last);
    let (mut d_v, mut d_k, mut d_share) = (Vec::new(), Vec::new(), vec![T::ZERO; shape.width]);
    for at in 0..shape.elements() {
        let (c, z) = (share[at % shape.width], sigmoid(k[at]));
        let d = d_values[at] * candidate.value(v[at]) - d_coeffs[at];
        d_v.push(d_values[at] * c * z * candidate.slope(v[at]));
        d_k.push(d * c * z * sigmoid(-k[at]));
        d_share[at % shape.width] += d * z;
    }
    let d_preact = join([d_v, d_k], shape.width);
    (Gradients { d_bias: column_sums(&d_preact, 2 * shape.width), d_preact, d_h0, d_init }, d_share)
}
