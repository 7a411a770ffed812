//! Differentiable operations: fused kernels on the CPU backend, the same composed of tensor operations everywhere else.
//!
//! Letters in shapes: `B` batch, `T` time, `D` model width, `E` inner (recurrent) width, `V` classes, `N` rows (B·T), `M` any width.
//!
//! Tensors are f32; f64 or f16 make an operation panic, and bf16 is only allowed where [`activation_format`] says so. Every operation
//! panics with a descriptive message when the shapes of its arguments are not those of its documentation, even if the number of elements
//! matches.
//!
//! | operation | which one do I want? |
//! |---|---|
//! | [`min_gru`], [`min_lstm`] | the cells, gates and recurrence in one kernel |
//! | [`signed_min_gru`], [`decay_min_gru`], [`floored_min_gru`] | variants of minGRU beyond the paper |
//! | [`delta`] | an associative memory updated by the delta rule, beyond the paper |
//! | [`highway`] | a learned mixture of a layer's output and its input |
//! | [`linear_scan`] | h = a h + b with coefficients of your own |
//! | [`log_space_scan`] | the same from ln a and ln b, as in the paper; for study |
//! | [`rg_lru`] | the recurrence of Griffin |
//! | [`gru`], [`lstm`] | the traditional cells |
//! | [`selective_scan`] | the recurrence of Mamba with its step sizes and gate |
//! | [`s_lstm`], [`m_lstm`] | the cells of xLSTM |
//! | [`rwkv4`] | the time mixing of RWKV-4 |
//! | [`retention`] | gated linear attention with a constant decay (linear attention, RetNet) |
//! | [`prefix_softmax`] | attention to everything read so far, as a recurrence (Aaren) |
//! | [`state_space`] | a linear recurrence of complex numbers for each channel: S4, S4D, H3 |
//! | [`causal_conv`] | depthwise convolution with a carried window |
//! | [`layer_norm`], [`rms_norm`] | norms over the last dimension |
//! | [`attention`], [`rotary`] | softmax attention with its cache, and the rotary positions of its queries and keys |
//! | [`bias_gelu`], [`bias_gated_gelu`], [`gelu_gate`], [`swi_glu`], [`bias_dropout_residual`] | operations between two matrix products |
//! | [`gelu_matmul`], [`gated_gelu_matmul`] | the activation with the following product, which keeps less in memory |
//! | [`silu`], [`silu_shared`], [`split`] | operations around the convolutions of Mamba and xLSTM |
//! | [`block_diagonal`], [`head_norm`], [`skip_gate`] | the other parts of an xLSTM block |
//! | [`matmul`], [`matmul_transposed`] | the matrix products of layers, in the precision of [`with_precision`] |
//! | [`activation_format`] | bf16 between kernels, if the GPU and the precision allow it |
//! | [`layer_norm_residual`], [`rms_norm_residual`], [`causal_conv_residual`] | the same at the start of a residual connection |
//! | [`embedding`] | token lookup in a table |
//! | [`cross_entropy`], [`squared_error`], [`pinball`] | the masked losses: of classes, of numbers and of their quantiles |
//! | [`backward_from`] | a backward pass that starts in the middle |
//! | [`adamw`], [`adamw_together`], [`sums_of_squares`] | the optimiser, below autodiff |
//!
//! All recurrences take a [`Start`] (carried state and the state a reset restores) and [`StepCodes`] (padding and resets), return the last
//! state, and let gradients flow into and out of the states. Only this folder refers to backends.

mod adamw;
mod attention;
mod backward_from;
mod block_diagonal;
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
mod gelu_matmul;
#[cfg(feature = "gpu")]
mod gpu;
mod gru;
mod head_norm;
mod highway;
mod lstm;
mod m_lstm;
mod matmul;
mod min_gru;
mod min_lstm;
mod norm;
mod pinball;
mod positions;
mod positive;
mod precision;
mod prefix_softmax;
mod recurrence;
mod retention;
mod rg_lru;
mod rotary;
mod rwkv4;
mod s_lstm;
mod scan;
mod selective_scan;
mod shapes;
mod signed_min_gru;
mod silu;
mod skip_gate;
mod softplus;
mod split;
mod squared_error;
mod state_space;
mod steps;
mod stepwise;
mod swi_glu;
#[cfg(test)]
mod tests;
mod weighted_mean;

pub use adamw::{AdamW, Moments, ToUpdate, adamw, adamw_together, sums_of_squares};
pub use attention::{AttentionPlan, attention};
pub use backward_from::backward_from;
pub use block_diagonal::block_diagonal;
pub use conv::{causal_conv, causal_conv_residual};
pub use cross_entropy::cross_entropy;
pub use decay_min_gru::decay_min_gru;
pub use delta::delta;
pub use dropout::{Dropout, bias_dropout_residual};
pub use embedding::embedding;
pub use floored_min_gru::floored_min_gru;
pub(crate) use fused::is_on_cpu;
pub use gelu::{bias_gated_gelu, bias_gelu, gelu_gate};
pub use gelu_matmul::{gated_gelu_matmul, gelu_matmul};
#[cfg(feature = "cuda-source")]
pub use gpu::{cuda_source::CudaSource, cuda_sources};
pub use gru::{GruForm, gru};
pub use head_norm::head_norm;
pub use highway::highway;
pub use lstm::{LstmOutputs, lstm};
pub use m_lstm::{MLstmMemory, m_lstm};
pub use matmul::{matmul, matmul_transposed};
pub(crate) use min_gru::log_coefficients as min_gru_log_coefficients;
pub use min_gru::min_gru;
pub(crate) use min_lstm::log_coefficients as min_lstm_log_coefficients;
pub use min_lstm::min_lstm;
pub use minrnn_kernels::{Candidate, Gates};
pub(crate) use norm::over_root;
pub use norm::{layer_norm, layer_norm_residual, rms_norm, rms_norm_residual};
pub use pinball::pinball;
pub(crate) use pinball::pinball_sum;
pub(crate) use positions::StepPositions;
pub use positive::positive;
pub use precision::{Precision, activation_format, with_activations, with_precision};
pub use prefix_softmax::{PrefixMemory, prefix_softmax};
pub use recurrence::Start;
pub use retention::{Features, Retention, RetentionState, retention};
pub use rg_lru::{RgLru, RgLruMemory, rg_lru};
pub use rotary::rotary;
pub use rwkv4::{EMPTY_LOG_WEIGHT, Rwkv4Memory, rwkv4};
pub use s_lstm::{EMPTY_M, ForgetGate, SLstmMemory, s_lstm};
pub use scan::{linear_scan, log_space_scan};
pub use selective_scan::{SelectiveScan, selective_scan};
pub(crate) use shapes::expect_count;
pub use signed_min_gru::signed_min_gru;
pub use silu::{silu, silu_shared};
pub use skip_gate::skip_gate;
pub(crate) use softplus::softplus;
pub use split::split;
pub use squared_error::squared_error;
pub use state_space::state_space;
pub use steps::StepCodes;
pub use swi_glu::swi_glu;
