//! RG-LRU:
//!
//! ```text
//! u = W_u x + b_u      r, i = W_a u + b_a, W_x u + b_x      a = e^(−8 softplus(Λ) σ(r))      h ← a h + √(1 − a²) σ(i) u
//! ```
//!
//! After the in-projection sessions are split over the workers; each runs its own token by token, for a prompt as for a step.

use alloc::vec;
use alloc::vec::Vec;

use minrnn_kernels::recurrence::{Cell, StepInputs, rg_lru_rate, step};

use super::Mixer;
use crate::block_diagonal::BlockDiagonal;
use crate::linear::Linear;
use crate::pass::{Memory, Pass};
use crate::shared::Shared;
use crate::source::{Source, join};
use crate::workspace::{Buffers, room};
use crate::{CheckedConfig, Result};

/// A session keeps h `[E]`, and whether there has been a token.
#[derive(Debug, Clone)]
pub(super) struct RgLru {
    /// D → E.
    in_proj: Linear,
    /// W_a, W_x.
    gates: [BlockDiagonal; 2],
    /// 0 for u, which has its bias, then b_a and b_x: `[3E]`.
    bias: Vec<f32>,
    /// 8 softplus(Λ) `[E]`.
    rate: Vec<f32>,
}

impl RgLru {
    pub(super) fn read(config: &CheckedConfig, source: &mut dyn Source, name: &str) -> Result<Self> {
        let (d, e, heads) = (config.d_model, config.d_inner(), config.n_heads);
        let head = e / heads;
        let in_proj = source.linear(&join(name, "in_proj"), e, d)?;
        let mut gate = |gate: &str| BlockDiagonal::read(source, &join(name, gate), [heads, head, head]);
        let gates = [gate("recurrence_gate")?, gate("input_gate")?];
        let mut bias = vec![0.0; e];
        bias.extend(source.vector(&join(name, "bias"), &[2 * e])?);
        let rate = source.vector(&join(name, "decay"), &[e])?.into_iter().map(rg_lru_rate).collect();
        Ok(Self { in_proj, gates, bias, rate })
    }

    /// One token; `memory` holds h, then 0 before the first token and 1 after it.
    fn token(&self, pass: &Pass<'_>, memory: &mut [f32], u: &[f32], gates: &mut [f32], y: &mut [f32]) {
        let e = self.rate.len();
        let (h, begun) = memory.split_at_mut(e);
        let (r, i) = gates.split_at_mut(e);
        self.gates[0].row(pass.level, u, r);
        self.gates[1].row(pass.level, u, i);
        if begun[0] == 0.0 {
            // The first token enters unscaled.
            r.fill(f32::INFINITY);
            begun[0] = 1.0;
        }
        let (none, rest) = self.bias.split_at(e);
        let (bias_r, bias_i) = rest.split_at(e);
        let inputs = StepInputs { preact: &[u, r, i], bias: &[none, bias_r, bias_i], extra: &self.rate };
        step(pass.level, Cell::RgLru, inputs, h, y);
    }
}

impl Mixer for RgLru {
    fn width(&self) -> usize {
        self.rate.len()
    }

    fn forward(&self, pass: &Pass<'_>, memory: Memory<'_>, buffers: &mut Buffers) {
        let (e, rows) = (self.rate.len(), pass.rows);
        let [values, gates, ..] = &mut buffers.recurrent;
        let u = room(values, rows * e);
        self.in_proj.write(pass, rows, &buffers.normed, room(&mut buffers.product, rows * e), u);
        let u = Shared::new(u, e);
        let gates = Shared::new(room(gates, rows * 2 * e), 2 * e);
        let hidden = Shared::new(room(&mut buffers.hidden, rows * e), e);
        let heads = self.gates[0].count();
        pass.workers.split(pass.spans.len(), 1, rows * 2 * e * e / heads, |_, range| {
            for span in &pass.spans[range] {
                // SAFETY: pieces have sessions of their own, and so memories.
                let memory = unsafe { memory.whole(span.session) };
                for row in span.first..span.first + span.len {
                    // SAFETY: pieces have sessions of their own, and so rows.
                    let (u, gates, y) = unsafe { (u.part(row, 0..e), gates.part(row, 0..2 * e), hidden.part(row, 0..e)) };
                    self.token(pass, memory, u, gates, y);
                }
            }
        });
    }
}
