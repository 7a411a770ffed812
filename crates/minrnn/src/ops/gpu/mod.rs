//! The fused operations on GPUs: kernels written once in CubeCL and compiled by the device's driver.
//!
//! The file of an operation has its kernels and launches them from the operation's own struct, which is declared in the CPU file beside
//! this folder, by the contract in `op`. Inputs, outputs and gradients are those of the CPU kernels; so are dropout masks, resets and padding.
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
//! `chunks`, `columns` and `rows` say which part of channels and steps, or of a matrix, a unit works on. Neighbouring lanes read neighbouring
//! channels, so every load of a plane is contiguous. Sums over rows are taken in two fixed steps
//! (`column_sums`): the same bits on every run.

#![allow(clippy::collapsible_if, reason = "what is decided when a kernel is compiled stands apart from what its units decide")]

mod adamw;
mod backward_from;
mod chunks;
mod column_sums;
mod columns;
mod conv;
mod cross_entropy;
#[cfg(feature = "cuda-source")]
pub(super) mod cuda_source;
mod dropout;
mod elementary;
mod embedding;
pub(super) mod formats;
#[cfg(feature = "fusion")]
mod fusion;
mod gelu;
mod lstm;
mod matmul;
mod norm;
pub(super) mod op;
#[cfg(feature = "cuda-source")]
mod over_rows_cuda_source;
mod positive;
pub(super) mod recurrence;
mod rows;
mod selective_scan;
pub(super) mod sums_of_squares;
pub(super) mod tensors;

#[cfg(feature = "cuda-source")]
use cuda_source::CudaSource;

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
