//! What a deployed model needs and nothing of a training framework: configuration, checkpoint reader, sampler.
#![deny(missing_docs)]

mod choices;
mod config;
mod error;

pub use choices::{Candidate, DropoutSite, FeedForwardKind, GruForm, InitialState, MixerKind, NormKind, ScanKind};
pub use config::ModelConfig;
pub use error::{Error, Result};
