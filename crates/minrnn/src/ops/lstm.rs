//! The traditional LSTM as a fused recurrence over a ready input projection.

use burn::backend::flex::FlexTensor;
use burn::tensor::{FloatDType, Tensor, activation};
use minrnn_kernels::{Shape, Start as HiddenStart, lstm as kernel};

use super::flex::{InputList, Output, dims, optional, slice};
use super::fused::{FusedOp, Keeps, has_kernels, is_on_cpu, output, run};
#[cfg(feature = "gpu")]
use super::gpu::GpuOp;
use super::min_gru::with_bias;
use super::recurrence::Start;
use super::steps::StepCodes;
use super::stepwise::Stepwise;

/// Hidden states of every step `[B, T, E]`, and the last hidden and cell states `[B, E]`.
pub type LstmOutputs = (Tensor<3>, Tensor<2>, Tensor<2>);

/// An LSTM (Hochreiter and Schmidhuber 1997, Neural Computation 9(8), with the forget gate of Gers et al. 2000, Neural Computation 12(10)).
///
/// # Shapes
/// * `preact` `[B, T, 4E]` the input side, parts i, f, g, o; `bias` `[4E]`, added to it; `weight` `[4E, E]` the recurrent side;
///   `recurrent_bias` `[4E]`; `hidden`, `cell` where h and c start → h `[B, T, E]`, last h and last c `[B, E]`
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
    // The second output, c of every step, exists for the backward pass alone.
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

/// Widest head of the GPU kernels, whose shared memory holds the gradients of its gates.
const MOST_WIDTH_ON_GPU: usize = 2048;

/// True where the kernels of the device of `preact` take heads of `width` channels.
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
    fn start<'a>(&'a self, input: impl Fn(usize) -> Option<&'a FlexTensor>) -> kernel::Start<'a> {
        let at = |i: Option<usize>| i.and_then(|i| optional(input(i)));
        kernel::Start {
            h: HiddenStart { h0: at(self.h0), init: at(self.init_h), segments: self.steps.kernel() },
            c0: at(self.c0),
            init_c: at(self.init_c),
        }
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
        let shape = shape_of(&inputs[0]);
        let sequence = || Output::new([shape.batch, shape.seq_len, shape.width]);
        let state = || Output::new([shape.batch, shape.width]);
        let (mut h, mut c, mut h_last, mut c_last) = (sequence(), sequence(), state(), state());
        let at = |i: Option<usize>| i.map(|i| slice(&inputs[i]));
        kernel::forward(
            shape,
            slice(&inputs[0]),
            at(self.bias),
            slice(&inputs[1]),
            at(self.recurrent_bias),
            self.start(|i| Some(&inputs[i])),
            h.out(),
            c.out(),
            h_last.out(),
            c_last.out(),
        );
        // SAFETY: the kernel writes all outputs whole.
        unsafe { vec![h.finish(), c.finish(), h_last.finish(), c_last.finish()] }
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], outputs: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let kept = |i: usize| inputs[i].as_ref();
        let [preact, weight] = [0, 1].map(|i| kept(i).expect("kept"));
        let [h, c] = [0, 1].map(|i| slice(outputs[i].as_ref().expect("kept")));
        let shape = shape_of(preact);
        let [mut d_preact, mut d_weight] = [Output::like(preact), Output::like(weight)];
        let mut d_bias = self.bias.and_then(kept).map(Output::like);
        let mut d_recurrent_bias = self.recurrent_bias.and_then(kept).map(Output::like);
        let [mut d_h0, mut d_c0] = [0, 1].map(|_| Output::new([shape.batch, shape.width]));
        let [mut d_init_h, mut d_init_c] = [0, 1].map(|_| Output::new([shape.width]));
        kernel::backward(
            shape,
            slice(preact),
            self.bias.and_then(|i| optional(kept(i))),
            slice(weight),
            self.recurrent_bias.and_then(|i| optional(kept(i))),
            self.start(kept),
            h,
            c,
            optional(d_outputs[0].as_ref()),
            optional(d_outputs[2].as_ref()),
            optional(d_outputs[3].as_ref()),
            d_preact.out(),
            d_bias.as_mut().map(Output::out),
            d_weight.out(),
            d_recurrent_bias.as_mut().map(Output::out),
            d_h0.out(),
            d_c0.out(),
            d_init_h.out(),
            d_init_c.out(),
        );
        let optional = [
            d_bias,
            d_recurrent_bias,
            self.h0.map(|_| d_h0),
            self.c0.map(|_| d_c0),
            self.init_h.map(|_| d_init_h),
            self.init_c.map(|_| d_init_c),
        ];
        // SAFETY: the kernel writes every gradient whole.
        [d_preact, d_weight].into_iter().chain(optional.into_iter().flatten()).map(|d| unsafe { d.finish() }).collect()
    }
}
