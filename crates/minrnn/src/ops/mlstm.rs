//! The mLSTM as a fused operation over ready queries, keys, values and gates.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Tensor, activation};
use minrnn_kernels::Shape;
use minrnn_kernels::mlstm::{self as kernel, EMPTY_M, EPS};
use minrnn_kernels::segments::{PADDING, RESET};

use super::flex::{InputList, Output, dims, optional, slice, zeros};
use super::fused::{FusedOp, Keeps, has_kernels, output, run};
use super::steps::StepCodes;

/// What an mLSTM carries; C and n are divided by e^m.
#[derive(Debug, Clone)]
pub struct MLstmMemory {
    /// Matrix memory C `[B, NH, e, e]`; rows meet keys.
    pub c: Tensor<4>,
    /// Normaliser `[B, NH, e]`.
    pub n: Tensor<3>,
    /// Stabiliser `[B, NH]`: the scale of C and n, a constant for differentiation. [`EMPTY_M`] where nothing has been seen.
    pub m: Tensor<2>,
}

/// An mLSTM (models.md §4.2), in chunks of time.
///
/// # Shapes
/// * `q`, `k`, `v` `[B, T, D]` with the channels of a head side by side; `gates` `[B, T, 2NH]` the pre-activations of the input gates, then
///   of the forget gates → h `[B, T, D]` and what is carried on
///
/// # Panics
/// When shapes do not fit.
pub fn mlstm(
    q: Tensor<3>,
    k: Tensor<3>,
    v: Tensor<3>,
    gates: Tensor<3>,
    memory: MLstmMemory,
    steps: &StepCodes,
) -> (Tensor<3>, MLstmMemory) {
    if !has_kernels(&q.device()) {
        return composed(q, k, v, gates, memory, steps);
    }
    let mut inputs = InputList::default();
    for x in [q, k, v, gates] {
        inputs.add(x);
    }
    inputs.add(memory.c);
    inputs.add(memory.n);
    inputs.add(memory.m);
    let mut outputs = run(Op { steps: steps.clone() }, inputs.into_vec()).into_iter();
    let h = output(outputs.next());
    (h, MLstmMemory { c: output(outputs.next()), n: output(outputs.next()), m: output(outputs.next()) })
}

/// The same by tensor operations, one step after the other.
pub(super) fn composed(
    q: Tensor<3>,
    k: Tensor<3>,
    v: Tensor<3>,
    gates: Tensor<3>,
    memory: MLstmMemory,
    steps: &StepCodes,
) -> (Tensor<3>, MLstmMemory) {
    let [batch, seq_len, width] = q.dims();
    let [_, heads, e] = memory.n.dims();
    let device = q.device();
    let MLstmMemory { mut c, mut n, m } = memory;
    let mut m = m.detach();
    let mut outputs = Vec::new();
    for t in 0..seq_len {
        // 1 in the rows whose code is `code`, `[B, 1]`.
        let rows = |code: i32| {
            let mask: Vec<f32> = (0..batch).map(|b| f32::from(u8::from(steps.code(b, t) == code))).collect();
            Tensor::<2>::from_data(burn::tensor::TensorData::new(mask, [batch, 1]), &device)
        };
        let (reset, padding) = (rows(RESET), rows(PADDING));
        let (kept_on, real) = (-reset.clone() + 1.0, -padding.clone() + 1.0);
        c = c * kept_on.clone().reshape([batch, 1, 1, 1]);
        n = n * kept_on.clone().reshape([batch, 1, 1]);
        m = m * kept_on + reset * EMPTY_M;
        let at = |x: &Tensor<3>| x.clone().narrow(1, t, 1).reshape([batch, heads, e]);
        let gate = |from: usize| gates.clone().narrow(1, t, 1).narrow(2, from, heads).reshape([batch, heads]);
        let (i, forget) = (gate(0), activation::log_sigmoid(gate(heads)) + m.clone());
        let new_m = i.clone().detach().max_pair(forget.clone().detach());
        let take = (i - new_m.clone()).exp() / (e as f32).sqrt();
        let keep = (forget - new_m.clone()).exp();
        let (query, key, value) = (at(&q), at(&k) * take.unsqueeze_dim::<3>(2), at(&v));
        let outer = key.clone().unsqueeze_dim::<4>(3) * value.unsqueeze_dim::<4>(2);
        let new_c = c.clone() * keep.clone().reshape([batch, heads, 1, 1]) + outer;
        let new_n = n.clone() * keep.unsqueeze_dim::<3>(2) + key;
        let beta = (new_n.clone() * query.clone()).sum_dim(2);
        let eta = beta.abs().max_pair((-new_m.clone()).exp().unsqueeze_dim::<3>(2)) + EPS;
        let sum = (new_c.clone() * query.unsqueeze_dim::<4>(3)).sum_dim(2).reshape([batch, heads, e]);
        outputs.push((sum / eta).reshape([batch, 1, width]) * real.clone().reshape([batch, 1, 1]));
        c = c * padding.clone().reshape([batch, 1, 1, 1]) + new_c * real.clone().reshape([batch, 1, 1, 1]);
        n = n * padding.clone().reshape([batch, 1, 1]) + new_n * real.clone().reshape([batch, 1, 1]);
        m = m * padding + new_m * real;
    }
    let h = if outputs.is_empty() { Tensor::zeros([batch, 0, width], &device) } else { Tensor::cat(outputs, 1) };
    (h, MLstmMemory { c, n, m })
}

