//! Efficient recurrent sequence models, trained by scan.
#![deny(missing_docs)]

mod error;
mod segments;
pub mod train;

pub use error::{Error, Result};
pub use segments::Segments;
