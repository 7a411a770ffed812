//! Runs trained models: tokens in, logits out, one at a time or a whole prompt at once, with constant memory for each session.
//!
//! Which of these do I want?
//! * run a model: [`Model`], read from a checkpoint directory or from one packed file, with a [`State`] for one or many sessions;
//! * make that file: [`PackedModel::write`], which stores the matrices in a [`WeightFormat`];
//! * choose the next token: [`Sampler`], by its [`Sampling`] settings;
//! * files and configuration alone: [`ModelConfig`], [`read_checkpoint`], [`Weights`], [`write_atomic`], [`write_safetensors`].
//!
//! Letters in shapes: `B` sessions, `T` time, `N` tokens of a pass, `D` model width, `E` inner width, `V` vocabulary, `K` taps.
//!
//! Threads are those of the ambient rayon pool; inside a pool ([`ThreadPool::install`](rayon::ThreadPool::install)) a step allocates
//! nothing. A session's logits have the same bits however its tokens are cut into prompts and steps, whoever shares its batch, and on
//! any number of threads.
//!
//! Feature `std` (default): files, threads, run-time choice of instructions. Without it the crate is `no_std` with `alloc`: a packed
//! model is read from memory and runs on one thread.
#![deny(missing_docs)]
#![cfg_attr(not(feature = "std"), no_std)]
extern crate alloc;

mod block;
mod block_diagonal;
mod channel_mix;
#[cfg(feature = "std")]
mod checkpoint;
mod checksum;
mod choices;
mod config;
mod conv;
mod crew;
#[cfg(feature = "std")]
mod digests;
mod error;
mod feed_forward;
#[cfg(feature = "std")]
mod files;
mod gates;
mod highway;
mod layer;
mod linear;
mod mixer;
mod model;
mod norm;
mod packed;
mod pass;
mod sampler;
mod sampling;
mod shift;
mod source;
mod state;
mod token_shift;
#[cfg(feature = "std")]
mod weights;
mod wiring;
mod workspace;

#[cfg(feature = "std")]
pub use checkpoint::{CONFIG_FILE, CheckpointConfig, FORMAT_VERSION, WEIGHTS_FILE, read_checkpoint};
pub use choices::{
    Candidate, DropoutSite, FeedForwardKind, ForgetFloor, ForgetGate, GruForm, InitialState, Initialization, MixerKind, NormKind, Pooling,
    Positions, RecurrentInit, S4Init, ScanKind, WeightFormat, WiringKind,
};
pub use config::{Cost, ModelConfig, Past};
#[cfg(feature = "std")]
pub use digests::{CheckpointFiles, DIGESTS_FILE};
pub use error::{Error, Result};
#[cfg(feature = "std")]
pub use files::{create_directories, read_text, sync_directory, without_temporary_name, write_atomic};
pub use model::Model;
pub use packed::{PackedModel, TensorEntry};
pub use sampler::Sampler;
pub use sampling::Sampling;
pub use state::State;
#[cfg(feature = "std")]
pub use weights::{Tensor, Weights, write_safetensors};
pub use workspace::Workspace;
