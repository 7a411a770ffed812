//! The forward kernels: a cube walks through the steps of 32 channels, or of 32 pairs of them, tile by tile.
//!
//! A tile is `slices` × [`STEPS`] steps. Every unit reads its slice of its channels, with all loads before any arithmetic, and computes the
//! slice's effect on a state; these effects are combined in shared memory; then every unit knows the state that enters its slice and runs
//! it from registers. Memory is read once and written once.

use cubecl::ir::ElemType;
use cubecl::prelude::*;
use minrnn_kernels::segments::{PADDING, RESET};

use super::super::chunks::{Place, Sizes, place};
use super::super::tensors::LANES;
use super::Plan;
use super::cells::{Effect, Gate, apply, both, cut, gate, kept, step};
use super::meeting::{meeting, passage, put, write_whole};
use super::slice::{STEPS, Slice, biases, inputs_of, read_step, restored_by, slice, vector};

/// Reads the steps from `first` on.
#[cube]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
fn read_slice<A: Float, N: Size>(
    x0: &[Vector<A, N>],
    x1: &[Vector<A, N>],
    codes: &[i32],
    slice: &mut Slice<A, N>,
    first: usize,
    place: &Place,
    sizes: &Sizes,
    #[comptime] plan: Plan,
) {
    #[unroll]
    for i in 0..STEPS {
        let t = first + i;
        let row = place.b * sizes.seq_len + min(t, place.end - 1);
        read_step(x0, x1, codes, slice, i, row, t < place.end, place.c, sizes.width, plan);
    }
}

/// Makes gates of the steps of one channel of a slice, and their effect.
#[cube]
fn gates<A: Float, N: Size>(
    slice: &Slice<A, N>,
    biases: &Array<f32>,
    restored: f32,
    xs: &mut Array<f32>,
    ys: &mut Array<f32>,
    #[comptime] k: usize,
    #[comptime] plan: Plan,
) -> Effect {
    let mixes = comptime!(plan.cell.mixes());
    let mut factor = kept(mixes);
    let mut gained = 0.0f32;
    #[unroll]
    for i in 0..STEPS {
        let made = gate(inputs_of(slice, biases, i, k, plan), comptime!(plan.cell));
        let real = slice.codes[i] != PADDING;
        if comptime!(plan.codes) {
            let reset = slice.codes[i] == RESET;
            factor = select(reset, cut(mixes), factor);
            gained = select(reset, restored, gained);
        }
        let x = select(real, made.x, kept(mixes));
        let y = select(real, made.y, 0.0f32);
        xs[i * plan.channels + k] = x;
        ys[i * plan.channels + k] = y;
        gained = step(Gate { x, y }, gained, mixes);
        factor = both(factor, x, mixes);
    }
    Effect { factor, gained }
}

