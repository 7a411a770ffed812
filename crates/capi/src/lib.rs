#![doc = include_str!("../README.md")]
#![deny(missing_docs)]

mod columns;
mod constants;
mod failure;
mod handles;
mod lent;
mod model;
mod pointers;
mod sampler;
mod session;
mod status;
mod steps;
mod table;
mod text;
#[cfg(target_arch = "wasm32")]
mod web;

pub use columns::{minrnn_column_code, minrnn_column_name, minrnn_column_names};
pub use failure::minrnn_last_error;
#[cfg(feature = "std")]
pub use model::minrnn_model_open;
pub use model::{
    ModelHandle, minrnn_model_free, minrnn_model_from_memory, minrnn_model_kind, minrnn_model_name, minrnn_model_quantile,
    minrnn_model_session_bytes, minrnn_model_size, minrnn_model_threshold, minrnn_version,
};
pub use sampler::{SamplerHandle, minrnn_sampler_free, minrnn_sampler_new, minrnn_sampler_sample, minrnn_sampler_set};
pub use session::{
    SessionHandle, minrnn_session_copy_row, minrnn_session_fork, minrnn_session_free, minrnn_session_new, minrnn_session_reset,
    minrnn_session_restore, minrnn_session_save, minrnn_session_size, minrnn_session_threads,
};
pub use status::Status;
pub use steps::{
    minrnn_forward_tokens, minrnn_forward_values, minrnn_prefill_tokens, minrnn_prefill_values, minrnn_step_tokens, minrnn_step_values,
};
pub use table::{minrnn_table_step, minrnn_table_surprise};
pub use text::{
    TextHandle, minrnn_decode, minrnn_encode, minrnn_start_token, minrnn_text_decode, minrnn_text_encode, minrnn_text_free,
    minrnn_text_new, minrnn_text_reset,
};
#[cfg(target_arch = "wasm32")]
pub use web::{minrnn_alloc, minrnn_dealloc};
