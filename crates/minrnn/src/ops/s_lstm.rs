//! The sLSTM as a fused recurrence over a ready input side.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Tensor, activation};
use minrnn_kernels::{Shape, s_lstm as kernel};

use super::flex::{InputList, Output, dims, optional, slice};
use super::fused::{FusedOp, Keeps, has_kernels, output, run};
#[cfg(feature = "gpu")]
use super::gpu::GpuOp;
use super::lstm::fits;
use super::min_gru::with_bias;
use super::steps::StepCodes;
use super::stepwise::Stepwise;

pub use minrnn_kernels::s_lstm::{EMPTY_M, ForgetGate};

/// What an sLSTM carries, each `[B, E]`; c and n are divided by e^m.
#[derive(Debug, Clone)]
pub struct SLstmMemory {
    /// Hidden state.
    pub h: Tensor<2>,
    /// Cell state.
    pub c: Tensor<2>,
    /// Normaliser.
    pub n: Tensor<2>,
    /// Stabiliser: the scale of c and n, a constant for differentiation. [`EMPTY_M`] where nothing has been seen.
    pub m: Tensor<2>,
}

/// An sLSTM (Beck et al. 2024, arXiv:2405.04517, §2.2).
///
/// # Shapes
/// * `preact` `[B, T, 4E]` the input side, parts i, f, z, o; `weight` `[NH, 4H, H]` the recurrent side of each head, H = E / NH; `bias`
///   `[4E]` → h `[B, T, E]` and what is carried on
///
/// # Panics
/// When shapes do not fit.
pub fn s_lstm(
    preact: Tensor<3>,
    weight: Tensor<3>,
    bias: Option<Tensor<1>>,
    forget: ForgetGate,
    memory: SLstmMemory,
    steps: &StepCodes,
) -> (Tensor<3>, SLstmMemory) {
    if !has_kernels(&preact) || !fits(&preact, weight.dims()[2]) {
        return composed(preact, weight, bias, forget, memory, steps);
    }
    let heads = weight.dims()[0];
    let mut inputs = InputList::default();
    inputs.add(preact);
    inputs.add(weight);
    for state in [memory.h, memory.c, memory.n, memory.m] {
        inputs.add(state);
    }
    let op = Op { heads, forget, steps: steps.clone(), bias: inputs.add_optional(bias) };
    let mut outputs = run(op, inputs.into_vec()).into_iter();
    let h = output(outputs.next());
    // c, n and m of every step exist for the backward pass alone.
    let mut last = outputs.skip(3);
    let mut last = || output(last.next());
    (h, SLstmMemory { h: last(), c: last(), n: last(), m: last() })
}

/// The same by tensor operations, one step after the other.
pub(super) fn composed(
    preact: Tensor<3>,
    weight: Tensor<3>,
    bias: Option<Tensor<1>>,
    forget: ForgetGate,
    memory: SLstmMemory,
    steps: &StepCodes,
) -> (Tensor<3>, SLstmMemory) {
    let [heads, _, width] = weight.dims();
    let e = heads * width;
    let weights: Vec<Tensor<2>> = (0..heads).map(|head| weight.clone().narrow(0, head, 1).squeeze_dim::<2>(0).transpose()).collect();
    let empty_m = Tensor::<1>::full([e], EMPTY_M, &preact.device());
    let mut stepwise = Stepwise::new(with_bias(preact, bias), steps);
    let starts = [(Some(memory.h), None), (Some(memory.c), None), (Some(memory.n), None), (Some(memory.m.detach()), Some(empty_m))];
    let [h, c, n, m] = stepwise.run(starts, e, |x, [h, c, n, m]| {
        let products: Vec<Tensor<2>> =
            weights.iter().enumerate().map(|(head, weight)| h.clone().narrow(1, head * width, width).matmul(weight.clone())).collect();
        let gate = |gate: usize| {
            let parts = products.iter().map(|product| product.clone().narrow(1, gate * width, width)).collect();
            x.clone().narrow(1, gate * e, e) + Tensor::cat(parts, 1)
        };
        let log_f = match forget {
            ForgetGate::Sigmoid => activation::log_sigmoid(gate(1)),
            ForgetGate::Exponential => gate(1),
        };
        let (i, kept) = (gate(0), log_f + m);
        let m = kept.clone().detach().max_pair(i.clone().detach());
        let (take, keep) = ((i - m.clone()).exp(), (kept - m.clone()).exp());
        let c = keep.clone() * c + take.clone() * gate(2).tanh();
        let n = keep * n + take;
        [activation::sigmoid(gate(3)) * c.clone() / n.clone(), c, n, m]
    });
    (stepwise.outputs(), SLstmMemory { h, c, n, m })
}

