//! minGRU with decay over time, its gates fused into the recurrence.

use burn::tensor::Tensor;
use minrnn_kernels::{Candidate, recurrence::Cell};

use super::fused::is_on_cpu;
use super::min_gru;
use super::recurrence::{Start, composed, expect_cell, fused};
use super::shapes::expect_shape;
use super::steps::StepCodes;

/// h_t = (1 − z_t) ⊙ e^{−u_t} ⊙ h_{t−1} + z_t ⊙ h̃_t with z = σ(k) and the candidate h̃ of v; beyond the paper.
///
/// # Shapes
/// * `preact` `[B, T, 2E]`, rows v then k; `exponent` u `[B, T, E]`; `bias` `[2E]`, added to `preact` → h `[B, T, E]` and the last state
///   `[B, E]`
///
/// # Panics
/// When shapes do not fit.
pub fn decay_min_gru(
    preact: Tensor<3>,
    exponent: Tensor<3>,
    bias: Option<Tensor<1>>,
    candidate: Candidate,
    start: Start,
    steps: &StepCodes,
) -> (Tensor<3>, Tensor<2>) {
    let ([batch, seq_len, _], e) = (preact.dims(), expect_cell("decay_min_gru", 2, &preact, bias.as_ref(), &start));
    expect_shape("decay_min_gru", "exponent", &exponent, [batch, seq_len, e]);
    if is_on_cpu(&preact.device()) {
        return fused(Cell::DecayMinGru(candidate), preact, Some(exponent), bias, start, steps);
    }
    let (coeffs, values) = coefficients(preact, exponent, bias, candidate);
    composed(coeffs, values, start, steps)
}

/// a = (1 − z) ⊙ e^{−u} and b = z ⊙ h̃, both `[B, T, E]`, by tensor operations.
pub(super) fn coefficients(
    preact: Tensor<3>,
    exponent: Tensor<3>,
    bias: Option<Tensor<1>>,
    candidate: Candidate,
) -> (Tensor<3>, Tensor<3>) {
    let (keep, values) = min_gru::coefficients(preact, bias, candidate);
    (keep * (-exponent).exp(), values)
}
