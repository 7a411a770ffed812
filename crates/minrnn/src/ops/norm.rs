//! LayerNorm and RMSNorm over the last dimension.

use burn::backend::flex::FlexTensor;
use burn::backend::{DispatchTensor, TensorMetadata};
use burn::tensor::{FloatDType, Tensor};
use minrnn_kernels::{layer_norm as layer_kernel, rms_norm as rms_kernel};

use super::flex::{optional, outputs, shape, slice, zeros};
use super::fused::{FusedOp, Keeps, has_kernels, input, output, run};
#[cfg(feature = "gpu")]
use super::gpu::op::GpuOp;
use super::shapes::expect_shape;

/// γ ⊙ (x − mean) / √(variance + `eps`) + β over the last dimension.
///
/// # Shapes
/// * `x` `[B, T, D]`, `gamma`, `beta` `[D]` → `[B, T, D]`
///
/// # Panics
/// When shapes do not fit.
pub fn layer_norm(x: Tensor<3>, gamma: Tensor<1>, beta: Tensor<1>, eps: f32) -> Tensor<3> {
    let [_, _, width] = x.dims();
    expect_shape("layer_norm", "gamma", &gamma, [width]);
    expect_shape("layer_norm", "beta", &beta, [width]);
    if has_kernels(&x) {
        let op = Normalize { kind: Kind::Layer { eps }, gives_input: false, format: FloatDType::F32 };
        return output(run(op, vec![input(x), input(gamma), input(beta)]).pop());
    }
    composed_layer_norm(x, gamma, beta, eps)
}

/// [`layer_norm`] of x, and x itself for a residual connection: both gradients of x are summed inside the backward pass of the norm. The
/// first output is in `format`, which is f32 on CPUs.
///
/// # Shapes
/// * `x` `[B, T, D]`, `gamma`, `beta` `[D]` → `[B, T, D]` twice
///
/// # Panics
/// When shapes do not fit.
pub fn layer_norm_residual(x: Tensor<3>, gamma: Tensor<1>, beta: Tensor<1>, eps: f32, format: FloatDType) -> (Tensor<3>, Tensor<3>) {
    let [_, _, width] = x.dims();
    expect_shape("layer_norm_residual", "gamma", &gamma, [width]);
    expect_shape("layer_norm_residual", "beta", &beta, [width]);
    if has_kernels(&x) {
        return both(run(Normalize { kind: Kind::Layer { eps }, gives_input: true, format }, vec![input(x), input(gamma), input(beta)]));
    }
    (composed_layer_norm(x.clone(), gamma, beta, eps), x)
}

/// `x` / √(`squares` + `eps`), NaN where the squares overflowed: their root is ∞, and dividing by it would silently give 0.
pub(crate) fn over_root<const D: usize>(x: Tensor<D>, squares: Tensor<D>, eps: f64) -> Tensor<D> {
    x / (marked(squares) + eps).sqrt()
}

/// `squares`, NaN in place of ∞.
fn marked<const D: usize>(squares: Tensor<D>) -> Tensor<D> {
    squares.clone() - squares.clone() + squares
}

pub(super) fn composed_layer_norm(x: Tensor<3>, gamma: Tensor<1>, beta: Tensor<1>, eps: f32) -> Tensor<3> {
    let centred = x.clone() - x.mean_dim(2);
    let variance = centred.clone().powi_scalar(2).mean_dim(2);
    over_root(centred, variance, f64::from(eps)) * gamma.unsqueeze() + beta.unsqueeze()
}

/// (1 + γ) ⊙ x · √D / max(‖x‖, 1e−12) over the last dimension (RMSNorm of Zhang and Sennrich 2019, arXiv:1910.07467, with the gain stored
/// as 1 + γ).
///
/// # Shapes
/// * `x` `[B, T, D]`, `gamma` `[D]` → `[B, T, D]`
///
/// # Panics
/// When shapes do not fit.
pub fn rms_norm(x: Tensor<3>, gamma: Tensor<1>) -> Tensor<3> {
    expect_shape("rms_norm", "gamma", &gamma, [x.dims()[2]]);
    if has_kernels(&x) {
        let op = Normalize { kind: Kind::Rms, gives_input: false, format: FloatDType::F32 };
        return output(run(op, vec![input(x), input(gamma)]).pop());
    }
    composed_rms_norm(x, gamma)
}

