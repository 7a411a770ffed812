//! mLSTM, step by step and in its parallel form. For the equations see [`crate::m_lstm`].

use super::{Float, sigmoid, softplus};
use crate::m_lstm::{EMPTY_M, Inputs, Start, Upstream};
use crate::segments::{CONTINUE, PADDING, RESET};
use crate::shape::Shape;
use alloc::{vec, vec::Vec};

/// The outputs of the mLSTM.
#[derive(Debug, Clone, PartialEq)]
pub struct Outputs<T> {
    /// Every output `[B, T, D]`, 0 at padding.
    pub h: Vec<T>,
    /// The last C `[B, NH, e, e]`, n `[B, NH, e]` and m `[B, NH]`.
    pub last: [Vec<T>; 3],
}

/// Gradients of the mLSTM.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradients<T> {
    /// With respect to the queries, keys and values `[B, T, D]`.
    pub d_qkv: [Vec<T>; 3],
    /// With respect to the pre-activations of the gates `[B, T, 2NH]`.
    pub d_gates: Vec<T>,
    /// With respect to the carried C and n.
    pub d_start: [Vec<T>; 2],
}

/// The memory of one head.
#[derive(Debug, Clone)]
struct Memory<T> {
    c: Vec<T>,
    n: Vec<T>,
    m: T,
}

impl<T: Float> Memory<T> {
    fn empty(e: usize) -> Self {
        Self { c: vec![T::ZERO; e * e], n: vec![T::ZERO; e], m: T::from_f64(f64::from(EMPTY_M)) }
    }
}

/// The inputs, and how to find a head's part of them.
struct Problem<'a, T> {
    shape: Shape,
    eps: T,
    inputs: Inputs<'a, T>,
}

/// Gates and scores of one step.
struct Step<T> {
    /// i* / √e.
    take: T,
    /// f*.
    keep: T,
    memory: Memory<T>,
    beta: T,
    eta: T,
}

impl<'a, T: Float> Problem<'a, T> {
    fn width(&self) -> usize {
        self.shape.width / self.inputs.heads
    }

    /// Queries, keys and values of a head at a step.
    fn rows(&self, b: usize, t: usize, head: usize) -> [&'a [T]; 3] {
        let e = self.width();
        self.inputs.qkv.map(|x| &x[(b * self.shape.seq_len + t) * self.shape.width + head * e..][..e])
    }

    fn gate(&self, b: usize, t: usize, head: usize) -> [T; 2] {
        let at = (b * self.shape.seq_len + t) * 2 * self.inputs.heads + head;
        [self.inputs.gates[at], self.inputs.gates[at + self.inputs.heads]]
    }

    fn code(&self, b: usize, t: usize) -> i32 {
        self.inputs.start.segments.row(b, self.shape.seq_len).map_or(CONTINUE, |row| row[t])
    }

    /// What a head starts from.
    fn first(&self, b: usize, head: usize) -> Memory<T> {
        let (e, at) = (self.width(), b * self.inputs.heads + head);
        let empty = Memory::empty(e);
        Memory {
            c: self.inputs.start.c0.map_or(empty.c, |c0| c0[at * e * e..][..e * e].to_vec()),
            n: self.inputs.start.n0.map_or(empty.n, |n0| n0[at * e..][..e].to_vec()),
            m: self.inputs.start.m0.map_or(empty.m, |m0| m0[at]),
        }
    }

    fn step(&self, b: usize, t: usize, head: usize, memory: &Memory<T>) -> Step<T> {
        let e = self.width();
        let ([q, k, v], [i, f]) = (self.rows(b, t, head), self.gate(b, t, head));
        let kept = memory.m - softplus(-f);
        let m = kept.max(i);
        let (take, keep) = ((i - m).exp() / T::from_f64(e as f64).sqrt(), (kept - m).exp());
        let c = (0..e * e).map(|at| keep * memory.c[at] + take * k[at / e] * v[at % e]).collect();
        let n: Vec<T> = (0..e).map(|at| keep * memory.n[at] + take * k[at]).collect();
        let beta = dot(&n, q);
        Step { take, keep, memory: Memory { c, n, m }, beta, eta: beta.abs().max((-m).exp()) + self.eps }
    }
}

fn dot<T: Float>(x: &[T], y: &[T]) -> T {
    x.iter().zip(y).fold(T::ZERO, |sum, (&x, &y)| sum + x * y)
}

/// Outputs and last states by the recurrence.
pub fn forward<T: Float>(shape: Shape, eps: T, inputs: Inputs<T>) -> Outputs<T> {
    let Inputs { heads, start, .. } = inputs;
    let problem = Problem { shape, eps, inputs };
    let e = problem.width();
    let mut out = Outputs { h: vec![T::ZERO; shape.elements()], last: [const { Vec::new() }; 3] };
    for (b, head) in (0..shape.batch).flat_map(|b| (0..heads).map(move |head| (b, head))) {
        let mut memory = problem.first(b, head);
        for t in 0..start.segments.length(b, shape.seq_len) {
            if problem.code(b, t) == RESET {
                memory = Memory::empty(e);
            }
            let step = problem.step(b, t, head, &memory);
            let [q, ..] = problem.rows(b, t, head);
            for j in 0..e {
                let sum = (0..e).fold(T::ZERO, |sum, k| sum + step.memory.c[k * e + j] * q[k]);
                out.h[(b * shape.seq_len + t) * shape.width + head * e + j] = sum / step.eta;
            }
            memory = step.memory;
        }
        out.last[0].extend(memory.c);
        out.last[1].extend(memory.n);
        out.last[2].push(memory.m);
    }
    out
}

