//! The backward kernels: the same walk from the last step to the first, on G_t = ∂L/∂h_t + a_{t+1} G_{t+1}.
//!
//! A step acts on the gradient from the right as c ↦ a (c + d_h), so tiles, slices and chunks are combined as in the forward walk. Gates
//! are recomputed from the inputs.

use cubecl::ir::ElemType;
use cubecl::prelude::*;
use minrnn_kernels::segments::{PADDING, RESET};

use super::super::chunks::{Place, Sizes, place};
use super::super::tensors::LANES;
use super::Plan;
use super::cells::{Effect, apply, coefficient, gradients};
use super::meeting::{meeting, over_slices, passage, put, write_whole};
use super::slice::{STEPS, Slice, biases, inputs_of, read_step, restored_by, slice, vector};

/// The step that stands `offset` steps before `at`; the chunk's first where there is none.
#[cube]
fn step_before(at: usize, offset: usize, place: &Place) -> usize {
    select(offset < at - place.start, at - 1 - min(offset, at - 1), place.start)
}

/// Reads the inputs and the arriving gradients of the slice that begins `offset` steps before `at`.
#[cube]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
fn read_slice<A: Float, N: Size>(
    x0: &[Vector<A, N>],
    x1: &[Vector<A, N>],
    d_h: &[Vector<A, N>],
    codes: &[i32],
    slice: &mut Slice<A, N>,
    arriving: &mut Array<Vector<A, N>>,
    at: usize,
    offset: usize,
    place: &Place,
    sizes: &Sizes,
    #[comptime] plan: Plan,
) {
    #[unroll]
    for i in 0..STEPS {
        let row = place.b * sizes.seq_len + step_before(at, offset + i, place);
        read_step(x0, x1, codes, slice, i, row, offset + i < at - place.start, place.c, sizes.width, plan);
        if comptime!(plan.d_h) {
            arriving[i] = d_h[row * sizes.width + place.c];
        }
    }
}

/// The gradient that arrives at step `i` and channel `k` of a slice.
#[cube]
fn arriving_at<A: Float, N: Size>(
    slice: &Slice<A, N>,
    arriving: &Array<Vector<A, N>>,
    i: usize,
    #[comptime] k: usize,
    #[comptime] plan: Plan,
) -> f32 {
    if comptime!(plan.d_h) { select(slice.codes[i] == PADDING, 0.0f32, f32::cast_from(arriving[i].extract(k))) } else { 0.0f32.runtime() }
}

/// What the steps of one channel of a slice do to the gradient.
#[cube]
fn effect_of<A: Float, N: Size>(
    slice: &Slice<A, N>,
    biases: &Array<f32>,
    arriving: &Array<Vector<A, N>>,
    #[comptime] k: usize,
    #[comptime] plan: Plan,
) -> Effect {
    let mut factor = 1.0f32;
    let mut gained = 0.0f32;
    #[unroll]
    for i in 0..STEPS {
        let real = slice.codes[i] != PADDING;
        let a = select(real, coefficient(inputs_of(slice, biases, i, k, plan), comptime!(plan.cell)), 1.0f32);
        gained = a * (gained + arriving_at(slice, arriving, i, k, plan));
        factor *= a;
        if comptime!(plan.codes) {
            let reset = slice.codes[i] == RESET;
            gained = select(reset, 0.0f32, gained);
            factor = select(reset, 0.0f32, factor);
        }
    }
    Effect { factor, gained }
}

/// Reads the states before the steps of the slice, but for those that a reset restores.
#[cube]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
fn read_states<A: Float, N: Size>(
    h: &[Vector<A, N>],
    before: &mut Array<Vector<A, N>>,
    at: usize,
    offset: usize,
    place: &Place,
    sizes: &Sizes,
) {
    #[unroll]
    for i in 0..STEPS {
        let t = step_before(at, offset + i, place);
        before[i] = h[(place.b * sizes.seq_len + t - min(t, 1)) * sizes.width + place.c];
    }
}

/// `vector` with `number` in place `k`.
#[cube]
fn with<A: Float, N: Size>(vector: Vector<A, N>, number: f32, #[comptime] k: usize) -> Vector<A, N> {
    let mut changed = vector;
    changed.insert(k, A::cast_from(number));
    changed
}

