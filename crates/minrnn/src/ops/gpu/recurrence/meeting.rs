//! Where the slices of a cube meet: in shared memory each puts down what it does to a state, and finds what the others do.
//!
//! In the backward walk, where the state is the gradient from the right, no cell mixes.

use cubecl::prelude::*;

use super::super::tensors::LANES;
use super::Plan;
use super::cells::{Effect, apply, both, kept};

/// The effects of all slices on all channels of the cube.
#[derive(CubeType)]
pub(super) struct Meeting {
    factors: Shared<[f32]>,
    gains: Shared<[f32]>,
}

/// Room for so many tiles.
#[cube]
pub(super) fn meeting(#[comptime] tiles: usize, #[comptime] plan: Plan) -> Meeting {
    Meeting {
        factors: Shared::<[f32]>::new_slice(comptime!(tiles * plan.slices * LANES * plan.channels)),
        gains: Shared::<[f32]>::new_slice(comptime!(tiles * plan.slices * LANES * plan.channels)),
    }
}

/// Puts down this unit's effect on its channel `k`, for the tile at `offset`.
#[cube]
pub(super) fn put(meeting: &mut Meeting, offset: usize, effect: Effect, #[comptime] k: usize, #[comptime] plan: Plan) {
    let at = offset + comptime!(k * plan.slices * LANES) + UNIT_POS as usize;
    meeting.factors[at] = effect.factor;
    meeting.gains[at] = effect.gained;
}

/// The effect of slice `s` on this unit's channel `k`.
#[cube]
fn of(meeting: &Meeting, offset: usize, s: usize, #[comptime] k: usize, #[comptime] plan: Plan) -> Effect {
    let at = offset + comptime!(k * plan.slices * LANES) + s * LANES + UNIT_POS_X as usize;
    Effect { factor: meeting.factors[at], gained: meeting.gains[at] }
}

/// The state that enters this unit's slice and the one that leaves the last.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Passage {
    pub entering: f32,
    pub leaving: f32,
}

/// Puts the effects of all slices on channel `k` one after the other, in the tile at `offset`.
#[cube]
pub(super) fn passage(
    meeting: &Meeting,
    offset: usize,
    state: f32,
    #[comptime] k: usize,
    #[comptime] mixes: bool,
    #[comptime] plan: Plan,
) -> Passage {
    let slice = UNIT_POS_Y as usize;
    let mut entering = state;
    let mut running = state;
    for s in 0..comptime!(plan.slices) {
        entering = select(s == slice, running, entering);
        running = apply(of(meeting, offset, s, k, plan), running, mixes);
    }
    Passage { entering, leaving: running }
}

/// What all slices do to a state, h ↦ keep h + gained, into row `at` of `keeps` and `gained`.
#[cube]
pub(super) fn write_whole<N: Size>(
    meeting: &Meeting,
    keeps: &mut [Vector<f32, N>],
    gained: &mut [Vector<f32, N>],
    at: usize,
    #[comptime] mixes: bool,
    #[comptime] plan: Plan,
) {
    let mut keep = Vector::<f32, N>::empty();
    let mut gain = Vector::<f32, N>::empty();
    #[unroll]
    for k in 0..plan.channels {
        let mut whole = kept(mixes);
        let mut left = 0.0f32;
        for s in 0..comptime!(plan.slices) {
            let effect = of(meeting, 0usize, s, k, plan);
            whole = both(whole, effect.factor, mixes);
            left = apply(effect, left, mixes);
        }
        keep.insert(k, if comptime!(mixes) { 1.0 - whole } else { whole });
        gain.insert(k, left);
    }
    keeps[at] = keep;
    gained[at] = gain;
}

/// The sum of `value` over the slices.
#[cube]
pub(super) fn over_slices(meeting: &mut Meeting, value: f32, #[comptime] plan: Plan) -> f32 {
    sync_cube();
    meeting.factors[UNIT_POS as usize] = value;
    sync_cube();
    let mut sum = 0.0f32;
    for s in 0..comptime!(plan.slices) {
        sum += meeting.factors[s * LANES + UNIT_POS_X as usize];
    }
    sum
}
