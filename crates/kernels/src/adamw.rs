//! AdamW, in one pass over parameters, gradients and moments, and the sum of squares needed for clipping by the global norm.
//!
//! With the gradient g already scaled and clipped, t counted from 1:
//!
//! ```text
//! m ← β₁ m + (1 − β₁) g        v ← β₂ v + (1 − β₂) g²
//! θ ← θ (1 − lr λ) − lr · m̂ / (√v̂ + ε),   m̂ = m / (1 − β₁ᵗ),   v̂ = v / (1 − β₂ᵗ)
//! ```
//! where: θ parameter; m, v first and second moment; λ weight decay; ε keeps the divisor above 0, also in 32 bits (Loshchilov and Hutter).

use crate::grid::{self, SharedOut};
use crate::out::{Out, Slots};
use crate::shape::expect_len;
use crate::simd::{self, Level, Simd, WithSimd, mul_add};
use alloc::vec::Vec;
use core::mem::MaybeUninit;

/// Elements of one task.
const TASK: usize = 1 << 16;

/// The settings of one update.
#[derive(Debug, Clone, Copy)]
pub struct AdamW {
    /// Learning rate.
    pub lr: f64,
    /// β₁.
    pub beta_1: f64,
    /// β₂.
    pub beta_2: f64,
    /// ε; it is the whole divisor while a parameter has had no gradient yet.
    pub eps: f64,
    /// λ.
    pub weight_decay: f64,
    /// t, the number of this update, counted from 1.
    pub time: u64,
    /// Every gradient is multiplied by this first: accumulation and clipping.
    pub gradient_scale: f64,
}

/// The numbers every element needs.
#[derive(Clone, Copy)]
struct Factors {
    gradient: f32,
    keep_1: f32,
    take_1: f32,
    keep_2: f32,
    take_2: f32,
    /// 1 − lr λ
    shrink: f32,
    /// lr / (1 − β₁ᵗ)
    rate: f32,
    /// 1 / (1 − β₂ᵗ)
    second: f32,
    eps: f32,
}

impl AdamW {
    fn factors(&self) -> Factors {
        let correction = |beta: f64| 1.0 - libm::pow(beta, self.time as f64);
        Factors {
            gradient: self.gradient_scale as f32,
            keep_1: self.beta_1 as f32,
            take_1: (1.0 - self.beta_1) as f32,
            keep_2: self.beta_2 as f32,
            take_2: (1.0 - self.beta_2) as f32,
            shrink: (1.0 - self.lr * self.weight_decay) as f32,
            rate: (self.lr / correction(self.beta_1)) as f32,
            second: (1.0 / correction(self.beta_2)) as f32,
            eps: self.eps as f32,
        }
    }

    /// Checks the settings: invalid ones would silently make every parameter NaN. The gradients' scale is a measured number and is not
    /// checked.
    ///
    /// # Panics
    /// When `time` is 0, `beta_1` or `beta_2` is not in [0, 1), `lr` or `weight_decay` is not finite, or `eps` is not finite or, as an f32,
    /// not above 0.
    #[track_caller]
    pub fn expect_valid(&self) {
        let Self { lr, beta_1, beta_2, eps, weight_decay, time, gradient_scale: _ } = *self;
        assert!(time > 0, "time: expected the number of the update, counted from 1, found 0");
        for (name, beta) in [("beta_1", beta_1), ("beta_2", beta_2)] {
            assert!((0.0..1.0).contains(&beta), "{name}: expected a number of at least 0 and below 1, found {beta}");
        }
        for (name, number) in [("lr", lr), ("weight_decay", weight_decay)] {
            assert!(number.is_finite(), "{name}: expected a finite number, found {number}");
        }
        // With ε = 0, a step could be 0 / 0.
        assert!(eps.is_finite() && eps as f32 > 0.0, "eps: expected a finite number that is above 0 as an f32, found {eps:?}");
    }

