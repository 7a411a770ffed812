//! Gradients of the scan, chunk by chunk from the end.

use super::grid::Grid;
use super::lanes::{Steps, load_group, store_group};
use super::{CHUNK, GROUP, Gradients, Inputs, Scan, boundaries_len};
use crate::grid::SharedOut;
use crate::matmul::transposed;
use crate::out::{Out, Slots};
use crate::rows::combine;
use crate::shape::{Shape, elements, expect_len};
use crate::silu::silu;
use crate::simd::{self, Level, Simd, TRACE, WithSimd, add_to, exp, mul_add, plus, without_traces};
use alloc::{vec, vec::Vec};
use core::mem::MaybeUninit;
use core::ops::Range;

/// Carried gradients that have vanished are set to 0 only every this many steps: the inner loop has no room for it at each step, and hardly any decays so
/// fast that it passes through the subnormal numbers in between.
const CARRY_STEPS: usize = 8;

/// Gradients of every input, given those of `y` and `h_last` (`None` is 0) and the boundaries written by [`forward`](super::forward). The
/// carried state itself is not read.
///
/// # Panics
/// When a length does not fit `shape` and `d_state`, or a gate's gradient has no output.
pub fn backward(
    shape: Shape,
    d_state: usize,
    inputs: &Inputs<'_>,
    boundaries: &[f32],
    d_y: Option<&[f32]>,
    d_h_last: Option<&[f32]>,
    out: Gradients<'_>,
) {
    let width = shape.width;
    inputs.expect_fit(shape, d_state);
    expect_len("boundaries", boundaries, boundaries_len(shape, d_state));
    d_y.inspect(|d| expect_len("d_y", d, shape.elements()));
    d_h_last.inspect(|d| expect_len("d_h_last", d, elements([shape.states(), d_state])));
    out.d_u.expect_len("d_u", shape.elements());
    out.d_delta.expect_len("d_delta", shape.elements());
    out.d_delta_bias.expect_len("d_delta_bias", width);
    out.d_a.expect_len("d_a", elements([width, d_state]));
    out.d_bc.expect_len("d_bc", inputs.bc.len());
    out.d_skip.expect_len("d_skip", width);
    out.d_h0.expect_len("d_h0", elements([shape.states(), d_state]));
    assert_eq!(inputs.z.is_some(), out.d_z.is_some(), "a scan with a gate has a gradient of it, and no other has");
    let d_z = out.d_z.map(|d_z| {
        d_z.expect_len("d_z", shape.elements());
        SharedOut::new(d_z)
    });
    let shape = shape.with_rows_of(inputs.bc.len() + out.d_u.len() + out.d_h0.len());
    let scan = Scan::new(shape, d_state, inputs);
    let grid = Grid::new(shape);
    // Sums of a group of rows: A as `[N, D]`, then D, then the bias of δ.
    let per_group = (d_state + 2) * width;
    let mut sums = vec![0.0; grid.groups * per_group];
    let mut parts_bc = vec![MaybeUninit::uninit(); if grid.parts > 1 { grid.parts * inputs.bc.len() } else { 0 }];
    let d_bc = out.d_bc.slots();
    {
        let whole = SharedOut::of(d_bc);
        let parts = SharedOut::of(&mut parts_bc);
        let [d_u, d_delta, d_h0] = [out.d_u, out.d_delta, out.d_h0].map(SharedOut::new);
        let sums = SharedOut::new(&mut sums);
        let level = Level::current();
        grid.for_each(|group, rows, part, channels| {
            let (from, w) = (channels.start, channels.len());
            let (d_bc, bc_from) = if grid.parts > 1 { (parts, part * inputs.bc.len()) } else { (whole, 0) };
            let task = Task { scan: &scan, boundaries, d_y, d_h_last, rows, channels, d_u, d_delta, d_z, d_bc, bc_from, d_h0 };
            let own = level.run(task);
            for (row, own) in own.chunks_exact(w.max(1)).enumerate() {
                // SAFETY: tasks have groups and channels of their own.
                unsafe { sums.slice(group * per_group + row * width + from, w) }.write_copy_of_slice(own);
            }
        });
    }
    if grid.parts > 1 {
        // SAFETY: the tasks have written the whole of every part.
        add_parts(unsafe { parts_bc.assume_init_ref() }, d_bc);
    }
    let mut d_a = vec![0.0; d_state * width];
    combine(&sums, per_group, 0, Out::new(&mut d_a));
    out.d_a.slots().write_copy_of_slice(&transposed(&d_a, d_state, width));
    combine(&sums, per_group, d_state * width, out.d_skip);
    combine(&sums, per_group, (d_state + 1) * width, out.d_delta_bias);
}

