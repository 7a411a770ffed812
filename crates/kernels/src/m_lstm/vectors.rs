//! Rows added, scaled and multiplied, on vectors.

use crate::out::Slots;
use crate::rows::scale;
use crate::simd::{self, Level, Simd, WithSimd, mul_add, put, sigmoid_pair};
use crate::stepwise::log_sigmoid;

/// Σ x y.
pub(super) fn dot(level: Level, x: &[f32], y: &[f32]) -> f32 {
    struct Dot<'a>(&'a [f32], &'a [f32]);
    impl WithSimd for Dot<'_> {
        type Output = f32;
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> f32 {
            let y = &self.1[..self.0.len()];
            let mut sum = simd.splat_f32s(0.0);
            for at in (0..y.len()).step_by(S::F32_LANES) {
                sum = mul_add(simd, simd::load(simd, self.0, at), simd::load(simd, y, at), sum);
            }
            simd.reduce_sum_f32s(sum)
        }
    }
    level.run(Dot(x, y))
}

/// y ← y + factor · x.
pub(super) fn add_scaled(level: Level, factor: f32, x: &[f32], y: &mut [f32]) {
    struct Add<'a>(f32, &'a [f32], &'a mut [f32]);
    impl WithSimd for Add<'_> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let (factor, x) = (simd.splat_f32s(self.0), &self.1[..self.2.len()]);
            for at in (0..x.len()).step_by(S::F32_LANES) {
                let sum = mul_add(simd, factor, simd::load(simd, x, at), simd::load(simd, self.2, at));
                put(simd, self.2, at, sum);
            }
        }
    }
    level.run(Add(factor, x, y));
}

/// out ← factor · x.
pub(super) fn scaled(level: Level, factor: f32, x: &[f32], out: Slots) {
    struct Scaled<'a>(f32, &'a [f32], Slots<'a>);
    impl WithSimd for Scaled<'_> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let (factor, x) = (simd.splat_f32s(self.0), &self.1[..self.2.len()]);
            for at in (0..x.len()).step_by(S::F32_LANES) {
                simd::store(simd, self.2, at, simd.mul_f32s(factor, simd::load(simd, x, at)));
            }
        }
    }
    level.run(Scaled(factor, x, out));
}

/// x ← factor · x.
pub(super) fn scale_all(level: Level, factor: f32, x: &mut [f32]) {
    struct Scale<'a>(f32, &'a mut [f32]);
    impl WithSimd for Scale<'_> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            scale(simd, self.1, simd.splat_f32s(self.0));
        }
    }
    level.run(Scale(factor, x));
}

/// x ← e^x.
pub(super) fn exp_all(level: Level, x: &mut [f32]) {
    struct Exp<'a>(&'a mut [f32]);
    impl WithSimd for Exp<'_> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            for at in (0..self.0.len()).step_by(S::F32_LANES) {
                let value = simd::exp(simd, simd::load(simd, self.0, at));
                put(simd, self.0, at, value);
            }
        }
    }
    level.run(Exp(x));
}

/// ln σ(x) in place, and σ(−x).
pub(super) fn log_forget(level: Level, x: &mut [f32], complement: &mut [f32]) {
    struct LogForget<'a>(&'a mut [f32], &'a mut [f32]);
    impl WithSimd for LogForget<'_> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            for at in (0..self.0.len()).step_by(S::F32_LANES) {
                let x = simd::load(simd, self.0, at);
                put(simd, self.0, at, log_sigmoid(simd, x));
                put(simd, self.1, at, sigmoid_pair(simd, x)[1]);
            }
        }
    }
    level.run(LogForget(x, complement));
}

/// weights ← scale · e^(a − mu), products ← products ⊙ weights; Σ products.
pub(super) fn weigh(level: Level, scale: f32, a: &[f64], mu: f64, products: &mut [f32], weights: &mut [f32]) -> f32 {
    struct Weigh<'a>(f32, &'a mut [f32], &'a mut [f32]);
    impl WithSimd for Weigh<'_> {
        type Output = f32;
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> f32 {
            let (scale, mut sum) = (simd.splat_f32s(self.0), simd.splat_f32s(0.0));
            for at in (0..self.1.len()).step_by(S::F32_LANES) {
                let weight = simd.mul_f32s(scale, simd::exp(simd, simd::load(simd, self.2, at)));
                let score = simd.mul_f32s(simd::load(simd, self.1, at), weight);
                put(simd, self.1, at, score);
                put(simd, self.2, at, weight);
                sum = simd.add_f32s(sum, score);
            }
            simd.reduce_sum_f32s(sum)
        }
    }
    for (weight, a) in weights.iter_mut().zip(a) {
        *weight = (a - mu) as f32;
    }
    level.run(Weigh(scale, products, weights))
}

/// With dS = `d` + `d_beta`: `d` ← `weights` ⊙ dS, and Λ = dS ⊙ `scores` is added to `columns`; Σ Λ.
pub(super) fn unweigh(level: Level, d_beta: f32, d: &mut [f32], scores: &[f32], weights: &[f32], columns: &mut [f64]) -> f64 {
    struct Unweigh<'a>(f32, &'a mut [f32], &'a [f32], &'a [f32], &'a mut [f64]);
    impl WithSimd for Unweigh<'_> {
        type Output = f64;
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> f64 {
            let Self(d_beta, d, scores, weights, columns) = self;
            let len = d.len();
            let (scores, weights, columns) = (&scores[..len], &weights[..len], &mut columns[..len]);
            let mut sum = 0.0;
            for s in 0..len {
                let d_score = d[s] + d_beta;
                let along = f64::from(d_score * scores[s]);
                d[s] = d_score * weights[s];
                columns[s] += along;
                sum += along;
            }
            sum
        }
    }
    level.run(Unweigh(d_beta, d, scores, weights, columns))
}
