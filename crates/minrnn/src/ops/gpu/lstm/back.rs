//! The backward kernels.

use cubecl::ir::ElemType;
use cubecl::prelude::*;
use minrnn_kernels::segments::{PADDING, RESET};

use super::Plan;
use super::cells::{Gates, State, gradients};
use super::forward::empty_m;
use super::place::{place, row_of};

/// The hidden state before every step, `[NH, B T, H]`; 0 at padding.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
pub(super) fn hidden_before<A: Float>(
    h: &[A],
    h0: &[f32],
    init_h: &[f32],
    codes: &[i32],
    before: &mut [f32],
    steps: usize,
    seq_len: usize,
    heads: usize,
    #[comptime] plan: Plan,
    #[define(A)] _format: ElemType,
) {
    let width = comptime!(plan.width);
    let e = heads * width;
    if ABSOLUTE_POS >= steps * e {
        terminate!();
    }
    let j = ABSOLUTE_POS % width;
    let row = ABSOLUTE_POS / width % steps;
    let channel = ABSOLUTE_POS / (width * steps) * width + j;
    let mut value = f32::cast_from(h[(row - min(row, 1)) * e + channel]);
    let t = row % seq_len;
    if t == 0 {
        value = 0.0f32;
        if comptime!(plan.carried[0]) {
            value = h0[row / seq_len * e + channel];
        }
    }
    if comptime!(plan.codes) {
        let code = codes[row];
        if code == RESET {
            value = 0.0f32;
            if comptime!(plan.init[0]) {
                value = init_h[channel];
            }
        }
        value = select(code == PADDING, 0.0f32, value);
    }
    before[ABSOLUTE_POS] = value;
}

