//! Products with a block-diagonal matrix.

use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;
use minrnn_kernels::block_diagonal::{self as kernel, Blocks};

use super::flex::{dims, outputs, shape, slice};
use super::fused::{FusedOp, Keeps, input, is_on_cpu, output, run};
use super::shapes::expect_shape;

/// Multiplies each block of channels by its own matrix W.
///
/// # Shapes
/// * `x` `[B, T, G·I]`, `weight` `[G, O, I]` → `[B, T, G·O]`
///
/// # Panics
/// When shapes do not fit.
pub fn block_diagonal(x: Tensor<3>, weight: Tensor<3>) -> Tensor<3> {
    let ([batch, seq_len, _], [count, _, inputs]) = (x.dims(), weight.dims());
    expect_shape("block_diagonal", "x", &x, [batch, seq_len, count * inputs]);
    if is_on_cpu(&x.device()) {
        return output(run(Op, vec![input(x), input(weight)]).pop());
    }
    composed(x, weight)
}

pub(super) fn composed(x: Tensor<3>, weight: Tensor<3>) -> Tensor<3> {
    let [count, _, inputs] = weight.dims();
    let block = |i: usize| {
        let weight = weight.clone().narrow(0, i, 1).squeeze_dim::<2>(0).transpose();
        x.clone().narrow(2, i * inputs, inputs).matmul(weight.unsqueeze())
    };
    Tensor::cat((0..count).map(block).collect(), 2)
}

#[derive(Debug)]
struct Op;

/// Rows of the input, and the sizes of the matrix.
fn sizes(x: &FlexTensor, weight: &FlexTensor) -> (usize, Blocks) {
    let ([batch, seq_len, _], [count, outputs, inputs]) = (dims(x), dims(weight));
    (batch * seq_len, Blocks { count, outputs, inputs })
}

impl FusedOp for Op {
    fn keeps(&self) -> Keeps {
        Keeps { inputs: vec![0, 1], outputs: vec![] }
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let (rows, blocks) = sizes(&inputs[0], &inputs[1]);
        let [batch, seq_len, _] = dims(&inputs[0]);
        outputs([[batch, seq_len, blocks.count * blocks.outputs].into()], |[y]| {
            kernel::forward(rows, blocks, slice(&inputs[0]), slice(&inputs[1]), y);
        })
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], _: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let [x, weight] = [0, 1].map(|i| inputs[i].as_ref().expect("kept"));
        let d_y = d_outputs[0].as_ref().expect("the only output");
        let (rows, blocks) = sizes(x, weight);
        outputs([x, weight].map(shape), |[d_x, d_weight]| {
            kernel::backward(rows, blocks, slice(x), slice(weight), slice(d_y), d_x, d_weight);
        })
    }
}
