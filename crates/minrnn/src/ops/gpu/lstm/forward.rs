//! The forward kernel.

use cubecl::ir::ElemType;
use cubecl::prelude::*;
use minrnn_kernels::s_lstm::EMPTY_M;
use minrnn_kernels::segments::{PADDING, RESET};

use super::Plan;
use super::cells::{Gates, State, step};
use super::place::{place, row_of};

/// m of a state that has seen nothing, or 0 for a cell without one.
#[cube]
pub(super) fn empty_m(#[comptime] plan: Plan) -> f32 {
    if comptime!(plan.cell.is_slstm()) { EMPTY_M.runtime() } else { 0.0f32.runtime() }
}

/// All states of every step `[B, T, E]` and the last ones `[B, E]`. `weight` is `[NH, H, 4H]`.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
pub(super) fn walk<A: Float>(
    preact: &[A],
    weight: &[f32],
    bias: &[f32],
    recurrent_bias: &[f32],
    h0: &[f32],
    c0: &[f32],
    n0: &[f32],
    m0: &[f32],
    init_h: &[f32],
    init_c: &[f32],
    codes: &[i32],
    h: &mut [A],
    c: &mut [f32],
    n: &mut [f32],
    m: &mut [f32],
    h_last: &mut [f32],
    c_last: &mut [f32],
    n_last: &mut [f32],
    m_last: &mut [f32],
    batch: usize,
    seq_len: usize,
    heads: usize,
    #[comptime] plan: Plan,
    #[define(A)] _format: ElemType,
) {
    let place = place(batch, heads, plan);
    if place.first >= batch {
        terminate!();
    }
    let width = comptime!(plan.width);
    let rows = comptime!(plan.rows);
    let e = place.e;
    let unit = UNIT_POS as usize;
    let mut hidden = Shared::<[f32]>::new_slice(comptime!(2 * plan.rows * plan.width));
    let mut hs = Array::<f32>::new(comptime!(plan.held()));
    let mut cs = Array::<f32>::new(comptime!(plan.held()));
    let mut ns = Array::<f32>::new(comptime!(plan.held()));
    let mut ms = Array::<f32>::new(comptime!(plan.held()));
    let mut sums = Array::<f32>::new(comptime!(4 * plan.rows));
    #[unroll]
    for k in 0..comptime!(plan.channels()) {
        let channel = place.head * width + min(unit + comptime!(k * plan.units), width - 1);
        #[unroll]
        for r in 0..rows {
            let slot = comptime!(k * plan.rows + r);
            let at = row_of(&place, r) * e + channel;
            hs[slot] = 0.0f32;
            cs[slot] = 0.0f32;
            ns[slot] = 0.0f32;
            ms[slot] = empty_m(plan);
            if comptime!(plan.carried[0]) {
                hs[slot] = h0[at];
            }
            if comptime!(plan.carried[1]) {
                cs[slot] = c0[at];
            }
            if comptime!(plan.carried[2]) {
                ns[slot] = n0[at];
                ms[slot] = m0[at];
            }
        }
    }
    // Two halves, so that slower units may still read the one before.
    let mut half = 0usize;
    for t in 0..seq_len {
        #[unroll]
        for k in 0..comptime!(plan.channels()) {
            let j = unit + comptime!(k * plan.units);
            let channel = place.head * width + min(j, width - 1);
            #[unroll]
            for r in 0..rows {
                let slot = comptime!(k * plan.rows + r);
                if comptime!(plan.codes) {
                    if codes[row_of(&place, r) * seq_len + t] == RESET {
                        hs[slot] = 0.0f32;
                        cs[slot] = 0.0f32;
                        ns[slot] = 0.0f32;
                        ms[slot] = empty_m(plan);
                        if comptime!(plan.init[0]) {
                            hs[slot] = init_h[channel];
                        }
                        if comptime!(plan.init[1]) {
                            cs[slot] = init_c[channel];
                        }
                    }
                }
                if j < width {
                    hidden[half + r * width + j] = hs[slot];
                }
            }
        }
        sync_cube();
        #[unroll]
        for k in 0..comptime!(plan.channels()) {
            let j = unit + comptime!(k * plan.units);
            let inside = j < width;
            let j = min(j, width - 1);
            let channel = place.head * width + j;
            #[unroll]
            for r in 0..rows {
                let at = (row_of(&place, r) * seq_len + t) * 4 * e + channel;
                #[unroll]
                for gate in 0..4usize {
                    let mut x = f32::cast_from(preact[at + gate * e]);
                    if comptime!(plan.bias) {
                        x += bias[gate * e + channel];
                    }
                    if comptime!(plan.recurrent_bias) {
                        x += recurrent_bias[gate * e + channel];
                    }
                    sums[comptime!(gate * plan.rows + r)] = x;
                }
            }
            for i in 0..width {
                let from = (place.head * width + i) * comptime!(4 * plan.width) + j;
                #[unroll]
                for gate in 0..4usize {
                    let w = weight[from + gate * width];
                    #[unroll]
                    for r in 0..rows {
                        let sum = comptime!(gate * plan.rows + r);
                        sums[sum] = fma(w, hidden[half + r * width + i], sums[sum]);
                    }
                }
            }
            #[unroll]
            for r in 0..rows {
                let slot = comptime!(k * plan.rows + r);
                let b = row_of(&place, r);
                let mut real = true.runtime();
                if comptime!(plan.codes) {
                    real = codes[b * seq_len + t] != PADDING;
                }
                let gates = Gates {
                    i: sums[r],
                    f: sums[comptime!(plan.rows + r)],
                    z: sums[comptime!(2 * plan.rows + r)],
                    o: sums[comptime!(3 * plan.rows + r)],
                };
                let after = step(gates, State { h: hs[slot], c: cs[slot], n: ns[slot], m: ms[slot] }, comptime!(plan.cell));
                hs[slot] = select(real, after.h, hs[slot]);
                cs[slot] = select(real, after.c, cs[slot]);
                ns[slot] = select(real, after.n, ns[slot]);
                ms[slot] = select(real, after.m, ms[slot]);
                if inside && place.first + r < batch {
                    let out = (b * seq_len + t) * e + channel;
                    h[out] = A::cast_from(select(real, after.h, 0.0f32));
                    c[out] = select(real, after.c, 0.0f32);
                    if comptime!(plan.cell.is_slstm()) {
                        n[out] = select(real, after.n, 0.0f32);
                        m[out] = select(real, after.m, 0.0f32);
                    }
                }
            }
        }
        half = comptime!(plan.rows * plan.width) - half;
    }
    #[unroll]
    for k in 0..comptime!(plan.channels()) {
        let j = unit + comptime!(k * plan.units);
        #[unroll]
        for r in 0..rows {
            let slot = comptime!(k * plan.rows + r);
            if j < width && place.first + r < batch {
                let out = (place.first + r) * e + place.head * width + j;
                h_last[out] = hs[slot];
                c_last[out] = cs[slot];
                if comptime!(plan.cell.is_slstm()) {
                    n_last[out] = ns[slot];
                    m_last[out] = ms[slot];
                }
            }
        }
    }
}
