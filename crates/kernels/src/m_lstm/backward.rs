//! The backward pass of one head of one row, chunk by chunk from the last.
//!
//! With g = d_h / η (by rows), dβ = −sign(β) h·g where |β| > e^−m and 0 elsewhere, dC and dn the incoming gradients of the memory after the
//! chunk:
//!
//! ```text
//! dS = g Vᵀ + dβ        Λ = dS ⊙ S             dP = κ e^(a − μ) ⊙ dS    (s ≤ t)
//! dQ = dP K + X         X_t = δ_t (C g_t + dβ_t n)                       λ_t = q_t·X_t
//! dK = dPᵀ Q + Y        Y_s = w_s (dC v_s + dn)                          θ_s = k_s·Y_s
//! dV = Sᵀ g + w ⊙ K dC
//! dĩ_s = Σ_t Λ_ts + θ_s
//! d ln f_k = Σ_{t ≥ k} (Σ_s Λ_ts − Σ_u Λ_ut + λ_t − θ_t) + Σ_s θ_s + δ_L (C·dC + n·dn)
//! before the chunk: dC ← δ_L dC + Σ_t δ_t q_t g_tᵀ,  dn ← δ_L dn + Σ_t δ_t dβ_t q_t
//! ```

use super::chunk::{Chunk, Memory};
use super::vectors::{add_scaled, dot, scale_all, scaled, unweigh};
use super::{CHUNK, Head, Piece, Problem, Upstream};
use crate::grid::SharedOut;
use crate::matmul::{Matrix, Write, multiply};
use crate::out::{Out, Slots};
use alloc::{vec, vec::Vec};
use core::mem::MaybeUninit;

/// The memory of a task.
pub(super) struct Backward {
    chunk: Chunk,
    /// C, n and m before every piece; empty ones are stored empty.
    before: Vec<Memory>,
    memory: Memory,
    d_c: Vec<f32>,
    d_n: Vec<f32>,
    /// g `[L, e]`, then the same times δ.
    g: Vec<f32>,
    d_beta: [f32; CHUNK],
    /// dS, then dP `[L, L]`.
    d_scores: Vec<f32>,
    /// Gradients of q, k and v `[L, e]`.
    d_rows: [Vec<f32>; 3],
    /// X, Y and the like `[L, e]`.
    more: Vec<f32>,
    /// Gradients of ĩ.
    d_input: [f64; CHUNK],
    /// Gradients of F.
    d_sums: [f64; CHUNK],
}

impl Backward {
    pub fn new(problem: &Problem<'_>) -> Self {
        let e = problem.width;
        let rows = || vec![0.0; CHUNK * e];
        Self {
            chunk: Chunk::new(e),
            before: Vec::new(),
            memory: Memory::new(e),
            d_c: vec![0.0; e * e],
            d_n: vec![0.0; e],
            g: rows(),
            d_beta: [0.0; CHUNK],
            d_scores: vec![0.0; CHUNK * CHUNK],
            d_rows: [rows(), rows(), rows()],
            more: rows(),
            d_input: [0.0; CHUNK],
            d_sums: [0.0; CHUNK],
        }
    }

    /// Writes the gradients of `head`.
    pub fn run(
        &mut self,
        problem: &Problem<'_>,
        head: Head,
        upstream: &Upstream<'_>,
        d_qkv: &[SharedOut; 3],
        d_gates: &SharedOut,
        d_start: [Slots; 2],
    ) {
        let e = problem.width;
        let pieces = problem.pieces(head.row);
        d_qkv.iter().for_each(|d| problem.clear_padding(head, d));
        let length = pieces.last().map_or(0, |piece| piece.start + piece.len);
        for t in length..problem.shape.seq_len {
            write_gates(problem, head, t, d_gates, [0.0; 2]);
        }
        self.find_memories(problem, head, &pieces);
        for (d, last) in [(&mut self.d_c, upstream.d_last[0]), (&mut self.d_n, upstream.d_last[1])] {
            let len = d.len();
            match last {
                Some(last) => d.copy_from_slice(&last[head.index * len..][..len]),
                None => d.fill(0.0),
            }
        }
        for (index, &piece) in pieces.iter().enumerate().rev() {
            let before = core::mem::replace(&mut self.before[index], Memory::new(0));
            self.piece(problem, head, piece, upstream, &before, d_gates);
            for (rows, d) in self.d_rows.iter().zip(d_qkv) {
                for (t, row) in rows.chunks_exact(e.max(1)).enumerate().take(piece.len) {
                    // SAFETY: this head's channels alone.
                    unsafe { d.slice(problem.at(head, piece.start + t), e) }.write_copy_of_slice(row);
                }
            }
        }
        let [d_c0, d_n0] = d_start;
        d_c0.write_copy_of_slice(&self.d_c);
        d_n0.write_copy_of_slice(&self.d_n);
    }

