//! Mamba, the selective state space model S6 (models.md §5), with everything between its residual connections.
//!
//! ```text
//! [u', ζ] = W_in x              u = SiLU(causal depthwise conv4(u') + c)
//! [δ, B, C] = W_x u             Δ = softplus(W_dt δ + b_dt)                   A = −exp(A_log)
//! h_t = exp(Δ_t A) h_{t−1} + Δ_t B_t u_t      y_t = (C_t · h_t + D u_t) ⊙ SiLU(ζ_t)
//! out = W_out y
//! ```
//! where: x input (D); u, ζ inner branch and gate (E = expansion · D); Δ step size (E), of rank R = ⌈D / 16⌉; B, C (N = `d_state`) shared
//! by all channels; h state (E × N). `D` of the equations is the skip of a channel, as the parameter's name has it.
//!
//! The block around it has neither convolution nor feed-forward part of its own: `conv = false`, `ff = none`. The state before the first
//! step is 0; `initial_state` plays no part.

#![allow(non_snake_case, reason = "parameters have the names they have in checkpoints")]

use burn::config::Config;
use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::{Tensor, TensorData};
use minrnn_stream::ModelConfig;

use super::conv::{Depthwise, KERNEL_SIZE};
use super::init::Initializer;
use super::linear::{product, row_product, rows, sequences};
use super::mixer::Mixer;
use super::state::{State, StateZip};
use crate::Result;
use crate::ops::{self, SelectiveScan, StepCodes};

/// The range that first step sizes are drawn from, uniformly in their logarithm.
const FIRST_STEPS: [f64; 2] = [1e-3, 0.1];

/// Settings of a [`Mamba`].
#[derive(Config, Debug)]
pub struct MambaConfig {
    /// Width D of input and output.
    pub d_model: usize,
    /// Width E of the inner branch.
    pub d_inner: usize,
    /// States N of each channel.
    #[config(default = 16)]
    pub d_state: usize,
    /// Blocks of the model: the output projection begins smaller by its square root.
    #[config(default = 1)]
    pub n_layers: usize,
}

/// A Mamba layer; the parameters have the names of `MambaForCausalLM`.
#[derive(Module, Debug)]
pub struct Mamba {
    /// D → 2E without bias, rows u' then ζ.
    pub in_proj: Linear,
    /// The convolution over u'.
    pub conv1d: Depthwise,
    /// E → R + 2N without bias, rows δ, B, C.
    pub x_proj: Linear,
    /// R → E; its bias is that of the step size.
    pub dt_proj: Linear,
    /// ln(−A) `[E, N]`.
    pub A_log: Param<Tensor<2>>,
    /// The skip `[E]`.
    pub D: Param<Tensor<1>>,
    /// E → D without bias.
    pub out_proj: Linear,
}

/// What a [`Mamba`] carries.
#[derive(Debug, Clone)]
pub struct MambaState {
    /// The inputs that the convolution still needs `[B, 3, E]`, oldest first.
    pub conv: Tensor<3>,
    /// The state h `[B, E, N]`.
    pub ssm: Tensor<3>,
}

impl State for MambaState {
    fn zip<F: StateZip>(self, other: Self, f: &mut F) -> Self {
        Self { conv: f.tensor("conv", self.conv, other.conv), ssm: f.tensor("ssm", self.ssm, other.ssm) }
    }
}

impl MambaConfig {
    /// The settings a model's configuration asks for.
    ///
    /// # Errors
    /// When the expansion gives no whole width.
    pub fn from_model(config: &ModelConfig, _layer: usize) -> Result<Self> {
        Ok(Self::new(config.d_model, config.d_inner()?).with_d_state(config.d_state).with_n_layers(config.n_layers))
    }

    /// R, the rank of the step size.
    pub fn dt_rank(&self) -> usize {
        self.d_model.div_ceil(16)
    }

    /// A new layer: A = −1 … −N in every channel, D = 1, step sizes between 1e-3 and 0.1.
    pub fn init(&self, init: &mut Initializer) -> Mamba {
        let (e, n, r) = (self.d_inner, self.d_state, self.dt_rank());
        let a_log: Vec<f32> = (0..e * n).map(|i| ((i % n + 1) as f32).ln()).collect();
        Mamba {
            in_proj: init.linear_with_bias(self.d_model, 2 * e, false),
            conv1d: Depthwise::new(e, init),
            x_proj: init.linear_with_bias(e, r + 2 * n, false),
            dt_proj: Linear { weight: init.uniform([r, e], r), bias: Some(init.map_uniform([e], first_step_bias)) },
            A_log: Param::from_tensor(Tensor::from_data(TensorData::new(a_log, [e, n]), init.device())),
            D: init.constant([e], 1.0),
            out_proj: Linear { weight: init.uniform([e, self.d_model], e * self.n_layers), bias: None },
        }
    }
}

/// The bias whose softplus is the step size at the place `unit` in [0, 1) of [`FIRST_STEPS`].
fn first_step_bias(unit: f32) -> f32 {
    let [low, high] = FIRST_STEPS.map(f64::ln);
    let step = (low + f64::from(unit) * (high - low)).exp();
    (step + (-(-step).exp_m1()).ln()) as f32
}

impl Mamba {
    /// What the output projection takes: y of every step `[B, T, E]`, and the state after the last.
    ///
    /// # Panics
    /// When the shapes of input, state and steps do not fit.
    pub fn inner(&self, x: Tensor<3>, state: MambaState, steps: &StepCodes) -> (Tensor<3>, MambaState) {
        let [batch, seq_len, _] = x.dims();
        let [e, _] = self.out_proj.weight.dims();
        let [r, _] = self.dt_proj.weight.dims();
        let (u, z) = ops::split(row_product(rows(x), self.in_proj.weight.val()), e);
        let [u, z] = [u, z].map(|x| sequences(x, batch, seq_len));
        let (u, conv) = ops::causal_conv(u, self.conv1d.weight.val(), self.conv1d.bias.val(), Some(state.conv), steps);
        let (u, selecting) = ops::silu_twice(u);
        let (delta, bc) = ops::split(row_product(rows(selecting), self.x_proj.weight.val()), r);
        let scan = SelectiveScan {
            u,
            delta: product(&self.dt_proj, sequences(delta, batch, seq_len)),
            delta_bias: self.dt_proj.bias.as_ref().expect("made with a bias").val(),
            a: -self.A_log.val().exp(),
            bc: sequences(bc, batch, seq_len),
            skip: self.D.val(),
            z: Some(z),
            h0: Some(state.ssm),
        };
        let (y, ssm) = ops::selective_scan(scan, steps);
        (y, MambaState { conv, ssm })
    }
}

impl Mixer for Mamba {
    type State = MambaState;

    fn init_state(&self, batch_size: usize) -> MambaState {
        let a_log = self.A_log.val();
        let ([e, n], device) = (a_log.dims(), a_log.device());
        MambaState { conv: Tensor::zeros([batch_size, KERNEL_SIZE - 1, e], &device), ssm: Tensor::zeros([batch_size, e, n], &device) }
    }

    fn forward(&self, x: Tensor<3>, state: MambaState, steps: &StepCodes) -> (Tensor<3>, MambaState) {
        let (y, state) = self.inner(x, state, steps);
        (product(&self.out_proj, y), state)
    }
}
