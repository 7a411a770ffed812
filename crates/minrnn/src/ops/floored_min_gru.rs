//! minGRU whose forget gate has a lower bound, its gates fused into the recurrence.

use burn::tensor::Tensor;
use minrnn_kernels::{Candidate, recurrence::Cell};

use super::fused::is_on_cpu;
use super::min_gru;
use super::recurrence::{Start, composed, expect_cell, fused};
use super::shapes::expect_shape;
use super::steps::StepCodes;

/// h_t = h_{t−1} + z'_t ⊙ (h̃_t − h_{t−1}) with z' = share ⊙ σ(k) and the candidate h̃ of v; beyond the paper (HGRN).
///
/// # Shapes
/// * `preact` `[B, T, 2E]`, rows v then k; `bias` `[2E]`, added to it; `share` `[E]`, 1 minus the lower bound of the forget gate → h
///   `[B, T, E]` and the last state `[B, E]`
///
/// # Panics
/// When shapes do not fit.
pub fn floored_min_gru(
    preact: Tensor<3>,
    bias: Option<Tensor<1>>,
    share: Tensor<1>,
    candidate: Candidate,
    start: Start,
    steps: &StepCodes,
) -> (Tensor<3>, Tensor<2>) {
    let e = expect_cell("floored_min_gru", 2, &preact, bias.as_ref(), &start);
    expect_shape("floored_min_gru", "share", &share, [e]);
    if is_on_cpu(&preact.device()) {
        return fused(Cell::FlooredMinGru(candidate), preact, Some(share), bias, start, steps);
    }
    let (coeffs, values) = coefficients(preact, bias, share, candidate);
    composed(coeffs, values, start, steps)
}

/// a = 1 − share ⊙ z and b = share ⊙ z ⊙ h̃, both `[B, T, E]`, by tensor operations.
pub(super) fn coefficients(preact: Tensor<3>, bias: Option<Tensor<1>>, share: Tensor<1>, candidate: Candidate) -> (Tensor<3>, Tensor<3>) {
    let (keep, values) = min_gru::coefficients(preact, bias, candidate);
    let share = share.unsqueeze::<3>();
    (-(-keep + 1.0) * share.clone() + 1.0, values * share)
}
