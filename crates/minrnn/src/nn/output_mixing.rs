//! Mixes the channels after a sequence map that treats them separately (as in the released S4 layer, Gu et al. 2022, arXiv:2111.00396),
//! when it is alone in its block:
//!
//! ```text
//! out = value ⊙ σ(gate),  [value, gate] = W GELU(y)
//! ```
//! where: y is the map's output (D). Inside a wiring the block's own projection mixes the channels, and y is passed on unchanged.

use burn::nn::Linear;
use burn::tensor::Tensor;
use minrnn_model::CheckedConfig;

use super::init::Initializer;
use super::linear::{bias, matmul_rows, rows, sequences};
use crate::memory::activations::{Activations, Op};
use crate::ops::{self, bias_gelu};

/// A new layer D → 2D, rows value then gate, unless the map is inside a wiring.
pub(super) fn output_mixing(config: &CheckedConfig, init: &mut Initializer) -> Option<Linear> {
    config.has_output_mixing().then(|| init.linear(config.d_model, 2 * config.d_model))
}

/// What it keeps.
pub(super) fn activations(config: &CheckedConfig, list: &mut Activations) {
    if !config.has_output_mixing() {
        return;
    }
    let d = config.d_model as u128;
    list.op(Op { keeps: &[d], reads: d, gives: d, ..Op::default() });
    list.op(Op { keeps: &[d], reads: d, gives: 2 * d, ..Op::default() });
    list.op(Op { reads: 2 * d, gives: 2 * d, ..Op::default() });
    // A gate between a value and zeros of the same size.
    list.op(Op { keeps: &[d; 3], reads: 3 * d, gives: d, ..Op::default() });
}

/// What a sequence map of D channels, which reads its input again, keeps, together with the channel mixing after it; `works` is the number
/// of values in its workspaces.
pub(super) fn map_activations(config: &CheckedConfig, works: u128, list: &mut Activations) {
    let d = config.d_model as u128;
    list.op(Op { keeps: &[d], reads: d, gives: d, works, ..Op::default() });
    activations(config, list);
}

/// The output for y `[B, T, D]`.
pub(super) fn mixed(y: Tensor<3>, out_proj: Option<&Linear>) -> Tensor<3> {
    let [batch, seq_len, width] = y.dims();
    let Some(out_proj) = out_proj.filter(|_| batch * seq_len > 0) else { return y };
    let both = matmul_rows(bias_gelu(rows(y), None), out_proj.weight.val());
    let (value, gate) = ops::split(both, width);
    let bias_of = |part: usize| bias(out_proj).map(|bias| bias.narrow(0, part * width, width));
    // A gate between a value and zeros.
    let nothing = Tensor::zeros([batch * seq_len, width], &value.device());
    sequences(ops::highway(gate, bias_of(1), value, bias_of(0), nothing), batch, seq_len)
}
