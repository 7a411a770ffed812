//! RG-LRU, its gates fused into the recurrence.

use burn::tensor::{Tensor, activation};
use minrnn_kernels::recurrence::Cell;

use super::fused::is_on_cpu;
use super::min_gru::with_bias;
use super::recurrence::{Start, composed, fused};
use super::shapes::expect_shape;
use super::steps::StepCodes;

/// The inputs of an [`rg_lru`].
#[derive(Debug, Clone)]
pub struct RgLru {
    /// The values x `[B, T, E]`.
    pub x: Tensor<3>,
    /// Pre-activations r `[B, T, E]` of the recurrence gate.
    pub recurrence_gate: Tensor<3>,
    /// Pre-activations k `[B, T, E]` of the input gate.
    pub input_gate: Tensor<3>,
    /// Added to r and k: `[2E]`.
    pub bias: Tensor<1>,
    /// The rate c ≥ 0 of each channel `[E]`.
    pub rate: Tensor<1>,
}

impl RgLru {
    /// Refuses tensors that do not fit x.
    ///
    /// # Panics
    /// When they do not.
    fn expect_fits(&self, memory: &RgLruMemory) {
        let [batch, _, e] = self.x.dims();
        expect_shape("rg_lru", "recurrence_gate", &self.recurrence_gate, self.x.dims());
        expect_shape("rg_lru", "input_gate", &self.input_gate, self.x.dims());
        expect_shape("rg_lru", "bias", &self.bias, [2 * e]);
        expect_shape("rg_lru", "rate", &self.rate, [e]);
        expect_shape("rg_lru", "memory.h", &memory.h, [batch, e]);
        expect_shape("rg_lru", "memory.position", &memory.position, [batch, 1]);
    }
}

/// The state of an [`rg_lru`].
#[derive(Debug, Clone)]
pub struct RgLruMemory {
    /// h `[B, E]`.
    pub h: Tensor<2>,
    /// The position of each row's next step `[B, 1]`.
    pub position: Tensor<2>,
}

/// h_t = a_t ⊙ h_{t−1} + √(1 − a_t²) ⊙ σ(k_t) ⊙ x_t with a_t = e^{−c σ(r_t)} (De et al. 2024, arXiv:2402.19427, §2.4). At position 0 and
/// after resets a is 0, so that σ(k) ⊙ x enters unscaled.
///
/// # Shapes
/// * as described at the fields → h `[B, T, E]` and the state after the last step
///
/// # Panics
/// When shapes do not fit.
pub fn rg_lru(inputs: RgLru, memory: RgLruMemory, steps: &StepCodes) -> (Tensor<3>, RgLruMemory) {
    inputs.expect_fits(&memory);
    let RgLru { x, recurrence_gate, input_gate, bias, rate } = inputs;
    let [batch, seq_len, e] = x.dims();
    if batch * seq_len == 0 {
        return (x, memory);
    }
    let position = steps.next_position(memory.position.clone(), seq_len);
    let first = steps.first_steps(memory.position.detach(), seq_len);
    let endless = first.zeros_like().mask_fill(first.greater_scalar(0.0), f32::INFINITY);
    let preact = Tensor::cat(vec![x, recurrence_gate + endless, input_gate], 2);
    let bias = Tensor::cat(vec![Tensor::zeros([e], &bias.device()), bias], 0);
    let start = Start::carried(memory.h);
    let (h, h_last) = if is_on_cpu(&preact.device()) {
        fused(Cell::RgLru, preact, Some(rate), Some(bias), start, steps)
    } else {
        let (coeffs, values) = coefficients(preact, bias, rate);
        composed(coeffs, values, start, steps)
    };
    (h, RgLruMemory { h: h_last, position })
}

/// a and √(1 − a²) ⊙ σ(k) ⊙ x, both `[B, T, E]`, by tensor operations, from the parts x, r and k of `preact` `[B, T, 3E]`. a is 0 where r is
/// ∞.
pub(super) fn coefficients(preact: Tensor<3>, bias: Tensor<1>, rate: Tensor<1>) -> (Tensor<3>, Tensor<3>) {
    let preact = with_bias(preact, Some(bias));
    let e = preact.dims()[2] / 3;
    let part = |j: usize| preact.clone().narrow(2, j * e, e);
    let forgets = part(1).greater_equal_scalar(f32::INFINITY);
    let u = activation::sigmoid(part(1)) * rate.unsqueeze();
    let a = (-u.clone()).exp();
    // 1 − a² without cancellation.
    let square = (u.tanh() * (a.clone() * a.clone() + 1.0)).mask_fill(forgets.clone(), 1.0);
    // The root, with a derivative of at most 1000.
    let root = square.clone().detach().sqrt();
    let slope = (root.clone() * 2.0).clamp_min(1e-3).recip();
    let root = root + (square.clone() - square.detach()) * slope;
    (a.mask_fill(forgets, 0.0), root * activation::sigmoid(part(2)) * part(0))
}