/// Gradients of the pre-activations `[B, T, 4E]`, of the carried h, c and n `[B, E]`, and those of what resets restore, of each row
/// `[B, E]`. `product` `[NH, B T, 4H]` is what the weight made of the hidden states.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
pub(super) fn walk_back<A: Float>(
    preact: &[A],
    product: &[f32],
    weight: &[f32],
    bias: &[f32],
    recurrent_bias: &[f32],
    c: &[f32],
    n: &[f32],
    m: &[f32],
    c0: &[f32],
    n0: &[f32],
    m0: &[f32],
    init_c: &[f32],
    codes: &[i32],
    d_h: &[A],
    d_h_last: &[f32],
    d_c_last: &[f32],
    d_n_last: &[f32],
    d_preact: &mut [f32],
    d_h0: &mut [f32],
    d_c0: &mut [f32],
    d_n0: &mut [f32],
    d_init_h: &mut [f32],
    d_init_c: &mut [f32],
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
    let mut d_gates = Shared::<[f32]>::new_slice(comptime!(4 * plan.rows * plan.width));
    let mut on_h = Array::<f32>::new(comptime!(plan.held()));
    let mut on_c = Array::<f32>::new(comptime!(plan.held()));
    let mut on_n = Array::<f32>::new(comptime!(plan.held()));
    let mut restored_h = Array::<f32>::new(comptime!(plan.held()));
    let mut restored_c = Array::<f32>::new(comptime!(plan.held()));
    let mut sums = Array::<f32>::new(rows);
    #[unroll]
    for k in 0..comptime!(plan.channels()) {
        let channel = place.head * width + min(unit + comptime!(k * plan.units), width - 1);
        #[unroll]
        for r in 0..rows {
            let slot = comptime!(k * plan.rows + r);
            let at = row_of(&place, r) * e + channel;
            on_h[slot] = 0.0f32;
            on_c[slot] = 0.0f32;
            on_n[slot] = 0.0f32;
            restored_h[slot] = 0.0f32;
            restored_c[slot] = 0.0f32;
            if comptime!(plan.d_last[0]) {
                on_h[slot] = d_h_last[at];
            }
            if comptime!(plan.d_last[1]) {
                on_c[slot] = d_c_last[at];
            }
            if comptime!(plan.d_last[2]) {
                on_n[slot] = d_n_last[at];
            }
        }
    }
    let mut left = seq_len;
    while left > 0 {
        left -= 1;
        #[unroll]
        for k in 0..comptime!(plan.channels()) {
            let j = unit + comptime!(k * plan.units);
            let inside = j < width;
            let j = min(j, width - 1);
            let channel = place.head * width + j;
            #[unroll]
            for r in 0..rows {
                let slot = comptime!(k * plan.rows + r);
                let b = row_of(&place, r);
                let row = b * seq_len + left;
                let mut real = true.runtime();
                let mut reset = false.runtime();
                if comptime!(plan.codes) {
                    let code = codes[row];
                    real = code != PADDING;
                    reset = code == RESET;
                }
                let mut c_before = 0.0f32;
                let mut n_before = 0.0f32;
                let mut m_before = empty_m(plan);
                if left > 0 {
                    let at = (row - min(row, 1)) * e + channel;
                    c_before = c[at];
                    if comptime!(plan.cell.is_slstm()) {
                        n_before = n[at];
                        m_before = m[at];
                    }
                } else {
                    let at = b * e + channel;
                    if comptime!(plan.carried[1]) {
                        c_before = c0[at];
                    }
                    if comptime!(plan.carried[2]) {
                        n_before = n0[at];
                        m_before = m0[at];
                    }
                }
                if reset {
                    c_before = 0.0f32;
                    n_before = 0.0f32;
                    m_before = empty_m(plan);
                    if comptime!(plan.init[1]) {
                        c_before = init_c[channel];
                    }
                }
                let mut arriving = on_h[slot];
                if comptime!(plan.d_h) {
                    arriving += f32::cast_from(d_h[row * e + channel]);
                }
                let own = row * 4 * e + channel;
                let other = (place.head * batch * seq_len + row) * comptime!(4 * plan.width) + j;
                let gates = Gates {
                    i: gate(preact, product, bias, recurrent_bias, own, other, 0usize, channel, e, plan),
                    f: gate(preact, product, bias, recurrent_bias, own, other, 1usize, channel, e, plan),
                    z: gate(preact, product, bias, recurrent_bias, own, other, 2usize, channel, e, plan),
                    o: gate(preact, product, bias, recurrent_bias, own, other, 3usize, channel, e, plan),
                };
                let mut after = State { h: 0.0f32.runtime(), c: c[row * e + channel], n: 0.0f32.runtime(), m: 0.0f32.runtime() };
                if comptime!(plan.cell.is_slstm()) {
                    after.n = n[row * e + channel];
                    after.m = m[row * e + channel];
                }
                let before = State { h: 0.0f32.runtime(), c: c_before, n: n_before, m: m_before };
                let d = gradients(gates, before, after, arriving, on_c[slot], on_n[slot], comptime!(plan.cell));
                let d_i = select(real, d.i, 0.0f32);
                let d_f = select(real, d.f, 0.0f32);
                let d_z = select(real, d.z, 0.0f32);
                let d_o = select(real, d.o, 0.0f32);
                on_c[slot] = select(real, d.c, on_c[slot]);
                on_n[slot] = select(real, d.n, on_n[slot]);
                if inside {
                    let met = r * comptime!(4 * plan.width) + j;
                    d_gates[met] = d_i;
                    d_gates[met + width] = d_f;
                    d_gates[met + 2 * width] = d_z;
                    d_gates[met + 3 * width] = d_o;
                    if place.first + r < batch {
                        d_preact[own] = d_i;
                        d_preact[own + e] = d_f;
                        d_preact[own + 2 * e] = d_z;
                        d_preact[own + 3 * e] = d_o;
                    }
                }
            }
        }
        sync_cube();
        #[unroll]
        for k in 0..comptime!(plan.channels()) {
            let j = min(unit + comptime!(k * plan.units), width - 1);
            #[unroll]
            for r in 0..rows {
                sums[r] = 0.0f32;
            }
            for i in 0..comptime!(4 * plan.width) {
                let w = weight[(place.head * comptime!(4 * plan.width) + i) * width + j];
                #[unroll]
                for r in 0..rows {
                    sums[r] = fma(w, d_gates[r * comptime!(4 * plan.width) + i], sums[r]);
                }
            }
            #[unroll]
            for r in 0..rows {
                let slot = comptime!(k * plan.rows + r);
                if comptime!(plan.codes) {
                    let code = codes[row_of(&place, r) * seq_len + left];
                    on_h[slot] = select(code == PADDING, on_h[slot], sums[r]);
                    if code == RESET {
                        restored_h[slot] += on_h[slot];
                        restored_c[slot] += on_c[slot];
                        on_h[slot] = 0.0f32;
                        on_c[slot] = 0.0f32;
                        on_n[slot] = 0.0f32;
                    }
                } else {
                    on_h[slot] = sums[r];
                }
            }
        }
        sync_cube();
    }
    #[unroll]
    for k in 0..comptime!(plan.channels()) {
        let j = unit + comptime!(k * plan.units);
        #[unroll]
        for r in 0..rows {
            let slot = comptime!(k * plan.rows + r);
            if j < width && place.first + r < batch {
                let out = (place.first + r) * e + place.head * width + j;
                d_h0[out] = on_h[slot];
                d_c0[out] = on_c[slot];
                d_n0[out] = on_n[slot];
                d_init_h[out] = restored_h[slot];
                d_init_c[out] = restored_c[slot];
            }
        }
    }
}

/// The pre-activation of a gate: `own` is its place in `preact`, `other` that in `product`, without the gate.
#[cube]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
fn gate<A: Float>(
    preact: &[A],
    product: &[f32],
    bias: &[f32],
    recurrent_bias: &[f32],
    own: usize,
    other: usize,
    #[comptime] gate: usize,
    channel: usize,
    e: usize,
    #[comptime] plan: Plan,
) -> f32 {
    let mut x = f32::cast_from(preact[own + gate * e]) + product[other + comptime!(gate * plan.width)];
    if comptime!(plan.bias) {
        x += bias[gate * e + channel];
    }
    if comptime!(plan.recurrent_bias) {
        x += recurrent_bias[gate * e + channel];
    }
    x
}
