//! What a deployed model needs and nothing of a training framework: configuration, checkpoint reader, sampler.
#![deny(missing_docs)]

mod error;

pub use error::{Error, Result};
