//! minGRU whose forget gate has a lower bound, its gates fused into the recurrence.

use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;
use minrnn_kernels::{Candidate, Shape, Start as KernelStart, floored_min_gru as kernel};

use super::flex::{InputList, Output, dims, optional, slice};
use super::fused::{FusedOp, Keeps, is_on_cpu, output, run};
use super::min_gru;
use super::recurrence::{Start, composed};
use super::steps::StepCodes;

/// h_t = h_{t−1} + z'_t ⊙ (h̃_t − h_{t−1}) with z' = share ⊙ σ(k) and the candidate h̃ of v; beyond the paper (HGRN).
///
/// # Shapes
/// * `preact` `[B, T, 2E]`, rows v then k; `bias` `[2E]`, added to it; `share` `[E]`, 1 minus the least forget gate → h `[B, T, E]` and
///   the last state `[B, E]`
///
/// # Panics
/// When shapes do not fit.
pub fn floored_min_gru(
    preact: Tensor<3>,
    bias: Option<Tensor<1>>,
    share: Tensor<1>,
    candidate: Candidate,
    start: Start,
    steps: &StepCodes,
) -> (Tensor<3>, Tensor<2>) {
    if !is_on_cpu(&preact.device()) {
        let (coeffs, values) = coefficients(preact, bias, share, candidate);
        return composed(coeffs, values, start, steps);
    }
    let mut inputs = InputList::default();
    inputs.add(preact);
    inputs.add(share);
    let op = Op {
        candidate,
        steps: steps.clone(),
        bias: inputs.add_optional(bias),
        h0: inputs.add_optional(start.h0),
        init: inputs.add_optional(start.init),
    };
    let mut outputs = run(op, inputs.into_vec()).into_iter();
    (output(outputs.next()), output(outputs.next()))
}

/// a = 1 − share ⊙ z and b = share ⊙ z ⊙ h̃, both `[B, T, E]`, by tensor operations.
pub(super) fn coefficients(preact: Tensor<3>, bias: Option<Tensor<1>>, share: Tensor<1>, candidate: Candidate) -> (Tensor<3>, Tensor<3>) {
    let (keep, values) = min_gru::coefficients(preact, bias, candidate);
    let share = share.unsqueeze::<3>();
    (-(-keep + 1.0) * share.clone() + 1.0, values * share)
}

/// Inputs preact and share, then those that are there.
#[derive(Debug)]
struct Op {
    candidate: Candidate,
    steps: StepCodes,
    bias: Option<usize>,
    h0: Option<usize>,
    init: Option<usize>,
}

impl Op {
    fn start<'a>(&'a self, input: impl Fn(usize) -> Option<&'a FlexTensor>) -> KernelStart<'a> {
        let at = |i: Option<usize>| i.and_then(|i| optional(input(i)));
        KernelStart { h0: at(self.h0), init: at(self.init), segments: self.steps.kernel() }
    }
}

fn shape_of(preact: &FlexTensor) -> Shape {
    let [batch, seq_len, width] = dims(preact);
    Shape { batch, seq_len, width: width / 2 }
}

impl FusedOp for Op {
    fn keeps(&self) -> Keeps {
        let optional = [self.bias, self.h0, self.init].into_iter().flatten();
        Keeps { inputs: [0, 1].into_iter().chain(optional).collect(), outputs: vec![0] }
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let shape = shape_of(&inputs[0]);
        let mut h = Output::new([shape.batch, shape.seq_len, shape.width]);
        let mut h_last = Output::new([shape.batch, shape.width]);
        let bias = self.bias.map(|i| slice(&inputs[i]));
        let start = self.start(|i| Some(&inputs[i]));
        kernel::forward(shape, self.candidate, slice(&inputs[0]), bias, slice(&inputs[1]), start, h.out(), h_last.out());
        // SAFETY: the kernel writes both outputs whole.
        unsafe { vec![h.finish(), h_last.finish()] }
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], outputs: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let kept = |i: usize| inputs[i].as_ref();
        let [preact, share] = [0, 1].map(|i| kept(i).expect("kept"));
        let shape = shape_of(preact);
        let [mut d_preact, mut d_share] = [Output::like(preact), Output::like(share)];
        let mut d_bias = self.bias.and_then(kept).map(Output::like);
        let [mut d_h0, mut d_init] = [Output::new([shape.batch, shape.width]), Output::new([shape.width])];
        kernel::backward(
            shape,
            self.candidate,
            slice(preact),
            self.bias.and_then(|i| optional(kept(i))),
            slice(share),
            self.start(kept),
            slice(outputs[0].as_ref().expect("kept")),
            optional(d_outputs[0].as_ref()),
            optional(d_outputs[1].as_ref()),
            d_preact.out(),
            d_bias.as_mut().map(Output::out),
            d_share.out(),
            d_h0.out(),
            d_init.out(),
        );
        let optional = [d_bias, self.h0.map(|_| d_h0), self.init.map(|_| d_init)];
        // SAFETY: the kernel writes every gradient whole.
        [d_preact, d_share].into_iter().chain(optional.into_iter().flatten()).map(|d| unsafe { d.finish() }).collect()
    }
}
