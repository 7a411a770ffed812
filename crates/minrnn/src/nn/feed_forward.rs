//! The feed-forward part of a block: residual + dropout(down(act(up x))), plain or gated (models.md §2.7, §12).
//!
//! ```text
//! mlp      act(u) = GELU(u)                        gated    act([v | g]) = scale ⊙ v ⊙ GELU(g)
//! swi-glu  act([v | g]) = v ⊙ g ⊙ σ(g)
//! ```

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::Tensor;
use minrnn_stream::{FeedForwardKind, ModelConfig};

use super::init::Initializer;
use super::linear::{bias, row_product, rows, sequences};
use crate::Result;
use crate::ops::{Dropout, bias_dropout_residual, bias_gated_gelu, bias_gelu, swi_glu};

/// A plain or gated layer.
#[derive(Module, Debug)]
pub struct FeedForward {
    /// D → M, or D → 2M with rows value then gate.
    pub up: Linear,
    /// M → D.
    pub down: Linear,
    /// `[M]`, initially 1; only in the gated form.
    pub scale: Option<Param<Tensor<1>>>,
    #[module(skip)]
    kind: FeedForwardKind,
}

impl FeedForward {
    /// The part `config` asks for, if any.
    ///
    /// # Errors
    /// When its width is not whole.
    pub fn new(config: &ModelConfig, init: &mut Initializer) -> Result<Option<Self>> {
        let kind = config.ff;
        let (d, halves, bias) = match kind {
            FeedForwardKind::None => return Ok(None),
            FeedForwardKind::Mlp => (config.d_model, 1, config.bias),
            FeedForwardKind::Gated => (config.d_model, 2, config.bias),
            FeedForwardKind::SwiGlu => (config.d_model, 2, false),
        };
        let d_ff = config.d_ff()?;
        let scale = (kind == FeedForwardKind::Gated).then(|| init.constant([d_ff], 1.0));
        let up = init.linear_with_bias(d, halves * d_ff, bias);
        Ok(Some(Self { up, down: init.residual_linear(d_ff, d, bias), scale, kind }))
    }

    /// `residual` + dropout(FF(`x`)).
    ///
    /// # Shapes
    /// * `x`, `residual` `[B, T, D]` → `[B, T, D]`
    pub fn forward(&self, x: Tensor<3>, residual: Tensor<3>, dropout: Dropout) -> Tensor<3> {
        let [batch, seq_len, _] = x.dims();
        let up = row_product(rows(x), self.up.weight.val());
        let hidden = match (&self.scale, self.kind) {
            (Some(scale), _) => bias_gated_gelu(up, bias(&self.up), scale.val()),
            (None, FeedForwardKind::SwiGlu) => swi_glu(up),
            (None, _) => bias_gelu(up, bias(&self.up)),
        };
        let down = row_product(hidden, self.down.weight.val());
        sequences(bias_dropout_residual(down, bias(&self.down), Some(rows(residual)), dropout), batch, seq_len)
    }
}