/// The states `h` and the last one. `entering` are the states between chunks, of the chunk before at its place. Widths are of vectors.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
pub(super) fn walk<A: Float, N: Size>(
    x0: &[Vector<A, N>],
    x1: &[Vector<A, N>],
    bias: &[Vector<f32, N>],
    h0: &[Vector<f32, N>],
    entering: &[Vector<f32, N>],
    init: &[Vector<f32, N>],
    codes: &[i32],
    h: &mut [Vector<A, N>],
    last: &mut [Vector<f32, N>],
    sizes: Sizes,
    cubes: usize,
    #[comptime] plan: Plan,
    #[define(A)] _format: ElemType,
) {
    if CUBE_POS >= cubes {
        terminate!();
    }
    let mixes = comptime!(plan.cell.mixes());
    let half = comptime!(plan.slices * LANES * plan.channels);
    let mut meeting = meeting(2usize, plan);
    let mut held = slice::<A, N>();
    let mut xs = Array::<f32>::new(comptime!(STEPS * plan.channels));
    let mut ys = Array::<f32>::new(comptime!(STEPS * plan.channels));
    let mut state = Array::<f32>::new(plan.channels);
    let place = place(&sizes);
    let c = place.c;
    let biases = biases(bias, c, sizes.width, plan);
    let restored = restored_by(init, c, plan);
    let slice = UNIT_POS_Y as usize;

    let mut start = Vector::<f32, N>::new(0.0f32);
    if comptime!(plan.h0) {
        start = h0[place.b * sizes.width + c];
    }
    if comptime!(plan.chunked) {
        if place.chunk > 0 {
            start = entering[(place.b * sizes.chunks + place.chunk - 1) * sizes.width + c];
        }
    }
    #[unroll]
    for k in 0..plan.channels {
        state[k] = start.extract(k);
    }
    let mut at = place.start;
    let mut offset = 0usize;
    while at < place.end {
        let first = at + slice * STEPS;
        read_slice(x0, x1, codes, &mut held, first, &place, &sizes, plan);
        #[unroll]
        for k in 0..plan.channels {
            let effect = gates(&held, &biases, restored[k], &mut xs, &mut ys, k, plan);
            put(&mut meeting, offset, effect, k, plan);
        }
        sync_cube();
        #[unroll]
        for k in 0..plan.channels {
            let passage = passage(&meeting, offset, state[k], k, mixes, plan);
            state[k] = passage.leaving;
            let mut now = passage.entering;
            #[unroll]
            for i in 0..STEPS {
                let j = i * plan.channels + k;
                if comptime!(plan.codes) {
                    now = select(held.codes[i] == RESET, restored[k], now);
                }
                now = step(Gate { x: xs[j], y: ys[j] }, now, mixes);
                xs[j] = now;
                if comptime!(plan.codes) {
                    xs[j] = select(held.codes[i] == PADDING, 0.0f32, now);
                }
            }
        }
        #[unroll]
        for i in 0..STEPS {
            if first + i < place.end && place.live {
                let mut states = Vector::<A, N>::empty();
                #[unroll]
                for k in 0..plan.channels {
                    states.insert(k, A::cast_from(xs[i * plan.channels + k]));
                }
                h[(place.b * sizes.seq_len + first + i) * sizes.width + c] = states;
            }
        }
        // The other half, so that slower units may still read this one.
        offset = half - offset;
        at += comptime!(plan.slices * STEPS);
    }
    if slice == 0 && place.live && place.chunk + 1 == sizes.chunks {
        last[place.b * sizes.width + c] = vector(&state, plan);
    }
}

/// What every chunk does to a state, h ↦ `kept` h + `gained`: both `[B, chunks, E]`.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
pub(super) fn summarise<A: Float, N: Size>(
    x0: &[Vector<A, N>],
    x1: &[Vector<A, N>],
    bias: &[Vector<f32, N>],
    init: &[Vector<f32, N>],
    codes: &[i32],
    keeps: &mut [Vector<f32, N>],
    gained: &mut [Vector<f32, N>],
    sizes: Sizes,
    cubes: usize,
    #[comptime] plan: Plan,
    #[define(A)] _format: ElemType,
) {
    if CUBE_POS >= cubes {
        terminate!();
    }
    let mixes = comptime!(plan.cell.mixes());
    let mut meeting = meeting(1usize, plan);
    let mut held = slice::<A, N>();
    let mut xs = Array::<f32>::new(comptime!(STEPS * plan.channels));
    let mut ys = Array::<f32>::new(comptime!(STEPS * plan.channels));
    let mut factor = Array::<f32>::new(plan.channels);
    let mut state = Array::<f32>::new(plan.channels);
    let place = place(&sizes);
    let biases = biases(bias, place.c, sizes.width, plan);
    let restored = restored_by(init, place.c, plan);
    let slice = UNIT_POS_Y as usize;
    // Each slice has a stretch of the chunk of its own: no meeting between tiles.
    let stretch = (place.end - place.start).div_ceil(comptime!(plan.slices * STEPS)) * STEPS;
    let from = place.start + slice * stretch;
    let until = min(from + stretch, place.end);
    #[unroll]
    for k in 0..plan.channels {
        factor[k] = kept(mixes);
        state[k] = 0.0f32;
    }
    let mut at = from;
    while at < until {
        read_slice(x0, x1, codes, &mut held, at, &place, &sizes, plan);
        #[unroll]
        for k in 0..plan.channels {
            let effect = gates(&held, &biases, restored[k], &mut xs, &mut ys, k, plan);
            factor[k] = both(factor[k], effect.factor, mixes);
            state[k] = apply(effect, state[k], mixes);
        }
        at += STEPS;
    }
    #[unroll]
    for k in 0..plan.channels {
        put(&mut meeting, 0usize, Effect { factor: factor[k], gained: state[k] }, k, plan);
    }
    sync_cube();
    if slice == 0 && place.live {
        let out = (place.b * sizes.chunks + place.chunk) * sizes.width + place.c;
        write_whole(&meeting, keeps, gained, out, mixes, plan);
    }
}
