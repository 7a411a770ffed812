//! Causal depthwise convolution on a device: every unit takes one channel and a few steps, whose inputs it holds in registers.

use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;
use minrnn_kernels::segments::{PADDING, RESET};

use super::super::conv::Op;
use super::GpuOp;
use super::column_sums::{column_sums, over_cube};
use super::tensors::{LANES, ROWS, arg, arg_or, cubes, dims, elements, empty, empty_like, square};

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
    fn forward(&self, inputs: &[CubeTensor]) -> Vec<CubeTensor> {
        let [x, weight, bias] = [0, 1, 2].map(|i| &inputs[i]);
        let window = self.window.map(|i| &inputs[i]);
        let codes = self.steps.on_device(x);
        let (cut, plan) = (Cut::new(x, 1), self.plan());
        let y = empty_like(x);
        let next = empty(x, [cut.batch, plan.past, cut.width]);
        // SAFETY: the kernels stay inside the buffers; those they have no use for stand in for absent ones.
        unsafe {
            forward::launch_unchecked(
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
            );
            if plan.past > 0 {
                let (count, dim) = elements(cut.batch * cut.width);
                let (window, codes) = (arg_or(window, x), arg_or(codes.as_ref(), x));
                next_window::launch_unchecked(&x.client, count, dim, arg(x), window, codes, arg(&next), cut.sizes(), cut.batch, plan);
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
        // SAFETY: as above.
        unsafe {
            backward::launch_unchecked(
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
            );
            if window.is_some() && plan.past > 0 {
                let (count, dim) = elements(cut.batch * cut.width);
                let (codes, d_y, d_next) = (arg_or(codes.as_ref(), x), arg_or(d_y, x), arg_or(d_next, x));
                let sizes = cut.sizes();
                window_gradient::launch_unchecked(
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
                );
            }
        }
        let sums = column_sums(&sums);
        let d_weight = empty_like(weight);
        let d_bias = empty(x, [cut.width]);
        let (count, dim) = elements(cut.width);
        // SAFETY: as above.
        unsafe { split_sums::launch_unchecked(&x.client, count, dim, arg(&sums), arg(&d_weight), arg(&d_bias), cut.width, plan) };
        let mut d_inputs = vec![d_x, d_weight, d_bias];
        d_inputs.extend(self.window.map(|_| d_window));
        d_inputs
    }
}

/// What a unit works on.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct Place {
    b: usize,
    block: usize,
    /// The channel, inside the width.
    c: usize,
    live: bool,
}

#[cube]
fn place(sizes: &Sizes) -> Place {
    let group = CUBE_POS % sizes.groups;
    let rest = CUBE_POS / sizes.groups;
    let c = group * LANES + UNIT_POS_X as usize;
    Place { b: rest / sizes.blocks, block: rest % sizes.blocks, c: min(c, sizes.width - 1), live: c < sizes.width }
}

#[cube]
fn code_of(codes: &[i32], row: usize, #[comptime] plan: Plan) -> i32 {
    let mut code = 0i32;
    if comptime!(plan.codes) {
        code = codes[row];
    }
    code
}

/// The input at position `p` of the row, counted from the window's first.
#[cube]
fn input_at(x: &[f32], window: &[f32], p: usize, place: &Place, sizes: &Sizes, #[comptime] plan: Plan) -> f32 {
    let past = comptime!(plan.past);
    let mut value = 0.0f32;
    if p >= past {
        value = x[(place.b * sizes.seq_len + min(p - past, sizes.seq_len - 1)) * sizes.width + place.c];
    } else if comptime!(plan.window) {
        value = window[(place.b * past + p) * sizes.width + place.c];
    }
    value
}

