//! Models: a stack of blocks, and what stands before and after it.

mod backbone;
mod decision;
mod language_model;
mod pair_head;
mod pooling;
mod scored;
mod signal;

pub use backbone::{Backbone, BackboneState};
pub use decision::Decision;
pub use language_model::{LanguageModel, LanguageModelState};
pub use pair_head::{PairHead, PairMemory};
pub use pooling::RunningMean;
pub(crate) use scored::Scored;
pub use signal::{Inputs, Targets};
