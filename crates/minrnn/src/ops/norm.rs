//! LayerNorm and RMSNorm over the last dimension.

use burn::backend::TensorMetadata;
use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;
use minrnn_kernels::{layer_norm as layer_kernel, rms_norm as rms_kernel};

use super::flex::{Output, slice};
use super::fused::{FusedOp, Keeps, has_kernels, input, output, run};

/// γ ⊙ (x − mean) / √(variance + `eps`) + β over the last dimension.
///
/// # Shapes
/// * `x` `[B, T, D]`, `gamma`, `beta` `[D]` → `[B, T, D]`
///
/// # Panics
/// When shapes do not fit.
pub fn layer_norm(x: Tensor<3>, gamma: Tensor<1>, beta: Tensor<1>, eps: f32) -> Tensor<3> {
    if has_kernels(&x.device()) {
        return output(run(LayerNorm { eps }, vec![input(x), input(gamma), input(beta)]).pop());
    }
    composed_layer_norm(x, gamma, beta, eps)
}

pub(super) fn composed_layer_norm(x: Tensor<3>, gamma: Tensor<1>, beta: Tensor<1>, eps: f32) -> Tensor<3> {
    let centred = x.clone() - x.mean_dim(2);
    let variance = centred.clone().powi_scalar(2).mean_dim(2);
    centred / (variance + eps).sqrt() * gamma.unsqueeze() + beta.unsqueeze()
}

/// (1 + γ) ⊙ x · √D / max(‖x‖, 1e−12) over the last dimension (models.md §2.7).
///
/// # Shapes
/// * `x` `[B, T, D]`, `gamma` `[D]` → `[B, T, D]`
///
/// # Panics
/// When shapes do not fit.
pub fn rms_norm(x: Tensor<3>, gamma: Tensor<1>) -> Tensor<3> {
    if has_kernels(&x.device()) {
        return output(run(RmsNorm, vec![input(x), input(gamma)]).pop());
    }
    composed_rms_norm(x, gamma)
}

pub(super) fn composed_rms_norm(x: Tensor<3>, gamma: Tensor<1>) -> Tensor<3> {
    let width = x.dims()[2];
    let norm = x.clone().powi_scalar(2).sum_dim(2).sqrt().clamp_min(1e-12);
    x / norm * (width as f32).sqrt() * (gamma + 1.0).unsqueeze()
}

/// Rows and width of a tensor normalised over its last dimension.
fn rows_of(x: &FlexTensor) -> (usize, usize) {
    let shape = x.shape();
    let width = shape[shape.num_dims() - 1];
    (shape.num_elements() / width.max(1), width)
}

#[derive(Debug)]
struct LayerNorm {
    eps: f32,
}

impl FusedOp for LayerNorm {
    fn keeps(&self) -> Keeps {
        Keeps { inputs: vec![0, 1], outputs: vec![] }
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let (rows, width) = rows_of(&inputs[0]);
        let mut y = Output::like(&inputs[0]);
        layer_kernel::forward(rows, width, slice(&inputs[0]), slice(&inputs[1]), slice(&inputs[2]), self.eps, y.out());
        // SAFETY: the kernel writes the output whole.
        unsafe { vec![y.finish()] }
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], _: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let [x, gamma] = [0, 1].map(|i| inputs[i].as_ref().expect("kept"));
        let d_y = d_outputs[0].as_ref().expect("the only output");
        let (rows, width) = rows_of(x);
        let [mut d_x, mut d_gamma, mut d_beta] = [Output::like(x), Output::like(gamma), Output::like(gamma)];
        layer_kernel::backward(rows, width, slice(x), slice(gamma), self.eps, slice(d_y), d_x.out(), d_gamma.out(), d_beta.out());
        // SAFETY: the kernel writes every gradient whole.
        unsafe { vec![d_x.finish(), d_gamma.finish(), d_beta.finish()] }
    }
}

#[derive(Debug)]
struct RmsNorm;

impl FusedOp for RmsNorm {
    fn keeps(&self) -> Keeps {
        Keeps { inputs: vec![0, 1], outputs: vec![] }
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let (rows, width) = rows_of(&inputs[0]);
        let mut y = Output::like(&inputs[0]);
        rms_kernel::forward(rows, width, slice(&inputs[0]), slice(&inputs[1]), y.out());
        // SAFETY: the kernel writes the output whole.
        unsafe { vec![y.finish()] }
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], _: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let [x, gamma] = [0, 1].map(|i| inputs[i].as_ref().expect("kept"));
        let d_y = d_outputs[0].as_ref().expect("the only output");
        let (rows, width) = rows_of(x);
        let [mut d_x, mut d_gamma] = [Output::like(x), Output::like(gamma)];
        rms_kernel::backward(rows, width, slice(x), slice(gamma), slice(d_y), d_x.out(), d_gamma.out());
        // SAFETY: the kernel writes every gradient whole.
        unsafe { vec![d_x.finish(), d_gamma.finish()] }
    }
}
