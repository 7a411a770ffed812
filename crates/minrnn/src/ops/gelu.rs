//! Bias and exact GELU in one pass, plain and gated.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Tensor, activation};
use minrnn_kernels::gated_gelu::{self as gated_kernel, Halves};
use minrnn_kernels::gelu as kernel;

use super::flex::{dims, optional, outputs, outputs_with, shape, slice};
use super::fused::{FusedOp, Keeps, has_kernels, input, is_on_cpu, output, run};
#[cfg(feature = "gpu")]
use super::gpu::op::GpuOp;
use super::shapes::{expect_parts, expect_shape, expect_shape_if_any};

/// u Φ(u) with u = x + bias and Φ the normal distribution function (Hendrycks and Gimpel 2016, arXiv:1606.08415).
///
/// # Shapes
/// * `x` `[N, M]`, `bias` `[M]`, absent is 0 → `[N, M]`
///
/// # Panics
/// When shapes do not fit.
pub fn bias_gelu(x: Tensor<2>, bias: Option<Tensor<1>>) -> Tensor<2> {
    let [_, width] = x.dims();
    expect_shape_if_any("bias_gelu", "bias", bias.as_ref(), [width]);
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

/// Whether kernels can run; the GPU's need a bias.
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
    let [_, width] = x.dims();
    let half = expect_parts("bias_gated_gelu", "x", width, 2);
    expect_shape_if_any("bias_gated_gelu", "bias", bias.as_ref(), [width]);
    expect_shape("bias_gated_gelu", "scale", &scale, [half]);
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
    expect_parts("gelu_gate", "x", x.dims()[1], 2);
    if is_on_cpu(&x.device()) {
        return output(run(GeluGate, vec![input(x)]).pop());
    }
    composed_gelu_gate(x)
}

pub(super) fn composed_gelu_gate(x: Tensor<2>) -> Tensor<2> {
    let m = x.dims()[1] / 2;
    activation::gelu(x.clone().narrow(1, 0, m)) * x.narrow(1, m, m)
}

/// Inputs: x, and the bias if there is one.
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
        outputs([shape(&inputs[0])], |[y]| kernel::forward(rows, width, slice(&inputs[0]), optional(inputs.get(1)), y))
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], _: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let (x, bias) = (inputs[0].as_ref().expect("kept"), inputs.get(1).and_then(Option::as_ref));
        let d_y = d_outputs[0].as_ref().expect("the only output");
        let [rows, width] = dims(x);
        let ([d_x], [d_bias]) = outputs_with([shape(x)], [bias.map(shape)], |[d_x], [d_bias]| {
            kernel::backward(rows, width, slice(x), optional(bias), slice(d_y), d_x, d_bias);
        });
        [d_x].into_iter().chain(d_bias).collect()
    }
}

/// Inputs: x, the scale, and the bias if there is one.
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
        let kernel_inputs = gated_inputs(&inputs[0], inputs.get(2), &inputs[1]);
        outputs([[rows, double / 2].into()], |[y]| gated_kernel::forward(rows, double / 2, kernel_inputs, y))
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], _: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let ([x, scale], bias) = ([0, 1].map(|i| inputs[i].as_ref().expect("kept")), inputs.get(2).and_then(Option::as_ref));
        let d_y = d_outputs[0].as_ref().expect("the only output");
        let [rows, double] = dims(x);
        let (d, [d_bias]) = outputs_with([x, scale].map(shape), [bias.map(shape)], |[d_x, d_scale], [d_bias]| {
            let d = gated_kernel::Gradients { d_x, d_bias, d_scale: Some(d_scale) };
            gated_kernel::backward(rows, double / 2, gated_inputs(x, bias, scale), slice(d_y), d);
        });
        d.into_iter().chain(d_bias).collect()
    }
}

/// [value | gate] = x + bias, and the scale.
pub(super) fn gated_inputs<'a>(x: &'a FlexTensor, bias: Option<&'a FlexTensor>, scale: &'a FlexTensor) -> gated_kernel::Inputs<'a> {
    gated_kernel::Inputs { halves: Halves::ValueGate, x: slice(x), bias: optional(bias), scale: Some(slice(scale)) }
}

#[derive(Debug)]
struct GeluGate;

impl GeluGate {
    fn inputs(x: &FlexTensor) -> gated_kernel::Inputs<'_> {
        gated_kernel::Inputs { halves: Halves::GateValue, x: slice(x), bias: None, scale: None }
    }
}

impl FusedOp for GeluGate {
    fn keeps(&self) -> Keeps {
        Keeps { inputs: vec![0], outputs: vec![] }
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let [rows, double] = dims(&inputs[0]);
        outputs([[rows, double / 2].into()], |[y]| gated_kernel::forward(rows, double / 2, Self::inputs(&inputs[0]), y))
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], _: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let x = inputs[0].as_ref().expect("kept");
        let d_y = slice(d_outputs[0].as_ref().expect("the only output"));
        let [rows, double] = dims(x);
        outputs([shape(x)], |[d_x]| {
            let d = gated_kernel::Gradients { d_x, d_bias: None, d_scale: None };
            gated_kernel::backward(rows, double / 2, Self::inputs(x), d_y, d);
        })
    }
}
