//! Signed minGRU with its gates fused into the recurrence.

use burn::tensor::{Tensor, activation};
use minrnn_kernels::{Candidate, recurrence::Cell};

use super::fused::is_on_cpu;
use super::min_gru::{candidate_of, with_bias};
use super::recurrence::{NO_EXTRA, Start, composed, expect_cell, fused};
use super::steps::StepCodes;

/// h_t = (1 − z_t) ⊙ tanh(s_t) ⊙ h_{t−1} + z_t ⊙ h̃_t with z = σ(k) and the candidate h̃ of v; beyond the paper.
///
/// # Shapes
/// * `preact` `[B, T, 3E]`, rows v, k, s; `bias` `[3E]`, added to it → h `[B, T, E]` and the last state `[B, E]`
///
/// # Panics
/// When shapes do not fit.
pub fn signed_min_gru(
    preact: Tensor<3>,
    bias: Option<Tensor<1>>,
    candidate: Candidate,
    start: Start,
    steps: &StepCodes,
) -> (Tensor<3>, Tensor<2>) {
    expect_cell("signed_min_gru", 3, &preact, bias.as_ref(), &start);
    if is_on_cpu(&preact.device()) {
        return fused(Cell::SignedMinGru(candidate), preact, NO_EXTRA, bias, start, steps);
    }
    let (coeffs, values) = coefficients(preact, bias, candidate);
    composed(coeffs, values, start, steps)
}

/// a = (1 − z) ⊙ tanh(s) and b = z ⊙ h̃, both `[B, T, E]`, by tensor operations.
pub(super) fn coefficients(preact: Tensor<3>, bias: Option<Tensor<1>>, candidate: Candidate) -> (Tensor<3>, Tensor<3>) {
    let preact = with_bias(preact, bias);
    let e = preact.dims()[2] / 3;
    let z = activation::sigmoid(preact.clone().narrow(2, e, e));
    let values = z.clone() * candidate_of(preact.clone().narrow(2, 0, e), candidate);
    ((-z + 1.0) * preact.narrow(2, 2 * e, e).tanh(), values)
}
