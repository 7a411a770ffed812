//! The output of minGRU and minLSTM: a down-projection, or with `highway` a learned mixture of it and the layer's input, our own extension
//! beyond the paper.
//!
//! ```text
//! y_t = s_t ⊙ (W_o h_t + b_o) + (1 − s_t) ⊙ x_t          s_t = σ(W_s x_t + b_s)
//! ```
//! where: x is the layer's input (D); h the hidden state (E); s the share of the layer's output (D).
//!
//! A block adds x to y anyway, but a plain layer cannot reduce its output when it has nothing to contribute; s can close. The benefit is
//! measured by
//!
//! ```text
//! cargo build --release --workspace --examples && target/release/examples/highway_and_floor
//! ```

use burn::nn::Linear;
use burn::tensor::Tensor;
use minrnn_model::CheckedConfig;

use super::init::Initializer;
use super::linear::{apply, bias, matmul_rows, rows, sequences};
use crate::ops;

/// W_s and b_s, if there is a highway.
pub(super) fn highway_gate(config: &CheckedConfig, init: &mut Initializer) -> Option<Linear> {
    config.highway.then(|| init.linear(config.d_model, config.d_model))
}

/// y `[B, T, D]` for the hidden states `h` `[B, T, E]` and the layer's input `x` `[B, T, D]`.
pub(super) fn project(out_proj: &Linear, gate: Option<&Linear>, h: Tensor<3>, x: Tensor<3>) -> Tensor<3> {
    let [batch, seq_len, _] = x.dims();
    match gate {
        Some(gate) if batch * seq_len > 0 => {
            let x = rows(x);
            let value = matmul_rows(rows(h), out_proj.weight.val());
            let share = matmul_rows(x.clone(), gate.weight.val());
            sequences(ops::highway(share, bias(gate), value, bias(out_proj), x), batch, seq_len)
        }
        _ => apply(out_proj, h),
    }
}
