//! Causal attention, query by query. For the equations see [`crate::attention`].

use super::Float;
use crate::attention::{Row, Sizes, Start};
use alloc::{vec, vec::Vec};

/// The outputs of attention.
#[derive(Debug, Clone, PartialEq)]
pub struct Outputs<T> {
    /// Every output `[B, T, D]`, 0 at padding.
    pub y: Vec<T>,
    /// ln Σ exp of every step's scores `[B, heads, T]`, 0 at padding.
    pub log_sums: Vec<T>,
    /// The cache afterwards `[B, N, 2D]`.
    pub next: Vec<T>,
}

/// Where the query, key or value of a step is.
struct HeadLayout {
    sizes: Sizes,
    b: usize,
    h: usize,
}

impl HeadLayout {
    fn query(&self, t: usize, c: usize) -> usize {
        (self.b * self.sizes.seq_len + t) * 3 * self.sizes.width() + self.h * self.sizes.head_width + c
    }

    /// In `qkv`, or (`Err`) in the cache.
    fn key(&self, step: usize, c: usize) -> Result<usize, usize> {
        let (d, column) = (self.sizes.width(), self.h * self.sizes.head_width + c);
        match step.checked_sub(self.sizes.past) {
            None => Err((self.b * self.sizes.past + step) * 2 * d + column),
            Some(t) => Ok((self.b * self.sizes.seq_len + t) * 3 * d + d + column),
        }
    }

    fn value(&self, step: usize, c: usize) -> Result<usize, usize> {
        let d = self.sizes.width();
        self.key(step, c).map(|at| at + d).map_err(|at| at + d)
    }
}

fn read<T: Float>(qkv: &[T], past: &[T], place: Result<usize, usize>) -> T {
    place.map_or_else(|at| past[at], |at| qkv[at])
}

fn scale<T: Float>(sizes: &Sizes) -> T {
    T::ONE / T::from_f64(sizes.head_width as f64).sqrt()
}

/// The weights p of what each query sees, with the logarithm of their sum before the division.
fn weights<T: Float>(places: &HeadLayout, qkv: &[T], past: &[T], t: usize, seen: core::ops::Range<usize>) -> (Vec<T>, T) {
    let score = |step: usize| {
        let product = |c: usize| qkv[places.query(t, c)] * read(qkv, past, places.key(step, c));
        (0..places.sizes.head_width).map(product).fold(T::ZERO, |sum, x| sum + x) * scale::<T>(&places.sizes)
    };
    let scores: Vec<T> = seen.map(score).collect();
    let largest = scores.iter().fold(T::NEG_INFINITY, |m, &x| m.max(x));
    let sum = scores.iter().fold(T::ZERO, |sum, &x| sum + (x - largest).exp());
    let log_sum = largest + sum.ln();
    (scores.into_iter().map(|x| (x - log_sum).exp()).collect(), log_sum)
}

/// As [`crate::attention::forward`].
pub fn forward<T: Float>(sizes: Sizes, qkv: &[T], start: Start<'_, T>) -> Outputs<T> {
    let Sizes { batch, seq_len, next, heads, head_width, .. } = sizes;
    let d = sizes.width();
    let mut out = Outputs {
        y: vec![T::ZERO; batch * seq_len * d],
        log_sums: vec![T::ZERO; batch * heads * seq_len],
        next: vec![T::ZERO; batch * next * 2 * d],
    };
    for b in 0..batch {
        let row = Row::new(&sizes, &start, b);
        for h in 0..heads {
            let places = HeadLayout { sizes, b, h };
            for (t, seen) in row.seen(0..row.length).enumerate() {
                let (weights, log_sum) = weights(&places, qkv, start.past, t, seen.clone());
                out.log_sums[(b * heads + h) * seq_len + t] = log_sum;
                for (step, p) in seen.zip(weights) {
                    for c in 0..head_width {
                        out.y[(b * seq_len + t) * d + h * head_width + c] += p * read(qkv, start.past, places.value(step, c));
                    }
                }
            }
            for (i, step) in (0..next).filter_map(|i| Some((i, row.kept(i)?))) {
                for c in 0..head_width {
                    let at = (b * next + i) * 2 * d + h * head_width + c;
                    out.next[at] = read(qkv, start.past, places.key(step, c));
                    out.next[at + d] = read(qkv, start.past, places.value(step, c));
                }
            }
        }
    }
    out
}

/// (d_qkv, d_past); as [`crate::attention::backward`].
pub fn backward<T: Float>(sizes: Sizes, qkv: &[T], start: Start<'_, T>, d_y: Option<&[T]>, d_next: Option<&[T]>) -> (Vec<T>, Vec<T>) {
    let Sizes { batch, seq_len, next, heads, head_width, .. } = sizes;
    let d = sizes.width();
    let (mut d_qkv, mut d_past) = (vec![T::ZERO; qkv.len()], vec![T::ZERO; start.past.len()]);
    let mut add = |place: Result<usize, usize>, x: T| match place {
        Ok(at) => d_qkv[at] += x,
        Err(at) => d_past[at] += x,
    };
    for b in 0..batch {
        let row = Row::new(&sizes, &start, b);
        for h in 0..heads {
            let places = HeadLayout { sizes, b, h };
            for (t, seen) in row.seen(0..row.length).enumerate() {
                let Some(d_y) = d_y.map(|d_y| &d_y[(b * seq_len + t) * d + h * head_width..][..head_width]) else { continue };
                let (weights, _) = weights(&places, qkv, start.past, t, seen.clone());
                let d_weight = |step: usize| {
                    (0..head_width).map(|c| d_y[c] * read(qkv, start.past, places.value(step, c))).fold(T::ZERO, |sum, x| sum + x)
                };
                let d_weights: Vec<T> = seen.clone().map(d_weight).collect();
                let delta = weights.iter().zip(&d_weights).fold(T::ZERO, |sum, (&p, &d)| sum + p * d);
                for ((step, p), d_p) in seen.zip(weights).zip(d_weights) {
                    let d_score = p * (d_p - delta) * scale::<T>(&sizes);
                    for c in 0..head_width {
                        add(places.value(step, c), p * d_y[c]);
                        add(Ok(places.query(t, c)), d_score * read(qkv, start.past, places.key(step, c)));
                        add(places.key(step, c), d_score * qkv[places.query(t, c)]);
                    }
                }
            }
            for (i, step) in (0..next).filter_map(|i| Some((i, row.kept(i)?))) {
                for c in 0..head_width {
                    let at = (b * next + i) * 2 * d + h * head_width + c;
                    add(places.key(step, c), d_next.map_or(T::ZERO, |d| d[at]));
                    add(places.value(step, c), d_next.map_or(T::ZERO, |d_next| d_next[at + d]));
                }
            }
        }
    }
    (d_qkv, d_past)
}
