//! What a deployed model needs and nothing of a training framework: configuration, checkpoint reader, sampler.
//!
//! * [`ModelConfig`]: what a model is. [`CheckpointConfig`] is the file it travels in.
//! * [`Weights`]: the named tensors of a safetensors file; [`read_checkpoint`] reads both.
//! * [`Sampler`]: chooses a token from logits, by its [`Sampling`] settings.
//! * [`write_atomic`], [`write_safetensors`]: files that are replaced whole or not at all.
#![deny(missing_docs)]

mod checkpoint;
mod choices;
mod config;
mod error;
mod files;
mod sampler;
mod sampling;
mod weights;

pub use checkpoint::{CONFIG_FILE, CheckpointConfig, FORMAT_VERSION, WEIGHTS_FILE, read_checkpoint};
pub use choices::{Candidate, DropoutSite, FeedForwardKind, GruForm, InitialState, MixerKind, NormKind, ScanKind};
pub use config::ModelConfig;
pub use error::{Error, Result};
pub use files::{read_text, sync_directory, write_atomic};
pub use sampler::Sampler;
pub use sampling::Sampling;
pub use weights::{Tensor, Weights, write_safetensors};