/// Outputs of dense sequences from an empty memory, all pairs of steps at once.
pub fn parallel<T: Float>(shape: Shape, heads: usize, eps: T, qkv: [&[T]; 3], gates: &[T]) -> Vec<T> {
    let problem = Problem { shape, eps, inputs: Inputs { heads, qkv, gates, start: Start::default() } };
    let e = problem.width();
    let scale = T::ONE / T::from_f64(e as f64).sqrt();
    let mut h = vec![T::ZERO; shape.elements()];
    for (b, head) in (0..shape.batch).flat_map(|b| (0..heads).map(move |head| (b, head))) {
        let mut total = T::ZERO;
        let sums: Vec<T> = (0..shape.seq_len)
            .map(|t| {
                total -= softplus(-problem.gate(b, t, head)[1]);
                total
            })
            .collect();
        for t in 0..shape.seq_len {
            let [q, ..] = problem.rows(b, t, head);
            let logs: Vec<T> = (0..=t).map(|s| sums[t] - sums[s] + problem.gate(b, s, head)[0]).collect();
            let m = logs.iter().fold(T::NEG_INFINITY, |m, &x| m.max(x));
            let scores: Vec<T> = (0..=t).map(|s| dot(q, problem.rows(b, s, head)[1]) * scale * (logs[s] - m).exp()).collect();
            let beta = scores.iter().fold(T::ZERO, |sum, &x| sum + x);
            let eta = beta.abs().max((-m).exp()) + eps;
            for j in 0..e {
                let sum = (0..=t).fold(T::ZERO, |sum, s| sum + scores[s] * problem.rows(b, s, head)[2][j]);
                h[(b * shape.seq_len + t) * shape.width + head * e + j] = sum / eta;
            }
        }
    }
    h
}

/// Gradients of everything; m is a constant.
pub fn backward<T: Float>(shape: Shape, eps: T, inputs: Inputs<T>, upstream: Upstream<T>) -> Gradients<T> {
    let Inputs { heads, start, .. } = inputs;
    let Upstream { d_h, d_last, .. } = upstream;
    let problem = Problem { shape, eps, inputs };
    let e = problem.width();
    let mut d = Gradients {
        d_qkv: [(); 3].map(|()| vec![T::ZERO; shape.elements()]),
        d_gates: vec![T::ZERO; shape.batch * shape.seq_len * 2 * heads],
        d_start: [const { Vec::new() }; 2],
    };
    for (b, head) in (0..shape.batch).flat_map(|b| (0..heads).map(move |head| (b, head))) {
        let length = start.segments.length(b, shape.seq_len);
        let mut before = Vec::new();
        let mut memory = problem.first(b, head);
        for t in 0..length {
            if problem.code(b, t) == RESET {
                memory = Memory::empty(e);
            }
            let step = problem.step(b, t, head, &memory);
            before.push(core::mem::replace(&mut memory, step.memory));
        }
        let last = |d: Option<&[T]>, len: usize| d.map_or(vec![T::ZERO; len], |d| d[(b * heads + head) * len..][..len].to_vec());
        let (mut d_c, mut d_n) = (last(d_last[0], e * e), last(d_last[1], e));
        for t in (0..length).rev() {
            debug_assert_ne!(problem.code(b, t), PADDING);
            let (step, [q, k, v]) = (problem.step(b, t, head, &before[t]), problem.rows(b, t, head));
            let at = (b * shape.seq_len + t) * shape.width + head * e;
            let d_out: Vec<T> = (0..e).map(|j| d_h.map_or(T::ZERO, |d| d[at + j]) / step.eta).collect();
            let h_d = (0..e * e).fold(T::ZERO, |sum, i| sum + step.memory.c[i] * q[i / e] * d_out[i % e]) / step.eta;
            let d_beta = match step.beta.abs() > (-step.memory.m).exp() {
                true if step.beta > T::ZERO => -h_d,
                true => h_d,
                false => T::ZERO,
            };
            for i in 0..e {
                d.d_qkv[0][at + i] = dot(&step.memory.c[i * e..][..e], &d_out) + d_beta * step.memory.n[i];
                d_n[i] += d_beta * q[i];
                for j in 0..e {
                    d_c[i * e + j] += q[i] * d_out[j];
                }
            }
            for i in 0..e {
                d.d_qkv[1][at + i] = step.take * (dot(&d_c[i * e..][..e], v) + d_n[i]);
                d.d_qkv[2][at + i] = step.take * (0..e).fold(T::ZERO, |sum, j| sum + d_c[j * e + i] * k[j]);
            }
            let d_take = dot(&d.d_qkv[1][at..at + e], k);
            let d_keep = step.keep * (dot(&before[t].c, &d_c) + dot(&before[t].n, &d_n));
            let gate = (b * shape.seq_len + t) * 2 * heads + head;
            d.d_gates[gate] = d_take;
            d.d_gates[gate + heads] = d_keep * sigmoid(-problem.gate(b, t, head)[1]);
            let keep = if problem.code(b, t) == RESET { T::ZERO } else { step.keep };
            d_c.iter_mut().chain(&mut d_n).for_each(|d| *d *= keep);
        }
        d.d_start[0].extend(d_c);
        d.d_start[1].extend(d_n);
    }
    d
}