/// Inputs: q, k, v, gates, C, n, m. Outputs: h, and the last C, n, m.
#[derive(Debug)]
struct Op {
    steps: StepCodes,
}

impl Op {
    fn start<'a>(&'a self, input: impl Fn(usize) -> &'a FlexTensor) -> kernel::Start<'a> {
        let at = |i: usize| Some(slice(input(i)));
        kernel::Start { c0: at(4), n0: at(5), m0: at(6), segments: self.steps.kernel() }
    }
}

fn shape_of(q: &FlexTensor) -> Shape {
    let [batch, seq_len, width] = dims(q);
    Shape { batch, seq_len, width }
}

fn heads_of(m: &FlexTensor) -> usize {
    dims::<2>(m)[1]
}

impl FusedOp for Op {
    fn keeps(&self) -> Keeps {
        Keeps { inputs: (0..7).collect(), outputs: vec![0] }
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let mut h = Output::like(&inputs[0]);
        let mut last = [4, 5, 6].map(|i: usize| Output::like(&inputs[i]));
        let qkv = [0, 1, 2].map(|i: usize| slice(&inputs[i]));
        let (shape, heads, start) = (shape_of(&inputs[0]), heads_of(&inputs[6]), self.start(|i| &inputs[i]));
        kernel::forward(shape, heads, qkv, slice(&inputs[3]), start, h.out(), last.each_mut().map(Output::out));
        // SAFETY: the kernel writes all outputs whole.
        [h].into_iter().chain(last).map(|output| unsafe { output.finish() }).collect()
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], outputs: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let kept = |i: usize| inputs[i].as_ref().expect("kept");
        let [mut d_q, mut d_k, mut d_v, mut d_gates, mut d_c, mut d_n] = [0, 1, 2, 3, 4, 5].map(|i| Output::like(kept(i)));
        kernel::backward(
            shape_of(kept(0)),
            heads_of(kept(6)),
            [0, 1, 2].map(|i| slice(kept(i))),
            slice(kept(3)),
            self.start(kept),
            slice(outputs[0].as_ref().expect("kept")),
            optional(d_outputs[0].as_ref()),
            [1, 2].map(|i: usize| optional(d_outputs[i].as_ref())),
            [d_q.out(), d_k.out(), d_v.out()],
            d_gates.out(),
            [d_c.out(), d_n.out()],
        );
        // SAFETY: the kernel writes every gradient whole.
        let finish = |output: Output| unsafe { output.finish() };
        [d_q, d_k, d_v, d_gates, d_c, d_n].into_iter().map(finish).chain([zeros(kept(6))]).collect()
    }
}
