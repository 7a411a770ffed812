//! The features of queries and keys, and their gradients.

use super::{CHUNK, Features};
use crate::rotary::{BASE, cos_sin, rotated};
use crate::simd::{self, Level, Simd, WithSimd};
use alloc::vec::Vec;

/// The angle by which a step rotates pair `j` of `pairs`: 10000^{−j/(pairs − 1)}.
pub fn angle(j: usize, pairs: usize) -> f64 {
    libm::pow(BASE, -(j as f64) / (pairs.max(2) - 1) as f64)
}

/// γ of head `head` of RetNet: 1 − 2^(−5−h).
pub fn decay(head: usize) -> f64 {
    1.0 - libm::exp2(-5.0 - head as f64)
}

/// Cosine and sine of every pair.
pub(super) struct Turned(Vec<[f32; 2]>);

/// The features of one head, prepared.
pub(super) struct Rotation {
    features: Features,
    /// K.
    key: usize,
    /// Angle of a step, for each pair.
    angles: Vec<f64>,
    /// Cosine and sine of the angle of i steps, `[C, pairs]`.
    steps: Vec<[f32; 2]>,
}

impl Rotation {
    /// # Panics
    /// When pairs are to be rotated and `key` is odd.
    pub(super) fn new(features: Features, key: usize) -> Self {
        if features == Features::EluPlusOne {
            return Self { features, key, angles: Vec::new(), steps: Vec::new() };
        }
        assert!(key.is_multiple_of(2), "queries and keys of {key} channels have no pairs to turn; expected an even number");
        let angles: Vec<f64> = (0..key / 2).map(|j| angle(j, key / 2)).collect();
        let steps = (0..CHUNK).flat_map(|i| angles.iter().map(move |angle| cos_sin(i as f64 * angle))).collect();
        Self { features, key, angles, steps }
    }

    /// What a chunk that begins at `position` needs.
    pub(super) fn begin(&self, position: f64) -> Turned {
        Turned(self.angles.iter().map(|angle| cos_sin(position * angle)).collect())
    }

    /// Rows of `out` `[n, K]` = `scale` φ of the chunk's rows of `x`.
    pub(super) fn features(&self, level: Level, begin: &Turned, scale: f32, x: Rows<'_>, out: &mut [f32]) {
        level.run(Forward { rotation: self, begin, scale, x, out });
    }

    /// The gradient of the chunk's rows of `x` from that of their features, in place in `d` `[n, K]`: rotates back, or multiplies by φ's slope.
    pub(super) fn gradient(&self, level: Level, begin: &Turned, scale: f32, x: Rows<'_>, d: &mut [f32]) {
        level.run(Backward { rotation: self, begin, scale, x, d });
    }

    /// The sum of two angles, that of the chunk's beginning and that of `i` steps.
    #[inline(always)]
    fn turned(&self, begin: &Turned, i: usize, j: usize) -> [f32; 2] {
        rotated(begin.0[j], self.steps[i * self.angles.len() + j])
    }
}

/// Rows of a chunk inside a longer tensor.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    /// From the first row on.
    pub(super) data: &'a [f32],
    /// Elements from row to row.
    pub(super) stride: usize,
}

impl<'a> Rows<'a> {
    #[inline(always)]
    fn row(&self, i: usize, width: usize) -> &'a [f32] {
        &self.data[i * self.stride..][..width]
    }
}

struct Forward<'a> {
    rotation: &'a Rotation,
    begin: &'a Turned,
    scale: f32,
    x: Rows<'a>,
    out: &'a mut [f32],
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { rotation, begin, scale, x, out } = self;
        let key = rotation.key;
        for (i, out) in out.chunks_exact_mut(key.max(1)).enumerate() {
            let x = x.row(i, key);
            match rotation.features {
                Features::Rotary => {
                    for (j, (x, out)) in x.as_chunks::<2>().0.iter().zip(out.as_chunks_mut::<2>().0).enumerate() {
                        *out = rotated(*x, rotation.turned(begin, i, j)).map(|x| scale * x);
                    }
                }
                Features::EluPlusOne => {
                    let scale = simd.splat_f32s(scale);
                    for at in (0..key).step_by(S::F32_LANES) {
                        let x = simd::load(simd, x, at);
                        let above = simd.add_f32s(x, simd.splat_f32s(1.0));
                        simd::put(simd, out, at, simd.mul_f32s(scale, positive(simd, x, above)));
                    }
                }
            }
        }
    }
}

struct Backward<'a> {
    rotation: &'a Rotation,
    begin: &'a Turned,
    scale: f32,
    x: Rows<'a>,
    d: &'a mut [f32],
}

impl WithSimd for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { rotation, begin, scale, x, d } = self;
        let key = rotation.key;
        for (i, d) in d.chunks_exact_mut(key.max(1)).enumerate() {
            match rotation.features {
                Features::Rotary => {
                    for (j, d) in d.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                        let [cos, sin] = rotation.turned(begin, i, j);
                        *d = [scale * (d[0] * cos + d[1] * sin), scale * (d[1] * cos - d[0] * sin)];
                    }
                }
                Features::EluPlusOne => {
                    let (x, scale) = (x.row(i, key), simd.splat_f32s(scale));
                    for at in (0..key).step_by(S::F32_LANES) {
                        let slope = positive(simd, simd::load(simd, x, at), simd.splat_f32s(1.0));
                        let up = simd.mul_f32s(scale, simd::load(simd, d, at));
                        simd::put(simd, d, at, simd.mul_f32s(up, slope));
                    }
                }
            }
        }
    }
}

/// `above` where x is above 0, e^x elsewhere.
#[inline(always)]
fn positive<S: Simd>(simd: S, x: S::f32s, above: S::f32s) -> S::f32s {
    let zero = simd.splat_f32s(0.0);
    simd.select_f32s(simd.less_than_f32s(zero, x), above, simd::exp(simd, x))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decays_are_exact_and_round_to_f32_as_if_computed_in_it() {
        for head in 0..64 {
            let left = 0.5f64.powi(5 + head as i32);
            assert_eq!(decay(head), 1.0 - left);
            assert_eq!(decay(head) as f32, 1.0 - left as f32);
        }
        assert!((0..20).all(|head| (decay(head) as f32) < 1.0), "in f32 the state of a head from the 20th on never fades");
    }
}
