//! Gradients, from the last step to the first. For the formulas see [`super`].

use super::step::{Input, advance};
use super::{CHUNK, EPS, Head, Inputs, Sizes};
use crate::grid::{self, SharedOut};
use crate::out::{Out, Slots};
use crate::shape::{elements, expect_len};
use crate::simd::{self, Level, Simd, WithSimd, mul_add, neg, put};
use alloc::{vec, vec::Vec};
use core::mem::MaybeUninit;

/// Gradients of the input `[B, T, 3E + H]` and of the carried memory `[B, H, n, n]`, given those of y `[B, T, E]` and of the memory after
/// each sequence; an upstream gradient of `None` is 0.
///
/// # Panics
/// When a length does not fit `sizes`.
pub fn backward(sizes: Sizes, inputs: Inputs, d_y: Option<&[f32]>, d_after: Option<&[f32]>, d_x: Out, d_memory: Out) {
    inputs.check(sizes);
    d_y.inspect(|d_y| expect_len("d_y", d_y, elements([sizes.steps(), sizes.width()])));
    d_after.inspect(|d| expect_len("the gradient of the memory after", d, elements([sizes.batch, sizes.memory()])));
    d_x.expect_len("d_x", elements([sizes.steps(), sizes.inputs()]));
    d_memory.expect_len("d_memory", elements([sizes.batch, sizes.memory()]));
    if d_x.is_empty() && d_memory.is_empty() {
        return;
    }
    let (level, n) = (Level::current(), sizes.head_width);
    let [d_x, d_memory] = [d_x, d_memory].map(SharedOut::new);
    let zeros = vec![0.0; n];
    grid::for_each(sizes.batch * sizes.heads, |task| {
        let head = inputs.head(sizes, task);
        let d_state = d_after.map_or_else(|| vec![0.0; n * n], |d| d[task * n * n..(task + 1) * n * n].to_vec());
        let d_state = level.run(Backward { head, d_y, zeros: &zeros, d_state, d_x });
        // SAFETY: tasks have heads of their own.
        unsafe { d_memory.slice(task * n * n, n * n) }.write_copy_of_slice(&d_state);
    });
}

struct Backward<'a> {
    head: Head<'a>,
    /// Of the whole batch.
    d_y: Option<&'a [f32]>,
    zeros: &'a [f32],
    /// D, the gradient of the memory.
    d_state: Vec<f32>,
    d_x: SharedOut,
}

impl<'a> Backward<'a> {
    fn d_y(&self, t: usize) -> &'a [f32] {
        let Sizes { seq_len, head_width, .. } = self.head.sizes;
        let at = (self.head.b * seq_len + t) * self.head.sizes.width() + self.head.head * head_width;
        self.d_y.map_or(self.zeros, |d_y| &d_y[at..at + head_width])
    }

    /// Where the gradients of q, k, v and b of step `t` go.
    fn d_x(&self, t: usize) -> [Slots<'_>; 4] {
        let sizes = self.head.sizes;
        let first = (self.head.b * sizes.seq_len + t) * sizes.inputs();
        let [q, k, v, b] = self.head.places();
        let n = sizes.head_width;
        // SAFETY: tasks have heads of their own.
        unsafe { [self.d_x.slice(first + q, n), self.d_x.slice(first + k, n), self.d_x.slice(first + v, n), self.d_x.slice(first + b, 1)] }
    }

    /// The memory before every [`CHUNK`]-th step, one after the other.
    #[inline(always)]
    fn borders<S: Simd>(&self, simd: S, len: usize) -> Vec<f32> {
        let n = self.head.sizes.head_width;
        let mut memory = self.head.memory.map_or_else(|| vec![0.0; n * n], <[f32]>::to_vec);
        let mut borders = Vec::with_capacity(len.div_ceil(CHUNK) * n * n);
        for t in 0..len {
            if t % CHUNK == 0 {
                borders.extend_from_slice(&memory);
            }
            if self.head.is_reset(t) {
                memory.fill(0.0);
            }
            advance(simd, &self.head.input(simd, t), &mut memory, None);
        }
        borders
    }
}

