//! What an operation has to give to run on a GPU.

use std::fmt::Debug;

use burn_cubecl::tensor::CubeTensor;

use super::tensors::Like;

/// An operation on a GPU; the same contract as [`FusedOp`](crate::ops::fused::FusedOp).
pub(in crate::ops) trait GpuOp: Debug {
    /// What the outputs are like, from what the inputs are: with Burn's fusion this is asked for before anything is computed.
    fn outputs_like(&self, inputs: &[Like]) -> Vec<Like>;

    /// The outputs.
    fn forward(&self, inputs: &[CubeTensor]) -> Vec<CubeTensor>;

    /// Gradients of all inputs, in their formats.
    fn backward(&self, inputs: &[Option<CubeTensor>], outputs: &[Option<CubeTensor>], d_outputs: &[Option<CubeTensor>]) -> Vec<CubeTensor>;
}