/// Sets every number of `numbers` to 0.
#[cube]
fn clear(numbers: &mut Array<f32>, #[comptime] count: usize) {
    #[unroll]
    for k in 0..count {
        numbers[k] = 0.0f32;
    }
}

/// The gradients of all inputs. `d_bias` `[B · chunks, N E]` and `d_init` `[B · chunks, E]` are sums over a chunk. `entering` are the
/// gradients between chunks, of the chunk after at its place, counted from the last chunk. Widths are of vectors.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
pub(super) fn walk_back<A: Float, N: Size>(
    x0: &[Vector<A, N>],
    x1: &[Vector<A, N>],
    bias: &[Vector<f32, N>],
    h: &[Vector<A, N>],
    h0: &[Vector<f32, N>],
    d_h: &[Vector<A, N>],
    d_last: &[Vector<f32, N>],
    entering: &[Vector<f32, N>],
    init: &[Vector<f32, N>],
    codes: &[i32],
    d_x0: &mut [Vector<A, N>],
    d_x1: &mut [Vector<A, N>],
    d_h0: &mut [Vector<f32, N>],
    d_init: &mut [Vector<f32, N>],
    d_bias: &mut [Vector<f32, N>],
    sizes: Sizes,
    cubes: usize,
    #[comptime] plan: Plan,
    #[define(A)] _format: ElemType,
) {
    if CUBE_POS >= cubes {
        terminate!();
    }
    let parts = comptime!(plan.cell.parts());
    let half = comptime!(plan.slices * LANES * plan.channels);
    let mut meeting = meeting(2usize, plan);
    let mut held = slice::<A, N>();
    let mut arriving = Array::<Vector<A, N>>::new(STEPS);
    let mut before = Array::<Vector<A, N>>::new(STEPS);
    let mut from_right = Array::<f32>::new(plan.channels);
    let mut first_state = Array::<f32>::new(plan.channels);
    let mut init_sum = Array::<f32>::new(plan.channels);
    let mut sums = Array::<f32>::new(comptime!(plan.cell.parts() * plan.channels));
    let place = place(&sizes);
    let c = place.c;
    let width = sizes.width;
    let shift = biases(bias, c, width, plan);
    let restored = restored_by(init, c, plan);
    let slice = UNIT_POS_Y as usize;

    let mut start = Vector::<f32, N>::new(0.0f32);
    if comptime!(plan.h0) {
        start = h0[place.b * width + c];
    }
    let mut end = Vector::<f32, N>::new(0.0f32);
    if comptime!(plan.d_last) {
        end = d_last[place.b * width + c];
    }
    if comptime!(plan.chunked) {
        if place.chunk + 1 < sizes.chunks {
            end = entering[(place.b * sizes.chunks + sizes.chunks - 2 - place.chunk) * width + c];
        }
    }
    #[unroll]
    for k in 0..plan.channels {
        first_state[k] = start.extract(k);
        from_right[k] = end.extract(k);
    }
    clear(&mut init_sum, plan.channels);
    clear(&mut sums, comptime!(plan.cell.parts() * plan.channels));
    let mut at = place.end;
    let mut offset = 0usize;
    let mut left = place.end > place.start;
    while left {
        let mine = slice * STEPS;
        read_slice(x0, x1, d_h, codes, &mut held, &mut arriving, at, mine, &place, &sizes, plan);
        read_states(h, &mut before, at, mine, &place, &sizes);
        #[unroll]
        for k in 0..plan.channels {
            let effect = effect_of(&held, &shift, &arriving, k, plan);
            put(&mut meeting, offset, effect, k, plan);
        }
        sync_cube();
        #[unroll]
        for k in 0..plan.channels {
            let passage = passage(&meeting, offset, from_right[k], k, false, plan);
            from_right[k] = passage.leaving;
            let mut now = passage.entering;
            #[unroll]
            for i in 0..STEPS {
                let real = held.codes[i] != PADDING;
                let mut state = f32::cast_from(before[i].extract(k));
                state = select(step_before(at, mine + i, &place) == 0, first_state[k], state);
                if comptime!(plan.codes) {
                    state = select(held.codes[i] == RESET, restored[k], state);
                }
                let u = inputs_of(&held, &shift, i, k, plan);
                let made = gradients(u, state, now + arriving_at(&held, &arriving, i, k, plan), comptime!(plan.cell));
                let d0 = select(real, made.d0, 0.0f32);
                let d1 = select(real, made.d1, 0.0f32);
                now = select(real, made.carried, now);
                if comptime!(plan.codes) {
                    let reset = held.codes[i] == RESET;
                    init_sum[k] += select(reset, now, 0.0f32);
                    now = select(reset, 0.0f32, now);
                }
                sums[k] += d0;
                if comptime!(parts > 1) {
                    sums[comptime!(plan.channels + k)] += d1;
                }
                held.u0[i] = with(held.u0[i], d0, k);
                held.u1[i] = with(held.u1[i], d1, k);
                if comptime!(parts > 2) {
                    let d2 = select(real, made.d2, 0.0f32);
                    sums[comptime!(2 * plan.channels + k)] += d2;
                    held.u2[i] = with(held.u2[i], d2, k);
                }
            }
        }
        #[unroll]
        for i in 0..STEPS {
            if mine + i < at - place.start && place.live {
                let out = (place.b * sizes.seq_len + step_before(at, mine + i, &place)) * parts * width + c;
                d_x0[out] = held.u0[i];
                if comptime!(parts == 1) {
                    d_x1[out] = held.u1[i];
                } else {
                    d_x0[out + width] = held.u1[i];
                }
                if comptime!(parts > 2) {
                    d_x0[out + 2 * width] = held.u2[i];
                }
            }
        }
        offset = half - offset;
        let tile = comptime!(plan.slices * STEPS);
        left = at - place.start > tile;
        at -= select(left, tile, 0usize);
    }
    if slice == 0 && place.live && place.chunk == 0 {
        d_h0[place.b * width + c] = vector(&from_right, plan);
    }
    let chunk = place.b * sizes.chunks + place.chunk;
    if comptime!(plan.init) {
        #[unroll]
        for k in 0..plan.channels {
            init_sum[k] = over_slices(&mut meeting, init_sum[k], plan);
        }
        if slice == 0 && place.live {
            d_init[chunk * width + c] = vector(&init_sum, plan);
        }
    }
    if comptime!(plan.bias) {
        #[unroll]
        for part in 0..parts {
            let mut sum = Vector::<f32, N>::empty();
            #[unroll]
            for k in 0..plan.channels {
                sum.insert(k, over_slices(&mut meeting, sums[part * plan.channels + k], plan));
            }
            if slice == 0 && place.live {
                d_bias[(chunk * parts + part) * width + c] = sum;
            }
        }
    }
}

