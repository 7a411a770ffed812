//! Recurrence, convolution, norm and loss kernels for CPUs: slices in, slices out, forward and backward.
#![deny(missing_docs)]
#![cfg_attr(not(feature = "std"), no_std)]
extern crate alloc;

pub mod grid;
pub mod gru;
pub mod lstm;
pub mod product;
mod recurrent;
pub mod reference;
pub mod segments;
pub mod shape;
pub mod simd;

pub use gru::GruForm;
pub use segments::Segments;
pub use shape::{Candidate, Gates, Out, Shape, Start};
