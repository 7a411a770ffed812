//! A backward pass that starts in the middle of a model.

use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;

use super::flex::{dims, scalar};
use super::fused::{FusedOp, Keeps, has_kernels, input, output, run};
#[cfg(feature = "gpu")]
use super::gpu::op::GpuOp;

/// A scalar whose gradient with respect to `y` is `d_y`: calling its `backward` continues from a known gradient. The scalar's own value is
/// meaningless.
///
/// # Shapes
/// * `y`, `d_y` `[B, T, D]` → `[1]`
///
/// # Panics
/// When the shapes differ.
pub fn backward_from(y: Tensor<3>, d_y: Tensor<3>) -> Tensor<1> {
    assert_eq!(y.dims(), d_y.dims(), "a gradient has the shape of its tensor");
    if has_kernels(&y) {
        return output(run(WithGradient, vec![input(y), input(d_y)]).pop());
    }
    (y * d_y).sum()
}

#[derive(Debug)]
pub(super) struct WithGradient;

impl FusedOp for WithGradient {
    fn keeps(&self) -> Keeps {
        Keeps { inputs: vec![1], outputs: vec![] }
    }

    #[cfg(feature = "gpu")]
    fn gpu(&self) -> Option<&dyn GpuOp> {
        Some(self)
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        debug_assert_eq!(dims::<3>(&inputs[0]), dims::<3>(&inputs[1]));
        vec![scalar(0.0)]
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], _: &[Option<FlexTensor>], _: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let d_y = inputs[1].as_ref().expect("kept");
        vec![d_y.clone(), d_y.clone()]
    }
}
