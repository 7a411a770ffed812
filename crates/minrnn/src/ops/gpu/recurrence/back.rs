//! The backward kernels: the same walk from the last step to the first, on G_t = ∂L/∂h_t + a_{t+1} G_{t+1}.
//!
//! What a step does to the gradient that comes from the right is c ↦ a (c + d_h), so tiles, slices and chunks are put together as in the
//! forward walk. Gates are computed again from the inputs.

use cubecl::ir::ElemType;
use cubecl::prelude::*;
use minrnn_kernels::segments::{PADDING, RESET};

use super::super::chunks::{Place, Sizes, place};
use super::super::tensors::LANES;
use super::Plan;
use super::cells::{Effect, Inputs, coefficient, gradients};
use super::walk::{STEPS, bias_of, inputs_of, restored_by};

/// The step that unit `offset` of the tile that ends at `at` has, and whether there is one.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct Step {
    t: usize,
    real: bool,
    reset: bool,
}

#[cube]
fn step_before(at: usize, offset: usize, codes: &[i32], place: &Place, sizes: &Sizes, #[comptime] plan: Plan) -> Step {
    let inside = offset < at - place.start;
    let t = select(inside, at - 1 - min(offset, at - 1), place.start);
    let mut real = inside;
    let mut reset = false.runtime();
    if comptime!(plan.codes) {
        let code = codes[place.b * sizes.seq_len + t];
        reset = inside && code == RESET;
        real = inside && code != PADDING;
    }
    Step { t, real, reset }
}

/// What a unit holds of its slice, one element per step.
#[derive(CubeType)]
struct Held {
    u0: Array<f32>,
    u1: Array<f32>,
    u2: Array<f32>,
    before: Array<f32>,
    arriving: Array<f32>,
}

#[cube]
fn hold() -> Held {
    Held {
        u0: Array::<f32>::new(STEPS),
        u1: Array::<f32>::new(STEPS),
        u2: Array::<f32>::new(STEPS),
        before: Array::<f32>::new(STEPS),
        arriving: Array::<f32>::new(STEPS),
    }
}

/// Reads the inputs and the arriving gradients of the slice that begins `offset` steps before `at`; its effect on the gradient.
#[cube]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
fn read_slice<A: Float>(
    x0: &[A],
    x1: &[A],
    bias: &Inputs,
    d_h: &[A],
    codes: &[i32],
    held: &mut Held,
    at: usize,
    offset: usize,
    place: &Place,
    sizes: &Sizes,
    #[comptime] plan: Plan,
) -> Effect {
    let mut factor = 1.0f32;
    let mut gained = 0.0f32;
    #[unroll]
    for i in 0..STEPS {
        let step = step_before(at, offset + i, codes, place, sizes, plan);
        let row = place.b * sizes.seq_len + step.t;
        let u = inputs_of(x0, x1, bias, row, place.c, sizes.width, plan);
        let mut arriving = 0.0f32;
        if comptime!(plan.d_h) {
            arriving = select(step.real, f32::cast_from(d_h[row * sizes.width + place.c]), 0.0f32);
        }
        let a = select(step.real, coefficient(u, comptime!(plan.cell)), 1.0f32);
        held.u0[i] = u.u0;
        held.u1[i] = u.u1;
        held.u2[i] = u.u2;
        held.arriving[i] = arriving;
        gained = select(step.reset, 0.0f32, a * (gained + arriving));
        factor = select(step.reset, 0.0f32, a * factor);
    }
    Effect { factor, gained }
}

/// Reads the states before the steps of the slice.
#[cube]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
fn read_states<A: Float>(
    h: &[A],
    h0: &[f32],
    codes: &[i32],
    restored: f32,
    held: &mut Held,
    at: usize,
    offset: usize,
    place: &Place,
    sizes: &Sizes,
    #[comptime] plan: Plan,
) {
    #[unroll]
    for i in 0..STEPS {
        let step = step_before(at, offset + i, codes, place, sizes, plan);
        let row = place.b * sizes.seq_len + step.t;
        let mut before = f32::cast_from(h[(row - min(step.t, 1)) * sizes.width + place.c]);
        if step.t == 0 {
            before = 0.0f32;
            if comptime!(plan.h0) {
                before = h0[place.b * sizes.width + place.c];
            }
        }
        held.before[i] = select(step.reset, restored, before);
    }
}

