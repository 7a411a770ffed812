//! RetNet's multi-scale retention (Sun et al. 2023, arXiv:2307.08621, §2.2).
//!
//! ```text
//! q, k, v, g = W_q x, W_k x, W_v x, W_g x
//! S_t = γ_h S_{t−1} + R(t) k_t v_tᵀ / √K        o_t = S_tᵀ R(t) q_t        γ_h = 1 − 2^{−5−h}
//! y_t = W_o (SiLU(g_t) ⊙ o_t / √(mean o_t² + 1e−6))
//! ```
//! where, for each of the H heads h = 0 … H−1 with K = D / H channels of query and key and V = E / H of value: x input (D); S state `[K,
//! V]`; R(t) rotates the neighbouring channels 2j and 2j + 1 by t · 10000^{−j/(K/2−1)}, with t counted from 0; the mean is over a head.
//! There are no biases.
//!
//! The authors also divide scores by the root of the sum of their decays, and by their own sum if it is above 1. The normalisation by the
//! root mean square cancels any such factor, so these are left out.

use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;
use minrnn_kernels::retention::{CHUNK, EPS};
use minrnn_model::CheckedConfig;

use super::init::Initializer;
use super::linear::{matmul, matmul_rows, rows, sequences};
use super::mixer::Mixer;
use super::state::{State, StateZip};
use crate::memory::activations::{Activations, Op};
use crate::ops::{self, Retention, RetentionState, StepCodes};

/// Multi-scale retention.
#[derive(Module, Debug)]
pub struct RetNet {
    /// D → D.
    pub query: Linear,
    /// D → D.
    pub key: Linear,
    /// D → E.
    pub value: Linear,
    /// D → E.
    pub gate: Linear,
    /// E → D.
    pub out_proj: Linear,
    #[module(skip)]
    n_heads: usize,
}

/// The state of a [`RetNet`].
#[derive(Debug, Clone)]
pub struct RetNetState {
    /// S `[B, H, K, V]`, and the position of the next step.
    pub retention: RetentionState,
}

impl State for RetNetState {
    fn zip<F: StateZip>(self, other: Self, f: &mut F) -> Self {
        let state = f.tensor("state", self.retention.state, other.retention.state);
        let position = f.tensor("position", self.retention.position, other.retention.position);
        Self { retention: RetentionState { state, position } }
    }
}

impl RetNet {
    /// The layer described by `config`, Xavier-uniform with gains 2^−2.5 and, for W_o, 2^−1.
    pub fn new(config: &CheckedConfig, _layer: usize, init: &mut Initializer) -> Self {
        let (d, e) = (config.d_model, config.d_inner());
        let mut linear = |d_input, d_output, gain| Linear { weight: init.xavier([d_input, d_output], gain), bias: None };
        let inner = 0.5f64.powf(2.5);
        Self {
            query: linear(d, d, inner),
            key: linear(d, d, inner),
            value: linear(d, e, inner),
            gate: linear(d, e, inner),
            out_proj: linear(e, d, 0.5),
            n_heads: config.n_heads,
        }
    }

    pub(super) fn activations(config: &CheckedConfig, list: &mut Activations) {
        let [d, e] = [config.d_model, config.d_inner()].map(|x| x as u128);
        let [key, value] = config.retention_heads().map(|x| x as u128);
        list.op(Op { keeps: &[d], reads: d, gives: 2 * d + 2 * e, aside: d, ..Op::default() });
        let works = list.threads() * list.length().div_ceil(CHUNK as u128) * key * value;
        list.op(Op { keeps: &[d, d, e], reads: 2 * d + e, gives: e, aside: e, works });
        // The norm of heads and the gate are composed of operations of Burn.
        list.op(Op { keeps: &[e; 5], reads: 2 * e, gives: e, aside: e, ..Op::default() });
        list.biased(e, d, false);
    }

    fn form(&self) -> Retention {
        Retention::ret_net(self.n_heads, self.query.weight.dims()[1] / self.n_heads)
    }

    /// SiLU(`gate`) ⊙ `o` / √(mean o² + 1e−6), with the mean over a head; both `[B, T, E]`.
    fn gated_norm(&self, gate: Tensor<3>, o: Tensor<3>) -> Tensor<2> {
        let (gate, o) = (rows(ops::silu(gate)), rows(o));
        let [n, e] = o.dims();
        if n == 0 {
            return o;
        }
        let o = o.reshape([n, self.n_heads, e / self.n_heads]);
        let mean_square = (o.clone() * o.clone()).mean_dim(2);
        let normed = ops::over_root(o, mean_square, EPS).reshape([n, e]);
        gate * normed
    }
}

impl Mixer for RetNet {
    type State = RetNetState;

    fn init_state(&self, batch_size: usize) -> RetNetState {
        let weight = self.value.weight.val();
        let ([d, e], heads, device) = (weight.dims(), self.n_heads, weight.device());
        let state = Tensor::zeros([batch_size, heads, d / heads, e / heads], &device);
        RetNetState { retention: RetentionState { state, position: Tensor::zeros([batch_size, 1], &device) } }
    }

    fn forward(&self, x: Tensor<3>, state: RetNetState, steps: &StepCodes) -> (Tensor<3>, RetNetState) {
        let [batch, seq_len, _] = x.dims();
        let [q, k, v, gate] = [&self.query, &self.key, &self.value, &self.gate].map(|linear| matmul(linear, x.clone()));
        let (o, retention) = ops::retention(&self.form(), q, k, v, state.retention, steps);
        let y = matmul_rows(self.gated_norm(gate, o), self.out_proj.weight.val());
        (sequences(y, batch, seq_len), RetNetState { retention })
    }
}