/// The sum of the parts, each as long as `out`, in their order.
fn add_parts(parts: &[f32], out: Slots) {
    let len = out.len();
    for (i, out) in out.iter_mut().enumerate() {
        out.write(parts[i..].iter().step_by(len).sum());
    }
}

/// The rows `rows` at the channels `channels`.
struct Task<'a> {
    scan: &'a Scan<'a>,
    boundaries: &'a [f32],
    d_y: Option<&'a [f32]>,
    d_h_last: Option<&'a [f32]>,
    rows: Range<usize>,
    channels: Range<usize>,
    d_u: SharedOut,
    d_delta: SharedOut,
    d_z: Option<SharedOut>,
    d_bc: SharedOut,
    /// Where this part's gradients of B and C begin.
    bc_from: usize,
    d_h0: SharedOut,
}

/// What a task works with; w is its number of channels.
struct Work<S: Simd> {
    steps: Steps<S>,
    /// v̄ of each step.
    d_value: Vec<S::f32s>,
    /// Σ_n A w of each step.
    through_decay: Vec<S::f32s>,
    /// Σ_n G B of each step.
    through_input: Vec<S::f32s>,
    /// ā of each step for a group of states.
    decay: Vec<S::f32s>,
    /// ā h of each step for a group of states.
    kept: Vec<S::f32s>,
    /// Gradients of B and C of each step, `[CHUNK, 2N]`, not yet summed over the lanes.
    d_bc: Vec<S::f32s>,
    /// ā G of the step after, `[N, w]`.
    carried: Vec<f32>,
    /// Sums `[N + 2, w]`: of A, D, the bias of δ.
    sums: Vec<f32>,
}

impl WithSimd for Task<'_> {
    type Output = Vec<f32>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Vec<f32> {
        let Shape { seq_len, width, .. } = self.scan.shape;
        let d_state = self.scan.d_state;
        let (from, w) = (self.channels.start, self.channels.len());
        let zeros = |len: usize| vec![simd.splat_f32s(0.0); len];
        let mut work = Work {
            steps: Steps::new(simd),
            d_value: zeros(CHUNK),
            through_decay: zeros(CHUNK),
            through_input: zeros(CHUNK),
            decay: zeros(CHUNK * GROUP),
            kept: zeros(CHUNK * GROUP),
            d_bc: zeros(CHUNK * 2 * d_state),
            carried: vec![0.0; d_state * w],
            sums: vec![0.0; (d_state + 2) * w],
        };
        for b in self.rows.clone() {
            self.enter(b, &mut work.carried);
            let length = self.scan.length(b);
            for t in length..seq_len {
                let at = (b * seq_len + t) * width + from;
                for out in [Some(self.d_u), Some(self.d_delta), self.d_z].into_iter().flatten() {
                    // SAFETY: tasks have rows and channels of their own.
                    unsafe { out.slice(at, w) }.fill(MaybeUninit::new(0.0));
                }
                self.d_bc_at(b, t).fill(MaybeUninit::new(0.0));
            }
            for chunk in (0..length.div_ceil(CHUNK)).rev() {
                let range = chunk * CHUNK..((chunk + 1) * CHUNK).min(length);
                work.d_bc.fill(simd.splat_f32s(0.0));
                for c in (0..w).step_by(S::F32_LANES) {
                    self.prepare(simd, b, range.clone(), c, &mut work);
                    let mut n = 0;
                    while n + GROUP <= d_state {
                        self.group::<S, GROUP>(simd, b, chunk, range.clone(), [n, c], &mut work);
                        n += GROUP;
                    }
                    for n in n..d_state {
                        self.group::<S, 1>(simd, b, chunk, range.clone(), [n, c], &mut work);
                    }
                    self.finish(simd, b, range.clone(), c, &mut work);
                }
                for (t, sums) in range.zip(work.d_bc.chunks_exact((2 * d_state).max(1))) {
                    for (out, &sum) in self.d_bc_at(b, t).iter_mut().zip(sums) {
                        out.write(simd.reduce_sum_f32s(sum));
                    }
                }
            }
            self.leave(b, &work.carried);
        }
        work.sums
    }
}

