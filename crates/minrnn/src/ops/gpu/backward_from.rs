//! The start of a backward pass in the middle of a model.

use burn_cubecl::tensor::CubeTensor;

use super::super::backward_from::WithGradient;
use super::op::GpuOp;
use super::tensors::{Like, zeros};

impl GpuOp for WithGradient {
    fn outputs_like(&self, _: &[Like]) -> Vec<Like> {
        vec![Like::f32([1])]
    }

    fn forward(&self, inputs: &[CubeTensor]) -> Vec<CubeTensor> {
        vec![zeros(&inputs[0], [1])]
    }

    fn backward(&self, inputs: &[Option<CubeTensor>], _: &[Option<CubeTensor>], _: &[Option<CubeTensor>]) -> Vec<CubeTensor> {
        let d_y = inputs[1].as_ref().expect("kept");
        vec![d_y.clone(), d_y.clone()]
    }
}
