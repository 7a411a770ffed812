//! minLSTM with its gates fused into the recurrence.

use burn::tensor::{Tensor, activation};
use minrnn_kernels::{Candidate, Gates, recurrence::Cell};

use super::fused::has_kernels;
use super::min_gru::{candidate_of, log_g, with_bias};
use super::recurrence::{NO_EXTRA, Start, composed, expect_cell, fused};
use super::softplus::softplus;
use super::steps::StepCodes;

/// h_t = f'_t ⊙ h_{t−1} + i'_t ⊙ h̃_t with the gates σ(f), σ(i), normalised to sum to 1 or independent (paper §3.2).
///
/// # Shapes
/// * `preact` `[B, T, 3E]`, rows candidate, f, i; `bias` `[3E]`, added to it → h `[B, T, E]` and the last state `[B, E]`
///
/// # Panics
/// When shapes do not fit.
pub fn min_lstm(
    preact: Tensor<3>,
    bias: Option<Tensor<1>>,
    candidate: Candidate,
    gates: Gates,
    start: Start,
    steps: &StepCodes,
) -> (Tensor<3>, Tensor<2>) {
    expect_cell("min_lstm", 3, &preact, bias.as_ref(), &start);
    if has_kernels(&preact) {
        return fused(Cell::MinLstm(candidate, gates), preact, NO_EXTRA, bias, start, steps);
    }
    let (coeffs, values) = coefficients(preact, bias, candidate, gates);
    composed(coeffs, values, start, steps)
}

/// f' and i' ⊙ h̃, both `[B, T, E]`, by tensor operations.
pub(super) fn coefficients(preact: Tensor<3>, bias: Option<Tensor<1>>, candidate: Candidate, gates: Gates) -> (Tensor<3>, Tensor<3>) {
    let [v, f, i] = split(preact, bias);
    let (forget, input) = match gates {
        Gates::Unnormalized => (activation::sigmoid(f), activation::sigmoid(i)),
        Gates::Normalized => {
            let d = softplus(-f) - softplus(-i);
            (activation::sigmoid(-d.clone()), activation::sigmoid(d))
        }
    };
    (forget, input * candidate_of(v, candidate))
}

/// ln f' and ln (i' g(v)) of the paper's log-space form, both `[B, T, E]`.
pub(crate) fn log_coefficients(preact: Tensor<3>, bias: Option<Tensor<1>>, gates: Gates) -> (Tensor<3>, Tensor<3>) {
    let [v, f, i] = split(preact, bias);
    let (log_forget, log_input) = match gates {
        Gates::Unnormalized => (-softplus(-f), -softplus(-i)),
        Gates::Normalized => {
            let d = softplus(-f) - softplus(-i);
            (-softplus(d.clone()), -softplus(-d))
        }
    };
    (log_forget, log_input + log_g(v))
}

fn split(preact: Tensor<3>, bias: Option<Tensor<1>>) -> [Tensor<3>; 3] {
    let preact = with_bias(preact, bias);
    let e = preact.dims()[2] / 3;
    [0, 1, 2].map(|part| preact.clone().narrow(2, part * e, e))
}
