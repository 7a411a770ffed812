//! Highway output: a learned mixture of a layer's output and its input, with both biases, in one pass.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Tensor, activation};
use minrnn_kernels::highway as kernel;

use super::flex::{InputList, dims, optional, outputs, outputs_with, shape, slice};
use super::fused::{FusedOp, Keeps, is_on_cpu, output, run};
use super::shapes::{expect_shape, expect_shape_if_any};

/// s ⊙ (value + value_bias) + (1 − s) ⊙ x with s = σ(gate + gate_bias); beyond the paper.
///
/// # Shapes
/// * `gate`, `value`, `x` `[N, D]`, the biases `[D]` → `[N, D]`
///
/// # Panics
/// When shapes do not fit.
pub fn highway(gate: Tensor<2>, gate_bias: Option<Tensor<1>>, value: Tensor<2>, value_bias: Option<Tensor<1>>, x: Tensor<2>) -> Tensor<2> {
    let [rows, width] = x.dims();
    expect_shape("highway", "gate", &gate, [rows, width]);
    expect_shape("highway", "value", &value, [rows, width]);
    expect_shape_if_any("highway", "gate_bias", gate_bias.as_ref(), [width]);
    expect_shape_if_any("highway", "value_bias", value_bias.as_ref(), [width]);
    if !is_on_cpu(&x.device()) {
        return composed(gate, gate_bias, value, value_bias, x);
    }
    let mut inputs = InputList::default();
    inputs.add(gate);
    inputs.add(value);
    inputs.add(x);
    let op = Op { gate_bias: inputs.add_optional(gate_bias), value_bias: inputs.add_optional(value_bias) };
    output(run(op, inputs.into_vec()).pop())
}

pub(super) fn composed(
    gate: Tensor<2>,
    gate_bias: Option<Tensor<1>>,
    value: Tensor<2>,
    value_bias: Option<Tensor<1>>,
    x: Tensor<2>,
) -> Tensor<2> {
    let biased = |x: Tensor<2>, bias: Option<Tensor<1>>| match bias {
        Some(bias) => x + bias.unsqueeze(),
        None => x,
    };
    let share = activation::sigmoid(biased(gate, gate_bias));
    x.clone() + share * (biased(value, value_bias) - x)
}

/// Inputs gate, value and x, then the biases that exist.
#[derive(Debug)]
struct Op {
    gate_bias: Option<usize>,
    value_bias: Option<usize>,
}

impl Op {
    fn inputs<'a>(&self, input: impl Fn(usize) -> &'a FlexTensor) -> kernel::Inputs<'a> {
        let bias = |i: Option<usize>| optional(i.map(&input));
        kernel::Inputs {
            gate: slice(input(0)),
            gate_bias: bias(self.gate_bias),
            value: slice(input(1)),
            value_bias: bias(self.value_bias),
            x: slice(input(2)),
        }
    }
}

impl FusedOp for Op {
    fn keeps(&self) -> Keeps {
        Keeps { inputs: (0..3).chain(self.gate_bias).chain(self.value_bias).collect(), outputs: vec![] }
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let [rows, width] = dims(&inputs[0]);
        outputs([shape(&inputs[0])], |[y]| kernel::forward(rows, width, self.inputs(|i| &inputs[i]), y))
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], _: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let kept = |i: usize| inputs[i].as_ref().expect("kept");
        let [rows, width] = dims(kept(0));
        let d_y = slice(d_outputs[0].as_ref().expect("the only output"));
        let biases = [self.gate_bias, self.value_bias].map(|i| i.map(|i| shape(kept(i))));
        let (d, d_biases) =
            outputs_with([0, 1, 2].map(|i| shape(kept(i))), biases, |[d_gate, d_value, d_x], [d_gate_bias, d_value_bias]| {
                let d = kernel::Gradients { d_gate, d_gate_bias, d_value, d_value_bias, d_x };
                kernel::backward(rows, width, self.inputs(kept), d_y, d);
            });
        d.into_iter().chain(d_biases.into_iter().flatten()).collect()
    }
}
