//! Aaren's attention to a prefix as a fused recurrence.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Tensor, activation};
use minrnn_kernels::{Shape, prefix_softmax as kernel};

use super::flex::{InputList, dims, optional, outputs, shape, slice};
use super::fused::{FusedOp, Keeps, is_on_cpu, output, run};
use super::rwkv4::EMPTY_LOG_WEIGHT;
use super::shapes::{expect_parts, expect_shape};
use super::steps::StepCodes;
use super::stepwise::Stepwise;

/// The state of attention to a prefix: the mean of the values read and the logarithm of their weight.
#[derive(Debug, Clone)]
pub struct PrefixMemory {
    /// `[B, E]`.
    pub mean: Tensor<2>,
    /// `[B, H]`; [`EMPTY_LOG_WEIGHT`] if nothing has been read.
    pub log_weight: Tensor<2>,
}

/// The mean of all values read so far, weighted by the softmax of their scores (Aaren: Feng et al. 2024, arXiv:2405.13956, §3). A reset
/// empties the memory.
///
/// # Shapes
/// * `scores` `[B, T, H]`, `values` `[B, T, E]` with E / H channels for each head → `[B, T, E]` and the last memory
///
/// # Panics
/// When shapes do not fit.
pub fn prefix_softmax(scores: Tensor<3>, values: Tensor<3>, memory: PrefixMemory, steps: &StepCodes) -> (Tensor<3>, PrefixMemory) {
    let ([batch, seq_len, width], [_, _, heads]) = (values.dims(), scores.dims());
    expect_parts("prefix_softmax", "values", width, heads);
    expect_shape("prefix_softmax", "scores", &scores, [batch, seq_len, heads]);
    expect_shape("prefix_softmax", "memory.mean", &memory.mean, [batch, width]);
    expect_shape("prefix_softmax", "memory.log_weight", &memory.log_weight, [batch, heads]);
    if !is_on_cpu(&values.device()) {
        return composed(scores, values, memory, steps);
    }
    let mut inputs = InputList::default();
    inputs.add(scores);
    inputs.add(values);
    inputs.add(memory.mean);
    inputs.add(memory.log_weight);
    let mut outputs = run(Op { steps: steps.clone() }, inputs.into_vec()).into_iter();
    let y = output(outputs.next());
    (y, PrefixMemory { mean: output(outputs.next()), log_weight: output(outputs.next()) })
}

/// The same by tensor operations, one step after the other.
pub(super) fn composed(scores: Tensor<3>, values: Tensor<3>, memory: PrefixMemory, steps: &StepCodes) -> (Tensor<3>, PrefixMemory) {
    let ([batch, seq_len, e], heads) = (values.dims(), scores.dims()[2]);
    let device = values.device();
    // One score and one log-weight per channel, equal within a head.
    let spread = |x: Tensor<3>| {
        let [batch, steps, heads] = x.dims();
        if batch * steps == 0 {
            return Tensor::zeros([batch, steps, e], &device);
        }
        x.reshape([batch, steps, heads, 1]).expand([batch, steps, heads, e / heads]).reshape([batch, steps, e])
    };
    let log_weight = spread(memory.log_weight.reshape([batch, 1, heads])).squeeze_dim(1);
    let empty = Tensor::full([e], EMPTY_LOG_WEIGHT, &device);
    let mut stepwise = Stepwise::new(Tensor::cat(vec![spread(scores), values], 2), steps);
    let [mean, log_weight] = stepwise.run([(Some(memory.mean), None), (Some(log_weight), Some(empty))], e, |x, [mean, log_weight]| {
        let [s, v] = [0, 1].map(|i| x.clone().narrow(1, i * e, e));
        let ahead = s.clone() - log_weight.clone();
        let next = mean.clone() + activation::sigmoid(ahead.clone()) * (v - mean);
        [next, log_weight.max_pair(s) + (-ahead.abs()).exp().log1p()]
    });
    let first = log_weight.reshape([batch, heads, e / heads]).narrow(2, 0, 1).reshape([batch, heads]);
    let y = if seq_len == 0 { Tensor::zeros([batch, 0, e], &device) } else { stepwise.outputs() };
    (y, PrefixMemory { mean, log_weight: first })
}

#[derive(Debug)]
struct Op {
    steps: StepCodes,
}

impl Op {
    fn arguments<'a>(&'a self, [scores, values, mean, log_weight]: [&'a FlexTensor; 4]) -> (Shape, kernel::Inputs<'a>, kernel::Start<'a>) {
        let ([batch, seq_len, width], [_, _, heads]) = (dims(values), dims::<3>(scores));
        let start = kernel::Start { memory: Some([slice(mean), slice(log_weight)]), segments: self.steps.kernel() };
        (Shape { batch, seq_len, width }, kernel::Inputs { heads, scores: slice(scores), values: slice(values) }, start)
    }
}

impl FusedOp for Op {
    fn keeps(&self) -> Keeps {
        Keeps { inputs: (0..4).collect(), outputs: vec![0, 3] }
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let (sizes, arguments, start) = self.arguments(std::array::from_fn(|i| &inputs[i]));
        outputs([1, 2, 3, 0].map(|i: usize| shape(&inputs[i])), |[y, mean, log_weight, shares]| {
            kernel::forward(sizes, arguments, start, y, mean, log_weight, shares);
        })
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], kept: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let inputs: [&FlexTensor; 4] = std::array::from_fn(|i| inputs[i].as_ref().expect("kept"));
        let [y, shares] = [0, 3].map(|i: usize| slice(kept[i].as_ref().expect("kept")));
        let (sizes, arguments, start) = self.arguments(inputs);
        let [d_y, d_mean_last, d_log_weight_last] = [0, 1, 2].map(|i: usize| optional(d_outputs[i].as_ref()));
        let upstream = kernel::Upstream { y, shares, d_y, d_mean_last, d_log_weight_last };
        outputs(inputs.map(shape), |[d_scores, d_values, d_mean, d_log_weight]| {
            kernel::backward(sizes, arguments, start, upstream, kernel::Gradients { d_scores, d_values, d_mean, d_log_weight });
        })
    }
}
