//! The traditional GRU as a fused recurrence over a precomputed input projection.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Tensor, activation};
pub use minrnn_kernels::gru::GruForm;
use minrnn_kernels::{Shape, Start as KernelStart, gru as kernel};

use super::flex::{InputList, dims, optional, outputs, outputs_with, shape, slice};
use super::fused::{FusedOp, Keeps, is_on_cpu, output, run};
use super::recurrence::{Start, expect_cell};
use super::shapes::{expect_shape, expect_shape_if_any};
use super::steps::StepCodes;
use super::stepwise::Stepwise;

/// A GRU in the paper's form (Cho et al. 2014, arXiv:1406.1078, §2.3) or in PyTorch's.
///
/// # Shapes
/// * `preact` `[B, T, 3E]` the input side, parts r, z, n; `bias` `[3E]`, added to it; `weight` `[3E, E]` the recurrent side;
///   `recurrent_bias` `[3E]`, added to the recurrent products → h `[B, T, E]` and the last state `[B, E]`
///
/// # Panics
/// When shapes do not fit.
pub fn gru(
    form: GruForm,
    preact: Tensor<3>,
    bias: Option<Tensor<1>>,
    weight: Tensor<2>,
    recurrent_bias: Option<Tensor<1>>,
    start: Start,
    steps: &StepCodes,
) -> (Tensor<3>, Tensor<2>) {
    let e = expect_cell("gru", 3, &preact, bias.as_ref(), &start);
    expect_shape("gru", "weight", &weight, [3 * e, e]);
    expect_shape_if_any("gru", "recurrent_bias", recurrent_bias.as_ref(), [3 * e]);
    if !is_on_cpu(&preact.device()) {
        return composed(form, preact, bias, weight, recurrent_bias, start, steps);
    }
    let mut inputs = InputList::default();
    inputs.add(preact);
    inputs.add(weight);
    let bias = inputs.add_optional(bias);
    let recurrent_bias = inputs.add_optional(recurrent_bias);
    let h0 = inputs.add_optional(start.h0);
    let init = inputs.add_optional(start.init);
    let op = Op { form, steps: steps.clone(), bias, recurrent_bias, h0, init };
    let mut outputs = run(op, inputs.into_vec()).into_iter();
    (output(outputs.next()), output(outputs.next()))
}

/// The same by tensor operations, one step after the other.
pub(super) fn composed(
    form: GruForm,
    preact: Tensor<3>,
    bias: Option<Tensor<1>>,
    weight: Tensor<2>,
    recurrent_bias: Option<Tensor<1>>,
    start: Start,
    steps: &StepCodes,
) -> (Tensor<3>, Tensor<2>) {
    let e = weight.dims()[1];
    let part = |x: &Tensor<2>, i: usize| x.clone().narrow(1, i * e, e);
    let weight = weight.transpose();
    let recurrent = |h: Tensor<2>, i: usize| {
        let product = h.matmul(weight.clone().narrow(1, i * e, e));
        recurrent_bias.clone().map_or(product.clone(), |bias| product + bias.narrow(0, i * e, e).unsqueeze())
    };
    let mut stepwise = Stepwise::new(super::min_gru::with_bias(preact, bias), steps);
    let [h_last] = stepwise.run([(start.h0, start.init)], e, |x, [h]| {
        let r = activation::sigmoid(part(&x, 0) + recurrent(h.clone(), 0));
        let z = activation::sigmoid(part(&x, 1) + recurrent(h.clone(), 1));
        match form {
            GruForm::Paper => {
                let n = (part(&x, 2) + recurrent(r * h.clone(), 2)).tanh();
                [h.clone() + z * (n - h)]
            }
            GruForm::Torch => {
                let n = (part(&x, 2) + r * recurrent(h.clone(), 2)).tanh();
                [n.clone() + z * (h - n)]
            }
        }
    });
    (stepwise.outputs(), h_last)
}

#[derive(Debug)]
struct Op {
    form: GruForm,
    steps: StepCodes,
    bias: Option<usize>,
    recurrent_bias: Option<usize>,
    h0: Option<usize>,
    init: Option<usize>,
}

impl Op {
    fn inputs<'a>(&'a self, input: impl Fn(usize) -> Option<&'a FlexTensor>) -> kernel::Inputs<'a> {
        let at = |i: Option<usize>| i.and_then(|i| optional(input(i)));
        let [preact, weight] = [0, 1].map(|i| slice(input(i).expect("kept")));
        kernel::Inputs {
            form: self.form,
            preact,
            bias: at(self.bias),
            weight,
            recurrent_bias: at(self.recurrent_bias),
            start: KernelStart { h0: at(self.h0), init: at(self.init), segments: self.steps.kernel() },
        }
    }
}

fn shape_of(preact: &FlexTensor) -> Shape {
    let [batch, seq_len, width] = dims(preact);
    Shape { batch, seq_len, width: width / 3 }
}

impl FusedOp for Op {
    fn keeps(&self) -> Keeps {
        let optional = [self.bias, self.recurrent_bias, self.h0, self.init].into_iter().flatten();
        Keeps { inputs: [0, 1].into_iter().chain(optional).collect(), outputs: vec![0] }
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let sizes = shape_of(&inputs[0]);
        outputs([[sizes.batch, sizes.seq_len, sizes.width].into(), [sizes.batch, sizes.width].into()], |[h, h_last]| {
            kernel::forward(sizes, self.inputs(|i| Some(&inputs[i])), h, h_last);
        })
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], h: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let kept = |i: usize| inputs[i].as_ref();
        let [preact, weight] = [0, 1].map(|i| kept(i).expect("kept"));
        let sizes = shape_of(preact);
        let [d_h, d_h_last] = [0, 1].map(|i: usize| optional(d_outputs[i].as_ref()));
        let upstream = kernel::Upstream { h: slice(h[0].as_ref().expect("kept")), d_h, d_h_last };
        let required = [shape(preact), shape(weight), [sizes.batch, sizes.width].into(), [sizes.width].into()];
        let biases = [self.bias, self.recurrent_bias].map(|i| i.and_then(kept).map(shape));
        let (d, d_biases) = outputs_with(required, biases, |[d_preact, d_weight, d_h0, d_init], [d_bias, d_recurrent_bias]| {
            let d = kernel::Gradients { d_preact, d_bias, d_weight, d_recurrent_bias, d_h0, d_init };
            kernel::backward(sizes, self.inputs(kept), upstream, d);
        });
        let [d_preact, d_weight, d_h0, d_init] = d;
        let of_start = self.h0.map(|_| d_h0).into_iter().chain(self.init.map(|_| d_init));
        [d_preact, d_weight].into_iter().chain(d_biases.into_iter().flatten()).chain(of_start).collect()
    }
}