/// As `passage` of the forward walk, with factors that are p itself.
#[cube]
fn carried(effect: Effect, c: f32) -> f32 {
    select(effect.factor == 0.0, effect.gained, fma(effect.factor, c, effect.gained))
}

/// The gradients of all inputs. `d_bias` `[B · chunks, N E]` and `d_init` `[B · chunks, E]` are sums over a chunk. `entering` are the
/// gradients between chunks, of the chunk after at its place, counted from the last chunk.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
pub(super) fn walk_back<A: Float>(
    x0: &[A],
    x1: &[A],
    bias: &[f32],
    h: &[A],
    h0: &[f32],
    d_h: &[A],
    d_last: &[f32],
    entering: &[f32],
    init: &[f32],
    codes: &[i32],
    d_x0: &mut [A],
    d_x1: &mut [A],
    d_h0: &mut [f32],
    d_init: &mut [f32],
    d_bias: &mut [f32],
    sizes: Sizes,
    cubes: usize,
    #[comptime] plan: Plan,
    #[define(A)] _format: ElemType,
) {
    if CUBE_POS >= cubes {
        terminate!();
    }
    let parts = comptime!(plan.cell.parts());
    let half = comptime!(plan.slices * LANES);
    let mut factors = Shared::<[f32]>::new_slice(comptime!(2 * plan.slices * LANES));
    let mut gains = Shared::<[f32]>::new_slice(comptime!(2 * plan.slices * LANES));
    let mut held = hold();
    let place = place(&sizes);
    let c = place.c;
    let width = sizes.width;
    let shift = bias_of(bias, c, width, plan);
    let restored = restored_by(init, c, plan);
    let slice = UNIT_POS_Y as usize;
    let lane = UNIT_POS_X as usize;

    let mut from_right = 0.0f32;
    if comptime!(plan.d_last) {
        from_right = d_last[place.b * width + c];
    }
    if comptime!(plan.chunked) {
        if place.chunk + 1 < sizes.chunks {
            from_right = entering[(place.b * sizes.chunks + sizes.chunks - 2 - place.chunk) * width + c];
        }
    }
    let mut sums = Inputs { u0: 0.0f32.runtime(), u1: 0.0f32.runtime(), u2: 0.0f32.runtime() };
    let mut init_sum = 0.0f32;
    let mut at = place.end;
    let mut offset = 0usize;
    let mut left = place.end > place.start;
    while left {
        let mine = slice * STEPS;
        let effect = read_slice(x0, x1, &shift, d_h, codes, &mut held, at, mine, &place, &sizes, plan);
        read_states(h, h0, codes, restored, &mut held, at, mine, &place, &sizes, plan);
        factors[offset + UNIT_POS as usize] = effect.factor;
        gains[offset + UNIT_POS as usize] = effect.gained;
        sync_cube();
        let mut now = from_right;
        for s in 0..comptime!(plan.slices) {
            let meeting = offset + s * LANES + lane;
            now = select(s == slice, from_right, now);
            from_right = carried(Effect { factor: factors[meeting], gained: gains[meeting] }, from_right);
        }
        #[unroll]
        for i in 0..STEPS {
            let step = step_before(at, mine + i, codes, &place, &sizes, plan);
            if mine + i < at - place.start {
                let row = place.b * sizes.seq_len + step.t;
                let u = Inputs { u0: held.u0[i], u1: held.u1[i], u2: held.u2[i] };
                let made = gradients(u, held.before[i], now + held.arriving[i], comptime!(plan.cell));
                let d0 = select(step.real, made.d0, 0.0f32);
                let d1 = select(step.real, made.d1, 0.0f32);
                let d2 = select(step.real, made.d2, 0.0f32);
                now = select(step.real, made.carried, now);
                init_sum += select(step.reset, now, 0.0f32);
                now = select(step.reset, 0.0f32, now);
                sums.u0 += d0;
                sums.u1 += d1;
                sums.u2 += d2;
                if place.live {
                    let out = row * parts * width + c;
                    d_x0[out] = A::cast_from(d0);
                    if comptime!(parts == 1) {
                        d_x1[out] = A::cast_from(d1);
                    } else {
                        d_x0[out + width] = A::cast_from(d1);
                        if comptime!(parts > 2) {
                            d_x0[out + 2 * width] = A::cast_from(d2);
                        }
                    }
                }
            }
        }
        offset = half - offset;
        let tile = comptime!(plan.slices * STEPS);
        left = at - place.start > tile;
        at -= select(left, tile, 0usize);
    }
    if slice == 0 && place.live && place.chunk == 0 {
        d_h0[place.b * width + c] = from_right;
    }
    let chunk = place.b * sizes.chunks + place.chunk;
    if comptime!(plan.init) {
        let sum = over_slices(&mut factors, init_sum, plan);
        if slice == 0 && place.live {
            d_init[chunk * width + c] = sum;
        }
    }
    if comptime!(plan.bias) {
        let out = chunk * parts * width + c;
        let sum0 = over_slices(&mut factors, sums.u0, plan);
        let sum1 = over_slices(&mut factors, sums.u1, plan);
        if slice == 0 && place.live {
            d_bias[out] = sum0;
            d_bias[out + width] = sum1;
        }
        if comptime!(parts > 2) {
            let sum2 = over_slices(&mut factors, sums.u2, plan);
            if slice == 0 && place.live {
                d_bias[out + 2 * width] = sum2;
            }
        }
    }
}

