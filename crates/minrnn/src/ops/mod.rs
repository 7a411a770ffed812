//! Differentiable operations: fused kernels on the CPU backend, the same composed of tensor operations everywhere else.
//!
//! Letters in shapes: `B` batch, `T` time, `D` model width, `E` inner (recurrent) width, `V` classes, `N` rows (B·T), `M` any width.
//!
//! | operation | which one do I want? |
//! |---|---|
//! | [`min_gru`], [`min_lstm`] | the cells, gates and recurrence in one kernel |
//! | [`linear_scan`] | h = a h + b with coefficients of your own |
//! | [`log_space_scan`] | the same from ln a and ln b, as in the paper; for study |
//! | [`gru`], [`lstm`] | the traditional cells |
//! | [`causal_conv`] | depthwise convolution with a carried window |
//! | [`layer_norm`], [`rms_norm`] | norms over the last dimension |
//! | [`bias_gelu`], [`bias_gated_gelu`], [`bias_dropout_residual`] | what stands between two matrix products |
//! | [`product`], [`product_transposed`] | the matrix products of layers, in the precision of [`with_precision`] |
//! | [`layer_norm_and_input`], [`rms_norm_and_input`], [`causal_conv_and_input`] | the same at the head of a residual connection |
//! | [`embedding`] | tokens looked up in a table |
//! | [`cross_entropy`] | the masked loss |
//! | [`with_gradient`] | a backward pass that begins in the middle |
//! | [`adamw`], [`sums_of_squares`] | the optimiser, below autodiff |
//!
//! All recurrences take a [`Start`] (carried state and the state a reset restores) and [`StepCodes`] (padding and resets), give the
//! last state, and let gradients flow into and out of the states. Only this folder names a backend.

mod adamw;
mod conv;
mod cross_entropy;
mod dropout;
mod embedding;
mod flex;
mod fused;
mod gelu;
#[cfg(feature = "gpu")]
mod gpu;
mod gru;
mod lstm;
mod min_gru;
mod min_lstm;
mod norm;
mod precision;
mod product;
mod recurrence;
mod scan;
mod steps;
mod stepwise;
#[cfg(test)]
mod tests;
mod with_gradient;

pub use adamw::{AdamW, Moments, adamw, sums_of_squares};
pub use conv::{causal_conv, causal_conv_and_input};
pub use cross_entropy::cross_entropy;
pub use dropout::{Dropout, bias_dropout_residual};
pub use embedding::embedding;
pub use gelu::{bias_gated_gelu, bias_gelu};
pub use gru::{GruForm, gru};
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
pub use steps::StepCodes;
pub use with_gradient::with_gradient;
