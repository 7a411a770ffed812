//! The outputs of the convolution, and the window at the end of the row.

use cubecl::ir::ElemType;
use cubecl::prelude::*;
use minrnn_kernels::segments::{PADDING, RESET};

use super::place::{Place, code_of, input_at, length_of, place};
use super::{Plan, STEPS, Sizes};

#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
pub(super) fn forward<A: Float>(
    x: &[f32],
    weight: &[f32],
    bias: &[f32],
    window: &[f32],
    codes: &[i32],
    y: &mut [A],
    sizes: Sizes,
    cubes: usize,
    #[comptime] plan: Plan,
    #[define(A)] _format: ElemType,
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
            y[row * sizes.width + place.c] = A::cast_from(select(real, sum, 0.0f32));
        }
    }
}

/// The last K − 1 real inputs of each row, zeros where a reset lies between.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
pub(super) fn next_window(x: &[f32], window: &[f32], codes: &[i32], next: &mut [f32], sizes: Sizes, batch: usize, #[comptime] plan: Plan) {
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
