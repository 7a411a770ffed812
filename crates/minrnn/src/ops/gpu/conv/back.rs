//! The gradients of the convolution.

use cubecl::ir::ElemType;
use cubecl::prelude::*;
use minrnn_kernels::segments::{PADDING, RESET};

use super::super::column_sums::over_cube;
use super::super::tensors::ROWS;
use super::place::{code_of, input_at, length_of, place};
use super::{Plan, STEPS, Sizes};

/// Gradients of the inputs of the row, and over its block the sums of those of the taps and the bias: `[K + 1, D]`.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
pub(super) fn backward<A: Float>(
    x: &[f32],
    weight: &[f32],
    window: &[f32],
    codes: &[i32],
    d_y: &[A],
    d_next: &[f32],
    d_residual: &[f32],
    d_x: &mut [f32],
    sums: &mut [f32],
    sizes: Sizes,
    cubes: usize,
    #[comptime] plan: Plan,
    #[define(A)] _format: ElemType,
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
                d = select(real, f32::cast_from(d_y[row * width + c]), 0.0f32);
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
pub(super) fn window_gradient<A: Float>(
    weight: &[f32],
    codes: &[i32],
    d_y: &[A],
    d_next: &[f32],
    d_window: &mut [f32],
    sizes: Sizes,
    batch: usize,
    #[comptime] plan: Plan,
    #[define(A)] _format: ElemType,
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
                    d += select(open, f32::cast_from(d_y[row * sizes.width + c]) * weight[c * taps + comptime!(p - t)], 0.0f32);
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
pub(super) fn split_sums(sums: &[f32], d_weight: &mut [f32], d_bias: &mut [f32], width: usize, #[comptime] plan: Plan) {
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
