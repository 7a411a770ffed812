//! Causal softmax attention over the tokens a session still sees:
//!
//! ```text
//! [q | k | v] = W x + b      y = Σ_s p_s v_s of every head      p = softmax(q · k_s / √dₕ)
//! ```
//!
//! With rotary positions q and k are rotated by the position of their token, counted from the first of the session. A session keeps past
//! keys and values. Heads are independent, so each worker runs its own for all tokens.

use alloc::vec::Vec;

use minrnn_kernels::count;
use minrnn_kernels::rotary::{BASE, cos_sin, rotated};
use minrnn_kernels::simd::{self, Simd, WithSimd, mul_add, sqrt};

use super::Mixer;
use crate::linear::Linear;
use crate::pass::{Memory, Pass};
use crate::shared::Shared;
use crate::source::{Source, join};
use crate::workspace::{Buffers, room};
use crate::{CheckedConfig, Positions, Result};

/// A session keeps the place of the next token, beside the past.
#[derive(Debug, Clone)]
pub(super) struct Attention {
    /// D → 3D, rows queries, keys, values.
    in_proj: Linear,
    heads: usize,
    out_bias: bool,
    /// The angle per step of each pair of a head's channels; empty without rotary positions.
    angles: Vec<f64>,
}

impl Attention {
    pub(super) fn read(config: &CheckedConfig, source: &mut dyn Source, name: &str) -> Result<Self> {
        let (d, heads, in_proj) = (config.d_model, config.n_heads, join(name, "in_proj"));
        let in_proj = match config.bias {
            true => source.linear(&in_proj, 3 * d, d)?,
            false => source.linear_without_bias(&in_proj, 3 * d, d)?,
        };
        let width = d / heads;
        let angle = |i: usize| libm::pow(BASE, -2.0 * i as f64 / width as f64);
        let angles = if config.positions == Positions::Rotary { (0..width / 2).map(angle).collect() } else { Vec::new() };
        Ok(Self { in_proj, heads, out_bias: config.bias, angles })
    }

    /// Rotates queries and keys in every row of `qkv` `[N, 3D]` by their positions and advances these; `turns` has room for a cosine and a sine
    /// per angle.
    fn turn(&self, pass: &Pass<'_>, memory: Memory<'_>, qkv: &mut [f32], turns: &mut [f32]) {
        let (d, half) = (self.width(), self.angles.len());
        for span in pass.spans {
            // SAFETY: called between two phases, when nothing else uses the memory.
            let kept = &mut unsafe { memory.part(span.session, 0, 1) }[0];
            let mut place = count::of(*kept);
            for row in qkv[span.first * 3 * d..][..span.len * 3 * d].chunks_exact_mut(3 * d) {
                if half > 0 {
                    for (turn, angle) in turns.as_chunks_mut::<2>().0.iter_mut().zip(&self.angles) {
                        *turn = cos_sin(f64::from(place) * angle);
                    }
                    for head in row[..2 * d].chunks_exact_mut(2 * half) {
                        let (first, second) = head.split_at_mut(half);
                        for ((a, b), turn) in first.iter_mut().zip(second).zip(turns.as_chunks::<2>().0) {
                            [*a, *b] = rotated([*a, *b], *turn);
                        }
                    }
                }
                place = count::next(place);
            }
            *kept = count::kept(place);
        }
    }
}

impl Mixer for Attention {
    fn width(&self) -> usize {
        self.in_proj.weight.inputs()
    }

    fn out_bias(&self) -> bool {
        self.out_bias
    }

