//! The backward kernels: from the last tile to the first, each rerun forward from the state before it.

use cubecl::prelude::*;

use super::super::chunks::{Place, Sizes, place};
use super::super::elementary::sigmoid;
use super::super::tensors::LANES;
use super::tile::{Tile, arriving, nothing_passed, pass, read_tile, row_of, silu, tile, write_effect};
use super::{Plan, STEPS};

/// States whose sums over channels are taken together: their columns are as many as a cube has units.
const PAIR: usize = LANES / (2 * STEPS);

/// The gradients that reach the tile's outputs before their gates.
#[cube]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
fn read_arriving(
    d_y: &[f32],
    z: &[f32],
    tile: &Tile,
    d_values: &mut Array<f32>,
    at: usize,
    place: &Place,
    sizes: &Sizes,
    #[comptime] plan: Plan,
) {
    #[unroll]
    for i in 0..STEPS {
        let element = row_of(at + i, place, sizes) * sizes.width + place.c;
        d_values[i] = arriving(d_y, z, element, tile.real[i], plan);
    }
}

/// The gradients of u, δ and z, those of B and C summed over a group of channels `[groups, B, T, 2N]`, and those of A `[·, N, E]`, of the
/// bias and of the skip `[·, E]` summed over a chunk; and that of the carried state `[B, N, E]`. `entering` are the gradients between
/// chunks, of the chunk after at its place, counted from the last chunk.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
pub(super) fn walk_back(
    u: &[f32],
    delta: &[f32],
    delta_bias: &[f32],
    a: &[f32],
    bc: &[f32],
    skip: &[f32],
    z: &[f32],
    boundaries: &[f32],
    d_y: &[f32],
    d_last: &[f32],
    entering: &[f32],
    codes: &[i32],
    d_u: &mut [f32],
    d_delta: &mut [f32],
    d_z: &mut [f32],
    d_bc: &mut [f32],
    d_a: &mut [f32],
    d_delta_bias: &mut [f32],
    d_skip: &mut [f32],
    d_h0: &mut [f32],
    sizes: Sizes,
    tiles: usize,
    cubes: usize,
    #[comptime] plan: Plan,
) {
    if CUBE_POS >= cubes {
        terminate!();
    }
    let d_state = comptime!(plan.d_state);
    let columns = comptime!(2 * plan.d_state);
    // One column more than units, so that reading down a column meets all banks.
    let stride = comptime!(LANES + 1);
    let mut tile = tile(plan);
    let mut meeting = Shared::<[f32]>::new_slice(comptime!(LANES * (LANES + 1)));
    let mut carried = Array::<f32>::new(d_state);
    let mut d_rates = Array::<f32>::new(d_state);
    let mut d_values = Array::<f32>::new(STEPS);
    let mut values = Array::<f32>::new(STEPS);
    let mut taken_sums = Array::<f32>::new(STEPS);
    let mut rate_sums = Array::<f32>::new(STEPS);
    let mut decays = Array::<f32>::new(STEPS);
    let mut decayed = Array::<f32>::new(STEPS);
    let mut states = Array::<f32>::new(STEPS);
    let place = place(&sizes);
    let c = place.c;
    let width = sizes.width;
    let bias = delta_bias[c];
    let passed = skip[c];
    let lane = UNIT_POS as usize;
    let group = CUBE_POS % sizes.groups;
    for n in 0..d_state {
        carried[n] = 0.0f32;
        d_rates[n] = 0.0f32;
        if comptime!(plan.d_last) {
            carried[n] = d_last[(place.b * d_state + n) * width + c];
        }
        if comptime!(plan.chunked) {
            if place.chunk + 1 < sizes.chunks {
                carried[n] = entering[((place.b * sizes.chunks + sizes.chunks - 2 - place.chunk) * d_state + n) * width + c];
            }
        }
    }
    let mut bias_sum = 0.0f32;
    let mut skip_sum = 0.0f32;
    let mut left = (place.end - place.start).div_ceil(STEPS);
    while left > 0 {
        left -= 1;
        let at = place.start + left * STEPS;
        read_tile(u, delta, bias, bc, codes, &mut tile, at, &place, &sizes, plan);
        read_arriving(d_y, z, &tile, &mut d_values, at, &place, &sizes, plan);
        #[unroll]
        for i in 0..STEPS {
            values[i] = passed * tile.u[i];
            taken_sums[i] = 0.0f32;
            rate_sums[i] = 0.0f32;
        }
        let boundary = (place.b * tiles + at / STEPS) * d_state * width + c;
        for pair in 0..comptime!(plan.d_state.div_ceil(PAIR)) {
            #[unroll]
            for k in 0..PAIR {
                let n = pair * PAIR + k;
                if n < d_state {
                    let rate = a[c * d_state + n];
                    let mut h = boundaries[boundary + n * width];
                    #[unroll]
                    for i in 0..STEPS {
                        let column = comptime!(2 * i * plan.d_state) + n;
                        if comptime!(plan.codes) {
                            h = select(tile.resets[i], 0.0f32, h);
                        }
                        decays[i] = (tile.delta[i] * rate).exp();
                        decayed[i] = decays[i] * h;
                        h = fma(tile.delta[i] * tile.u[i], tile.bc[column], decayed[i]);
                        states[i] = h;
                        values[i] = fma(h, tile.bc[column + d_state], values[i]);
                    }
                    let mut from_right = carried[n];
                    let mut d_rate = d_rates[n];
                    #[unroll]
                    for j in 0..STEPS {
                        let i = comptime!(STEPS - 1 - j);
                        let column = comptime!(2 * i * plan.d_state) + n;
                        let d_h = fma(d_values[i], tile.bc[column + d_state], from_right);
                        let w = decayed[i] * d_h;
                        taken_sums[i] = fma(d_h, tile.bc[column], taken_sums[i]);
                        rate_sums[i] = fma(rate, w, rate_sums[i]);
                        d_rate = fma(tile.delta[i], w, d_rate);
                        let out = lane * stride + comptime!(k * 2 * STEPS + i);
                        meeting[out] = select(place.live, d_h * tile.delta[i] * tile.u[i], 0.0f32);
                        meeting[out + STEPS] = select(place.live, d_values[i] * states[i], 0.0f32);
                        from_right = decays[i] * d_h;
                        if comptime!(plan.codes) {
                            from_right = select(tile.resets[i], 0.0f32, from_right);
                        }
                    }
                    carried[n] = from_right;
                    d_rates[n] = d_rate;
                }
            }
            sync_cube();
            // Unit by unit: the column of one state, of B or C, and one step.
            let n = pair * PAIR + lane / comptime!(2 * STEPS);
            let t = at + lane % STEPS;
            if n < d_state && t < place.end {
                let mut sum = 0.0f32;
                for other in 0..LANES {
                    sum += meeting[other * stride + lane];
                }
                let part = (lane / STEPS) % 2;
                let batch = cubes / (sizes.groups * sizes.chunks);
                let row = group * batch * sizes.seq_len + place.b * sizes.seq_len + t;
                d_bc[row * columns + part * d_state + n] = sum;
            }
            sync_cube();
        }
        #[unroll]
        for i in 0..STEPS {
            if at + i < place.end {
                let element = row_of(at + i, &place, &sizes) * width + c;
                let d_step = fma(tile.u[i], taken_sums[i], rate_sums[i]) * sigmoid(delta[element] + bias).value;
                let d_preact = select(tile.real[i], d_step, 0.0f32);
                bias_sum += d_preact;
                skip_sum = fma(d_values[i], tile.u[i], skip_sum);
                if place.live {
                    d_delta[element] = d_preact;
                    d_u[element] = select(tile.real[i], fma(tile.delta[i], taken_sums[i], passed * d_values[i]), 0.0f32);
                    if comptime!(plan.z) {
                        let mut d = 0.0f32;
                        if comptime!(plan.d_y) {
                            d = select(tile.real[i], d_y[element] * values[i] * silu(z[element]).slope, 0.0f32);
                        }
                        d_z[element] = d;
                    }
                }
            }
        }
    }
    if place.live {
        let piece = place.b * sizes.chunks + place.chunk;
        d_delta_bias[piece * width + c] = bias_sum;
        d_skip[piece * width + c] = skip_sum;
        for n in 0..d_state {
            d_a[(piece * d_state + n) * width + c] = d_rates[n];
            if place.chunk == 0 {
                d_h0[(place.b * d_state + n) * width + c] = carried[n];
            }
        }
    }
}