impl Task<'_> {
    /// Where this part's gradients of B and C at step `t` of row `b` go.
    #[inline(always)]
    #[allow(clippy::mut_from_ref, reason = "the place belongs to this task alone")]
    fn d_bc_at(&self, b: usize, t: usize) -> Slots<'_> {
        let row = 2 * self.scan.d_state;
        // SAFETY: tasks have rows of their own, or a part of their own, and hold one of these slices at a time.
        unsafe { self.d_bc.slice(self.bc_from + (b * self.scan.shape.seq_len + t) * row, row) }
    }

    /// The gradient of the last state of row `b` as `[N, w]`.
    fn enter(&self, b: usize, carried: &mut [f32]) {
        let (d_state, w) = (self.scan.d_state, self.channels.len());
        let Some(d) = self.d_h_last else { return carried.fill(0.0) };
        let d = &d[(b * self.scan.shape.width + self.channels.start) * d_state..][..w * d_state];
        for (i, &d) in d.iter().enumerate() {
            carried[i % d_state * w + i / d_state] = d;
        }
    }

    fn leave(&self, b: usize, carried: &[f32]) {
        let (d_state, w) = (self.scan.d_state, self.channels.len());
        // SAFETY: tasks have rows and channels of their own.
        let out = unsafe { self.d_h0.slice((b * self.scan.shape.width + self.channels.start) * d_state, w * d_state) };
        for (i, out) in out.iter_mut().enumerate() {
            out.write(carried[i % d_state * w + i / d_state]);
        }
    }

    #[inline(always)]
    fn prepare<S: Simd>(&self, simd: S, b: usize, range: Range<usize>, c: usize, work: &mut Work<S>) {
        let (scan, at) = (self.scan, self.channels.start + c);
        work.steps.prepare(simd, scan, b, range.clone(), at);
        for (i, t) in range.enumerate() {
            let mut d_value = plus(simd, simd.splat_f32s(0.0), self.d_y.map(|d_y| scan.step(d_y, b, t)), at);
            if let Some(z) = scan.inputs.z {
                d_value = simd.mul_f32s(d_value, silu(simd, simd::load(simd, scan.step(z, b, t), at)).0);
            }
            work.d_value[i] = d_value;
            work.through_decay[i] = simd.splat_f32s(0.0);
            work.through_input[i] = simd.splat_f32s(0.0);
        }
    }

    /// `G` states from state `n` on, at one vector of channels: through the chunk again, then back from its end.
    #[inline(always)]
    fn group<S: Simd, const G: usize>(&self, simd: S, b: usize, chunk: usize, range: Range<usize>, [n, c]: [usize; 2], work: &mut Work<S>) {
        let (scan, at, w) = (self.scan, self.channels.start + c, self.channels.len());
        let (width, d_state, first) = (scan.shape.width, scan.d_state, range.start);
        let a: [S::f32s; G] = load_group(simd, &scan.a, width, n, at);
        let before = &self.boundaries[scan.boundary(b, chunk, 0, 0)..][..d_state * width];
        let mut h: [S::f32s; G] = load_group(simd, before, width, n, at);
        for (i, t) in range.clone().enumerate() {
            let is_reset = scan.is_reset(b, t);
            let (input, output) = scan.input_and_output::<G>(b, t, n);
            let (delta, delta_u) = (work.steps.delta[i], work.steps.delta_u[i]);
            let mut value = work.steps.value[i];
            let (decays, kepts) = (&mut work.decay[i * G..(i + 1) * G], &mut work.kept[i * G..(i + 1) * G]);
            for j in 0..G {
                // A reset is a decay of 0, which cuts gradients too.
                let (decay, kept) = match is_reset {
                    false => {
                        let decay = exp(simd, simd.mul_f32s(delta, a[j]));
                        (decay, simd.mul_f32s(decay, h[j]))
                    }
                    true => (simd.splat_f32s(0.0), simd.splat_f32s(0.0)),
                };
                (decays[j], kepts[j]) = (decay, kept);
                h[j] = mul_add(simd, delta_u, simd.splat_f32s(input[j]), kept);
                value = mul_add(simd, simd.splat_f32s(output[j]), h[j], value);
            }
            work.steps.value[i] = value;
        }
        let mut carried: [S::f32s; G] = load_group(simd, &work.carried, w, n, c);
        let mut d_a = [simd.splat_f32s(0.0); G];
        for t in range.rev() {
            let i = t - first;
            let (input, output) = scan.input_and_output::<G>(b, t, n);
            let (delta, delta_u, d_value) = (work.steps.delta[i], work.steps.delta_u[i], work.d_value[i]);
            let (mut through_decay, mut through_input) = (work.through_decay[i], work.through_input[i]);
            let (decays, kepts) = (&work.decay[i * G..(i + 1) * G], &work.kept[i * G..(i + 1) * G]);
            let (d_input, d_output) = work.d_bc[i * 2 * d_state..(i + 1) * 2 * d_state].split_at_mut(d_state);
            let (d_input, d_output) = (&mut d_input[n..n + G], &mut d_output[n..n + G]);
            for j in 0..G {
                let b_j = simd.splat_f32s(input[j]);
                let g = mul_add(simd, d_value, simd.splat_f32s(output[j]), carried[j]);
                let h = mul_add(simd, delta_u, b_j, kepts[j]);
                d_output[j] = mul_add(simd, d_value, h, d_output[j]);
                d_input[j] = mul_add(simd, g, delta_u, d_input[j]);
                let through = simd.mul_f32s(kepts[j], g);
                d_a[j] = mul_add(simd, delta, through, d_a[j]);
                through_decay = mul_add(simd, a[j], through, through_decay);
                through_input = mul_add(simd, g, b_j, through_input);
                carried[j] = simd.mul_f32s(decays[j], g);
            }
            (work.through_decay[i], work.through_input[i]) = (through_decay, through_input);
            if i.is_multiple_of(CARRY_STEPS) {
                for carried in &mut carried {
                    *carried = without_traces(simd, *carried, TRACE);
                }
            }
        }
        store_group(simd, &mut work.carried, w, n, c, carried);
        for (j, &d_a) in d_a.iter().enumerate() {
            add_to(simd, &mut work.sums[(n + j) * w..][..w], c, d_a);
        }
    }

    /// Gradients of the steps `range` at one vector of channels, from the sums over all states.
    #[inline(always)]
    fn finish<S: Simd>(&self, simd: S, b: usize, range: Range<usize>, c: usize, work: &mut Work<S>) {
        let (scan, at, w) = (self.scan, self.channels.start + c, self.channels.len());
        let lanes = S::F32_LANES.min(w - c);
        let bias = simd::load(simd, scan.inputs.delta_bias, at);
        let skip = simd::load(simd, scan.inputs.skip, at);
        let [mut d_skip, mut d_bias] = [simd.splat_f32s(0.0); 2];
        for (i, t) in range.enumerate() {
            let place = (b * scan.shape.seq_len + t) * scan.shape.width + at;
            let u = simd::load(simd, scan.step(scan.inputs.u, b, t), at);
            let (_, slope) = simd::softplus(simd, simd.add_f32s(simd::load(simd, scan.step(scan.inputs.delta, b, t), at), bias));
            let d_delta = simd.mul_f32s(mul_add(simd, u, work.through_input[i], work.through_decay[i]), slope);
            write(simd, &self.d_delta, place, lanes, d_delta);
            let d_u = mul_add(simd, work.steps.delta[i], work.through_input[i], simd.mul_f32s(skip, work.d_value[i]));
            write(simd, &self.d_u, place, lanes, d_u);
            if let (Some(z), Some(d_z)) = (scan.inputs.z, &self.d_z) {
                let d_y = plus(simd, simd.splat_f32s(0.0), self.d_y.map(|d_y| scan.step(d_y, b, t)), at);
                let (_, slope) = silu(simd, simd::load(simd, scan.step(z, b, t), at));
                write(simd, d_z, place, lanes, simd.mul_f32s(simd.mul_f32s(d_y, work.steps.value[i]), slope));
            }
            d_bias = simd.add_f32s(d_bias, d_delta);
            d_skip = mul_add(simd, work.d_value[i], u, d_skip);
        }
        add_to(simd, &mut work.sums[scan.d_state * w..][..w], c, d_skip);
        add_to(simd, &mut work.sums[(scan.d_state + 1) * w..][..w], c, d_bias);
    }
}

/// Writes the first `lanes` channels of a vector to an output's elements from `place` on, which belong to this task.
#[inline(always)]
fn write<S: Simd>(simd: S, out: &SharedOut, place: usize, lanes: usize, value: S::f32s) {
    // SAFETY: tasks have rows and channels of their own.
    simd::store(simd, unsafe { out.slice(place, lanes) }, 0, value);
}