#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
fn forward(
    x: &[f32],
    weight: &[f32],
    bias: &[f32],
    window: &[f32],
    codes: &[i32],
    y: &mut [f32],
    sizes: Sizes,
    cubes: usize,
    #[comptime] plan: Plan,
) {
    if CUBE_POS >= cubes {
        terminate!();
    }
    let place = place(&sizes);
    let first = place.block * sizes.block_len + UNIT_POS_Y as usize * STEPS;
    let mut seen = Array::<f32>::new(comptime!(STEPS + plan.past));
    #[unroll]
    for i in 0..comptime!(STEPS + plan.past) {
        seen[i] = input_at(x, window, first + i, &place, &sizes, plan);
    }
    let shift = bias[place.c];
    #[unroll]
    for i in 0..STEPS {
        let t = first + i;
        if t < sizes.seq_len && place.live {
            let row = place.b * sizes.seq_len + t;
            let mut sum = shift;
            let mut reached = true.runtime();
            #[unroll]
            for back in 0..comptime!(plan.past + 1) {
                let tap = weight[place.c * comptime!(plan.past + 1) + comptime!(plan.past - back)];
                sum += select(reached, tap * seen[comptime!(i + plan.past - back)], 0.0f32);
                if comptime!(plan.codes) {
                    if t >= back {
                        reached = reached && codes[row - back] != RESET;
                    }
                }
            }
            let real = code_of(codes, row, plan) != PADDING;
            y[row * sizes.width + place.c] = select(real, sum, 0.0f32);
        }
    }
}

/// Number of real steps of row `b`.
#[cube]
fn length_of(codes: &[i32], b: usize, seq_len: usize, #[comptime] plan: Plan) -> usize {
    let mut length = seq_len;
    if comptime!(plan.codes) {
        let mut padded = true.runtime();
        while padded {
            padded = length > 0;
            if padded {
                padded = codes[b * seq_len + length - 1] == PADDING;
            }
            if padded {
                length -= 1;
            }
        }
    }
    length
}

/// The last K − 1 real inputs of each row, zeros where a reset lies between.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
fn next_window(x: &[f32], window: &[f32], codes: &[i32], next: &mut [f32], sizes: Sizes, batch: usize, #[comptime] plan: Plan) {
    if ABSOLUTE_POS >= batch * sizes.width {
        terminate!();
    }
    let past = comptime!(plan.past);
    let b = ABSOLUTE_POS / sizes.width;
    let place = Place { b, block: 0usize.runtime(), c: ABSOLUTE_POS % sizes.width, live: true.runtime() };
    let length = length_of(codes, b, sizes.seq_len, plan);
    let mut reached = true.runtime();
    #[unroll]
    for back in 0..past {
        let j = comptime!(plan.past - 1 - back);
        let p = length + j;
        let value = input_at(x, window, p, &place, &sizes, plan);
        next[(b * past + j) * sizes.width + place.c] = select(reached, value, 0.0f32);
        if comptime!(plan.codes) {
            if p >= past {
                reached = reached && codes[b * sizes.seq_len + p - past] != RESET;
            }
        }
    }
}

