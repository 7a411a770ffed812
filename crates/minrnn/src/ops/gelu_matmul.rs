//! GELU followed by a matrix product, the second half of a feed-forward part: y = GELU(x + bias) W.
//!
//! The activation between the two is as wide as the hidden layer and needed again for the gradient of W. It is recomputed there instead of
//! kept: a pass at memory speed next to a matmul of the same size.

use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;
use minrnn_kernels::gated_gelu as gated_kernel;
use minrnn_kernels::gelu as kernel;
use minrnn_kernels::matmul::{Matrix, matmul};

use super::flex::{InputList, dims, optional, outputs, outputs_with, shape, slice};
use super::fused::{FusedOp, Keeps, is_on_cpu, output, run};
use super::gelu::{bias_gated_gelu, bias_gelu, gated_inputs};
use super::matmul::{self, matrix};
use super::precision::{self, Precision};
use super::shapes::{expect_parts, expect_shape, expect_shape_if_any};

/// GELU(x + bias) W (Hendrycks and Gimpel 2016, arXiv:1606.08415).
///
/// # Shapes
/// * `x` `[N, M]`, `bias` `[M]`, absent is 0, `weight` `[M, D]` → `[N, D]`
///
/// # Panics
/// When shapes do not fit.
pub fn gelu_matmul(x: Tensor<2>, bias: Option<Tensor<1>>, weight: Tensor<2>) -> Tensor<2> {
    let ([_, width], [_, d]) = (x.dims(), weight.dims());
    expect_shape_if_any("gelu_matmul", "bias", bias.as_ref(), [width]);
    expect_shape("gelu_matmul", "weight", &weight, [width, d]);
    if is_on_cpu(&x.device()) {
        return fused(x, bias, None, weight);
    }
    matmul::matmul(bias_gelu(x, bias), weight)
}

/// (scale ⊙ value ⊙ GELU(gate)) W, with [value | gate] = x + bias (GEGLU of Shazeer 2020, arXiv:2002.05202, with a learned scale).
///
/// # Shapes
/// * `x` `[N, 2M]`, `bias` `[2M]`, absent is 0, `scale` `[M]`, `weight` `[M, D]` → `[N, D]`
///
/// # Panics
/// When shapes do not fit.
pub fn gated_gelu_matmul(x: Tensor<2>, bias: Option<Tensor<1>>, scale: Tensor<1>, weight: Tensor<2>) -> Tensor<2> {
    let ([_, width], [_, d]) = (x.dims(), weight.dims());
    let half = expect_parts("gated_gelu_matmul", "x", width, 2);
    expect_shape_if_any("gated_gelu_matmul", "bias", bias.as_ref(), [width]);
    expect_shape("gated_gelu_matmul", "scale", &scale, [half]);
    expect_shape("gated_gelu_matmul", "weight", &weight, [half, d]);
    if is_on_cpu(&x.device()) {
        return fused(x, bias, Some(scale), weight);
    }
    matmul::matmul(bias_gated_gelu(x, bias, scale), weight)
}

fn fused(x: Tensor<2>, bias: Option<Tensor<1>>, scale: Option<Tensor<1>>, weight: Tensor<2>) -> Tensor<2> {
    let mut inputs = InputList::default();
    inputs.add(x);
    inputs.add(weight);
    let (bias, scale) = (inputs.add_optional(bias), inputs.add_optional(scale));
    output(run(GeluMatmul { precision: precision::current(), bias, scale }, inputs.into_vec()).pop())
}

/// Inputs x and weight; bias and, in the gated form, scale at the given positions.
#[derive(Debug)]
struct GeluMatmul {
    precision: Precision,
    bias: Option<usize>,
    scale: Option<usize>,
}

/// The activation `[N, M]`.
fn activated(x: &FlexTensor, bias: Option<&FlexTensor>, scale: Option<&FlexTensor>, m: usize) -> Vec<FlexTensor> {
    let [rows, _] = dims(x);
    outputs([[rows, m].into()], |[hidden]| match scale {
        None => kernel::forward(rows, m, slice(x), optional(bias), hidden),
        Some(scale) => gated_kernel::forward(rows, m, gated_inputs(x, bias, scale), hidden),
    })
}

impl FusedOp for GeluMatmul {
    fn keeps(&self) -> Keeps {
        Keeps { inputs: [0, 1].into_iter().chain(self.bias).chain(self.scale).collect(), outputs: vec![] }
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let at = |i: Option<usize>| i.map(|i| &inputs[i]);
        let [x, weight] = [0, 1].map(|i| &inputs[i]);
        let ([rows, _], [m, d]) = (dims(x), dims(weight));
        let hidden = activated(x, at(self.bias), at(self.scale), m);
        outputs([[rows, d].into()], |[y]| matmul(self.precision, [rows, m, d], matrix(&hidden[0]), matrix(weight), None, y))
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], _: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let kept = |i: usize| inputs[i].as_ref().expect("kept");
        let [x, weight] = [0, 1].map(kept);
        let (bias, scale) = (self.bias.map(kept), self.scale.map(kept));
        let ([rows, _], [m, d]) = (dims(x), dims(weight));
        let d_y = Matrix::new(slice(d_outputs[0].as_ref().expect("the only output")), d);
        let mut d_weight = {
            let hidden = activated(x, bias, scale, m);
            let hidden = matrix(&hidden[0]).transpose();
            outputs([shape(weight)], |[d_weight]| matmul(self.precision, [m, rows, d], hidden, d_y, None, d_weight))
        };
        let d_hidden = outputs([[rows, m].into()], |[d_hidden]| {
            matmul(self.precision, [rows, d, m], d_y, matrix(weight).transpose(), None, d_hidden);
        });
        let d_hidden = slice(&d_hidden[0]);
        let ([d_x], wanted) = outputs_with([shape(x)], [bias, scale].map(|x| x.map(shape)), |[d_x], [d_bias, d_scale]| match scale {
            None => kernel::backward(rows, m, slice(x), optional(bias), d_hidden, d_x, d_bias),
            Some(scale) => {
                let d = gated_kernel::Gradients { d_x, d_bias, d_scale };
                gated_kernel::backward(rows, m, gated_inputs(x, bias, scale), d_hidden, d);
            }
        });
        std::iter::once(d_x).chain(d_weight.pop()).chain(wanted.into_iter().flatten()).collect()
    }
}
