//! Signed minGRU: h_t = (1 − z_t) tanh(s_t) h_{t−1} + z_t h̃_t with z = σ(k), h̃ = candidate(v).

use super::Float;
use super::min_gru::{Gradients, column_sums, with_bias};
use super::scaled_min_gru::{self, join, split};
use super::scan::Outputs;
use crate::shape::{Candidate, Shape, Start, expect_len};

fn factor<T: Float>(s: T) -> [T; 2] {
    [s.tanh(), T::ONE - s.tanh() * s.tanh()]
}

/// The recurrence on `preact` `[B, T, 3E]`, rows `[candidate | z | s]`, to which `bias` `[3E]` is added.
///
/// # Panics
/// When a length does not fit `shape`.
pub fn forward<T: Float>(shape: Shape, candidate: Candidate, preact: &[T], bias: Option<&[T]>, start: Start<T>) -> Outputs<T> {
    expect_len("preact", preact, 3 * shape.elements());
    let x = split::<T, 3>(&with_bias(preact, 3 * shape.width, bias), shape.width);
    scaled_min_gru::forward(shape, candidate, factor, x.each_ref().map(|x| &x[..]), start)
}

/// Gradients of [`forward`], given its `h`.
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
    expect_len("preact", preact, 3 * shape.elements());
    let x = split::<T, 3>(&with_bias(preact, 3 * shape.width, bias), shape.width);
    let x = x.each_ref().map(|x| &x[..]);
    let (d, [d_h0, d_init]) = scaled_min_gru::backward(shape, candidate, factor, x, start, h, d_h, d_h_last);
    let d_preact = join(d, shape.width);
    Gradients { d_bias: column_sums(&d_preact, 3 * shape.width), d_preact, d_h0, d_init }
}
