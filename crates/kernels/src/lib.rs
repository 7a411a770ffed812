//! Recurrence, convolution, norm and loss kernels for CPUs: slices in, slices out, forward and backward.
#![deny(missing_docs)]
#![cfg_attr(not(feature = "std"), no_std)]
extern crate alloc;

mod candidate;
pub mod conv;
pub mod copy;
pub mod cross_entropy;
pub mod dropout;
pub mod gated_gelu;
pub mod gelu;
pub mod grid;
pub mod gru;
pub mod layer_norm;
pub mod log_space;
pub mod lstm;
pub mod min_gru;
pub mod min_lstm;
pub mod product;
mod recurrence;
pub mod reference;
pub mod rms_norm;
mod rows;
pub mod scan;
pub mod segments;
pub mod shape;
pub mod simd;
mod stepwise;

pub use gru::GruForm;
pub use segments::Segments;
pub use shape::{Candidate, Gates, Out, Shape, Start};
