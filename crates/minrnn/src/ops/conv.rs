//! Causal depthwise convolution over time, with a carried window.

use burn::backend::DispatchTensor;
use burn::backend::flex::FlexTensor;
use burn::tensor::{FloatDType, Tensor, TensorData};
use minrnn_kernels::segments::{PADDING, RESET};
use minrnn_kernels::{Shape, conv as kernel};

use super::flex::{InputList, dims, optional, outputs, shape, slice};
use super::fused::{FusedOp, Keeps, has_kernels, output, run};
#[cfg(feature = "gpu")]
use super::gpu::op::GpuOp;
use super::shapes::{expect_shape, expect_shape_if_any};
use super::steps::StepCodes;

/// y_t = bias + Σ_j weight_{K−1−j} ⊙ x_{t−j}, one filter per channel (a causal depthwise convolution).
///
/// # Shapes
/// * `x` `[B, T, D]`, `weight` `[D, 1, K]` (PyTorch's layout: the last tap applies to the current step), `bias` `[D]`, `window`
///   `[B, K − 1, D]` the inputs before `x`, oldest first (absent: zeros) → y `[B, T, D]` and the next window `[B, K − 1, D]`
///
/// # Panics
/// When shapes do not fit.
pub fn causal_conv(
    x: Tensor<3>,
    weight: Tensor<3>,
    bias: Tensor<1>,
    window: Option<Tensor<3>>,
    steps: &StepCodes,
) -> (Tensor<3>, Tensor<3>) {
    expect_fits("causal_conv", &x, &weight, &bias, window.as_ref());
    if !has_kernels(&x) {
        return composed(x, weight, bias, window, steps);
    }
    let mut outputs = fused(x, weight, bias, window, steps, None).into_iter();
    (output(outputs.next()), output(outputs.next()))
}

/// [`causal_conv`] of x, and x itself for a residual connection: both gradients of x are summed inside the backward pass of the
/// convolution. The first output is in `format`, which is f32 on CPUs.
///
/// # Shapes
/// As [`causal_conv`]; the last output is x.
///
/// # Panics
/// When shapes do not fit.
pub fn causal_conv_residual(
    x: Tensor<3>,
    weight: Tensor<3>,
    bias: Tensor<1>,
    window: Option<Tensor<3>>,
    steps: &StepCodes,
    format: FloatDType,
) -> (Tensor<3>, Tensor<3>, Tensor<3>) {
    expect_fits("causal_conv_residual", &x, &weight, &bias, window.as_ref());
    if !has_kernels(&x) {
        let (y, window) = composed(x.clone(), weight, bias, window, steps);
        return (y, window, x);
    }
    let mut outputs = fused(x, weight, bias, window, steps, Some(format)).into_iter();
    (output(outputs.next()), output(outputs.next()), output(outputs.next()))
}

/// Refuses arguments of the operation `op` other than a filter for each channel of `x` `[B, T, D]`, their bias and window.
///
/// # Panics
/// When shapes do not fit.
#[track_caller]
fn expect_fits(op: &str, x: &Tensor<3>, weight: &Tensor<3>, bias: &Tensor<1>, window: Option<&Tensor<3>>) {
    let ([batch, _, width], [_, _, taps]) = (x.dims(), weight.dims());
    assert!(taps > 0, "{op}: expected a weight of at least one tap, found none");
    expect_shape(op, "weight", weight, [width, 1, taps]);
    expect_shape(op, "bias", bias, [width]);
    expect_shape_if_any(op, "window", window, [batch, taps - 1, width]);
}

fn fused(
    x: Tensor<3>,
    weight: Tensor<3>,
    bias: Tensor<1>,
    window: Option<Tensor<3>>,
    steps: &StepCodes,
    and_input: Option<FloatDType>,
) -> Vec<DispatchTensor> {
    let kernel_size = weight.dims()[2];
    let mut inputs = InputList::default();
    inputs.add(x);
    inputs.add(weight);
    inputs.add(bias);
    let window = inputs.add_optional(window);
    let (gives_input, format) = (and_input.is_some(), and_input.unwrap_or(FloatDType::F32));
    run(Op { kernel_size, window, steps: steps.clone(), gives_input, format }, inputs.into_vec())
}

/// The same by tensor operations: one shifted, masked copy per tap.
pub(super) fn composed(
    x: Tensor<3>,
    weight: Tensor<3>,
    bias: Tensor<1>,
    window: Option<Tensor<3>>,
    steps: &StepCodes,
) -> (Tensor<3>, Tensor<3>) {
    let [batch, seq_len, width] = x.dims();
    let k = weight.dims()[2];
    let device = x.device();
    let window = window.unwrap_or_else(|| Tensor::zeros([batch, k - 1, width], &device));
    if seq_len == 0 {
        return (x, window);
    }
    let padded = if k == 1 { x } else { Tensor::cat(vec![window, x], 1) };
    let mut y = Tensor::zeros([batch, seq_len, width], &device) + bias.reshape([1, 1, width]);
    for tap in 0..k {
        let back = k - 1 - tap;
        let shifted = padded.clone().narrow(1, tap, seq_len) * reaches(batch, seq_len, back, steps, &device);
        y = y + shifted * weight.clone().narrow(2, tap, 1).reshape([1, 1, width]);
    }
    if let Some(padding) = steps.padding_mask(&device) {
        y = y * (-padding + 1.0);
    }
    (y, next_window(padded, k, seq_len, steps))
}

