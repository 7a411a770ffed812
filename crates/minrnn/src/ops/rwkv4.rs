//! The time mixing of RWKV-4 as a fused recurrence.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Tensor, activation};
use minrnn_kernels::{Shape, rwkv4 as kernel};

use super::flex::{InputList, dims, optional, outputs, shape, slice};
use super::fused::{FusedOp, Keeps, is_on_cpu, output, run};
use super::shapes::expect_shape;
use super::steps::StepCodes;
use super::stepwise::Stepwise;

/// ln Q of an empty memory.
pub const EMPTY_LOG_WEIGHT: f32 = kernel::EMPTY;

/// The state of RWKV-4's time mixing: the mean of the values read and the logarithm of their weight.
#[derive(Debug, Clone)]
pub struct Rwkv4Memory {
    /// P / Q `[B, E]`.
    pub mean: Tensor<2>,
    /// ln Q `[B, E]`; [`EMPTY_LOG_WEIGHT`] if nothing has been read.
    pub log_weight: Tensor<2>,
}

/// σ(r) ⊙ the mean of the values read, weighted by e^key; the past decays by e^−e^decay per step, the current step is weighted by e^bonus
/// (Peng et al. 2023, arXiv:2305.13048). A reset empties the memory.
///
/// # Shapes
/// * `receptance`, `key`, `value` `[B, T, E]`, `decay`, `bonus` `[E]` → y `[B, T, E]` and the last memory
///
/// # Panics
/// When shapes do not fit.
pub fn rwkv4(
    [receptance, key, value]: [Tensor<3>; 3],
    decay: Tensor<1>,
    bonus: Tensor<1>,
    memory: Rwkv4Memory,
    steps: &StepCodes,
) -> (Tensor<3>, Rwkv4Memory) {
    let [batch, _, width] = key.dims();
    for (name, x) in [("receptance", &receptance), ("value", &value)] {
        expect_shape("rwkv4", name, x, key.dims());
    }
    expect_shape("rwkv4", "decay", &decay, [width]);
    expect_shape("rwkv4", "bonus", &bonus, [width]);
    expect_shape("rwkv4", "memory.mean", &memory.mean, [batch, width]);
    expect_shape("rwkv4", "memory.log_weight", &memory.log_weight, [batch, width]);
    if !is_on_cpu(&key.device()) {
        return composed([receptance, key, value], decay, bonus, memory, steps);
    }
    let mut inputs = InputList::default();
    for sequence in [receptance, key, value] {
        inputs.add(sequence);
    }
    inputs.add(decay);
    inputs.add(bonus);
    inputs.add(memory.mean);
    inputs.add(memory.log_weight);
    let mut outputs = run(Op { steps: steps.clone() }, inputs.into_vec()).into_iter();
    let y = output(outputs.next());
    (y, Rwkv4Memory { mean: output(outputs.next()), log_weight: output(outputs.next()) })
}

/// The same by tensor operations, one step after the other.
pub(super) fn composed(
    [receptance, key, value]: [Tensor<3>; 3],
    decay: Tensor<1>,
    bonus: Tensor<1>,
    memory: Rwkv4Memory,
    steps: &StepCodes,
) -> (Tensor<3>, Rwkv4Memory) {
    let e = key.dims()[2];
    let (w, u) = (-decay.exp().unsqueeze::<2>(), bonus.unsqueeze::<2>());
    let empty = Tensor::full([e], EMPTY_LOG_WEIGHT, &key.device());
    let mut stepwise = Stepwise::new(Tensor::cat(vec![receptance, key, value], 2), steps);
    let starts = [(None, None), (Some(memory.mean), None), (Some(memory.log_weight), Some(empty))];
    let [_, mean, log_weight] = stepwise.run(starts, e, |x, [_, mean, log_weight]| {
        let [r, k, v] = [0, 1, 2].map(|i| x.clone().narrow(1, i * e, e));
        let distance = v - mean.clone();
        let y = mean.clone() + activation::sigmoid(u.clone() + k.clone() - log_weight.clone()) * distance.clone();
        let faded = w.clone() + log_weight;
        let ahead = k.clone() - faded.clone();
        let next = mean + activation::sigmoid(ahead.clone()) * distance;
        [activation::sigmoid(r) * y, next, faded.max_pair(k) + (-ahead.abs()).exp().log1p()]
    });
    (stepwise.outputs(), Rwkv4Memory { mean, log_weight })
}

#[derive(Debug)]
struct Op {
    steps: StepCodes,
}

fn shape_of(key: &FlexTensor) -> Shape {
    let [batch, seq_len, width] = dims(key);
    Shape { batch, seq_len, width }
}

impl Op {
    fn arguments<'a>(&'a self, x: [&'a [f32]; 7]) -> (kernel::Inputs<'a>, kernel::Start<'a>) {
        let [receptance, key, value, decay, bonus, mean, log_weight] = x;
        let start = kernel::Start { memory: Some([mean, log_weight]), segments: self.steps.kernel() };
        (kernel::Inputs { receptance, key, value, decay, bonus }, start)
    }
}

impl FusedOp for Op {
    fn keeps(&self) -> Keeps {
        Keeps { inputs: (0..7).collect(), outputs: vec![3] }
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let sizes = shape_of(&inputs[1]);
        let (arguments, start) = self.arguments(std::array::from_fn(|i| slice(&inputs[i])));
        let state = [sizes.batch, sizes.width];
        let shapes = [shape(&inputs[1]), state.into(), state.into(), [kernel::kept_len(sizes)].into()];
        outputs(shapes, |[y, mean, log_weight, kept]| kernel::forward(sizes, arguments, start, y, mean, log_weight, kept))
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], kept: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let inputs: [&FlexTensor; 7] = std::array::from_fn(|i| inputs[i].as_ref().expect("kept"));
        let kept = slice(kept[3].as_ref().expect("kept"));
        let (arguments, start) = self.arguments(inputs.map(slice));
        let [d_y, d_mean, d_log_weight] = [0, 1, 2].map(|i: usize| optional(d_outputs[i].as_ref()));
        let upstream = kernel::Upstream { kept, d_y, d_last: [d_mean, d_log_weight] };
        outputs(inputs.map(shape), |[d_receptance, d_key, d_value, d_decay, d_bonus, d_mean, d_log_weight]| {
            let d = kernel::Gradients { d_receptance, d_key, d_value, d_decay, d_bonus, d_memory: [d_mean, d_log_weight] };
            kernel::backward(shape_of(inputs[1]), arguments, start, upstream, d);
        })
    }
}
