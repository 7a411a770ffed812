//! S4: a state space whose matrix is a diagonal less a rank-one part, HiPPO-LegS at first (Gu et al. 2022, arXiv:2111.00396).
//!
//! ```text
//! x' = (Λ − P P*) x + B u,  bilinear:  x_t = Ā x_{t−1} + B̄ u_t      y = 2 Re C x + D u
//! alone in its block: out = value ⊙ σ(gate),  [value, gate] = W GELU(y);      inside a wiring: out = y
//! ```
//! where: u the layer's input, one channel; x its N/2 complex states in the basis that makes Λ diagonal; Ā and B̄ as in
//! [`StateSpace`].

use burn::config::Config;
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;
use minrnn_model::{CheckedConfig, WiringKind};

use super::init::Initializer;
use super::mixer::Mixer;
use super::output_mixing::{mixed, output_mixing};
use super::state_space::{StateSpace, StateSpaceState};
use crate::Result;
use crate::ops::StepCodes;

/// Settings of an [`S4`].
#[derive(Config, Debug)]
pub struct S4Config {
    /// Width D of input and output.
    pub d_model: usize,
    /// State size N of each channel, half of which is kept.
    pub d_state: usize,
    /// What the layer stands in.
    #[config(default = "WiringKind::None")]
    pub wiring: WiringKind,
}

/// An S4 layer.
#[derive(Module, Debug)]
pub struct S4 {
    /// The state spaces of the channels.
    pub ssm: StateSpace,
    /// D → 2D, rows value then gate; absent inside a wiring.
    pub out_proj: Option<Linear>,
}

impl S4Config {
    /// The settings a model's configuration asks for.
    ///
    /// # Errors
    /// Never: the configuration was checked.
    pub fn from_model(config: &CheckedConfig, _layer: usize) -> Result<Self> {
        Ok(Self::new(config.d_model, config.d_state).with_wiring(config.wiring))
    }

    /// A new layer.
    pub fn init(&self, init: &mut Initializer) -> S4 {
        let ssm = StateSpace::legs(self.d_model, self.d_state, init);
        S4 { ssm, out_proj: output_mixing(self.d_model, self.wiring, init) }
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
