//! Models: a stack of blocks, and the heads on it.

mod backbone;
mod language_model;

pub use backbone::{Backbone, BackboneState};
pub use language_model::{LanguageModel, LanguageModelState};
