//! The textbook parallel scans over pairs (a, b), the map h ↦ a h + b: Hillis–Steele, Blelloch, and chunks of three phases.
//!
//! Composition "first x, then y" is (a_x a_y, a_y b_x + b_y): associative, not commutative, with identity (1, 0).

use super::Float;
use super::scan::{Outputs, code};
use crate::segments::{PADDING, RESET};
use crate::shape::Shape;
use crate::start::Start;
use alloc::{vec, vec::Vec};

/// The map h ↦ a h + b.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair<T> {
    /// Coefficient.
    pub a: T,
    /// Value.
    pub b: T,
}

impl<T: Float> Pair<T> {
    /// h ↦ h.
    pub const IDENTITY: Self = Self { a: T::ONE, b: T::ZERO };

    /// First this map, then `next`.
    pub fn then(self, next: Self) -> Self {
        Self { a: self.a * next.a, b: next.a * self.b + next.b }
    }

    /// The map's value at `h`.
    pub fn apply(self, h: T) -> T {
        self.a * h + self.b
    }
}

/// Inclusive prefixes in log₂ T rounds of T compositions.
pub fn hillis_steele<T: Float>(pairs: &[Pair<T>]) -> Vec<Pair<T>> {
    let mut prefixes = pairs.to_vec();
    let mut distance = 1;
    while distance < pairs.len() {
        let before = prefixes.clone();
        for t in distance..pairs.len() {
            prefixes[t] = before[t - distance].then(before[t]);
        }
        distance *= 2;
    }
    prefixes
}

/// Inclusive prefixes by an up-sweep and a down-sweep of a binary tree: about 2 T compositions.
pub fn blelloch<T: Float>(pairs: &[Pair<T>]) -> Vec<Pair<T>> {
    let n = pairs.len().next_power_of_two();
    let mut tree = pairs.to_vec();
    tree.resize(n, Pair::IDENTITY);
    let mut distance = 1;
    while distance < n {
        for right in (2 * distance - 1..n).step_by(2 * distance) {
            tree[right] = tree[right - distance].then(tree[right]);
        }
        distance *= 2;
    }
    tree[n - 1] = Pair::IDENTITY;
    while distance > 1 {
        distance /= 2;
        for right in (2 * distance - 1..n).step_by(2 * distance) {
            let (left, parent) = (tree[right - distance], tree[right]);
            tree[right - distance] = parent;
            tree[right] = parent.then(left);
        }
    }
    tree.iter().zip(pairs).map(|(before, own)| before.then(*own)).collect()
}

/// Inclusive prefixes by chunks of `chunk` pairs: prefixes inside each, a scan of the chunks' totals, both composed.
pub fn chunked<T: Float>(pairs: &[Pair<T>], chunk: usize) -> Vec<Pair<T>> {
    let mut before = Pair::IDENTITY;
    let mut prefixes = Vec::with_capacity(pairs.len());
    for chunk in pairs.chunks(chunk.max(1)) {
        let mut local = Pair::IDENTITY;
        for &pair in chunk {
            local = local.then(pair);
            prefixes.push(before.then(local));
        }
        before = before.then(local);
    }
    prefixes
}

/// [`super::scan::forward`] through the inclusive scan `prefixes`. A reset makes its step constant, padding is the identity.
///
/// # Panics
/// When a length does not fit `shape`.
pub fn forward<T: Float>(
    shape: Shape,
    coeffs: &[T],
    values: &[T],
    start: Start<T>,
    prefixes: impl Fn(&[Pair<T>]) -> Vec<Pair<T>>,
) -> Outputs<T> {
    let mut h = vec![T::ZERO; shape.elements()];
    let mut h_last = start.h0.map_or_else(|| vec![T::ZERO; shape.states()], <[T]>::to_vec);
    for b in 0..shape.batch {
        for e in 0..shape.width {
            let pair = |t| {
                let at = (b * shape.seq_len + t) * shape.width + e;
                let pair = Pair { a: coeffs[at], b: values[at] };
                match code(shape, start, b, t) {
                    PADDING => Pair::IDENTITY,
                    RESET => Pair { a: T::ZERO, b: pair.apply(start.init.map_or(T::ZERO, |init| init[e])) },
                    _ => pair,
                }
            };
            let pairs: Vec<Pair<T>> = (0..shape.seq_len).map(pair).collect();
            let h0 = h_last[b * shape.width + e];
            for (t, prefix) in prefixes(&pairs).into_iter().enumerate() {
                let state = prefix.apply(h0);
                h_last[b * shape.width + e] = state;
                if code(shape, start, b, t) != PADDING {
                    h[(b * shape.seq_len + t) * shape.width + e] = state;
                }
            }
        }
    }
    Outputs { h, h_last }
}
