//! What a unit of the convolution works on, and how it reads the row with its window before it.

use cubecl::prelude::*;
use minrnn_kernels::segments::PADDING;

use super::super::tensors::LANES;
use super::{Plan, Sizes};

/// What a unit works on.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Place {
    pub b: usize,
    pub block: usize,
    /// The channel, inside the width.
    pub c: usize,
    pub live: bool,
}

#[cube]
pub(super) fn place(sizes: &Sizes) -> Place {
    let group = CUBE_POS % sizes.groups;
    let rest = CUBE_POS / sizes.groups;
    let c = group * LANES + UNIT_POS_X as usize;
    Place { b: rest / sizes.blocks, block: rest % sizes.blocks, c: min(c, sizes.width - 1), live: c < sizes.width }
}

#[cube]
pub(super) fn code_of(codes: &[i32], row: usize, #[comptime] plan: Plan) -> i32 {
    let mut code = 0i32;
    if comptime!(plan.codes) {
        code = codes[row];
    }
    code
}

/// The input at position `p` of the row, counted from the window's first.
#[cube]
pub(super) fn input_at(x: &[f32], window: &[f32], p: usize, place: &Place, sizes: &Sizes, #[comptime] plan: Plan) -> f32 {
    let past = comptime!(plan.past);
    let mut value = 0.0f32;
    if p >= past {
        value = x[(place.b * sizes.seq_len + min(p - past, sizes.seq_len - 1)) * sizes.width + place.c];
    } else if comptime!(plan.window) {
        value = window[(place.b * past + p) * sizes.width + place.c];
    }
    value
}

/// Number of real steps of row `b`.
#[cube]
pub(super) fn length_of(codes: &[i32], b: usize, seq_len: usize, #[comptime] plan: Plan) -> usize {
    let mut length = seq_len;
    if comptime!(plan.codes) {
        let mut padded = true.runtime();
        while padded {
            padded = length > 0;
            if padded {
                padded = codes[b * seq_len + length - 1] == PADDING;
            }
            if padded {
                length -= 1;
            }
        }
    }
    length
}
