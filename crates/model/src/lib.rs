#![doc = include_str!("../README.md")]
//!
//! # Where to look
//! * [`ModelConfig`] describes a model; [`validate`](ModelConfig::validate) checks it, [`cost`](ModelConfig::cost) counts its cost.
#![cfg_attr(
    feature = "std",
    doc = "* A checkpoint is a directory: [`read_checkpoint`], [`CheckpointConfig`], [`Weights`], and [`CheckpointFiles`] with its digests."
)]
//! * A packed model is one file: [`PackedFile`].
//! * A [`Tokenizer`] converts between text and token ids.
//! * [`Calibration`] says which rows count as surprising.
//! * [`TableTask`] is what a model trained on a table needs in order to be used on another.
#![deny(missing_docs)]
#![cfg_attr(not(feature = "std"), no_std)]
extern crate alloc;

mod calibration;
#[cfg(feature = "std")]
mod checkpoint;
#[cfg(feature = "std")]
mod checkpoint_files;
#[cfg(feature = "std")]
mod checkpoint_parts;
mod checksum;
mod choices;
mod config;
mod error;
#[cfg(feature = "std")]
mod files;
mod first_few;
#[cfg(feature = "std")]
mod foreign_weights;
mod hex;
mod likeliest;
#[cfg(feature = "std")]
mod log_sum_exp;
mod mixer_kind;
mod packed;
mod spec;
mod table;
mod tokenizer;
#[cfg(feature = "std")]
mod weights;

pub use calibration::{Calibration, Threshold};
#[cfg(feature = "std")]
pub use checkpoint::{CheckpointConfig, FORMAT_VERSION, read_checkpoint};
#[cfg(feature = "std")]
pub use checkpoint_files::{CONFIG_FILE, CheckpointFiles, DIGESTS_FILE, SURPRISE_FILE, TASK_FILE, TOKENIZER_FILE, WEIGHTS_FILE};
#[cfg(feature = "std")]
pub use checkpoint_parts::MAX_TASK_BYTES;
pub use checksum::crc32c;
pub use choices::{
    Candidate, DropoutSite, FeedForwardKind, ForgetFloor, ForgetGate, GruForm, InitialState, Initialization, NormKind, Pooling, Positions,
    RecurrentInit, S4Init, ScanKind, WeightFormat, WiringKind,
};
pub use config::{CONV_TAPS, CheckedConfig, Cost, KvCache, ModelConfig, POLICY_PLACES, POLICY_TENSOR, POLICY_TIME_SCALE, POLICY_TIMES};
pub use error::{Error, Result};
#[cfg(feature = "std")]
pub use files::{
    WRITING, create_directories, names_of, other_than_file, put_in_place, read_limited, read_text, sync_directory, temporary_beside,
    without_temporary_name, write_atomic,
};
pub use first_few::first_few;
#[cfg(feature = "std")]
pub use foreign_weights::INDEX_FILE;
pub use hex::hex;
pub use likeliest::likeliest;
#[cfg(feature = "std")]
pub use log_sum_exp::log_sum_exp;
pub use mixer_kind::MixerKind;
pub use packed::{PackedFile, Section, TensorEntry};
pub use spec::{HYENA_FEATURES, HYENA_HIDDEN, HYENA_TAPS, MLSTM_BLOCK, MixerSpec, Role, Setting, TensorSpec, Tensors, hyena_layers};
pub use table::{
    Category, Classifier, FILLED, Forecaster, History, Layout, MAX_CATEGORIES, MAX_DEVIATIONS, MAX_REACH, MAX_ROWS_PER_STEP, Missing,
    Normalization, Prediction, Regressor, RowsPerStep, Scale, Scaling, TableTask, Transform, UNSEEN,
};
#[cfg(feature = "bpe")]
pub use tokenizer::Bpe;
pub use tokenizer::{Characters, Seen, TextInput, TextStream, Tokenizer, TokenizerKind, incomplete_tail};
#[cfg(feature = "std")]
pub use weights::{Tensor, Weights, write_safetensors};
