//! The linear recurrence h_t = a_t ⊙ h_{t−1} + b_t, in linear space and in the paper's log space.

use burn::tensor::Tensor;
use minrnn_kernels::{Shape, Start as KernelStart, log_space, scan};

use super::fused::{has_kernels, is_on_cpu};
use super::recurrence::{Gradients, Out, Recurrence, Start, composed, fused};
use super::steps::StepCodes;

/// The linear recurrence h_t = a_t ⊙ h_{t−1} + b_t.
///
/// # Shapes
/// * `coeffs` (a), `values` (b) `[B, T, E]` → h `[B, T, E]` and the last state `[B, E]`
///
/// # Panics
/// When shapes do not fit.
pub fn linear_scan(coeffs: Tensor<3>, values: Tensor<3>, start: Start, steps: &StepCodes) -> (Tensor<3>, Tensor<2>) {
    if has_kernels(&coeffs) { fused(LinearScan, vec![coeffs, values], None, start, steps) } else { composed(coeffs, values, start, steps) }
}

/// The same recurrence from ln a and ln b by the running log-sum-exp of the paper (appendix B); h0, init and b are not negative.
///
/// Less exact and slower than [`linear_scan`]; for fidelity and study.
///
/// # Shapes
/// * `log_coeffs`, `log_values` `[B, T, E]` → h `[B, T, E]` and the last state `[B, E]`
///
/// # Panics
/// When shapes do not fit.
pub fn log_space_scan(log_coeffs: Tensor<3>, log_values: Tensor<3>, start: Start, steps: &StepCodes) -> (Tensor<3>, Tensor<2>) {
    if is_on_cpu(&log_coeffs.device()) {
        fused(LogSpaceScan, vec![log_coeffs, log_values], None, start, steps)
    } else {
        composed(log_coeffs.exp(), log_values.exp(), start, steps)
    }
}

#[derive(Debug)]
struct LinearScan;

impl Recurrence for LinearScan {
    #[cfg(feature = "gpu")]
    fn cell(&self) -> Option<super::gpu::Cell> {
        Some(super::gpu::Cell::Linear)
    }

    fn d_inner(&self, width: usize) -> usize {
        width
    }

    fn forward(&self, shape: Shape, inputs: &[&[f32]], _: Option<&[f32]>, start: KernelStart<'_>, h: Out<'_>, h_last: Out<'_>) {
        scan::forward(shape, inputs[0], inputs[1], start, h, h_last);
    }

    fn backward(&self, shape: Shape, inputs: &[&[f32]], _: Option<&[f32]>, start: KernelStart<'_>, h: &[f32], d: Gradients<'_>) {
        let [d_coeffs, d_values]: [Out<'_>; 2] = d.inputs.try_into().unwrap_or_else(|_| unreachable!("two inputs"));
        scan::backward(shape, inputs[0], start, h, d.h, d.h_last, d_coeffs, d_values, d.h0, d.init);
    }
}

#[derive(Debug)]
struct LogSpaceScan;

impl Recurrence for LogSpaceScan {
    fn d_inner(&self, width: usize) -> usize {
        width
    }

    fn forward(&self, shape: Shape, inputs: &[&[f32]], _: Option<&[f32]>, start: KernelStart<'_>, h: Out<'_>, h_last: Out<'_>) {
        log_space::forward(shape, inputs[0], inputs[1], start, h, h_last);
    }

    fn backward(&self, shape: Shape, inputs: &[&[f32]], _: Option<&[f32]>, start: KernelStart<'_>, h: &[f32], d: Gradients<'_>) {
        let [d_coeffs, d_values]: [Out<'_>; 2] = d.inputs.try_into().unwrap_or_else(|_| unreachable!("two inputs"));
        log_space::backward(shape, inputs[0], inputs[1], start, h, d.h, d.h_last, d_coeffs, d_values, d.h0, d.init);
    }
}
