//! What a unit holds of the steps and channels it works on.

use cubecl::prelude::*;
use minrnn_kernels::segments::PADDING;

use super::Plan;
use super::cells::Inputs;

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

/// Reads step `i` of a slice; `row` counts steps over the whole batch, and what is not `inside` the chunk counts as padding.
#[cube]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
pub(super) fn read_step<A: Float, N: Size>(
    x0: &[Vector<A, N>],
    x1: &[Vector<A, N>],
    codes: &[i32],
    slice: &mut Slice<A, N>,
    i: usize,
    row: usize,
    inside: bool,
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
    let mut code = 0i32.runtime();
    if comptime!(plan.codes) {
        code = codes[row];
    }
    slice.codes[i] = select(inside, code, PADDING);
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
