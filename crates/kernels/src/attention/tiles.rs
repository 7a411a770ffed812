//! Operations on one tile of scores: the running softmax, and its gradient.

use crate::rows::{load_or, scale};
use crate::simd::{self, Simd, WithSimd, put};
use core::ops::Range;

/// Query steps of a tile.
pub(super) const QUERIES: usize = 64;
/// Key steps of a tile.
pub(super) const KEYS: usize = 256;

/// The steps of a tile of keys, `first..first + columns`, that a query sees, as columns of the tile.
fn columns_seen(seen: &Range<usize>, first: usize, columns: usize) -> Range<usize> {
    let at = |step: usize| step.saturating_sub(first).min(columns);
    at(seen.start)..at(seen.end).max(at(seen.start))
}

/// Turns scores into exp(score · scale − maximum) in place, 0 for unseen keys; updates each query's running maximum and sum, and rescales
/// its output so far.
pub(super) struct Softmax<'a> {
    /// `[queries, columns]`.
    pub scores: &'a mut [f32],
    pub columns: usize,
    /// The key step of the first column.
    pub first: usize,
    /// What each query sees.
    pub seen: &'a [Range<usize>],
    pub scale: f32,
    pub maximum: &'a mut [f32],
    pub sum: &'a mut [f32],
    /// `[queries, dₕ]`.
    pub out: &'a mut [f32],
    pub head_width: usize,
}

impl WithSimd for Softmax<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let queries = self.scores.chunks_exact_mut(self.columns).zip(self.out.chunks_exact_mut(self.head_width)).zip(self.seen);
        let running = self.maximum.iter_mut().zip(self.sum);
        for (((scores, out), seen), (maximum, sum)) in queries.zip(running) {
            let seen = columns_seen(seen, self.first, self.columns);
            scores[..seen.start].fill(0.0);
            scores[seen.end..].fill(0.0);
            let scores = &mut scores[seen];
            if scores.is_empty() {
                continue;
            }
            let mut largest = simd.splat_f32s(f32::NEG_INFINITY);
            for at in (0..scores.len()).step_by(S::F32_LANES) {
                largest = simd.max_f32s(largest, load_or(simd, scores, at, f32::NEG_INFINITY));
            }
            let new_maximum = maximum.max(simd.reduce_max_f32s(largest) * self.scale);
            let (factor, shift) = (simd.splat_f32s(self.scale), simd.splat_f32s(-new_maximum));
            let mut total = simd.splat_f32s(0.0);
            for at in (0..scores.len()).step_by(S::F32_LANES) {
                // Lanes past the end are −∞ and so add nothing. The product is rounded as the maximum's is, so that it cannot exceed that.
                let score = simd.mul_f32s(load_or(simd, scores, at, f32::NEG_INFINITY), factor);
                let p = simd::exp(simd, simd.add_f32s(score, shift));
                total = simd.add_f32s(total, p);
                put(simd, scores, at, p);
            }
            let correction = libm::expf(*maximum - new_maximum);
            *sum = *sum * correction + simd.reduce_sum_f32s(total);
            *maximum = new_maximum;
            if correction != 1.0 {
                scale(simd, out, simd.splat_f32s(correction));
            }
        }
    }
}

/// Turns scores into p = exp(score · scale − l), and the products d_y · v into the gradients of the scores, both in place; 0 for unseen
/// keys.
pub(super) struct Gradient<'a> {
    /// `[queries, columns]`.
    pub scores: &'a mut [f32],
    /// `[queries, columns]`.
    pub products: &'a mut [f32],
    pub columns: usize,
    /// The key step of the first column.
    pub first: usize,
    /// What each query sees.
    pub seen: &'a [Range<usize>],
    pub scale: f32,
    /// l of each query.
    pub log_sums: &'a [f32],
    /// δ of each query.
    pub deltas: &'a [f32],
}

impl WithSimd for Gradient<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let queries = self.scores.chunks_exact_mut(self.columns).zip(self.products.chunks_exact_mut(self.columns)).zip(self.seen);
        let factor = simd.splat_f32s(self.scale);
        for (((scores, products), seen), (&log_sum, &delta)) in queries.zip(self.log_sums.iter().zip(self.deltas)) {
            let seen = columns_seen(seen, self.first, self.columns);
            for row in [&mut *scores, &mut *products] {
                row[..seen.start].fill(0.0);
                row[seen.end..].fill(0.0);
            }
            let (scores, products) = (&mut scores[seen.clone()], &mut products[seen]);
            let (shift, delta) = (simd.splat_f32s(-log_sum), simd.splat_f32s(delta));
            for at in (0..scores.len()).step_by(S::F32_LANES) {
                // The product is rounded as the maximum in l was.
                let score = simd.mul_f32s(simd::load(simd, scores, at), factor);
                let p = simd::exp(simd, simd.add_f32s(score, shift));
                let d = simd.sub_f32s(simd::load(simd, products, at), delta);
                put(simd, products, at, simd.mul_f32s(simd.mul_f32s(p, d), factor));
                put(simd, scores, at, p);
            }
        }
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;

    #[test]
    fn columns_lie_within_the_tile() {
        assert_eq!(columns_seen(&(3..9), 0, 16), 3..9);
        assert_eq!(columns_seen(&(3..9), 4, 3), 0..3);
        assert_eq!(columns_seen(&(3..9), 16, 4), 0..0);
        assert_eq!(columns_seen(&(9..12), 0, 4), 4..4);
    }
}
