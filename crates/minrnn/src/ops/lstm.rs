//! The traditional LSTM as a fused recurrence over a precomputed input projection.

use burn::backend::flex::FlexTensor;
use burn::tensor::{FloatDType, Tensor, activation};
use minrnn_kernels::{Shape, Start as HiddenStart, lstm as kernel};

use super::flex::{InputList, dims, optional, outputs, outputs_with, shape, slice};
use super::fused::{FusedOp, Keeps, has_kernels, is_on_cpu, output, run};
#[cfg(feature = "gpu")]
use super::gpu::op::GpuOp;
use super::min_gru::with_bias;
use super::recurrence::{Start, expect_cell};
use super::shapes::{expect_shape, expect_shape_if_any};
use super::steps::StepCodes;
use super::stepwise::Stepwise;

/// Hidden states of every step `[B, T, E]`, and the last hidden and cell states `[B, E]`.
pub type LstmOutputs = (Tensor<3>, Tensor<2>, Tensor<2>);

/// An LSTM (Hochreiter and Schmidhuber 1997, Neural Computation 9(8), with the forget gate of Gers et al. 2000, Neural Computation 12(10)).
///
/// # Shapes
/// * `preact` `[B, T, 4E]` the input side, parts i, f, g, o; `bias` `[4E]`, added to it; `weight` `[4E, E]` the recurrent side;
///   `recurrent_bias` `[4E]`; `hidden`, `cell` the initial h and c → h `[B, T, E]`, last h and last c `[B, E]`
///
/// # Panics
/// When shapes do not fit.
pub fn lstm(
    preact: Tensor<3>,
    bias: Option<Tensor<1>>,
    weight: Tensor<2>,
    recurrent_bias: Option<Tensor<1>>,
    hidden: Start,
    cell: Start,
    steps: &StepCodes,
) -> LstmOutputs {
    let ([batch, ..], e) = (preact.dims(), expect_cell("lstm", 4, &preact, bias.as_ref(), &hidden));
    cell.expect_fits("lstm", [batch, e]);
    expect_shape("lstm", "weight", &weight, [4 * e, e]);
    expect_shape_if_any("lstm", "recurrent_bias", recurrent_bias.as_ref(), [4 * e]);
    if !has_kernels(&preact) || !fits(&preact, weight.dims()[1]) {
        let format = FloatDType::from(preact.dtype());
        let (h, h_last, c_last) = composed(preact.cast(FloatDType::F32), bias, weight, recurrent_bias, hidden, cell, steps);
        return (h.cast(format), h_last, c_last);
    }
    let mut inputs = InputList::default();
    inputs.add(preact);
    inputs.add(weight);
    let op = Op {
        steps: steps.clone(),
        bias: inputs.add_optional(bias),
        recurrent_bias: inputs.add_optional(recurrent_bias),
        h0: inputs.add_optional(hidden.h0),
        c0: inputs.add_optional(cell.h0),
        init_h: inputs.add_optional(hidden.init),
        init_c: inputs.add_optional(cell.init),
    };
    let mut outputs = run(op, inputs.into_vec()).into_iter();
    let h = output(outputs.next());
    // The second output, c of every step, is only for the backward pass.
    outputs.next();
    (h, output(outputs.next()), output(outputs.next()))
}

/// The same by tensor operations, one step after the other.
pub(super) fn composed(
    preact: Tensor<3>,
    bias: Option<Tensor<1>>,
    weight: Tensor<2>,
    recurrent_bias: Option<Tensor<1>>,
    hidden: Start,
    cell: Start,
    steps: &StepCodes,
) -> LstmOutputs {
    let e = weight.dims()[1];
    let weight = weight.transpose();
    let mut stepwise = Stepwise::new(with_bias(with_bias(preact, bias), recurrent_bias), steps);
    let [h_last, c_last] = stepwise.run([(hidden.h0, hidden.init), (cell.h0, cell.init)], e, |x, [h, c]| {
        let all = x + h.matmul(weight.clone());
        let part = |i: usize| all.clone().narrow(1, i * e, e);
        let [i, f, o] = [part(0), part(1), part(3)].map(activation::sigmoid);
        let c = f * c + i * part(2).tanh();
        [o * c.clone().tanh(), c]
    });
    (stepwise.outputs(), h_last, c_last)
}

