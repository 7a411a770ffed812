//! The forward kernels: a cube walks through the steps of 32 channels, tile by tile.
//!
//! A tile is `slices` × [`STEPS`] steps. Every unit reads its slice of one channel, all loads at once, and learns what the slice does to a
//! state; these effects meet in shared memory; then every unit knows the state that enters its slice and runs it from registers. Memory
//! is read once and written once.

use cubecl::ir::ElemType;
use cubecl::prelude::*;
use minrnn_kernels::segments::{PADDING, RESET};

use super::super::chunks::{Place, Sizes, place};
use super::super::tensors::LANES;
use super::Plan;
use super::cells::{Effect, Gate, Inputs, apply, both, cut, gate, kept, step};

/// Steps that a unit holds in registers.
pub(super) const STEPS: usize = 8;

/// The bias of a channel's inputs.
#[cube]
pub(super) fn bias_of(bias: &[f32], c: usize, width: usize, #[comptime] plan: Plan) -> Inputs {
    let mut u = Inputs { u0: 0.0f32.runtime(), u1: 0.0f32.runtime(), u2: 0.0f32.runtime() };
    if comptime!(plan.bias) {
        u.u0 = bias[c];
        if comptime!(plan.cell.parts() > 1) {
            u.u1 = bias[width + c];
        }
        if comptime!(plan.cell.parts() > 2) {
            u.u2 = bias[2 * width + c];
        }
    }
    u
}

/// The inputs of a step (`row` counts steps over the whole batch).
#[cube]
pub(super) fn inputs_of<A: Float>(x0: &[A], x1: &[A], bias: &Inputs, row: usize, c: usize, width: usize, #[comptime] plan: Plan) -> Inputs {
    let parts = comptime!(plan.cell.parts());
    let at = row * parts * width + c;
    let mut u = Inputs { u0: f32::cast_from(x0[at]) + bias.u0, u1: 0.0f32.runtime(), u2: 0.0f32.runtime() };
    if comptime!(parts == 1) {
        u.u1 = f32::cast_from(x1[at]);
    } else {
        u.u1 = f32::cast_from(x0[at + width]) + bias.u1;
        if comptime!(parts > 2) {
            u.u2 = f32::cast_from(x0[at + 2 * width]) + bias.u2;
        }
    }
    u
}

/// Puts the effects of all slices one after the other: the state that enters this unit's slice and the one that leaves the last.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Passage {
    pub entering: f32,
    pub leaving: f32,
}

/// `factors` and `gains` hold the effects of the tile from `offset` on.
#[cube]
pub(super) fn passage(factors: &[f32], gains: &[f32], offset: usize, state: f32, #[comptime] plan: Plan) -> Passage {
    let mixes = comptime!(plan.cell.mixes());
    let lane = UNIT_POS_X as usize;
    let slice = UNIT_POS_Y as usize;
    let mut entering = state;
    let mut running = state;
    for s in 0..comptime!(plan.slices) {
        entering = select(s == slice, running, entering);
        let at = offset + s * LANES + lane;
        running = apply(Effect { factor: factors[at], gained: gains[at] }, running, mixes);
    }
    Passage { entering, leaving: running }
}

/// The steps of this unit's slice, as gates, and their effect.
#[cube]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
fn read_slice<A: Float>(
    x0: &[A],
    x1: &[A],
    bias: &Inputs,
    codes: &[i32],
    restored: f32,
    xs: &mut Array<f32>,
    ys: &mut Array<f32>,
    first: usize,
    place: &Place,
    sizes: &Sizes,
    #[comptime] plan: Plan,
) -> Effect {
    let mixes = comptime!(plan.cell.mixes());
    let mut factor = kept(mixes);
    let mut gained = 0.0f32;
    #[unroll]
    for i in 0..STEPS {
        let t = first + i;
        let row = place.b * sizes.seq_len + min(t, place.end - 1);
        let made = gate(inputs_of(x0, x1, bias, row, place.c, sizes.width, plan), comptime!(plan.cell));
        let mut real = t < place.end;
        if comptime!(plan.codes) {
            let code = codes[row];
            let reset = real && code == RESET;
            real = real && code != PADDING;
            factor = select(reset, cut(mixes), factor);
            gained = select(reset, restored, gained);
        }
        let x = select(real, made.x, kept(mixes));
        let y = select(real, made.y, 0.0f32);
        xs[i] = x;
        ys[i] = y;
        gained = step(Gate { x, y }, gained, mixes);
        factor = both(factor, x, mixes);
    }
    Effect { factor, gained }
}

/// The state that a reset restores.
#[cube]
pub(super) fn restored_by(init: &[f32], c: usize, #[comptime] plan: Plan) -> f32 {
    let mut restored = 0.0f32;
    if comptime!(plan.init) {
        restored = init[c];
    }
    restored
}