/// Gradients of the inputs of the row, and over its block the sums of those of the taps and the bias: `[K + 1, D]`.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
fn backward(
    x: &[f32],
    weight: &[f32],
    window: &[f32],
    codes: &[i32],
    d_y: &[f32],
    d_next: &[f32],
    d_residual: &[f32],
    d_x: &mut [f32],
    sums: &mut [f32],
    sizes: Sizes,
    cubes: usize,
    #[comptime] plan: Plan,
) {
    if CUBE_POS >= cubes {
        terminate!();
    }
    let past = comptime!(plan.past);
    let taps = comptime!(plan.past + 1);
    let place = place(&sizes);
    let c = place.c;
    let width = sizes.width;
    let mut d_taps = Array::<f32>::new(taps);
    let mut filter = Array::<f32>::new(taps);
    #[unroll]
    for j in 0..taps {
        d_taps[j] = 0.0f32;
        filter[j] = weight[c * taps + j];
    }
    let mut d_bias = 0.0f32;
    let mut seen = Array::<f32>::new(comptime!(STEPS + plan.past));
    let mut arriving = Array::<f32>::new(comptime!(STEPS + plan.past));
    let mut length = sizes.seq_len;
    if comptime!(plan.d_next) {
        length = length_of(codes, place.b, sizes.seq_len, plan);
    }
    let start = place.block * sizes.block_len;
    let end = min(start + sizes.block_len, sizes.seq_len);
    let mut first = start + UNIT_POS_Y as usize * STEPS;
    while first < end {
        #[unroll]
        for i in 0..comptime!(STEPS + plan.past) {
            seen[i] = input_at(x, window, first + i, &place, &sizes, plan);
            let t = first + i;
            let mut d = 0.0f32;
            if comptime!(plan.d_y) {
                let row = place.b * sizes.seq_len + min(t, sizes.seq_len - 1);
                let real = t < sizes.seq_len && code_of(codes, row, plan) != PADDING;
                d = select(real, d_y[row * width + c], 0.0f32);
            }
            arriving[i] = d;
        }
        #[unroll]
        for i in 0..STEPS {
            let t = first + i;
            if t < end && place.live {
                let row = place.b * sizes.seq_len + t;
                // What step t took from the inputs before it.
                let here = arriving[i];
                d_bias += here;
                let mut reached = true.runtime();
                #[unroll]
                for back in 0..taps {
                    d_taps[comptime!(plan.past - back)] += select(reached, here * seen[comptime!(i + plan.past - back)], 0.0f32);
                    if comptime!(plan.codes) {
                        if t >= back {
                            reached = reached && codes[row - back] != RESET;
                        }
                    }
                }
                // What the steps after t took from its input.
                let mut d = here * filter[past];
                let mut open = true.runtime();
                #[unroll]
                for ahead in 1..taps {
                    if comptime!(plan.codes) {
                        if t + ahead < sizes.seq_len {
                            open = open && codes[row + ahead] != RESET;
                        }
                    }
                    d += select(open, arriving[comptime!(i + ahead)] * filter[comptime!(plan.past - ahead)], 0.0f32);
                }
                if comptime!(plan.d_next && plan.past > 0) {
                    // Step t stands in the next window, unless a reset cuts it off.
                    if t < length && t + past >= length {
                        let mut kept = true.runtime();
                        if comptime!(plan.codes) {
                            let mut later = t + 1;
                            while later < length {
                                kept = kept && codes[place.b * sizes.seq_len + later] != RESET;
                                later += 1;
                            }
                        }
                        d += select(kept, d_next[(place.b * past + t + past - length) * width + c], 0.0f32);
                    }
                }
                d = select(code_of(codes, row, plan) != PADDING, d, 0.0f32);
                if comptime!(plan.d_residual) {
                    d += d_residual[row * width + c];
                }
                d_x[row * width + c] = d;
            }
        }
        first += comptime!(ROWS * STEPS);
    }
    let out = (place.b * sizes.blocks + place.block) * (taps + 1) * width + c;
    #[unroll]
    for j in 0..taps {
        let sum = over_cube(d_taps[j]);
        if UNIT_POS_Y == 0 && place.live {
            sums[out + j * width] = sum;
        }
    }
    let sum = over_cube(d_bias);
    if UNIT_POS_Y == 0 && place.live {
        sums[out + taps * width] = sum;
    }
}

/// The gradient of the window before the row.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
fn window_gradient(
    weight: &[f32],
    codes: &[i32],
    d_y: &[f32],
    d_next: &[f32],
    d_window: &mut [f32],
    sizes: Sizes,
    batch: usize,
    #[comptime] plan: Plan,
) {
    if ABSOLUTE_POS >= batch * sizes.width {
        terminate!();
    }
    let past = comptime!(plan.past);
    let taps = comptime!(plan.past + 1);
    let b = ABSOLUTE_POS / sizes.width;
    let c = ABSOLUTE_POS % sizes.width;
    let length = length_of(codes, b, sizes.seq_len, plan);
    #[unroll]
    for p in 0..past {
        let mut d = 0.0f32;
        let mut open = true.runtime();
        #[unroll]
        for t in 0..comptime!(p + 1) {
            if t < length {
                let row = b * sizes.seq_len + t;
                open = open && code_of(codes, row, plan) != RESET;
                if comptime!(plan.d_y) {
                    d += select(open, d_y[row * sizes.width + c] * weight[c * taps + comptime!(p - t)], 0.0f32);
                }
            }
        }
        if comptime!(plan.d_next) {
            // The row is so short that the position stands in the next window too.
            if p >= length {
                d += select(open, d_next[(b * past + p - length) * sizes.width + c], 0.0f32);
            }
        }
        d_window[(b * past + p) * sizes.width + c] = d;
    }
}

/// `[K + 1, D]` into the layout of the weight `[D, 1, K]` and the bias.
#[cube(launch_unchecked)]
fn split_sums(sums: &[f32], d_weight: &mut [f32], d_bias: &mut [f32], width: usize, #[comptime] plan: Plan) {
    if ABSOLUTE_POS >= width {
        terminate!();
    }
    let taps = comptime!(plan.past + 1);
    #[unroll]
    for j in 0..taps {
        d_weight[ABSOLUTE_POS * taps + j] = sums[j * width + ABSOLUTE_POS];
    }
    d_bias[ABSOLUTE_POS] = sums[taps * width + ABSOLUTE_POS];
}
