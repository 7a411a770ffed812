//! What signed and decaying minGRU share: h_t = (1 − z_t) φ(s_t) h_{t−1} + z_t h̃_t with z = σ(k), h̃ = candidate(v).

use super::scan::{self, Outputs};
use super::{Float, sigmoid};
use crate::shape::{Candidate, Shape, Start};
use alloc::vec::Vec;

/// φ and φ' of s.
pub(super) type Factor<T> = fn(T) -> [T; 2];

fn coeffs<T: Float>(factor: Factor<T>, [_, k, s]: [&[T]; 3]) -> Vec<T> {
    k.iter().zip(s).map(|(&k, &s)| sigmoid(-k) * factor(s)[0]).collect()
}

/// The recurrence on v, k and s, each `[B, T, E]`.
pub(super) fn forward<T: Float>(shape: Shape, candidate: Candidate, factor: Factor<T>, x: [&[T]; 3], start: Start<T>) -> Outputs<T> {
    let values: Vec<T> = x[0].iter().zip(x[1]).map(|(&v, &k)| sigmoid(k) * candidate.value(v)).collect();
    scan::forward(shape, &coeffs(factor, x), &values, start)
}

/// dv = G z h̃'(v), dk = G z (1 − z) (h̃ − φ h_{t−1}), ds = G h_{t−1} (1 − z) φ'(s), with G of the linear recurrence; then the gradients
/// of h0 and of the reset state.
#[allow(clippy::too_many_arguments, reason = "the kernel's arguments")]
pub(super) fn backward<T: Float>(
    shape: Shape,
    candidate: Candidate,
    factor: Factor<T>,
    x: [&[T]; 3],
    start: Start<T>,
    h: &[T],
    d_h: Option<&[T]>,
    d_h_last: Option<&[T]>,
) -> ([Vec<T>; 3], [Vec<T>; 2]) {
    let scan::Gradients { d_coeffs, d_values, d_h0, d_init } = scan::backward(shape, &coeffs(factor, x), start, h, d_h, d_h_last);
    let mut d: [Vec<T>; 3] = Default::default();
    for at in 0..shape.elements() {
        let [v, k, s] = x.map(|x| x[at]);
        let (z, keep, [factor, slope]) = (sigmoid(k), sigmoid(-k), factor(s));
        d[0].push(d_values[at] * z * candidate.slope(v));
        d[1].push((d_values[at] * candidate.value(v) - d_coeffs[at] * factor) * z * keep);
        d[2].push(d_coeffs[at] * keep * slope);
    }
    (d, [d_h0, d_init])
}

/// Columns of `x`, whose rows have `N` parts of `width` elements.
pub(super) fn split<T: Float, const N: usize>(x: &[T], width: usize) -> [Vec<T>; N] {
    core::array::from_fn(|j| x.chunks_exact((N * width).max(1)).flat_map(|row| row[j * width..(j + 1) * width].iter().copied()).collect())
}

/// The opposite of [`split`].
pub(super) fn join<T: Float, const N: usize>(parts: [Vec<T>; N], width: usize) -> Vec<T> {
    let rows = parts[0].len().checked_div(width).unwrap_or(0);
    (0..rows).flat_map(|row| parts.iter().flat_map(move |part| part[row * width..(row + 1) * width].iter().copied())).collect()
}
