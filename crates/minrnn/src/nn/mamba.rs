//! Mamba, the selective state space model (Gu and Dao 2023, arXiv:2312.00752), with everything between its residual connections: a wiring
//! around [`S6`](super::S6).
//!
//! ```text
//! [u', ζ] = W_in x              u = SiLU(causal depthwise conv4(u') + c)
//! [δ, B, C] = W_x u             Δ = softplus(W_dt δ + b_dt)                   A = −exp(A_log)
//! h_t = exp(Δ_t A) h_{t−1} + Δ_t B_t u_t      y_t = (C_t · h_t + D u_t) ⊙ SiLU(ζ_t)
//! out = W_out y
//! ```
//! where: x input (D); u, ζ inner branch and gate (E = expansion · D); Δ step size (E), of rank R, ⌈D / 16⌉ by default; B, C (N =
//! `d_state`) shared by all channels; h state (E × N). The `D` in the equations is a channel's skip, like the parameter of this name.
//!
//! The block around it has no convolution or feed-forward part of its own: `conv = false`, `ff = none`. The initial state is 0;
//! `initial_state` is ignored.

#![allow(non_snake_case, reason = "parameters have the names they have in checkpoints")]

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::Tensor;
use minrnn_model::CheckedConfig;

use super::conv::Depthwise;
use super::init::Initializer;
use super::linear::{matmul, matmul_rows, rows, sequences};
use super::mixer::Mixer;
use super::s6::{S6, Selective};
use super::state::{State, StateZip};
use crate::memory::activations::{Activations, Op};
use crate::ops::{self, StepCodes};

/// A Mamba layer; the parameters are named as in `MambaForCausalLM`.
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

/// The state of a [`Mamba`].
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

impl Mamba {
    /// The layer described by `config`: A = −1 … −N in every channel, D = 1, step sizes between 1e-3 and 0.1.
    pub fn new(config: &CheckedConfig, _layer: usize, init: &mut Initializer) -> Self {
        let (d, e) = (config.d_model, config.d_inner());
        let (in_proj, conv1d) = (init.linear_with_bias(d, 2 * e, false), Depthwise::new(e, init));
        let S6 { x_proj, dt_proj, A_log, D, .. } = S6::inner(e, config, init);
        let out_proj = Linear { weight: init.uniform([e, d], e * config.n_layers), bias: None };
        Self { in_proj, conv1d, x_proj, dt_proj, A_log, D, out_proj }
    }

    pub(super) fn activations(config: &CheckedConfig, list: &mut Activations) {
        let [d, e] = [config.d_model, config.d_inner()].map(|x| x as u128);
        list.op(Op { keeps: &[d], reads: d, gives: 2 * e, ..Op::default() });
        list.op(Op { reads: 2 * e, gives: 2 * e, ..Op::default() });
        list.aside += e;
        Depthwise::silu_activations(e, list);
        list.aside -= e;
        Selective::activations(config, e, true, list);
        list.biased(e, d, false);
    }

    fn selective(&self) -> Selective<'_> {
        Selective { x_proj: &self.x_proj, dt_proj: &self.dt_proj, A_log: &self.A_log, D: &self.D }
    }

    /// The input of the output projection: y of every step `[B, T, E]`, and the state after the last.
    ///
    /// # Panics
    /// When the shapes of input, state and steps do not fit.
    pub fn inner(&self, x: Tensor<3>, state: MambaState, steps: &StepCodes) -> (Tensor<3>, MambaState) {
        let [batch, seq_len, _] = x.dims();
        let [e, _] = self.out_proj.weight.dims();
        let (u, z) = ops::split(matmul_rows(rows(x), self.in_proj.weight.val()), e);
        let [u, z] = [u, z].map(|x| sequences(x, batch, seq_len));
        let (u, conv) = ops::causal_conv(u, self.conv1d.weight.val(), self.conv1d.bias.val(), Some(state.conv), steps);
        let (u, selecting) = ops::silu_shared(u);
        let (y, ssm) = self.selective().scan([u, selecting], Some(z), state.ssm, steps);
        (y, MambaState { conv, ssm })
    }
}

impl Mixer for Mamba {
    type State = MambaState;

    fn init_state(&self, batch_size: usize) -> MambaState {
        MambaState { conv: self.conv1d.init_state(batch_size).window, ssm: self.selective().init_state(batch_size) }
    }

    fn forward(&self, x: Tensor<3>, state: MambaState, steps: &StepCodes) -> (Tensor<3>, MambaState) {
        let (y, state) = self.inner(x, state, steps);
        (matmul(&self.out_proj, y), state)
    }
}
