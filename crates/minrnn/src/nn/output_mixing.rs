//! What mixes the channels behind a sequence map that treats them one by one (models.md §6), where it stands alone in its block:
//!
//! ```text
//! out = value ⊙ σ(gate),  [value, gate] = W GELU(y)
//! ```
//! where: y the map's output (D). Inside a wiring the block's own projection mixes the channels, and y goes out as it is.

use burn::nn::Linear;
use burn::tensor::{Tensor, activation};
use minrnn_stream::WiringKind;

use super::init::Initializer;
use super::linear::{apply, rows, sequences};
use crate::ops::bias_gelu;

/// A new layer D → 2D, rows value then gate, unless the map stands in a wiring.
pub(super) fn output_mixing(d_model: usize, wiring: WiringKind, init: &mut Initializer) -> Option<Linear> {
    (wiring == WiringKind::None).then(|| init.linear(d_model, 2 * d_model))
}

/// The output for y `[B, T, D]`.
pub(super) fn mixed(y: Tensor<3>, out_proj: Option<&Linear>) -> Tensor<3> {
    let [batch, seq_len, width] = y.dims();
    let Some(out_proj) = out_proj.filter(|_| batch * seq_len > 0) else { return y };
    let both = apply(out_proj, sequences(bias_gelu(rows(y), None), batch, seq_len));
    both.clone().narrow(2, 0, width) * activation::sigmoid(both.narrow(2, width, width))
}