/// Maximum head width of the GPU kernels, whose shared memory holds the gradients of its gates.
const MOST_WIDTH_ON_GPU: usize = 2048;

/// Whether the kernels of the device of `preact` take heads of `width` channels.
pub(super) fn fits(preact: &Tensor<3>, width: usize) -> bool {
    is_on_cpu(&preact.device()) || width <= MOST_WIDTH_ON_GPU
}

#[derive(Debug)]
pub(super) struct Op {
    pub steps: StepCodes,
    pub bias: Option<usize>,
    pub recurrent_bias: Option<usize>,
    pub h0: Option<usize>,
    pub c0: Option<usize>,
    pub init_h: Option<usize>,
    pub init_c: Option<usize>,
}

impl Op {
    fn inputs<'a>(&'a self, input: impl Fn(usize) -> Option<&'a FlexTensor>) -> kernel::Inputs<'a> {
        let at = |i: Option<usize>| i.and_then(|i| optional(input(i)));
        let [preact, weight] = [0, 1].map(|i| slice(input(i).expect("kept")));
        let start = kernel::Start {
            h: HiddenStart { h0: at(self.h0), init: at(self.init_h), segments: self.steps.kernel() },
            c0: at(self.c0),
            init_c: at(self.init_c),
        };
        kernel::Inputs { preact, bias: at(self.bias), weight, recurrent_bias: at(self.recurrent_bias), start }
    }
}

fn shape_of(preact: &FlexTensor) -> Shape {
    let [batch, seq_len, width] = dims(preact);
    Shape { batch, seq_len, width: width / 4 }
}

impl FusedOp for Op {
    fn keeps(&self) -> Keeps {
        let optional = [self.bias, self.recurrent_bias, self.h0, self.c0, self.init_h, self.init_c].into_iter().flatten();
        Keeps { inputs: [0, 1].into_iter().chain(optional).collect(), outputs: vec![0, 1] }
    }

    #[cfg(feature = "gpu")]
    fn gpu(&self) -> Option<&dyn GpuOp> {
        Some(self)
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let sizes = shape_of(&inputs[0]);
        let (sequence, state) = ([sizes.batch, sizes.seq_len, sizes.width], [sizes.batch, sizes.width]);
        outputs([sequence.into(), sequence.into(), state.into(), state.into()], |[h, c, h_last, c_last]| {
            kernel::forward(sizes, self.inputs(|i| Some(&inputs[i])), h, c, h_last, c_last);
        })
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], states: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let kept = |i: usize| inputs[i].as_ref();
        let [preact, weight] = [0, 1].map(|i| kept(i).expect("kept"));
        let sizes = shape_of(preact);
        let [h, c] = [0, 1].map(|i| slice(states[i].as_ref().expect("kept")));
        let [d_h, d_h_last, d_c_last] = [0, 2, 3].map(|i: usize| optional(d_outputs[i].as_ref()));
        let upstream = kernel::Upstream { h, c, d_h, d_h_last, d_c_last };
        let (state, init) = ([sizes.batch, sizes.width], [sizes.width]);
        let required = [shape(preact), shape(weight), state.into(), state.into(), init.into(), init.into()];
        let biases = [self.bias, self.recurrent_bias].map(|i| i.and_then(kept).map(shape));
        let (d, d_biases) =
            outputs_with(required, biases, |[d_preact, d_weight, d_h0, d_c0, d_init_h, d_init_c], [d_bias, d_recurrent_bias]| {
                let d = kernel::Gradients { d_preact, d_bias, d_weight, d_recurrent_bias, d_h0, d_c0, d_init_h, d_init_c };
                kernel::backward(sizes, self.inputs(kept), upstream, d);
            });
        let [d_preact, d_weight, d_starts @ ..] = d;
        let wanted = [self.h0, self.c0, self.init_h, self.init_c];
        let d_starts = d_starts.into_iter().zip(wanted).filter_map(|(d, wanted)| wanted.map(|_| d));
        [d_preact, d_weight].into_iter().chain(d_biases.into_iter().flatten()).chain(d_starts).collect()
    }
}
