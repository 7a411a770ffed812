//! minGRU with its gates fused into the recurrence.

use burn::tensor::{Tensor, activation};
use minrnn_kernels::{Candidate, recurrence::Cell};

use super::fused::has_kernels;
use super::positive;
use super::recurrence::{NO_EXTRA, Start, composed, expect_cell, fused};
use super::softplus::softplus;
use super::steps::StepCodes;

/// h_t = h_{t−1} + z_t ⊙ (h̃_t − h_{t−1}) with z = σ(k) and the candidate h̃ of v (paper §3.1).
///
/// # Shapes
/// * `preact` `[B, T, 2E]`, rows v then k; `bias` `[2E]`, added to it → h `[B, T, E]` and the last state `[B, E]`
///
/// # Panics
/// When shapes do not fit.
pub fn min_gru(
    preact: Tensor<3>,
    bias: Option<Tensor<1>>,
    candidate: Candidate,
    start: Start,
    steps: &StepCodes,
) -> (Tensor<3>, Tensor<2>) {
    expect_cell("min_gru", 2, &preact, bias.as_ref(), &start);
    if has_kernels(&preact) {
        return fused(Cell::MinGru(candidate), preact, NO_EXTRA, bias, start, steps);
    }
    let (coeffs, values) = coefficients(preact, bias, candidate);
    composed(coeffs, values, start, steps)
}

/// a = 1 − z and b = z ⊙ h̃, both `[B, T, E]`, by tensor operations.
pub(super) fn coefficients(preact: Tensor<3>, bias: Option<Tensor<1>>, candidate: Candidate) -> (Tensor<3>, Tensor<3>) {
    let preact = with_bias(preact, bias);
    let e = preact.dims()[2] / 2;
    let z = activation::sigmoid(preact.clone().narrow(2, e, e));
    let values = z.clone() * candidate_of(preact.narrow(2, 0, e), candidate);
    (-z + 1.0, values)
}

/// ln a and ln b of the paper's log-space form with the positive candidate, both `[B, T, E]`.
pub(crate) fn log_coefficients(preact: Tensor<3>, bias: Option<Tensor<1>>) -> (Tensor<3>, Tensor<3>) {
    let preact = with_bias(preact, bias);
    let e = preact.dims()[2] / 2;
    let k = preact.clone().narrow(2, e, e);
    (-softplus(k.clone()), -softplus(-k) + log_g(preact.narrow(2, 0, e)))
}

pub(super) fn with_bias(preact: Tensor<3>, bias: Option<Tensor<1>>) -> Tensor<3> {
    match bias {
        Some(bias) => preact + bias.unsqueeze(),
        None => preact,
    }
}

/// The candidate h̃ from its pre-activation.
pub(super) fn candidate_of(v: Tensor<3>, candidate: Candidate) -> Tensor<3> {
    match candidate {
        Candidate::Identity => v,
        Candidate::Tanh => v.tanh(),
        Candidate::Positive => positive::composed(v),
    }
}

/// ln g(v): ln(v + ½) from 0 on, −softplus(−v) below.
pub(super) fn log_g(v: Tensor<3>) -> Tensor<3> {
    let not_negative = v.clone().greater_equal_scalar(0.0);
    (-softplus(-v.clone())).mask_where(not_negative, (activation::relu(v) + 0.5).log())
}
