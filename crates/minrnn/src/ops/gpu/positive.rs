//! The positive function of the log-space form on a device.

use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use super::super::positive::Positive;
use super::elementary::positive_sigmoid;
use super::op::GpuOp;
use super::tensors::{Like, arg, elements, empty_like, len};

impl GpuOp for Positive {
    fn outputs_like(&self, inputs: &[Like]) -> Vec<Like> {
        vec![inputs[0].clone()]
    }

    fn forward(&self, inputs: &[CubeTensor]) -> Vec<CubeTensor> {
        let v = &inputs[0];
        let y = empty_like(v);
        let (grid, dim) = elements(len(v));
        // SAFETY: both have as many elements.
        unsafe { forward::launch_unchecked(&v.client, grid, dim, arg(v), arg(&y), len(v)) };
        vec![y]
    }

    fn backward(&self, inputs: &[Option<CubeTensor>], _: &[Option<CubeTensor>], d_outputs: &[Option<CubeTensor>]) -> Vec<CubeTensor> {
        let v = inputs[0].as_ref().expect("kept");
        let d_y = d_outputs[0].as_ref().expect("the only output");
        let d_v = empty_like(v);
        let (grid, dim) = elements(len(v));
        // SAFETY: all have as many elements.
        unsafe { backward::launch_unchecked(&v.client, grid, dim, arg(v), arg(d_y), arg(&d_v), len(v)) };
        vec![d_v]
    }
}

#[cube(launch_unchecked)]
pub(super) fn forward(v: &[f32], y: &mut [f32], count: usize) {
    if ABSOLUTE_POS >= count {
        terminate!();
    }
    let x = v[ABSOLUTE_POS];
    y[ABSOLUTE_POS] = select(x >= 0.0, x + 0.5, positive_sigmoid(x));
}

#[cube(launch_unchecked)]
pub(super) fn backward(v: &[f32], d_y: &[f32], d_v: &mut [f32], count: usize) {
    if ABSOLUTE_POS >= count {
        terminate!();
    }
    let x = v[ABSOLUTE_POS];
    let s = positive_sigmoid(x);
    d_v[ABSOLUTE_POS] = d_y[ABSOLUTE_POS] * select(x >= 0.0, 1.0f32, s * (1.0 - s));
}
