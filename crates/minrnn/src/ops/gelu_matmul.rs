//! GELU and the product behind it, as the second half of a feed-forward part: y = GELU(x + bias) W.
//!
//! The activation between the two is as wide as the hidden layer and needed once more, for the gradient of W. It is not kept but computed
//! again there: a pass at memory speed beside a product of the same size.

use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;
use minrnn_kernels::gated_gelu::{self as gated_kernel, Halves};
use minrnn_kernels::gelu as kernel;
use minrnn_kernels::matmul::{self as matmul_kernel, Matrix};

use super::flex::{InputList, Output, dims, optional, slice};
use super::fused::{FusedOp, Keeps, is_on_cpu, output, run};
use super::gelu::{bias_gated_gelu, bias_gelu};
use super::matmul::{matmul, matrix};
use super::precision::{self, Precision};

/// GELU(x + bias) W (Hendrycks and Gimpel 2016, arXiv:1606.08415).
///
/// # Shapes
/// * `x` `[N, M]`, `bias` `[M]`, absent is 0, `weight` `[M, D]` → `[N, D]`
///
/// # Panics
/// When shapes do not fit.
pub fn gelu_matmul(x: Tensor<2>, bias: Option<Tensor<1>>, weight: Tensor<2>) -> Tensor<2> {
    if is_on_cpu(&x.device()) {
        return fused(x, bias, None, weight);
    }
    matmul(bias_gelu(x, bias), weight)
}

/// (scale ⊙ value ⊙ GELU(gate)) W, with [value | gate] = x + bias (GEGLU of Shazeer 2020, arXiv:2002.05202, with a learned scale).
///
/// # Shapes
/// * `x` `[N, 2M]`, `bias` `[2M]`, absent is 0, `scale` `[M]`, `weight` `[M, D]` → `[N, D]`
///
/// # Panics
/// When shapes do not fit.
pub fn gated_gelu_matmul(x: Tensor<2>, bias: Option<Tensor<1>>, scale: Tensor<1>, weight: Tensor<2>) -> Tensor<2> {
    if is_on_cpu(&x.device()) {
        return fused(x, bias, Some(scale), weight);
    }
    matmul(bias_gated_gelu(x, bias, scale), weight)
}

fn fused(x: Tensor<2>, bias: Option<Tensor<1>>, scale: Option<Tensor<1>>, weight: Tensor<2>) -> Tensor<2> {
    let mut inputs = InputList::default();
    inputs.add(x);
    inputs.add(weight);
    let (bias, scale) = (inputs.add_optional(bias), inputs.add_optional(scale));
    output(run(GeluMatmul { precision: precision::current(), bias, scale }, inputs.into_vec()).pop())
}

/// Inputs x and weight; bias and, in the gated form, scale where they are said to be.
#[derive(Debug)]
struct GeluMatmul {
    precision: Precision,
    bias: Option<usize>,
    scale: Option<usize>,
}

/// The activation `[N, M]`.
fn activated(x: &FlexTensor, bias: Option<&FlexTensor>, scale: Option<&FlexTensor>, m: usize) -> Output {
    let [rows, _] = dims(x);
    let mut hidden = Output::new([rows, m]);
    match scale {
        None => kernel::forward(rows, m, slice(x), optional(bias), hidden.out()),
        Some(scale) => {
            gated_kernel::forward(rows, m, Halves::ValueGate, slice(x), optional(bias), Some(slice(scale)), hidden.out());
        }
    }
    hidden
}

impl FusedOp for GeluMatmul {
    fn keeps(&self) -> Keeps {
        Keeps { inputs: [0, 1].into_iter().chain(self.bias).chain(self.scale).collect(), outputs: vec![] }
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let at = |i: Option<usize>| i.map(|i| &inputs[i]);
        let [x, weight] = [0, 1].map(|i| &inputs[i]);
        let ([rows, _], [m, d]) = (dims(x), dims(weight));
        // SAFETY: the kernel writes the activation whole.
        let hidden = unsafe { activated(x, at(self.bias), at(self.scale), m).finish() };
        let mut y = Output::new([rows, d]);
        matmul_kernel::matmul(self.precision, [rows, m, d], matrix(&hidden), matrix(weight), None, y.out());
        // SAFETY: the product writes the output whole.
        unsafe { vec![y.finish()] }
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], _: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let kept = |i: usize| inputs[i].as_ref().expect("kept");
        let [x, weight] = [0, 1].map(kept);
        let (bias, scale) = (self.bias.map(kept), self.scale.map(kept));
        let ([rows, _], [m, d]) = (dims(x), dims(weight));
        let d_y = Matrix::new(slice(d_outputs[0].as_ref().expect("the only output")), d);
        let mut d_weight = Output::like(weight);
        {
            // SAFETY: the kernel writes the activation whole.
            let hidden = unsafe { activated(x, bias, scale, m).finish() };
            matmul_kernel::matmul(self.precision, [m, rows, d], matrix(&hidden).transpose(), d_y, None, d_weight.out());
        }
        let mut d_hidden = Output::new([rows, m]);
        matmul_kernel::matmul(self.precision, [rows, d, m], d_y, matrix(weight).transpose(), None, d_hidden.out());
        // SAFETY: the product writes it whole.
        let d_hidden = unsafe { d_hidden.finish() };
        let (mut d_x, mut d_bias, mut d_scale) = (Output::like(x), bias.map(Output::like), scale.map(Output::like));
        let (x, bias, d_hidden, d_bias_out) = (slice(x), optional(bias), slice(&d_hidden), d_bias.as_mut().map(Output::out));
        match (scale, &mut d_scale) {
            (Some(scale), Some(d_scale)) => {
                let (scale, d_scale) = (Some(slice(scale)), Some(d_scale.out()));
                gated_kernel::backward(rows, m, Halves::ValueGate, x, bias, scale, d_hidden, d_x.out(), d_bias_out, d_scale);
            }
            _ => kernel::backward(rows, m, x, bias, d_hidden, d_x.out(), d_bias_out),
        }
        // SAFETY: kernels and products write every gradient whole.
        [d_x, d_weight].into_iter().chain(d_bias).chain(d_scale).map(|d| unsafe { d.finish() }).collect()
    }
}
