//! One step of one head.

use super::EPS;
use crate::norm::inverse_root;
use crate::out::{Out, Slots};
use crate::shape::{elements, expect_len};
use crate::sigmoid::sigmoid;
use crate::simd::{self, Level, Simd, WithSimd, mul_add, put};

/// What a head reads in a step, before its key is normalised.
#[derive(Clone, Copy)]
pub(super) struct Input<'a> {
    pub q: &'a [f32],
    pub k: &'a [f32],
    pub v: &'a [f32],
    /// 1 / √(‖k‖² + ε)
    pub inverse: f32,
    /// σ(b)
    pub beta: f32,
}

impl<'a> Input<'a> {
    #[inline(always)]
    pub fn new<S: Simd>(simd: S, [q, k, v]: [&'a [f32]; 3], b: f32) -> Self {
        let mut squares = simd.splat_f32s(0.0);
        for at in (0..k.len()).step_by(S::F32_LANES) {
            let k = simd::load(simd, k, at);
            squares = mul_add(simd, k, k, squares);
        }
        let squares = simd.reduce_sum_f32s(squares);
        let inverse = inverse_root(squares, EPS);
        Self { q, k, v, inverse, beta: sigmoid(b) }
    }
}

/// Corrects `memory` `[n, n]` by a step, and writes what the query then reads from it.
#[inline(always)]
pub(super) fn advance<S: Simd>(simd: S, x: &Input<'_>, memory: &mut [f32], mut y: Option<Slots>) {
    let n = x.k.len();
    for at in (0..n).step_by(S::F32_LANES) {
        let mut recalled = simd.splat_f32s(0.0);
        for (row, &k) in memory.chunks_exact(n).zip(x.k) {
            recalled = mul_add(simd, simd.splat_f32s(k * x.inverse), simd::load(simd, row, at), recalled);
        }
        let u = simd.mul_f32s(simd.splat_f32s(x.beta), simd.sub_f32s(simd::load(simd, x.v, at), recalled));
        let mut found = simd.splat_f32s(0.0);
        for (row, (&k, &q)) in memory.chunks_exact_mut(n).zip(x.k.iter().zip(x.q)) {
            let new = mul_add(simd, simd.splat_f32s(k * x.inverse), u, simd::load(simd, row, at));
            put(simd, row, at, new);
            found = mul_add(simd, simd.splat_f32s(q), new, found);
        }
        if let Some(y) = &mut y {
            simd::store(simd, y, at, found);
        }
    }
}

/// One step of one head, without allocating: `x` is q, k and v, each `[n]`, `b` the pre-activation of β; corrects `memory` `[n, n]` and
/// writes `y` `[n]`.
///
/// # Panics
/// When a length does not fit.
pub fn step(level: Level, x: [&[f32]; 3], b: f32, memory: &mut [f32], y: &mut [f32]) {
    struct Step<'a>([&'a [f32]; 3], f32, &'a mut [f32], &'a mut [f32]);

    impl WithSimd for Step<'_> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let Self(x, b, memory, y) = self;
            advance(simd, &Input::new(simd, x, b), memory, Some(Out::new(y).slots()));
        }
    }

    let n = y.len();
    x.iter().for_each(|part| expect_len("q, k or v", part, n));
    expect_len("memory", memory, elements([n, n]));
    level.run(Step(x, b, memory, y));
}
