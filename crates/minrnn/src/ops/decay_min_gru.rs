//! minGRU with decay over time, its gates fused into the recurrence.

use burn::tensor::Tensor;
use minrnn_kernels::{Candidate, Shape, Start as KernelStart, decay_min_gru as kernel};

use super::fused::is_on_cpu;
use super::min_gru;
use super::recurrence::{Gradients, Out, Recurrence, Start, composed, fused};
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
    if is_on_cpu(&preact.device()) {
        return fused(DecayMinGru(candidate), vec![preact, exponent], bias, start, steps);
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

#[derive(Debug)]
struct DecayMinGru(Candidate);

impl Recurrence for DecayMinGru {
    fn d_inner(&self, width: usize) -> usize {
        width / 2
    }

    fn forward(&self, shape: Shape, inputs: &[&[f32]], bias: Option<&[f32]>, start: KernelStart<'_>, h: Out<'_>, h_last: Out<'_>) {
        kernel::forward(shape, self.0, inputs[0], inputs[1], bias, start, h, h_last);
    }

    fn backward(&self, shape: Shape, x: &[&[f32]], bias: Option<&[f32]>, start: KernelStart<'_>, h: &[f32], d: Gradients<'_>) {
        let Ok([d_preact, d_exponent]) = <[Out<'_>; 2]>::try_from(d.inputs) else { unreachable!("two inputs") };
        kernel::backward(shape, self.0, x[0], x[1], bias, start, h, d.h, d.h_last, d_preact, d_exponent, d.bias, d.h0, d.init);
    }
}
