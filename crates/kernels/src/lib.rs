//! Recurrence, convolution, norm and loss kernels for CPUs: slices in, slices out, forward and backward.
#![deny(missing_docs)]
#![cfg_attr(not(feature = "std"), no_std)]
extern crate alloc;

pub mod grid;
pub mod segments;
pub mod simd;
