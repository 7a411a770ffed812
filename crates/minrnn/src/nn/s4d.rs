//! S4D: a diagonal state space for each channel, mixed by a gated linear layer (Gu et al. 2022, arXiv:2206.11893).
//!
//! ```text
//! x_t = e^{ΔA} ⊙ x_{t−1} + (e^{ΔA} − 1) / A · u_t      y = 2 Re C x + D u
//! alone in its block: out = value ⊙ σ(gate),  [value, gate] = W GELU(y);      inside a wiring: out = y
//! ```
//! where: u the layer's input, one channel; x its N/2 complex states; A diagonal, Re A < 0; Δ the channel's step.
//!
//! y is the convolution of u with K_l = 2 Re Σ C (e^{ΔA} − 1)/A e^{ΔAl}; the recurrence costs no more than transforms at the sizes of
//! states in use, and carries its state.

use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;
use minrnn_model::CheckedConfig;

use super::init::Initializer;
use super::mixer::Mixer;
use super::output_mixing::{map_activations, mixed, output_mixing};
use super::state_space::{StateSpace, StateSpaceState};
use crate::memory::activations::Activations;
use crate::ops::StepCodes;

/// An S4D layer.
#[derive(Module, Debug)]
pub struct S4d {
    /// The state spaces of the channels.
    pub ssm: StateSpace,
    /// D → 2D, rows value then gate; absent inside a wiring.
    pub out_proj: Option<Linear>,
}

impl S4d {
    /// The layer that `config` asks for.
    pub fn new(config: &CheckedConfig, _layer: usize, init: &mut Initializer) -> Self {
        let ssm = StateSpace::diagonal(config.d_model, config.d_state, config.s4_init, init);
        Self { ssm, out_proj: output_mixing(config, init) }
    }

    pub(super) fn activations(config: &CheckedConfig, list: &mut Activations) {
        map_activations(config, 0, list);
    }
}

impl Mixer for S4d {
    type State = StateSpaceState;

    fn init_state(&self, batch_size: usize) -> StateSpaceState {
        self.ssm.init_state(batch_size, 1)
    }

    fn forward(&self, x: Tensor<3>, state: StateSpaceState, steps: &StepCodes) -> (Tensor<3>, StateSpaceState) {
        let (y, state) = self.ssm.forward(x, state, steps, 1);
        (mixed(y, self.out_proj.as_ref()), state)
    }
}
