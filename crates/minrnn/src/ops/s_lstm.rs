//! The sLSTM as a fused recurrence over a precomputed input side.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Tensor, activation};
use minrnn_kernels::{Shape, s_lstm as kernel};

use super::flex::{InputList, dims, optional, outputs, outputs_with, shape, slice, zeros};
use super::fused::{FusedOp, Keeps, has_kernels, output, run};
#[cfg(feature = "gpu")]
use super::gpu::op::GpuOp;
use super::lstm::fits;
use super::min_gru::with_bias;
use super::shapes::{expect_shape, expect_shape_if_any};
use super::steps::StepCodes;
use super::stepwise::Stepwise;

pub use minrnn_kernels::s_lstm::{EMPTY_M, ForgetGate};

/// The state of an sLSTM, each `[B, E]`; c and n are divided by e^m.
#[derive(Debug, Clone)]
pub struct SLstmMemory {
    /// Hidden state.
    pub h: Tensor<2>,
    /// Cell state.
    pub c: Tensor<2>,
    /// Normaliser.
    pub n: Tensor<2>,
    /// Stabiliser: the scale of c and n, a constant for differentiation. [`EMPTY_M`] if nothing has been read.
    pub m: Tensor<2>,
}

/// An sLSTM (Beck et al. 2024, arXiv:2405.04517, §2.2).
///
/// # Shapes
/// * `preact` `[B, T, 4E]` the input side, parts i, f, z, o; `weight` `[NH, 4H, H]` the recurrent side of each head, H = E / NH; `bias`
///   `[4E]` → h `[B, T, E]` and the state afterwards
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
    let ([batch, seq_len, _], [heads, _, head]) = (preact.dims(), weight.dims());
    let e = heads * head;
    expect_shape("s_lstm", "weight", &weight, [heads, 4 * head, head]);
    expect_shape("s_lstm", "preact", &preact, [batch, seq_len, 4 * e]);
    expect_shape_if_any("s_lstm", "bias", bias.as_ref(), [4 * e]);
    for (name, state) in [("memory.h", &memory.h), ("memory.c", &memory.c), ("memory.n", &memory.n), ("memory.m", &memory.m)] {
        expect_shape("s_lstm", name, state, [batch, e]);
    }
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
    // c, n and m of every step are only for the backward pass.
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
    fn inputs<'a>(&'a self, input: impl Fn(usize) -> &'a FlexTensor) -> kernel::Inputs<'a> {
        let at = |i: usize| slice(input(i));
        let [h0, c0, n0, m0] = [2, 3, 4, 5].map(|i| Some(at(i)));
        kernel::Inputs {
            heads: self.heads,
            forget: self.forget,
            preact: at(0),
            weight: at(1),
            bias: self.bias.map(at),
            start: kernel::Start { h0, c0, n0, m0, segments: self.steps.kernel() },
        }
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
        let sizes = shape_of(&inputs[0]);
        let (sequence, state) = ([sizes.batch, sizes.seq_len, sizes.width], [sizes.batch, sizes.width]);
        let shapes = std::array::from_fn(|i| if i < 4 { sequence.into() } else { state.into() });
        outputs(shapes, |[h, c, n, m, last_h, last_c, last_n, last_m]| {
            kernel::forward(sizes, self.inputs(|i| &inputs[i]), [h, c, n, m], [last_h, last_c, last_n, last_m]);
        })
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], states: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let kept = |i: usize| inputs[i].as_ref().expect("kept");
        let upstream = kernel::Upstream {
            states: [0, 1, 2, 3].map(|i: usize| slice(states[i].as_ref().expect("kept"))),
            d_h: optional(d_outputs[0].as_ref()),
            d_last: [4, 5, 6].map(|i: usize| optional(d_outputs[i].as_ref())),
        };
        let (shapes, d_bias) = ([0, 1, 2, 3, 4].map(|i| shape(kept(i))), [self.bias.map(|i| shape(kept(i)))]);
        let (d, [d_bias]) = outputs_with(shapes, d_bias, |[d_preact, d_weight, d_h0, d_c0, d_n0], [d_bias]| {
            let d = kernel::Gradients { d_preact, d_weight, d_bias, d_start: [d_h0, d_c0, d_n0] };
            kernel::backward(shape_of(kept(0)), self.inputs(kept), upstream, d);
        });
        d.into_iter().chain([zeros(kept(5))]).chain(d_bias).collect()
    }
}
