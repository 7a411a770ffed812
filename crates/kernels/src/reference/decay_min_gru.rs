//! minGRU with decay: h_t = (1 − z_t) e^{−u_t} h_{t−1} + z_t h̃_t with z = σ(k), h̃ = candidate(v).

use super::Float;
use super::min_gru::{Gradients, column_sums, with_bias};
use super::scaled_min_gru::{self, join, split};
use super::scan::Outputs;
use crate::shape::{Candidate, Shape, Start, expect_len};
use alloc::vec::Vec;

fn factor<T: Float>(u: T) -> [T; 2] {
    [(-u).exp(), -(-u).exp()]
}

/// The recurrence on `preact` `[B, T, 2E]`, rows `[candidate | z]`, to which `bias` `[2E]` is added, and `exponent` `[B, T, E]`.
///
/// # Panics
/// When a length does not fit `shape`.
pub fn forward<T: Float>(
    shape: Shape,
    candidate: Candidate,
    preact: &[T],
    exponent: &[T],
    bias: Option<&[T]>,
    start: Start<T>,
) -> Outputs<T> {
    expect_len("preact", preact, 2 * shape.elements());
    let [v, k] = split(&with_bias(preact, 2 * shape.width, bias), shape.width);
    scaled_min_gru::forward(shape, candidate, factor, [&v, &k, exponent], start)
}

/// Gradients of [`forward`], given its `h`, and that of the exponent.
///
/// # Panics
/// When a length does not fit `shape`.
#[allow(clippy::too_many_arguments, reason = "the kernel's arguments")]
pub fn backward<T: Float>(
    shape: Shape,
    candidate: Candidate,
    preact: &[T],
    exponent: &[T],
    bias: Option<&[T]>,
    start: Start<T>,
    h: &[T],
    d_h: Option<&[T]>,
    d_h_last: Option<&[T]>,
) -> (Gradients<T>, Vec<T>) {
    expect_len("preact", preact, 2 * shape.elements());
    let [v, k] = split(&with_bias(preact, 2 * shape.width, bias), shape.width);
    let x: [&[T]; 3] = [&v, &k, exponent];
    let ([d_v, d_k, d_u], [d_h0, d_init]) = scaled_min_gru::backward(shape, candidate, factor, x, start, h, d_h, d_h_last);
    let d_preact = join([d_v, d_k], shape.width);
    (Gradients { d_bias: column_sums(&d_preact, 2 * shape.width), d_preact, d_h0, d_init }, d_u)
}
