//! Gated linear attention with a constant decay: RetNet, and linear attention without decay. For each head:
//!
//! ```text
//! S ← γ S + c φ(k) vᵀ       o = Sᵀ φ(q)
//! linear attention: o / (n + 1e−6), n being the output of a value of 1       RetNet: SiLU(g) ⊙ o / √(mean o² + 1e−6)
//! ```
//!
//! Heads are independent, so each worker runs its own through all tokens.

use alloc::vec::Vec;
use core::ops::Range;

use minrnn_kernels::count;
use minrnn_kernels::retention::{EPS, angle, decay};
use minrnn_kernels::rms_norm::inverse_root;
use minrnn_kernels::rotary::{cos_sin, rotated};
use minrnn_kernels::simd::sqrt;
use minrnn_kernels::weight_matrix::WeightMatrix;

use super::Mixer;
use crate::gates;
use crate::linear::write;
use crate::pass::{Memory, Pass, Span};
use crate::shared::Shared;
use crate::source::{Source, join};
use crate::workspace::{Buffers, room};
use crate::{CheckedConfig, MixerKind, Result};

/// A session keeps S of every head, row by row; then RetNet's position.
#[derive(Debug, Clone)]
pub(super) struct Retention {
    query: WeightMatrix,
    key: WeightMatrix,
    value: WeightMatrix,
    /// RetNet's.
    gate: Option<WeightMatrix>,
    heads: usize,
    /// γ of every head.
    decays: Vec<f32>,
    /// RetNet's angle per step of each pair of a query's channels.
    angles: Vec<f64>,
}

/// Sizes of a head: channels of query and key, channels of value, columns of the state.
fn sizes(config: &CheckedConfig, kind: MixerKind) -> [usize; 3] {
    let [key, value] = config.retention_heads();
    if kind == MixerKind::RetNet { [key, value, value] } else { [value, value, value + 1] }
}

impl Retention {
    pub(super) fn read(config: &CheckedConfig, kind: MixerKind, source: &mut dyn Source, name: &str) -> Result<Self> {
        let (heads, [key, value, _]) = (config.n_heads, sizes(config, kind));
        let mut matrix = |part: &str, each: usize| source.matrix(&join(&join(name, part), "weight"), heads * each, config.d_model);
        let (query, keys, values) = (matrix("query", key)?, matrix("key", key)?, matrix("value", value)?);
        let is_retention = kind == MixerKind::RetNet;
        let gate = if is_retention { Some(matrix("gate", value)?) } else { None };
        let decay = |head: usize| if is_retention { decay(head) as f32 } else { 1.0 };
        let angles = if is_retention { (0..key / 2).map(|j| angle(j, key / 2)).collect() } else { Vec::new() };
        Ok(Self { query, key: keys, value: values, gate, heads, decays: (0..heads).map(decay).collect(), angles })
    }

    /// Channels of a head's query, those of its value, and columns of its state.
    fn sizes(&self) -> [usize; 3] {
        let value = self.value.outputs() / self.heads;
        [self.key.outputs() / self.heads, value, value + usize::from(self.gate.is_none())]
    }

    /// Numbers of S, all heads together.
    fn matrices(&self) -> usize {
        let [key, _, columns] = self.sizes();
        self.heads * key * columns
    }

    /// Cosine and sine of every pair for every token, `[N, pairs, 2]`; advances the positions.
    fn turns(&self, pass: &Pass<'_>, memory: Memory<'_>, turns: &mut [f32]) {
        let at = self.matrices();
        for span in pass.spans {
            // SAFETY: called between two phases, when nothing else uses the memory.
            let kept = &mut unsafe { memory.part(span.session, at, at + 1) }[0];
            let mut position = count::of(*kept);
            for row in span.first..span.first + span.len {
                let turns = turns[row * 2 * self.angles.len()..].as_chunks_mut::<2>().0;
                for (turn, angle) in turns.iter_mut().zip(&self.angles) {
                    *turn = cos_sin(f64::from(position) * angle);
                }
                position = count::next(position);
            }
            *kept = count::kept(position);
        }
    }

