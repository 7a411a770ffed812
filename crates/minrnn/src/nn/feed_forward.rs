//! The feed-forward part of a block: residual + dropout(down(act(up x))), plain or gated (GELU: arXiv:1606.08415; GEGLU and SwiGLU: Shazeer
//! 2020, arXiv:2002.05202).
//!
//! ```text
//! mlp      act(u) = GELU(u)                        gated    act([v | g]) = scale ⊙ v ⊙ GELU(g)
//! ge-glu   act([g | v]) = v ⊙ GELU(g)              swi-glu  act([v | g]) = v ⊙ g ⊙ σ(g)
//! ```

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::Tensor;
use minrnn_model::{CheckedConfig, FeedForwardKind};

use super::init::{Initializer, xlstm_deviation, xlstm_output_deviation};
use super::linear::{bias, matmul_rows, rows, sequences};
use crate::memory::activations::{Activations, Op};
use crate::ops::{Dropout, bias_dropout_residual, gated_gelu_matmul, gelu_gate, gelu_matmul, swi_glu};

/// A plain or gated layer.
#[derive(Module, Debug)]
pub struct FeedForward {
    /// D → M, or D → 2M with rows value then gate; without bias (and gate first) in xLSTM's form.
    pub up: Linear,
    /// M → D.
    pub down: Linear,
    /// `[M]`, initially 1; only in the gated form.
    pub scale: Option<Param<Tensor<1>>>,
    #[module(skip)]
    kind: FeedForwardKind,
}

impl FeedForward {
    /// The layer for `kind`; `None` for `none`, and for `channel-mix`, which is [`ChannelMix`](super::ChannelMix).
    pub fn new(config: &CheckedConfig, kind: FeedForwardKind, init: &mut Initializer) -> Option<Self> {
        let (d, halves, bias) = match kind {
            FeedForwardKind::None | FeedForwardKind::ChannelMix => return None,
            FeedForwardKind::Mlp => (config.d_model, 1, config.bias),
            FeedForwardKind::Gated => (config.d_model, 2, config.bias),
            FeedForwardKind::SwiGlu | FeedForwardKind::GeGlu => (config.d_model, 2, false),
        };
        let d_ff = config.d_ff();
        if kind == FeedForwardKind::GeGlu {
            let up = Linear { weight: init.normal([d, 2 * d_ff], xlstm_deviation(d)), bias: None };
            let down = Linear { weight: init.normal([d_ff, d], xlstm_output_deviation(d, config.n_layers)), bias: None };
            return Some(Self { up, down, scale: None, kind });
        }
        let scale = (kind == FeedForwardKind::Gated).then(|| init.constant([d_ff], 1.0));
        let up = init.linear_with_bias(d, halves * d_ff, bias);
        Some(Self { up, down: init.residual_linear(d_ff, d, bias), scale, kind })
    }

    /// What the part `kind` keeps, up to its bias, dropout and sum.
    pub(super) fn activations(config: &CheckedConfig, kind: FeedForwardKind, list: &mut Activations) {
        let [d, m] = [config.d_model, config.d_ff()].map(|x| x as u128);
        match kind {
            FeedForwardKind::None | FeedForwardKind::ChannelMix => {}
            FeedForwardKind::Mlp | FeedForwardKind::Gated => {
                let up = if kind == FeedForwardKind::Gated { 2 * m } else { m };
                list.op(Op { keeps: &[d], reads: d, gives: up, ..Op::default() });
                // The activation's gradient is materialised before that of its input.
                list.op(Op { keeps: &[up], reads: up, gives: d, works: list.steps() * m, ..Op::default() });
            }
            FeedForwardKind::GeGlu | FeedForwardKind::SwiGlu => {
                list.op(Op { keeps: &[d], reads: d, gives: 2 * m, ..Op::default() });
                list.op(Op { keeps: &[2 * m], reads: 2 * m, gives: m, ..Op::default() });
                list.op(Op { keeps: &[m], reads: m, gives: d, ..Op::default() });
            }
        }
    }

    /// Whether `x` may be 16-bit on GPUs, as for a [`Mixer`](super::Mixer::takes_bf16).
    pub fn takes_bf16(&self) -> bool {
        matches!(self.kind, FeedForwardKind::Mlp | FeedForwardKind::Gated) && self.up.bias.is_some()
    }

    /// `residual` + dropout(FF(`x`)).
    ///
    /// # Shapes
    /// * `x`, `residual` `[B, T, D]` → `[B, T, D]`
    pub fn forward(&self, x: Tensor<3>, residual: Tensor<3>, dropout: Dropout) -> Tensor<3> {
        let [batch, seq_len, _] = x.dims();
        let up = matmul_rows(rows(x), self.up.weight.val());
        let weight = self.down.weight.val();
        let down = match (&self.scale, self.kind) {
            _ if batch * seq_len == 0 => Tensor::zeros([0, weight.dims()[1]], &up.device()),
            (Some(scale), _) => gated_gelu_matmul(up, bias(&self.up), scale.val(), weight),
            (None, FeedForwardKind::SwiGlu) => matmul_rows(swi_glu(up), weight),
            (None, FeedForwardKind::GeGlu) => matmul_rows(gelu_gate(up), weight),
            (None, _) => gelu_matmul(up, bias(&self.up), weight),
        };
        sequences(bias_dropout_residual(down, bias(&self.down), Some(rows(residual)), dropout), batch, seq_len)
    }
}
