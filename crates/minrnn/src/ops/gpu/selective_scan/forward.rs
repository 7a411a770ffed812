//! The forward kernels.

use cubecl::prelude::*;

use super::super::chunks::{Sizes, place};
use super::tile::{nothing_passed, pass, read_tile, row_of, silu, tile, write_effect};
use super::{Plan, STEPS};

/// y, the last state `[B, N, E]` and the states before every tile `[B, tiles, N, E]`. `entering` are the states after the chunks.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
pub(super) fn walk(
    u: &[f32],
    delta: &[f32],
    delta_bias: &[f32],
    a: &[f32],
    bc: &[f32],
    skip: &[f32],
    z: &[f32],
    h0: &[f32],
    entering: &[f32],
    codes: &[i32],
    y: &mut [f32],
    last: &mut [f32],
    boundaries: &mut [f32],
    sizes: Sizes,
    tiles: usize,
    cubes: usize,
    #[comptime] plan: Plan,
) {
    if CUBE_POS >= cubes {
        terminate!();
    }
    let d_state = comptime!(plan.d_state);
    let mut tile = tile(plan);
    let mut states = Array::<f32>::new(d_state);
    let mut sums = Array::<f32>::new(STEPS);
    let place = place(&sizes);
    let c = place.c;
    let width = sizes.width;
    let bias = delta_bias[c];
    let passed = skip[c];
    for n in 0..d_state {
        states[n] = 0.0f32;
        if comptime!(plan.h0) {
            states[n] = h0[(place.b * d_state + n) * width + c];
        }
        if comptime!(plan.chunked) {
            if place.chunk > 0 {
                states[n] = entering[((place.b * sizes.chunks + place.chunk - 1) * d_state + n) * width + c];
            }
        }
    }
    let mut at = place.start;
    while at < place.end {
        read_tile(u, delta, bias, bc, codes, &mut tile, at, &place, &sizes, plan);
        #[unroll]
        for i in 0..STEPS {
            sums[i] = passed * tile.u[i];
        }
        let boundary = (place.b * tiles + at / STEPS) * d_state * width + c;
        for n in 0..d_state {
            let rate = a[c * d_state + n];
            let mut h = states[n];
            if place.live {
                boundaries[boundary + n * width] = h;
            }
            #[unroll]
            for i in 0..STEPS {
                let column = comptime!(2 * i * plan.d_state) + n;
                if comptime!(plan.codes) {
                    h = select(tile.resets[i], 0.0f32, h);
                }
                h = fma((tile.delta[i] * rate).exp(), h, tile.delta[i] * tile.u[i] * tile.bc[column]);
                sums[i] = fma(h, tile.bc[column + d_state], sums[i]);
            }
            states[n] = h;
        }
        #[unroll]
        for i in 0..STEPS {
            if place.live && at + i < place.end {
                let element = row_of(at + i, &place, &sizes) * width + c;
                let mut value = sums[i];
                if comptime!(plan.z) {
                    value *= silu(z[element]).value;
                }
                y[element] = select(tile.real[i], value, 0.0f32);
            }
        }
        at += STEPS;
    }
    if place.live && place.chunk + 1 == sizes.chunks {
        for n in 0..d_state {
            last[(place.b * d_state + n) * width + c] = states[n];
        }
    }
}

/// What every chunk does to a state, h ↦ `keeps` h + `gained`: both `[B, chunks, N, E]`.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
pub(super) fn summarise(
    u: &[f32],
    delta: &[f32],
    delta_bias: &[f32],
    a: &[f32],
    bc: &[f32],
    codes: &[i32],
    keeps: &mut [f32],
    gained: &mut [f32],
    sizes: Sizes,
    cubes: usize,
    #[comptime] plan: Plan,
) {
    if CUBE_POS >= cubes {
        terminate!();
    }
    let d_state = comptime!(plan.d_state);
    let mut tile = tile(plan);
    let mut states = Array::<f32>::new(d_state);
    let place = place(&sizes);
    let c = place.c;
    let bias = delta_bias[c];
    for n in 0..d_state {
        states[n] = 0.0f32;
    }
    let mut passed = nothing_passed();
    let mut at = place.start;
    while at < place.end {
        read_tile(u, delta, bias, bc, codes, &mut tile, at, &place, &sizes, plan);
        pass(&mut passed, &tile);
        for n in 0..d_state {
            let rate = a[c * d_state + n];
            let mut h = states[n];
            #[unroll]
            for i in 0..STEPS {
                if comptime!(plan.codes) {
                    h = select(tile.resets[i], 0.0f32, h);
                }
                let taken = tile.delta[i] * tile.u[i] * tile.bc[comptime!(2 * i * plan.d_state) + n];
                h = fma((tile.delta[i] * rate).exp(), h, taken);
            }
            states[n] = h;
        }
        at += STEPS;
    }
    if place.live {
        let chunk = place.b * sizes.chunks + place.chunk;
        write_effect(passed, &states, a, keeps, gained, chunk, c, sizes.width, plan);
    }
}