impl WithSimd for Backward<'_> {
    type Output = Vec<f32>;

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) -> Vec<f32> {
        let (head, len) = (self.head, self.head.len());
        let square = head.sizes.head_width * head.sizes.head_width;
        for t in len..head.sizes.seq_len {
            self.d_x(t).into_iter().for_each(|d| d.fill(MaybeUninit::new(0.0)));
        }
        let borders = self.borders(simd, len);
        // The memory before each step of a chunk.
        let mut states = vec![0.0; CHUNK * square];
        let mut d_state = core::mem::take(&mut self.d_state);
        for first in (0..len).step_by(CHUNK).rev() {
            let steps = CHUNK.min(len - first);
            states[..square].copy_from_slice(&borders[first / CHUNK * square..][..square]);
            for s in 0..steps {
                let (before, after) = states[s * square..].split_at_mut(square);
                if head.is_reset(first + s) {
                    before.fill(0.0);
                }
                if s + 1 < steps {
                    after[..square].copy_from_slice(before);
                    advance(simd, &head.input(simd, first + s), &mut after[..square], None);
                }
            }
            for s in (0..steps).rev() {
                let t = first + s;
                let x = head.input(simd, t);
                step_backward(simd, &x, &states[s * square..][..square], self.d_y(t), &mut d_state, self.d_x(t));
                if head.is_reset(t) {
                    d_state.fill(0.0);
                }
            }
        }
        d_state
    }
}

/// One step back: `d_state` enters as D of the memory after the step and leaves as D of the memory before it, which is `memory`.
#[inline(always)]
fn step_backward<S: Simd>(simd: S, x: &Input<'_>, memory: &[f32], d_y: &[f32], d_state: &mut [f32], [d_q, d_k, d_v, d_b]: [Slots; 4]) {
    let n = x.k.len();
    let zero = simd.splat_f32s(0.0);
    for d in [&mut *d_q, &mut *d_k] {
        d.fill(MaybeUninit::new(0.0));
    }
    // SAFETY: filled just now.
    let [d_q, d_k] = [d_q, d_k].map(|d| unsafe { core::slice::from_raw_parts_mut(d.as_mut_ptr().cast::<f32>(), n) });
    let mut d_beta = zero;
    let beta = simd.splat_f32s(x.beta);
    for at in (0..n).step_by(S::F32_LANES) {
        let mut recalled = zero;
        for (row, &k) in memory.chunks_exact(n).zip(x.k) {
            recalled = mul_add(simd, simd.splat_f32s(k * x.inverse), simd::load(simd, row, at), recalled);
        }
        let missing = simd.sub_f32s(simd::load(simd, x.v, at), recalled);
        let u = simd.mul_f32s(beta, missing);
        let d_y = simd::load(simd, d_y, at);
        let mut d_u = zero;
        for (j, d_q) in d_q.iter_mut().enumerate().take(n) {
            let row = j * n..(j + 1) * n;
            let k = simd.splat_f32s(x.k[j] * x.inverse);
            let d = mul_add(simd, simd.splat_f32s(x.q[j]), d_y, simd::load(simd, &d_state[row.clone()], at));
            put(simd, &mut d_state[row.clone()], at, d);
            d_u = mul_add(simd, k, d, d_u);
            let after = mul_add(simd, k, u, simd::load(simd, &memory[row], at));
            *d_q += simd.reduce_sum_f32s(simd.mul_f32s(after, d_y));
        }
        d_beta = mul_add(simd, d_u, missing, d_beta);
        let d_value = simd.mul_f32s(beta, d_u);
        simd::store(simd, d_v, at, d_value);
        for (j, d_k) in d_k.iter_mut().enumerate().take(n) {
            let row = j * n..(j + 1) * n;
            let k = simd.splat_f32s(x.k[j] * x.inverse);
            let d = simd::load(simd, &d_state[row.clone()], at);
            let through = simd.mul_f32s(simd::load(simd, &memory[row.clone()], at), d_value);
            *d_k += simd.reduce_sum_f32s(simd.sub_f32s(simd.mul_f32s(d, u), through));
            put(simd, &mut d_state[row], at, mul_add(simd, neg(simd, k), d_value, d));
        }
    }
    // Removes the component along the key, in f64, since almost nothing may be left.
    let wide = |x: &f32| f64::from(*x);
    let inverse = 1.0 / simd::sqrt_f64(x.k.iter().map(|k| wide(k) * wide(k)).sum::<f64>() + f64::from(EPS));
    let along = d_k.iter().zip(x.k).map(|(d, k)| wide(d) * wide(k)).sum::<f64>() * inverse * inverse;
    for (d, k) in d_k.iter_mut().zip(x.k) {
        *d = ((wide(d) - wide(k) * along) * inverse) as f32;
    }
    d_b[0].write(simd.reduce_sum_f32s(d_beta) * x.beta * (1.0 - x.beta));
}
