//! Differentiable operations: fused kernels on the CPU backend, the same composed of tensor operations everywhere else.
//!
//! Letters in shapes: `B` batch, `T` time, `D` model width, `E` inner (recurrent) width, `V` classes, `N` rows (B·T), `M` any width.
//!
//! | operation | which one do I want? |
//! |---|---|
//! | [`min_gru`], [`min_lstm`] | the cells, gates and recurrence in one kernel |
//! | [`signed_min_gru`], [`decay_min_gru`], [`floored_min_gru`] | variants of minGRU beyond the paper |
//! | [`delta`] | an associative memory that is corrected, beyond the paper |
//! | [`highway`] | a learned mixture of a layer's output and its input |
//! | [`linear_scan`] | h = a h + b with coefficients of your own |
//! | [`log_space_scan`] | the same from ln a and ln b, as in the paper; for study |
//! | [`gru`], [`lstm`] | the traditional cells |
//! | [`causal_conv`] | depthwise convolution with a carried window |
//! | [`layer_norm`], [`rms_norm`] | norms over the last dimension |
//! | [`bias_gelu`], [`bias_gated_gelu`], [`bias_dropout_residual`] | what stands between two matrix products |
//! | [`bias_gelu_product`], [`bias_gated_gelu_product`] | the activation with the product behind it, which keeps less |
//! | [`product`], [`product_transposed`] | the matrix products of layers, in the precision of [`with_precision`] |
//! | [`layer_norm_and_input`], [`rms_norm_and_input`], [`causal_conv_and_input`] | the same at the head of a residual connection |
//! | [`embedding`] | tokens looked up in a table |
//! | [`cross_entropy`] | the masked loss |
//! | [`with_gradient`] | a backward pass that begins in the middle |
//! | [`adamw`], [`sum_of_squares`] | the optimiser, below autodiff |
//!
//! All recurrences take a [`Start`] (carried state and the state a reset restores) and [`StepCodes`] (padding and resets), give the
//! last state, and let gradients flow into and out of the states. Only this folder names a backend.

mod adamw;
mod conv;
mod cross_entropy;
mod decay_min_gru;
mod delta;
mod dropout;
mod embedding;
mod flex;
mod floored_min_gru;
mod fused;
mod gelu;
mod gelu_product;
mod gru;
mod highway;
mod lstm;
mod min_gru;
mod min_lstm;
mod norm;
mod precision;
mod product;
mod recurrence;
mod scan;
mod signed_min_gru;
mod steps;
mod stepwise;
#[cfg(test)]
mod tests;
mod with_gradient;

pub use adamw::{AdamW, Moments, adamw, sum_of_squares};
pub use conv::{causal_conv, causal_conv_and_input};
pub use cross_entropy::cross_entropy;
pub use decay_min_gru::decay_min_gru;
pub use delta::delta;
pub use dropout::{Dropout, bias_dropout_residual};
pub use embedding::embedding;
pub use floored_min_gru::floored_min_gru;
pub use gelu::{bias_gated_gelu, bias_gelu};
pub use gelu_product::{bias_gated_gelu_product, bias_gelu_product};
pub use gru::{GruForm, gru};
pub use highway::highway;
pub use lstm::{LstmOutputs, lstm};
pub(crate) use min_gru::log_coefficients as min_gru_log_coefficients;
pub use min_gru::min_gru;
pub(crate) use min_lstm::log_coefficients as min_lstm_log_coefficients;
pub use min_lstm::min_lstm;
pub use minrnn_kernels::{Candidate, Gates};
pub use norm::{layer_norm, layer_norm_and_input, rms_norm, rms_norm_and_input};
pub use precision::{Precision, with_precision};
pub use product::{product, product_transposed};
pub use recurrence::Start;
pub use scan::{linear_scan, log_space_scan};
pub use signed_min_gru::signed_min_gru;
pub use steps::StepCodes;
pub use with_gradient::with_gradient;
