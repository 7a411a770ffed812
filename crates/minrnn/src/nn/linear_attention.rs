//! Linear attention (Katharopoulos et al. 2020, arXiv:2006.16236): attention with the softmax replaced by a product of features.
//!
//! ```text
//! q, k, v = W_q x, W_k x, W_v x           φ(x) = elu(x) + 1
//! S_t = S_{t−1} + φ(k_t) v_tᵀ             n_t = n_{t−1} + φ(k_t)
//! o_t = φ(q_t)ᵀ S_t / (φ(q_t) · n_t + 1e−6)
//! y_t = W_o o_t
//! ```
//! where, for each of the H heads of e = E / H channels: x input (D); S sum of outer products `[e, e]`; n normaliser, which is stored as an
//! additional column of S. There are no biases.

use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;
use minrnn_kernels::retention::CHUNK;
use minrnn_model::CheckedConfig;

use super::init::Initializer;
use super::linear::matmul;
use super::mixer::Mixer;
use super::state::{State, StateZip};
use crate::memory::activations::{Activations, Op};
use crate::ops::{self, Retention, RetentionState, StepCodes};

/// Normalised linear attention.
#[derive(Module, Debug)]
pub struct LinearAttention {
    /// D → E.
    pub query: Linear,
    /// D → E.
    pub key: Linear,
    /// D → E.
    pub value: Linear,
    /// E → D.
    pub out_proj: Linear,
    #[module(skip)]
    n_heads: usize,
}

/// The state of a [`LinearAttention`].
#[derive(Debug, Clone)]
pub struct LinearAttentionState {
    /// S and n `[B, H, e, e + 1]`.
    pub sums: Tensor<4>,
}

impl State for LinearAttentionState {
    fn zip<F: StateZip>(self, other: Self, f: &mut F) -> Self {
        Self { sums: f.tensor("sums", self.sums, other.sums) }
    }
}

impl LinearAttention {
    /// The layer described by `config`.
    pub fn new(config: &CheckedConfig, _layer: usize, init: &mut Initializer) -> Self {
        let (d, e) = (config.d_model, config.d_inner());
        Self {
            query: init.linear_with_bias(d, e, false),
            key: init.linear_with_bias(d, e, false),
            value: init.linear_with_bias(d, e, false),
            out_proj: init.linear_with_bias(e, d, false),
            n_heads: config.n_heads,
        }
    }

    pub(super) fn activations(config: &CheckedConfig, list: &mut Activations) {
        let [d, e, w] = [config.d_model, config.d_inner(), config.head_inner()].map(|x| x as u128);
        list.op(Op { keeps: &[d], reads: d, gives: 3 * e, aside: d, ..Op::default() });
        let works = list.threads() * list.length().div_ceil(CHUNK as u128) * w * (w + 1);
        list.op(Op { keeps: &[e; 3], reads: 3 * e, gives: e, works, ..Op::default() });
        list.biased(e, d, false);
    }
}

impl Mixer for LinearAttention {
    type State = LinearAttentionState;

    fn init_state(&self, batch_size: usize) -> LinearAttentionState {
        let weight = self.out_proj.weight.val();
        let width = weight.dims()[0] / self.n_heads;
        LinearAttentionState { sums: Tensor::zeros([batch_size, self.n_heads, width, width + 1], &weight.device()) }
    }

    fn forward(&self, x: Tensor<3>, state: LinearAttentionState, steps: &StepCodes) -> (Tensor<3>, LinearAttentionState) {
        let [q, k, v] = [&self.query, &self.key, &self.value].map(|linear| matmul(linear, x.clone()));
        let form = Retention::linear_attention(self.n_heads);
        // These features do not depend on the position.
        let position = Tensor::zeros([x.dims()[0], 1], &x.device());
        let (y, state) = ops::retention(&form, q, k, v, RetentionState { state: state.sums, position }, steps);
        (matmul(&self.out_proj, y), LinearAttentionState { sums: state.state })
    }
}