/// 1 where the input `back` steps before each step belongs to the same segment: `[B, T, 1]`.
fn reaches(batch: usize, seq_len: usize, back: usize, steps: &StepCodes, device: &burn::tensor::Device) -> Tensor<3> {
    let mut mask = vec![1.0f32; batch * seq_len];
    for b in 0..batch {
        for t in 0..seq_len {
            if (t.saturating_sub(back.saturating_sub(1))..=t).any(|s| back > 0 && steps.code(b, s) == RESET) {
                mask[b * seq_len + t] = 0.0;
            }
        }
    }
    Tensor::from_data(TensorData::new(mask, [batch, seq_len, 1]), device)
}

/// The last K − 1 real inputs of each row, with zeros for those before a reset.
fn next_window(padded: Tensor<3>, k: usize, seq_len: usize, steps: &StepCodes) -> Tensor<3> {
    let [batch, _, width] = padded.dims();
    let device = padded.device();
    if k == 1 {
        return Tensor::zeros([batch, 0, width], &device);
    }
    let rows: Vec<Tensor<3>> = (0..batch)
        .map(|b| {
            let length = (0..seq_len).position(|t| steps.code(b, t) == PADDING).unwrap_or(seq_len);
            let last_reset = (0..length).rev().find(|&t| steps.code(b, t) == RESET);
            let keep: Vec<f32> = (0..k - 1).map(|j| if last_reset.is_some_and(|r| length + j < r + k - 1) { 0.0 } else { 1.0 }).collect();
            let mask = Tensor::from_data(TensorData::new(keep, [1, k - 1, 1]), &device);
            padded.clone().narrow(0, b, 1).narrow(1, length, k - 1) * mask
        })
        .collect();
    if rows.is_empty() { Tensor::zeros([0, k - 1, width], &device) } else { Tensor::cat(rows, 0) }
}

#[derive(Debug)]
pub(super) struct Op {
    pub(super) kernel_size: usize,
    pub(super) window: Option<usize>,
    pub(super) steps: StepCodes,
    pub(super) gives_input: bool,
    /// The format of the first output.
    #[cfg_attr(not(feature = "gpu"), allow(dead_code, reason = "only GPUs have several"))]
    pub(super) format: FloatDType,
}

fn shape_of(x: &FlexTensor) -> Shape {
    let [batch, seq_len, width] = dims(x);
    Shape { batch, seq_len, width }
}

impl Op {
    fn inputs<'a>(&'a self, input: impl Fn(usize) -> Option<&'a FlexTensor>) -> kernel::Inputs<'a> {
        let [x, weight] = [0, 1].map(|i| slice(input(i).expect("kept")));
        kernel::Inputs { x, weight, window: self.window.and_then(|i| optional(input(i))), segments: self.steps.kernel() }
    }
}

impl FusedOp for Op {
    fn keeps(&self) -> Keeps {
        Keeps { inputs: [0, 1].into_iter().chain(self.window).collect(), outputs: vec![] }
    }

    #[cfg(feature = "gpu")]
    fn gpu(&self) -> Option<&dyn GpuOp> {
        Some(self)
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let sizes = shape_of(&inputs[0]);
        let next = [sizes.batch, self.kernel_size - 1, sizes.width].into();
        let mut given = outputs([shape(&inputs[0]), next], |[y, next]| {
            kernel::forward(sizes, self.kernel_size, self.inputs(|i| Some(&inputs[i])), slice(&inputs[2]), y, next);
        });
        given.extend(self.gives_input.then(|| inputs[0].clone()));
        given
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], _: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let kept = |i: usize| inputs[i].as_ref();
        let [x, weight] = [0, 1].map(|i| kept(i).expect("kept"));
        let sizes = shape_of(x);
        let [d_y, d_window_last, d_residual] = [0, 1, 2].map(|i| optional(d_outputs.get(i).and_then(Option::as_ref)));
        let upstream = kernel::Upstream { d_y, d_window_last, d_residual };
        let window = [sizes.batch, self.kernel_size - 1, sizes.width];
        let mut d_inputs = outputs([shape(x), shape(weight), [sizes.width].into(), window.into()], |[d_x, d_weight, d_bias, d_window]| {
            let d = kernel::Gradients { d_x, d_weight, d_bias, d_window };
            kernel::backward(sizes, self.kernel_size, self.inputs(kept), upstream, d);
        });
        d_inputs.truncate(3 + usize::from(self.window.is_some()));
        d_inputs
    }
}
