//! One step of one head by the recurrence.

use super::EPS;
use crate::shape::{elements, expect_len};
use crate::simd::{self, Level, Simd, WithSimd, exp, mul_add, put};
use crate::stepwise::log_sigmoid;

/// Advances the memory of one head by one step and writes its output; allocates nothing.
///
/// # Shapes
/// `q`, `k`, `v`, `n`, `h` `[e]`, `c` `[e, e]`; `gates` are the pre-activations of the input and the forget gate.
///
/// # Panics
/// When a length does not fit.
pub fn step(level: Level, qkv: [&[f32]; 3], gates: [f32; 2], c: &mut [f32], n: &mut [f32], m: &mut f32, h: &mut [f32]) {
    let e = h.len();
    qkv.iter().for_each(|x| expect_len("q, k or v", x, e));
    expect_len("c", c, elements([e, e]));
    expect_len("n", n, e);
    level.run(Step { qkv, gates, c, n, m, h });
}

struct Step<'a> {
    qkv: [&'a [f32]; 3],
    gates: [f32; 2],
    c: &'a mut [f32],
    n: &'a mut [f32],
    m: &'a mut f32,
    h: &'a mut [f32],
}

impl WithSimd for Step<'_> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let e = self.h.len();
        let [q, k, v] = self.qkv;
        let [i, f] = self.gates;
        let kept = *self.m + first(simd, log_sigmoid(simd, simd.splat_f32s(f)));
        let m = kept.max(i);
        let (take, keep, floor) = (exp_of(simd, i - m) / simd::sqrt(e as f32), exp_of(simd, kept - m), exp_of(simd, -m));
        *self.m = m;
        let (taken, kept) = (simd.splat_f32s(take), simd.splat_f32s(keep));
        let mut beta = simd.splat_f32s(0.0);
        for at in (0..e).step_by(S::F32_LANES) {
            let n = mul_add(simd, kept, simd::load(simd, self.n, at), simd.mul_f32s(taken, simd::load(simd, k, at)));
            put(simd, self.n, at, n);
            beta = mul_add(simd, n, simd::load(simd, q, at), beta);
        }
        let inverse = 1.0 / (simd.reduce_sum_f32s(beta).abs().max(floor) + EPS);
        self.h.fill(0.0);
        for (row, (&query, &key)) in self.c.chunks_exact_mut(e.max(1)).zip(q.iter().zip(k)) {
            let (query, key) = (simd.splat_f32s(query), simd.splat_f32s(take * key));
            for at in (0..e).step_by(S::F32_LANES) {
                let c = mul_add(simd, key, simd::load(simd, v, at), simd.mul_f32s(kept, simd::load(simd, row, at)));
                put(simd, row, at, c);
                let sum = mul_add(simd, query, c, simd::load(simd, self.h, at));
                put(simd, self.h, at, sum);
            }
        }
        crate::rows::scale(simd, self.h, simd.splat_f32s(inverse));
    }
}

/// e^x of one number.
#[inline(always)]
fn exp_of<S: Simd>(simd: S, x: f32) -> f32 {
    first(simd, exp(simd, simd.splat_f32s(x)))
}

/// The first lane.
#[inline(always)]
fn first<S: Simd>(simd: S, x: S::f32s) -> f32 {
    let mut lane = [0.0];
    put(simd, &mut lane, 0, x);
    lane[0]
}
