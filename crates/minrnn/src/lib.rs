#![doc = include_str!("../README.md")]
//!
//! # Which of these do I want?
//!
//! | I want to | start at |
//! |---|---|
//! | train a model from a configuration | [`train::Trainer`], [`train::Experiment`] |
//! | train with my own loop and data | [`data::BatchSource`], [`train::differentiate`], [`train::Optimizer`] |
//! | save a model that I trained | [`checkpoint::save_model`] |
//! | use a trained model | [`checkpoint::load_model`] |
//! | use a cell in my own network | [`ModelConfig::of_layer`](minrnn_model::ModelConfig::of_layer), [`nn::MinGru::new`], [`nn::Mixer`] |
//! | import or export weights of another library | [`interchange::import`], [`interchange::export`]; whole models: [`transfer`] |
//! | write my own cell | [`nn::Mixer`], [`model::SequenceModel::with_mixers`] |
//! | use the differentiable recurrence alone | [`ops::min_gru`], [`ops::linear_scan`] |
//! | get batches of text or tasks | [`data`] |
//! | classify or forecast my own tables | [`data::table`], [`predict`] |
//! | know how much memory training will need, and how much there is | [`train::training_memory`], [`memory::Room`] |
//! | export a model's internal activations for NumPy | [`deployed::write_inside`], [`array_file`] |
//! | plot numbers | [`plot::draw_lines`], [`plot::draw_dots`] |
//! | learn a policy from recorded episodes | [`data::offline_rl`], [`model::Decision`], [`rollout`], [`Policy`] |
//!
//! A model without an experiment, as a Burn module:
//!
//! ```
//! use minrnn::burn::tensor::{Device, Int, Tensor};
//! use minrnn::prelude::*;
//!
//! let device = Device::flex();
//! let config = ModelConfig { vocab_size: 65, d_model: 32, ..Default::default() };
//! let model = SequenceModel::new(&config, 42, &device)?;
//!
//! // Two sequences of four tokens, then a fifth token from where they ended.
//! let tokens = Tensor::<2, Int>::from_data([[1, 2, 3, 4], [5, 6, 7, 8]], &device);
//! let (logits, state) = model.forward(tokens, model.init_state(2), &StepCodes::dense(), Mode::Evaluate);
//! assert_eq!(logits.dims(), [2, 4, 65]);
//! let next = Tensor::<2, Int>::from_data([[5], [9]], &device);
//! let (logits, _state) = model.forward(next, state, &StepCodes::dense(), Mode::Evaluate);
//! assert_eq!(logits.dims(), [2, 1, 65]);
//! # Ok::<(), minrnn::Error>(())
//! ```
//!
//! # Letters in shapes
//! `B` batch, `T` time (`seq_len`), `D` model width (`d_model`), `E` inner width (`d_inner`, the paper's d_h), `V` vocabulary.
#![deny(missing_docs)]

pub mod array_file;
pub mod checkpoint;
mod counted;
pub mod csv;
pub mod data;
pub mod deployed;
pub mod device;
mod error;
pub mod generate;
pub mod html;
pub mod interchange;
pub mod memory;
pub mod model;
mod new_directory;
pub mod nn;
pub mod numbers;
pub mod ops;
pub mod output;
mod parameters;
pub mod plot;
mod policy;
pub mod predict;
pub mod report;
pub mod rng;
pub mod rollout;
mod segments;
pub mod statistics;
pub mod subject;
mod suggestion;
pub mod tensor_file;
pub mod train;
pub mod transfer;
pub mod verify;
pub mod words;

/// The framework in which models are written, in the version that this library uses.
pub use burn;
pub use error::{DeviceProblem, Error, Needed, Result, RunProblem, expect_output};
pub use minrnn_model;
pub use policy::Policy;
pub use segments::Segments;

/// Everything needed to train and use a model: `use minrnn::prelude::*;`.
///
/// [`Result`] takes two parameters, like the standard library's; the second defaults to [`Error`].
pub mod prelude {
    pub use minrnn_model::{MixerKind, ModelConfig};

    pub use crate::data::{Batch, BatchSource};
    pub use crate::model::SequenceModel;
    pub use crate::nn::{Mixer, Mode};
    pub use crate::ops::StepCodes;
    pub use crate::train::{Ending, Event, Experiment, Pointer, RunDir, Told, Trainer};
    pub use crate::{Error, Result, Segments};
}
