//! The associative memory with the delta rule, step by step; for the equations see [`crate::delta`].

use super::{Float, of_finite, sigmoid};
use crate::delta::{EPS, Sizes};
use crate::segments::{CONTINUE, PADDING, RESET, Segments};
use crate::shape::expect_len;
use alloc::{vec, vec::Vec};

/// The outputs `[B, T, E]`, and the memory after each sequence, `[B, H, n, n]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Outputs<T> {
    /// 0 at padding.
    pub y: Vec<T>,
    /// The memory after the last step.
    pub memory: Vec<T>,
}

/// Gradients of the input and of the carried memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradients<T> {
    /// `[B, T, 3E + H]`
    pub d_x: Vec<T>,
    /// `[B, H, n, n]`
    pub d_memory: Vec<T>,
}

/// A head's step: q, k̂, v, √(‖k‖² + ε) and β.
struct Input<T> {
    q: Vec<T>,
    k: Vec<T>,
    v: Vec<T>,
    length: T,
    beta: T,
}

/// Where q, k, v and b of head `head` begin in `x`, at step `t` of row `b`.
fn places(sizes: Sizes, b: usize, t: usize, head: usize) -> [usize; 4] {
    let (first, e) = ((b * sizes.seq_len + t) * sizes.inputs(), sizes.width());
    let at = first + head * sizes.head_width;
    [at, at + e, at + 2 * e, first + 3 * e + head]
}

fn input<T: Float>(sizes: Sizes, x: &[T], [q, k, v, b]: [usize; 4]) -> Input<T> {
    let n = sizes.head_width;
    let mut length = T::from_f64(f64::from(EPS));
    x[k..k + n].iter().for_each(|&k| length += k * k);
    let length = of_finite(length, length.sqrt());
    Input {
        q: x[q..q + n].to_vec(),
        k: x[k..k + n].iter().map(|&k| k / length).collect(),
        v: x[v..v + n].to_vec(),
        length,
        beta: sigmoid(x[b]),
    }
}

/// Σ_j weights_j row_j of a memory.
fn recall<T: Float>(memory: &[T], weights: &[T]) -> Vec<T> {
    let n = weights.len();
    let mut sum = vec![T::ZERO; n];
    for j in 0..n {
        (0..n).for_each(|i| sum[i] += weights[j] * memory[j * n + i]);
    }
    sum
}

/// v − S k̂.
fn error<T: Float>(memory: &[T], x: &Input<T>) -> Vec<T> {
    recall(memory, &x.k).iter().zip(&x.v).map(|(&recalled, &v)| v - recalled).collect()
}

fn corrected<T: Float>(memory: &[T], x: &Input<T>) -> Vec<T> {
    let (n, error) = (x.k.len(), error(memory, x));
    (0..n * n).map(|at| memory[at] + x.k[at / n] * x.beta * error[at % n]).collect()
}

fn code(segments: Segments, sizes: Sizes, b: usize, t: usize) -> i32 {
    segments.row(b, sizes.seq_len).map_or(CONTINUE, |row| row[t])
}

/// For `x` `[B, T, 3E + H]` with rows `[q | k | v | b]` and the carried `memory` `[B, H, n, n]` (`None` is 0).
///
/// # Panics
/// When a length does not fit `sizes`.
pub fn forward<T: Float>(sizes: Sizes, x: &[T], memory: Option<&[T]>, segments: Segments) -> Outputs<T> {
    expect_len("x", x, sizes.batch * sizes.seq_len * sizes.inputs());
    let n = sizes.head_width;
    let mut memory = memory.map_or_else(|| vec![T::ZERO; sizes.batch * sizes.memory()], <[T]>::to_vec);
    let mut y = vec![T::ZERO; sizes.batch * sizes.seq_len * sizes.width()];
    for (task, memory) in memory.chunks_exact_mut(n * n).enumerate() {
        let (b, head) = (task / sizes.heads, task % sizes.heads);
        for t in (0..sizes.seq_len).filter(|&t| code(segments, sizes, b, t) != PADDING) {
            if code(segments, sizes, b, t) == RESET {
                memory.fill(T::ZERO);
            }
            let x = input(sizes, x, places(sizes, b, t, head));
            memory.copy_from_slice(&corrected(memory, &x));
            let at = (b * sizes.seq_len + t) * sizes.width() + head * n;
            y[at..at + n].copy_from_slice(&recall(memory, &x.q));
        }
    }
    Outputs { y, memory }
}

/// Gradients of [`forward`], given those of y and of the memory after; `None` is 0.
///
/// # Panics
/// When a length does not fit `sizes`.
pub fn backward<T: Float>(
    sizes: Sizes,
    x: &[T],
    memory: Option<&[T]>,
    segments: Segments,
    d_y: Option<&[T]>,
    d_after: Option<&[T]>,
) -> Gradients<T> {
    let n = sizes.head_width;
    let mut d_x = vec![T::ZERO; x.len()];
    let mut d_memory = d_after.map_or_else(|| vec![T::ZERO; sizes.batch * sizes.memory()], <[T]>::to_vec);
    for (task, d) in d_memory.chunks_exact_mut(n * n).enumerate() {
        let (b, head) = (task / sizes.heads, task % sizes.heads);
        let mut state = memory.map_or_else(|| vec![T::ZERO; n * n], |memory| memory[task * n * n..(task + 1) * n * n].to_vec());
        let mut before = Vec::new();
        for t in (0..sizes.seq_len).filter(|&t| code(segments, sizes, b, t) != PADDING) {
            if code(segments, sizes, b, t) == RESET {
                state.fill(T::ZERO);
            }
            before.push(state.clone());
            state = corrected(&state, &input(sizes, x, places(sizes, b, t, head)));
        }
        for (t, before) in before.iter().enumerate().rev() {
            let places = places(sizes, b, t, head);
            let x = input(sizes, x, places);
            let (error, after) = (error(before, &x), corrected(before, &x));
            let at = (b * sizes.seq_len + t) * sizes.width() + head * n;
            let d_y = d_y.map_or_else(|| vec![T::ZERO; n], |d_y| d_y[at..at + n].to_vec());
            for j in 0..n {
                (0..n).for_each(|i| d[j * n + i] += x.q[j] * d_y[i]);
            }
            let d_u = recall(d, &x.k);
            let mut d_k = vec![T::ZERO; n];
            let mut d_beta = T::ZERO;
            for i in 0..n {
                d_x[places[2] + i] = x.beta * d_u[i];
                d_beta += d_u[i] * error[i];
                for j in 0..n {
                    d_x[places[0] + j] += after[j * n + i] * d_y[i];
                    d_k[j] += x.beta * (d[j * n + i] * error[i] - before[j * n + i] * d_u[i]);
                    let earlier = d[j * n + i] - x.beta * d_u[i] * x.k[j];
                    d[j * n + i] = earlier;
                }
            }
            let mut along = T::ZERO;
            (0..n).for_each(|j| along += d_k[j] * x.k[j]);
            (0..n).for_each(|j| d_x[places[1] + j] = (d_k[j] - x.k[j] * along) / x.length);
            d_x[places[3]] = d_beta * x.beta * (T::ONE - x.beta);
            if code(segments, sizes, b, t) == RESET {
                d.fill(T::ZERO);
            }
        }
    }
    Gradients { d_x, d_memory }
}
