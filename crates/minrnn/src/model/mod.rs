//! Models: a stack of blocks with its first and last layers.

mod activations;
mod any_model;
mod backbone;
mod decision;
mod inputs;
mod pair_head;
mod pooling;
mod scored;
mod sequence_model;

pub(crate) use activations::Pass;
pub use any_model::AnyModel;
pub use backbone::{Backbone, BackboneState};
pub use decision::Decision;
pub use inputs::{Inputs, Targets};
pub use pair_head::{PairHead, PairMemory};
pub use pooling::RunningMean;
pub use scored::Scored;
pub use sequence_model::{SequenceModel, SequenceModelState};
