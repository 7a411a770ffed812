//! Efficient recurrent sequence models, trained by scan.
#![deny(missing_docs)]

pub mod checkpoint;
pub mod data;
mod error;
pub mod model;
pub mod nn;
pub mod ops;
mod parameters;
pub mod rng;
mod segments;
pub mod train;
pub mod verify;

pub use error::{Error, Result};
pub use segments::Segments;
