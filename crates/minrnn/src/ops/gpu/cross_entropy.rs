//! Masked softmax cross-entropy on a device: a cube takes eight rows, 32 lanes each. Nothing is copied to the host.

use burn::backend::TensorMetadata;
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use super::super::cross_entropy::Op;
use super::column_sums::{column_sums, largest_over_row, over_row};
use super::op::GpuOp;
use super::rows::row;
use super::tensors::{LANES, Like, ROWS, arg, arg_or, cubes, dims, empty, empty_like, square, upload};

/// The loss of `[rows, classes]` logits on a device.
struct Problem {
    rows: usize,
    classes: usize,
    cubes: usize,
    targets: CubeTensor,
    weights: Option<CubeTensor>,
}

impl Op {
    /// 1 over the sum of the weights, 0 where that is 0.
    fn share(&self) -> f32 {
        self.by_weight(1.0)
    }

    fn problem(&self, logits: &CubeTensor) -> Problem {
        let [rows, classes] = dims(logits);
        Problem {
            rows,
            classes,
            cubes: rows.div_ceil(ROWS),
            targets: self.uploaded.get(logits, &self.targets),
            weights: self.mask.as_deref().map(|mask| upload(logits, mask)),
        }
    }
}

impl GpuOp for Op {
    fn outputs_like(&self, _: &[Like]) -> Vec<Like> {
        vec![Like::f32([1])]
    }

    fn forward(&self, inputs: &[CubeTensor]) -> Vec<CubeTensor> {
        let logits = &inputs[0];
        let Problem { rows, classes, cubes: count, targets, weights } = self.problem(logits);
        let losses = empty(logits, [rows, 1]);
        // SAFETY: the kernel stays inside the buffers.
        unsafe {
            forward::launch_unchecked(
                &logits.client,
                cubes(count),
                square(),
                arg(logits),
                arg(&targets),
                arg_or(weights.as_ref(), logits),
                arg(&losses),
                rows,
                classes,
                self.share(),
                count,
                weights.is_some(),
            );
        }
        vec![column_sums(&losses)]
    }

    fn backward(&self, inputs: &[Option<CubeTensor>], _: &[Option<CubeTensor>], d_outputs: &[Option<CubeTensor>]) -> Vec<CubeTensor> {
        let logits = inputs[0].as_ref().expect("kept");
        let d_loss = d_outputs[0].as_ref().expect("the only output");
        debug_assert_eq!(d_loss.shape().num_elements(), 1);
        let Problem { rows, classes, cubes: count, targets, weights } = self.problem(logits);
        let d_logits = empty_like(logits);
        // SAFETY: the kernel stays inside the buffers.
        unsafe {
            backward::launch_unchecked(
                &logits.client,
                cubes(count),
                square(),
                arg(logits),
                arg(&targets),
                arg_or(weights.as_ref(), logits),
                arg(d_loss),
                arg(&d_logits),
                rows,
                classes,
                self.share(),
                count,
                weights.is_some(),
            );
        }
        vec![d_logits]
    }
}

/// The largest of a row, and Σ exp(logit − largest).
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct Softmax {
    largest: f32,
    sum: f32,
}

#[cube]
fn softmax_of(logits: &[f32], from: usize, classes: usize) -> Softmax {
    let mut largest = logits[from];
    let mut class = UNIT_POS_X as usize;
    while class < classes {
        largest = max(largest, logits[from + class]);
        class += LANES;
    }
    let largest = largest_over_row(largest);
    let mut sum = 0.0f32;
    let mut class = UNIT_POS_X as usize;
    while class < classes {
        sum += (logits[from + class] - largest).exp();
        class += LANES;
    }
    Softmax { largest, sum: over_row(sum) }
}

/// The weighted loss of every row, already divided by the sum of weights.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
pub(super) fn forward(
    logits: &[f32],
    targets: &[i32],
    weights: &[f32],
    losses: &mut [f32],
    rows: usize,
    classes: usize,
    share: f32,
    cubes: usize,
    #[comptime] masked: bool,
) {
    if CUBE_POS >= cubes {
        terminate!();
    }
    let row = row(rows, classes);
    let from = row.from;
    let softmax = softmax_of(logits, from, classes);
    if row.live && UNIT_POS_X == 0 {
        let mut weight = share;
        if comptime!(masked) {
            weight *= weights[row.number];
        }
        let mut loss = 0.0f32;
        if weight != 0.0 {
            loss = weight * (softmax.sum.ln() - (logits[from + targets[row.number] as usize] - softmax.largest));
        }
        losses[row.number] = loss;
    }
}

#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
pub(super) fn backward(
    logits: &[f32],
    targets: &[i32],
    weights: &[f32],
    d_loss: &[f32],
    d_logits: &mut [f32],
    rows: usize,
    classes: usize,
    share: f32,
    cubes: usize,
    #[comptime] masked: bool,
) {
    if CUBE_POS >= cubes {
        terminate!();
    }
    let row = row(rows, classes);
    let from = row.from;
    let softmax = softmax_of(logits, from, classes);
    if row.live {
        let mut weight = share * d_loss[0];
        let mut scored = true.runtime();
        if comptime!(masked) {
            weight *= weights[row.number];
            scored = weights[row.number] != 0.0;
        }
        let target = targets[row.number] as usize;
        let scale = weight / softmax.sum;
        let mut class = UNIT_POS_X as usize;
        while class < classes {
            let likely = (logits[from + class] - softmax.largest).exp() * scale;
            d_logits[from + class] = select(scored, likely - select(class == target, weight, 0.0f32), 0.0f32);
            class += LANES;
        }
    }
}