/// What every chunk does to the gradient from the right, c ↦ `keeps` c + `gained`: both `[B, chunks, E]`, the last chunk first.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
pub(super) fn summarise_back<A: Float, N: Size>(
    x0: &[Vector<A, N>],
    x1: &[Vector<A, N>],
    bias: &[Vector<f32, N>],
    d_h: &[Vector<A, N>],
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
    let mut meeting = meeting(1usize, plan);
    let mut held = slice::<A, N>();
    let mut arriving = Array::<Vector<A, N>>::new(STEPS);
    let mut factor = Array::<f32>::new(plan.channels);
    let mut state = Array::<f32>::new(plan.channels);
    let place = place(&sizes);
    let shift = biases(bias, place.c, sizes.width, plan);
    let slice = UNIT_POS_Y as usize;
    let stretch = (place.end - place.start).div_ceil(comptime!(plan.slices * STEPS)) * STEPS;
    #[unroll]
    for k in 0..plan.channels {
        factor[k] = 1.0f32;
        state[k] = 0.0f32;
    }
    let mut done = 0usize;
    while done < stretch {
        let offset = slice * stretch + done;
        read_slice(x0, x1, d_h, codes, &mut held, &mut arriving, place.end, offset, &place, &sizes, plan);
        #[unroll]
        for k in 0..plan.channels {
            let effect = effect_of(&held, &shift, &arriving, k, plan);
            factor[k] *= effect.factor;
            state[k] = apply(effect, state[k], false);
        }
        done += STEPS;
    }
    #[unroll]
    for k in 0..plan.channels {
        put(&mut meeting, 0usize, Effect { factor: factor[k], gained: state[k] }, k, plan);
    }
    sync_cube();
    if slice == 0 && place.live {
        let out = (place.b * sizes.chunks + sizes.chunks - 1 - place.chunk) * sizes.width + place.c;
        write_whole(&meeting, keeps, gained, out, false, plan);
    }
}
