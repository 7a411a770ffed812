//! The features of queries and keys, and the way back.

use super::{CHUNK, Features};
use alloc::vec::Vec;

/// How far the fastest pair turns in a step by how far the slowest does.
const BASE: f64 = 10_000.0;

/// The angle by which a step turns pair `j` of `pairs`: 10000^{−j/(pairs − 1)}.
pub fn angle(j: usize, pairs: usize) -> f64 {
    libm::pow(BASE, -(j as f64) / (pairs.max(2) - 1) as f64)
}

/// Cosine and sine of every pair.
pub(super) struct Turned(Vec<[f32; 2]>);

/// The features of one head, prepared.
pub(super) struct Rotation {
    features: Features,
    /// Angle of a step, for each pair.
    angles: Vec<f64>,
    /// Cosine and sine of the angle of i steps, `[C, pairs]`.
    steps: Vec<[f32; 2]>,
}

impl Rotation {
    /// # Panics
    /// When pairs are to be turned and `key` is odd.
    pub(super) fn new(features: Features, key: usize) -> Self {
        if features == Features::EluPlusOne {
            return Self { features, angles: Vec::new(), steps: Vec::new() };
        }
        assert!(key.is_multiple_of(2), "queries and keys of {key} channels have no pairs to turn; expected an even number");
        let angles: Vec<f64> = (0..key / 2).map(|j| angle(j, key / 2)).collect();
        let steps = (0..CHUNK).flat_map(|i| angles.iter().map(move |angle| turn(i as f64 * angle))).collect();
        Self { features, angles, steps }
    }

    /// What the chunk needs that begins at `position`.
    pub(super) fn begin(&self, position: f64) -> Turned {
        Turned(self.angles.iter().map(|angle| turn(position * angle)).collect())
    }

    /// `out` = `scale` φ(`x`) at step `i` of the chunk.
    pub(super) fn features(&self, begin: &Turned, i: usize, scale: f32, x: &[f32], out: &mut [f32]) {
        match self.features {
            Features::Rotary => {
                for (j, (x, out)) in x.as_chunks::<2>().0.iter().zip(out.as_chunks_mut::<2>().0).enumerate() {
                    let [cos, sin] = self.turned(begin, i, j);
                    *out = [scale * (x[0] * cos - x[1] * sin), scale * (x[1] * cos + x[0] * sin)];
                }
            }
            Features::EluPlusOne => {
                for (x, out) in x.iter().zip(out) {
                    *out = scale * if *x > 0.0 { x + 1.0 } else { libm::expf(*x) };
                }
            }
        }
    }

    /// The gradient of `x` from that of its features: a turn back, or times the slope of φ.
    pub(super) fn gradient(&self, begin: &Turned, i: usize, scale: f32, x: &[f32], d: &mut [f32]) {
        match self.features {
            Features::Rotary => {
                for (j, d) in d.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                    let [cos, sin] = self.turned(begin, i, j);
                    *d = [scale * (d[0] * cos + d[1] * sin), scale * (d[1] * cos - d[0] * sin)];
                }
            }
            Features::EluPlusOne => {
                for (x, d) in x.iter().zip(d) {
                    *d *= scale * if *x > 0.0 { 1.0 } else { libm::expf(*x) };
                }
            }
        }
    }

    /// The sum of two angles, that of the chunk's beginning and that of `i` steps.
    fn turned(&self, begin: &Turned, i: usize, j: usize) -> [f32; 2] {
        let ([a, b], [c, d]) = (begin.0[j], self.steps[i * self.angles.len() + j]);
        [a * c - b * d, b * c + a * d]
    }
}

fn turn(angle: f64) -> [f32; 2] {
    [libm::cos(angle) as f32, libm::sin(angle) as f32]
}