/// The states `h` and the last one. `entering` are the states between chunks, of the chunk before at its place.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
pub(super) fn walk<A: Float>(
    x0: &[A],
    x1: &[A],
    bias: &[f32],
    h0: &[f32],
    entering: &[f32],
    init: &[f32],
    codes: &[i32],
    h: &mut [A],
    last: &mut [f32],
    sizes: Sizes,
    cubes: usize,
    #[comptime] plan: Plan,
    #[define(A)] _format: ElemType,
) {
    if CUBE_POS >= cubes {
        terminate!();
    }
    let mixes = comptime!(plan.cell.mixes());
    let half = comptime!(plan.slices * LANES);
    let mut factors = Shared::<[f32]>::new_slice(comptime!(2 * plan.slices * LANES));
    let mut gains = Shared::<[f32]>::new_slice(comptime!(2 * plan.slices * LANES));
    let mut xs = Array::<f32>::new(STEPS);
    let mut ys = Array::<f32>::new(STEPS);
    let place = place(&sizes);
    let c = place.c;
    let bias = bias_of(bias, c, sizes.width, plan);
    let restored = restored_by(init, c, plan);
    let slice = UNIT_POS_Y as usize;

    let mut state = 0.0f32;
    if comptime!(plan.h0) {
        state = h0[place.b * sizes.width + c];
    }
    if comptime!(plan.chunked) {
        if place.chunk > 0 {
            state = entering[(place.b * sizes.chunks + place.chunk - 1) * sizes.width + c];
        }
    }
    let mut at = place.start;
    let mut offset = 0usize;
    while at < place.end {
        let first = at + slice * STEPS;
        let effect = read_slice(x0, x1, &bias, codes, restored, &mut xs, &mut ys, first, &place, &sizes, plan);
        factors[offset + UNIT_POS as usize] = effect.factor;
        gains[offset + UNIT_POS as usize] = effect.gained;
        sync_cube();
        let passage = passage(&factors, &gains, offset, state, plan);
        let mut now = passage.entering;
        #[unroll]
        for i in 0..STEPS {
            let t = first + i;
            let row = place.b * sizes.seq_len + t;
            if t < place.end {
                let mut shown = true.runtime();
                if comptime!(plan.codes) {
                    let code = codes[row];
                    now = select(code == RESET, restored, now);
                    shown = code != PADDING;
                }
                now = step(Gate { x: xs[i], y: ys[i] }, now, mixes);
                if place.live {
                    h[row * sizes.width + c] = A::cast_from(select(shown, now, 0.0f32));
                }
            }
        }
        state = passage.leaving;
        // The other half, so that slower units may still read this one.
        offset = half - offset;
        at += comptime!(plan.slices * STEPS);
    }
    if slice == 0 && place.live && place.chunk + 1 == sizes.chunks {
        last[place.b * sizes.width + c] = state;
    }
}

/// What every chunk does to a state, h ↦ `kept` h + `gained`: both `[B, chunks, E]`.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
pub(super) fn summarise<A: Float>(
    x0: &[A],
    x1: &[A],
    bias: &[f32],
    init: &[f32],
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
    let mixes = comptime!(plan.cell.mixes());
    let mut factors = Shared::<[f32]>::new_slice(comptime!(plan.slices * LANES));
    let mut gains = Shared::<[f32]>::new_slice(comptime!(plan.slices * LANES));
    let mut xs = Array::<f32>::new(STEPS);
    let mut ys = Array::<f32>::new(STEPS);
    let place = place(&sizes);
    let bias = bias_of(bias, place.c, sizes.width, plan);
    let restored = restored_by(init, place.c, plan);
    let slice = UNIT_POS_Y as usize;
    // Each slice has a stretch of the chunk of its own: no meeting between tiles.
    let stretch = (place.end - place.start).div_ceil(comptime!(plan.slices * STEPS)) * STEPS;
    let from = place.start + slice * stretch;
    let until = min(from + stretch, place.end);
    let mut factor = kept(mixes);
    let mut state = 0.0f32;
    let mut at = from;
    while at < until {
        let effect = read_slice(x0, x1, &bias, codes, restored, &mut xs, &mut ys, at, &place, &sizes, plan);
        factor = both(factor, effect.factor, mixes);
        state = apply(effect, state, mixes);
        at += STEPS;
    }
    factors[UNIT_POS as usize] = factor;
    gains[UNIT_POS as usize] = state;
    sync_cube();
    if slice == 0 && place.live {
        let lane = UNIT_POS_X as usize;
        let mut whole = kept(mixes);
        let mut left = 0.0f32;
        for s in 0..comptime!(plan.slices) {
            let effect = Effect { factor: factors[s * LANES + lane], gained: gains[s * LANES + lane] };
            whole = both(whole, effect.factor, mixes);
            left = apply(effect, left, mixes);
        }
        let out = (place.b * sizes.chunks + place.chunk) * sizes.width + place.c;
        keeps[out] = if comptime!(mixes) { 1.0 - whole } else { whole };
        gained[out] = left;
    }
}
