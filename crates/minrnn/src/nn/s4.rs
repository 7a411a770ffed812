//! S4: a state space whose matrix is diagonal minus a rank-one part, initially HiPPO-LegS (Gu et al. 2022, arXiv:2111.00396).
//!
//! ```text
//! x' = (Λ − P P*) x + B u,  bilinear:  x_t = Ā x_{t−1} + B̄ u_t      y = 2 Re C x + D u
//! alone in its block: out = value ⊙ σ(gate),  [value, gate] = W GELU(y);      inside a wiring: out = y
//! ```
//! where: u is the layer's input, one channel; x its N/2 complex states in the basis in which Λ is diagonal; Ā and B̄ as in [`StateSpace`].

use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;
use minrnn_model::{CheckedConfig, MixerKind};

use super::init::Initializer;
use super::layer::expect_layer;
use super::mixer::Mixer;
use super::output_mixing::{map_activations, mixed, output_mixing};
use super::state_space::{StateSpace, StateSpaceState};
use crate::memory::activations::Activations;
use crate::ops::StepCodes;

/// An S4 layer.
#[derive(Module, Debug)]
pub struct S4 {
    /// The state spaces of the channels.
    pub ssm: StateSpace,
    /// D → 2D, rows value then gate; absent inside a wiring.
    pub out_proj: Option<Linear>,
}

impl S4 {
    /// The layer described by `config` in block `layer`, counted from 0; for an [`S4d`](super::S4d) its matrix is diagonal.
    ///
    /// # Panics
    /// When `config` has no such block.
    pub fn new(config: &CheckedConfig, layer: usize, init: &mut Initializer) -> Self {
        expect_layer(config, layer);
        let ssm = match config.mixer_at(layer) {
            MixerKind::S4d => StateSpace::diagonal(config.d_model, config.d_state, config.s4_init, init),
            _ => StateSpace::legs(config.d_model, config.d_state, init),
        };
        Self { ssm, out_proj: output_mixing(config, init) }
    }

    pub(super) fn activations(config: &CheckedConfig, list: &mut Activations) {
        map_activations(config, 0, list);
    }
}

impl Mixer for S4 {
    type State = StateSpaceState;

    fn init_state(&self, batch_size: usize) -> StateSpaceState {
        self.ssm.init_state(batch_size, 1)
    }

    fn forward(&self, x: Tensor<3>, state: StateSpaceState, steps: &StepCodes) -> (Tensor<3>, StateSpaceState) {
        let (y, state) = self.ssm.forward(x, state, steps, 1);
        (mixed(y, self.out_proj.as_ref()), state)
    }
}
