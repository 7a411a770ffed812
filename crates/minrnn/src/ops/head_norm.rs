//! LayerNorm of each head separately.

use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;
use minrnn_kernels::head_norm as kernel;

use super::flex::{dims, outputs, shape, slice};
use super::fused::{FusedOp, Keeps, input, is_on_cpu, output, run};
use super::norm::over_root;
use super::shapes::{expect_parts, expect_shape};

/// (1 + w) ⊙ (x − mean) / √(variance + `eps`) over the channels of each head.
///
/// # Shapes
/// * `x` `[B, T, D]`, `weight` `[D]` → `[B, T, D]`
///
/// # Panics
/// When shapes do not fit, or the heads do not divide D.
pub fn head_norm(x: Tensor<3>, weight: Tensor<1>, heads: usize, eps: f32) -> Tensor<3> {
    let [_, _, width] = x.dims();
    expect_parts("head_norm", "x", width, heads);
    expect_shape("head_norm", "weight", &weight, [width]);
    if is_on_cpu(&x.device()) {
        return output(run(Op { heads, eps }, vec![input(x), input(weight)]).pop());
    }
    composed(x, weight, heads, eps)
}

pub(super) fn composed(x: Tensor<3>, weight: Tensor<1>, heads: usize, eps: f32) -> Tensor<3> {
    let [batch, seq_len, width] = x.dims();
    let x = x.reshape([batch * seq_len, heads, width / heads]);
    let centred = x.clone() - x.mean_dim(2);
    let variance = centred.clone().powi_scalar(2).mean_dim(2);
    over_root(centred, variance, f64::from(eps)).reshape([batch, seq_len, width]) * (weight + 1.0).unsqueeze()
}

#[derive(Debug)]
struct Op {
    heads: usize,
    eps: f32,
}

impl Op {
    fn inputs<'a>(&self, x: &'a FlexTensor, weight: &'a FlexTensor) -> kernel::Inputs<'a> {
        kernel::Inputs { x: slice(x), weight: slice(weight), eps: self.eps }
    }
}

fn rows_of(x: &FlexTensor) -> usize {
    let [batch, seq_len, _] = dims(x);
    batch * seq_len
}

impl FusedOp for Op {
    fn keeps(&self) -> Keeps {
        Keeps { inputs: vec![0, 1], outputs: vec![] }
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let (x, weight) = (&inputs[0], &inputs[1]);
        outputs([shape(x)], |[y]| kernel::forward(rows_of(x), self.heads, self.inputs(x, weight), y))
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], _: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let [x, weight] = [0, 1].map(|i| inputs[i].as_ref().expect("kept"));
        let d_y = slice(d_outputs[0].as_ref().expect("the only output"));
        outputs([x, weight].map(shape), |[d_x, d_weight]| {
            kernel::backward(rows_of(x), self.heads, self.inputs(x, weight), d_y, kernel::Gradients { d_x, d_weight });
        })
    }
}