    /// The updated parameters and moments; all slices have the same length. A gradient above 1.8e19 overflows the second moment, after
    /// which only weight decay changes its parameter: clip gradients first.
    ///
    /// # Panics
    /// When a length does not fit, or [`AdamW::expect_valid`] panics.
    pub fn update(&self, parameters: &[f32], gradients: &[f32], moments: [&[f32]; 2], updated: Out, moments_out: [Out; 2]) {
        let len = parameters.len();
        expect_len("gradients", gradients, len);
        updated.expect_len("updated", len);
        for (moment, out) in moments.iter().zip(&moments_out) {
            expect_len("a moment", moment, len);
            out.expect_len("an updated moment", len);
        }
        self.expect_valid();
        let factors = self.factors();
        let level = Level::current();
        let updated = SharedOut::new(updated);
        let moments_out = moments_out.map(SharedOut::new);
        grid::for_each(len.div_ceil(TASK), |task| {
            let at = task * TASK..((task + 1) * TASK).min(len);
            // SAFETY: tasks have elements of their own.
            let own = |shared: SharedOut| unsafe { shared.slice(at.start, at.len()) };
            let (updated, moments_out) = (own(updated), moments_out.map(own));
            let moments = moments.map(|moment| &moment[at.clone()]);
            level.run(Update { factors, parameters: &parameters[at.clone()], gradients: &gradients[at], moments, updated, moments_out });
        });
    }
}

struct Update<'a> {
    factors: Factors,
    parameters: &'a [f32],
    gradients: &'a [f32],
    moments: [&'a [f32]; 2],
    updated: Slots<'a>,
    moments_out: [Slots<'a>; 2],
}

impl WithSimd for Update<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let f = self.factors;
        let [first, second] = self.moments;
        let [first_out, second_out] = self.moments_out;
        let splat = |x| simd.splat_f32s(x);
        for at in (0..self.parameters.len()).step_by(S::F32_LANES) {
            let g = simd.mul_f32s(simd::load(simd, self.gradients, at), splat(f.gradient));
            let m = simd.mul_f32s(simd::load(simd, first, at), splat(f.keep_1));
            let m = mul_add(simd, g, splat(f.take_1), m);
            let v = simd.mul_f32s(simd::load(simd, second, at), splat(f.keep_2));
            let v = mul_add(simd, simd.mul_f32s(g, g), splat(f.take_2), v);
            let divisor = simd.add_f32s(simd.sqrt_f32s(simd.mul_f32s(v, splat(f.second))), splat(f.eps));
            let step = simd.div_f32s(simd.mul_f32s(m, splat(f.rate)), divisor);
            let kept = simd.mul_f32s(simd::load(simd, self.parameters, at), splat(f.shrink));
            simd::store(simd, self.updated, at, simd.sub_f32s(kept, step));
            simd::store(simd, first_out, at, m);
            simd::store(simd, second_out, at, v);
        }
    }
}

/// Number of squares summed in f32 before their sum is added in f64.
const RUN: usize = 1 << 10;

/// Σ x² in f64: runs of 1024 elements in f32 lanes, the runs in f64 in index order, independent of the number of threads. Not finite if an
/// element is not, or if a run overflows f32.
pub fn sum_of_squares(x: &[f32]) -> f64 {
    let level = Level::current();
    let mut sums = alloc::vec![MaybeUninit::new(0.0f64); x.len().div_ceil(TASK)];
    let shared = SharedOut::of(&mut sums);
    grid::for_each(x.len().div_ceil(TASK), |task| {
        let sum = level.run(Squares(&x[task * TASK..((task + 1) * TASK).min(x.len())]));
        // SAFETY: tasks have elements of their own.
        let own = unsafe { shared.slice(task, 1) };
        own[0].write(sum);
    });
    // SAFETY: initialised with 0.
    let sums: Vec<f64> = sums.into_iter().map(|sum| unsafe { sum.assume_init() }).collect();
    sums.iter().sum()
}

struct Squares<'a>(&'a [f32]);

impl WithSimd for Squares<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        let mut total = 0.0;
        for run in self.0.chunks(RUN) {
            let mut sums = [simd.splat_f32s(0.0); 4];
            for at in (0..run.len()).step_by(4 * S::F32_LANES) {
                for (k, sum) in sums.iter_mut().enumerate() {
                    let at = at + k * S::F32_LANES;
                    if at < run.len() {
                        let x = simd::load(simd, run, at);
                        *sum = mul_add(simd, x, x, *sum);
                    }
                }
            }
            let [a, b, c, d] = sums;
            total += f64::from(simd.reduce_sum_f32s(simd.add_f32s(simd.add_f32s(a, b), simd.add_f32s(c, d))));
        }
        total
    }
}
