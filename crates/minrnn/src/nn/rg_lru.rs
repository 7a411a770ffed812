//! RG-LRU, the recurrence of Griffin and RecurrentGemma (De et al. 2024, arXiv:2402.19427, §2.4), between two projections.
//!
//! ```text
//! u_t = W_u x_t + b_u          r_t = σ(W_a u_t + b_a)          i_t = σ(W_x u_t + b_x)
//! a_t = exp(−8 softplus(Λ) ⊙ r_t)
//! h_t = a_t ⊙ h_{t−1} + √(1 − a_t²) ⊙ i_t ⊙ u_t                 h_0 = i_0 ⊙ u_0
//! y_t = W_o h_t + b_o
//! ```
//! where: x input (D); u the values stored (E); r recurrence gate; i input gate; h hidden state (E). W_a and W_x are block-diagonal, with a
//! block for each of the `n_heads` heads. The first step of a sequence, and the first after a reset, enters unscaled.
//!
//! Griffin's own block has a convolution between W_u and the gates and a GELU branch beside them; here the block's convolution, `conv` in a
//! configuration, comes before W_u.

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::Tensor;
use minrnn_kernels::recurrence::RG_LRU_SHARPNESS;
use minrnn_model::CheckedConfig;

use super::init::Initializer;
use super::linear::apply;
use super::mixer::Mixer;
use super::s_lstm::Headwise;
use super::state::{State, StateZip};
use crate::memory::activations::{Activations, Op};
use crate::ops::{self, RgLruMemory, StepCodes, block_diagonal, softplus};

/// The range of initial values of a for a fully open gate.
const FIRST_DECAYS: [f64; 2] = [0.9, 0.999];

/// An RG-LRU with its projections.
#[derive(Module, Debug)]
pub struct RgLru {
    /// D → E.
    pub in_proj: Linear,
    /// W_a.
    pub recurrence_gate: Headwise,
    /// W_x.
    pub input_gate: Headwise,
    /// b_a, b_x: `[2E]`.
    pub bias: Param<Tensor<1>>,
    /// Λ `[E]`.
    pub decay: Param<Tensor<1>>,
    /// E → D.
    pub out_proj: Linear,
}

/// The state of an [`RgLru`].
#[derive(Debug, Clone)]
pub struct RgLruState {
    /// h, and the position of the next step.
    pub memory: RgLruMemory,
}

impl State for RgLruState {
    fn zip<F: StateZip>(self, other: Self, f: &mut F) -> Self {
        let (a, b) = (self.memory, other.memory);
        Self { memory: RgLruMemory { h: f.tensor("h", a.h, b.h), position: f.tensor("position", a.position, b.position) } }
    }
}

impl RgLru {
    /// The layer described by `config`, initialised like Griffin's.
    pub fn new(config: &CheckedConfig, _layer: usize, init: &mut Initializer) -> Self {
        let (d, e, heads) = (config.d_model, config.d_inner(), config.n_heads);
        let head = e / heads;
        let [recurrence_gate, input_gate] =
            [(); 2].map(|()| Headwise { weight: init.normal([heads, head, head], (1.0 / head as f32).sqrt()) });
        Self {
            in_proj: init.linear(d, e),
            recurrence_gate,
            input_gate,
            bias: init.constant([2 * e], 0.0),
            decay: init.map_uniform([e], first_decay),
            out_proj: init.linear(e, d),
        }
    }

    pub(super) fn activations(config: &CheckedConfig, list: &mut Activations) {
        let [d, e] = [config.d_model, config.d_inner()].map(|x| x as u128);
        list.biased(d, e, true);
        list.op(Op { keeps: &[e], reads: e, gives: 2 * e, aside: e, ..Op::default() });
        list.op(Op { reads: 3 * e, gives: 3 * e, ..Op::default() });
        list.op(Op { keeps: &[3 * e, e], reads: 3 * e, gives: e, ..Op::default() });
        list.out(e, d, true);
    }

    /// 8 softplus(Λ) `[E]`.
    fn rate(&self) -> Tensor<1> {
        softplus(self.decay.val()) * RG_LRU_SHARPNESS
    }
}

impl Mixer for RgLru {
    type State = RgLruState;

    fn init_state(&self, batch_size: usize) -> RgLruState {
        let decay = self.decay.val();
        let zeros = |width| Tensor::zeros([batch_size, width], &decay.device());
        RgLruState { memory: RgLruMemory { h: zeros(decay.dims()[0]), position: zeros(1) } }
    }

    fn forward(&self, x: Tensor<3>, state: RgLruState, steps: &StepCodes) -> (Tensor<3>, RgLruState) {
        let u = apply(&self.in_proj, x);
        let [recurrence_gate, input_gate] =
            [&self.recurrence_gate, &self.input_gate].map(|gate| block_diagonal(u.clone(), gate.weight.val()));
        let inputs = ops::RgLru { x: u, recurrence_gate, input_gate, bias: self.bias.val(), rate: self.rate() };
        let (h, memory) = ops::rg_lru(inputs, state.memory, steps);
        (apply(&self.out_proj, h), RgLruState { memory })
    }
}

/// The Λ for which a fully open gate's a is at the fraction `unit` in [0, 1) of [`FIRST_DECAYS`]: softplus(Λ) = −ln a / 8.
fn first_decay(unit: f32) -> f32 {
    let [low, high] = FIRST_DECAYS;
    let rate = -(low + f64::from(unit) * (high - low)).ln() / RG_LRU_SHARPNESS;
    rate.exp_m1().ln() as f32
}
