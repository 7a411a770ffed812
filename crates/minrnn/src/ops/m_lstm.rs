//! The mLSTM as a fused operation over precomputed queries, keys, values and gates.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Device, Tensor, TensorData, activation};
use minrnn_kernels::Shape;
use minrnn_kernels::m_lstm::{self as kernel, EMPTY_M, EPS};
use minrnn_kernels::segments::{CONTINUE, PADDING, RESET};

use super::flex::{InputList, dims, optional, outputs, shape, slice, zeros};
use super::fused::{FusedOp, Keeps, is_on_cpu, output, run};
use super::shapes::expect_shape;
use super::steps::StepCodes;

/// The state of an mLSTM; C and n are divided by e^m.
#[derive(Debug, Clone)]
pub struct MLstmMemory {
    /// Matrix memory C `[B, NH, e, e]`; rows correspond to keys.
    pub c: Tensor<4>,
    /// Normaliser `[B, NH, e]`.
    pub n: Tensor<3>,
    /// Stabiliser `[B, NH]`: the scale of C and n, a constant for differentiation. [`EMPTY_M`] if nothing has been read.
    pub m: Tensor<2>,
}

/// An mLSTM (Beck et al. 2024, arXiv:2405.04517, §2.3), in chunks of time.
///
/// # Shapes
/// * `q`, `k`, `v` `[B, T, D]` with the channels of a head side by side; `gates` `[B, T, 2NH]` the pre-activations of the input gates, then
///   of the forget gates → h `[B, T, D]` and the state afterwards
///
/// # Panics
/// When shapes do not fit.
pub fn m_lstm(
    q: Tensor<3>,
    k: Tensor<3>,
    v: Tensor<3>,
    gates: Tensor<3>,
    memory: MLstmMemory,
    steps: &StepCodes,
) -> (Tensor<3>, MLstmMemory) {
    let ([batch, seq_len, _], [_, heads, e]) = (q.dims(), memory.n.dims());
    for (name, x) in [("q", &q), ("k", &k), ("v", &v)] {
        expect_shape("m_lstm", name, x, [batch, seq_len, heads * e]);
    }
    expect_shape("m_lstm", "gates", &gates, [batch, seq_len, 2 * heads]);
    expect_shape("m_lstm", "memory.c", &memory.c, [batch, heads, e, e]);
    expect_shape("m_lstm", "memory.n", &memory.n, [batch, heads, e]);
    expect_shape("m_lstm", "memory.m", &memory.m, [batch, heads]);
    if !is_on_cpu(&q.device()) {
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

/// Number of steps that the tensor operations process at once.
const CHUNK: usize = 64;

/// The same by tensor operations, chunk after chunk in the form of [`minrnn_kernels::m_lstm`].
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
    let by_head = |x: Tensor<3>| x.reshape([batch, seq_len, heads, e]).swap_dims(1, 2);
    let qkv = [q, k * (1.0 / (e as f32).sqrt()), v].map(by_head);
    let gates = gates.swap_dims(1, 2);
    let (take, mut log_f) = (gates.clone().narrow(1, 0, heads), activation::log_sigmoid(gates.narrow(1, heads, heads)));
    let padding = steps.padding_mask(&device);
    if let Some(padding) = &padding {
        log_f = log_f * (-padding.clone().swap_dims(1, 2) + 1.0);
    }
    let mut memory = MLstmMemory { m: memory.m.detach(), ..memory };
    let mut outputs = Vec::new();
    for from in (0..seq_len).step_by(CHUNK) {
        let len = CHUNK.min(seq_len - from);
        let qkv = qkv.each_ref().map(|x| x.clone().narrow(2, from, len));
        let gates = [&take, &log_f].map(|x| x.clone().narrow(2, from, len));
        let h;
        (h, memory) = chunk(qkv, gates, memory, &Reach::new(steps, batch, from, len, &device));
        outputs.push(h);
    }
    if outputs.is_empty() {
        return (Tensor::zeros([batch, 0, width], &device), memory);
    }
    let h = Tensor::cat(outputs, 2).swap_dims(1, 2).reshape([batch, seq_len, width]);
    let h = padding.map_or(h.clone(), |padding| h * (-padding + 1.0));
    (h, memory)
}

/// What the steps of a chunk see: 1 or 0; the first dimension is 1 if all rows are alike.
struct Reach {
    /// Whether a step (third dimension) sees what another (fourth) wrote, `[·, 1, L, L]`.
    steps: Tensor<4>,
    /// Whether a step sees the memory before the chunk, `[·, 1, L]`.
    memory: Tensor<3>,
}

impl Reach {
    fn new(steps: &StepCodes, batch: usize, from: usize, len: usize, device: &Device) -> Self {
        let rows = if steps.is_dense() { 1 } else { batch };
        let mut seen = vec![0.0f32; rows * len * len];
        let mut carried = vec![1.0f32; rows * len];
        for b in 0..rows {
            let code = |t: usize| if steps.is_dense() { CONTINUE } else { steps.code(b, from + t) };
            let mut first = 0;
            for t in 0..len {
                if code(t) == RESET {
                    first = t;
                    carried[b * len + t..(b + 1) * len].fill(0.0);
                }
                let row = &mut seen[(b * len + t) * len..][..len];
                (first..=t).filter(|&s| code(s) != PADDING).for_each(|s| row[s] = 1.0);
            }
        }
        Self {
            steps: Tensor::from_data(TensorData::new(seen, [rows, 1, len, len]), device),
            memory: Tensor::from_data(TensorData::new(carried, [rows, 1, len]), device),
        }
    }
}

/// The outputs `[B, NH, L, e]` of a chunk of L steps, and the memory after it. `qkv` `[B, NH, L, e]`, the keys times κ; `gates` the
/// pre-activation of the input gate and ln f, `[B, NH, L]`.
fn chunk(qkv: [Tensor<4>; 3], gates: [Tensor<3>; 2], memory: MLstmMemory, reach: &Reach) -> (Tensor<4>, MLstmMemory) {
    let [q, k, v] = qkv;
    let [take, log_f] = gates;
    let [batch, heads, len, e] = q.dims();
    let MLstmMemory { c, n, m } = memory;
    let column = |x: Tensor<3>| x.unsqueeze_dim::<4>(3);
    let decay = log_f.cumsum(2);
    let hidden = |seen: Tensor<4>, size: usize| seen.equal_elem(0.0).expand([batch, heads, len, size]);
    let exponents = column(decay.clone()) + (take - decay.clone()).unsqueeze_dim::<4>(2);
    let exponents = exponents.mask_fill(hidden(reach.steps.clone(), len), EMPTY_M);
    let carried = column(decay + m.unsqueeze_dim::<3>(2)).mask_fill(hidden(column(reach.memory.clone()), 1), EMPTY_M);
    let m = exponents.clone().detach().max_dim(3).max_pair(carried.clone().detach());
    // If nothing has been seen, m is that of an empty memory, and e⁰ must not count as a weight.
    let weights = (exponents - m.clone()).exp() * reach.steps.clone();
    let delta = (carried - m.clone()).exp() * column(reach.memory.clone());
    let scores = q.clone().matmul(k.clone().swap_dims(2, 3)) * weights.clone();
    let beta = scores.clone().sum_dim(3) + delta.clone() * (q.clone() * n.clone().unsqueeze_dim::<4>(2)).sum_dim(3);
    let eta = beta.abs().max_pair((-m.clone()).exp()) + EPS;
    let h = (scores.matmul(v.clone()) + delta.clone() * q.matmul(c.clone())) / eta;
    let last = |x: Tensor<4>| x.narrow(2, len - 1, 1);
    let written = k * last(weights).swap_dims(2, 3);
    let kept = last(delta);
    let next = MLstmMemory {
        c: c * kept.clone() + written.clone().swap_dims(2, 3).matmul(v),
        n: n * kept.reshape([batch, heads, 1]) + written.sum_dim(2).reshape([batch, heads, e]),
        m: last(m).reshape([batch, heads]),
    };
    (h, next)
}

/// Inputs: q, k, v, gates, C, n, m. Outputs: h, and the last C, n, m.
#[derive(Debug)]
struct Op {
    steps: StepCodes,
}

impl Op {
    fn inputs<'a>(&'a self, input: impl Fn(usize) -> &'a FlexTensor) -> kernel::Inputs<'a> {
        let [q, k, v, gates, c0, n0, m0] = [0, 1, 2, 3, 4, 5, 6].map(|i| slice(input(i)));
        let start = kernel::Start { c0: Some(c0), n0: Some(n0), m0: Some(m0), segments: self.steps.kernel() };
        kernel::Inputs { heads: heads_of(input(6)), qkv: [q, k, v], gates, start }
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
        outputs([0, 4, 5, 6].map(|i: usize| shape(&inputs[i])), |[h, c, n, m]| {
            kernel::forward(shape_of(&inputs[0]), self.inputs(|i| &inputs[i]), h, [c, n, m]);
        })
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], h: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let kept = |i: usize| inputs[i].as_ref().expect("kept");
        let upstream = kernel::Upstream {
            h: slice(h[0].as_ref().expect("kept")),
            d_h: optional(d_outputs[0].as_ref()),
            d_last: [1, 2].map(|i: usize| optional(d_outputs[i].as_ref())),
        };
        let mut d_inputs = outputs([0, 1, 2, 3, 4, 5].map(|i| shape(kept(i))), |[d_q, d_k, d_v, d_gates, d_c0, d_n0]| {
            let d = kernel::Gradients { d_qkv: [d_q, d_k, d_v], d_gates, d_start: [d_c0, d_n0] };
            kernel::backward(shape_of(kept(0)), self.inputs(kept), upstream, d);
        });
        d_inputs.push(zeros(kept(6)));
        d_inputs
    }
}
