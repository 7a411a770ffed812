//! The fused operations on GPUs: kernels written once in CubeCL and compiled by the device's driver.
//!
//! Every file has the kernels of one operation and launches them from the operation's own struct, which is declared in the CPU file beside
//! this folder. Inputs, outputs and gradients are those of the CPU kernels; so are dropout masks, resets and padding.
//!
//! | file | split into |
//! |---|---|
//! | `recurrence` | 32 channels of one row, or of a chunk of its steps |
//! | `selective_scan` | 32 channels of one row, or of a chunk of its steps |
//! | `lstm` | one head of a few rows |
//! | `conv` | 32 channels and a block of steps |
//! | `norm`, `cross_entropy` | 8 rows of 32 lanes |
//! | `gelu`, `dropout` | single elements; 32 vectors of columns and a block of rows if a gradient is summed over rows |
//! | `embedding`, `positive` | single elements; 32 columns of one row of the table |
//! | `adamw`, `sums_of_squares` | single elements of up to sixteen tensors |
//!
//! Neighbouring lanes read neighbouring channels, so every load of a plane is contiguous. Sums over rows are taken in two fixed steps
//! (`column_sums`): the same bits on every run.

#![allow(clippy::collapsible_if, reason = "what is decided when a kernel is compiled stands apart from what its units decide")]

mod adamw;
mod backward_from;
mod chunks;
mod column_sums;
mod conv;
mod cross_entropy;
#[cfg(feature = "cuda-source")]
mod cuda_source;
mod dropout;
mod elementary;
mod embedding;
mod formats;
#[cfg(feature = "fusion")]
mod fusion;
mod gelu;
mod lstm;
mod matmul;
mod norm;
#[cfg(feature = "cuda-source")]
mod over_rows_cuda_source;
mod positive;
mod recurrence;
mod selective_scan;
mod sums_of_squares;
mod tensors;

#[cfg(feature = "cuda-source")]
pub use cuda_source::CudaSource;
pub(super) use formats::works_in_bf16;
pub(super) use recurrence::Cell;
pub(super) use sums_of_squares::{all_on_gpu, sums_of_squares};
pub(super) use tensors::{Like, Uploaded, ints_on_gpu, len, on_gpu};

use std::fmt::Debug;

use burn_cubecl::tensor::CubeTensor;

/// The kernels as CUDA text for a device like an H100.
#[cfg(feature = "cuda-source")]
pub fn cuda_sources() -> Vec<CudaSource> {
    [
        recurrence::cuda_sources(),
        selective_scan::cuda_sources(),
        lstm::cuda_sources(),
        conv::cuda_sources(),
        over_rows_cuda_source::cuda_sources(),
    ]
    .concat()
}

/// An operation on a GPU; the same contract as [`FusedOp`](super::fused::FusedOp).
pub(super) trait GpuOp: Debug {
    /// What the outputs are like, from what the inputs are: with Burn's fusion this is asked for before anything is computed.
    fn outputs_like(&self, inputs: &[Like]) -> Vec<Like>;

    /// The outputs.
    fn forward(&self, inputs: &[CubeTensor]) -> Vec<CubeTensor>;

    /// Gradients of all inputs, in their formats.
    fn backward(&self, inputs: &[Option<CubeTensor>], outputs: &[Option<CubeTensor>], d_outputs: &[Option<CubeTensor>]) -> Vec<CubeTensor>;
}