    fn forward(&self, pass: &Pass<'_>, memory: Memory<'_>, buffers: &mut Buffers) {
        let (n, d, width) = (pass.rows, self.width(), self.width() / self.heads);
        let Buffers { normed, product, hidden, recurrent: [qkv, scores, turns, _], .. } = buffers;
        let qkv = room(qkv, n * 3 * d);
        self.in_proj.write(pass, n, normed, room(product, n * 3 * d), qkv);
        self.turn(pass, memory, qkv, room(turns, 2 * self.angles.len()));
        let qkv = &*qkv;
        // SAFETY: called between two phases, when nothing else uses the pasts.
        unsafe { memory.remember(pass, |row| &qkv[row * 3 * d + d..][..2 * d]) };
        // SAFETY: pasts are written nowhere else, and the phase below is over before the next layer begins.
        let past = |session: usize| unsafe { memory.past(session) };
        let held = pass.spans.iter().map(|span| past(span.session).len() / (2 * d)).max().unwrap_or(0);
        let seen = held.min(memory.sight() + 1);
        let scores = Shared::new(room(scores, pass.workers.most_pieces() * seen), seen);
        let hidden = Shared::new(room(hidden, n * d), d);
        let scale = 1.0 / sqrt(width as f32);
        pass.workers.split(self.heads, 1, n * seen * 2 * d, |piece, heads| {
            // SAFETY: one thread runs a piece.
            let scores = unsafe { scores.part(piece, 0..seen) };
            for span in pass.spans {
                let past = past(span.session);
                let first = past.len() / (2 * d) - span.len;
                for t in 0..span.len {
                    let (row, end) = (span.first + t, first + t + 1);
                    let start = end - end.min(seen);
                    for head in heads.clone() {
                        let columns = head * width..(head + 1) * width;
                        let q = &qkv[row * 3 * d..][columns.clone()];
                        // SAFETY: pieces have heads of their own, and so columns of every row.
                        let y = unsafe { hidden.part(row, columns.clone()) };
                        let past = &past[start * 2 * d..end * 2 * d];
                        pass.level.run(Attend { q, past, stride: 2 * d, key: columns.start, scale, scores: &mut scores[..end - start], y });
                    }
                }
            }
        });
    }
}

/// One query of one head.
struct Attend<'a> {
    /// `[dₕ]`.
    q: &'a [f32],
    /// Keys and values of the tokens that are seen, `[seen, stride]`.
    past: &'a [f32],
    /// Numbers of a token, the second half of them values.
    stride: usize,
    /// Where the head's key begins among them.
    key: usize,
    scale: f32,
    /// `[seen]`.
    scores: &'a mut [f32],
    /// `[dₕ]`.
    y: &'a mut [f32],
}

impl WithSimd for Attend<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { q, past, stride, key, scale, scores, y } = self;
        let (seen, width) = (scores.len(), q.len());
        let part = |s: usize, first: usize| &past[s * stride + first..][..width];
        let mut largest = f32::NEG_INFINITY;
        for (s, score) in scores.iter_mut().enumerate() {
            let (k, mut sum) = (part(s, key), simd.splat_f32s(0.0));
            for at in (0..width).step_by(S::F32_LANES) {
                sum = mul_add(simd, simd::load(simd, q, at), simd::load(simd, k, at), sum);
            }
            *score = simd.reduce_sum_f32s(sum) * scale;
            largest = largest.max(*score);
        }
        let mut total = simd.splat_f32s(0.0);
        for at in (0..seen).step_by(S::F32_LANES) {
            let share = simd::exp(simd, simd.sub_f32s(simd::load(simd, scores, at), simd.splat_f32s(largest)));
            simd::put(simd, scores, at, share);
            // Lanes beyond the last score read back as 0.
            total = simd.add_f32s(total, simd::load(simd, scores, at));
        }
        let factor = simd.splat_f32s(1.0 / simd.reduce_sum_f32s(total));
        for at in (0..width).step_by(S::F32_LANES) {
            let mut sum = simd.splat_f32s(0.0);
            for (s, &share) in scores.iter().enumerate() {
                sum = mul_add(simd, simd.splat_f32s(share), simd::load(simd, part(s, stride / 2 + key), at), sum);
            }
            simd::put(simd, y, at, simd.mul_f32s(sum, factor));
        }
    }
}