/// [`rms_norm`] of x, and x itself, as in [`layer_norm_residual`]. The first output is in `format`, which is f32 on CPUs.
///
/// # Shapes
/// * `x` `[B, T, D]`, `gamma` `[D]` → `[B, T, D]` twice
///
/// # Panics
/// When shapes do not fit.
pub fn rms_norm_residual(x: Tensor<3>, gamma: Tensor<1>, format: FloatDType) -> (Tensor<3>, Tensor<3>) {
    expect_shape("rms_norm_residual", "gamma", &gamma, [x.dims()[2]]);
    if has_kernels(&x) {
        return both(run(Normalize { kind: Kind::Rms, gives_input: true, format }, vec![input(x), input(gamma)]));
    }
    (composed_rms_norm(x.clone(), gamma), x)
}

pub(super) fn composed_rms_norm(x: Tensor<3>, gamma: Tensor<1>) -> Tensor<3> {
    let width = x.dims()[2];
    let norm = marked(x.clone().powi_scalar(2).sum_dim(2)).sqrt().clamp_min(1e-12);
    x / norm * (width as f32).sqrt() * (gamma + 1.0).unsqueeze()
}

fn both(outputs: Vec<DispatchTensor>) -> (Tensor<3>, Tensor<3>) {
    let mut outputs = outputs.into_iter();
    (output(outputs.next()), output(outputs.next()))
}

/// Rows and width of a tensor normalised over its last dimension.
fn rows_of(x: &FlexTensor) -> (usize, usize) {
    let shape = x.shape();
    let width = shape[shape.num_dims() - 1];
    (shape.num_elements() / width.max(1), width)
}

/// A norm of x `[…, D]` with γ `[D]`, and β `[D]` if the kind has one.
#[derive(Debug)]
pub(super) struct Normalize {
    pub(super) kind: Kind,
    pub(super) gives_input: bool,
    /// The format of the first output.
    #[cfg_attr(not(feature = "gpu"), allow(dead_code, reason = "only GPUs have several"))]
    pub(super) format: FloatDType,
}

/// Which norm.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Layer { eps: f32 },
    Rms,
}

impl FusedOp for Normalize {
    fn keeps(&self) -> Keeps {
        Keeps { inputs: vec![0, 1], outputs: vec![] }
    }

    #[cfg(feature = "gpu")]
    fn gpu(&self) -> Option<&dyn GpuOp> {
        Some(self)
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let (rows, width) = rows_of(&inputs[0]);
        let [x, gamma] = [0, 1].map(|i: usize| slice(&inputs[i]));
        let mut y = outputs([shape(&inputs[0])], |[y]| match self.kind {
            Kind::Layer { eps } => layer_kernel::forward(rows, width, layer_kernel::Inputs { x, gamma, eps }, slice(&inputs[2]), y),
            Kind::Rms => rms_kernel::forward(rows, width, rms_kernel::Inputs { x, gamma }, y),
        });
        y.extend(self.gives_input.then(|| inputs[0].clone()));
        y
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], _: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let [kept_x, kept_gamma] = [0, 1].map(|i| inputs[i].as_ref().expect("kept"));
        // The gradient of the norm's output is 0 if only the input beside it was used.
        let d_y = d_outputs[0].clone().unwrap_or_else(|| zeros(kept_x));
        let (d_y, d_residual) = (slice(&d_y), optional(d_outputs.get(1).and_then(Option::as_ref)));
        let ((rows, width), x, gamma) = (rows_of(kept_x), slice(kept_x), slice(kept_gamma));
        match self.kind {
            Kind::Layer { eps } => outputs([kept_x, kept_gamma, kept_gamma].map(shape), |[d_x, d_gamma, d_beta]| {
                let d = layer_kernel::Gradients { d_x, d_gamma, d_beta };
                layer_kernel::backward(rows, width, layer_kernel::Inputs { x, gamma, eps }, d_y, d_residual, d);
            }),
            Kind::Rms => outputs([kept_x, kept_gamma].map(shape), |[d_x, d_gamma]| {
                let d = rms_kernel::Gradients { d_x, d_gamma };
                rms_kernel::backward(rows, width, rms_kernel::Inputs { x, gamma }, d_y, d_residual, d);
            }),
        }
    }
}