    /// Runs the memory forward, and stores it before every piece.
    fn find_memories(&mut self, problem: &Problem<'_>, head: Head, pieces: &[Piece]) {
        self.before.clear();
        self.memory.begin(problem, head);
        for (index, &piece) in pieces.iter().enumerate() {
            if piece.reset {
                self.memory.clear();
            }
            self.before.push(if self.memory.is_empty() { Memory::new(0) } else { self.memory.clone() });
            // The memory after the last piece is never read, nor is one that a reset follows.
            if pieces.get(index + 1).is_some_and(|next| !next.reset) {
                self.chunk.read_gates(problem, head, piece, self.memory.m);
                self.chunk.remember(problem, problem.rows(head, piece), &mut self.memory);
            }
        }
    }

    /// Fills `d_rows`, writes the gradients of the gates, and moves `d_c` and `d_n` to before the piece.
    fn piece(&mut self, problem: &Problem<'_>, head: Head, piece: Piece, upstream: &Upstream<'_>, before: &Memory, d_gates: &SharedOut) {
        let rows = problem.rows(head, piece);
        self.chunk.read_gates(problem, head, piece, before.m);
        self.chunk.score(problem, rows, before);
        self.divide(problem, head, piece, upstream);
        self.within(problem, rows);
        let through_decay = self.through_memory_after(problem, rows, before);
        self.reach_memory_before(problem, rows, before);
        self.d_sums[piece.len - 1] += through_decay;
        let mut d_log_f = 0.0;
        for t in (0..piece.len).rev() {
            d_log_f += self.d_sums[t];
            let d_forget = d_log_f * f64::from(self.chunk.not_f[t]);
            write_gates(problem, head, piece.start + t, d_gates, [self.d_input[t] as f32, d_forget as f32]);
        }
        if piece.reset {
            self.d_c.fill(0.0);
            self.d_n.fill(0.0);
        }
    }

    /// g and dβ.
    fn divide(&mut self, problem: &Problem<'_>, head: Head, piece: Piece, upstream: &Upstream<'_>) {
        let (e, level, chunk) = (problem.width, problem.level, &self.chunk);
        for (t, g) in self.g.chunks_exact_mut(e.max(1)).enumerate().take(piece.len) {
            let at = problem.at(head, piece.start + t);
            let Some(d_h) = upstream.d_h else {
                g.fill(0.0);
                self.d_beta[t] = 0.0;
                continue;
            };
            scaled(level, chunk.inverse[t], &d_h[at..], Out::new(g).slots());
            let along = dot(level, g, &upstream.h[at..]);
            let active = chunk.beta[t].abs() > chunk.floor[t];
            self.d_beta[t] = if active { -along * chunk.beta[t].signum() } else { 0.0 };
        }
    }

    /// Computes what passes between the steps of the chunk, and initialises all gradients.
    fn within(&mut self, problem: &Problem<'_>, [q, k, v]: [&[f32]; 3]) {
        let (len, e, stride, level) = (self.chunk.len, problem.width, problem.shape.width, problem.level);
        let Self { chunk, g, d_beta, d_scores, d_rows: [d_q, d_k, d_v], d_input, d_sums, .. } = self;
        let values = Matrix::new(v, stride).transpose();
        multiply(level, [len, e, len], Matrix::new(g, e), values, Write::Store, d_scores, len);
        d_input.fill(0.0);
        for t in 0..len {
            let at = t * len;
            let (d, scores, weights) = (&mut d_scores[at..at + len], &chunk.scores[at..], &chunk.weights[at..]);
            d_sums[t] = unweigh(level, d_beta[t], &mut d[..=t], &scores[..=t], &weights[..=t], &mut d_input[..=t]);
            d[t + 1..].fill(0.0);
        }
        // So far `d_input` is only the sum over columns.
        for (d_sum, column) in d_sums.iter_mut().zip(&*d_input).take(len) {
            *d_sum -= column;
        }
        let d_products = Matrix::new(d_scores, len);
        multiply(level, [len, len, e], d_products, Matrix::new(k, stride), Write::Store, d_q, e);
        multiply(level, [len, len, e], d_products.transpose(), Matrix::new(q, stride), Write::Store, d_k, e);
        multiply(level, [len, len, e], Matrix::new(&chunk.scores, len).transpose(), Matrix::new(g, e), Write::Store, d_v, e);
    }