/// Inputs: preact, weight, h, c, n, m, then the bias if there is one. Outputs: h, c, n, m of every step, then the last ones.
#[derive(Debug)]
pub(super) struct Op {
    pub heads: usize,
    pub forget: ForgetGate,
    pub steps: StepCodes,
    pub bias: Option<usize>,
}

impl Op {
    fn start<'a>(&'a self, input: impl Fn(usize) -> &'a FlexTensor) -> kernel::Start<'a> {
        let at = |i: usize| Some(slice(input(i)));
        kernel::Start { h0: at(2), c0: at(3), n0: at(4), m0: at(5), segments: self.steps.kernel() }
    }
}

fn shape_of(preact: &FlexTensor) -> Shape {
    let [batch, seq_len, width] = dims(preact);
    Shape { batch, seq_len, width: width / 4 }
}

impl FusedOp for Op {
    fn keeps(&self) -> Keeps {
        Keeps { inputs: (0..6).chain(self.bias).collect(), outputs: vec![0, 1, 2, 3] }
    }

    #[cfg(feature = "gpu")]
    fn gpu(&self) -> Option<&dyn GpuOp> {
        Some(self)
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let shape = shape_of(&inputs[0]);
        let mut states = [(); 4].map(|()| Output::new([shape.batch, shape.seq_len, shape.width]));
        let mut last = [(); 4].map(|()| Output::new([shape.batch, shape.width]));
        kernel::forward(
            shape,
            self.heads,
            self.forget,
            slice(&inputs[0]),
            slice(&inputs[1]),
            self.bias.map(|i| slice(&inputs[i])),
            self.start(|i| &inputs[i]),
            states.each_mut().map(Output::out),
            last.each_mut().map(Output::out),
        );
        // SAFETY: the kernel writes all outputs whole.
        states.into_iter().chain(last).map(|output| unsafe { output.finish() }).collect()
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], outputs: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let kept = |i: usize| inputs[i].as_ref().expect("kept");
        let (preact, weight) = (kept(0), kept(1));
        let shape = shape_of(preact);
        let [mut d_preact, mut d_weight] = [preact, weight].map(Output::like);
        let mut d_bias = self.bias.map(|i| Output::like(kept(i)));
        let mut d_start = [2, 3, 4].map(|i| Output::like(kept(i)));
        kernel::backward(
            shape,
            self.heads,
            self.forget,
            slice(preact),
            slice(weight),
            self.bias.map(|i| slice(kept(i))),
            self.start(kept),
            [0, 1, 2, 3].map(|i: usize| slice(outputs[i].as_ref().expect("kept"))),
            optional(d_outputs[0].as_ref()),
            [4, 5, 6].map(|i: usize| optional(d_outputs[i].as_ref())),
            d_preact.out(),
            d_weight.out(),
            d_bias.as_mut().map(Output::out),
            d_start.each_mut().map(Output::out),
        );
        let d_m = super::flex::zeros(kept(5));
        // SAFETY: the kernel writes every gradient whole.
        let finish = |output: Output| unsafe { output.finish() };
        [d_preact, d_weight].into_iter().chain(d_start).map(finish).chain([d_m]).chain(d_bias.map(finish)).collect()
    }
}
