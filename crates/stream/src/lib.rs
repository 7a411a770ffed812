#![doc = include_str!("../README.md")]
//!
//! # Which of these do I want?
//! * run a model: [`Model`], loaded from a checkpoint directory or a packed file, with a [`State`] for one or many sessions;
//! * make a packed file: [`PackedModel::write`], which stores the matrices in a [`WeightFormat`](minrnn_model::WeightFormat);
//! * see a model's internal activations at every step: [`Model::forward_inside`], [`Inside`];
//! * read rows of a table, in its units: [`TableSessions`], which keep the earlier rows they look back on; sessions of any model behind one
//!   interface, to save and restore: [`Sessions`]; with names: [`SavedSessions`];
//! * choose the next token: [`Sampler`], by its [`Sampling`] settings; continue a text with it: [`Continuation`];
//! * files and configuration alone: [`minrnn_model`].
//!
//! Letters in shapes: `B` sessions, `T` time, `N` tokens of a pass, `D` model width, `E` inner width, `V` vocabulary, `K` taps.
//!
//! Threads are those of the ambient rayon pool; inside a pool ([`ThreadPool::install`](rayon::ThreadPool::install)) a step does not
//! allocate.
#![deny(missing_docs)]
#![cfg_attr(not(feature = "std"), no_std)]
extern crate alloc;

mod block;
mod block_diagonal;
mod channel_mix;
mod continuation;
mod conv;
mod decision;
mod end;
mod error;
mod feed_forward;
mod forecasts;
mod framed;
mod front;
mod gates;
mod highway;
mod inside;
mod kind;
mod layer;
mod linear;
mod mixer;
mod model;
mod norm;
mod packed;
mod pass;
mod past;
mod reads;
pub mod rng;
mod sampler;
mod sampling;
mod saved_sessions;
mod sessions;
mod shared;
mod shift;
mod source;
mod state;
mod stop;
mod table_sessions;
mod token_shift;
mod wiring;
mod workers;
mod workspace;

pub use continuation::{Continuation, RECENT_TOKENS};
#[cfg(feature = "std")]
pub use error::is_wrong_path;
pub use error::{Error, ErrorKind, Result, panic_words};
pub use inside::Inside;
pub use kind::{ModelKind, expect_surprise, expect_table, expect_task_of};
pub use minrnn_kernels::weight_matrix::AlignedBytes;
pub use minrnn_model;
pub use model::{Model, PASS_STEPS};
pub use packed::PackedModel;
#[cfg(feature = "std")]
pub use packed::read_aligned;
pub use reads::Reads;
pub use sampler::Sampler;
pub use sampling::Sampling;
pub use saved_sessions::{SavedSessions, Saving};
pub use sessions::Sessions;
pub use state::State;
pub use stop::StopStrings;
pub use table_sessions::{TableSessions, expect_numbers};
#[cfg(feature = "std")]
pub use workers::team::ambient_threads;
pub use workspace::Workspace;

use minrnn_model::{
    Candidate, CheckedConfig, FeedForwardKind, ForgetFloor, GruForm, InitialState, MixerKind, ModelConfig, NormKind, Pooling, Positions,
    WiringKind,
};
