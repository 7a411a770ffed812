//! Bias and exact GELU in one pass, plain and gated.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Tensor, activation};
use minrnn_kernels::gated_gelu::{self as gated_kernel, Halves};
use minrnn_kernels::gelu as kernel;

use super::flex::{Output, dims, optional, slice};
use super::fused::{FusedOp, Keeps, has_kernels, input, is_on_cpu, output, run};
#[cfg(feature = "gpu")]
use super::gpu::GpuOp;

/// u Φ(u) with u = x + bias and Φ the normal distribution function (Hendrycks and Gimpel 2016, arXiv:1606.08415).
///
/// # Shapes
/// * `x` `[N, M]`, `bias` `[M]`, absent is 0 → `[N, M]`
///
/// # Panics
/// When shapes do not fit.
pub fn bias_gelu(x: Tensor<2>, bias: Option<Tensor<1>>) -> Tensor<2> {
    if has_kernels_for(&x, bias.as_ref()) {
        return output(run(BiasGelu, [input(x)].into_iter().chain(bias.map(input)).collect()).pop());
    }
    composed_bias_gelu(x, bias)
}

pub(super) fn composed_bias_gelu(x: Tensor<2>, bias: Option<Tensor<1>>) -> Tensor<2> {
    activation::gelu(biased(x, bias))
}

fn biased(x: Tensor<2>, bias: Option<Tensor<1>>) -> Tensor<2> {
    match bias {
        Some(bias) => x + bias.unsqueeze(),
        None => x,
    }
}

/// True where the kernels run; the GPU's need a bias.
fn has_kernels_for(x: &Tensor<2>, bias: Option<&Tensor<1>>) -> bool {
    is_on_cpu(&x.device()) || bias.is_some() && has_kernels(x)
}

/// scale ⊙ value ⊙ GELU(gate), with [value | gate] = x + bias (GEGLU of Shazeer 2020, arXiv:2002.05202, with a learned scale).
///
/// # Shapes
/// * `x` `[N, 2M]`, `bias` `[2M]`, absent is 0, `scale` `[M]` → `[N, M]`
///
/// # Panics
/// When shapes do not fit.
pub fn bias_gated_gelu(x: Tensor<2>, bias: Option<Tensor<1>>, scale: Tensor<1>) -> Tensor<2> {
    if has_kernels_for(&x, bias.as_ref()) {
        return output(run(BiasGatedGelu, [input(x), input(scale)].into_iter().chain(bias.map(input)).collect()).pop());
    }
    composed_bias_gated_gelu(x, bias, scale)
}

pub(super) fn composed_bias_gated_gelu(x: Tensor<2>, bias: Option<Tensor<1>>, scale: Tensor<1>) -> Tensor<2> {
    let x = biased(x, bias);
    let m = x.dims()[1] / 2;
    x.clone().narrow(1, 0, m) * activation::gelu(x.narrow(1, m, m)) * scale.unsqueeze()
}

/// GELU(gate) ⊙ value, with [gate | value] = x (GEGLU of Shazeer 2020, arXiv:2002.05202).
///
/// # Shapes
/// * `x` `[N, 2M]` → `[N, M]`
///
/// # Panics
/// When shapes do not fit.
pub fn gelu_gate(x: Tensor<2>) -> Tensor<2> {
    if is_on_cpu(&x.device()) {
        return output(run(GeluGate, vec![input(x)]).pop());
    }
    composed_gelu_gate(x)
}

pub(super) fn composed_gelu_gate(x: Tensor<2>) -> Tensor<2> {
    let m = x.dims()[1] / 2;
    activation::gelu(x.clone().narrow(1, 0, m)) * x.narrow(1, m, m)
}

/// Inputs: x, and the bias where there is one.
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
        kernel::forward(rows, width, slice(&inputs[0]), optional(inputs.get(1)), y.out());
        // SAFETY: the kernel writes the output whole.
        unsafe { vec![y.finish()] }
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], _: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let (x, bias) = (inputs[0].as_ref().expect("kept"), inputs.get(1).and_then(Option::as_ref));
        let d_y = d_outputs[0].as_ref().expect("the only output");
        let [rows, width] = dims(x);
        let (mut d_x, mut d_bias) = (Output::like(x), bias.map(Output::like));
        kernel::backward(rows, width, slice(x), optional(bias), slice(d_y), d_x.out(), d_bias.as_mut().map(Output::out));
        // SAFETY: the kernel writes every gradient whole.
        [d_x].into_iter().chain(d_bias).map(|d| unsafe { d.finish() }).collect()
    }
}

/// Inputs: x, the scale, and the bias where there is one.
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
        let (x, scale) = (slice(&inputs[0]), Some(slice(&inputs[1])));
        gated_kernel::forward(rows, double / 2, Halves::ValueGate, x, optional(inputs.get(2)), scale, y.out());
        // SAFETY: the kernel writes the output whole.
        unsafe { vec![y.finish()] }
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], _: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let ([x, scale], bias) = ([0, 1].map(|i| inputs[i].as_ref().expect("kept")), inputs.get(2).and_then(Option::as_ref));
        let d_y = d_outputs[0].as_ref().expect("the only output");
        let [rows, double] = dims(x);
        let [mut d_x, mut d_scale] = [x, scale].map(Output::like);
        let mut d_bias = bias.map(Output::like);
        gated_kernel::backward(
            rows,
            double / 2,
            Halves::ValueGate,
            slice(x),
            optional(bias),
            Some(slice(scale)),
            slice(d_y),
            d_x.out(),
            d_bias.as_mut().map(Output::out),
            Some(d_scale.out()),
        );
        // SAFETY: the kernel writes every gradient whole.
        [d_x, d_scale].into_iter().chain(d_bias).map(|d| unsafe { d.finish() }).collect()
    }
}

#[derive(Debug)]
struct GeluGate;

impl FusedOp for GeluGate {
    fn keeps(&self) -> Keeps {
        Keeps { inputs: vec![0], outputs: vec![] }
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let [rows, double] = dims(&inputs[0]);
        let mut y = Output::new([rows, double / 2]);
        gated_kernel::forward(rows, double / 2, Halves::GateValue, slice(&inputs[0]), None, None, y.out());
        // SAFETY: the kernel writes the output whole.
        unsafe { vec![y.finish()] }
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], _: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let x = inputs[0].as_ref().expect("kept");
        let d_y = slice(d_outputs[0].as_ref().expect("the only output"));
        let [rows, double] = dims(x);
        let mut d_x = Output::like(x);
        gated_kernel::backward(rows, double / 2, Halves::GateValue, slice(x), None, None, d_y, d_x.out(), None, None);
        // SAFETY: the kernel writes the gradient whole.
        unsafe { vec![d_x.finish()] }
    }
}
