//! Efficient recurrent sequence models, trained by scan.
//!
//! minGRU and minLSTM ("Were RNNs All We Needed?") and the cells they are compared with, behind one contract: cut a sequence anywhere,
//! carry the state, and outputs, final state and gradients stay the same.
//!
//! Which of these do I want?
//!
//! | I want to | start at |
//! |---|---|
//! | train a model from a configuration | [`train::Trainer`], [`train::Experiment`] |
//! | use a trained model | [`checkpoint::load_model`] |
//! | put a cell into a network of my own | [`nn::MinGruConfig`], [`nn::Mixer`] |
//! | weights of another library, or for it | [`interchange::import`], [`interchange::export`] |
//! | write a cell of my own | [`nn::Mixer`], [`model::SequenceModel::with_mixers`] |
//! | the recurrence alone, differentiable | [`ops::min_gru`], [`ops::linear_scan`] |
//! | batches of text or tasks | [`data`] |
//! | classes or forecasts of tables of mine | [`data::table`], [`predict`] |
//! | how much memory a training will need, and how much there is | [`train::training_memory`], [`memory::Room`] |
//! | a picture of numbers | [`plot::draw_lines`], [`plot::draw_dots`] |
//! | a policy from recorded episodes | [`data::offline_rl`], [`model::Decision`], [`rollout`], [`Policy`] |
//!
//! ```
//! use burn::tensor::{Device, Int, Tensor};
//! use minrnn::model::SequenceModel;
//! use minrnn::nn::Mode;
//! use minrnn::ops::StepCodes;
//! use minrnn_model::ModelConfig;
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
//! # Memory
//! Training allocates the same activations, 25 to 100 MB each, at every iteration. With an allocator that returns them to the system, page
//! faults can take half the time. Give your program one that keeps them; the `minrnn` command shows how in its `allocator.rs`.
//!
//! # Letters in shapes
//! `B` batch, `T` time (`seq_len`), `D` model width (`d_model`), `E` inner width (`d_inner`, the paper's d_h), `V` vocabulary.
#![deny(missing_docs)]

pub mod checkpoint;
pub mod data;
pub mod deployed;
pub mod device;
mod error;
pub mod generate;
pub mod interchange;
pub mod memory;
pub mod model;
pub mod nn;
pub mod ops;
mod parameters;
pub mod plot;
mod policy;
pub mod predict;
pub mod rng;
pub mod rollout;
mod segments;
mod suggestion;
pub mod train;
pub mod verify;

pub use error::{DeviceProblem, Error, Needed, Result, RunProblem};
pub use policy::Policy;
pub use segments::Segments;
