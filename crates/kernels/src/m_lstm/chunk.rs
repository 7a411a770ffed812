//! What both directions compute for a chunk: its gates, its scores, and the memory after it. For the formulas see [`super`].

use super::vectors::{add_scaled, dot, exp_all, log_forget, scale_all, scaled, weigh};
use super::{CHUNK, EMPTY_M, EPS, Head, Piece, Problem};
use crate::matmul::{Matrix, Write, multiply};
use crate::out::Out;
use alloc::{vec, vec::Vec};

/// C, n and m of one head.
#[derive(Clone)]
pub(super) struct Memory {
    pub c: Vec<f32>,
    pub n: Vec<f32>,
    pub m: f32,
}

impl Memory {
    pub fn new(e: usize) -> Self {
        Self { c: vec![0.0; e * e], n: vec![0.0; e], m: EMPTY_M }
    }

    /// What `head` starts from.
    pub fn begin(&mut self, problem: &Problem<'_>, head: Head) {
        let e = problem.width;
        self.clear();
        if let Some(c0) = problem.start.c0 {
            self.c.copy_from_slice(&c0[head.index * e * e..][..e * e]);
        }
        if let Some(n0) = problem.start.n0 {
            self.n.copy_from_slice(&n0[head.index * e..][..e]);
        }
        self.m = problem.start.m0.map_or(EMPTY_M, |m0| m0[head.index]);
    }

    /// Empties the memory.
    pub fn clear(&mut self) {
        self.c.fill(0.0);
        self.n.fill(0.0);
        self.m = EMPTY_M;
    }

    /// Whether it has no effect on any step.
    pub fn is_empty(&self) -> bool {
        self.m <= EMPTY_M
    }
}

/// The gates, scores and denominators of one chunk.
pub(super) struct Chunk {
    /// L.
    pub len: usize,
    /// a_s.
    a: [f64; CHUNK],
    /// μ_t.
    mu: [f64; CHUNK],
    /// 1 − f_t.
    pub not_f: [f32; CHUNK],
    /// δ_t.
    pub delta: [f32; CHUNK],
    /// w_s.
    pub write: [f32; CHUNK],
    /// e^−m_t.
    pub floor: [f32; CHUNK],
    pub beta: [f32; CHUNK],
    /// 1 / η_t.
    pub inverse: [f32; CHUNK],
    /// m after the chunk.
    pub m_end: f32,
    /// S `[L, L]`, 0 above the diagonal.
    pub scores: Vec<f32>,
    /// κ e^(a_s − μ_t) `[L, L]`, 0 above the diagonal.
    pub weights: Vec<f32>,
    /// w_s v_s `[L, e]`.
    written: Vec<f32>,
}

impl Chunk {
    pub fn new(e: usize) -> Self {
        let zeros = [0.0; CHUNK];
        Self {
            len: 0,
            a: [0.0; CHUNK],
            mu: [0.0; CHUNK],
            not_f: zeros,
            delta: zeros,
            write: zeros,
            floor: zeros,
            beta: zeros,
            inverse: zeros,
            m_end: EMPTY_M,
            scores: vec![0.0; CHUNK * CHUNK],
            weights: vec![0.0; CHUNK * CHUNK],
            written: vec![0.0; CHUNK * e],
        }
    }

    /// The gates of `piece`, entered with the stabiliser `m`.
    pub fn read_gates(&mut self, problem: &Problem<'_>, head: Head, piece: Piece, m: f32) {
        let (len, level) = (piece.len, problem.level);
        self.len = len;
        let mut log_f = [0.0; CHUNK];
        for (t, (a, log_f)) in self.a.iter_mut().zip(&mut log_f).enumerate().take(len) {
            let at = problem.gate_at(head, piece.start + t);
            (*a, *log_f) = (f64::from(problem.gates[at]), problem.gates[at + problem.heads]);
        }
        log_forget(level, &mut log_f[..len], &mut self.not_f[..len]);
        let (mut total, mut mu) = (0.0, f64::from(m));
        for (t, &log_f) in log_f.iter().enumerate().take(len) {
            total += f64::from(log_f);
            self.a[t] -= total;
            mu = mu.max(self.a[t]);
            self.mu[t] = mu;
            self.delta[t] = (f64::from(m) - mu) as f32;
            self.floor[t] = -(total + mu) as f32;
        }
        for t in 0..len {
            self.write[t] = (self.a[t] - mu) as f32;
        }
        self.m_end = (total + mu) as f32;
        for x in [&mut self.delta, &mut self.floor, &mut self.write] {
            exp_all(level, &mut x[..len]);
        }
        scale_all(level, problem.scale, &mut self.write[..len]);
    }

    /// S, β and 1 / η, from the queries and keys of the chunk and the memory it is entered with.
    pub fn score(&mut self, problem: &Problem<'_>, [q, k, _]: [&[f32]; 3], memory: &Memory) {
        let (len, e, stride, level) = (self.len, problem.width, problem.shape.width, problem.level);
        let keys = Matrix::new(k, stride).transpose();
        multiply(level, [len, e, len], Matrix::new(q, stride), keys, Write::Store, &mut self.scores, len);
        let rows = self.scores.chunks_exact_mut(len).zip(self.weights.chunks_exact_mut(len)).take(len);
        for (t, (scores, weights)) in rows.enumerate() {
            scores[t + 1..].fill(0.0);
            weights[t + 1..].fill(0.0);
            let own = weigh(level, problem.scale, &self.a[..=t], self.mu[t], &mut scores[..=t], &mut weights[..=t]);
            let before = if memory.is_empty() { 0.0 } else { self.delta[t] * dot(level, &memory.n, &q[t * stride..]) };
            self.beta[t] = own + before;
            self.inverse[t] = 1.0 / (self.beta[t].abs().max(self.floor[t]) + EPS);
        }
    }

    /// Moves `memory` to the end of the chunk.
    pub fn remember(&mut self, problem: &Problem<'_>, [_, k, v]: [&[f32]; 3], memory: &mut Memory) {
        let (len, e, stride, level) = (self.len, problem.width, problem.shape.width, problem.level);
        for (t, written) in self.written.chunks_exact_mut(e.max(1)).enumerate().take(len) {
            scaled(level, self.write[t], &v[t * stride..], Out::new(written).slots());
        }
        let decay = if memory.is_empty() { 0.0 } else { self.delta[len - 1] };
        scale_all(level, decay, &mut memory.c);
        scale_all(level, decay, &mut memory.n);
        let keys = Matrix::new(k, stride).transpose();
        multiply(level, [e, len, e], keys, Matrix::new(&self.written, e), Write::Add, &mut memory.c, e);
        for t in 0..len {
            add_scaled(level, self.write[t], &k[t * stride..], &mut memory.n);
        }
        memory.m = self.m_end;
    }
}