    /// Adds what comes back from the memory after the chunk; returns the gradient of F_L, which is the decay of the whole chunk.
    fn through_memory_after(&mut self, problem: &Problem<'_>, [_, k, v]: [&[f32]; 3], before: &Memory) -> f64 {
        let (len, e, stride, level) = (self.chunk.len, problem.width, problem.shape.width, problem.level);
        let Self { chunk, d_c, d_n, d_rows: [_, d_k, d_v], more, d_input, d_sums, .. } = self;
        if d_c.iter().chain(&*d_n).all(|&d| d == 0.0) {
            return 0.0;
        }
        let mut total = 0.0;
        let d_memory = Matrix::new(d_c, e);
        multiply(level, [len, e, e], Matrix::new(v, stride), d_memory.transpose(), Write::Store, more, e);
        for t in 0..len {
            let (row, write) = (&mut more[t * e..][..e], chunk.write[t]);
            add_scaled(level, 1.0, d_n, row);
            let along = f64::from(write * dot(level, row, &k[t * stride..]));
            add_scaled(level, write, row, &mut d_k[t * e..][..e]);
            d_input[t] += along;
            d_sums[t] -= along;
            total += along;
        }
        multiply(level, [len, e, e], Matrix::new(k, stride), d_memory, Write::Store, more, e);
        for t in 0..len {
            add_scaled(level, chunk.write[t], &more[t * e..][..e], &mut d_v[t * e..][..e]);
        }
        if before.is_empty() {
            return total;
        }
        let along = f64::from(dot(level, &before.c, d_c)) + f64::from(dot(level, &before.n, d_n));
        total + f64::from(chunk.delta[len - 1]) * along
    }

    /// Passes the gradients on to the memory before the chunk.
    fn reach_memory_before(&mut self, problem: &Problem<'_>, [q, ..]: [&[f32]; 3], before: &Memory) {
        let (len, e, stride, level) = (self.chunk.len, problem.width, problem.shape.width, problem.level);
        let Self { chunk, d_c, d_n, g, d_beta, d_rows: [d_q, ..], more, d_sums, .. } = self;
        if before.is_empty() {
            d_c.fill(0.0);
            d_n.fill(0.0);
            return;
        }
        for t in 0..len {
            scale_all(level, chunk.delta[t], &mut g[t * e..][..e]);
        }
        multiply(level, [len, e, e], Matrix::new(g, e), Matrix::new(&before.c, e).transpose(), Write::Store, more, e);
        let decay = chunk.delta[len - 1];
        scale_all(level, decay, d_c);
        scale_all(level, decay, d_n);
        multiply(level, [e, len, e], Matrix::new(q, stride).transpose(), Matrix::new(g, e), Write::Add, d_c, e);
        for t in 0..len {
            let (row, query, through) = (&mut more[t * e..][..e], &q[t * stride..], chunk.delta[t] * d_beta[t]);
            add_scaled(level, through, &before.n, row);
            d_sums[t] += f64::from(dot(level, row, query));
            add_scaled(level, 1.0, row, &mut d_q[t * e..][..e]);
            add_scaled(level, through, query, d_n);
        }
    }
}

/// Writes the gradients of the input and the forget gate of step `t`.
fn write_gates(problem: &Problem<'_>, head: Head, t: usize, d_gates: &SharedOut, [input, forget]: [f32; 2]) {
    let at = problem.gate_at(head, t);
    // SAFETY: this head's gates alone.
    unsafe {
        d_gates.slice(at, 1)[0] = MaybeUninit::new(input);
        d_gates.slice(at + problem.heads, 1)[0] = MaybeUninit::new(forget);
    }
}
