//! The feed-forward part of a block: residual + dropout(down(GELU(up x))), plain or gated (models.md §2.7, §4.3).

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::Tensor;

use super::init::{Initializer, xlstm_deviation, xlstm_output_deviation};
use super::linear::{bias, row_product, rows, sequences};
use crate::ops::{Dropout, bias_dropout_residual, bias_gated_gelu_product, bias_gelu_product, gelu_gate};

/// A plain or gated GELU layer.
#[derive(Module, Debug)]
pub struct FeedForward {
    /// D → M, or D → 2M with rows value then gate; without bias (and gate first) in xLSTM's form.
    pub up: Linear,
    /// M → D.
    pub down: Linear,
    /// `[M]`, initially 1; only in the gated form.
    pub scale: Option<Param<Tensor<1>>>,
}

impl FeedForward {
    /// GELU between two linear layers of hidden width `d_ff`.
    pub fn mlp(d_model: usize, d_ff: usize, init: &mut Initializer) -> Self {
        Self { up: init.linear(d_model, d_ff), down: init.linear(d_ff, d_model), scale: None }
    }

    /// GELU(gate) ⊙ value ⊙ scale between two linear layers of hidden width `d_ff`.
    pub fn gated(d_model: usize, d_ff: usize, init: &mut Initializer) -> Self {
        let scale = Some(init.constant([d_ff], 1.0));
        Self { up: init.linear(d_model, 2 * d_ff), down: init.linear(d_ff, d_model), scale }
    }

    /// xLSTM's GELU(gate) ⊙ value between two linear layers of hidden width `d_ff`, without biases, for a model of `n_layers` blocks.
    pub fn ge_glu(d_model: usize, d_ff: usize, n_layers: usize, init: &mut Initializer) -> Self {
        let up = Linear { weight: init.normal([d_model, 2 * d_ff], xlstm_deviation(d_model)), bias: None };
        let down = Linear { weight: init.normal([d_ff, d_model], xlstm_output_deviation(d_model, n_layers)), bias: None };
        Self { up, down, scale: None }
    }

    /// `residual` + dropout(FF(`x`)).
    ///
    /// # Shapes
    /// * `x`, `residual` `[B, T, D]` → `[B, T, D]`
    pub fn forward(&self, x: Tensor<3>, residual: Tensor<3>, dropout: Dropout) -> Tensor<3> {
        let [batch, seq_len, _] = x.dims();
        let up = row_product(rows(x), self.up.weight.val());
        let weight = self.down.weight.val();
        let down = match (bias(&self.up), &self.scale) {
            _ if batch * seq_len == 0 => Tensor::zeros([0, weight.dims()[1]], &up.device()),
            (None, _) => row_product(gelu_gate(up), weight),
            (Some(bias), None) => bias_gelu_product(up, bias, weight),
            (Some(bias), Some(scale)) => bias_gated_gelu_product(up, bias, scale.val(), weight),
        };
        sequences(bias_dropout_residual(down, bias(&self.down), Some(rows(residual)), dropout), batch, seq_len)
    }
}
