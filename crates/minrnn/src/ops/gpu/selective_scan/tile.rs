//! The steps of a tile: what a unit reads of its channel, and what a cube reads of B and C.

use cubecl::prelude::*;
use minrnn_kernels::segments::{PADDING, RESET};

use super::super::chunks::{Place, Sizes};
use super::super::elementary::{sigmoid, softplus};
use super::super::tensors::LANES;
use super::{Plan, STEPS};

/// The steps of a tile in one channel, and B and C of all. Steps that are padding, or past the end, have Δ = 0 and u = 0 and leave every state
/// as it is.
#[derive(CubeType)]
pub(super) struct Tile {
    /// `[STEPS, 2N]`, 0 where there is no real step; the cube's.
    pub bc: Shared<[f32]>,
    /// Δ.
    pub delta: Array<f32>,
    pub u: Array<f32>,
    /// Whether the state is reset to 0 before the step.
    pub resets: Array<bool>,
    /// Whether the step is real.
    pub real: Array<bool>,
}

#[cube]
pub(super) fn tile(#[comptime] plan: Plan) -> Tile {
    Tile {
        bc: Shared::<[f32]>::new_slice(comptime!(STEPS * 2 * plan.d_state)),
        delta: Array::<f32>::new(STEPS),
        u: Array::<f32>::new(STEPS),
        resets: Array::<bool>::new(STEPS),
        real: Array::<bool>::new(STEPS),
    }
}

/// Step `t` of the row, counted over the batch, or the row's last one where there are fewer.
#[cube]
pub(super) fn row_of(t: usize, place: &Place, sizes: &Sizes) -> usize {
    place.b * sizes.seq_len + min(t, sizes.seq_len - 1)
}

/// Reads the tile that begins at step `at`. All units of the cube take part.
#[cube]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
pub(super) fn read_tile(
    u: &[f32],
    delta: &[f32],
    bias: f32,
    bc: &[f32],
    codes: &[i32],
    tile: &mut Tile,
    at: usize,
    place: &Place,
    sizes: &Sizes,
    #[comptime] plan: Plan,
) {
    read_bc(bc, codes, tile, at, place, sizes, plan);
    read_steps(u, delta, bias, codes, tile, at, place, sizes, plan);
}

#[cube]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
fn read_steps(
    u: &[f32],
    delta: &[f32],
    bias: f32,
    codes: &[i32],
    tile: &mut Tile,
    at: usize,
    place: &Place,
    sizes: &Sizes,
    #[comptime] plan: Plan,
) {
    #[unroll]
    for i in 0..STEPS {
        let row = row_of(at + i, place, sizes);
        let mut real = at + i < place.end;
        let mut reset = false.runtime();
        if comptime!(plan.codes) {
            let code = codes[row];
            reset = real && code == RESET;
            real = real && code != PADDING;
        }
        let element = row * sizes.width + place.c;
        tile.delta[i] = select(real, softplus(delta[element] + bias), 0.0f32);
        tile.u[i] = select(real, u[element], 0.0f32);
        tile.resets[i] = reset;
        tile.real[i] = real;
    }
}

#[cube]
fn read_bc(bc: &[f32], codes: &[i32], tile: &mut Tile, at: usize, place: &Place, sizes: &Sizes, #[comptime] plan: Plan) {
    let columns = comptime!(2 * plan.d_state);
    sync_cube();
    let mut i = UNIT_POS as usize;
    while i < comptime!(STEPS * 2 * plan.d_state) {
        let t = at + i / columns;
        let row = row_of(t, place, sizes);
        let mut real = t < place.end;
        if comptime!(plan.codes) {
            real = real && codes[row] != PADDING;
        }
        tile.bc[i] = select(real, bc[row * columns + i % columns], 0.0f32);
        i += LANES;
    }
    sync_cube();
}

/// The gate SiLU(z) and its derivative.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Gated {
    pub value: f32,
    pub slope: f32,
}

#[cube]
pub(super) fn silu(z: f32) -> Gated {
    let s = sigmoid(z);
    Gated { value: z * s.value, slope: s.value * fma(z, s.rest, 1.0f32) }
}

/// ∂L/∂v of a step, where v is the output before the gate: 0 at padding and past the end.
#[cube]
pub(super) fn arriving(d_y: &[f32], z: &[f32], element: usize, real: bool, #[comptime] plan: Plan) -> f32 {
    let mut d = 0.0f32;
    if comptime!(plan.d_y) {
        let mut gate = 1.0f32;
        if comptime!(plan.z) {
            gate = silu(z[element]).value;
        }
        d = select(real, d_y[element] * gate, 0.0f32);
    }
    d
}

/// What the steps of a chunk do to the states of a channel in the end: each keeps exp(`delta` A) of itself, or nothing.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Passed {
    /// Δ of all steps.
    delta: f32,
    /// Whether one of them is a reset.
    cut: bool,
}

#[cube]
pub(super) fn nothing_passed() -> Passed {
    Passed { delta: 0.0f32.runtime(), cut: false.runtime() }
}

/// Counts the steps of a tile in.
#[cube]
pub(super) fn pass(passed: &mut Passed, tile: &Tile) {
    #[unroll]
    for i in 0..STEPS {
        passed.delta += tile.delta[i];
        passed.cut = passed.cut || tile.resets[i];
    }
}

/// Writes what a chunk does to a channel's states; they are `states` if they were 0 before. `chunk` counts over the batch.
#[cube]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
pub(super) fn write_effect(
    passed: Passed,
    states: &Array<f32>,
    a: &[f32],
    keeps: &mut [f32],
    gained: &mut [f32],
    chunk: usize,
    c: usize,
    width: usize,
    #[comptime] plan: Plan,
) {
    let d_state = comptime!(plan.d_state);
    for n in 0..d_state {
        let out = (chunk * d_state + n) * width + c;
        keeps[out] = select(passed.cut, 0.0f32, (passed.delta * a[c * d_state + n]).exp());
        gained[out] = states[n];
    }
}
