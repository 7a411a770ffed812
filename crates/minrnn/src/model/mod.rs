//! Models: a stack of blocks, and what stands before and after it.

mod backbone;
mod decision;
mod pair_head;
mod pooling;
mod scored;
mod sequence_model;
mod signal;

pub use backbone::{Backbone, BackboneState};
pub use decision::Decision;
pub use pair_head::{PairHead, PairMemory};
pub use pooling::RunningMean;
pub(crate) use scored::Scored;
pub use sequence_model::{SequenceModel, SequenceModelState};
pub use signal::{Inputs, Targets};
