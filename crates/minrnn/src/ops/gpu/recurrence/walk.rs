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
use super::cells::{Effect, Gate, Inputs, apply, both, cut, gate, kept, step};

/// Steps that a unit holds in registers.
pub(super) const STEPS: usize = 8;

/// What a unit has read of its slice: the inputs of every step, and whether it is a reset or [`PADDING`], as what is not in the chunk is.
#[derive(CubeType)]
pub(super) struct Slice<A: Float, N: Size> {
    pub u0: Array<Vector<A, N>>,
    pub u1: Array<Vector<A, N>>,
    pub u2: Array<Vector<A, N>>,
    pub codes: Array<i32>,
}

#[cube]
pub(super) fn slice<A: Float, N: Size>() -> Slice<A, N> {
    Slice::<A, N> {
        u0: Array::<Vector<A, N>>::new(STEPS),
        u1: Array::<Vector<A, N>>::new(STEPS),
        u2: Array::<Vector<A, N>>::new(STEPS),
        codes: Array::<i32>::new(STEPS),
    }
}

/// The biases of a unit's channels, one after the other for each input; nothing is in it where there are none.
#[cube]
pub(super) fn biases<N: Size>(bias: &[Vector<f32, N>], c: usize, width: usize, #[comptime] plan: Plan) -> Array<f32> {
    let parts = comptime!(plan.cell.parts());
    let mut held = Array::<f32>::new(comptime!(plan.cell.parts() * plan.channels));
    #[unroll]
    for part in 0..parts {
        #[unroll]
        for k in 0..plan.channels {
            held[part * plan.channels + k] = 0.0f32;
        }
        if comptime!(plan.bias) {
            let vector = bias[part * width + c];
            #[unroll]
            for k in 0..plan.channels {
                held[part * plan.channels + k] = vector.extract(k);
            }
        }
    }
    held
}

/// Reads the inputs of step `i` of a slice; `row` counts steps over the whole batch.
#[cube]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
pub(super) fn read_step<A: Float, N: Size>(
    x0: &[Vector<A, N>],
    x1: &[Vector<A, N>],
    slice: &mut Slice<A, N>,
    i: usize,
    row: usize,
    c: usize,
    width: usize,
    #[comptime] plan: Plan,
) {
    let parts = comptime!(plan.cell.parts());
    let at = row * parts * width + c;
    slice.u0[i] = x0[at];
    if comptime!(parts == 1) {
        slice.u1[i] = x1[at];
    } else {
        slice.u1[i] = x0[at + width];
    }
    if comptime!(parts > 2) {
        slice.u2[i] = x0[at + 2 * width];
    }
}

/// The inputs of step `i` and channel `k` of a slice.
#[cube]
pub(super) fn inputs_of<A: Float, N: Size>(
    slice: &Slice<A, N>,
    biases: &Array<f32>,
    i: usize,
    #[comptime] k: usize,
    #[comptime] plan: Plan,
) -> Inputs {
    let parts = comptime!(plan.cell.parts());
    let mut u =
        Inputs { u0: f32::cast_from(slice.u0[i].extract(k)) + biases[k], u1: f32::cast_from(slice.u1[i].extract(k)), u2: 0.0f32.runtime() };
    if comptime!(parts > 1) {
        u.u1 += biases[comptime!(plan.channels + k)];
    }
    if comptime!(parts > 2) {
        u.u2 = f32::cast_from(slice.u2[i].extract(k)) + biases[comptime!(2 * plan.channels + k)];
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
        read_step(x0, x1, slice, i, row, place.c, sizes.width, plan);
        let mut code = 0i32.runtime();
        if comptime!(plan.codes) {
            code = codes[row];
        }
        slice.codes[i] = select(t < place.end, code, PADDING);
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

/// The states that a reset of a unit's channels restores.
#[cube]
pub(super) fn restored_by<N: Size>(init: &[Vector<f32, N>], c: usize, #[comptime] plan: Plan) -> Array<f32> {
    let mut restored = Array::<f32>::new(plan.channels);
    #[unroll]
    for k in 0..plan.channels {
        restored[k] = 0.0f32;
    }
    if comptime!(plan.init) {
        let vector = init[c];
        #[unroll]
        for k in 0..plan.channels {
            restored[k] = vector.extract(k);
        }
    }
    restored
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
    let units = comptime!(plan.slices * LANES);
    let half = comptime!(plan.slices * LANES * plan.channels);
    let mut factors = Shared::<[f32]>::new_slice(comptime!(2 * plan.slices * LANES * plan.channels));
    let mut gains = Shared::<[f32]>::new_slice(comptime!(2 * plan.slices * LANES * plan.channels));
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
            factors[offset + k * units + UNIT_POS as usize] = effect.factor;
            gains[offset + k * units + UNIT_POS as usize] = effect.gained;
        }
        sync_cube();
        #[unroll]
        for k in 0..plan.channels {
            let passage = passage(&factors, &gains, offset + k * units, state[k], plan);
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

/// A number of each channel as a vector.
#[cube]
pub(super) fn vector<N: Size>(numbers: &Array<f32>, #[comptime] plan: Plan) -> Vector<f32, N> {
    let mut vector = Vector::<f32, N>::empty();
    #[unroll]
    for k in 0..plan.channels {
        vector.insert(k, numbers[k]);
    }
    vector
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
    let units = comptime!(plan.slices * LANES);
    let mut factors = Shared::<[f32]>::new_slice(comptime!(plan.slices * LANES * plan.channels));
    let mut gains = Shared::<[f32]>::new_slice(comptime!(plan.slices * LANES * plan.channels));
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
        factors[k * units + UNIT_POS as usize] = factor[k];
        gains[k * units + UNIT_POS as usize] = state[k];
    }
    sync_cube();
    if slice == 0 && place.live {
        let lane = UNIT_POS_X as usize;
        #[unroll]
        for k in 0..plan.channels {
            let mut whole = kept(mixes);
            let mut left = 0.0f32;
            for s in 0..comptime!(plan.slices) {
                let effect = Effect { factor: factors[k * units + s * LANES + lane], gained: gains[k * units + s * LANES + lane] };
                whole = both(whole, effect.factor, mixes);
                left = apply(effect, left, mixes);
            }
            factor[k] = if comptime!(mixes) { 1.0 - whole } else { whole };
            state[k] = left;
        }
        let out = (place.b * sizes.chunks + place.chunk) * sizes.width + place.c;
        keeps[out] = vector(&factor, plan);
        gained[out] = vector(&state, plan);
    }
}
