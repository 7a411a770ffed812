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

use burn::config::Config;
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;
use minrnn_model::{CheckedConfig, S4Init, WiringKind};

use super::init::Initializer;
use super::mixer::Mixer;
use super::output_mixing::{mixed, output_mixing};
use super::state_space::{StateSpace, StateSpaceState};
use crate::Result;
use crate::ops::StepCodes;

/// Settings of an [`S4d`].
#[derive(Config, Debug)]
pub struct S4dConfig {
    /// Width D of input and output.
    pub d_model: usize,
    /// State size N of each channel, half of which is kept.
    pub d_state: usize,
    /// What A begins with.
    #[config(default = "S4Init::Legs")]
    pub s4_init: S4Init,
    /// What the layer stands in.
    #[config(default = "WiringKind::None")]
    pub wiring: WiringKind,
}

/// An S4D layer.
#[derive(Module, Debug)]
pub struct S4d {
    /// The state spaces of the channels.
    pub ssm: StateSpace,
    /// D → 2D, rows value then gate; absent inside a wiring.
    pub out_proj: Option<Linear>,
}

impl S4dConfig {
    /// The settings a model's configuration asks for.
    ///
    /// # Errors
    /// Never: the configuration was checked.
    pub fn from_model(config: &CheckedConfig, _layer: usize) -> Result<Self> {
        Ok(Self::new(config.d_model, config.d_state).with_s4_init(config.s4_init).with_wiring(config.wiring))
    }

    /// A new layer.
    pub fn init(&self, init: &mut Initializer) -> S4d {
        let ssm = StateSpace::diagonal(self.d_model, self.d_state, self.s4_init, init);
        S4d { ssm, out_proj: output_mixing(self.d_model, self.wiring, init) }
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