/// The sum of `value` over the slices.
#[cube]
fn over_slices(values: &mut [f32], value: f32, #[comptime] plan: Plan) -> f32 {
    sync_cube();
    values[UNIT_POS as usize] = value;
    sync_cube();
    let mut sum = 0.0f32;
    for s in 0..comptime!(plan.slices) {
        sum += values[s * LANES + UNIT_POS_X as usize];
    }
    sum
}

/// What every chunk does to the gradient from the right, c ↦ `keeps` c + `gained`: both `[B, chunks, E]`, the last chunk first.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
pub(super) fn summarise_back<A: Float>(
    x0: &[A],
    x1: &[A],
    bias: &[f32],
    d_h: &[A],
    codes: &[i32],
    keeps: &mut [f32],
    gained: &mut [f32],
    sizes: Sizes,
    cubes: usize,
    #[comptime] plan: Plan,
    #[define(A)] _format: ElemType,
) {
    if CUBE_POS >= cubes {
        terminate!();
    }
    let mut factors = Shared::<[f32]>::new_slice(comptime!(plan.slices * LANES));
    let mut gains = Shared::<[f32]>::new_slice(comptime!(plan.slices * LANES));
    let mut held = hold();
    let place = place(&sizes);
    let shift = bias_of(bias, place.c, sizes.width, plan);
    let slice = UNIT_POS_Y as usize;
    let stretch = (place.end - place.start).div_ceil(comptime!(plan.slices * STEPS)) * STEPS;
    let mut factor = 1.0f32;
    let mut state = 0.0f32;
    let mut done = 0usize;
    while done < stretch {
        let offset = slice * stretch + done;
        let effect = read_slice(x0, x1, &shift, d_h, codes, &mut held, place.end, offset, &place, &sizes, plan);
        factor *= effect.factor;
        state = carried(effect, state);
        done += STEPS;
    }
    factors[UNIT_POS as usize] = factor;
    gains[UNIT_POS as usize] = state;
    sync_cube();
    if slice == 0 && place.live {
        let lane = UNIT_POS_X as usize;
        let mut whole = 1.0f32;
        let mut left = 0.0f32;
        for s in 0..comptime!(plan.slices) {
            let effect = Effect { factor: factors[s * LANES + lane], gained: gains[s * LANES + lane] };
            whole *= effect.factor;
            left = carried(effect, left);
        }
        let out = (place.b * sizes.chunks + sizes.chunks - 1 - place.chunk) * sizes.width + place.c;
        keeps[out] = whole;
        gained[out] = left;
    }
}
