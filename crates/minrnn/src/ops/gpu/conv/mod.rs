//! Causal depthwise convolution on a device: every unit takes one channel and a few steps, whose inputs it holds in registers.

mod back;
#[cfg(feature = "cuda-source")]
mod cuda_source;
mod forward;
mod place;

#[cfg(feature = "cuda-source")]
pub use cuda_source::cuda_sources;

use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use super::super::conv::Op;
use super::column_sums::column_sums;
use super::op::GpuOp;
use super::tensors::{LANES, Like, ROWS, arg, arg_or, cubes, dims, elements, empty, empty_like, empty_like_in, format, square};

/// Steps that a unit computes.
const STEPS: usize = 8;
/// Tiles of [`ROWS`] × [`STEPS`] steps that a cube of the backward pass walks through.
const TILES: usize = 4;

/// What a kernel is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Plan {
    /// Inputs before the current one that a step sees: K − 1.
    past: usize,
    window: bool,
    codes: bool,
    d_y: bool,
    d_next: bool,
    d_residual: bool,
}

#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct Sizes {
    seq_len: usize,
    width: usize,
    groups: usize,
    /// Blocks of steps of a row.
    blocks: usize,
    block_len: usize,
}

/// Sizes of the problem, and how it is cut into blocks of steps.
#[derive(Debug, Clone, Copy)]
struct Cut {
    batch: usize,
    seq_len: usize,
    width: usize,
    groups: usize,
    blocks: usize,
    block_len: usize,
}

impl Cut {
    fn new(x: &CubeTensor, tiles: usize) -> Self {
        let [batch, seq_len, width] = dims(x);
        let block_len = tiles * ROWS * STEPS;
        Self { batch, seq_len, width, groups: width.div_ceil(LANES), blocks: seq_len.div_ceil(block_len), block_len }
    }

    fn cubes(&self) -> usize {
        self.batch * self.groups * self.blocks
    }

    fn sizes(&self) -> SizesLaunch {
        SizesLaunch::new(self.seq_len, self.width, self.groups, self.blocks, self.block_len)
    }
}

impl Op {
    fn plan(&self) -> Plan {
        Plan {
            past: self.kernel_size - 1,
            window: self.window.is_some(),
            codes: !self.steps.is_dense(),
            d_y: false,
            d_next: false,
            d_residual: false,
        }
    }
}

impl GpuOp for Op {
    fn outputs_like(&self, inputs: &[Like]) -> Vec<Like> {
        let [batch, _, width] = inputs[0].shape.dims();
        let next = Like::f32([batch, self.kernel_size - 1, width]);
        [inputs[0].cast(self.format.into()), next].into_iter().chain(self.gives_input.then(|| inputs[0].clone())).collect()
    }

    fn forward(&self, inputs: &[CubeTensor]) -> Vec<CubeTensor> {
        let [x, weight, bias] = [0, 1, 2].map(|i| &inputs[i]);
        let window = self.window.map(|i| &inputs[i]);
        let codes = self.steps.on_device(x);
        let (cut, plan) = (Cut::new(x, 1), self.plan());
        let y = empty_like_in(self.format.into(), x);
        let next = empty(x, [cut.batch, plan.past, cut.width]);
        // SAFETY: the kernels stay inside the buffers; those they have no use for stand in for absent ones.
        unsafe {
            forward::forward::launch_unchecked(
                &x.client,
                cubes(cut.cubes()),
                square(),
                arg(x),
                arg(weight),
                arg(bias),
                arg_or(window, x),
                arg_or(codes.as_ref(), x),
                arg(&y),
                cut.sizes(),
                cut.cubes(),
                plan,
                format(y.dtype),
            );
            if plan.past > 0 {
                let (count, dim) = elements(cut.batch * cut.width);
                let (window, codes) = (arg_or(window, x), arg_or(codes.as_ref(), x));
                forward::next_window::launch_unchecked(
                    &x.client,
                    count,
                    dim,
                    arg(x),
                    window,
                    codes,
                    arg(&next),
                    cut.sizes(),
                    cut.batch,
                    plan,
                );
            }
        }
        let mut outputs = vec![y, next];
        outputs.extend(self.gives_input.then(|| x.clone()));
        outputs
    }

    fn backward(&self, inputs: &[Option<CubeTensor>], _: &[Option<CubeTensor>], d_outputs: &[Option<CubeTensor>]) -> Vec<CubeTensor> {
        let [x, weight] = [0, 1].map(|i| inputs[i].as_ref().expect("kept"));
        let window = self.window.and_then(|i| inputs[i].as_ref());
        let [d_y, d_next, d_residual] = [0, 1, 2].map(|i| d_outputs.get(i).and_then(Option::as_ref));
        let codes = self.steps.on_device(x);
        let cut = Cut::new(x, TILES);
        let plan = Plan { d_y: d_y.is_some(), d_next: d_next.is_some(), d_residual: d_residual.is_some(), ..self.plan() };
        let taps = self.kernel_size;
        let d_x = empty_like(x);
        let d_window = empty(x, [cut.batch, plan.past, cut.width]);
        let sums = empty(x, [cut.batch * cut.blocks, (taps + 1) * cut.width]);
        // SAFETY: every block of a row has sums of its own; gradients have the sizes of their inputs, and absent inputs are not read.
        unsafe {
            back::backward::launch_unchecked(
                &x.client,
                cubes(cut.cubes()),
                square(),
                arg(x),
                arg(weight),
                arg_or(window, x),
                arg_or(codes.as_ref(), x),
                arg_or(d_y, x),
                arg_or(d_next, x),
                arg_or(d_residual, x),
                arg(&d_x),
                arg(&sums),
                cut.sizes(),
                cut.cubes(),
                plan,
                format(self.format.into()),
            );
            if window.is_some() && plan.past > 0 {
                let (count, dim) = elements(cut.batch * cut.width);
                let (codes, d_y, d_next) = (arg_or(codes.as_ref(), x), arg_or(d_y, x), arg_or(d_next, x));
                let sizes = cut.sizes();
                back::window_gradient::launch_unchecked(
                    &x.client,
                    count,
                    dim,
                    arg(weight),
                    codes,
                    d_y,
                    d_next,
                    arg(&d_window),
                    sizes,
                    cut.batch,
                    plan,
                    format(self.format.into()),
                );
            }
        }
        let sums = column_sums(&sums);
        let d_weight = empty_like(weight);
        let d_bias = empty(x, [cut.width]);
        let (count, dim) = elements(cut.width);
        // SAFETY: `sums` has a row for each tap and the bias, `d_weight` the taps of every channel.
        unsafe { back::split_sums::launch_unchecked(&x.client, count, dim, arg(&sums), arg(&d_weight), arg(&d_bias), cut.width, plan) };
        let mut d_inputs = vec![d_x, d_weight, d_bias];
        d_inputs.extend(self.window.map(|_| d_window));
        d_inputs
    }
}
