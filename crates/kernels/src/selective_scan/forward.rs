//! The scan, and the state before each chunk.

use super::grid::Grid;
use super::lanes::{Steps, load_group, store_group};
use super::{CHUNK, GROUP, Inputs, Outputs, Scan, boundaries_len};
use crate::grid::SharedOut;
use crate::shape::{Shape, elements};
use crate::silu::silu;
use crate::simd::{self, Level, Simd, WithSimd, exp, mul_add};
use alloc::vec;
use core::mem::MaybeUninit;
use core::ops::Range;

/// y of every step, the last state, and what [`backward`](super::backward) starts from.
///
/// # Panics
/// When a length does not fit `shape` and `d_state`.
pub fn forward(shape: Shape, d_state: usize, inputs: &Inputs<'_>, out: Outputs<'_>) {
    inputs.expect_fit(shape, d_state);
    out.y.expect_len("y", shape.elements());
    out.h_last.expect_len("h_last", elements([shape.states(), d_state]));
    out.boundaries.expect_len("boundaries", boundaries_len(shape, d_state));
    let shape = shape.with_rows_of(out.y.len() + out.h_last.len() + out.boundaries.len());
    let scan = Scan::new(shape, d_state, inputs);
    let [y, h_last, boundaries] = [out.y, out.h_last, out.boundaries].map(SharedOut::new);
    let level = Level::current();
    Grid::new(shape).for_each(|_, rows, _, channels| {
        level.run(Task { scan: &scan, rows, channels, y, h_last, boundaries });
    });
}

/// The rows `rows` at the channels `channels`.
struct Task<'a> {
    scan: &'a Scan<'a>,
    rows: Range<usize>,
    channels: Range<usize>,
    y: SharedOut,
    h_last: SharedOut,
    boundaries: SharedOut,
}

impl WithSimd for Task<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Shape { seq_len, width, .. } = self.scan.shape;
        let d_state = self.scan.d_state;
        let (from, w) = (self.channels.start, self.channels.len());
        // `[N, w]`.
        let mut state = vec![0.0; d_state * w];
        let mut steps = Steps::new(simd);
        for b in self.rows.clone() {
            self.enter(b, &mut state);
            let length = self.scan.length(b);
            for chunk in 0..seq_len.div_ceil(CHUNK) {
                for n in 0..d_state {
                    // SAFETY: tasks have rows and channels of their own.
                    let out = unsafe { self.boundaries.slice(self.scan.boundary(b, chunk, n, from), w) };
                    out.write_copy_of_slice(&state[n * w..(n + 1) * w]);
                }
                let range = (chunk * CHUNK).min(length)..((chunk + 1) * CHUNK).min(length);
                for c in (0..w).step_by(S::F32_LANES) {
                    steps.prepare(simd, self.scan, b, range.clone(), from + c);
                    let mut n = 0;
                    while n + GROUP <= d_state {
                        self.group::<S, GROUP>(simd, b, range.clone(), [n, c], &mut steps, &mut state);
                        n += GROUP;
                    }
                    for n in n..d_state {
                        self.group::<S, 1>(simd, b, range.clone(), [n, c], &mut steps, &mut state);
                    }
                    self.finish(simd, b, range.clone(), c, &steps);
                }
            }
            for t in length..seq_len {
                // SAFETY: padding belongs to the row and channels of this task, like the steps before it.
                unsafe { self.y.slice((b * seq_len + t) * width + from, w) }.fill(MaybeUninit::new(0.0));
            }
            self.leave(b, &state);
        }
    }
}

impl Task<'_> {
    /// The carried state of row `b` as `[N, w]`.
    fn enter(&self, b: usize, state: &mut [f32]) {
        let (d_state, w) = (self.scan.d_state, self.channels.len());
        let Some(h0) = self.scan.inputs.h0 else { return state.fill(0.0) };
        let h0 = &h0[(b * self.scan.shape.width + self.channels.start) * d_state..][..w * d_state];
        for (i, &h) in h0.iter().enumerate() {
            state[i % d_state * w + i / d_state] = h;
        }
    }

    fn leave(&self, b: usize, state: &[f32]) {
        let (d_state, w) = (self.scan.d_state, self.channels.len());
        // SAFETY: tasks have rows and channels of their own.
        let out = unsafe { self.h_last.slice((b * self.scan.shape.width + self.channels.start) * d_state, w * d_state) };
        for (i, out) in out.iter_mut().enumerate() {
            out.write(state[i % d_state * w + i / d_state]);
        }
    }

    /// Takes `G` states from state `n` on, at one vector of channels, through the steps `range`, and adds their share of v.
    #[inline(always)]
    fn group<S: Simd, const G: usize>(
        &self,
        simd: S,
        b: usize,
        range: Range<usize>,
        [n, c]: [usize; 2],
        steps: &mut Steps<S>,
        state: &mut [f32],
    ) {
        let (scan, w) = (self.scan, self.channels.len());
        let a: [S::f32s; G] = load_group(simd, &scan.a, scan.shape.width, n, self.channels.start + c);
        let mut h: [S::f32s; G] = load_group(simd, state, w, n, c);
        for (i, t) in range.enumerate() {
            if scan.is_reset(b, t) {
                h = [simd.splat_f32s(0.0); G];
            }
            let (input, output) = scan.input_and_output::<G>(b, t, n);
            let (delta, delta_u) = (steps.delta[i], steps.delta_u[i]);
            let mut value = steps.value[i];
            for j in 0..G {
                let decay = exp(simd, simd.mul_f32s(delta, a[j]));
                h[j] = mul_add(simd, decay, h[j], simd.mul_f32s(delta_u, simd.splat_f32s(input[j])));
                value = mul_add(simd, simd.splat_f32s(output[j]), h[j], value);
            }
            steps.value[i] = value;
        }
        store_group(simd, state, w, n, c, h);
    }

    /// y of the steps `range` at one vector of channels.
    #[inline(always)]
    fn finish<S: Simd>(&self, simd: S, b: usize, range: Range<usize>, c: usize, steps: &Steps<S>) {
        let (scan, at) = (self.scan, self.channels.start + c);
        let lanes = S::F32_LANES.min(self.channels.len() - c);
        for (i, t) in range.enumerate() {
            let mut y = steps.value[i];
            if let Some(z) = scan.inputs.z {
                y = simd.mul_f32s(y, silu(simd, simd::load(simd, scan.step(z, b, t), at)).0);
            }
            // SAFETY: tasks have rows and channels of their own.
            let out = unsafe { self.y.slice((b * scan.shape.seq_len + t) * scan.shape.width + at, lanes) };
            simd::store(simd, out, 0, y);
        }
    }
}