    /// φ of the head's query or key, in place.
    fn features(&self, turns: &[f32], scale: f32, x: &mut [f32]) {
        if self.gate.is_none() {
            return x.iter_mut().for_each(|x| *x = scale * if *x > 0.0 { *x + 1.0 } else { libm::expf(*x) });
        }
        for (x, turn) in x.as_chunks_mut::<2>().0.iter_mut().zip(turns.as_chunks::<2>().0) {
            *x = rotated(*x, *turn).map(|x| scale * x);
        }
    }

    /// Runs the heads `range` over the tokens of a span. Their features replace the queries, and the outputs replace the values.
    fn run(&self, pass: &Pass<'_>, span: &Span, range: Range<usize>, memory: Memory<'_>, turns: &[f32], [q, k, v]: [Shared<'_>; 3]) {
        let [key, value, columns] = self.sizes();
        let key_scale = if self.gate.is_some() { 1.0 / sqrt(key as f32) } else { 1.0 };
        for h in range {
            // SAFETY: pieces have heads of their own.
            let state = unsafe { memory.part(span.session, h * key * columns, (h + 1) * key * columns) };
            for i in 0..span.len {
                let row = span.first + i;
                // SAFETY: pieces have heads of their own, and so columns of every row.
                let [q, k, v] = unsafe {
                    [q.part(row, h * key..(h + 1) * key), k.part(row, h * key..(h + 1) * key), v.part(row, h * value..(h + 1) * value)]
                };
                let turns = &turns[row * 2 * self.angles.len()..][..2 * self.angles.len()];
                self.features(turns, 1.0, q);
                self.features(turns, key_scale, k);
                for (state, k) in state.chunks_exact_mut(columns).zip(&*k) {
                    let (sums, normalizer) = state.split_at_mut(value);
                    gates::decay_and_add(pass.level, v, self.decays[h], *k, sums);
                    normalizer.iter_mut().for_each(|n| *n += k);
                }
                v.fill(0.0);
                let mut divisor = 0.0;
                for (state, q) in state.chunks_exact(columns).zip(&*q) {
                    gates::decay_and_add(pass.level, &state[..value], 1.0, *q, v);
                    divisor += state.get(value).map_or(0.0, |n| n * q);
                }
                let factor = if self.gate.is_some() {
                    inverse_root(v.iter().map(|o| o * o).sum::<f32>() / value as f32, EPS as f32)
                } else {
                    1.0 / (divisor + EPS as f32)
                };
                v.iter_mut().for_each(|o| *o *= factor);
            }
        }
    }
}

impl Mixer for Retention {
    fn width(&self) -> usize {
        self.value.outputs()
    }

    fn out_bias(&self) -> bool {
        false
    }

    fn forward(&self, pass: &Pass<'_>, memory: Memory<'_>, buffers: &mut Buffers) {
        let (n, width, keys) = (pass.rows, self.width(), self.key.outputs());
        let Buffers { normed, product: scratch, hidden, recurrent: [queries, keyed, gated, turns], .. } = buffers;
        let scratch = room(scratch, n * width.max(keys));
        let (queries, keyed, values) = (room(queries, n * keys), room(keyed, n * keys), room(hidden, n * width));
        write(pass, &self.query, normed, scratch, queries);
        write(pass, &self.key, normed, scratch, keyed);
        write(pass, &self.value, normed, scratch, values);
        let turns = room(turns, n * 2 * self.angles.len());
        if self.gate.is_some() {
            self.turns(pass, memory, turns);
        }
        {
            let turns = &*turns;
            let shared = [Shared::new(queries, keys), Shared::new(keyed, keys), Shared::new(values, width)];
            pass.workers.split(self.heads, 1, 3 * n * self.matrices(), |_, range| {
                for span in pass.spans {
                    self.run(pass, span, range.clone(), memory, turns, shared);
                }
            });
        }
        let Some(gate) = &self.gate else { return };
        let gated = room(gated, n * width);
        write(pass, gate, normed, scratch, gated);
        gates::gate_by_silu(pass.level, [gated], values);
    }
}
