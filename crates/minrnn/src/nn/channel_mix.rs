//! RWKV-4's channel mixing (Peng et al. 2023, arXiv:2305.13048): a feed-forward part that also sees the previous step's input.
//!
//! ```text
//! k = relu(W_k Mix(μ_k))²       FF(x) = σ(W_r Mix(μ_r)) ⊙ (W_v k)       Mix(μ)_t = μ ⊙ x_t + (1 − μ) ⊙ x_{t−1}
//! ```
//! where: x input (D); k hidden values (M).

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::{Tensor, activation};
use minrnn_model::CheckedConfig;

use super::conv::Window;
use super::init::Initializer;
use super::layer::expect_layer;
use super::linear::{matmul, matmul_rows, rows, sequences};
use super::rwkv4::{place, unbiased, widening};
use super::token_shift::{init_window, mixtures};
use crate::memory::activations::{Activations, Op};
use crate::ops::{Dropout, StepCodes, bias_dropout_residual};

/// A feed-forward part with a token shift.
#[derive(Module, Debug)]
pub struct ChannelMix {
    /// D → M.
    pub key: Linear,
    /// D → D.
    pub receptance: Linear,
    /// M → D.
    pub value: Linear,
    /// μ_k `[D]`.
    pub mix_key: Param<Tensor<1>>,
    /// μ_r `[D]`.
    pub mix_receptance: Param<Tensor<1>>,
}

impl ChannelMix {
    /// The part of block `layer`, counted from 0, with the authors' initial values for that layer.
    ///
    /// # Panics
    /// When `config` has no such block.
    pub fn new(config: &CheckedConfig, layer: usize, init: &mut Initializer) -> Self {
        expect_layer(config, layer);
        let (d, d_ff) = (config.d_model, config.d_ff());
        let (_, kappa) = place(layer, config.n_layers);
        let share = |j: usize| (j as f64 / d as f64).powf(kappa);
        Self {
            key: widening(d, d_ff, init),
            receptance: unbiased(init.constant([d, d], 0.0)),
            value: unbiased(init.constant([d_ff, d], 0.0)),
            mix_key: init.vector(d, share),
            mix_receptance: init.vector(d, share),
        }
    }

    /// What it keeps, up to its dropout and sum.
    pub(super) fn activations(config: &CheckedConfig, list: &mut Activations) {
        let [d, m] = [config.d_model, config.d_ff()].map(|x| x as u128);
        list.op(Op { keeps: &[d], reads: d, gives: 2 * d, ..Op::default() });
        // relu(k), its square, r, and the two factors of the gate.
        list.op(Op { keeps: &[d], reads: d, gives: m, aside: d, ..Op::default() });
        list.op(Op { keeps: &[m], reads: m, gives: m, aside: d, ..Op::default() });
        list.op(Op { keeps: &[m], reads: m, gives: d, aside: d + m, ..Op::default() });
        list.op(Op { keeps: &[d; 3], reads: 2 * d, gives: d, aside: d, ..Op::default() });
    }

    /// A previous input of 0.
    pub fn init_state(&self, batch_size: usize) -> Window {
        let weight = self.receptance.weight.val();
        init_window(batch_size, weight.dims()[0], &weight.device())
    }

    /// `residual` + dropout(FF(`x`)), and the input to carry over.
    ///
    /// # Shapes
    /// * `x`, `residual` `[B, T, D]` → `[B, T, D]`
    pub fn forward(&self, x: Tensor<3>, residual: Tensor<3>, previous: Window, steps: &StepCodes, dropout: Dropout) -> (Tensor<3>, Window) {
        let [batch, seq_len, _] = x.dims();
        let ([k, r], next) = mixtures(&x, [self.mix_key.val(), self.mix_receptance.val()], &previous, steps);
        let hidden = activation::relu(rows(matmul(&self.key, k)));
        let value = matmul_rows(hidden.clone() * hidden, self.value.weight.val());
        let mixed = activation::sigmoid(rows(matmul(&self.receptance, r))) * value;
        (sequences(bias_dropout_residual(mixed, None, Some(rows(residual)), dropout), batch, seq_len), next)
    }
}