/// What every chunk does to the gradient from the right, c ↦ `keeps` c + `gained`: both `[B, chunks, N, E]`, the last chunk first.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
pub(super) fn summarise_back(
    u: &[f32],
    delta: &[f32],
    delta_bias: &[f32],
    a: &[f32],
    bc: &[f32],
    z: &[f32],
    d_y: &[f32],
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
    let mut carried = Array::<f32>::new(d_state);
    let mut d_values = Array::<f32>::new(STEPS);
    let place = place(&sizes);
    let c = place.c;
    let bias = delta_bias[c];
    for n in 0..d_state {
        carried[n] = 0.0f32;
    }
    let mut passed = nothing_passed();
    let mut left = (place.end - place.start).div_ceil(STEPS);
    while left > 0 {
        left -= 1;
        let at = place.start + left * STEPS;
        read_tile(u, delta, bias, bc, codes, &mut tile, at, &place, &sizes, plan);
        read_arriving(d_y, z, &tile, &mut d_values, at, &place, &sizes, plan);
        pass(&mut passed, &tile);
        for n in 0..d_state {
            let rate = a[c * d_state + n];
            let mut from_right = carried[n];
            #[unroll]
            for j in 0..STEPS {
                let i = comptime!(STEPS - 1 - j);
                let d_h = fma(d_values[i], tile.bc[comptime!((2 * i + 1) * plan.d_state) + n], from_right);
                from_right = (tile.delta[i] * rate).exp() * d_h;
                if comptime!(plan.codes) {
                    from_right = select(tile.resets[i], 0.0f32, from_right);
                }
            }
            carried[n] = from_right;
        }
    }
    if place.live {
        let chunk = place.b * sizes.chunks + sizes.chunks - 1 - place.chunk;
        write_effect(passed, &carried, a, keeps, gained, chunk, c, sizes.width, plan);
    }
}
