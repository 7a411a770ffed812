//! Aaren, attention as a recurrent network (Feng et al. 2024, arXiv:2405.13956): softmax attention whose query is learned instead of
//! computed from the token.
//!
//! ```text
//! s_t = q · (W_k x_t) / √e             v_t = W_v x_t
//! o_t = Σ_{i ≤ t} e^{s_i} v_i / Σ_{i ≤ t} e^{s_i}
//! y_t = W_o o_t
//! ```
//! where, for each of the H heads of e = E / H channels: x input (D); q learned query; s score; v value; o attention. There are no biases:
//! one on the keys would shift all scores of a head equally, which the softmax ignores.
//!
//! The keys are never computed: a score is the product of x with the single vector W_kᵀ q / √e of its head.

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::Tensor;
use minrnn_model::CheckedConfig;

use super::init::Initializer;
use super::linear::{matmul, matmul_sequences};
use super::mixer::Mixer;
use super::state::{State, StateZip};
use crate::memory::activations::{Activations, Op};
use crate::ops::{self, EMPTY_LOG_WEIGHT, PrefixMemory, StepCodes};

/// Attention with learned queries.
#[derive(Module, Debug)]
pub struct Aaren {
    /// q of all heads `[E]`.
    pub query: Param<Tensor<1>>,
    /// D → E.
    pub key: Linear,
    /// D → E.
    pub value: Linear,
    /// E → D.
    pub out_proj: Linear,
    #[module(skip)]
    n_heads: usize,
}

/// The state of an [`Aaren`].
#[derive(Debug, Clone)]
pub struct AarenState {
    /// The mean of the values read, and the logarithm of their weight.
    pub memory: PrefixMemory,
}

impl State for AarenState {
    fn zip<F: StateZip>(self, other: Self, f: &mut F) -> Self {
        let mean = f.tensor("mean", self.memory.mean, other.memory.mean);
        let log_weight = f.tensor("log_weight", self.memory.log_weight, other.memory.log_weight);
        Self { memory: PrefixMemory { mean, log_weight } }
    }
}

impl Aaren {
    /// The layer described by `config`: standard normal queries, the matrices uniform like linear layers.
    pub fn new(config: &CheckedConfig, _layer: usize, init: &mut Initializer) -> Self {
        let (d, e) = (config.d_model, config.d_inner());
        Self {
            query: init.normal([e], 1.0),
            key: init.linear_with_bias(d, e, false),
            value: init.linear_with_bias(d, e, false),
            out_proj: init.linear_with_bias(e, d, false),
            n_heads: config.n_heads,
        }
    }

    pub(super) fn activations(config: &CheckedConfig, list: &mut Activations) {
        let [d, e, h] = [config.d_model, config.d_inner(), config.n_heads].map(|x| x as u128);
        list.op(Op { keeps: &[d], reads: d, gives: e + h, aside: d, ..Op::default() });
        list.op(Op { keeps: &[e, e, h, h], reads: e + h, gives: e, ..Op::default() });
        list.out(e, d, false);
    }

    /// W_kᵀ q / √e of every head, `[D, H]`.
    fn score_weight(&self) -> Tensor<2> {
        let [d, e] = self.key.weight.dims();
        let width = e / self.n_heads;
        let products = self.key.weight.val() * self.query.val().unsqueeze::<2>();
        products.reshape([d, self.n_heads, width]).sum_dim(2).reshape([d, self.n_heads]) / (width as f64).sqrt()
    }
}

impl Mixer for Aaren {
    type State = AarenState;

    fn init_state(&self, batch_size: usize) -> AarenState {
        let query = self.query.val();
        let mean = Tensor::zeros([batch_size, query.dims()[0]], &query.device());
        let log_weight = Tensor::full([batch_size, self.n_heads], EMPTY_LOG_WEIGHT, &query.device());
        AarenState { memory: PrefixMemory { mean, log_weight } }
    }

    fn forward(&self, x: Tensor<3>, state: AarenState, steps: &StepCodes) -> (Tensor<3>, AarenState) {
        let scores = matmul_sequences(x.clone(), self.score_weight());
        let (y, memory) = ops::prefix_softmax(scores, matmul(&self.value, x), state.memory, steps);
        (matmul(&self.out_proj, y), AarenState { memory })
    }
}
