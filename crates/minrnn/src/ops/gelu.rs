//! Bias and exact GELU in one pass, plain and gated.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Tensor, activation};
use minrnn_kernels::{gated_gelu as gated_kernel, gelu as kernel};

use super::flex::{Output, dims, slice};
use super::fused::{FusedOp, Keeps, has_all_kernels, input, output, run};
#[cfg(feature = "gpu")]
use super::gpu::GpuOp;

/// u Φ(u) with u = x + bias and Φ the normal distribution function (models.md §12).
///
/// # Shapes
/// * `x` `[N, M]`, `bias` `[M]` → `[N, M]`
///
/// # Panics
/// When shapes do not fit.
pub fn bias_gelu(x: Tensor<2>, bias: Tensor<1>) -> Tensor<2> {
    if has_all_kernels(&x) {
        return output(run(BiasGelu, vec![input(x), input(bias)]).pop());
    }
    composed_bias_gelu(x, bias)
}

pub(super) fn composed_bias_gelu(x: Tensor<2>, bias: Tensor<1>) -> Tensor<2> {
    activation::gelu(x + bias.unsqueeze())
}

/// scale ⊙ value ⊙ GELU(gate), with [value | gate] = x + bias (models.md §2.7, FF).
///
/// # Shapes
/// * `x` `[N, 2M]`, `bias` `[2M]`, `scale` `[M]` → `[N, M]`
///
/// # Panics
/// When shapes do not fit.
pub fn bias_gated_gelu(x: Tensor<2>, bias: Tensor<1>, scale: Tensor<1>) -> Tensor<2> {
    if has_all_kernels(&x) {
        return output(run(BiasGatedGelu, vec![input(x), input(bias), input(scale)]).pop());
    }
    composed_bias_gated_gelu(x, bias, scale)
}

pub(super) fn composed_bias_gated_gelu(x: Tensor<2>, bias: Tensor<1>, scale: Tensor<1>) -> Tensor<2> {
    let x = x + bias.unsqueeze();
    let m = x.dims()[1] / 2;
    x.clone().narrow(1, 0, m) * activation::gelu(x.narrow(1, m, m)) * scale.unsqueeze()
}

#[derive(Debug)]
pub(super) struct BiasGelu;

impl FusedOp for BiasGelu {
    fn keeps(&self) -> Keeps {
        Keeps { inputs: vec![0, 1], outputs: vec![] }
    }

    #[cfg(feature = "gpu")]
    fn gpu(&self) -> Option<&dyn GpuOp> {
        Some(self)
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let [rows, width] = dims(&inputs[0]);
        let mut y = Output::like(&inputs[0]);
        kernel::forward(rows, width, slice(&inputs[0]), Some(slice(&inputs[1])), y.out());
        // SAFETY: the kernel writes the output whole.
        unsafe { vec![y.finish()] }
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], _: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let [x, bias] = [0, 1].map(|i| inputs[i].as_ref().expect("kept"));
        let d_y = d_outputs[0].as_ref().expect("the only output");
        let [rows, width] = dims(x);
        let [mut d_x, mut d_bias] = [Output::like(x), Output::like(bias)];
        kernel::backward(rows, width, slice(x), Some(slice(bias)), slice(d_y), d_x.out(), Some(d_bias.out()));
        // SAFETY: the kernel writes every gradient whole.
        unsafe { vec![d_x.finish(), d_bias.finish()] }
    }
}

#[derive(Debug)]
pub(super) struct BiasGatedGelu;

impl FusedOp for BiasGatedGelu {
    fn keeps(&self) -> Keeps {
        Keeps { inputs: vec![0, 1, 2], outputs: vec![] }
    }

    #[cfg(feature = "gpu")]
    fn gpu(&self) -> Option<&dyn GpuOp> {
        Some(self)
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let [rows, double] = dims(&inputs[0]);
        let mut y = Output::new([rows, double / 2]);
        gated_kernel::forward(rows, double / 2, slice(&inputs[0]), Some(slice(&inputs[1])), slice(&inputs[2]), y.out());
        // SAFETY: the kernel writes the output whole.
        unsafe { vec![y.finish()] }
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], _: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let [x, bias, scale] = [0, 1, 2].map(|i| inputs[i].as_ref().expect("kept"));
        let d_y = d_outputs[0].as_ref().expect("the only output");
        let [rows, double] = dims(x);
        let [mut d_x, mut d_bias, mut d_scale] = [Output::like(x), Output::like(bias), Output::like(scale)];
        gated_kernel::backward(
            rows,
            double / 2,
            slice(x),
            Some(slice(bias)),
            slice(scale),
            slice(d_y),
            d_x.out(),
            Some(d_bias.out()),
            d_scale.out(),
        );
        // SAFETY: the kernel writes every gradient whole.
        unsafe { vec![d_x.finish(), d_bias.finish(), d_scale.finish()] }
    }
}
