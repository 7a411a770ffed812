//! LayerNorm of each head apart.

use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;
use minrnn_kernels::head_norm as kernel;

use super::flex::{Output, dims, slice};
use super::fused::{FusedOp, Keeps, input, is_on_cpu, output, run};

/// (1 + w) ⊙ (x − mean) / √(variance + `eps`) over the channels of each head.
///
/// # Shapes
/// * `x` `[B, T, D]`, `weight` `[D]` → `[B, T, D]`
///
/// # Panics
/// When shapes do not fit, or the heads do not divide D.
pub fn head_norm(x: Tensor<3>, weight: Tensor<1>, heads: usize, eps: f32) -> Tensor<3> {
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
    (centred / (variance + eps).sqrt()).reshape([batch, seq_len, width]) * (weight + 1.0).unsqueeze()
}

#[derive(Debug)]
struct Op {
    heads: usize,
    eps: f32,
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
        let mut y = Output::like(&inputs[0]);
        kernel::forward(rows_of(&inputs[0]), self.heads, slice(&inputs[0]), slice(&inputs[1]), self.eps, y.out());
        // SAFETY: the kernel writes the output whole.
        unsafe { vec![y.finish()] }
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], _: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let [x, weight] = [0, 1].map(|i| inputs[i].as_ref().expect("kept"));
        let d_y = slice(d_outputs[0].as_ref().expect("the only output"));
        let [mut d_x, mut d_weight] = [x, weight].map(Output::like);
        kernel::backward(rows_of(x), self.heads, slice(x), slice(weight), self.eps, d_y, d_x.out(), d_weight.out());
        // SAFETY: the kernel writes both gradients whole.
        unsafe { vec![d_x.finish(), d_weight.finish()] }
    }
}
