//! S6, the selective state spaces inside Mamba, as a layer of its own (Gu and Dao 2023, arXiv:2312.00752, §3.2).
//!
//! ```text
//! [δ, B, C] = W_x u             Δ = softplus(W_dt δ + b_dt)                   A = −exp(A_log)
//! h_t = exp(Δ_t A) h_{t−1} + Δ_t B_t u_t      y_t = C_t · h_t + D u_t
//! alone in its block: out = value ⊙ σ(gate),  [value, gate] = W GELU(y);      inside a wiring: out = y
//! ```
//! where: u is the layer's input (width E); Δ step size (E), of rank R; B, C (N = `d_state`) shared by all channels; h state (E × N). The
//! `D` in the equations is a channel's skip, like the parameter of this name.
//!
//! There is neither convolution nor gate: those are Mamba's wiring, and `wiring = mamba` around this layer is [`Mamba`](super::Mamba).
//! Without a wiring the channels are mixed as in S4, so the two differ only in their sequence maps.

#![allow(non_snake_case, reason = "parameters have the names they have in checkpoints")]

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::{Tensor, TensorData};
use minrnn_kernels::selective_scan::CHUNK;
use minrnn_model::CheckedConfig;

use super::init::Initializer;
use super::linear::{matmul, matmul_rows, rows, sequences};
use super::mixer::Mixer;
use super::output_mixing::{self, mixed, output_mixing};
use super::state::{State, StateZip};
use crate::memory::activations::{Activations, Op};
use crate::ops::{self, SelectiveScan, StepCodes};

/// The range of initial step sizes, drawn uniformly in their logarithm.
const FIRST_STEPS: [f64; 2] = [1e-3, 0.1];

/// An S6 layer.
#[derive(Module, Debug)]
pub struct S6 {
    /// E → R + 2N without bias, rows δ, B, C.
    pub x_proj: Linear,
    /// R → E; its bias is that of the step size.
    pub dt_proj: Linear,
    /// ln(−A) `[E, N]`.
    pub A_log: Param<Tensor<2>>,
    /// The skip `[E]`.
    pub D: Param<Tensor<1>>,
    /// E → 2E, rows value then gate; absent inside a wiring.
    pub out_proj: Option<Linear>,
}

/// The state of an [`S6`].
#[derive(Debug, Clone)]
pub struct S6State {
    /// The state h `[B, E, N]`.
    pub ssm: Tensor<3>,
}

impl State for S6State {
    fn zip<F: StateZip>(self, other: Self, f: &mut F) -> Self {
        Self { ssm: f.tensor("ssm", self.ssm, other.ssm) }
    }
}

/// The parameters of selective state spaces, as [`S6`] and [`Mamba`](super::Mamba) hold them.
pub(super) struct Selective<'a> {
    pub(super) x_proj: &'a Linear,
    pub(super) dt_proj: &'a Linear,
    pub(super) A_log: &'a Param<Tensor<2>>,
    pub(super) D: &'a Param<Tensor<1>>,
}

impl Selective<'_> {
    /// h = 0 `[B, E, N]`.
    pub(super) fn init_state(&self, batch_size: usize) -> Tensor<3> {
        let a_log = self.A_log.val();
        let [e, n] = a_log.dims();
        Tensor::zeros([batch_size, e, n], &a_log.device())
    }

    /// y `[B, T, E]`, multiplied by SiLU(z) if there is a z, and the last state. `u` and `selecting` hold the same numbers for two readers:
    /// the recurrence, and the layer that computes step sizes, B and C.
    pub(super) fn scan(
        &self,
        [u, selecting]: [Tensor<3>; 2],
        z: Option<Tensor<3>>,
        h0: Tensor<3>,
        steps: &StepCodes,
    ) -> (Tensor<3>, Tensor<3>) {
        let [batch, seq_len, _] = u.dims();
        let [r, _] = self.dt_proj.weight.dims();
        let (delta, bc) = ops::split(matmul_rows(rows(selecting), self.x_proj.weight.val()), r);
        let scan = SelectiveScan {
            u,
            delta: matmul(self.dt_proj, sequences(delta, batch, seq_len)),
            delta_bias: self.dt_proj.bias.as_ref().expect("made with a bias").val(),
            a: -self.A_log.val().exp(),
            bc: sequences(bc, batch, seq_len),
            skip: self.D.val(),
            z,
            h0: Some(h0),
        };
        ops::selective_scan(scan, steps)
    }

    /// What `scan` keeps for `e` channels, with a z if it is `gated`.
    pub(super) fn activations(config: &CheckedConfig, e: u128, gated: bool, list: &mut Activations) {
        let (n, r, z) = (config.d_state as u128, config.step_rank() as u128, if gated { e } else { 0 });
        list.op(Op { keeps: &[e], reads: e, gives: r + 2 * n, aside: z + e, ..Op::default() });
        list.op(Op { reads: r + 2 * n, gives: r + 2 * n, aside: z + e, ..Op::default() });
        list.op(Op { keeps: &[r], reads: r, gives: e, aside: z + e + 2 * n, ..Op::default() });
        list.keep(list.batch() * list.length().div_ceil(CHUNK as u128) * n * e);
        list.op(Op { keeps: &[e, 2 * n, z], reads: 2 * e + 2 * n + z, gives: e, ..Op::default() });
    }
}

impl S6 {
    /// The layer described by `config`: A = −1 … −N in every channel, D = 1, step sizes between 1e-3 and 0.1.
    pub fn new(config: &CheckedConfig, _layer: usize, init: &mut Initializer) -> Self {
        let inner = Self::inner(config.d_model, config, init);
        Self { out_proj: output_mixing(config, init), ..inner }
    }

    /// A layer of width `e`, without channel mixing.
    pub(super) fn inner(e: usize, config: &CheckedConfig, init: &mut Initializer) -> Self {
        let (n, r) = (config.d_state, config.step_rank());
        let a_log: Vec<f32> = (0..e * n).map(|i| ((i % n + 1) as f32).ln()).collect();
        Self {
            x_proj: init.linear_with_bias(e, r + 2 * n, false),
            dt_proj: Linear { weight: init.uniform([r, e], r), bias: Some(init.map_uniform([e], first_step_bias)) },
            A_log: Param::from_tensor(Tensor::from_data(TensorData::new(a_log, [e, n]), init.device())),
            D: init.constant([e], 1.0),
            out_proj: None,
        }
    }

    pub(super) fn activations(config: &CheckedConfig, list: &mut Activations) {
        Selective::activations(config, config.d_model as u128, false, list);
        output_mixing::activations(config, list);
    }

    fn selective(&self) -> Selective<'_> {
        Selective { x_proj: &self.x_proj, dt_proj: &self.dt_proj, A_log: &self.A_log, D: &self.D }
    }
}

impl Mixer for S6 {
    type State = S6State;

    fn init_state(&self, batch_size: usize) -> S6State {
        S6State { ssm: self.selective().init_state(batch_size) }
    }

    fn forward(&self, x: Tensor<3>, state: S6State, steps: &StepCodes) -> (Tensor<3>, S6State) {
        let (y, ssm) = self.selective().scan([x.clone(), x], None, state.ssm, steps);
        (mixed(y, self.out_proj.as_ref()), S6State { ssm })
    }
}

/// The bias whose softplus is the step size at the fraction `unit` in [0, 1) of [`FIRST_STEPS`].
fn first_step_bias(unit: f32) -> f32 {
    let [low, high] = FIRST_STEPS.map(f64::ln);
    let step = (low + f64::from(unit) * (high - low)).exp();
    (step + (-(-step).exp_m1()).ln()) as f32
}
