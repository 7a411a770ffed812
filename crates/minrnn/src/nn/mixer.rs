//! The contract of time-mixing layers.

use burn::module::{Module, ModuleDisplay};
use burn::tensor::Tensor;

use super::state::State;
use crate::ops::StepCodes;

/// A causal layer that mixes over time and carries a state.
///
/// **Law.** Cut a sequence anywhere and carry the state across the cut: outputs, final state and gradients (through the state, and with
/// respect to the initial one) are those of the whole sequence. Padding leaves the state unchanged; outputs there and their gradients are
/// meaningless. A reset restores a row's state to [`init_state`](Mixer::init_state) before the step.
///
/// Inputs and states are f32; the library's mixers panic on f64 or f16.
pub trait Mixer: Module + ModuleDisplay {
    /// Everything carried between calls.
    type State: State;

    /// The initial state of `batch_size` sequences.
    fn init_state(&self, batch_size: usize) -> Self::State;

    /// The whole sequence `x` `[B, T, D]` → `[B, T, D]` and the state after it.
    ///
    /// # Panics
    /// When the shapes of input, state and steps do not fit.
    fn forward(&self, x: Tensor<3>, state: Self::State, steps: &StepCodes) -> (Tensor<3>, Self::State);

    /// Whether `x` and y may be 16-bit on GPUs: only if every operation between them has kernels that accept such activations and compute
    /// in f32. States are always f32.
    fn takes_bf16(&self) -> bool {
        false
    }

    /// One step `x` `[B, D]` → `[B, D]` and the state after it.
    ///
    /// # Panics
    /// When the shapes of input and state do not fit.
    fn step(&self, x: Tensor<2>, state: Self::State) -> (Tensor<2>, Self::State) {
        let (y, state) = self.forward(x.unsqueeze_dim(1), state, &StepCodes::dense());
        (y.squeeze_dim(1), state)
    }
}
