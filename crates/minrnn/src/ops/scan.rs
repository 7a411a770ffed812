//! The linear recurrence h_t = a_t ⊙ h_{t−1} + b_t, in linear space and in the paper's log space.

use burn::tensor::Tensor;
use minrnn_kernels::recurrence::Cell;

use super::fused::{has_kernels, is_on_cpu};
use super::recurrence::{Start, composed, expect_cell, fused};
use super::shapes::expect_shape;
use super::steps::StepCodes;

/// The linear recurrence h_t = a_t ⊙ h_{t−1} + b_t.
///
/// # Shapes
/// * `coeffs` (a), `values` (b) `[B, T, E]` → h `[B, T, E]` and the last state `[B, E]`
///
/// # Panics
/// When shapes do not fit.
pub fn linear_scan(coeffs: Tensor<3>, values: Tensor<3>, start: Start, steps: &StepCodes) -> (Tensor<3>, Tensor<2>) {
    expect_cell("linear_scan", 1, &coeffs, None, &start);
    expect_shape("linear_scan", "values", &values, coeffs.dims());
    if has_kernels(&coeffs) {
        fused(Cell::Linear, coeffs, Some(values), None, start, steps)
    } else {
        composed(coeffs, values, start, steps)
    }
}

/// The same recurrence from ln a and ln b by the running log-sum-exp of the paper (appendix B); h0, init and b must not be negative.
///
/// Less accurate and slower than [`linear_scan`]; for fidelity and study.
///
/// # Shapes
/// * `log_coeffs`, `log_values` `[B, T, E]` → h `[B, T, E]` and the last state `[B, E]`
///
/// # Panics
/// When shapes do not fit.
pub fn log_space_scan(log_coeffs: Tensor<3>, log_values: Tensor<3>, start: Start, steps: &StepCodes) -> (Tensor<3>, Tensor<2>) {
    expect_cell("log_space_scan", 1, &log_coeffs, None, &start);
    expect_shape("log_space_scan", "log_values", &log_values, log_coeffs.dims());
    if is_on_cpu(&log_coeffs.device()) {
        fused(Cell::LogSpace, log_coeffs, Some(log_values), None, start, steps)
    } else {
        composed(log_coeffs.exp(), log_values.exp(), start, steps)
    }
}
